"""What is known at a place of a program: conditions come in, facts about polynomials go out.

A condition becomes claims `p >= 0`, bounds of single atoms, atoms solved for by an equation, or a
pair of conditions of which one holds. Facts are never changed; `assuming` gives new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeAlias

from warploom.index.ir import COMPARISONS, TRUTHS, Binary, Const, Expr, Select, Unary, Var
from warploom.index.polynomial import (
    ONE,
    Normal,
    Quotient,
    constant,
    tightened,
)
from warploom.index.ranges import Range
from warploom.index.terms import Polynomial, terms_range

Claim: TypeAlias = Polynomial  # that it is not negative

MAX_ROUNDS = 3  # in which bounds follow from bounds; they may creep on for ever


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at one place of a program.

    `claims` are polynomials that are not negative, `bounds` what is known of single atoms,
    `solved` atoms that equal a polynomial without them, `choices` pairs of which one holds.
    """

    normal: Normal
    bounds: tuple[tuple[int, Range], ...] = ()
    claims: tuple[Claim, ...] = ()
    solved: tuple[tuple[int, Polynomial], ...] = ()
    choices: tuple[tuple[Expr, Expr], ...] = ()
    impossible: bool = False

    @staticmethod
    def about(ranges: Mapping[str, tuple[int, int]]) -> Facts:
        return Facts(Normal(ranges))

    def assuming(self, *conditions: Expr) -> Facts:
        """These facts and the conditions."""
        collected = Collected(self)
        for condition in conditions:
            collected.assume(condition, True)
        return collected.facts()


def _meaning(op: str, truth: bool) -> tuple[str, bool]:
    """A comparison, or its negation, as one of `<=`, `==`, `!=`; whether the sides are swapped."""
    if not truth:
        op = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[op]
    return {"<": ("<", False), ">": ("<", True), "<=": ("<=", False), ">=": ("<=", True)}.get(
        op, (op, False)
    )


def compared(condition: Expr, truth: bool) -> tuple[Expr, Expr, str]:
    """A condition that is no `and`, `or`, `not`: left, right and one of `<`, `<=`, `==`, `!=`."""
    if isinstance(condition, Binary) and condition.op in COMPARISONS:
        op, swapped = _meaning(condition.op, truth)
        left, right = condition.left, condition.right
        return (right, left, op) if swapped else (left, right, op)
    return condition, Const(0), "!=" if truth else "=="


def truth_inside(condition: Expr, truth: bool) -> tuple[Expr, bool] | None:
    """`x != 0` and the like, where x is a truth: x itself, and whether it holds."""
    if not isinstance(condition, Binary) or condition.op not in ("==", "!="):
        return None
    inner, value = condition.left, condition.right
    if not isinstance(value, Const) or not isinstance(inner, Unary | Binary):
        return None
    if inner.op not in TRUTHS or value.value not in (0, 1):
        return None
    return inner, truth == ((condition.op == "==") == (value.value == 1))


class Collected:
    """Facts while conditions are added to them."""

    def __init__(self, facts: Facts) -> None:
        self.before = facts
        self.normal = facts.normal
        self.bounds = dict(facts.bounds)
        self.claims = list(facts.claims)
        self.solved = dict(facts.solved)
        self.choices = list(facts.choices)
        self.impossible = facts.impossible
        self.moved = False

    def facts(self) -> Facts:
        self._propagate()
        return replace(
            self.before,
            bounds=tuple(self.bounds.items()),
            claims=tuple(dict.fromkeys(self.claims)),
            solved=tuple(self.solved.items()),
            choices=tuple(self.choices),
            impossible=self.impossible,
        )

    def assume(self, condition: Expr, truth: bool) -> None:
        inside = truth_inside(condition, truth)
        if inside is not None:
            self.assume(*inside)
            return
        match condition:
            case Unary("not", operand):
                self.assume(operand, not truth)
            case Binary("and" | "or" as op, left, right) if (op == "and") == truth:
                self.assume(left, truth)
                self.assume(right, truth)
            case Binary("and", left, right):
                self.choices.append((left.not_(), right.not_()))
            case Binary("or", left, right):
                self.choices.append((left, right))
            case Select(chosen, then, otherwise):
                sides = (then, otherwise) if truth else (then.not_(), otherwise.not_())
                self.choices.append((chosen.and_(sides[0]), chosen.not_().and_(sides[1])))
            case _:
                self._compare(*compared(condition, truth))

    def _compare(self, left: Expr, right: Expr, op: str) -> None:
        distance = self.normal.of(right) - self.normal.of(left)
        match op:
            case "<":
                self.claim(distance - ONE)
            case "<=":
                self.claim(distance)
            case "==":
                self.equal(distance)
            case _:
                low, high = self._range(self._reduced(distance))
                if low >= 0:
                    self.claim(distance - ONE)
                elif high <= 0:
                    self.claim(distance.scaled(-1) - ONE)
                else:
                    self.choices.append((left.lt(right), left.gt(right)))

    def claim(self, polynomial: Polynomial) -> None:
        """Notes that a polynomial is not negative."""
        known = tightened(self._reduced(polynomial))
        low, high = self._range(known)
        if high < 0:
            self.impossible = True
        elif low < 0:
            if self._bound_atoms(known, high):
                self.moved = True
            if len(known.atoms()) > 1 or max(map(len, known.terms)) > 1:
                self.claims.append(known)

    def _bound_atoms(self, known: Claim, most: int) -> bool:
        """Bounds that a claim gives for atoms, all else at its greatest; whether any is new."""
        moved = False
        for monomial, factor in known.terms.items():
            if len(monomial) != 1:
                continue
            low, high = old = self.bounds.get(monomial[0], self.normal.bounds[monomial[0]])
            if factor > 0:
                low = max(low, -((most - factor * high) // factor))
            else:
                high = min(high, (most - factor * low) // -factor)
            if low > high:
                self.impossible = True
            elif (low, high) != old:
                self.bounds[monomial[0]] = Range(low, high)
                moved = True
        return moved

    def _propagate(self) -> None:
        """Old claims may say more of an atom now that more is known of others."""
        for _ in range(MAX_ROUNDS):
            if not self.moved or self.impossible:
                return
            self.moved = False
            for claim in self.claims:
                most = self._range(claim).high
                if most < 0:
                    self.impossible = True
                elif self._bound_atoms(claim, most):
                    self.moved = True

    def equal(self, polynomial: Polynomial) -> None:
        """Notes that a polynomial is zero."""
        known = self._reduced(polynomial)
        common = 0
        for monomial, factor in known.terms.items():
            common = gcd(common, factor) if monomial else common
        if common == 0 or known.constant % common:
            self.impossible = self.impossible or bool(known.terms)
            return
        if common > 1:
            known = Polynomial({m: f // common for m, f in known.terms.items()})
        atom = self._solvable(known)
        if atom is None:
            self.claim(known)
            self.claim(known.scaled(-1))
            return
        sign = known.terms[atom,]
        value = (known - Polynomial({(atom,): sign})).scaled(-sign)
        self.solve(atom, value)

    def _solvable(self, known: Polynomial) -> int | None:
        """An atom that the others give: one that stands alone, once; a variable if there is one."""
        found = None
        for monomial, factor in known.terms.items():
            if len(monomial) == 1 and abs(factor) == 1:
                atom = monomial[0]
                if sum(atom in other for other in known.terms) == 1:
                    if isinstance(self.normal.atoms[atom], Var):
                        return atom
                    found = atom
        return found

    def solve(self, atom: int, value: Polynomial) -> None:
        """Notes that an atom equals a polynomial without it."""
        low, high = self.bounds.pop(atom, self.normal.bounds[atom])
        self.solved = {a: p.with_atom(atom, value) for a, p in self.solved.items()}
        self.solved[atom] = value
        claims, self.claims = self.claims, []
        for claim in (*claims, value - constant(low), constant(high) - value):
            self.claim(claim)
        node = self.normal.atoms[atom]
        if isinstance(node, Quotient) and self._range(node.divisor).low >= 1:
            for claim in between(node, value):
                self.claim(claim)

    def _reduced(self, polynomial: Polynomial) -> Polynomial:
        return reduced(polynomial, self.solved)

    def _range(self, polynomial: Polynomial) -> Range:
        return terms_range(polynomial.terms, Bounds(self.normal.bounds, self.bounds))


def between(node: Quotient, value: Polynomial) -> tuple[Claim, Claim]:
    """d·q <= x and x < d·q + d, for a quotient q = x // d by a positive d."""
    rest = node.value - node.divisor * value
    return rest, node.divisor - ONE - rest


def reduced(polynomial: Polynomial, solved: Mapping[int, Polynomial]) -> Polynomial:
    """The polynomial without the atoms that others give."""
    if solved:
        for atom in polynomial.atoms() & solved.keys():
            polynomial = polynomial.with_atom(atom, solved[atom])
    return polynomial


class Bounds:
    """The bounds of all atoms, some of them narrower than they are everywhere."""

    __slots__ = ("_all", "_narrow")

    def __init__(self, everywhere: Sequence[Range], narrow: Mapping[int, Range]) -> None:
        self._all = everywhere
        self._narrow = narrow

    def __getitem__(self, atom: int) -> Range:
        return self._narrow[atom] if atom in self._narrow else self._all[atom]
