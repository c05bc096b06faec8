"""Element types of kernels: their name, size and NumPy equivalent."""

from __future__ import annotations

from enum import Enum
from math import isfinite
from typing import Any

import numpy as np

from warploom.errors import DeviceError


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

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.value)

    @property
    def bytes(self) -> int:
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        return self in (DType.F32, DType.F64)

    @property
    def is_signed(self) -> bool:
        return not self.value.startswith("u")

    def has(self, number: float) -> bool:
        """Whether a number is one of the type, rounded if it is a float; floats have infinities
        and NaN."""
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


f32, f64 = DType.F32, DType.F64
i32, u32, i64, u64 = DType.I32, DType.U32, DType.I64, DType.U64
i16, u16, i8, u8 = DType.I16, DType.U16, DType.I8, DType.U8


def from_numpy(dtype: object) -> DType:
    """The element type with this NumPy dtype (or name)."""
    name = np.dtype(dtype).name  # type: ignore[call-overload]
    try:
        return DType(name)
    except ValueError:
        known = ", ".join(each.value for each in DType)
        raise DeviceError(f"kernels have no element type {name}", advice=f"use {known}") from None
