"""What may fill a hole, as a certificate says it: tables, index expressions, or a family with its
parameters, of which the checker makes all members by itself.

    xforms   x[out] becomes (cf·j + j//df + turn) mod g + (i − j), where i = x[main], j = i mod g,
             k = x[second], df = g / gcd(g, cf) and turn = cr·k + k//dr, modulo that gcd if wrapped.
             g divides the length of `main`, dr that of `second`; both are more than 1. cf and cr
             are −1 or below g. With `whole`, g is the length itself and nothing is wrapped.
    rots     x[out] becomes (j + c) mod g + (i − j) with c between −g and g.

Both have the identity, too, where argument and result have one shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import Work, distinct_rows, require, whole_numbers
from warploom.trust.expression import Expression
from warploom.trust.terms import UNDEFINED, ZERO

Numbers = npt.NDArray[np.int64]
Shape = tuple[int, ...]

FAMILIES = ("xforms", "rots")
_FAMILY = {"family", "axes", "whole", "argument"}
MOST_HELD = 1 << 24  # entries of all tables that are held at one time: 128 MiB
_FEW = 1 << 18  # entries that are held before equal tables are looked for


def tables_of(
    said: Any, name: str, cells: Shape, args: tuple[Shape, ...], work: Work, room: Work
) -> Numbers:
    """Different gathers, one a row: offsets through all arguments laid end to end, or what is
    none. `room`: for the entries that are held."""
    if isinstance(said, dict):
        require(set(said) == _FAMILY, f"the family of {name} has other parts than it should")
        made = _family(said, name, cells, args, _Room(work, room))
    else:
        require(isinstance(said, list) and len(said) > 0, f"{name} has nothing to choose from")
        lengths = [math.prod(shape) for shape in args]
        _Room(work, room).for_more(len(said), cells)
        made = iter([np.stack([table_of(each, name, cells, lengths, work) for each in said])])
    found, pending = np.zeros((0, math.prod(cells)), np.int64), list[Numbers]()
    for some in made:
        pending.append(some)
        if sum(each.size for each in pending) > max(_FEW, found.size):
            found, pending = _united(found, pending, room), []
    return _united(found, pending, room)


def _united(found: Numbers, more: list[Numbers], room: Work) -> Numbers:
    """All different tables; those that were there already are let go."""
    together = distinct_rows(np.concatenate([found, *more]))
    room.take(together.size - found.size - sum(each.size for each in more))
    return together


@dataclass(frozen=True)
class _Room:
    """What making tables takes: asked before they are made."""

    work: Work
    room: Work

    def for_more(self, tables: int, cells: Shape) -> None:
        self.work.take(tables * math.prod(cells))
        self.room.take(tables * math.prod(cells))


def table_of(
    reads: Any, name: str, cells: Sequence[int], lengths: Sequence[int], work: Work
) -> Numbers:
    """What each cell reads: an offset through all arguments laid end to end, or what is none."""
    size = math.prod(cells)
    if set(reads) == {"table"}:
        table = whole_numbers(reads["table"])
        require(table.shape == (size,), f"the table of {name} lacks cells")
        require(int(table.min()) >= UNDEFINED, f"the table of {name} reads nothing")
        return np.where(table < sum(lengths), table, UNDEFINED)
    require(set(reads) == {"argument", "offset"}, f"{name} says not what it reads")
    work.take(len(cells) * size)
    places = [axis.reshape(-1) for axis in np.indices(tuple(cells))]
    known = {f"x{axis}": place for axis, place in enumerate(places)}
    which, offset = (
        np.broadcast_to(Expression(reads[part], known, size, work).value, (size,)) for part in
        ("argument", "offset")
    )  # fmt: skip
    require(bool(((which >= 0) & (which <= len(lengths))).all()), "an argument is none")
    starts = np.cumsum([0, *lengths])
    length = np.array([*lengths, 1])[which]
    inside = (offset >= 0) & (offset < length)
    found = np.where(inside, starts[which] + offset, UNDEFINED)
    return np.where(which == len(lengths), ZERO, found)


# -- families --------------------------------------------------------------------------------------


def _family(
    said: dict[str, Any], name: str, cells: Shape, args: tuple[Shape, ...], room: _Room
) -> Iterator[Numbers]:
    """Their tables, some at a time."""
    axes, whole, family = said["axes"], said["whole"], said["family"]
    require(family in FAMILIES and type(whole) is bool, f"{name} has a family that is none")
    require(said["argument"] == 0 and len(args) == 1, f"{name} reads other than one argument")
    shape = args[0]
    fits = isinstance(axes, list) and len(axes) == 3 and len(shape) == len(cells)
    fits = fits and all(type(axis) is int and 0 <= axis < len(shape) for axis in axes)
    require(fits, f"the family of {name} has axes that are none")
    main, second, out = axes
    same = all(n == m for axis, (n, m) in enumerate(zip(shape, cells, strict=True)) if axis != out)
    require(same, f"the family of {name} changes more than one axis")
    room.work.take(len(cells) * math.prod(cells))
    at = np.indices(cells).reshape(len(cells), -1)
    groups = [shape[main]] if whole else _divisors(shape[main])
    slow = _divisors(shape[second])
    if shape == cells:
        room.for_more(1, cells)
        yield _read(shape, at, out, at[out][None])
    for group in groups:
        if family == "rots":
            room.for_more(2 * group - 1, cells)
            moved = [_turned(at[main], group, c) for c in range(1 - group, group)]
            yield _read(shape, at, out, np.array(moved))
            continue
        for wrap, rate in product([False] if whole else [False, True], slow):
            room.for_more((group + 1) ** 2, cells)
            yield _read(shape, at, out, _fanned(at[main], at[second], group, rate, wrap))


def _divisors(number: int) -> list[int]:
    return [d for d in range(2, number + 1) if number % d == 0]


def _turned(i: Numbers, group: int, by: int) -> Numbers:
    j = i % group
    return (j + by) % group + i - j


def _fanned(i: Numbers, k: Numbers, group: int, slow: int, wrap: bool) -> Numbers:
    """For all factors of a group size, one a row."""
    j = i % group
    rows = []
    for fan in (*range(group), -1):
        common = math.gcd(group, abs(fan))
        steps = fan * j + j // (group // common)
        for rate in (*range(group), -1):
            turn = rate * k + k // slow
            rows.append((steps + (turn % common if wrap else turn)) % group + i - j)
    return np.array(rows)


def _read(shape: Shape, at: Numbers, out: int, values: Numbers) -> Numbers:
    """The offsets at which cells read whose coordinate `out` is one of these values."""
    pace = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    rest = sum(at[axis] * pace[axis] for axis in range(len(shape)) if axis != out)
    inside = (values >= 0) & (values < shape[out])
    found: Numbers = np.where(inside, rest + values * pace[out], UNDEFINED)
    return found
