"""Permutations within groups along one axis, and AMD's cross-lane XOR swizzle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, select
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, grid
from warploom.sketch.holes.expressions import coordinate, quotient, remainder, total
from warploom.sketch.holes.function import IndexFunctions, check_names, none_of, whole_number
from warploom.sketch.holes.moving import Moving, gather_set
from warploom.sketch.term.gather import GatherSet, Sense, Setting, Settings

_LARGEST_GROUP = 8
_WAVE = 32  # ds_swizzle permutes within 32 lanes


# What a row does: its first entry. Behind it come the permutation of a group and a mask.
_STILL, _PERMUTED, _SWAPPED = range(3)


@dataclass(frozen=True, slots=True)
class GroupPermutations(IndexFunctions):
    """A permutation of each `group` neighbours, or the XOR of each 32 with a mask."""

    extents: tuple[int, ...]
    main: int
    group: int

    @property
    def columns(self) -> tuple[str, ...]:
        return ("kind", *(f"place{n}" for n in range(self.group)), "mask")

    @property
    def depends(self) -> tuple[int, ...]:
        return (self.main,)

    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        lane, length = at[self.main], self.extents[self.main]
        out = np.repeat(lane[None], len(rows), axis=0)
        moved, swapped = rows[:, 0] == _PERMUTED, rows[:, 0] == _SWAPPED
        places = lane // self.group * self.group + rows[moved, 1:-1][:, lane % self.group]
        out[moved] = np.minimum(places, length)
        wave = lane // _WAVE * _WAVE
        out[swapped] = (wave + ((lane % _WAVE) ^ rows[swapped, -1:])) % length
        return out.astype(np.min_scalar_type(length + 1))

    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        x, length = variables[self.main], self.extents[self.main]
        if row[0] == _PERMUTED:
            return _permuted(x, row[1:-1].tolist(), length)
        return _swizzled(x, int(row[-1]), length) if row[0] == _SWAPPED else x

    def counterparts(self, rows: Settings, large: IndexFunctions, _reading: Sense) -> Settings:
        same = isinstance(large, GroupPermutations) and large.group == self.group
        return rows if same else none_of(self)

    def forms(self, rows: Settings) -> Settings:
        return rows[:, :1]

    def to_json(self, row: Setting) -> dict[str, Any]:
        if row[0] == _PERMUTED:
            return {"permutation": row[1:-1].tolist()}
        return {"xor": int(row[-1])} if row[0] == _SWAPPED else {}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        row = np.zeros(self.group + 2, np.int64)
        if "permutation" in parameters:
            check_names(parameters, ("permutation",))
            given = parameters["permutation"]
            places = (
                [whole_number("permutation", n) for n in given] if isinstance(given, list) else []
            )
            if sorted(places) != list(range(self.group)):
                raise CheckError(f"the parameter 'permutation' is a list of 0 to {self.group - 1}")
            row[0], row[1:-1] = _PERMUTED, places
        elif parameters:
            check_names(parameters, ("xor",))
            row[0], row[-1] = _SWAPPED, whole_number("xor", parameters["xor"])
        return row


@dataclass(frozen=True, slots=True)
class Permutations(Moving):
    """`restrict`: nothing moves but where this axis has this coordinate."""

    name = "permutation"

    functions: GroupPermutations
    restrict: tuple[int, int] | None

    @property
    def axes(self) -> tuple[int, ...]:
        where = {self.axis} if self.restrict is None else {self.axis, self.restrict[0]}
        return tuple(sorted(where))

    def values(self, rows: Settings) -> Integers:
        at = grid(self.call.out_shape, self.axes)
        values = self.functions.values(rows, at)
        if self.restrict is None:
            return values
        where, place = self.restrict
        return np.where(at[where] == place, values, at[self.axis]).astype(values.dtype)

    def value(self, row: Setting) -> Expr:
        x, value = coordinate(self.axis), Moving.value(self, row)
        if self.restrict is None or value == x or self.call.out_shape[self.restrict[0]] == 1:
            return value
        where, place = self.restrict
        return select(coordinate(where).eq(place), value, x)

    def text(self, row: Setting) -> str:
        if row[0] == _PERMUTED:
            return f"perm[{','.join(map(str, row[1:-1].tolist()))}]"
        return f"swizzle_b32[and=31,or=0,xor={row[-1]}]" if row[0] == _SWAPPED else "id"


def grouped_perms(call: Call) -> GatherSet:
    return _permutations(call, swizzles=0)


def amd_swizzles_perm(call: Call) -> GatherSet:
    return _permutations(call, swizzles=_WAVE)


def heap_order(count: int) -> Integers:
    """All permutations of 0 … count−1, one a row, in the order of Heap's algorithm.

    >>> heap_order(3).tolist()
    [[0, 1, 2], [1, 0, 2], [2, 0, 1], [0, 2, 1], [1, 2, 0], [2, 1, 0]]
    """
    rows = np.zeros((1, 1), np.intp)
    for size in range(2, count + 1):
        arrangement = np.arange(size)
        blocks = []
        for turn in range(size):
            last = np.full((len(rows), 1), arrangement[-1])
            blocks.append(np.concatenate([arrangement[rows], last], axis=1))
            arrangement = blocks[-1][-1].copy()
            other = turn if size % 2 == 0 else 0
            arrangement[[other, -1]] = arrangement[[-1, other]]
        rows = np.concatenate(blocks)
    return rows


def _permutations(call: Call, swizzles: int) -> GatherSet:
    call.same_shape()
    shape = call.out_shape
    axis = call.axis("axis", len(shape))
    group = call.number("group")
    if not 1 <= group <= _LARGEST_GROUP:
        call.fail(
            f"{call.function}: option group={group} is out of range: it has {group}! permutations",
            f"use a group of 1 to {_LARGEST_GROUP}",
            "group",
        )
    family = Permutations(call, GroupPermutations(shape, axis, group), axis, _restriction(call))
    count = 1 + math.factorial(group) + swizzles
    call.afford(count, 8 * family.field, f"use a smaller group than {group}")
    rows = np.zeros((count, group + 2), np.int64)
    places = heap_order(group)
    rows[1 : 1 + len(places), 0] = _PERMUTED
    rows[1 : 1 + len(places), 1:-1] = places
    rows[1 + len(places) :, 0] = _SWAPPED
    rows[1 + len(places) :, -1] = np.arange(swizzles)
    return gather_set(call, family, rows)


def _restriction(call: Call) -> tuple[int, int] | None:
    pairs = call.pairs("restrict")
    if not pairs:
        return None
    if len(pairs) > 1:
        message = f"{call.function}: option restrict takes one pair"
        call.fail(message, "write restrict=[axis,value]", "restrict")
    axis = call.below(pairs[0][0], len(call.out_shape), "option restrict: axis", "restrict")
    what = f"option restrict: on axis {axis}, position"
    return axis, call.below(pairs[0][1], call.out_shape[axis], what, "restrict")


def _permuted(x: Expr, permutation: list[int], length: int) -> Expr:
    """`permutation[x % g]` within x's group; a table of 3-bit entries in one constant at worst."""
    group = len(permutation)
    if permutation == list(range(group)):
        return x
    inner, base = remainder(x, group, length), quotient(x, group, length)
    if group & (group - 1) == 0 and all(p == j ^ permutation[0] for j, p in enumerate(permutation)):
        return x ^ permutation[0]
    if all(p == (j + permutation[0]) % group for j, p in enumerate(permutation)):
        moved = (x + permutation[0]) % group
    elif all(p == group - 1 - j for j, p in enumerate(permutation)):
        moved = Const(group - 1) - inner
    else:
        packed = sum(p << (3 * j) for j, p in enumerate(permutation))
        moved = (Const(packed) >> (inner * 3)) & 7
    return total([(1, moved), (group, base)])


def _swizzled(x: Expr, mask: int, length: int) -> Expr:
    swapped = x ^ mask if mask else x
    padded = -(-length // _WAVE) * _WAVE
    return swapped if padded == length or not mask else swapped % length
