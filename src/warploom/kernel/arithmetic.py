"""What the operators on values mean, on whole arrays of threads: machine numbers that wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Operator

Numbers: TypeAlias = npt.NDArray[Any]


def apply(op: Operator, operands: list[Numbers], dtype: DType) -> Numbers:
    """The result of an operator, in the type of its operands."""
    with np.errstate(all="ignore"):
        return np.asarray(_MEANING[op](*operands), dtype=dtype.numpy)


def convert(value: Numbers, dtype: DType) -> Numbers:
    """A cast; floats to integers truncate."""
    with np.errstate(all="ignore"):
        return value.astype(dtype.numpy)


def _divide(left: Numbers, right: Numbers) -> Numbers:
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    if np.any(right == 0):
        raise DeviceError("an integer is divided by zero")
    quotient = left // right  # rounds down; C rounds towards zero
    inexact = quotient * right != left
    return np.asarray(quotient + (inexact & ((left < 0) != (right < 0))))


def _fma(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    if a.dtype == np.float32:  # the product is exact in 64 bits, so only the sum is rounded
        return np.asarray(a.astype(np.float64) * b + c)
    return np.asarray(a * b + c)


def _shift(function: Callable[[Any, Any], Any]) -> Callable[[Numbers, Numbers], Numbers]:
    def shifted(value: Numbers, count: Numbers) -> Numbers:
        bits = value.dtype.itemsize * 8
        if np.any((count < 0) | (count >= bits)):
            raise DeviceError(f"a {value.dtype} is shifted by less than 0 or more than {bits - 1}")
        return np.asarray(function(value, count))

    return shifted


# Of a number and a NaN the hardware's minimum and maximum give the number, as fmin and fmax do.
_MEANING: dict[Operator, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "min": np.fmin,
    "max": np.fmax,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": _shift(np.left_shift),
    ">>": _shift(np.right_shift),
    "fma": _fma,
    "neg": np.negative,
    "~": np.invert,
}
