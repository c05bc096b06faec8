"""A problem in the coordinates of a frame: which sets of words are wanted together, how often.

Two sets that differ by a translation cost the same in every linear layout, so they are one demand;
and where the set is a subspace U, a linear layout with T and K serves it in 2^(dim(U∩K) − dim(U∩T))
wavefronts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from warploom.index.bits import BitMap
from warploom.layout.language.evaluate import Numbers, distinct
from warploom.layout.patterns.access import IDLE, pieces
from warploom.layout.solver.frame import Frame, Free
from warploom.layout.solver.subspace import Span, basis_of
from warploom.layout.wavefronts.cost import Meter
from warploom.search.budget import governing_budget


@dataclass(frozen=True, slots=True)
class Demand:
    """Points (with 0) that are wanted together; `basis` spans them if they are a subspace. `weight`
    is what one wavefront costs, `least` are wavefronts that no layout goes below."""

    access: int
    points: tuple[int, ...]
    basis: tuple[int, ...] | None
    weight: int
    least: int


@dataclass(frozen=True, slots=True)
class Demands:
    """Costs are whole numbers here; a cost divided by `scale` is what the user's weights say."""

    frame: Frame
    demands: tuple[Demand, ...]
    scale: int


def demands_of(
    meter: Meter, floors: Sequence[Numbers], frame: Frame, reorder: bool = True
) -> Demands:
    """The demands; if wished, in another basis of the frame that decides them early. `floors`: the
    least wavefronts of each group of each access."""
    scale = lcm(*(weight.denominator for weight in meter.weights))
    found: list[Demand] = []
    for number, weight in enumerate(meter.weights):
        found += _of_access(meter, floors[number], frame, number, int(weight * scale))
    demands = Demands(frame, tuple(found), scale)
    return _reordered(demands) if reorder else demands


def _of_access(
    meter: Meter, least: Numbers, frame: Frame, number: int, weight: int
) -> list[Demand]:
    elements, coordinates = meter.groups[number].elements, frame.coordinates()
    rows = translated(elements, least, coordinates)
    known = {tuple(np.frombuffer(row, dtype=np.int64).tolist()): n for row, n in rows.items()}
    merged: Counter[tuple[bytes, int]] = Counter()
    for (*row, floor), count in sorted(known.items()):
        governing_budget().check()
        merged[(_normal(distinct(np.array(row))).tobytes(), floor)] += count
    found = []
    for (key, floor), count in merged.items():
        points = np.frombuffer(key, dtype=np.int64)
        basis = basis_of(points)
        found.append(
            Demand(
                number,
                tuple(points.tolist()),
                None if basis is None else tuple(basis),
                weight * count,
                floor,
            )
        )
    return found


def translated(
    elements: Numbers, least: Numbers, coordinates: Callable[[Numbers], Numbers] = lambda x: x
) -> Counter[bytes]:
    """How often each group of elements is wanted, but for translations: moved to 0, in order, then
    its least. Equal ones are found by their bytes: sorting all would take most of the time."""
    rows: Counter[bytes] = Counter()
    for piece in pieces(*elements.shape):
        rows.update(_rows(elements[piece], least[piece], coordinates))
    return rows


def _rows(
    elements: Numbers, least: Numbers, coordinates: Callable[[Numbers], Numbers]
) -> Iterator[bytes]:
    wanted = elements != IDLE
    # An idle place repeats a busy one of its row: sets do not count how often.
    busy = elements[np.arange(len(elements)), wanted.argmax(axis=1)]
    points = coordinates(np.where(wanted, elements, busy[:, None]))
    moved = np.sort(points ^ points[:, :1], axis=1)
    return (row.tobytes() for row in np.column_stack([moved, least]).astype(np.int64))


def _normal(points: Numbers) -> Numbers:
    """The first in order of a set's translations that contain 0; a subspace has only one."""
    if basis_of(points) is not None:
        return points
    moved = np.sort(points[:, None] ^ points[None], axis=1)
    return np.asarray(moved[np.lexsort(moved.T[::-1])[0]])


# -- the order of the basis ------------------------------------------------------------------------


def _reordered(demands: Demands) -> Demands:
    """Another basis of what is free, in which subspaces that are wanted are decided early.

    That is done where all free vectors may have the same places; the search is right in any basis.
    """
    frame = demands.frame
    if len({each.places for each in frame.free}) > 1 or not frame.free:
        return demands
    start, count = frame.place_bits, len(frame.free)
    chosen = _chosen(demands, start, count)
    # From old coordinates to new: the places stay, the free ones are read in the new basis.
    old = BitMap((*frame.fixed, *(v << start for v in chosen)), 0, start + count, (start + count,))
    change = old.inverse()
    new = tuple(Free(_combined(frame, v), frame.free[0].places) for v in chosen)
    moved = []
    for demand in demands.demands:
        points = np.sort(change(np.array(demand.points, dtype=np.int64)))
        basis = None if demand.basis is None else tuple(change(v) for v in demand.basis)
        moved.append(replace(demand, points=tuple(points.tolist()), basis=basis))
    return Demands(replace(frame, free=new), tuple(moved), demands.scale)


def _combined(frame: Frame, chosen: int) -> int:
    result = 0
    for place, each in enumerate(frame.free):
        result ^= each.vector if chosen >> place & 1 else 0
    return result


def _chosen(demands: Demands, start: int, count: int) -> list[int]:
    """One vector after another, each in as many of the subspaces as there can be."""
    kept = sorted(
        (each for each in demands.demands if each.basis is not None),
        key=lambda each: -each.weight * each.least,
    )
    spaces = [[v >> start for v in each.basis or ()] for each in kept[:64]]
    known, found = Span(), list[int]()
    candidates = list(dict.fromkeys(v for space in spaces for v in space if v))
    candidates += [1 << bit for bit in range(count)]
    while len(found) < count:
        wider = [Span([*found, *space]) for space in spaces]
        best = max(
            (v for v in candidates if v not in known),
            key=lambda v: sum(v in space for space in wider),
        )
        known.add(best)
        found.append(best)
        candidates = [v for v in candidates if v not in known]
    return found
