"""The heap of a device: pieces that threads ask for while they run, each with bounds of its own.

Pieces are packed into arenas, but their addresses lie as far apart as those of other allocations,
and no address is given twice. So an access beside a piece is found, and one to a piece that was
freed, however long ago; and two owners of one place never look like a race. An arena of which every
piece is freed gives its bytes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from warploom.machine.memory import FIRST_ADDRESS, GAP, Fault, Memory, Region, distance

Array = npt.NDArray[Any]
HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize without a call that changes it
ALIGNMENT = 16  # of what malloc gives; a piece costs a multiple of it
PACKED = 32  # no access is wider: what is aligned among addresses is so among bytes
ARENA_BYTES = 1 << 16
MOST_BYTES = 1 << 30  # of all arenas: one piece is enough to keep one
REMEMBERED = 64  # arenas of which all was freed, kept to say who did
FIRST = 0x7000_0000_0000
PIECE = "{piece}"  # stands for a piece in what a `Fault` says
_NAME = "the device heap"


@dataclass(frozen=True, slots=True)
class Call:
    """One instruction that gave or freed pieces, in one launch."""

    label: Hashable
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who asked for a piece or freed it: a call, and the number of a thread in its grid."""

    call: Call
    thread: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What malloc gave: its bytes, who asked for it, and who freed it."""

    address: int
    size: int
    given: Owner
    freed: Owner | None


class Arena:
    """Bytes for pieces that were asked for one after the other: the parts of one region."""

    def __init__(self, base: int, capacity: int) -> None:
        data, marks = (np.zeros(capacity, np.uint8) for _ in range(2))
        self.region = Region(_NAME, base, 0, data, written=marks, parts=self)
        self.base = base
        self.capacity = self.room = capacity
        self.live = 0
        self._calls: list[Call] = []
        self._count = self._next = 0
        most = capacity // PACKED
        # Of each piece: its place among addresses and among bytes, its size, and who; -1: nobody.
        self._starts = np.zeros(most, np.uint64)
        self._places, self._sizes, self._givers, self._freers = np.zeros((4, most), np.int64)
        self._given, self._freed = np.full((2, most), -1, np.int32)

    @property
    def end(self) -> int:
        """Where another arena may begin."""
        return self.base + -(-self._next // GAP) * GAP

    def give(self, sizes: Array, align: int, who: Array, call: Call) -> Array:
        """Pieces of these sizes, for which there is room; their addresses."""
        packed, step = packed_size(sizes), _up(sizes + GAP, max(align, PACKED))
        starts = _up(self.base + self._next, align) - self.base + np.cumsum(step) - step
        self._next = int(starts[-1] + step[-1])
        if self.end >= FIRST_ADDRESS["global"]:
            raise Fault(f"no addresses are left for {_NAME}", 0, 0)
        new = slice(self._count, self._count + sizes.size)
        self._starts[new], self._sizes[new] = starts, sizes
        self._places[new] = self.capacity - self.room + np.cumsum(packed) - packed
        self._givers[new], self._given[new] = who, self._number(call)
        self._count, self.live = new.stop, self.live + sizes.size
        self.room -= int(packed.sum())
        self.region.size = int(starts[-1]) + max(int(sizes[-1]), 1)
        out: Array = (starts + self.base).astype(np.uint64)
        return out

    def free(self, offset: Array, who: Array, call: Call) -> None:
        number = self._find(offset)
        self._freed[number], self._freers[number] = self._number(call), who
        self.live -= number.size

    def _number(self, call: Call) -> int:
        if not self._calls or self._calls[-1] != call:
            self._calls.append(call)
        return len(self._calls) - 1

    def _find(self, offset: Array) -> Array:
        """The piece at or before each place; before the first, the first."""
        found = np.searchsorted(self._starts[: self._count], offset, side="right") - 1
        return np.maximum(found, 0)

    def inside(self, offset: Array, width: int, active: Array | None) -> Array:
        """As `memory.check`: every access of active threads lies within one piece that is there."""
        number = self._find(offset)
        within = (offset - self._starts[number]).view(np.int64)
        outside = (within < 0) | (within > self._sizes[number] - width)
        outside |= self._freed[number] >= 0
        bad = outside | ((offset & np.uint64(width - 1)) != 0)
        wrong = bad if active is None else bad & active
        if wrong.any():
            position = int(wrong.argmax())
            at = int(offset[position % offset.size])
            what = f"misaligned access of {width} bytes"
            if outside[position % outside.size]:
                what = self._told(at, width)
            raise Fault(what, position, (at + self.base) % (1 << 64), self.piece(at))
        return np.where(bad, 0, self._places[number] + within) >> (width - 1).bit_length()

    def _told(self, offset: int, width: int) -> str:
        piece = self.piece(offset)
        within = offset + self.base - piece.address
        what = f"out-of-bounds access of {width} bytes"
        if piece.freed is not None and 0 <= within <= piece.size - width:
            what = f"use after free, of {width} bytes"
        return f"{what}, {distance(within)} {PIECE}"

    def piece(self, offset: int) -> Piece:
        """The piece at a place, or the one that is nearest."""
        number = int(self._find(np.array([offset], np.uint64))[0])
        if number + 1 < self._count:
            end = int(self._starts[number]) + int(self._sizes[number])
            number += int(self._starts[number + 1]) - offset < offset - end
        freed = int(self._freed[number])
        return Piece(
            self.base + int(self._starts[number]), int(self._sizes[number]),
            Owner(self._calls[self._given[number]], int(self._givers[number])),
            None if freed < 0 else Owner(self._calls[freed], int(self._freers[number])),
        )  # fmt: skip

    def bytes_from(self, offset: int) -> tuple[int, int]:
        """Where the bytes from a place on lie, and how many there are."""
        number = int(self._find(np.array([offset], np.uint64))[0])
        within = offset - int(self._starts[number])
        left = int(self._sizes[number]) - within if self._freed[number] < 0 else 0
        return int(self._places[number]) + within, max(0, left)

    def look(self, offset: Array) -> tuple[Array, Array, Array]:
        """For each place: where its piece's bytes begin, how many, and if it can be freed."""
        number = self._find(offset)
        good = (self._starts[number] == offset) & (self._freed[number] < 0)
        return self._places[number], self._sizes[number], good


def _up(value: Any, unit: int) -> Any:
    return -(-value // unit) * unit


def packed_size(sizes: Array) -> Array:
    """Bytes of an arena that pieces take; one of no bytes has a place of its own, too."""
    out: Array = _up(np.maximum(sizes, 1), PACKED)
    return out


def cost(sizes: Array) -> Array:
    """What pieces take of the heap."""
    out: Array = _up(np.maximum(sizes, 1), ALIGNMENT)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Freed:
    """Pieces of one arena that are freed together: which of those asked for, and their bytes."""

    arena: Arena
    chosen: Array
    offsets: Array
    places: Array
    sizes: Array


@dataclass(slots=True, eq=False)
class Heap:
    """Pieces that last until they are freed, over launches: `limit` bytes of them at once."""

    limit: int = HEAP_BYTES
    used: int = 0
    dropped: list[int] = field(default_factory=list)  # bases of arenas that gave their bytes back
    _arenas: list[Arena] = field(default_factory=list)
    _gone: deque[Arena] = field(default_factory=deque)
    _memory: Memory | None = None

    def attach(self, memory: Memory) -> None:
        """The memory of a launch, which sees what earlier ones left and gets what is new."""
        self._memory = memory
        for arena in self._known():
            memory.put(arena.region)

    def _known(self) -> list[Arena]:
        return sorted((*self._gone, *self._arenas), key=lambda arena: arena.base)

    @property
    def was_used(self) -> bool:
        return bool(self._arenas)

    # -- malloc -----------------------------------------------------------------------------

    def give(self, sizes: Array, align: int, who: Array, call: Call) -> Array:
        """A piece for each, in order, as long as there is room; 0 where there is none."""
        wanted = np.minimum(sizes, np.uint64(self.limit + 1)).astype(np.int64)
        granted = self._granted(cost(wanted))
        out = np.zeros(sizes.size, np.uint64)
        if granted.any():
            wanted = wanted[granted]
            arena = self._arena(int(packed_size(wanted).sum()))
            out[granted] = arena.give(wanted, align, who[granted], call)
            self.used += int(cost(wanted).sum())
        return out

    def _granted(self, costs: Array) -> Array:
        left = self.limit - self.used
        if int(costs.sum()) <= left:
            return np.ones(costs.size, bool)
        granted = np.zeros(costs.size, bool)
        for position, one in enumerate(costs.tolist()):
            if one <= left:
                granted[position] = True
                left -= one
        return granted

    def _arena(self, size: int) -> Arena:
        """One with room for so many bytes: the last, or a new one after it."""
        last = self._arenas[-1] if self._arenas else None
        if last is not None and last.room >= size:
            return last
        if last is not None and not last.live:
            self._drop(last)
        capacity = max(size, ARENA_BYTES)
        if sum(arena.capacity for arena in self._arenas) + capacity > MOST_BYTES:
            raise Fault(f"no room for {_NAME}, of which single pieces are left far apart", 0, 0)
        arena = Arena(FIRST if last is None else last.end, capacity)
        self._arenas.append(arena)
        if self._memory is not None:
            self._memory.put(arena.region)
        return arena

    def _drop(self, arena: Arena) -> None:
        """Nobody has a piece of it any more: only who freed what is kept, for a while."""
        arena.region.forget_bytes()
        self.dropped.append(arena.base)
        self._arenas.remove(arena)
        self._gone.append(arena)
        if len(self._gone) > REMEMBERED:
            oldest = self._gone.popleft()
            if self._memory is not None:
                self._memory.drop(oldest.region)

    # -- free -------------------------------------------------------------------------------

    def pieces(self, addresses: Array) -> list[Freed]:
        """What these addresses free; raises `Fault` for one that malloc did not give."""
        seen, first = np.unique(addresses, return_index=True)
        if seen.size < addresses.size:
            again = int(np.setdiff1d(np.arange(addresses.size), first)[0])
            self._refuse(addresses, again, f"double free, by two threads at once, of {PIECE}")
        out: list[Freed] = []
        for arena, chosen in self._by_arena(addresses):
            offsets = addresses[chosen] - np.uint64(arena.base)
            places, sizes, good = arena.look(offsets)
            if not good.all():
                self._refuse(addresses, int(chosen[int((~good).argmax())]))
            out.append(Freed(arena, chosen, offsets, places, sizes))
        return out

    def _by_arena(self, addresses: Array) -> list[tuple[Arena, Array]]:
        known = self._known()
        bases = np.array([arena.base for arena in known], np.uint64)
        ends = np.array([0, *(arena.base + arena.region.size for arena in known)], np.uint64)
        number = np.searchsorted(bases, addresses, side="right") - 1
        strange = addresses >= ends[number + 1]
        if strange.any():
            self._refuse(addresses, int(strange.argmax()))
        return [(known[one], np.flatnonzero(number == one)) for one in np.unique(number).tolist()]

    def _refuse(self, addresses: Array, position: int, what: str = "") -> NoReturn:
        """Why an address cannot be freed."""
        address = int(addresses[position])
        piece = self._around(address)
        if piece is None:
            what = "free of an address that malloc did not give"
            if self.was_given(address):
                what = "free of an address that malloc did not give, or that was freed long ago"
        elif not what and piece.address == address:
            what = f"double free of {PIECE}"
        elif not what:
            what = "free of an address that malloc did not give, "
            what += f"{distance(address - piece.address)} {PIECE}"
        raise Fault(what, position, address, piece)

    def _around(self, address: int) -> Piece | None:
        for arena in self._known():
            if arena.base <= address < arena.base + arena.region.size:
                return arena.piece(address - arena.base)
        return None

    def was_given(self, address: int) -> bool:
        """Whether the address lies among those of pieces, of now or of once."""
        return bool(self._arenas) and FIRST <= address < self._arenas[-1].end

    def free(self, freed: Freed, who: Array, call: Call) -> None:
        arena = freed.arena
        arena.free(freed.offsets, who, call)
        self.used -= int(cost(freed.sizes).sum())
        if not arena.live and arena is not self._arenas[-1]:
            self._drop(arena)
