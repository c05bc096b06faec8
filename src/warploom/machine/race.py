"""Data races by happens-before: two threads, one place, a write, and nothing that orders the two.

Both evaluators feed it: accesses of many threads at once, and barriers. An access and an earlier
one race if they are of different threads, overlap, at least one writes, not both are atomic, and
the earlier is not ordered before the later (`clock`). Every such pair is seen, whatever the order
in which an evaluator happens to run its threads; what is reported is one race for each pair of
instructions.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from warploom.errors import InternalError
from warploom.machine.clock import Array, Clocks, Ints, Layout, Nested, Vector
from warploom.machine.shadow import ByLabel, History, Latest, Store


class Kind(Enum):
    """What an access does; atomic ones do not race with each other."""

    READ = "read"
    WRITE = "write"
    ATOMIC_READ = "atomic read"
    ATOMIC = "atomic"  # reads and writes

    @property
    def writes(self) -> bool:
        return self in (Kind.WRITE, Kind.ATOMIC)

    @property
    def atomic(self) -> bool:
        return self in (Kind.ATOMIC, Kind.ATOMIC_READ)

    def conflicts(self, other: Kind) -> bool:
        return (self.writes or other.writes) and not (self.atomic and other.atomic)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a race. `label` is whatever the evaluator calls the instruction."""

    kind: Kind
    block: int
    thread: int  # within the block
    label: Hashable = None


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to byte `offset` of a region, in the order in which they were seen."""

    region: Hashable
    offset: int
    first: Side
    second: Side


@dataclass(slots=True)
class _Shadow:
    """The accesses to one region, in cells of `unit` bytes that no access so far has divided."""

    size: int
    unit: int
    stores: dict[Kind, Store] = field(default_factory=dict)

    def refine(self, unit: int) -> None:
        for store in self.stores.values():
            store.refine(self.unit // unit)
        self.unit = unit


class RaceDetector:
    """The accesses of one launch.

    `labels` is how many instructions there can be. `partial`: threads may synchronise in other
    groups than whole blocks and whole warps. `every`: a race for every pair of instructions is
    wanted, not only that there is one.
    """

    def __init__(
        self, blocks: int, block_threads: int, lanes: int, labels: int, *, partial: bool = False,
        every: bool = False,
    ) -> None:  # fmt: skip
        self.layout = Layout(blocks, block_threads, lanes, labels)
        self.partial = partial
        self.every = every
        self.races: list[Race] = []
        self._clock_type = Vector if partial else Nested
        self._store_type = History if partial else ByLabel if every else Latest
        self._shadows: dict[Hashable, _Shadow] = {}
        self._labels: dict[Hashable, int] = {}
        self._names: list[Hashable] = []
        self._seen: set[frozenset[tuple[Kind, Hashable]]] = set()

    # -- batches and synchronisation ----------------------------------------------------------

    def start(self, first_block: int, blocks: int) -> None:
        """The next blocks run; from now on threads are numbered from the first of these."""
        self.clocks: Clocks = self._clock_type(self.layout, first_block, blocks)

    def forget(self, region: Hashable) -> None:
        """The region is new memory from now on."""
        self._shadows.pop(region, None)

    def block_barrier(self, blocks: Array) -> None:
        """Whole blocks, numbered from the first of the batch, pass a barrier."""
        self.clocks.block_barrier(blocks)

    def warp_barrier(self, threads: Array) -> None:
        """The whole warps of these threads pass a barrier."""
        self.clocks.warp_barrier(threads)

    @property
    def vector(self) -> Vector:
        """The clocks for all other ways to synchronise: `release`, `acquire` and `meet`."""
        if not isinstance(self.clocks, Vector):
            raise InternalError("the race detector was not made for partial barriers")
        return self.clocks

    # -- accesses -----------------------------------------------------------------------------

    def access(
        self, region: Hashable, size: int, threads: Array, start: Array, width: int, kind: Kind,
        label: Hashable = None,
    ) -> list[Race]:  # fmt: skip
        """Notes that each thread (once, in order) touches `width` bytes from byte `start` on.

        Gives the races that are new.
        """
        if not threads.size:
            return []
        ends = width | int(np.bitwise_or.reduce(start))
        unit = ends & -ends  # the largest power of two that divides width and places
        shadow = self._shadows.get(region)
        if shadow is None:
            shadow = self._shadows[region] = _Shadow(size, unit)
        elif unit < shadow.unit:
            shadow.refine(unit)
        mine = self.clocks.now(threads) | np.int64(self._number(label) << self.layout.code_bits)
        first = start >> (shadow.unit.bit_length() - 1)
        found: list[Race] = []
        for part in range(width // shadow.unit):
            found += self._cells(region, shadow, threads, first + part, kind, mine)
        self.races += found
        return found

    def _number(self, label: Hashable) -> int:
        number = self._labels.get(label)
        if number is None:
            number = self._labels[label] = len(self._names)
            self._names.append(label)
            if number >= self.layout.labels:
                raise InternalError("more instructions than the race detector was made for")
        return number

    def _cells(
        self, region: Hashable, shadow: _Shadow, threads: Array, cells: Array, kind: Kind,
        mine: Ints,
    ) -> list[Race]:  # fmt: skip
        found = [
            (other, one.entry, one.position)
            for other, store in shadow.stores.items()
            if kind.conflicts(other)
            for one in store.earlier(cells, threads, self.clocks)
        ]
        store = shadow.stores.get(kind)
        if store is None:
            store = self._store_type(-(-shadow.size // shadow.unit), self.layout)
            shadow.stores[kind] = store
        at, others = store.note(cells, mine, self.clocks, kind is Kind.WRITE)
        if kind is Kind.WRITE and at.size:
            found.append((kind, int(others[0]), int(at[0])))
        races = (
            Race(
                region, int(cells[position]) * shadow.unit, self._side(other, entry),
                self._side(kind, int(mine[position])),
            )
            for other, entry, position in found
        )  # fmt: skip
        return [race for race in races if self._is_new(race)]

    def _side(self, kind: Kind, entry: int) -> Side:
        return Side(kind, *self.layout.thread(entry), self._names[self.layout.label(entry)])

    def _is_new(self, race: Race) -> bool:
        pair = frozenset((side.kind, side.label) for side in (race.first, race.second))
        fresh = pair not in self._seen
        self._seen.add(pair)
        return fresh
