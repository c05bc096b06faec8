"""Swizzleflow's sets of swizzles: one coordinate fanned and rotated as a function of two others.

`xform(cf, cr, dr, g, wrap)` with i = x[main], k = x[second] replaces x[out] by
`((cf*(i%g) + (i%g)//df + rot) % g) + (i//g)*g`, where `df = g / gcd(g, |cf|)` and
`rot = cr*k + k//dr`, taken modulo that gcd if `wrap`. `rot(c, g)` replaces it by
`((c + i) % g) + (i//g)*g`. A group of 0 leaves the coordinate as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warploom.index.ir import Expr
from warploom.sketch.holes.axes import Axes, axes_of
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, grid
from warploom.sketch.holes.expressions import coordinate
from warploom.sketch.holes.moving import Moving, gather_set
from warploom.sketch.holes.swizzle import (
    COLUMNS,
    FAN,
    GROUP,
    MODULUS,
    RATE,
    SHIFT,
    SLOW,
    STEP,
    WRAP,
    WRAP_TURN,
    Swizzles,
    divisors,
)
from warploom.sketch.term.gather import Family, GatherSet, Sense, Setting, Settings

_TOO_LARGE = "take the _no_group set, which has fewer gathers, or a smaller array"


@dataclass(frozen=True, slots=True)
class _Swizzling(Moving):
    """What both sets share: the identity, and refusing what would not fit."""

    functions: Swizzles
    has_identity: bool
    is_open: bool  # whether there is more than the identity

    @property
    def axes(self) -> tuple[int, ...]:
        """Without choices only the identity is left, which depends on its own axis alone."""
        used = set(self.functions.depends) if self.is_open else set()
        return tuple(sorted(used | ({self.axis} if self.has_identity else set())))

    def values(self, rows: Settings) -> Integers:
        at = grid(self.call.out_shape, self.axes)
        still = rows[:, GROUP] == 0
        if not still.any():
            return self.functions.values(rows, at)
        kind = np.min_scalar_type(self.call.out_shape[self.axis])
        if still.all():
            return np.repeat(at[self.axis][None].astype(kind), len(rows), axis=0)
        moved = self.functions.values(np.where(still[:, None], rows[~still][0], rows), at)
        moved = moved.astype(np.promote_types(moved.dtype, kind), copy=False)
        moved[still] = at[self.axis]
        return moved

    def value(self, row: Setting) -> Expr:
        if row[GROUP] == 0:
            return coordinate(self.axis)
        return Moving.value(self, row)

    def may_leave(self, row: Setting) -> bool:
        i = self.functions.main
        before, after = self.call.in_shape, self.call.out_shape
        if before == after and before[i] <= before[self.axis]:
            return False
        return Moving.may_leave(self, row)

    def whole_or(self, group: int) -> str:
        return "" if group == self.functions.size else f"group={group},"

    def counterparts(self, rows: Settings, large: Family, reading: Sense) -> Settings:
        """The identity stays the identity, where there is one."""
        if not isinstance(large, _Swizzling):
            return rows[:0]
        still = rows[:, GROUP] == 0
        kept = rows[still] if large.has_identity else rows[:0]
        moved = rows[~still] if large.is_open else rows[:0]
        return np.concatenate([kept, Moving.counterparts(self, moved, large, reading)])

    def afford(self, choices: int) -> None:
        cells, functions = self.field, self.functions
        lengths = functions.size, self.call.in_shape[self.axis], functions.extents[functions.main]
        kind = np.min_scalar_type(2 * max(lengths))
        self.call.afford(choices + 1, cells * kind.itemsize, _TOO_LARGE)


class Xforms(_Swizzling):
    __slots__ = ()
    name = "xform"

    def text(self, row: Setting) -> str:
        if row[GROUP] == 0:
            return "id"
        wrap = "wrap," if row[WRAP] else ""
        constants = f"cf={row[FAN]},cr={row[RATE]},dr={row[SLOW]}"
        return f"xform[{self.whole_or(row[GROUP])}{wrap}{constants}]"

    def counterparts(self, rows: Settings, large: Family, reading: Sense) -> Settings:
        """The step goes with the fan."""
        found = super().counterparts(rows, large, reading)
        moved = found[:, GROUP] > 0
        step = found[moved, GROUP] // np.gcd(found[moved, GROUP], found[moved, FAN])
        found[moved, STEP] = step
        return found


class Rotations(_Swizzling):
    __slots__ = ()
    name = "rot"

    def text(self, row: Setting) -> str:
        if row[GROUP] == 0:
            return "id"
        return f"rot[{self.whole_or(row[GROUP])}shift={row[SHIFT]}]"

    def value(self, row: Setting) -> Expr:
        """Written with its remainder also where the output is too short to need it."""
        main, group = self.functions.main, int(row[GROUP])
        names = [coordinate(axis) for axis in range(len(self.call.out_shape))]
        if group < 2:
            return names[main] if group else names[self.axis]
        extents = list(self.functions.extents)
        extents[main] = max(extents[main], group)
        return replace(self.functions, extents=tuple(extents)).expression(row, names)


def xforms(call: Call, usual: Axes | None, grouped: bool) -> GatherSet:
    axes = axes_of(call, usual)
    length, same = call.in_shape[axes.main], call.in_shape == call.out_shape
    rates = divisors(call.in_shape[axes.second])[:-1]
    groups = _groups(length, grouped) if rates else []
    wraps = 2 if grouped else 1
    functions = Swizzles(length, call.out_shape, axes.main, axes.second)
    family = Xforms(call, functions, axes.out, same, bool(groups))
    family.afford(sum(wraps * len(rates) * (g + 1) ** 2 for g in groups))
    rows = _listed(same, [_xform_rows(group, wraps, rates) for group in groups])
    return gather_set(call, family, rows)


def rots(call: Call, usual: Axes | None, grouped: bool) -> GatherSet:
    axes = axes_of(call, usual)
    length, same = call.in_shape[axes.main], call.in_shape == call.out_shape
    groups = _groups(length, grouped)
    functions = Swizzles(length, call.out_shape, axes.main)
    family = Rotations(call, functions, axes.out, same, bool(groups))
    count = sum(2 * g - 1 for g in groups)
    family.afford(count)
    call.afford(count, 24 * family.field, _TOO_LARGE)  # three 64-bit numbers a cell
    rows = _listed(same, [_rotation_rows(group) for group in groups])
    return gather_set(call, family, rows)


def _groups(length: int, grouped: bool) -> list[int]:
    """Group sizes, the largest first: all divisors but 1 if `grouped`, else the whole length."""
    return divisors(length)[:-1] if grouped else [length]


def _listed(identity: bool, blocks: list[Settings]) -> Settings:
    still = np.zeros((int(identity), len(COLUMNS)), np.int64)
    return np.concatenate([still, *blocks])


def _xform_rows(group: int, wraps: int, rates: list[int]) -> Settings:
    """All choices of one group size, in the published order."""
    factors = np.array([*range(group), -1])
    rows = np.zeros((wraps, len(rates), group + 1, group + 1, len(COLUMNS)), np.int64)
    rows[..., GROUP] = rows[..., MODULUS] = group
    rows[..., FAN], rows[..., RATE] = factors, factors[:, None]
    rows[..., STEP] = group // np.gcd(group, np.abs(factors))
    rows[..., SLOW] = np.array(rates)[:, None, None]
    rows[1:, ..., WRAP] = WRAP_TURN
    return rows.reshape(-1, len(COLUMNS))


def _rotation_rows(group: int) -> Settings:
    """0 … g−1, then −g+1 … −1."""
    rows = np.zeros((2 * group - 1, len(COLUMNS)), np.int64)
    rows[:, [GROUP, MODULUS, STEP]] = group
    rows[:, [FAN, SLOW]] = 1
    rows[:, SHIFT] = [*range(group), *range(1 - group, 0)]
    return rows
