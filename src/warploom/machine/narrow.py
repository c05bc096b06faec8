"""Numbers of few bits: what a value becomes in a small floating format, in every way of rounding.

Values come as doubles, which hold every number of the wider formats exactly; what comes out are the
bits of the format, in the low bits of an unsigned array. Formats of at most a byte are read back by
table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Format:
    """A sign, then an exponent, then a fraction of so many bits.

    `largest` is the code of the largest number; above it may lie an infinity and a NaN.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    largest: int
    infinity: int | None = None
    nan: int | None = None

    @property
    def bias(self) -> int:
        return (1 << self.exponent_bits - 1) - 1

    @property
    def sign(self) -> int:
        return 1 << self.exponent_bits + self.fraction_bits


FORMATS = {
    one.name: one
    for one in (
        Format("f16", 5, 10, 0x7BFF, 0x7C00, 0x7FFF),
        Format("bf16", 8, 7, 0x7F7F, 0x7F80, 0x7FFF),
        Format("tf32", 8, 10, 0x3FBFF, 0x3FC00, 0x3FFFF),
        Format("e4m3", 4, 3, 0x7E, None, 0x7F),
        Format("e5m2", 5, 2, 0x7B, 0x7C, 0x7F),
        Format("e2m3", 2, 3, 0x1F),
        Format("e3m2", 3, 2, 0x1F),
        Format("e2m1", 2, 1, 0x7),
    )
}


def encode(x: Array, target: Format, mode: str, satfinite: bool, random: Array | None) -> Array:
    """Doubles as codes. `mode` is rn, rna, rz, or rs, which adds `random` / 2¹⁶ before truncating.

    With `satfinite` what is too large becomes the largest number, and a NaN where there is none
    becomes the positive one.
    """
    magnitude = np.abs(x)
    finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
    lowest = 1 - target.bias
    exponent = np.maximum(np.frexp(finite)[1] - 1, lowest)
    exponent = np.where(finite == 0, lowest, exponent)
    scaled = np.ldexp(finite, target.fraction_bits - exponent)
    code = _whole(scaled, mode, random) + (exponent - lowest << target.fraction_bits)
    code = np.where(np.isinf(magnitude), np.int64(1) << 40, code)
    beyond = target.largest if satfinite or target.infinity is None else target.infinity
    stays = np.isinf(magnitude) | (mode != "rz")  # truncated, only an infinity is one
    code = np.where(code > target.largest, np.where(stays, beyond, target.largest), code)
    code = code | np.where(np.signbit(x), target.sign, 0)
    missing = target.largest if target.nan is None else target.nan
    return np.where(np.isnan(x), missing, code).astype(np.uint32)


def _whole(scaled: Array, mode: str, random: Array | None) -> Array:
    """Positive numbers as whole ones."""
    below = np.floor(scaled)
    rest = scaled - below
    match mode:
        case "rn":
            return np.rint(scaled).astype(np.int64)
        case "rna":
            return (below + (rest >= 0.5)).astype(np.int64)
        case "rs":
            assert random is not None
            return (below + (rest + random / 65536.0 >= 1.0)).astype(np.int64)
        case _:
            return below.astype(np.int64)


@lru_cache
def decoded(name: str) -> Array:
    """The numbers of a format of at most a byte, by code, as doubles."""
    target = FORMATS[name]
    code = np.arange(2 * target.sign)
    field = (code & target.sign - 1) >> target.fraction_bits
    fraction = code & (1 << target.fraction_bits) - 1
    whole = np.where(field > 0, fraction + (1 << target.fraction_bits), fraction)
    power = np.maximum(field, 1) - target.bias - target.fraction_bits
    values = np.ldexp(whole.astype(np.float64), power)
    above = code & target.sign - 1
    values[above > target.largest] = np.nan
    if target.infinity is not None:
        values[above == target.infinity] = np.inf
    signed: Array = np.where(code & target.sign, -values, values)
    signed.setflags(write=False)
    return signed
