"""Fills that were found in pieces: put together, written down and read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.search.budget import Budget
from warploom.search.outcome import Reason
from warploom.search.statistics import Tally, add_tallies
from warploom.search.storage import row
from warploom.search.storage.store import Key, Store
from warploom.search.workers.pieces import Piece, disjoint
from warploom.sketch.synth.derivations import Choices, Price
from warploom.sketch.synth.fills import LIST_AT_MOST


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


def together(answers: Sequence[Answer]) -> Answer:
    """The answer of neighbouring pieces, as if they were one."""
    tallies: dict[int, Tally] = {}
    for answer in answers:
        add_tallies(tallies, answer.tallies)
    holes = answers[0].first.shape[1]
    cheap = None
    if any(each.cheap is not None for each in answers):
        # More than can be listed: `Collected.cheapest` looks through these again.
        cheap = _in_order(
            [each.first if each.cheap is None else each.cheap for each in answers], holes
        )
    return Answer(
        sum(each.count for each in answers),
        _in_order([each.first for each in answers], holes)[:LIST_AT_MOST],
        cheap,
        tallies,
        answers[-1].stopped,
    )


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


def written(piece: Piece[Answer]) -> dict[str, Any]:
    answer = piece.value
    return {
        "low": piece.low,
        "high": piece.high,
        "seconds": round(piece.seconds, 6),
        "count": answer.count,
        "first": answer.first.tolist(),
        "cheap": None if answer.cheap is None else answer.cheap.tolist(),
        "holes": answer.first.shape[1],
        "tallies": [
            [place, tally.visited, tally.kept, tally.pruned]
            for place, tally in answer.tallies.items()
        ],
    }


def read(store: Store, keys: Sequence[Key], limits: Sequence[int]) -> list[Piece[Answer]]:
    """The stored pieces of cells with these keys; `limits` are how many choices each hole has."""
    found = store.get_all(keys, lambda kept, at: _piece(kept, at, len(keys), limits))
    return disjoint(piece for piece in found if piece is not None)


def _piece(kept: Any, at: int, cells: int, limits: Sequence[int]) -> Piece[Answer]:
    """What `written` wrote of a piece that begins at this cell; RowError where it is another."""
    low, high, seconds, count, first, cheap, holes, tallies = row.entries(
        kept, "low", "high", "seconds", "count", "first", "cheap", "holes", "tallies"
    )
    row.whole(low, at, at)
    row.whole(holes, len(limits), len(limits))
    listed = _choices(first, limits)
    cheapest = None if cheap is None else _choices(cheap, limits)
    row.whole(count, len(listed), None if len(listed) == LIST_AT_MOST else len(listed))
    tally = dict(map(_tally, row.items(tallies)))
    answer = Answer(count, listed, cheapest, tally)
    return Piece(low, row.whole(high, at + 1, cells), answer, row.seconds(seconds))


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
