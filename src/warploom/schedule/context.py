"""Where a statement stands: what counters are there, and under which conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from warploom.index.ir import Binary, Const, Expr, substitute, variables
from warploom.index.laws import simplify
from warploom.index.ranges import range_of

TRUE, FALSE = Const(1), Const(0)
Bounds = Mapping[str, tuple[int, int]]


def simpler(expr: Expr, bounds: Bounds) -> Expr:
    """An equal expression; one that has a single value is that value."""
    made = simplify(expr, bounds)
    if not isinstance(made, Const) and variables(made) <= bounds.keys():
        known = range_of(made, bounds)
        if known.low == known.high:
            return Const(known.low)
    return made


@dataclass(frozen=True, slots=True)
class Context:
    """`index` is what counters are, `stage` which of several arrays is meant, by its name. `holds`
    are conditions over counters that were asked for before."""

    index: Mapping[str, Expr] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)
    guards: tuple[Expr, ...] = ()
    stage: Mapping[str, int] = field(default_factory=dict)
    holds: frozenset[Expr] = frozenset()

    def expr(self, expr: Expr) -> Expr:
        return simpler(substitute(expr, self.index), self.bounds)

    def condition(self, expr: Expr) -> Expr:
        """A condition, without what is known to hold."""
        parts = [TRUE if each in self.holds else self.expr(each) for each in conjuncts(expr)]
        whole = all_of(parts)
        return FALSE if FALSE in parts else TRUE if whole is None else whole

    def below(self, variable: str, size: int) -> Context:
        """With what a variable of the kernel lies below."""
        return replace(self, bounds={**self.bounds, variable: (0, size - 1)})

    def at(self, index: Mapping[str, Expr]) -> Context:
        return replace(self, index={**self.index, **index})

    def guarded(self, *conditions: Expr) -> Context:
        wanted = [each for each in conditions if each is not TRUE]
        return replace(self, guards=(*self.guards, *wanted)) if wanted else self

    def using(self, stages: Mapping[str, int]) -> Context:
        return replace(self, stage={**self.stage, **stages})


def all_of(conditions: Iterable[Expr]) -> Expr | None:
    """All of them, as one condition; None if there is none."""
    wanted = list(dict.fromkeys(each for each in conditions if each is not TRUE))
    return reduce(lambda a, b: a.and_(b), wanted) if wanted else None


def conjuncts(condition: Expr) -> list[Expr]:
    """Conditions that hold together where this one does."""
    match condition:
        case Binary("and", left, right):
            return [*conjuncts(left), *conjuncts(right)]
        case _:
            return [condition]
