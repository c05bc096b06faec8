"""Element types of kernels: their name, size and NumPy equivalent.

Floating-point numbers of sixteen and eight bits are *codes*: they are stored and moved, and nothing
is computed in them. What is computed is computed in `f32`, and rounded when it becomes a code
again.
"""

from __future__ import annotations

from enum import Enum
from math import isfinite, isinf
from typing import Any

import numpy as np

from warploom.errors import DeviceError
from warploom.machine import narrow


class DType(Enum):
    """A machine number; the value is NumPy's name for it."""

    F32 = "float32"
    F64 = "float64"
    I32 = "int32"
    U32 = "uint32"
    I64 = "int64"
    U64 = "uint64"
    I16 = "int16"
    U16 = "uint16"
    I8 = "int8"
    U8 = "uint8"
    F16 = "float16"
    BF16 = "bfloat16"
    E4M3 = "float8_e4m3fn"  # no infinity
    E5M2 = "float8_e5m2"

    @property
    def numpy(self) -> np.dtype[Any]:
        """As NumPy has it; where it has no such type the bits stand for it."""
        return np.dtype(_BITS.get(self, self.value))

    @property
    def storage(self) -> np.dtype[Any]:
        """As evaluators hold it: a code by its bits, so that none is changed on the way."""
        return np.dtype(f"uint{8 * self.bytes}") if self.is_code else self.numpy

    @property
    def bytes(self) -> int:
        return self.numpy.itemsize

    @property
    def is_code(self) -> bool:
        """Whether it is only stored and moved, and converted from and to `f32`."""
        return self is DType.F16 or self in _BITS

    @property
    def computed(self) -> DType:
        """The type in which its numbers are computed."""
        return DType.F32 if self.is_code else self

    @property
    def is_float(self) -> bool:
        return self in (DType.F32, DType.F64)

    @property
    def is_real(self) -> bool:
        """Whether its numbers are floating-point ones, computed in or not."""
        return self.is_float or self.is_code

    @property
    def rounding(self) -> tuple[float, float]:
        """How far the nearest of its numbers may be from a real number: so much of that number, or
        this where that is less."""
        if not self.is_real:
            return 0.0, 0.0
        if not self.is_code:
            known = np.finfo(self.numpy)
            return float(known.eps) / 2, float(known.smallest_subnormal) / 2
        form = narrow.FORMATS[repr(self)]
        return 2.0 ** -(form.fraction_bits + 1), 2.0 ** -(form.bias + form.fraction_bits)

    @property
    def is_signed(self) -> bool:
        return not self.value.startswith("u")

    def has(self, number: float) -> bool:
        """Whether a number is one of the type, rounded if it is a float; floats have infinities
        and NaN."""
        if self.is_code:  # zero and, where they have codes, infinities; others come from f32
            return number == 0 or (self in _INFINITE and isinf(number))
        try:
            finite = isfinite(number)
        except OverflowError:  # an integer too large for any float
            return False
        if self.is_float:
            with np.errstate(over="ignore"):
                return not finite or isfinite(self.numpy.type(number))
        limits = np.iinfo(self.numpy)
        return finite and number == int(number) and bool(limits.min <= number <= limits.max)

    def __repr__(self) -> str:
        return self.name.lower()


_BITS = {DType.BF16: "uint16", DType.E4M3: "uint8", DType.E5M2: "uint8"}  # NumPy lacks these

_INFINITE = (DType.F16, DType.BF16, DType.E5M2)

f32, f64 = DType.F32, DType.F64
i32, u32, i64, u64 = DType.I32, DType.U32, DType.I64, DType.U64
i16, u16, i8, u8 = DType.I16, DType.U16, DType.I8, DType.U8
f16, bf16 = DType.F16, DType.BF16
e4m3, e5m2 = DType.E4M3, DType.E5M2

Codes = np.ndarray[Any, np.dtype[Any]]


def decoded(bits: Codes, dtype: DType) -> Codes:
    """Codes as the numbers that they stand for, as `float32`."""
    codes = np.asarray(bits).view(dtype.storage)
    if dtype.bytes == 1:
        return np.asarray(narrow.decoded(repr(dtype))[codes], np.float32)
    if dtype is DType.F16:
        with np.errstate(all="ignore"):
            return codes.view(np.float16).astype(np.float32)
    return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)


def coded(numbers: Codes, dtype: DType) -> Codes:
    """Numbers as the nearest codes, ties to even; every NaN as one. What is beyond all numbers of
    eight bits becomes the largest of them, as GPUs have it."""
    with np.errstate(all="ignore"):  # what is beyond all codes, and signalling NaNs
        single = np.asarray(numbers, np.float32)
        if dtype is DType.BF16:
            return _leading(single)
        wide = single.astype(np.float64)
        made = narrow.encode(wide, narrow.FORMATS[repr(dtype)], "rn", dtype.bytes == 1, None)
        return made.astype(dtype.storage)


def _leading(single: Codes) -> Codes:
    """The leading half of single precision, rounded: a carry goes on to the exponent."""
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(single), np.uint32(0x7FFF), rounded).astype(np.uint16)


def code_of(number: float, dtype: DType) -> int:
    """The code of one number."""
    return int(coded(np.asarray(number), dtype))


def numbers_of(held: Codes, dtype: DType) -> Codes:
    """What is held in memory as numbers: codes decoded, all else as it is."""
    return decoded(held, dtype) if dtype.is_code else held


def memory_of(numbers: Codes, dtype: DType) -> Codes:
    """Numbers as they are held in memory."""
    if dtype.is_code:
        return coded(numbers, dtype).view(dtype.numpy)
    return np.asarray(numbers).astype(dtype.numpy)


def from_numpy(dtype: object) -> DType:
    """The element type with this NumPy dtype (or name)."""
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name  # type: ignore[call-overload]
        return DType(name)
    except ValueError:
        known = ", ".join(each.value for each in DType)
        raise DeviceError(f"kernels have no element type {name}", advice=f"use {known}") from None
