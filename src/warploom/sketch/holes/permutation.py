"""Permutations within groups along one axis, and AMD's cross-lane XOR swizzle."""

from __future__ import annotations

import math

import numpy as np

from warploom.index.ir import Const, Expr, select
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Candidates, Integers, distinct, replace_coordinate
from warploom.sketch.holes.expressions import coordinate, quotient, remainder, replaced, total
from warploom.sketch.term.ir import UNDEFINED, GatherExpr

_LARGEST_GROUP = 8
_WAVE = 32  # ds_swizzle permutes within 32 lanes


def grouped_perms(call: Call) -> Candidates:
    return _permutations(call, swizzles=0)


def amd_swizzles_perm(call: Call) -> Candidates:
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


def _permutations(call: Call, swizzles: int) -> Candidates:
    call.same_shape()
    shape = call.out_shape
    axis = call.axis("axis", len(shape))
    group = call.number("group")
    if not 1 <= group <= _LARGEST_GROUP:
        call.fail(
            f"{call.function}: option group={group} is out of range: it has {group}! permutations",
            f"use a group of 1 to {_LARGEST_GROUP}",
        )
    restrict = _restriction(call)
    length = shape[axis]
    count = 1 + math.factorial(group) + swizzles
    call.afford(count, 8 * length, f"use a smaller group than {group}")
    permutations = heap_order(group)
    lane = np.arange(length)
    moved = lane // group * group + permutations[:, lane % group]
    wave, swap = lane // _WAVE * _WAVE, np.arange(swizzles)[:, None]
    swapped = (wave + ((lane % _WAVE) ^ swap)) % length
    values = np.concatenate([lane[None], np.minimum(moved, length), swapped])
    first, owner = distinct(values)
    axes = [axis]
    picked = values[first]
    if restrict is not None:
        axes, picked = _restricted(axis, *restrict, shape, picked)
    tables = replace_coordinate(call, axis, axes, picked)
    swizzle_start = 1 + len(permutations)

    def name(number: int) -> str:
        if number == 0:
            return "id"
        if number < swizzle_start:
            return f"perm[{','.join(map(str, permutations[number - 1].tolist()))}]"
        return f"swizzle_b32[and=31,or=0,xor={number - swizzle_start}]"

    def expression(number: int) -> GatherExpr:
        x = coordinate(axis)
        if number == 0:
            value: Expr = x
        elif number < swizzle_start:
            value = _permuted(x, permutations[number - 1].tolist(), length)
        else:
            value = _swizzled(x, number - swizzle_start, length)
        if restrict is not None and shape[restrict[0]] > 1 and value != x:
            value = select(coordinate(restrict[0]).eq(restrict[1]), value, x)
        beyond = bool((tables[owner[number]] == UNDEFINED).any())
        return replaced(shape, shape, axis, value, beyond)

    return Candidates(tables, owner, name, expression)


def _restriction(call: Call) -> tuple[int, int] | None:
    pairs = call.pairs("restrict")
    if not pairs:
        return None
    if len(pairs) > 1:
        call.fail(f"{call.function}: option restrict takes one pair", "write restrict=[axis,value]")
    axis = call.below(pairs[0][0], len(call.out_shape), "option restrict: axis")
    what = f"option restrict: on axis {axis}, position"
    return axis, call.below(pairs[0][1], call.out_shape[axis], what)


def _restricted(
    axis: int, where: int, at: int, shape: tuple[int, ...], values: Integers
) -> tuple[list[int], Integers]:
    """The values spread over a second axis: elsewhere on it, nothing moves."""
    lane, there = np.arange(shape[axis]), np.arange(shape[where]) == at
    if where == axis:
        return [axis], np.where(there, values, lane)
    if where < axis:
        return [where, axis], np.where(there[:, None], values[:, None, :], lane)
    return [axis, where], np.where(there, values[:, :, None], lane[:, None])


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
