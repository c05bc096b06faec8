"""Happens-before among the threads of a batch of blocks: stamps of accesses, and who saw which.

Every access carries an *entry*: when it happened on its thread's own clock, by which instruction,
and which thread it was.

     63       .         .                .        .        0
    |  stamp  |  label  |  block of grid |  warp  |  lane  |      0 is no access

A stamp grows whenever the thread synchronises. So an access of thread u is ordered before what
thread t does now if they are the same thread, or if u's stamp is lower than what t has seen of u.
`Nested` knows barriers of whole blocks and of whole warps, for which one number per block and per
warp is all there is to know; they order nothing between blocks. `Vector` knows any synchronisation,
as a clock per thread: what it has seen of every thread of its block, and beside it what it learned
through flags, of any block (`knowledge`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from warploom.errors import UnsupportedError
from warploom.machine.knowledge import Knowledge, Ticks, joined

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ALL = slice(None)
FEW_NUMBERS = 4  # that are looked for one by one
RUNS = 8  # elements of a run of equal threads, on the average, that is worth looking for
IntOrInts = TypeVar("IntOrInts", int, Ints)


@dataclass(frozen=True)
class Layout:
    """How the threads of a launch are cut into blocks and warps, and how that is written as bits.

    `labels` is how many instructions there can be.
    """

    blocks: int
    block_threads: int
    lanes: int
    labels: int
    cluster: int = 1  # blocks of a cluster; they are numbered one after the other

    @cached_property
    def lane_bits(self) -> int:
        return (self.lanes - 1).bit_length()

    @cached_property
    def inner_bits(self) -> int:
        """Bits of warp and lane, which identify a thread within its block."""
        return self.lane_bits + (-(-self.block_threads // self.lanes) - 1).bit_length()

    @cached_property
    def code_bits(self) -> int:
        """Bits of block, warp and lane, which identify a thread within the grid."""
        return self.inner_bits + (self.blocks - 1).bit_length()

    @cached_property
    def stamp_shift(self) -> int:
        return self.code_bits + (self.labels - 1).bit_length()

    @cached_property
    def code_mask(self) -> int:
        return (1 << self.code_bits) - 1

    def codes(self, first_block: int, blocks: int) -> Ints:
        """The lowest bits of the entries of a batch, thread by thread."""
        inside = np.arange(self.block_threads, dtype=np.int64)
        inner = (inside // self.lanes << self.lane_bits) | inside % self.lanes
        block = np.arange(first_block, first_block + blocks, dtype=np.int64) << self.inner_bits
        return (block[:, None] | inner).reshape(-1)

    def thread(self, entry: int) -> tuple[int, int]:
        """Block and number within the block."""
        code = entry & self.code_mask
        inner = code & ((1 << self.inner_bits) - 1)
        warp, lane = inner >> self.lane_bits, inner & ((1 << self.lane_bits) - 1)
        return code >> self.inner_bits, warp * self.lanes + lane

    def block(self, entries: Array) -> Array:
        """The block of the grid, for each entry."""
        number: Array = (entries & np.int64(self.code_mask)) >> self.inner_bits
        return number

    def inside(self, entries: Array) -> Array:
        """The number of the thread within its block, for each entry."""
        inner = entries & np.int64((1 << self.inner_bits) - 1)
        lane = inner & np.int64((1 << self.lane_bits) - 1)
        number: Array = (inner >> self.lane_bits) * self.lanes + lane
        return np.minimum(number, self.block_threads - 1)

    def label(self, entry: IntOrInts) -> IntOrInts:
        """The instruction's label, for one entry or for many."""
        return entry >> self.code_bits & ((1 << self.stamp_shift - self.code_bits) - 1)

    def differ(self, a: Array, b: Array) -> Array:
        """0 where two entries are of one thread; below 1 << inner_bits where of one block, …"""
        different: Array = a ^ b
        different &= np.int64(self.code_mask)
        return different


class Clocks(ABC):
    """Clocks of one batch; threads are numbered through the batch, block by block."""

    def __init__(self, layout: Layout, first_block: int, blocks: int, ticks: int = 0) -> None:
        self.layout = layout
        self.first_block = first_block
        self.blocks = blocks
        self._codes = layout.codes(first_block, blocks)
        self.ticks = ticks
        start = self._tick()
        self.entries = self._codes | start  # what an access of each thread is stamped with now
        self._floor = np.full(blocks * layout.block_threads, start, np.int64)  # of its block
        self.lowest_floor = int(start)

    def _tick(self) -> np.int64:
        """A new time, later than all before; in the place that stamps have in entries."""
        self.ticks += 1
        if self.ticks >> max(0, 63 - self.layout.stamp_shift):
            raise UnsupportedError(
                "races cannot be followed over so many barriers",
                advice="launch fewer blocks: their number and that of the barriers share 63 bits",
            )
        return np.int64(self.ticks << self.layout.stamp_shift)

    def now(self, threads: Array) -> Ints:
        """Entries of the given threads; all of them come in order."""
        return self.entries if threads.size == self.entries.size else self.entries[threads]

    def block_barrier(self, blocks: Array) -> None:
        """All threads of these blocks, those that have left included, pass one barrier."""
        now = self._tick()
        rows = (self.blocks, self.layout.block_threads)
        self._floor.reshape(rows)[blocks] = now
        self.lowest_floor = int(self._floor.min())
        self.entries.reshape(rows)[blocks] = self._codes.reshape(rows)[blocks] | now

    def live(self, entries: Array) -> Mask:
        """Whether an access is one of this batch that no barrier of its block came after."""
        row = ((entries & np.int64(self.layout.code_mask)) >> self.layout.inner_bits) - (
            self.first_block
        )
        here = (row >= 0) & (row < self.blocks)
        floor = self._floor[np.where(here, row, 0) * self.layout.block_threads]
        return np.asarray(here & (entries >= floor))

    @abstractmethod
    def warp_barrier(self, threads: Array) -> None:
        """The warps of these threads, whole, pass one barrier each."""

    @abstractmethod
    def unordered(self, entries: Array, threads: Array) -> Mask:
        """Whether each earlier access is another thread's and not ordered before now."""


class Nested(Clocks):
    """Barriers of whole blocks and whole warps: all lanes of a warp have one stamp."""

    def warp_barrier(self, threads: Array) -> None:
        now = self._tick()
        warp = self._codes >> self.layout.lane_bits
        chosen = np.isin(warp, warp[threads])
        self.entries[chosen] = self._codes[chosen] | now

    def unordered(self, entries: Array, threads: Array) -> Mask:
        layout = self.layout
        mine = self.now(threads)
        differ = layout.differ(entries, mine)
        bad: Mask = differ >= 1 << layout.inner_bits  # of another block
        if bad.any():
            bad &= entries != 0
        every = threads.size == self.entries.size
        live = entries >= (self._floor if every else self._floor[threads])
        if live.any():
            other_warp = differ >= 1 << layout.lane_bits
            same_time = entries ^ mine < 1 << layout.stamp_shift
            bad |= live & (other_warp | (same_time & (differ != 0)))
        return bad


@dataclass(slots=True)
class Board:
    """What is known at some meeting places: a row each, and what came by way of flags."""

    rows: Ticks
    beyond: dict[int, Knowledge | None]

    def wipe(self, groups: Array) -> None:
        self.rows[groups] = 0
        for group in groups.tolist():
            self.beyond.pop(group, None)


def _names(threads: Array) -> tuple[Array, Array]:
    """Each thread once, and which of them it is everywhere; they most often come in long runs."""
    fresh = np.ones(threads.size, bool)
    np.not_equal(threads[1:], threads[:-1], out=fresh[1:])
    heads = np.flatnonzero(fresh)
    if RUNS * heads.size > threads.size:
        return np.unique(threads, return_inverse=True)
    names, place = np.unique(threads[heads], return_inverse=True)
    return names, np.repeat(place, np.diff(np.append(heads, threads.size)))


def _places(numbers: Array, count: int) -> Iterable[Array | slice]:
    """Where each of so many numbers stands."""
    if count == 1:
        return [ALL]
    if count <= FEW_NUMBERS:
        return [np.flatnonzero(numbers == each) for each in range(count)]
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, count)))


class Vector(Clocks):
    """Any synchronisation: `seen[t, u]` is the stamp below which t has seen u of its block.

    A barrier for some threads is a release by those that arrive and an acquire by those that wait.
    """

    def __init__(self, layout: Layout, first_block: int, blocks: int, ticks: int = 0) -> None:
        super().__init__(layout, first_block, blocks, ticks)
        threads = blocks * layout.block_threads
        self._seen = np.zeros((threads, layout.block_threads), np.int32)  # ticks, not shifted
        self._beyond = np.full(threads, None, object)  # of each thread: Knowledge, or none
        self._flags = False  # whether any thread knows anything from flags

    def now(self, threads: Array) -> Ints:
        """Entries of the given threads; the same may come again and again."""
        return self.entries[threads]

    # -- meeting ------------------------------------------------------------------------------

    def new_clock(self, groups: int) -> Board:
        return Board(np.zeros((groups, self.layout.block_threads), np.int32), {})

    def release(self, threads: Array, board: Board, group: Array) -> None:
        """What each thread did and has seen until now becomes known at its meeting place."""
        if not threads.size:
            return
        self.advance(threads)
        order = np.argsort(group, kind="stable")
        names, first = np.unique(group[order], return_index=True)
        known = np.maximum.reduceat(self._seen[threads[order]], first, axis=0)
        board.rows[names] = np.maximum(board.rows[names], known)
        if self._flags:
            for name in names.tolist():
                mine = self._beyond[threads[group == name]]
                board.beyond[name] = joined(board.beyond.get(name), *mine)

    def acquire(self, threads: Array, board: Board, group: Array) -> None:
        """Each thread sees what is known at its meeting place."""
        self._seen[threads] = np.maximum(self._seen[threads], board.rows[group])
        for name, known in board.beyond.items():
            if known is not None:
                self.learn(threads[group == name], known)

    def meet(self, threads: Array, group: Array) -> None:
        """Threads of one group, all of one block, pass a barrier together."""
        names, rows = np.unique(group, return_inverse=True)
        board = self.new_clock(names.size)
        self.release(threads, board, rows)
        self.acquire(threads, board, rows)

    def warp_barrier(self, threads: Array) -> None:
        warp = self._codes >> self.layout.lane_bits
        whole = np.flatnonzero(np.isin(warp, warp[threads]))
        self.meet(whole, warp[whole])

    def block_barrier(self, blocks: Array) -> None:
        super().block_barrier(blocks)
        if self._flags:
            rows = self._beyond.reshape(self.blocks, self.layout.block_threads)
            for block in blocks.tolist():
                rows[block] = joined(*rows[block])

    # -- flags --------------------------------------------------------------------------------

    def advance(self, threads: Array) -> None:
        """What these threads do from now on is later than what they publish now."""
        now = self._tick()
        self.entries[threads] = self._codes[threads] | now
        self._seen[threads, threads % self.layout.block_threads] = self.ticks

    def view(self, threads: Array) -> Ticks:
        """How far each of these threads has seen those of its block, by barriers."""
        floor = (self._floor[threads] >> self.layout.stamp_shift).astype(np.int32)
        return np.maximum(self._seen[threads], floor[:, None])

    def beyond(self, threads: Array) -> Array:
        """What each of these threads has learned through flags."""
        return self._beyond[threads]

    def knowledge(self, thread: int) -> Knowledge:
        """All that a thread knows now; `advance` comes first, if it is to be published."""
        one = np.array([thread])
        return self.as_knowledge(thread, self.view(one)[0], self._beyond[thread])

    def as_knowledge(self, thread: int, view: Ticks, beyond: Knowledge | None) -> Knowledge:
        block = self.first_block + thread // self.layout.block_threads
        return Knowledge((block, view), () if beyond is None else (beyond,))

    def learn(self, threads: Array, known: Knowledge | None) -> None:
        """These threads come to know something."""
        if known is not None:
            self._flags = True
            made: dict[int, Knowledge | None] = {}  # most often they all knew the same before
            for thread in threads.tolist():
                before = self._beyond[thread]
                if id(before) not in made:
                    made[id(before)] = joined(before, known)
                self._beyond[thread] = made[id(before)]

    def others(self, threads: Array) -> list[int]:
        """One of each of these threads that have not learned just what the first has."""
        learned = {id(known): at for at, known in reversed([*enumerate(self._beyond[threads])])}
        del learned[id(self._beyond[threads[0]])]
        return [int(threads[at]) for at in learned.values()]

    def add_up(self, threads: Array) -> None:
        """What these threads know is worked out, so that it is not walked along again and again."""
        for known in {id(each): each for each in self._beyond[threads]}.values():
            if known is not None:
                known.flat()

    def block_number(self, thread: int) -> int:
        return self.first_block + thread // self.layout.block_threads

    # -- accesses -----------------------------------------------------------------------------

    def unordered(self, entries: Array, threads: Array) -> Mask:
        layout = self.layout
        differ = layout.differ(entries, self.now(threads))
        bad: Mask = (differ != 0) & (entries != 0)
        if not bad.any():
            return bad
        other_block = differ >> layout.inner_bits != 0
        inside = layout.inside(entries)
        seen = self._seen[threads, inside]
        stamp = entries >> layout.stamp_shift
        bad &= other_block | ((entries >= self._floor[threads]) & (stamp >= seen))
        if self._flags and bad.any():
            at = np.flatnonzero(bad)
            bad[at] = ~self.told(layout.block(entries[at]), stamp[at], inside[at], threads[at])
        return bad

    def ordered_before(self, entries: Array, thread: int) -> Mask:
        """Which of many accesses are ordered before what one thread does now, or its own."""
        return ~self.unordered(entries, np.full(entries.size, thread))

    def told(self, block: Array, stamp: Array, inside: Array, threads: Array) -> Mask:
        """Whether each thread learned of an access, or of what else has a number and ticks."""
        told = np.zeros(block.size, bool)
        names, place = _names(threads)
        beyond = self._beyond[names]
        groups: dict[int, int] = {}  # of threads that know the same
        number = [groups.setdefault(id(known), len(groups)) for known in beyond]
        everywhere = np.array(number, np.int64)[place] if len(groups) > 1 else place
        for group, at in enumerate(_places(everywhere, len(groups))):
            known = beyond[number.index(group)]
            if known is not None:
                told[at] = stamp[at] < known.seen(block[at], inside[at])
        return told
