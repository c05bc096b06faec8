"""Places whose last value depends on who comes last: strong writes that nothing orders.

Strong writes do not race with each other. Yet which of several stays is known only if they are in
order, or leave the same whoever comes first, as sums do and stores of one value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from warploom.machine.async_completion import Completion
from warploom.machine.clock import Array, Clocks, Ints, Layout, Vector
from warploom.machine.flag import Flags
from warploom.machine.semantics import Semantics

ENOUGH = 16  # pairs of instructions that are found
Key = Hashable  # what a write does; writes of one key leave the same in every order
Kept = dict[Key, dict[int, int]]  # of a place: the last write of each thread, as an entry
_SWAP: Key = "swap"  # leaves another value in every order
_OVER: Key = "over"  # it is known of a place that any of several writes may be last


class _Stored(NamedTuple):
    """A store of some bytes, by an instruction with a number."""

    value: bytes
    number: int


@dataclass(frozen=True, slots=True)
class Chance:
    """What is so only because of who came first, or last, by the labels of instructions.

    `looks`: reads that order what follows, of which each set is enough. `last`: pairs of writes in
    no order, of which either may stay. `same`: stores of one value in no order.
    """

    looks: tuple[frozenset[Hashable], ...] = ()
    last: tuple[tuple[Hashable, Hashable], ...] = ()
    same: tuple[Hashable, ...] = ()


NO_CHANCE = Chance()


@dataclass(slots=True)
class _Late:
    """An asynchronous reduction: when it was issued, and by what others are told of its end."""

    entry: int
    completion: Completion | None = None  # nobody tells of one that is under way


@dataclass(slots=True)
class LastWrites:
    """The strong writes of one launch that may be the last of their places.

    `sums` are the instructions whose effects commute, each with all that it commutes with.
    `found` are pairs of the earlier and the later instruction, as numbers; `same` are the stores
    of a value that another one stores, too, in no order.
    """

    layout: Layout
    sums: Mapping[Hashable, Key]
    found: dict[tuple[int, int], None] = field(default_factory=dict)
    same: set[int] = field(default_factory=set)
    _places: dict[Hashable, dict[int, Kept]] = field(default_factory=dict)
    _late: dict[Hashable, dict[int, dict[Key, list[_Late]]]] = field(default_factory=dict)

    def forget(self, region: Hashable) -> None:
        self._places.pop(region, None)
        self._late.pop(region, None)

    def write(
        self, clocks: Clocks, flags: Flags | None, region: Hashable, threads: Array, start: Array,
        width: int, semantics: Semantics, label: Hashable, mine: Ints,
        rows: Callable[[], Array] | None, failed: Array | None,
    ) -> None:  # fmt: skip
        """Strong writes of one instruction; `rows` are the bytes of each, if it is a store."""
        if semantics.mbarrier:
            return  # of those the other conditions of a proof say who comes when
        size = semantics.size or width
        places = self._places.setdefault(region, {})
        late = self._late.setdefault(region, {})
        key = self.sums.get(label, _SWAP)
        values = None if rows is None else rows()
        for i, (thread, at, entry) in enumerate(
            zip(threads.tolist(), start.tolist(), mine.tolist(), strict=True)
        ):
            if (failed is not None and failed[i]) or len(self.found) >= ENOUGH:
                continue
            for part in range(0, width, size):
                if values is not None:
                    value = values[i, part : part + size].tobytes()
                    key = _Stored(value, self.layout.label(entry))
                place = at + part
                kept = places.setdefault(place, {})
                if _OVER in kept:
                    continue
                before = self._unordered(
                    clocks, flags, region, place, thread, entry, kept, key
                )  # fmt: skip
                coming = late.get(place, {})
                before |= self._coming(clocks, coming, thread, key)
                if not before and not _is_sum(key):
                    coming.clear()
                self._note(kept, key, entry, before, late=semantics.under_way)
                if semantics.under_way:
                    late.setdefault(place, {}).setdefault(key, []).append(_Late(entry))

    def ended(
        self, region: Hashable, start: Array, width: int, now: Ints, completion: Completion | None
    ) -> None:
        """Asynchronous reductions have ended: for all that come after their threads, whose entries
        are `now`, or for who is told by a completion."""
        late, who = self._late.get(region, {}), (1 << self.layout.stamp_shift) - 1
        for at, entry in zip(start.tolist(), now.tolist(), strict=True) if late else ():
            for place in range(at, at + width):
                for key, coming in late.get(place, {}).items():
                    one = next((each for each in coming if each.completion is None
                                and each.entry & who == entry & who), None)  # fmt: skip
                    if one is None:
                        continue
                    one.completion = completion
                    if completion is None:
                        coming.remove(one)
                        kept = self._places[region].setdefault(place, {})
                        kept.setdefault(key, {})[entry & self.layout.code_mask] = entry

    def _coming(
        self, clocks: Clocks, coming: dict[Key, list[_Late]], thread: int, key: Key
    ) -> dict[Key, list[int]]:  # fmt: skip
        """Asynchronous reductions of whose end a thread was not told, by what they do."""
        out: dict[Key, list[int]] = {}
        for other, every in coming.items():
            if _is_sum(key) and other == key:
                continue
            found = [each.entry for each in every if not _was_told(clocks, each, thread)]
            if found:
                out[other] = found
        return out

    def _unordered(
        self, clocks: Clocks, flags: Flags | None, region: Hashable, place: int,
        thread: int, entry: int, kept: Kept, key: Key,
    ) -> dict[Key, list[int]]:  # fmt: skip
        """The writes of other threads that nothing orders before this one, by what they do."""
        code = entry & self.layout.code_mask
        out: dict[Key, list[int]] = {}
        for other, writes in kept.items():
            if (len(writes) == 1 and code in writes) or (_is_sum(key) and other == key):
                continue
            stores = _of_one_value(key, other)
            if stores and stores <= self.same:
                out[other] = []  # as is known
                continue
            entries = np.fromiter(writes.values(), np.int64, len(writes))
            if entries.size == clocks.entries.size:  # which would stand for all threads
                entries = np.append(entries, 0)
            bad = clocks.unordered(entries, np.full(entries.size, thread)) & (entries != 0)
            found = entries[bad].tolist()
            if found and flags is not None:
                assert isinstance(clocks, Vector)
                seen = flags.observed(clocks, region, place, thread, frozenset())
                found = [e for e in found if not flags.is_among(clocks, region, place, e, seen)]
            if found:
                out[other] = found
        return out

    def _note(
        self, kept: Kept, key: Key, entry: int, before: dict[Key, list[int]], *, late: bool
    ) -> None:  # fmt: skip
        number = self.layout.label(entry)
        for other, entries in before.items():
            stores = _of_one_value(key, other)
            self.same |= stores
            if not stores:
                self.found[self.layout.label(entries[0]), number] = None
                kept[_OVER] = {}
        if not before and not _is_sum(key):
            kept.clear()  # all that was written is over
        if not late:
            kept.setdefault(key, {})[entry & self.layout.code_mask] = entry


def _was_told(clocks: Clocks, late: _Late, thread: int) -> bool:
    """Whether a thread knows that an asynchronous reduction has ended."""
    if late.completion is None or not isinstance(clocks, Vector):
        return False
    by = late.completion
    source, tick, inside, who = np.array([[by.source], [by.tick], [by.inside], [thread]])
    return bool(clocks.told(source, tick, inside, who)[0])


def _is_sum(key: Key) -> bool:
    return key != _SWAP and not isinstance(key, _Stored)


def _of_one_value(key: Key, other: Key) -> set[int]:
    """The numbers of two stores, if they store the same."""
    if isinstance(key, _Stored) and isinstance(other, _Stored) and key.value == other.value:
        return {key.number, other.number}
    return set()
