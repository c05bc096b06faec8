"""What programs of rows share: arrays along rows, numbers in single precision, exponentials."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import Number, Value, dtype_of
from warploom.loopnest import ir
from warploom.loopnest.build import LoopNest, Tensor, cast, exp2_ftz

PER_E = math.log2(math.e)


@dataclass(frozen=True, slots=True)
class Rows:
    """A nest over m rows of n elements, of arrays that hold numbers of one type."""

    nest: LoopNest
    i: ir.Axis
    j: ir.Axis
    dtype: DType

    @staticmethod
    def of(name: str, m: int, n: int, dtype: DType) -> Rows:
        nest = LoopNest(name)
        return Rows(nest, nest.axis("m", m), nest.axis("n", n), dtype)

    def whole(self, name: str, dtype: DType | None = None) -> Tensor:
        """An element for each place."""
        return self.nest.array(name, self.i, self.j, dtype=dtype or self.dtype)

    def column(self, name: str, dtype: DType) -> Tensor:
        """An element for each place of a row, the same in all rows."""
        return self.nest.array(name, self.j, dtype=dtype)

    def each(self, name: str, dtype: DType = f32) -> Tensor:
        """A number for each row."""
        return self.nest.array(name, self.i, dtype=dtype)

    def given(self, name: str, dtype: DType | None = None) -> Value:
        return single(self.whole(name, dtype)[self.i, self.j])

    def factor(self, name: str, dtype: DType) -> Value:
        return single(self.column(name, dtype)[self.j])

    def put(self, name: str, value: Value) -> None:
        self.whole(name)[self.i, self.j] = stored(value, self.dtype)

    def sum(self, value: Value) -> Value:
        return self.nest.sum(value, over=self.j)

    def mean(self, value: Value) -> Value:
        return self.sum(value) * (1 / self.j.size)

    def highest(self, value: Value) -> Value:
        return self.nest.fold("max", value, over=self.j)


def single(value: Value) -> Value:
    return value if dtype_of(value) is f32 else cast(value, f32)


def stored(value: Value, dtype: DType) -> Value:
    return value if dtype is f32 else cast(value, dtype)


def power(value: Value) -> Value:
    """e to a value, as a power of two, which is one instruction; below all normal numbers it is
    0."""
    return exp2_ftz(value * Number(PER_E, f32))
