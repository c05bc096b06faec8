"""What a tensor core makes of the registers of a warp: which element each holds, and their product.

    lane 4g + t     a: rows g, g + 8     b: column g     target: rows g, g + 8, columns 2t, 2t + 1
                    columns of a, rows of b: t, t + 4 of eight (tf32); 2t, 2t + 1, 2t + 8, 2t + 9
                    of sixteen; of 32, 4t to 4t + 3 and the same beyond 16

Registers hold factors as their type has them. Of single precision they may be, too: then those of
bf16 are rounded on their way. The arithmetic is that of `machine/fused.py`, which was compared with
an H200 bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.kernel.dtype import DType, f32, i32
from warploom.kernel.ir import (
    Cell,
    ClusterSum,
    Interleave,
    StoreMatrix,
    TensorKind,
    TensorProduct,
    Unpack,
    WarpgroupProduct,
)
from warploom.layout.conversion.fragment import mma_operand, mma_result
from warploom.machine.fused import fused, rule_for, small_by_halves, terms, whole
from warploom.machine.rounding import single_to_bf16

Array = npt.NDArray[Any]
ROWS, COLUMNS = 16, 8
DEPTH: dict[TensorKind, int] = {
    "tf32": 8, "bf16": 16, "f16": 16, "e4m3": 32, "e5m2": 32, "i8": 32, "u8": 32,
}  # fmt: skip
# Statements that read neighbouring registers, which `held` names.
HELD = (TensorProduct, WarpgroupProduct, StoreMatrix, ClusterSum, Unpack, Interleave)
_OF_SINGLE: tuple[TensorKind, ...] = ("tf32", "bf16")  # whose factors may be of single precision
MACHINE = 90  # whose arithmetic it is, if nothing is said: sm_90
LEADING: dict[TensorKind, np.uint32] = {
    "tf32": np.uint32(0xFFFFE000),
    "bf16": np.uint32(0xFFFF0000),
}


def widths(kind: TensorKind) -> tuple[int, int, int]:
    """Neighbouring registers of a lane: of the target, of a and of b."""
    return 4, DEPTH[kind] // 2, DEPTH[kind] // 4


def held(
    stmt: TensorProduct | WarpgroupProduct | StoreMatrix | ClusterSum | Unpack | Interleave,
) -> Iterator[tuple[Cell, int]]:
    """The registers that are read together: the first of neighbours, and how many."""
    match stmt:
        case TensorProduct(target, a, b):
            yield from zip((target, a, b), widths(stmt.kind), strict=True)
        case WarpgroupProduct(target, a):
            yield target, stmt.columns // 2
            if isinstance(a, Cell):
                yield a, DEPTH[stmt.kind] // 2
        case StoreMatrix(value=value):
            yield value, 2 * stmt.count
        case ClusterSum(value=value):
            yield value, stmt.count
        case Unpack(source=source):
            yield source, 4 // source.dtype.bytes
        case Interleave(_, source, count):
            yield source, count


def types_of(kind: TensorKind) -> tuple[DType, tuple[DType, ...]]:
    """The type of the sums, and those that factors may have."""
    factors = (f32,) if kind in _OF_SINGLE else ()
    own = tuple(each for each in DType if repr(each) == kind)
    return (i32 if kind in ("i8", "u8") else f32), own + factors


def leading_bits(numbers: Array, kind: TensorKind = "tf32") -> Array:
    """What a tensor core sees of factors: of such numbers products are exact."""
    held = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    found: Array = (held & LEADING[kind]).view(np.float32)
    return found


@cache
def _places(kind: TensorKind) -> tuple[Array, Array, Array]:
    """Which elements of the three matrices the registers of each lane are."""
    depth, beside = DEPTH[kind], DEPTH[kind] // 8
    return (
        mma_operand((ROWS, depth), 0, beside, (1, 1)).elements[0],
        mma_operand((depth, COLUMNS), 1, beside, (1, 1)).elements[0],
        mma_result((ROWS, COLUMNS), (1, 1)).elements[0],
    )


def product(
    target: Array, a: Array, b: Array, kind: TensorKind = "tf32", machine: int = MACHINE
) -> Array:
    """The registers of the target afterwards; all are by warp, lane and register. Sums are as those
    of a machine by its number, as 80 for sm_80."""
    depth, (of_a, of_b, of_c) = DEPTH[kind], _places(kind)
    left = _matrix(a, of_a, (ROWS, depth))
    right = _matrix(b, of_b, (depth, COLUMNS)).swapaxes(1, 2)
    total = _matrix(target, of_c, (ROWS, COLUMNS))
    x, y = left[:, :, None, :], right[:, None, :, :]
    with np.errstate(invalid="ignore", over="ignore"):  # infinity by zero is no number
        made = _sums(np.ascontiguousarray(x), np.ascontiguousarray(y), total, kind, machine)
    found: Array = made.reshape(len(made), -1)[:, of_c].astype(target.dtype)
    return found


def _sums(x: Array, y: Array, total: Array, kind: TensorKind, machine: int) -> Array:
    """`total` + Σ x·y along the last axis."""
    if kind in ("i8", "u8"):
        return whole(x.astype(np.int64), y.astype(np.int64), total, False)
    if kind in ("e4m3", "e5m2") and machine >= MACHINE:
        return small_by_halves(x, y, (kind, kind), total, "f32")
    factors = [terms(_bits(each, kind), kind) for each in (x, y)]
    return fused(factors[0], factors[1], total, "f32", rule_for(machine, kind, DEPTH[kind]))


def _bits(factors: Array, kind: TensorKind) -> Array:
    if factors.dtype != np.float32:
        return factors
    found: Array = single_to_bf16(factors) if kind == "bf16" else factors.view(np.uint32)
    return found


def _matrix(registers: Array, places: Array, shape: tuple[int, int]) -> Array:
    """The matrices of all warps."""
    found = np.zeros((len(registers), shape[0] * shape[1]), registers.dtype)
    found[:, places.reshape(-1)] = registers.reshape(len(registers), -1)
    return found.reshape(-1, *shape)
