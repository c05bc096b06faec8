"""Does a condition hold wherever others do? Whole numbers without bounds, no solver.

    >>> i, n = Var("i"), Var("n")
    >>> proves((4 * i + 4).le(n), [i.lt(n // 4)], {"i": (0, 2**31)})
    True

A claim `p >= 0` is a polynomial over atoms (`polynomial.py`), and so is every fact. It follows from
a fact `f >= 0` if `p - a·f >= 0` follows, for any `a >= 0`: the search takes such steps, each of
which rids the claim of a monomial, until the bounds of the atoms show the rest. Whole numbers
round: of `s·p` only `s·p > -s` is needed. A select, or a fact of the form "one of two", is taken
apart into its two cases. True is a proof; False says only that none was found.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd

from warploom.index.facts import (
    Bounds,
    Claim,
    Collected,
    Facts,
    between,
    compared,
    reduced,
    truth_inside,
)
from warploom.index.ir import TRUTHS, Binary, Const, Expr, Select, Unary
from warploom.index.polynomial import (
    ONE,
    Quotient,
    constant,
    tightened,
)
from warploom.index.ranges import Range
from warploom.index.terms import Monomial, Polynomial, terms_range

EFFORT = 8000  # terms of claims that one proof may look at, some tens of milliseconds
LOOK, GLANCE = 200, 40  # … that one search may, before cases of facts or of the goal are tried
MAX_SPLITS = 6
FAR = 2**31 - 1  # the bounds of a number of which nothing is known; putting them in leads nowhere


def proves(goal: Expr, hypotheses: Iterable[Expr], ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether the goal holds for all values of the variables for which the hypotheses do."""
    return follows(goal, Facts.about(ranges).assuming(*hypotheses))


def follows(goal: Expr, facts: Facts, effort: int = EFFORT) -> bool:
    """Whether the goal holds wherever the facts do."""
    return _Proof(facts, _Effort(effort)).holds(goal, True)


def extremum(node: Select) -> tuple[int, tuple[Expr, ...]]:
    """1 and both sides if a select is a minimum, -1 if a maximum; 0 if it is neither."""
    match node:
        case Select(Binary("<" | "<=", left, right), then, otherwise):
            if then is left and otherwise is right:
                return 1, (left, right)
            if then is right and otherwise is left:
                return -1, (left, right)
    return 0, ()


@dataclass(slots=True)
class _Effort:
    """What a proof, with all its cases, may still look at."""

    left: int


@dataclass(slots=True)
class _Proof:
    """One attempt; `splits` counts the cases it is inside of."""

    facts: Facts
    effort: _Effort
    splits: int = 0
    solved: dict[int, Polynomial] = field(init=False)
    bounds: Bounds = field(init=False)
    definitions: dict[int, tuple[Claim, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.solved = dict(self.facts.solved)
        self.bounds = Bounds(self.facts.normal.bounds, dict(self.facts.bounds))

    def holds(self, goal: Expr, truth: bool) -> bool:
        """Whether a condition is true (or false) wherever the facts hold."""
        if self.facts.impossible:
            return True
        inside = truth_inside(goal, truth)
        if inside is not None:
            return self.holds(*inside)
        match goal:
            case Unary("not", operand):
                return self.holds(operand, not truth)
            case Binary("and" | "or" as op, left, right) if (op == "and") == truth:
                return self.holds(left, truth) and self.holds(right, truth)
            case Binary("and" | "or", left, right):
                other = self._assuming(left.not_() if truth else left)
                return self.holds(left, truth) or other.holds(right, truth)
            case _:
                return self._compares(*compared(goal, truth))

    def _compares(self, left: Expr, right: Expr, op: str) -> bool:
        normal = self.facts.normal
        distance = normal.of(right) - normal.of(left)
        match op:
            case "<":
                return self.shows(distance - ONE)
            case "<=":
                return self.shows(distance)
            case "==":
                return self.shows(distance) and self.shows(distance.scaled(-1))
            case _:
                return self._differ(distance) or self._split(
                    lambda case: case._compares(left, right, op)
                )

    def _differ(self, distance: Polynomial) -> bool:
        """Whether a polynomial is positive, or negative; neither attempt may use up all effort."""
        for claim in (distance - ONE, distance.scaled(-1) - ONE):
            half = _Effort(self.effort.left // 2)
            if _Proof(self.facts, half, self.splits).shows(claim):
                return True
        self.effort.left //= 2
        return False

    def shows(self, claim: Claim) -> bool:
        """Whether a polynomial is never negative."""
        if self.facts.impossible:
            return True
        goal = tightened(reduced(claim, self.solved))
        if self._range(goal).low >= 0:
            return True
        if self.effort.left <= 0:
            return False
        selects = [self.facts.normal.atoms[atom] for atom in self._selects(goal)]
        plain = all(isinstance(each, Select) and extremum(each)[0] for each in selects)
        most = LOOK if selects or self.facts.choices else EFFORT
        return self._search(goal, most if plain else GLANCE) or self._by_cases(goal)

    def _assuming(self, *conditions: Expr) -> _Proof:
        return _Proof(self.facts.assuming(*conditions), self.effort, self.splits + 1)

    def _range(self, polynomial: Polynomial) -> Range:
        return terms_range(polynomial.terms, self.bounds)

    # -- steps

    def _search(self, goal: Claim, most: int) -> bool:
        """Claims from which the goal follows, those of few terms after few steps first."""
        last = self.effort.left - most
        pool = self._connected(goal)
        bound = {atom for claim in pool for atom in claim.atoms()}
        seen = {goal}
        queue: list[tuple[int, int, int, Claim]] = [(0, 0, 0, goal)]
        while queue and self.effort.left > max(last, 0):
            _, _, steps, claim = heapq.heappop(queue)
            for step in self._steps(claim, pool, bound):
                self.effort.left -= len(step.terms)
                known = tightened(step)
                if known in seen:
                    continue
                if self._range(known).low >= 0:
                    return True
                seen.add(known)
                heapq.heappush(queue, (len(known.terms) + steps, len(seen), steps + 1, known))
        return False

    def _connected(self, goal: Claim) -> list[Claim]:
        """The facts that have to do with the goal, what defines its quotients among them."""
        atoms, pool = set(goal.atoms()), dict.fromkeys(self.facts.claims)
        for atom in {atom for claim in self.facts.claims for atom in claim.atoms()}:
            pool.update(dict.fromkeys(self._definition(atom)))
        used: dict[Claim, None] = {}
        while True:
            for atom in tuple(atoms):
                pool.update(dict.fromkeys(self._definition(atom)))
            new = [each for each in pool if each not in used and each.atoms() & atoms]
            if not new:
                return list(used)
            used.update(dict.fromkeys(new))
            for each in new:
                atoms |= each.atoms()

    def _definition(self, atom: int) -> tuple[Claim, ...]:
        """What defines an atom that is a quotient, if the sign of its divisor is known."""
        if atom not in self.definitions:
            self.definitions[atom] = ()  # while it is looked at, it defines nothing
            match self.facts.normal.atoms[atom]:
                case Quotient() as node:
                    self.definitions[atom] = self._quotient(atom, node)
                case Select() as node:
                    self.definitions[atom] = tuple(self._extreme(atom, node))
                case _:
                    pass
        return self.definitions[atom]

    def _extreme(self, atom: int, node: Select) -> Iterator[Claim]:
        """A minimum is at most either side, a maximum at least; and max(a, min(x, y)) is at most y
        if a is."""
        sign, sides = extremum(node)
        if sign == 0:
            return
        here, normal = Polynomial({(atom,): sign}), self.facts.normal
        for side, other in (sides, sides[::-1]):
            yield reduced(normal.of(side).scaled(sign) - here, self.solved)
            inner_sign, inner = extremum(side) if isinstance(side, Select) else (0, ())
            for end in inner if inner_sign == -sign else ():
                beyond = (normal.of(other) - normal.of(end)).scaled(sign)
                if self._search(tightened(reduced(beyond, self.solved)), GLANCE):
                    yield reduced(here - normal.of(end).scaled(sign), self.solved)

    def _quotient(self, atom: int, node: Quotient) -> tuple[Claim, ...]:
        divisor = reduced(node.divisor, self.solved)
        sign = self._sign(divisor)
        if sign == 0:
            return ()
        positive = Quotient(reduced(node.value, self.solved).scaled(sign), divisor.scaled(sign))
        low, high = between(positive, Polynomial({(atom,): 1}))
        return tightened(low), tightened(high)

    def _sign(self, polynomial: Polynomial) -> int:
        """1 if it is shown to be positive, -1 if negative, otherwise 0."""
        low, high = self._range(polynomial)
        if low >= 1 or high <= -1:
            return 1 if low >= 1 else -1
        return 1 if self._search(tightened(polynomial - ONE), GLANCE) else 0

    def _steps(self, claim: Claim, pool: list[Claim], bound: set[int]) -> Iterator[Claim]:
        free = self._without_free_atoms(claim, bound)
        if free is not None:  # nothing but their bounds is known of these, so no other step helps
            yield free
            return
        atoms = claim.atoms()
        for fact in pool:
            for monomial, factor in fact.terms.items():
                if monomial and atoms.issuperset(monomial):
                    step = self._cancelled(claim, fact, monomial, factor)
                    if step is not None:
                        yield step
        for atom in atoms:
            step = self._at_bound(claim, atom)
            if step is not None:
                yield step
            yield from self._multiplied(claim, atom)

    def _without_free_atoms(self, claim: Claim, bound: set[int]) -> Claim | None:
        changed = None
        for atom in claim.atoms() - bound:
            step = self._at_bound(changed or claim, atom)
            changed = step if step is not None else changed
        return changed

    def _at_bound(self, claim: Claim, atom: int) -> Claim | None:
        """The claim with an atom at the end of its range at which the claim is least."""
        times = claim.quotient((atom,))
        if not times.terms:
            return None
        low, high = self._range(times)
        if low < 0 < high:
            return None
        end = self.bounds[atom][0 if low >= 0 else 1]
        if abs(end) >= FAR:
            return None
        return claim - times * Polynomial({(atom,): 1, (): -end} if end else {(atom,): 1})

    def _cancelled(
        self, claim: Claim, fact: Claim, monomial: Monomial, factor: int
    ) -> Claim | None:
        """s·claim - a·fact without the monomial, if a is not negative."""
        times = claim.quotient(monomial)
        if not times.terms:
            return None
        if times.is_constant:
            low = high = times.constant
        else:
            low, high = self._range(times)
        if (low < 0) if factor > 0 else (high > 0):
            return None
        scale = abs(factor)
        for each in times.terms.values():
            scale = gcd(scale, each)
        times = Polynomial({m: f // scale for m, f in times.terms.items()})
        times, scale = times.scaled(1 if factor > 0 else -1), abs(factor) // scale
        left = claim if scale == 1 else claim.scaled(scale) + constant(scale - 1)
        return left - times * fact

    def _multiplied(self, claim: Claim, atom: int) -> Iterator[Claim]:
        """p >= 0 follows from d·p > -d, which may be known of a quotient by d."""
        node = self.facts.normal.atoms[atom]
        if not isinstance(node, Quotient) or node.divisor.is_constant:
            return
        divisor = reduced(node.divisor, self.solved)
        alone = any(
            atom in monomial and not divisor.atoms() & set(monomial) for monomial in claim.terms
        )
        if alone and self._definition(atom):
            divisor = divisor.scaled(self._sign(divisor))
            yield claim * divisor + divisor - ONE

    # -- cases

    def _by_cases(self, goal: Claim) -> bool:
        for atom in self._selects(goal):
            if self.splits >= MAX_SPLITS:
                return False
            node = self.facts.normal.atoms[atom]
            if isinstance(node, Select):
                sides = ((node.condition, node.then), (node.condition.not_(), node.otherwise))
            else:
                assert not isinstance(node, Quotient)
                sides = ((node, Const(1)), (node.not_(), Const(0)))
            return all(self._case(goal, atom, *side) for side in sides)
        return self._split(lambda case: case.shows(goal))

    def _split(self, shown: Callable[[_Proof], bool]) -> bool:
        """Whether something is shown in both cases of the first choice that there is."""
        if not self.facts.choices or self.splits >= MAX_SPLITS or self.effort.left <= 0:
            return False
        choice, *others = self.facts.choices
        fewer = _Proof(replace(self.facts, choices=tuple(others)), self.effort, self.splits)
        return all(shown(fewer._assuming(side)) for side in choice)

    def _case(self, goal: Claim, atom: int, condition: Expr, value: Expr) -> bool:
        known = self._assuming(condition)
        if known.facts.impossible:
            return True
        collected = Collected(known.facts)
        if atom not in collected.solved:
            collected.solve(atom, reduced(self.facts.normal.of(value), collected.solved))
        return _Proof(collected.facts(), known.effort, known.splits).shows(goal)

    def _selects(self, goal: Claim) -> Iterator[int]:
        """The selects and truths a goal depends on, those in it before those in quotients."""
        seen: set[int] = set()
        level = sorted(goal.atoms())
        while level:
            seen |= set(level)
            inner: set[int] = set()
            for atom in level:
                node = self.facts.normal.atoms[atom]
                if isinstance(node, Select) or (
                    isinstance(node, Unary | Binary) and node.op in TRUTHS
                ):
                    yield atom
                for part in self.facts.normal.parts(atom):
                    inner |= part.atoms()
            level = sorted(inner - seen)
