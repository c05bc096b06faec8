"""What may come after a sum of products, over rows i and columns j of the result."""

from __future__ import annotations

from collections.abc import Callable

from warploom.kernel.dtype import bf16, f16, f32
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, cast, erf, maximum
from warploom.loopnest.ir import Axis

After = Callable[[LoopNest, Axis, Axis, Value], Value]


def gelu(nest: LoopNest, _: Axis, j: Axis, value: Value) -> Value:
    bias = nest.array("bias", j, dtype=bf16)
    value = nest.value(value + cast(bias[j], f32))
    return 0.5 * value * (1.0 + erf(value * 0.5**0.5))


def residual(nest: LoopNest, i: Axis, j: Axis, value: Value) -> Value:
    return value + cast(nest.array("R", i, j, dtype=f16)[i, j], f32)


def by_row(nest: LoopNest, i: Axis, _: Axis, value: Value) -> Value:
    """Names that a kernel would give to what is its own."""
    return value * nest.array("row", i)[i] * nest.parameter("total")


def by_column(nest: LoopNest, _: Axis, j: Axis, value: Value) -> Value:
    return value * cast(nest.array("scale", j, dtype=bf16)[j], f32)


def several(nest: LoopNest, i: Axis, j: Axis, value: Value) -> Value:
    """Scaled by rows and columns, with a bias and a residual behind the activation."""
    value = value * nest.array("down", i)[i] * cast(nest.array("across", j, dtype=f16)[j], f32)
    value = maximum(value + nest.array("bias", j)[j], 0.0)
    return value + cast(nest.array("R", i, j, dtype=bf16)[i, j], f32)


AFTER: dict[str, After] = {
    each.__name__: each for each in (gelu, residual, by_row, by_column, several)
}
