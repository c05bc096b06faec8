"""Bit operations on a coordinate below a power of two: one matrix over F2, and an offset.

A row (turn, start, count, second, factor, offset) turns x, with a second coordinate k, into
M·x ^ t(k) ^ offset, where M reverses `count` bits from bit `start` on and then turns all of them by
`turn` places, and t(k) is one of

    none   k   k+1   f<<k   h>>k   (2<<k)-1   k&f

where f is the factor and h half of the size. So butterflies (x ^ 1<<k, x ^ h>>k, x ^ (2<<k)-1,
x ^ k+1), bit reversals and rotations can be said. In k&f the factor is a mask of adjacent bits:
x ^ k&f along x and along k, three times in turn, exchanges these bits of x and k (Eklundh's
transposition). A row is affine over F2 for every k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import product
from typing import Any, assert_never

import numpy as np

from warploom.errors import CheckError
from warploom.index.bits import BitMap, reversal, rotation, xor
from warploom.index.ir import Const, Expr, lift
from warploom.sketch.holes.axes import Axes, axes_along_main
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, distinct
from warploom.sketch.holes.function import IndexFunctions, OfTwo, check_names, none_of, whole_number
from warploom.sketch.holes.moving import Moving, gather_set
from warploom.sketch.holes.swizzle import near
from warploom.sketch.term.gather import GatherSet, Sense, Setting, Settings

COLUMNS = ("turn", "start", "count", "second", "factor", "offset")
TURN, START, COUNT, SECOND, FACTOR, OFFSET = range(6)
SECONDS = ("none", "k", "k+1", "f<<k", "h>>k", "(2<<k)-1", "k&f")


class Second(IntEnum):
    """What t(k) is, by its place in SECONDS."""

    NONE = 0
    SAME = 1
    NEXT = 2
    UP = 3
    DOWN = 4
    ONES = 5
    MASKED = 6


_PLAIN = tuple(kind for kind in Second if kind != Second.MASKED)


class BitForms(OfTwo):
    """Bit operations on one coordinate, of which there are `size`, with another."""

    __slots__ = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    @property
    def bits(self) -> int:
        return self.size.bit_length() - 1

    @property
    def count(self) -> int:
        """How many rows there are, equal ones counted."""
        return self.size * sum(
            len(self._matrices(kind, factor)) for kind, factor in self._seconds()
        )

    def rows(self) -> Settings:
        """All of them: the simplest matrices and turns first, offsets the fastest."""
        blocks = []
        for kind, factor in self._seconds():
            matrices = np.array(self._matrices(kind, factor))
            block = np.zeros((len(matrices), self.size, len(COLUMNS)), np.int64)
            block[:, :, :3] = matrices[:, None]
            block[:, :, SECOND], block[:, :, FACTOR] = kind, factor
            block[:, :, OFFSET] = np.arange(self.size)
            blocks.append(block.reshape(-1, len(COLUMNS)))
        return np.concatenate(blocks)

    def _seconds(self) -> Iterator[tuple[int, int]]:
        """What may be done with the second coordinate: the kind, and its factor."""
        most = (self.size - 1) >> (self.turns - 1) if self.turns > 1 else 0
        shifted = ((Second.UP, factor) for factor in range(2, most + 1))
        masked = ((Second.MASKED, mask) for mask in _runs((self.turns - 1).bit_length()))
        for kind, factor in (*((kind, 1) for kind in _PLAIN), *shifted, *masked):
            if self.allows(kind, factor):
                yield kind, factor

    def allows(self, kind: int, factor: int) -> bool:
        """Whether t(k) stays below the size for every k."""
        last = self.turns - 1
        if kind == Second.NONE or last == 0:
            return kind == Second.NONE
        up, ones = factor << min(last, 62), (2 << min(last, 61)) - 1
        most = (0, last, last + 1, up, 0, ones, factor)[kind]
        return 0 <= most < self.size and (kind != Second.DOWN or last < self.bits)

    def _matrices(self, kind: int, factor: int) -> list[tuple[int, int, int]]:
        """Turns and reversals (turn, start, count); a factor or a mask goes with neither."""
        n = self.bits
        if kind == Second.MASKED or (kind == Second.UP and factor > 1):
            return [(0, 0, 0)]
        parts = range(2, n)
        return [
            (0, 0, 0),
            (0, 0, n),
            *((turn, 0, 0) for turn in range(1, n)),
            *((0, 0, count) for count in parts),
            *((0, n - count, count) for count in parts),
            *((turn, 0, n) for turn in range(1, n)),
        ]

    def matrix(self, row: Setting) -> BitMap:
        """The map of x alone: the matrix, and the offset."""
        turn, start, count = (int(n) for n in row[:3])
        return _matrix(self.bits, turn, start, count, int(row[OFFSET]))

    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        kind = np.min_scalar_type(2 * self.size)
        x, k = self.both(at)
        if not len(rows):
            return np.zeros((0, len(x)), kind)
        matrices, matrix_of = distinct(np.ascontiguousarray(rows[:, :3]))
        seconds, second_of = distinct(np.ascontiguousarray(rows[:, SECOND : FACTOR + 1]))
        moved = np.stack([self.matrix(rows[n])(x) ^ rows[n, OFFSET] for n in matrices])
        turned = np.stack([self._turned(rows[n], k) for n in seconds])
        values = moved.astype(kind)[matrix_of]
        values ^= turned.astype(kind)[second_of]
        values ^= rows[:, OFFSET, None].astype(kind)
        return values

    def _turned(self, row: Setting, k: Any) -> Any:
        """t(k), of numbers or of an expression."""
        kind = Second(row[SECOND])
        match kind:
            case Second.NONE:
                return 0 * k
            case Second.SAME:
                return k
            case Second.NEXT:
                return k + 1
            case Second.UP:
                return int(row[FACTOR]) << k
            case Second.DOWN:
                return self.size // 2 >> k
            case Second.ONES:
                return (2 << k) - 1
            case Second.MASKED:
                return k & int(row[FACTOR])
            case _:
                assert_never(kind)

    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        x = variables[self.main]
        if row[SECOND] == Second.NONE or self.second is None:
            return self.matrix(row).expression(x)
        turned = self._turned(row, variables[self.second])
        result = replace(self.matrix(row), offset=0).expression(x) ^ lift(turned)
        return result ^ Const(int(row[OFFSET])) if row[OFFSET] else result

    def counterparts(self, rows: Settings, large: IndexFunctions, reading: Sense) -> Settings:
        if not isinstance(large, BitForms):
            return none_of(self)
        found = {each for row in rows for each in self._readings(row, large, reading)}
        return np.array(sorted(found), np.int64).reshape(-1, len(COLUMNS))

    def _readings(self, row: Setting, large: BitForms, reading: Sense) -> Iterator[tuple[int, ...]]:
        """Reversed parts stay low or high; turns and offsets count from either end."""
        turn, start, count, second, factor, offset = (int(n) for n in row)
        small, wide = self.bits, large.bits
        added = wide - small
        offsets = [large.size - 1 if offset == self.size - 1 and small else offset]
        whole = count > 0 and count == small
        parts = [(0, wide) if whole else (start + (added if start else 0), count)]
        turns, factors = [near(turn, small) if small else 0], [factor]
        if reading is not Sense.NATURAL and added > 0:
            shared = [offset << added]
            offsets = shared if reading is Sense.SHARE else [*offsets, offset, *shared]
        if reading is Sense.ANY:
            parts += [(start, count), (start, count + added)] if count else []
            turns += [turn, turn + added]
            offsets += [offset + large.size - self.size]
            factors += [factor << added] if added > 0 else []
        for turned, (first, many), times, moved in product(turns, parts, factors, offsets):
            fits = first >= 0 and many >= 0 and first + many <= wide and 0 <= moved < large.size
            if fits and large.allows(second, times):
                yield turned % max(wide, 1), first, many, second, times, moved

    def forms(self, rows: Settings) -> Settings:
        """What is reversed (nothing, all, a low or a high part), what is turned, and by what k."""
        count, start = rows[:, COUNT], rows[:, START]
        reversed_part = np.where(count == self.bits, 1, np.where(start > 0, 3, 2))
        reversed_part = np.where(count < 2, 0, reversed_part)
        return np.stack([reversed_part, rows[:, TURN] > 0, rows[:, SECOND]], axis=1)

    def to_json(self, row: Setting) -> dict[str, Any]:
        return super().to_json(row) | {"second": SECONDS[row[SECOND]]}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        check_names(parameters, COLUMNS)
        if parameters["second"] not in SECONDS:
            raise CheckError(f"the parameter 'second' is one of {', '.join(SECONDS)}")
        numbers = {**parameters, "second": SECONDS.index(parameters["second"])}
        return np.array([whole_number(name, numbers[name]) for name in COLUMNS], np.int64)


def _runs(bits: int) -> Iterator[int]:
    """Masks of adjacent bits, the single ones first; all bits together are k itself."""
    for length in range(1, bits):
        for start in range(bits - length + 1):
            yield (1 << length) - 1 << start


@lru_cache(maxsize=4096)
def _matrix(bits: int, turn: int, start: int, count: int, offset: int) -> BitMap:
    return xor(bits, offset) @ rotation(bits, turn) @ reversal(bits, start, count)


@dataclass(frozen=True, slots=True)
class Bits(Moving):
    name = "bits"

    functions: BitForms

    def may_leave(self, _row: Setting) -> bool:
        return False

    def text(self, row: Setting) -> str:
        turn, start, count, second, factor, offset = (int(n) for n in row)
        parts = []
        if count > 1:
            whole = count == self.functions.bits
            parts.append("reverse" if whole else f"reverse={'high' if start else 'low'} {count}")
        if turn:
            parts.append(f"rotate={turn}")
        k = f"x{self.functions.second}"
        half = self.functions.size // 2
        shifted = f"{factor}<<{k}", f"{half}>>{k}"
        turned = ("", k, f"{k}+1", *shifted, f"(2<<{k})-1", f"{k}&{factor}")[second]
        mask = [*([turned] if turned else []), *([str(offset)] if offset else [])]
        if mask:
            parts.append(f"xor={' ^ '.join(mask)}")
        return f"bits[{','.join(parts)}]" if parts else "id"


def bits(call: Call, usual: Axes | None) -> GatherSet:
    call.same_shape()
    main, second = _main_and_second(call, usual)
    length = call.in_shape[main]
    if length & (length - 1):
        call.fail(
            f"{call.function}: axis {main} has length {length}, which is no power of two",
            "bit operations permute a power of two; use xforms or linear",
        )
    functions = BitForms(length, call.out_shape, main, second)
    family = Bits(call, functions, main)
    each = 4 * family.field * np.min_scalar_type(2 * length).itemsize
    call.afford(functions.count, each, "leave the second axis out, or use a smaller array")
    rows = functions.rows()
    return gather_set(call, family, rows)


def _main_and_second(call: Call, usual: Axes | None) -> tuple[int, int | None]:
    """The axis that is moved along, and another one, if there is one."""
    alone = not {"second", "out"} & call.options.keys()
    if "main" in call.options and alone:
        return call.axis("main", len(call.in_shape)), None
    axes = axes_along_main(call, usual)
    return axes.main, axes.second if axes.second != axes.main else None
