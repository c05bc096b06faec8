"""Instructions on floats, for a launch whose floats are elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine import rounding
from warploom.machine.fused import Rule
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.field.digits import COPIES, Digits
from warploom.ptx.field.elements import Elements, NotKnown
from warploom.ptx.field.roundings import Note, cut_off, noted, noted_product
from warploom.ptx.types import DTYPES

Array = npt.NDArray[Any]
Apply = Callable[..., Array]  # of elements, their numbers → their numbers
Floats = Callable[[Array, Array], Array]  # at places: whether floats have these bits there
SPOILT = "a float whose bits were changed, or that nobody wrote"


@dataclass(slots=True)
class Field:
    """The floats of a launch: which elements there are, and how their numbers are written."""

    elements: Elements
    digits: Digits
    place: Span | None = None  # of the product of matrices that is made

    def read(self, words: Array, kind: str, active: Array | None = None) -> Array:
        """The numbers of elements, of floats by copy and thread; 0 where none is active."""
        bits = words.view(f"u{words.dtype.itemsize}")
        out = np.zeros(bits.shape[1], np.int64)
        same = (bits == bits[0]).all(axis=0)
        running = np.ones_like(same) if active is None else active
        alike, apart = np.flatnonzero(same & running), np.flatnonzero(~same & running)
        if alike.size:
            out[alike] = self.elements.constants(_values(bits[0, alike], kind))
        if apart.size:
            out[apart], bad = self.decoded(bits[:, apart], kind)
            if bad.any():
                raise NotKnown(SPOILT)
        return out

    def decoded(self, words: Array, kind: str) -> tuple[Array, Array]:
        """The numbers of elements, and where they are none. What lost its lower half was rounded to
        a bf16, if it was none."""
        numbers, bad, upper = self.digits.decoded(words, kind)
        bad |= numbers >= self.elements.count
        numbers[upper & ~bad] = cut_off(self.elements, numbers[upper & ~bad])
        return numbers, bad

    def written(self, numbers: Array, kind: str, floats: Floats | None = None) -> Array:
        """Floats by copy and thread. A constant is itself where `floats`, which are asked for some,
        have its bits; of one that was rounded, or is -0, nothing but the element is known."""
        out = self.digits.encoded(numbers, kind)
        constant = self.elements["constant"][numbers]
        at = np.flatnonzero(~np.isnan(constant))
        if at.size and floats is not None:
            plain = _bits(constant[at], kind)
            fits = floats(at, plain) & (_values(plain, kind) == constant[at])
            out[:, at[fits]] = plain[fits]
        return out


def _values(bits: Array, kind: str) -> Array:
    """Floats of a type as doubles."""
    if kind == "bf16":
        return rounding.bf16_to_single(bits).astype(np.float64)
    return bits.view(f"f{bits.dtype.itemsize}").astype(np.float64)


def _bits(values: Array, kind: str) -> Array:
    with np.errstate(all="ignore"):
        if kind == "bf16":
            return rounding.double_to_bf16(values)
        size = DTYPES[kind].itemsize
        return values.astype(f"f{size}").view(f"u{size}")


def field_of(f: Frame) -> Field:
    found: Field = f.batch.floats
    return found


def by_copies(value: Array) -> Array:
    """A value of the running threads, by copy and thread."""
    if value.size == 1:
        return np.broadcast_to(value.reshape(1, 1), (COPIES, 1))
    return value.reshape(COPIES, -1)


def active_of(f: Frame) -> Array | None:
    """Which threads of a copy run, where values are those of all; all copies run alike."""
    if f.mask is None:
        return None
    if f.compact:
        places = f.index.reshape(COPIES, -1) if f.index.size % COPIES == 0 else f.index[:, None]
        inside = places - np.arange(len(places))[:, None] * (f.n // COPIES)
        if len(places) != COPIES or (inside != inside[0]).any():
            raise NotKnown("a branch that depends on data")
        return None
    running: Array = f.mask.reshape(COPIES, -1)
    if (running != running[0]).any():
        raise NotKnown("a branch that depends on data")
    return np.asarray(running[0])


def applied(
    f: Frame, fn: Apply, values: list[Array], kinds: list[str], result: str, note: Note,
    plain: Callable[[], Array],
) -> Array:  # fmt: skip
    """A function of elements, on floats of the running threads; `plain` gives what is computed of
    them as floats."""
    active = active_of(f)
    field = field_of(f)
    copies = [by_copies(each) for each in values]
    numbers = [
        field.read(words, kind, active if words.shape[1] > 1 else None)
        for words, kind in zip(copies, kinds, strict=True)
    ]
    size = max(each.size for each in numbers)
    numbers = [np.broadcast_to(each, size) for each in numbers]
    running = active if active is not None and size > 1 else slice(None)
    given, first = [each[running] for each in numbers], field.elements.count
    made = np.zeros(size, np.int64)
    made[running] = fn(*given)
    noted(field.elements, note, given, made[running], first)

    def floats(at: Array, bits: Array) -> Array:
        return _has_bits(field, copies, numbers, plain, at, bits, result)

    out = field.written(made, result, floats).view(DTYPES[result])
    if size == 1:
        same = (out.view(f"u{out.dtype.itemsize}") == out.view(f"u{out.dtype.itemsize}")[0]).all()
        return out[0] if same else _everywhere(f, out)
    return out.reshape(-1)


def _has_bits(
    field: Field, given: list[Array], numbers: list[Array], plain: Callable[[], Array],
    at: Array, bits: Array, kind: str,
) -> Array:  # fmt: skip
    """Where floats are computed as these bits, at places. From constants they are looked at; from
    what depends on inputs an infinite number is one, but a zero may be -0."""
    known, plainly = np.ones(at.size, bool), np.ones(at.size, bool)
    for words, number in zip(given, numbers, strict=True):
        copies = words.view(f"u{words.dtype.itemsize}")
        same = _at((copies == copies[0]).all(axis=0), at)
        known &= same
        plainly &= same | ~field.elements.is_constant(number[at])
    endless = plainly & ~known & np.isinf(_values(bits, kind))
    if known.any():
        made = by_copies(plain())
        known &= (_at(made.view(bits.dtype), at) == bits).all(axis=0)
    return np.asarray(known | endless)


def _at(values: Array, places: Array) -> Array:
    """Those at places, of values that may be one for all."""
    return values[..., places] if values.shape[-1] > 1 else np.repeat(values, places.size, axis=-1)


def _everywhere(f: Frame, out: Array) -> Array:
    """One value of each copy, for each thread that runs."""
    count = f.count if f.mask is None or f.compact else f.n
    return np.repeat(out[:, 0], count // COPIES)


@dataclass(frozen=True, slots=True)
class FieldArithmetic:
    """Products of tensor cores (`frame.Arithmetic`), on elements."""

    field: Field

    def fused(
        self, a: Array, b: Array, c: Array, kinds: tuple[str, str], result: str, rule: Rule
    ) -> Array:
        if not set(kinds) <= {"f16", "bf16", "tf32"}:
            raise NotKnown(f"products of {kinds[0]}")
        x, y = (self._numbers(each, kind) for each, kind in zip((a, b), kinds, strict=True))
        before, e = self._numbers(c, result), self.field.elements
        made = e.products(x, y, before)
        noted_product(
            e, result, self.field.place, x, y, before, made, rule.group, kinds[0]
        )  # fmt: skip
        return self.field.written(made.reshape(-1), result).view(c.dtype).reshape(c.shape)

    def _numbers(self, values: Array, kind: str) -> Array:
        """Elements of the matrices of one copy's warps."""
        kind = "f32" if kind == "tf32" else kind
        words = values.view(f"u{values.dtype.itemsize}").astype(f"u{DTYPES[kind].itemsize}")
        numbers = self.field.read(words.reshape(COPIES, -1), kind)
        return numbers.reshape(values.shape[0] // COPIES, *values.shape[1:])
