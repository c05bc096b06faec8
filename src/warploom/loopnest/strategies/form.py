"""What a strategy is: a name, a condition on the program, and partial decisions.

A strategy gives variants: the program with tiles for its axes, and decisions as `--fix` takes them.
What these leave open is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from warploom.loopnest import ir
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import Remake, program_of, same_with_tiles
from warploom.machine.record import CUDA

Tiles = Sequence[Sequence[int]]
# Spaces of decisions: loops; products of warp groups, as they are or with rows for columns; those
# of warps; both products of attention, and those with few queries; products of packed weights.
LOOPS, MATRIX, TURNED, ATTENTION = "loops", "matrix", "matrix turned", "attention"
WARPS, PACKED, WEIGHTS = "matrix by warps", "attention packed", "weights"


class NotMeantError(Exception):
    """A strategy is not meant for a program; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A program whose axes have tiles, and what is decided of it; `after` is the program of another
    kernel that runs when this one has ended, of which everything that counts is decided. `space`
    says which decisions there are: those of loops, or those of products by warp groups."""

    strategy: str
    program: ir.Program
    fixes: tuple[str, ...] = ()
    after: Variant | None = None
    space: str = LOOPS

    def __str__(self) -> str:
        return self.strategy


@dataclass(frozen=True, slots=True)
class Room:
    """How many processors there are, bytes for arrays between kernels (None: any number), whether
    warp groups multiply matrices that tensor copies bring, and whether copies to shared memory may
    be asynchronous."""

    processors: int = 132
    between: int | None = None
    warp_groups: bool = False
    copies: bool = False


@dataclass(frozen=True, slots=True)
class Strategy:
    """`variants` raises NotMeantError where the condition does not hold. `free` says whether the
    tiles of the program may be replaced; otherwise only axes without tiles get some."""

    name: str
    what: str
    variants: Callable[[ir.Program, bool, Room], list[Variant]] = field(repr=False)


def tiled(
    program: ir.Program,
    wanted: Mapping[ir.Axis, Tiles],
    free: bool,
    remade: Mapping[ir.Axis, Remake] | None = None,
    held: frozenset[ir.Axis] = frozenset(),
) -> ir.Program:
    """The program with these tiles, and some axes held as a whole. Tiles that a user gave stay,
    and have to be of as many levels. Where some tiling does not divide the axis, the last tile may
    be partial."""
    new: dict[ir.Axis, Remake] = dict(remade or {})
    for axis, tiles in wanted.items():
        if axis.tiles and not free:
            if len(axis.tiles) != len(tiles):
                raise NotMeantError(
                    f"axis '{axis}' has {len(axis.tiles)} levels of tiles, not {len(tiles)}"
                )
            continue
        room = fitting(axis.size, tiles)
        if room is None:
            raise NotMeantError(f"axis '{axis}' of {axis.size} has no room for its tiles")
        divides = all(axis.size % math.prod(row) == 0 for row in product(*room))
        new[axis] = same_with_tiles(room, not divides)
    return program_of(replace(Computation.of(program), held=held), new, published=False)


def fitting(size: int, tiles: Tiles) -> Tiles | None:
    """The sizes that some tiling of an axis has, None where there is no tiling."""
    rows = [row for row in product(*tiles) if math.prod(row) <= size]
    if not rows:
        return None if tiles else tiles
    return [sorted({row[level] for row in rows}) for level in range(len(tiles))]


def thread_counts(size: int, near: int) -> tuple[int, ...]:
    """How many threads lie along an axis: powers of two, and what cuts it better than these."""
    usual = (4, 8, 16, 32)
    if size <= near * usual[-1]:
        return usual
    others = [n for n in (5, 10, 12, 20, 24, 25) if size % (near * n) == 0]
    if size % (near * usual[-1]):
        others += [12, 24]
    return tuple(sorted({*usual, *others}))


def dims_of(each: ir.Instruction, axis: ir.Axis) -> list[ir.Dim]:
    """The loops of an instruction along the tiles of an axis, the outermost first."""
    return [dim for dim in each.dims if dim.axis is axis and dim.tile is not None]


def named(program: ir.Program, axis: ir.Axis) -> ir.Axis:
    """The axis of the same name in a program that was written again."""
    return next(each for each in program.axes if each.name == axis.name)


def folds_of(program: ir.Program) -> list[ir.Instruction]:
    return [each for each in program.instructions if each.running is not None]


def stores_of(program: ir.Program) -> list[ir.Instruction]:
    return [each for each in program.instructions if isinstance(each.action, ir.Store)]


def loads_of(program: ir.Program) -> list[ir.Instruction]:
    return [each for each in program.instructions if isinstance(each.action, ir.Load)]


def place_of(each: ir.Instruction) -> dict[ir.Axis, int]:
    """How far apart neighbours along each axis lie in the array of a load or store."""
    assert isinstance(each.action, ir.Load | ir.Store)
    return each.action.access.steps


def wide_sizes(accesses: Sequence[ir.Instruction]) -> tuple[int, ...]:
    """How many neighbours make half of the widest access, and how many all of it."""
    most = CUDA.access_bytes // min(each.dtype.bytes for each in accesses)
    return tuple(n for n in (most // 2, most) if n > 1)


def can_be_vector(each: ir.Instruction, axis: ir.Axis, width: int = 4) -> bool:
    """Whether neighbours along an axis, which may have a partial tile, are one aligned access."""
    assert isinstance(each.action, ir.Load | ir.Store)
    access = each.action.access
    others = [f for other, f in access.near.factors.items() if other is not axis] + access.multiples
    whole = math.gcd(access.near.offset, axis.size, *others)
    fits = width * each.dtype.bytes <= CUDA.access_bytes
    named = any(axis in one.axes for one in access.named)
    is_near = access.near.factors.get(axis) == 1 and fits and not named
    return is_near and whole % width == 0
