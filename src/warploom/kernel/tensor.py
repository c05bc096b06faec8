"""What a tensor core makes of the registers of a warp: which element each holds, and their product.

    lane 4g + t     a: rows g, g + 8     b: column g     target: rows g, g + 8, columns 2t, 2t + 1
                    columns of a, rows of b: t, t + 4 of eight (tf32), or 2t, 2t + 1, 2t + 8, 2t + 9
                    of sixteen (bf16)

Registers are of single precision: factors of bf16 are rounded on their way. The arithmetic is that
of `machine/fused.py`, which was compared with an H200 bit by bit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.kernel.ir import TensorKind
from warploom.layout.conversion.fragment import mma_operand, mma_result
from warploom.machine.fused import fused, rule_for, terms
from warploom.machine.rounding import single_to_bf16

Array = npt.NDArray[Any]
ROWS, COLUMNS = 16, 8
DEPTH: dict[TensorKind, int] = {"tf32": 8, "bf16": 16}
MACHINE = 90  # whose arithmetic it is: sm_90
LEADING: dict[TensorKind, np.uint32] = {
    "tf32": np.uint32(0xFFFFE000),
    "bf16": np.uint32(0xFFFF0000),
}


def widths(kind: TensorKind) -> tuple[int, int, int]:
    """Neighbouring registers of a lane: of the target, of a and of b."""
    return 4, DEPTH[kind] // 2, DEPTH[kind] // 4


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


def product(target: Array, a: Array, b: Array, kind: TensorKind = "tf32") -> Array:
    """The registers of the target afterwards; all are by warp, lane and register."""
    depth, (of_a, of_b, of_c) = DEPTH[kind], _places(kind)
    left = _matrix(a, of_a, (ROWS, depth))
    right = _matrix(b, of_b, (depth, COLUMNS)).swapaxes(1, 2)
    total = _matrix(target, of_c, (ROWS, COLUMNS))
    rule = rule_for(MACHINE, kind, depth)
    factors = [terms(_bits(np.ascontiguousarray(each), kind), kind) for each in (left, right)]
    x = factors[0].value[:, :, None, :], factors[0].exponent[:, :, None, :]
    y = factors[1].value[:, None, :, :], factors[1].exponent[:, None, :, :]
    with np.errstate(invalid="ignore", over="ignore"):  # infinity by zero is no number
        made = fused(type(factors[0])(*x), type(factors[1])(*y), total, "f32", rule)
    found: Array = made.reshape(len(made), -1)[:, of_c].astype(np.float32)
    return found


def _bits(numbers: Array, kind: TensorKind) -> Array:
    found: Array = single_to_bf16(numbers) if kind == "bf16" else numbers.view(np.uint32)
    return found


def _matrix(registers: Array, places: Array, shape: tuple[int, int]) -> Array:
    """The matrices of all warps."""
    found = np.zeros((len(registers), shape[0] * shape[1]), np.float32)
    found[:, places.reshape(-1)] = registers.reshape(len(registers), -1)
    return found.reshape(-1, *shape)
