"""The one form of swizzles: a coordinate grouped, fanned, rotated by a second one, and wrapped.

A row (group g, modulus m, fan, step, rate, slow, shift, wrap) turns i, with a second coordinate k
and j = i mod g, into

    i - j + (fan·j + ⌊j/step⌋ + turn) mod m        turn = rate·k + ⌊k/slow⌋ + shift

where WRAP_TURN takes the turn, and WRAP_BOTH ⌊j/step⌋ + turn, modulo m/step first. The published
sets are enumerations of such rows: Swizzleflow's in `xform.py`, Swizzle Inventor's in
`simt/space.py`; `synth/free.py` leaves the constants to a solver.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from warploom.index.ir import Const, Expr
from warploom.sketch.holes.common import Integers, kinds_of
from warploom.sketch.holes.expressions import quotient, remainder, total
from warploom.sketch.holes.function import IndexFunctions, OfTwo, none_of
from warploom.sketch.term.gather import Sense, Setting, Settings

COLUMNS = ("group", "modulus", "fan", "step", "rate", "slow", "shift", "wrap")
GROUP, MODULUS, FAN, STEP, RATE, SLOW, SHIFT, WRAP = range(8)
NO_WRAP, WRAP_TURN, WRAP_BOTH = range(3)

_CACHED_BYTES = 1 << 17  # what is worked on at a time stays in the cache


class Swizzles(OfTwo):
    """Swizzles of one coordinate, whose groups divide `size`, by another."""

    __slots__ = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        return _tabulated(rows.astype(np.int64), *self.both(at))

    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        """The formula at the top of this file, less what its ranges make idle."""
        i, bound = variables[self.main], self.extents[self.main]
        k = Const(0) if self.second is None else variables[self.second]
        group, modulus, fan, step, rate, slow, shift, wrap = (int(n) for n in row)
        inner = remainder(i, group, bound)
        turn = _Sum([*_stepped(rate, k, slow, self.turns)], shift)
        if wrap == WRAP_BOTH:
            fans = _stepped(fan, inner, group, min(bound, group))
            turn.terms += _stepped(0, inner, step, min(bound, group))
        else:
            fans = _stepped(fan, inner, step, min(bound, group))
        if wrap:
            turn = turn.modulo(modulus // step, modulus)
        whole = _Sum([*fans, *turn.terms], turn.constant)
        if whole.is_within(modulus):
            body = whole.text
        else:
            # Under the remainder a multiple of the modulus is nothing, and i % group is i.
            whole = whole.reduced(modulus, inner, i if group % modulus == 0 else inner)
            body = whole.text % modulus
        if group == modulus and whole.is_only(i, inner):
            return i
        return total([(1, body), (group, quotient(i, group, bound))])

    def counterparts(self, rows: Settings, large: IndexFunctions, reading: Sense) -> Settings:
        if not isinstance(large, Swizzles):
            return none_of(self)
        if reading is Sense.ANY:
            found = {each for row in rows for each in _any_reading(self, row, large)}
        else:
            share = reading is Sense.SHARE
            found = {each for row in rows for each in _natural(self, row, large, share)}
        return np.array(sorted(found), np.int64).reshape(-1, len(COLUMNS))

    def forms(self, rows: Settings) -> Settings:
        whole = rows[:, GROUP] == self.size
        return np.stack([rows[:, GROUP] == 0, whole, rows[:, WRAP]], axis=1)


def divisors(number: int) -> list[int]:
    """All divisors, the largest first."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({d for s in small for d in (s, number // s)}, reverse=True)


# -- on numbers ----------------------------------------------------------------------------------


def _tabulated(rows: Settings, i: Integers, k: Integers) -> Integers:
    """Few different fans meet few different turns: each is computed once, and then added."""
    group, modulus, step = rows[:, GROUP], rows[:, MODULUS], rows[:, STEP]
    wrap = rows[:, WRAP]
    both = wrap == WRAP_BOTH
    limit = np.where(wrap == NO_WRAP, modulus, modulus // step)
    largest = int(modulus.max(initial=1)), int(i.max(initial=0))
    kind = np.min_scalar_type(largest[0] + max(largest))
    one, fan_of = kinds_of(group, modulus, rows[:, FAN], step, both)
    two, turn_of = kinds_of(limit, rows[:, RATE], rows[:, SLOW], rows[:, SHIFT])
    # Over the values of each coordinate alone; what comes of it is put where they occur.
    x, y = np.arange(largest[1] + 1), np.arange(int(k.max(initial=0)) + 1)
    inner = x % group[one, None]
    steps = inner // step[one, None]
    apart = ~both[one, None]
    fans = (rows[one, FAN, None] * inner + steps * apart) % modulus[one, None]
    fans = np.take(fans.astype(kind), i, axis=1)
    joined = np.take(np.where(apart, 0, steps % limit[one, None]).astype(kind), i, axis=1)
    starts = np.take((x - inner).astype(kind), i, axis=1)
    turns = rows[two, RATE, None] * y + y // rows[two, SLOW, None] + rows[two, SHIFT, None]
    turns = np.take((turns % limit[two, None]).astype(kind), k, axis=1)
    out = np.empty((len(rows), len(i)), kind)
    size = max(1, _CACHED_BYTES // max(1, len(i) * kind.itemsize))
    for start in range(0, len(rows), size):
        some = slice(start, start + size)
        block, fan = out[some], fan_of[some]
        np.take(turns, turn_of[some], axis=0, out=block, mode="clip")
        if both[some].any():
            block += np.take(joined, fan, axis=0)
            _wrap_once(block, limit[some])
        block += np.take(fans, fan, axis=0)
        _wrap_once(block, modulus[some])
        if largest[1] >= group[some].min():
            block += np.take(starts, fan, axis=0)
    return out


def _wrap_once(block: Integers, modulus: Integers) -> None:
    """Takes the modulus off numbers below twice of it; below zero would wrap to a huge number."""
    np.minimum(block, block - modulus[:, None].astype(block.dtype), out=block)


# -- as arithmetic -------------------------------------------------------------------------------

# Factor, expression, and a number that the expression (at least 0) stays below.
_Term: TypeAlias = tuple[int, Expr, int]


@dataclass(slots=True)
class _Sum:
    """Terms and a constant."""

    terms: list[_Term]
    constant: int

    @property
    def text(self) -> Expr:
        return total(((factor, part) for factor, part, _ in self.terms), self.constant)

    def is_within(self, limit: int) -> bool:
        """Whether the sum is surely at least 0 and below `limit`."""
        reach = [self.constant, *(factor * (bound - 1) for factor, _, bound in self.terms)]
        return min(reach) >= 0 and sum(reach) < limit

    def modulo(self, limit: int, modulus: int) -> _Sum:
        """The remainder, where it is not taken by a later one anyway."""
        if limit == 1:
            return _Sum([], 0)
        if limit == modulus or self.is_within(limit):
            return self
        return _Sum([(1, self.text % limit, limit)], 0)

    def reduced(self, modulus: int, inner: Expr, i: Expr) -> _Sum:
        """An equal sum modulo `modulus`."""
        terms = [(f, i if part == inner else part, b) for f, part, b in self.terms if f % modulus]
        return _Sum(terms, self.constant if self.constant % modulus else 0)

    def is_only(self, *parts: Expr) -> bool:
        factors = [(factor, part) for factor, part, _ in self.terms]
        return self.constant == 0 and factors in [[(1, part)] for part in parts]


def _stepped(factor: int, value: Expr, step: int, bound: int) -> list[_Term]:
    """`factor*value + value//step`."""
    if bound == 1:
        return []
    if step == 1:
        return [(factor + 1, value, bound)] if factor != -1 else []
    steps = quotient(value, step, bound)
    terms = [(factor, value, bound), (1, steps, (bound - 1) // step + 1)]
    return [term for term in terms if term[0] and term[2] > 1]


# -- at other sizes ------------------------------------------------------------------------------

_Numbers: TypeAlias = tuple[int, ...]


def near(number: int, modulus: int) -> int:
    """The residue of least size: 31 modulo 32 is −1."""
    number %= modulus
    return number - modulus if 2 * number > modulus else number


def _natural(small: Swizzles, row: Setting, large: Swizzles, share: bool) -> Iterator[_Numbers]:
    """Groups keep their size, or stay the whole; constants stay as far from zero as they are.

    With `share` constants but 0 and ±1 keep their share of the size instead.
    """
    group, modulus, fan, step, rate, slow, shift, wrap = (int(n) for n in row)
    wide = large.size if group == small.size else group
    if large.size % wide:
        return
    constants = [near(value, group) for value in (fan, rate, shift)]
    if share:
        scale = large.size / small.size
        constants = [int(v * scale) if abs(v) > 1 else v for v in constants]
    steps = large.turns if slow == small.turns else slow
    wider = wide if modulus == group else modulus
    yield _sized(wide, wider, constants, steps, wrap, step < group)


def _any_reading(small: Swizzles, row: Setting, large: Swizzles) -> Iterator[_Numbers]:
    """Constants keep their distance from zero or from the group; groups their size or share."""
    group, modulus, fan, step, rate, slow, shift, wrap = (int(n) for n in row)
    m, n = small.turns, large.turns
    steps = {n} if slow == m else {d for d in (slow, slow * n // m) if 1 <= d < n}
    for wide in {group, group * large.size // small.size}:
        if wide < 1 or large.size % wide:
            continue
        wider = wide if modulus == group else modulus
        for constants in itertools.product(
            *({v, v - group + wide, v * wide // group} for v in (fan, rate, shift))
        ):
            for each in steps:
                yield _sized(wide, wider, constants, each, wrap, step < group)


def _sized(
    group: int, modulus: int, constants: Sequence[int], slow: int, wrap: int, stepped: bool
) -> _Numbers:
    fan, rate, shift = constants
    step = modulus // math.gcd(fan % modulus, modulus) if stepped else group
    limit = modulus // step if wrap else modulus
    return group, modulus, fan % modulus, step, rate % limit, slow, shift % limit, wrap
