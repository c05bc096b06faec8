"""Parts of a value that stand in it more than once, and where each is computed for all.

    (x + 1)·(x + 1)   →   r = x + 1; r·r

A part is in a register wherever the conditions hold under which it was computed. What both sides of
a choice need is computed before it, so that the work is that of the parts, not of the paths to
them.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.index.ir import Expr
from warploom.kernel.ir import (
    Cell,
    Choose,
    Compare,
    Value,
    innermost_first,
    operands,
    repeated_parts,
)

Guards = tuple[Expr, ...]


class Sharing:
    """What is shared within one value, and the registers that have some of it."""

    def __init__(self, value: Value | None = None) -> None:
        self.parts = frozenset() if value is None else repeated_parts(value)
        self.named: dict[tuple[Value, Guards], Cell] = {}
        self.sure: dict[Value, frozenset[Value]] = {}

    def again(self) -> Sharing:
        """The same value at another place."""
        made = Sharing()
        made.parts, made.sure = self.parts, self.sure
        return made

    def found(self, value: Value, guards: Guards) -> Cell | None:
        """The register that has it where these conditions hold."""
        if value not in self.parts:
            return None
        for count in range(len(guards) + 1):
            if (value, guards[:count]) in self.named:
                return self.named[value, guards[:count]]
        return None

    def on_both_sides(self, choice: Choose) -> list[Value]:
        """What is computed whichever way a choice goes, the innermost first."""
        if not self.parts:
            return []
        both = self._certain(choice.then) & self._certain(choice.otherwise)
        return [part for part in innermost_first(choice.then) if part in both]

    def _certain(self, value: Value) -> frozenset[Value]:
        """The shared parts that are computed whenever the value is."""
        if value not in self.sure:
            for part in innermost_first(value):
                if part not in self.sure:
                    self.sure[part] = self._of(part, lambda each: self.sure[each])
        return self.sure[value]

    def _of(self, part: Value, inner: Callable[[Value], frozenset[Value]]) -> frozenset[Value]:
        own = frozenset((part,)) & self.parts
        if isinstance(part, Choose) and not isinstance(part.condition, Compare):
            return own | (inner(part.then) & inner(part.otherwise))
        return own.union(*map(inner, operands(part)))
