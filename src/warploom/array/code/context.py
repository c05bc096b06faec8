"""Where a statement of a kernel stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from warploom.array.plan.numbered import simpler
from warploom.index.ir import Expr, substitute


@dataclass(frozen=True, slots=True)
class Context:
    """Where a statement stands: what counters are, in which iteration of its threads a map is, what
    keeps threads away, and between which bounds variables lie."""

    counters: Mapping[str, Expr] = field(default_factory=dict)
    iterations: Mapping[str, Expr] = field(default_factory=dict)
    guards: tuple[Expr, ...] = ()
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def expr(self, expr: Expr) -> Expr:
        return simpler(substitute(expr, self.counters), self.ranges)

    def with_counter(self, name: str, value: Expr, size: int) -> Context:
        ranges = {**self.ranges, name: (0, size - 1)}
        return replace(self, counters={**self.counters, name: value}, ranges=ranges)

    def with_iteration(self, name: str, value: Expr) -> Context:
        return replace(self, iterations={**self.iterations, name: value})

    def guarded(self, condition: Expr) -> Context:
        return replace(self, guards=(*self.guards, condition))
