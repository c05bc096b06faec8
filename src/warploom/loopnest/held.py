"""Which register of a thread an element of a result is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.index.ir import Expr
from warploom.index.laws import simplify, total
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell
from warploom.loopnest import ir


@dataclass(frozen=True, slots=True)
class RegisterRow:
    """Registers of a result: along which of its dimensions, with which strides."""

    name: str
    dtype: DType
    strides: Mapping[ir.Dim, int]
    size: int | None
    pairs: tuple[ir.Dim, ...] = ()  # two by two along these are neighbours

    def cell(self, index: Mapping[ir.Dim, Expr]) -> Cell:
        if self.size is None:
            return Cell(self.name, None, self.dtype)
        terms = [index[d] * s for d, s in self.strides.items() if d not in self.pairs]
        for dim, below in zip(self.pairs, (2, 1), strict=False):
            terms.append(index[dim] // 2 * self.strides[dim] + index[dim] % 2 * below)
        return Cell(self.name, simplify(total(terms)), self.dtype)
