"""What a tensor core makes of the registers of a warp: which element each holds, and their product.

    lane 4g + t     a: rows g, g + 8, columns t, t + 4     b: rows t, t + 4, column g
                    target: rows g, g + 8, columns 2t, 2t + 1

The arithmetic is that of `machine/fused.py`, which was compared with an H200 bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.layout.fragment import mma_operand, mma_result
from warploom.machine.fused import fused, rule_for, terms

Array = npt.NDArray[Any]
ROWS, COLUMNS, DEPTH = 16, 8, 8
MACHINE = 90  # whose arithmetic it is: sm_90
KIND = "tf32"
LEADING = np.uint32(0xFFFFE000)
WIDTHS = {"target": 4, "a": 4, "b": 2}  # neighbouring registers of each operand

_A = mma_operand((ROWS, DEPTH), 0, 1, (1, 1)).elements[0]
_B = mma_operand((DEPTH, COLUMNS), 1, 1, (1, 1)).elements[0]
_C = mma_result((ROWS, COLUMNS), (1, 1)).elements[0]


def leading_bits(numbers: Array) -> Array:
    """What a tensor core sees of factors: of such numbers products are exact."""
    found: Array = (np.ascontiguousarray(numbers, np.float32).view(np.uint32) & LEADING).view(
        np.float32
    )
    return found


def product(target: Array, a: Array, b: Array) -> Array:
    """The registers of the target afterwards; all are by warp, lane and register."""
    left = _matrix(a, _A, (ROWS, DEPTH))
    right = _matrix(b, _B, (DEPTH, COLUMNS)).swapaxes(1, 2)
    total = _matrix(target, _C, (ROWS, COLUMNS))
    rule = rule_for(MACHINE, KIND, DEPTH)
    factors = [terms(np.ascontiguousarray(each).view(np.uint32), KIND) for each in (left, right)]
    x = factors[0].value[:, :, None, :], factors[0].exponent[:, :, None, :]
    y = factors[1].value[:, None, :, :], factors[1].exponent[:, None, :, :]
    made = fused(type(factors[0])(*x), type(factors[1])(*y), total, "f32", rule)
    found: Array = made.reshape(len(made), -1)[:, _C].astype(np.float32)
    return found


def _matrix(registers: Array, places: Array, shape: tuple[int, int]) -> Array:
    """The matrices of all warps."""
    found = np.zeros((len(registers), shape[0] * shape[1]), np.float32)
    found[:, places.reshape(-1)] = registers.reshape(len(registers), -1)
    return found.reshape(-1, *shape)
