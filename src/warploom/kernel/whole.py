"""Integer values of one statement as index expressions, as far as they do not wrap.

Registers become variables of their own, bounded by their type; an operation whose result may leave
its type becomes a variable too. So what is known of indices can be asked of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from warploom.index.ir import Binary, Const, Expr, Var, maximum, minimum, select
from warploom.index.ranges import Range, Ranges
from warploom.kernel import ir
from warploom.kernel.bounds import Bounds
from warploom.kernel.dtype import DType
from warploom.kernel.scope import Place


class Whole:
    """The values of one statement; equal values are equal expressions.

    `shows` says whether something holds where the values are computed, given the truths noted so
    far and the limits of the types; `index` is the type of the kernel's indices.
    """

    def __init__(
        self,
        place: Place,
        bounds: Bounds,
        shows: Callable[[Expr, tuple[Expr, ...]], bool],
        index: DType = DType.I32,
    ) -> None:
        # The types that have every number that an index may be.
        self._holders = (index, DType.I64)
        self.place = place
        self._around = bounds
        self._shows = shows
        self._truths: list[Expr] = []
        self._unknown: dict[ir.Value, Var] = {}
        self._bounds: Bounds = {}

    def of(self, value: ir.Value) -> Expr:
        """An expression with the value, which must be an integer."""
        if isinstance(value, ir.FromIndex) and value.dtype in self._holders:
            return self.place.expr(value.expr)  # no launch lets an index leave its type
        made = self._of(value)
        if made is not None:
            low, high = Ranges(self._around | self._bounds).of(made)
            limits = limits_of(ir.dtype_of(value))
            if (limits.low <= low and high <= limits.high) or self.shows(
                made.ge(limits.low).and_(made.le(limits.high))
            ):
                return made
        return self._variable(value)

    def shows(self, goal: Expr) -> bool:
        return self._shows(goal, (*self._truths, *self.limits()))

    def limits(self) -> Iterator[Expr]:
        """What the types of the registers say."""
        for name, (low, high) in self._bounds.items():
            yield Var(name).ge(low).and_(Var(name).le(high))

    def note(self, compares: Iterable[tuple[ir.Compare, bool]]) -> None:
        """Notes comparisons of integers that hold, or do not."""
        for compare, holds in compares:
            if not ir.dtype_of(compare.left).is_float:
                truth = Binary(compare.op, self.of(compare.left), self.of(compare.right))
                self._truths.append(truth if holds else truth.not_())

    def _variable(self, value: ir.Value) -> Var:
        if value not in self._unknown:
            name = f"value#{len(self._unknown)}"
            self._unknown[value] = Var(name)
            self._bounds[name] = limits_of(ir.dtype_of(value))
        return self._unknown[value]

    def _of(self, value: ir.Value) -> Expr | None:
        match value:
            case ir.Number(number):
                return Const(int(number))
            case ir.FromIndex(expr):
                return self.place.expr(expr)
            case ir.Cast(_, inner) if not ir.dtype_of(inner).is_float:
                return self.of(inner)
            case ir.Choose(ir.Compare(), _, _):
                return None
            case ir.Choose(condition, then, otherwise):
                assert not isinstance(condition, ir.Compare)
                return select(self.place.expr(condition), self.of(then), self.of(otherwise))
            case ir.Operation():
                return self._operation(value)
            case ir.Cell() | ir.Cast() | ir.Choose():
                return None

    def _operation(self, value: ir.Operation) -> Expr | None:
        parts = [self.of(each) for each in value.operands]
        match value.op, parts:
            case "+", [left, right]:
                return left + right
            case "-", [left, right]:
                return left - right
            case "*", [left, right]:
                return left * right
            case "&", [left, right]:
                return left & right
            case "|", [left, right]:
                return left | right
            case "^", [left, right]:
                return left ^ right
            case "min", [left, right]:
                return minimum(left, right)
            case "max", [left, right]:
                return maximum(left, right)
            case "fma", [left, right, added]:
                return left * right + added
            case "neg", [inner]:
                return -inner
            case "abs", [inner]:
                return maximum(inner, -inner)
            case _:
                return None


def limits_of(dtype: DType) -> Range:
    limits = np.iinfo(dtype.numpy)
    return Range(int(limits.min), int(limits.max))
