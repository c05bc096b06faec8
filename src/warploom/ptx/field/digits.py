"""Numbers of elements as bits that a kernel may move, and nothing else.

A launch runs as several copies in step, each with memory and registers of its own. An element has a
number; in each copy the bits of a float hold one digit of it: two digits are the number, the others
its digest under a key drawn for the run. So whole elements survive every load, store, shuffle, copy
and swizzle; what computes with the bits breaks the code, and that is found where it is read. What
all copies hold alike is a plain constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
COPIES = 5
DIGIT = 16  # bits of a digit: those of the smallest float; wider ones hold it at their upper end
NUMBER_DIGITS = 2
# By type, whose upper half is whose (that of a single is a bf16), and how many bits it has.
FORMATS = {"bf16": (0, 16), "f32": (0, 32), "f16": (1, 16), "f64": (2, 64)}
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def mixed(x: Array) -> Array:
    """Words of 64 bits of which each bit depends on each bit of x."""
    for factor in _MIX:
        x = (x ^ (x >> np.uint64(33))) * factor
    return np.asarray(x ^ (x >> np.uint64(33)))


@dataclass(frozen=True, slots=True)
class Digits:
    """The key of a run."""

    factor: int
    offset: int
    key: int

    @staticmethod
    def drawn(r: Random) -> Digits:
        return Digits(r.randrange(1 << 32) | 1, r.randrange(1 << 32), r.randrange(1 << 64))

    def _digits(self, numbers: Array, family: int) -> Array:
        """By copy and element, the digit of each."""
        mask = np.uint64(0xFFFFFFFF)
        hidden = (
            numbers.astype(np.uint64) * np.uint64(self.factor) + np.uint64(self.offset)
        ) & mask
        digest = mixed(hidden ^ np.uint64(self.key) ^ np.uint64(family << 40))
        parts = [hidden >> np.uint64(DIGIT * n) for n in range(NUMBER_DIGITS)]
        parts += [digest >> np.uint64(DIGIT * n) for n in range(COPIES - NUMBER_DIGITS)]
        return (np.stack(parts) & np.uint64(0xFFFF)).astype(np.uint16)

    def _below(self, digits: Array, bits: int) -> Array:
        """What stands below a digit in a float of so many bits."""
        copy = np.arange(COPIES, dtype=np.uint64)[:, None] << np.uint64(DIGIT)
        made = mixed((digits.astype(np.uint64) | copy) ^ np.uint64(~self.key & (1 << 64) - 1))
        return (made | np.uint64(1)) & np.uint64((1 << bits - DIGIT) - 1)

    def encoded(self, numbers: Array, kind: str) -> Array:
        """Floats of a type, by copy and element."""
        family, bits = FORMATS[kind]
        digits = self._digits(numbers, family)
        if bits == DIGIT:
            return digits
        words = digits.astype(np.uint64) << np.uint64(bits - DIGIT)
        return (words | self._below(digits, bits)).astype(f"u{bits // 8}")

    def decoded(self, words: Array, kind: str) -> tuple[Array, Array, Array]:
        """The numbers of floats, given by copy and element; where they are none; and where no more
        than the bits of a bf16 are there.

        A single that was a bf16 has nothing below its digit.
        """
        family, bits = FORMATS[kind]
        digits = (words >> words.dtype.type(bits - DIGIT)).astype(np.uint16)
        low, high = digits[0].astype(np.uint64), digits[1].astype(np.uint64)
        hidden = low | (high << np.uint64(DIGIT))
        back = np.uint64(pow(self.factor, -1, 1 << 32))
        numbers = ((hidden - np.uint64(self.offset)) * back) & np.uint64(0xFFFFFFFF)
        good = (self._digits(numbers, family) == digits).all(axis=0)
        upper = np.full(good.shape, kind == "bf16")
        if bits > DIGIT:
            rest = words & words.dtype.type((1 << bits - DIGIT) - 1)
            whole = rest == self._below(digits, bits).astype(words.dtype)
            upper = (rest == 0).all(axis=0) & (family == 0)
            good &= whole.all(axis=0) | upper
        return numbers.astype(np.int64), ~good, upper
