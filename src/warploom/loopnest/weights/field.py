"""Which integer of few bits a value takes out of a word, by what its operators mean.

    ((word >> 8) & 15) - 8      bits 8 to 11, less 8
    (word << 20) >> 28          of an i32: bits 8 to 11, the highest of them negative

A value is followed from the load on. It stays a field of the word, moved up and with a number
added, or it is refused: nothing is decided by how it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite

from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, FromIndex, Number, Operation, Value, dtype_of
from warploom.loopnest.computation import Loaded
from warploom.loopnest.strategies.form import NotMeantError

WHOLE = 1 << 24  # up to it single precision has all integers
AtIndex = Callable[[FromIndex], int]


@dataclass(frozen=True, slots=True)
class Field:
    """`bits` bits of a word from bit `low` on, the highest negative where it is `signed`; moved up
    by `up` bits in a number of a type, and `more` added."""

    low: int
    bits: int
    signed: bool
    up: int
    more: int
    dtype: DType

    @property
    def range(self) -> tuple[int, int]:
        half = 1 << (self.bits - 1)
        low, high = (-half, half - 1) if self.signed else (0, 2 * half - 1)
        return (low << self.up) + self.more, (high << self.up) + self.more

    @property
    def width(self) -> int:
        return 8 * self.dtype.bytes


def field_of(value: Value, word: Loaded, at: AtIndex) -> Field:
    """The field of the word that a value is where indices are what `at` says."""
    match value:
        case Loaded() if value is word:
            dtype = word.dtype
            return Field(0, 8 * dtype.bytes, dtype.is_signed, 0, 0, dtype)
        case Cast(dtype, inner):
            return _fitting(replace(field_of(inner, word, at), dtype=dtype))
        case Operation("+" | "-" | "^" | "&" | "<<" | ">>" as op, (left, right)):
            if op in "+^&" and _is_constant(left):
                left, right = right, left
            number = _constant(right, at)
            return _fitting(_CHANGED[op](field_of(left, word, at), number))
    raise NotMeantError(f"'{word.access.array}' is unpacked otherwise than by shifts and masks")


def _refused(why: str) -> NotMeantError:
    return NotMeantError(f"a weight is no field of its word: {why}")


def _fitting(found: Field) -> Field:
    """Nothing of it is lost in its type."""
    low, high = found.range
    if found.dtype is DType.F32:
        fits = low >= -WHOLE and high <= WHOLE
    else:
        fits = not found.dtype.is_real and found.dtype.has(low) and found.dtype.has(high)
    if not fits:
        raise _refused(f"{low} to {high} in {found.dtype!r}")
    return found


def _added(found: Field, number: int) -> Field:
    return replace(found, more=found.more + number)


def _right(found: Field, by: int) -> Field:
    if found.more:
        raise _refused("a number is added before a shift")
    gone = by - found.up
    if gone < 0:
        return replace(found, up=-gone)
    if gone >= found.bits:
        raise _refused("it is shifted away")
    return replace(found, low=found.low + gone, bits=found.bits - gone, up=0)


def _left(found: Field, by: int) -> Field:
    """The highest bits are lost; that which is the highest then may be a sign."""
    if found.more or found.up:
        raise _refused("it is shifted up twice")
    room = found.width - by
    if room < 1:
        raise _refused("it is shifted away")
    if found.bits < room:
        return replace(found, up=by)
    return replace(found, bits=room, signed=found.dtype.is_signed, up=by)


def _masked(found: Field, mask: int) -> Field:
    if found.more or found.up or mask <= 0:
        raise _refused("its mask")
    low = (mask & -mask).bit_length() - 1
    bits = (mask >> low).bit_length()
    if mask >> low != (1 << bits) - 1:
        raise _refused("its mask has holes")
    if low + bits > found.bits and found.signed:
        raise _refused("its mask goes beyond its sign")
    bits = min(bits, found.bits - low)
    if bits < 1:
        raise _refused("its mask is beside it")
    return replace(found, low=found.low + low, bits=bits, signed=False, up=low)


def _turned(found: Field, mask: int) -> Field:
    """Its highest bit turned, a number without a sign is one with it, and half of all more."""
    if found.more or found.up or found.signed or mask != 1 << (found.bits - 1):
        raise _refused("bits of it are turned")
    return replace(found, signed=True, more=mask)


_CHANGED: dict[str, Callable[[Field, int], Field]] = {
    "+": _added, "-": lambda found, number: _added(found, -number),
    "^": _turned, "&": _masked, "<<": _left, ">>": _right,
}  # fmt: skip


def _is_constant(value: Value) -> bool:
    match value:
        case Number() | FromIndex():
            return True
        case Operation(_, parts):
            return all(map(_is_constant, parts))
        case Cast(_, inner):
            return _is_constant(inner)
    return False


def _constant(value: Value, at: AtIndex) -> int:
    """A whole number that data do not decide."""
    match value:
        case Number(number) if isfinite(number) and number == int(number):
            return int(number)
        case FromIndex():
            return at(value)
        case Cast(dtype, inner):
            found = _constant(inner, at)
            if dtype.has(found):
                return found
        case Operation("+" | "-" | "*" as op, (left, right)):
            a, b = _constant(left, at), _constant(right, at)
            found = a + b if op == "+" else a - b if op == "-" else a * b
            if dtype_of(value).has(found):
                return found
    raise _refused("a number beside it is of data")
