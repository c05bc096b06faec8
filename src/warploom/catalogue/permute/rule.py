"""A movement → the launches that do it: which kernel, which tile, in which order of blocks.

Everything follows from sizes, strides, the bytes of an element and where arrays begin. All kernels
that could do a movement say what they are expected to cost (`cost.py`), and the cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.catalogue.permute import runs, tiles
from warploom.catalogue.permute.launch import Candidate, Part, Place
from warploom.catalogue.permute.problem import WIDEST, Axis, Movement, slabs, widened


def parts(moved: Movement, x_late: int = 0, y_late: int = 0, *, plain: bool = False) -> list[Part]:
    """The launches of a movement; `late` are the bytes by which x and y begin after a multiple of
    128; `plain` kernels move one element at a time, whatever the strides are."""
    return [_part(place, plain) for place in places(moved, x_late, y_late, plain=plain)]


def places(
    moved: Movement, x_late: int = 0, y_late: int = 0, *, plain: bool = False
) -> list[Place]:
    """The movements that a movement is made of, a launch for each."""
    if not moved.count:
        return []
    return [Place(slab, x_late, y_late) for body in _bodies(moved, plain) for slab in slabs(body)]


def candidates(moved: Movement, x_late: int = 0, y_late: int = 0) -> list[Candidate]:
    """All launches that would do a movement of one part, the cheapest first; the one that takes
    whatever there is comes last."""
    place = Place(moved, x_late, y_late)
    found: list[Candidate] = [*tiles.candidates(place), *runs.candidates(place)]
    return [*sorted(found, key=lambda each: each.cost), tiles.strided(place)]


def _part(place: Place, plain: bool) -> Part:
    if plain:
        return tiles.strided(place).part()
    return candidates(place.moved, place.x_late, place.y_late)[0].part()


def _bodies(moved: Movement, plain: bool) -> Iterator[Movement]:
    """A copy of one row in words of 16 bytes, and the rest of it; others as they are."""
    axis = moved.axes[0] if moved.axes else Axis(1, 1, 1)
    times = min(WIDEST, moved.aligned) // moved.bytes
    if (
        moved.to is not None
        or plain
        or len(moved.axes) != 1
        or (axis.read, axis.write) != (1, 1)
        or times < 2
    ):
        yield moved
        return
    whole = axis.size // times * times
    if whole:
        yield widened(replace(moved, axes=(replace(axis, size=whole),)))
    if axis.size > whole:
        rest = replace(axis, size=axis.size - whole)
        yield replace(
            moved,
            axes=(rest,),
            first_read=moved.first_read + whole,
            first_write=moved.first_write + whole,
        )
