"""What the operators on values mean, on whole arrays of threads: machine numbers that wrap.

Floats round to nearest even, `fma` once; of a number and a NaN, `min` and `max` give the number,
and −0 is less than +0. A float becomes the nearest number that an integer type has, NaN becomes 0.
`exp` and its like are computed in double precision; docs/kernels.md says how far targets may be
from them. An integer division by zero, or a shift by too much, in a thread that takes part raises
DeviceError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.kernel.dtype import DType, coded, decoded
from warploom.kernel.ir import Comparison, Function, Operator
from warploom.machine.rounding import clamped, extreme, fma

Numbers: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]

_ALL = np.ones((), dtype=bool)


def apply(op: Operator, operands: list[Numbers], dtype: DType, active: Mask = _ALL) -> Numbers:
    """The result of an operator, in the type of its operands; idle threads may divide by zero."""
    with np.errstate(all="ignore"):
        if op in _GUARDED:
            return np.asarray(_GUARDED[op](*operands, active), dtype=dtype.numpy)
        return np.asarray(_MEANING[op](*operands), dtype=dtype.numpy)


def compare(op: Comparison, left: Numbers, right: Numbers) -> Mask:
    with np.errstate(all="ignore"):
        return np.asarray(_COMPARISONS[op](left, right))


def convert(value: Numbers, dtype: DType, source: DType | None = None) -> Numbers:
    """A cast. Integers wrap; floats truncate to the nearest number there is, NaN to 0. Codes come
    from `f32` and become it."""
    if source is not None and source.is_code:
        return decoded(value, source)
    if dtype.is_code:
        return coded(value, dtype)
    with np.errstate(all="ignore"):
        if value.dtype.kind == "f" and not dtype.is_float:
            return clamped(np.trunc(value.astype(np.float64)), dtype.numpy, dtype.numpy.type(0))
        return value.astype(dtype.numpy)


def _divide(left: Numbers, right: Numbers, active: Mask) -> Numbers:
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    zero = right == 0
    if np.any(zero & active):
        raise DeviceError("an integer is divided by zero")
    right = np.where(zero, right.dtype.type(1), right)
    quotient = left // right  # rounds down; C rounds towards zero
    inexact = quotient * right != left
    return np.asarray(quotient + (inexact & ((left < 0) != (right < 0))))


def _fma(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    return fma(a, b, c) if a.dtype.kind == "f" else np.asarray(a * b + c)


def _extreme(least: bool) -> Callable[[Numbers, Numbers], Numbers]:
    def chosen(a: Numbers, b: Numbers) -> Numbers:
        if a.dtype.kind == "f":
            return extreme(a, b, least, keep_nan=False)
        return np.asarray(np.minimum(a, b) if least else np.maximum(a, b))

    return chosen


def _shift(
    function: Callable[[Any, Any], Any],
) -> Callable[[Numbers, Numbers, Mask], Numbers]:
    def shifted(value: Numbers, count: Numbers, active: Mask) -> Numbers:
        bits = value.dtype.itemsize * 8
        strange = (count < 0) | (count >= bits)
        if np.any(strange & active):
            raise DeviceError(f"a {value.dtype} is shifted by less than 0 or more than {bits - 1}")
        return np.asarray(function(value, np.where(strange, count.dtype.type(0), count)))

    return shifted


def _erf(x: Numbers) -> Numbers:
    """NumPy has none."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(np.float64)


def _tf32(x: Numbers) -> Numbers:
    """The sign, the exponent and ten bits of the fraction of single precision."""
    held = np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.asarray(held.view(np.float32).astype(np.float64)).reshape(np.shape(x))


# Functions of one number in double precision, rounded by whoever knows to what.
FUNCTIONS: Mapping[Function, Callable[[Numbers], Numbers]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.asarray(1.0 / np.sqrt(x)),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp2_ftz": np.exp2,  # but for what is below all normal numbers
    "log": np.log,
    "log2": np.log2,
    "log2_ftz": np.log2,  # but what is below all normal numbers is 0
    "tanh": np.tanh,
    "erf": _erf,
    "sin": np.sin,
    "cos": np.cos,
    "tf32": _tf32,
}


def _in_double(function: Callable[[Numbers], Numbers]) -> Callable[[Numbers], Numbers]:
    return lambda x: np.asarray(function(x.astype(np.float64)), dtype=x.dtype)


def _bytes(low: Numbers, high: Numbers, chosen: Numbers) -> Numbers:
    """Byte i of the result is byte (chosen >> 4i) & 7 of the eight of low and high, low first."""
    both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    made = np.zeros(np.broadcast(low, high, chosen).shape, np.uint64)
    for i in range(4):
        which = (chosen.astype(np.uint64) >> np.uint64(4 * i)) & np.uint64(7)
        made |= (both >> which * np.uint64(8) & np.uint64(255)) << np.uint64(8 * i)
    return made


def _exp2_ftz(x: Numbers) -> Numbers:
    made = _in_double(np.exp2)(x)
    return np.asarray(np.where(made < np.finfo(x.dtype).tiny, x.dtype.type(0), made))


def _log2_ftz(x: Numbers) -> Numbers:
    least = np.finfo(x.dtype).tiny
    return _in_double(np.log2)(np.where(np.abs(x) < least, x.dtype.type(0), x))


_GUARDED: dict[Operator, Callable[..., Any]] = {
    "/": _divide,
    "<<": _shift(np.left_shift),
    ">>": _shift(np.right_shift),
}
_MEANING: dict[Operator, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "min": _extreme(least=True),
    "max": _extreme(least=False),
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "fma": _fma,
    "neg": np.negative,
    "~": np.invert,
    "abs": np.abs,
    "bytes": _bytes,
    **{name: _in_double(each) for name, each in FUNCTIONS.items()},
    "sqrt": np.sqrt,
    "exp2_ftz": _exp2_ftz,
    "log2_ftz": _log2_ftz,
}
_COMPARISONS: dict[Comparison, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
