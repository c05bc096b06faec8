"""Fills that were found in pieces: put together, written down and read again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.search.budget import Budget
from warploom.search.outcome import Reason
from warploom.search.statistics import Tally, add_tallies
from warploom.search.storage import row
from warploom.search.storage.store import Key, Store
from warploom.search.workers.pieces import Line, Piece, Range
from warploom.sketch.synth.derivations import Choices, Price
from warploom.sketch.synth.fills import LIST_AT_MOST

KEEP_EVERY = 1.0  # seconds between two writes, at least,
KEEP_SHARE = 20.0  # and so many times as long as the last one took
READ_AT_ONCE = 64  # rows


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a piece gave: how many fills, the first of them in order, and, where these are not all,
    the cheapest ones; what happened at each hole."""

    count: int
    first: Choices
    cheap: Choices | None
    tallies: dict[int, Tally]
    stopped: Reason | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """The fills of several pieces, as `Derivations` are those of a whole search."""

    holes: tuple[int, ...]
    answers: Sequence[Answer]

    def count(self) -> int:
        return sum(answer.count for answer in self.answers)

    def first(self, limit: int, _budget: Budget) -> Choices:
        return _in_order([answer.first for answer in self.answers], len(self.holes))[:limit]

    def cheapest(self, price: Price) -> Collected:
        """Only those whose prices, summed over the holes, are least."""
        tables = [each.first if each.cheap is None else each.cheap for each in self.answers]
        table = _in_order(tables, len(self.holes))
        costs = np.array([sum(map(price, self.holes, row)) for row in table.tolist()], np.int64)
        least = table[costs == costs.min(initial=np.iinfo(np.int64).max)]
        return Collected(self.holes, [Answer(len(least), least, None, {})])


def _in_order(tables: Sequence[Choices], holes: int) -> Choices:
    table = np.concatenate([np.zeros((0, holes), np.int64), *tables])
    return table[np.lexsort(table.T[::-1])] if holes else table


def together(answers: Sequence[Answer], best: bool = False) -> Answer:
    """The answer of several pieces, as if they were one. Where the `best` are asked for, all that
    may be among them are kept."""
    tallies: dict[int, Tally] = {}
    for answer in answers:
        add_tallies(tallies, answer.tallies)
    holes = answers[0].first.shape[1]
    first = _in_order([each.first for each in answers], holes)
    cheap = None
    if any(each.cheap is not None for each in answers) or (best and len(first) > LIST_AT_MOST):
        # More than can be listed: `Collected.cheapest` looks through these again.
        cheap = _in_order(
            [each.first if each.cheap is None else each.cheap for each in answers], holes
        )
    count = sum(each.count for each in answers)
    return Answer(count, first[:LIST_AT_MOST], cheap, tallies, answers[-1].stopped)


def grouped(answers: Sequence[Answer], best: bool) -> list[Answer]:
    """As few answers as may be, none of which lists much more than one may."""
    return [together([answers[at] for at in group], best) for group in _groups(answers)]


def _groups(answers: Sequence[Answer]) -> list[list[int]]:
    """By number: neighbours whose lists are short enough to be one list."""
    groups: list[list[int]] = []
    room = 0
    for at, answer in enumerate(answers):
        size = len(answer.first) + (0 if answer.cheap is None else len(answer.cheap))
        if not groups or size > room:
            groups.append([])
            room = LIST_AT_MOST
        groups[-1].append(at)
        room -= size
    return groups


def copied(tallies: dict[int, Tally]) -> dict[int, Tally]:
    return {place: replace(each, pruned=dict(each.pruned)) for place, each in tallies.items()}


def since(before: dict[int, Tally], now: dict[int, Tally]) -> dict[int, Tally]:
    """What was added."""
    found = {}
    for place, tally in now.items():
        old = before.get(place, Tally())
        pruned = {test: count - old.pruned.get(test, 0) for test, count in tally.pruned.items()}
        found[place] = Tally(0, tally.visited - old.visited, tally.kept - old.kept, pruned)
    return found


# -- what is kept ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Pieces that are kept as one."""

    ranges: tuple[Range, ...]
    value: Answer
    seconds: float

    @property
    def lines(self) -> set[Line]:
        """Those of its ranges, and those that they are within."""
        return {line[:depth] for line, _, _ in self.ranges for depth in range(1, len(line) + 1)}


class Keeper:
    """Keeps pieces in a store, in batches: one write in a while, however many pieces come. What is
    not written when the process is killed is done again."""

    def __init__(self, store: Store, key: Callable[[int], Key], best: bool) -> None:
        self._store, self._key, self._best = store, key, best
        self._pieces: list[Piece[Answer]] = []
        self._rows = 0  # that may be there
        self._next = 0.0

    def read(self, cells: int, limits: Sequence[int]) -> list[Batch]:
        """What is there, the largest first; `limits` are how many choices each hole has."""
        found: list[Batch] = []
        while True:
            keys = [self._key(self._rows + at) for at in range(READ_AT_ONCE)]
            some = self._store.get_all(keys, lambda kept, _: _batch(kept, cells, limits))
            if not any(batch is not None for batch in some):
                return sorted(found, key=lambda batch: -sum(r[2] - r[1] for r in batch.ranges))
            found += [batch for batch in some if batch is not None]
            self._rows += READ_AT_ONCE

    def add(self, piece: Piece[Answer]) -> None:
        if piece.high > piece.low:
            self._pieces.append(piece)
        if time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        """Writes what is not yet written."""
        began, pieces = time.monotonic(), self._pieces
        if pieces:
            self._pieces = []
            groups = _groups([piece.value for piece in pieces])
            batches = [self._joined([pieces[at] for at in group]) for group in groups]
            self._store.add(self._key, [written(batch) for batch in batches], self._rows)
            self._rows += len(batches)
        now = time.monotonic()
        self._next = now + max(KEEP_EVERY, KEEP_SHARE * (now - began))

    def _joined(self, pieces: Sequence[Piece[Answer]]) -> Batch:
        value = together([piece.value for piece in pieces], self._best)
        ranges = merged(piece.range for piece in pieces)
        return Batch(ranges, value, sum(piece.seconds for piece in pieces))

    def finish(self, cells: int, answers: Sequence[Answer]) -> None:
        """All is done: it is kept as one, in place of its parts."""
        whole = Batch((Range((), 0, cells),), together(answers, self._best), 0.0)
        self._store.put(self._key(0), written(whole))
        self._store.drop([self._key(number) for number in range(1, self._rows + 1)])


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same cells, in as few ranges as may be.

    >>> merged([Range((), 4, 6), Range((), 0, 2), Range((), 2, 4)])
    (Range(line=(), low=0, high=6),)
    """
    found: list[Range] = []
    for line, low, high in sorted(ranges):
        if found and found[-1].line == line and found[-1].high == low:
            found[-1] = Range(line, found[-1].low, high)
        else:
            found.append(Range(line, low, high))
    return tuple(found)


def written(batch: Batch) -> dict[str, Any]:
    answer = batch.value
    return {
        "ranges": [[[*map(list, line)], low, high] for line, low, high in batch.ranges],
        "seconds": round(batch.seconds, 6),
        "count": answer.count,
        "first": answer.first.tolist(),
        "cheap": None if answer.cheap is None else answer.cheap.tolist(),
        "holes": answer.first.shape[1],
        "tallies": [
            [place, tally.visited, tally.kept, tally.pruned]
            for place, tally in answer.tallies.items()
        ],
    }


def _batch(kept: Any, cells: int, limits: Sequence[int]) -> Batch:
    """What `written` wrote; RowError where it is another."""
    ranges, seconds, count, first, cheap, holes, tallies = row.entries(
        kept, "ranges", "seconds", "count", "first", "cheap", "holes", "tallies"
    )
    row.whole(holes, len(limits), len(limits))
    listed = _choices(first, limits)
    cheapest = None if cheap is None else _choices(cheap, limits)
    row.whole(count, len(listed), None if len(listed) == LIST_AT_MOST else len(listed))
    tally = dict(map(_tally, row.items(tallies)))
    answer = Answer(count, listed, cheapest, tally)
    found = tuple(_range(each, cells) for each in row.items(ranges))
    if not found:
        raise row.RowError("has no cells")
    return Batch(found, answer, row.seconds(seconds))


def _range(kept: Any, cells: int) -> Range:
    if len(row.items(kept)) != 3:
        raise row.RowError("has a range that is none")
    steps, low, high = kept
    line: Line = ()
    for step in row.items(steps):
        if len(row.items(step)) != 3:
            raise row.RowError("has a line that is none")
        cell, mark, inner = step
        line = (*line, (row.whole(cell, 0, cells - 1), row.text(mark), row.whole(inner, 1)))
        cells = inner
    return Range(line, row.whole(low, 0, cells - 1), row.whole(high, low + 1, cells))


def _choices(kept: Any, limits: Sequence[int]) -> Choices:
    """A row for each fill, with a choice for each hole."""
    fills = row.items(kept)
    table = np.array(fills) if fills else np.zeros((0, len(limits)), np.int64)
    shape = (len(fills), len(limits))
    if table.shape != shape or table.dtype != np.int64:
        raise row.RowError(f"has no fills of {len(limits)} holes")
    if ((table < 0) | (table >= np.array(limits, np.int64))).any():
        raise row.RowError("has a choice that its hole does not have")
    return table


def _tally(kept: Any) -> tuple[int, Tally]:
    place, visited, left, pruned = row.items(kept)
    if not isinstance(pruned, dict):
        raise row.RowError("does not say what was pruned")
    counts = {row.text(test): row.whole(count, 0) for test, count in pruned.items()}
    return row.whole(place, 0), Tally(0, row.whole(visited, 0), row.whole(left, 0), counts)
