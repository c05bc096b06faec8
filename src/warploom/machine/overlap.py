"""Launches that overlap: a launch may begin before the one before it has ended.

What the earlier launch did to an array is done for those threads of the later one that waited for
it, or that heard of it from one that did. `Footprint` keeps what a launch touched, `Overlap` asks
which of it a later launch meets. That an earlier launch has ended says that the one before it has,
too, only if some thread of it waited.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.clock import Array, Ints, Mask
from warploom.machine.memory import Memory, Region
from warploom.machine.semantics import Kind

Bytes = npt.NDArray[np.uint8]
SideOf = Callable[[Kind, int], Any]  # who made an access, for a person


@dataclass(slots=True)
class Footprint:
    """What one launch touched: for each array and kind of access, byte by byte the last entry.

    Arrays are kept, so that none takes the address of another while this is asked.
    """

    before: tuple[Footprint, ...] = ()  # launches that this one may overlap
    waited: bool = False  # some thread waited for those
    planes: dict[tuple[Hashable, Kind], Ints] = field(default_factory=dict)
    arrays: dict[Hashable, Bytes] = field(default_factory=dict)
    side: SideOf | None = None

    def note(
        self, region: Hashable, size: int, start: Array, width: int, kind: Kind, entries: Ints
    ) -> None:
        plane = self.planes.get((region, kind))
        if plane is None:
            plane = self.planes[region, kind] = np.zeros(size, np.int64)
        for part in range(width):
            plane[start + part] = entries

    def end(self, regions: Iterable[Region], side: SideOf) -> None:
        """The launch has run: its arrays are found by their place from now on."""
        self.arrays = {region.base: region.data for region in regions}
        self.planes = {key: plane for key, plane in self.planes.items() if key[0] in self.arrays}
        self.side = side

    def chain(self) -> Iterator[Footprint]:
        """This launch, and those that may still run while it does."""
        yield self
        for each in self.before:
            yield from each.chain()

    def ended(self) -> Iterator[Footprint]:
        """Those that have ended when this one has."""
        yield self
        if self.waited:
            for each in self.before:
                yield from each.ended()


@dataclass(frozen=True, slots=True)
class Meeting:
    """An access of an earlier launch, and the position of the one that meets it.

    Where both are `strong` they do not race, but nothing says which of them comes first.
    """

    position: int
    offset: int
    side: Any
    strong: bool


@dataclass(slots=True)
class Overlap:
    """The launches that the one that runs may overlap, each with a number of who tells its end."""

    launches: list[tuple[Footprint, int]]
    _planes: dict[tuple[int, Hashable], list[tuple[Kind, Ints]]]

    @staticmethod
    def of(before: Footprint, memory: Memory, number: Callable[[], int]) -> Overlap:
        launches = [(each, number()) for each in before.chain()]
        planes: dict[tuple[int, Hashable], list[tuple[Kind, Ints]]] = {}
        for footprint, source in launches:
            for (base, kind), plane in footprint.planes.items():
                for region in memory.regions:
                    shared = _shared(region.data, footprint.arrays[base], plane)
                    if shared is not None:
                        planes.setdefault((source, region.base), []).append((kind, shared))
        return Overlap(launches, planes)

    @property
    def awaited(self) -> list[int]:
        """Who tells those that wait."""
        ended = {id(each) for each in self.launches[0][0].ended()}
        return [source for footprint, source in self.launches if id(footprint) in ended]

    def met(
        self, region: Hashable, start: Array, width: int, kind: Kind,
        untold: Callable[[int], Mask],
    ) -> Iterator[Meeting]:  # fmt: skip
        """Accesses of launches whose end a thread was not told of: the first of each kind."""
        for footprint, source in self.launches:
            for other, plane in self._planes.get((source, region), ()):
                clash = kind.writes or other.writes
                touched = plane[start[:, None] + np.arange(width)] if clash else None
                if touched is None or not touched.any():
                    continue
                assert footprint.side is not None
                at = np.flatnonzero(touched.any(axis=1) & untold(source))
                if at.size:
                    position = int(at[0])
                    byte = int(touched[position].astype(bool).argmax())
                    side = footprint.side(other, int(touched[position, byte]))
                    strong = kind.strong and other.strong
                    yield Meeting(position, int(start[position]) + byte, side, strong)


def _shared(array: Bytes, other: Bytes, plane: Ints) -> Ints | None:
    """What is known of the bytes of another array, for those that this one has, too."""
    mine, theirs = array.ctypes.data, other.ctypes.data
    first, last = max(mine, theirs), min(mine + array.size, theirs + other.size)
    if first >= last:
        return None
    found = np.zeros(array.size, np.int64)
    found[first - mine : last - mine] = plane[first - theirs : last - theirs]
    return found
