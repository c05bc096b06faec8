"""A mutation check: a kernel and the trials it must pass come in; which mutants pass goes out.

A mutant is the kernel with one index expression changed at one place: a constant off by one, two
operands swapped, a remainder dropped. The verification is the check of the kernel and its trials;
it must catch every mutant that computes something else. A mutant that passes is put to further
trials (probes): if one tells it from the kernel, the verification has a hole; otherwise it computes
the same, which is proved where its expression can be compared with the original everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest

from warploom.errors import UnsupportedError, WarploomError
from warploom.index.ir import (
    COMMUTATIVE,
    COMPARISONS,
    Binary,
    BinaryOp,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    fold_up,
    rebuild,
    variables,
    walk,
)
from warploom.index.show import show
from warploom.index.smt import prove_equal
from warploom.kernel.bounds import static_bounds
from warploom.kernel.check import check
from warploom.kernel.ir import BUILT_IN, For, Kernel, Stmt
from warploom.kernel.ir import walk as walk_stmts
from warploom.kernel.traverse import map_body

Share = tuple[int, int]  # (n, of): every `of`-th mutant, from number n on

# Why a kernel fails a trial, or nothing if it passes.
Trial = Callable[[Kernel], str]

PROOF_SECONDS = 1.0
_OTHER: dict[BinaryOp, tuple[BinaryOp, ...]] = {
    "+": ("-",), "-": ("+",), "*": ("+",), "//": ("%",), "%": ("//",),
    "&": ("|",), "|": ("&",), "^": ("|",), "<<": (">>",), ">>": ("<<",),
    "<": ("<=",), "<=": ("<",), ">": (">=",), ">=": (">",), "==": ("!=",), "!=": ("==",),
    "and": ("or",), "or": ("and",),
}  # fmt: skip


class Fate(Enum):
    """What became of a mutant. SURVIVED is a hole in the verification."""

    CAUGHT = "caught"
    PROVED_EQUAL = "proved equal"
    EQUAL = "equal on all probes"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed kernel: what was done, to which expression, and what it is now."""

    kernel: Kernel
    rule: str
    before: Expr
    after: Expr

    def __str__(self) -> str:
        return f"{self.rule}: {show(self.before)} → {show(self.after)}"


@dataclass(frozen=True, slots=True)
class Examined:
    mutant: Mutant
    fate: Fate
    reason: str


@dataclass(frozen=True, slots=True)
class Examination:
    """The mutants of one kernel and their fates."""

    kernel: str
    examined: tuple[Examined, ...]

    def count(self, *fates: Fate) -> int:
        return sum(each.fate in fates for each in self.examined)

    @property
    def changing(self) -> int:
        """Mutants that compute something else."""
        return self.count(Fate.CAUGHT, Fate.SURVIVED)

    @property
    def survivors(self) -> tuple[Examined, ...]:
        return tuple(each for each in self.examined if each.fate is Fate.SURVIVED)

    def as_dict(self) -> dict[str, object]:
        return {
            "kernel": self.kernel,
            "mutants": len(self.examined),
            "function_changing": self.changing,
            "caught": self.count(Fate.CAUGHT),
            "equivalent": self.count(Fate.EQUAL, Fate.PROVED_EQUAL),
            "proved_equivalent": self.count(Fate.PROVED_EQUAL),
            "judged_equivalent": self._judged_equivalent(),
            "survived": [str(each.mutant) for each in self.survivors],
        }

    def _judged_equivalent(self) -> dict[str, list[str]]:
        """The mutants that count as computing the same, by how that was found."""
        found: dict[str, list[str]] = {}
        for each in self.examined:
            if each.fate in (Fate.EQUAL, Fate.PROVED_EQUAL):
                found.setdefault(each.reason, []).append(str(each.mutant))
        return found


def examine(
    kernel: Kernel,
    trials: Sequence[Trial],
    probes: Sequence[Trial] = (),
    *,
    most: int | None = None,
    seed: int = 0,
    share: Share = (0, 1),
) -> Examination:
    """Puts mutants of the kernel to the verification; at most so many, drawn at random.

    Several processes can do it together: each examines its share, and `joined` puts those together.
    """
    for trial in trials:
        if why := trial(kernel):
            raise UnsupportedError(f"'{kernel.name}' fails a trial itself: {why}")
    chosen = list(mutants(kernel))
    if most is not None and len(chosen) > most:
        chosen = random.Random(seed).sample(chosen, most)
    order, (number, of) = list(trials), share
    own = tuple(_examine(each, kernel, order, probes) for each in chosen[number::of])
    return Examination(kernel.name, own)


def joined(shares: Sequence[Examination]) -> Examination:
    """One examination of all shares, (0, n), (1, n) and so on, its mutants in their order."""
    rows = zip_longest(*(share.examined for share in shares))
    examined = tuple(each for row in rows for each in row if each is not None)
    return Examination(shares[0].kernel, examined)


def _examine(
    mutant: Mutant, kernel: Kernel, trials: list[Trial], probes: Sequence[Trial]
) -> Examined:
    try:
        check(mutant.kernel)
    except WarploomError as error:
        return Examined(mutant, Fate.CAUGHT, error.message)
    for number, trial in enumerate(trials):
        if why := trial(mutant.kernel):
            # What caught one mutant likely catches the next.
            trials.insert(0, trials.pop(number))
            return Examined(mutant, Fate.CAUGHT, why)
    if _proved_equal(mutant, kernel):
        return Examined(mutant, Fate.PROVED_EQUAL, "proved: equal wherever it is used, by Z3")
    for trial in probes:
        if why := trial(mutant.kernel):
            return Examined(mutant, Fate.SURVIVED, why)
    tried = f"not proved: equal on {len(trials)} sizes and {len(probes)} probes"
    return Examined(mutant, Fate.EQUAL, tried)


def _proved_equal(mutant: Mutant, kernel: Kernel) -> bool:
    """Whether the two expressions agree on all values of the threads and loop counters in them."""
    bounds = {name: each for name, each in static_bounds(kernel).items() if name in BUILT_IN}
    for stmt in walk_stmts(kernel.body):
        if isinstance(stmt, For) and stmt.counts:
            low, high = bounds.get(stmt.var, (stmt.counts[0], stmt.counts[-1]))
            bounds[stmt.var] = min(low, stmt.counts[0]), max(high, stmt.counts[-1])
    if not variables(mutant.before) | variables(mutant.after) <= bounds.keys():
        return False
    try:
        return prove_equal(mutant.before, mutant.after, bounds, PROOF_SECONDS).equal is True
    except WarploomError:  # no solver here, or a question beyond it: the probes decide
        return False


# -- mutants -------------------------------------------------------------------------------------


def mutants(kernel: Kernel) -> Iterator[Mutant]:
    """Every mutant, each with one expression changed at one place."""
    for position, before in enumerate(_expressions(kernel)):
        for rule, after in changes(before):
            body = _with_expression(kernel, position, after)
            yield Mutant(replace(kernel, body=body), rule, before, after)
    x, y, z = kernel.grid
    for rule, after in [("one block less", x - 1), ("one block more", x + 1)]:
        yield Mutant(replace(kernel, grid=(after, y, z)), rule, x, after)


def _expressions(kernel: Kernel) -> list[Expr]:
    """The index expressions of the body, in the order in which `map_body` visits them."""
    found: list[Expr] = []

    def note(expr: Expr) -> Expr:
        found.append(expr)
        return expr

    map_body(kernel.body, note)
    return found


def _with_expression(kernel: Kernel, position: int, after: Expr) -> tuple[Stmt, ...]:
    seen = -1

    def swap(expr: Expr) -> Expr:
        nonlocal seen
        seen += 1
        return after if seen == position else expr

    return map_body(kernel.body, swap)


def changes(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """The ways to change an expression in one place, each result once, with what was done."""
    found: dict[Expr, str] = {}
    for part in walk(expr):
        for rule, other in _local(part):
            changed = fold_up(
                expr,
                lambda node, parts, part=part, other=other: (  # type: ignore[misc]
                    other if node is part else rebuild(node, parts)
                ),
            )
            if changed is not expr:
                found.setdefault(changed, rule)
    for rule, changed in (("off by one", expr + 1), ("off by one", expr - 1)):
        if not _is_truth(expr):
            found.setdefault(changed, rule)
    for changed, rule in found.items():
        yield rule, changed


def _is_truth(expr: Expr) -> bool:
    return isinstance(expr, Binary) and (expr.op in COMPARISONS or expr.op in ("and", "or"))


def _local(part: Expr) -> Iterator[tuple[str, Expr]]:
    """What one node may become."""
    match part:
        case Const(value):
            yield "off by one", Const(value + 1)
            yield "off by one", Const(value - 1)
            if value > 1:
                yield "another constant", Const(2 * value)
        case Var():
            yield "another variable", Const(0)
        case Unary("-", operand):
            yield "dropped sign", operand
        case Unary("not", operand):
            yield "dropped not", operand
        case Binary(op, left, right):
            yield from ((f"{op} to {other}", Binary(other, left, right)) for other in _OTHER[op])
            if op not in COMMUTATIVE:
                yield "swapped operands", Binary(op, right, left)
            if op in ("%", "//"):
                yield f"dropped {op}", left
            if op in ("and", "or"):
                yield "dropped condition", left
                yield "dropped condition", right
        case Select(condition, then, otherwise):
            yield "swapped branches", Select(condition, otherwise, then)
