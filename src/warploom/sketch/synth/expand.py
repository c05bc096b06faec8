"""Tries all choices of one step on a whole batch of states at once.

A candidate is a pair (state, choice). Its cells are evaluated one after another and candidates
leave as soon as one cell is wrong, so most cost a cell or two. The first few cells are not even
evaluated: choices are kept by the places they read for them, so only those that read allowed values
are ever looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from warploom.sketch.synth.bounds import Bounds
from warploom.sketch.synth.choices import Choices, Trie, build_trie
from warploom.sketch.synth.demand import Count, Cover, Demand, Flags, Hit, Part
from warploom.sketch.synth.domain import Domain, Ids, popcount
from warploom.sketch.synth.problem import Move, Problem, settle
from warploom.sketch.synth.rows import Index

VALUES_AT_ONCE = 1 << 23


@dataclass(slots=True)
class Tally:
    """What happened at one hole, for the statistics."""

    options: int = 0
    visited: int = 0
    kept: int = 0
    pruned: dict[str, int] = field(default_factory=dict)

    def prune(self, test: str, count: int) -> None:
        if count:
            self.pruned[test] = self.pruned.get(test, 0) + count


@dataclass(slots=True)
class Patience:
    """Lost when several tests in a row dropped next to nothing: tests only save work, so it is
    right to stop asking when they no longer pay."""

    left: int = 4

    @property
    def lost(self) -> bool:
        return self.left <= 0

    def saw(self, dropped: int, of: int) -> bool:
        """Whether the test pays."""
        pays = dropped * 50 >= of
        self.left = 4 if pays else self.left - 1
        return pays


# A test is first tried on this many candidates, and on all of them only if it pays.
SAMPLE = 1024


@dataclass(slots=True, eq=False)
class Candidates:
    """Pairs (row of the sources, choice), evaluated cell by cell on demand."""

    sources: Ids
    choices: Choices
    row: Index
    choice: Index

    def __len__(self) -> int:
        return len(self.row)

    def cell(self, cell: int) -> Ids:
        return self.sources[self.row, self.choices.places(cell, self.choice)]

    def sample(self) -> Candidates:
        step = max(1, len(self) // SAMPLE)
        return Candidates(self.sources, self.choices, self.row[::step], self.choice[::step])

    def keep(self, mask: Flags) -> int:
        """Drops the others and says how many they were."""
        dropped = len(mask) - int(np.count_nonzero(mask))
        if dropped:
            self.row, self.choice = self.row[mask], self.choice[mask]
        return dropped


@dataclass(slots=True, eq=False)
class Expander:
    """A step (with the hole before it, if the two are tried together), ready for batches."""

    domain: Domain
    move: Move
    demand: Demand
    holes: tuple[tuple[int, Index], ...]  # (position, live choices), in order
    choices: Choices
    trie: Trie
    cells: Index  # informative cells, the most selective first
    flags: Flags  # [cells, values]: what each of those may hold
    out_flags: Flags | None  # what the folded cells may hold
    tally: Tally

    def run(
        self, sources: Ids, pause: Callable[[int], None]
    ) -> Iterator[tuple[Ids, Index, dict[int, Index]]]:
        """Survivors in chunks: (values, row, choice by hole). `pause` is called now and then."""
        for row, choice, looked in self.trie.pairs(sources, self.flags):
            self.tally.visited += max(looked, len(row))
            pause(self.move.position)
            found = Candidates(sources, self.choices, row, choice)
            self._screen(found)
            step = max(1, VALUES_AT_ONCE // self.move.cells)
            for start in range(0, len(found), step):
                part = slice(start, start + step)
                yield from self._finish(sources, found.row[part], found.choice[part])

    def _screen(self, found: Candidates) -> None:
        done = len(self.trie.places)
        for cell, flags in zip(self.cells[done:], self.flags[done:], strict=True):
            if len(found) == 0:
                return
            self.tally.prune("cell", found.keep(flags[found.cell(int(cell))]))
        patience = Patience()
        for hit in () if self.move.settles else self.demand.hits:
            if len(found) == 0 or patience.lost:
                return
            few = found.sample()
            tried = len(few)
            if not patience.saw(few.keep(_hit(few, hit)), tried) and tried < len(found):
                continue
            self.tally.prune("hit", found.keep(_hit(found, hit)))

    def _finish(
        self, sources: Ids, row: Index, choice: Index
    ) -> Iterator[tuple[Ids, Index, dict[int, Index]]]:
        values = sources[row[:, None], self.choices.tables(choice)]
        values = settle(self.move, values)
        keep: Flags = np.ones(len(values), dtype=np.bool_)
        if self.out_flags is not None:
            at = np.arange(values.shape[1])
            keep = np.asarray(self.out_flags[at, values].all(axis=1))
            self.tally.prune("fold", len(keep) - int(keep.sum()))
        values, row, choice = values[keep], row[keep], choice[keep]
        keep = passes(self.domain, self.demand, values, self.tally, hits=self.move.settles)
        if keep.any():
            self.tally.kept += int(keep.sum())
            yield values[keep], row[keep], self._by_hole(choice[keep])

    def _by_hole(self, choice: Index) -> dict[int, Index]:
        picked = np.divmod(choice, len(self.holes[-1][1]))[2 - len(self.holes) :]
        return {hole: alive[i] for (hole, alive), i in zip(self.holes, picked, strict=True)}


def prepare(
    problem: Problem, bounds: Bounds, move: Move, demand: Demand, tally: Tally, before: Move | None
) -> Expander:
    """`before`: the hole just before this one, if the two are to be tried together."""
    alive = bounds.alive[move.position]
    second = np.ascontiguousarray(move.tables[alive].T)
    holes = [(move.position, alive)]
    if before is None:
        choices = Choices(second)
    else:
        earlier = bounds.alive[before.position]
        holes.insert(0, (before.position, earlier))
        choices = Choices(second, _with_constants(before, earlier))
    cells = _informative(problem, bounds, move)
    flags = problem.domain.unpack(bounds.inner_allowed[move.position][cells])
    out_flags = None
    if move.folded:
        out_flags = problem.domain.unpack(bounds.allowed[move.position])
    trie = build_trie(choices, cells, (before or move).source_size)
    return Expander(
        problem.domain, move, demand, tuple(holes), choices, trie, cells, flags, out_flags, tally
    )  # fmt: skip


def _with_constants(move: Move, alive: Index) -> Ids:
    """[cells + 2, choices]: the constants of the next step's source are those of this one's."""
    table = move.tables[alive].T
    ends = np.array([[move.source_size - 2], [move.source_size - 1]], dtype=np.int32)
    return np.concatenate([table, np.broadcast_to(ends, (2, len(alive)))])


def _informative(problem: Problem, bounds: Bounds, move: Move) -> Index:
    """Cells that can be wrong, by the share of (choice, possible value) pairs that would be right.

    The share treats choices and values as independent; it only orders the work.
    """
    parts = [bounds.possible[arg] for arg in move.args]
    ends = problem.domain.singletons(np.array([1, 0], dtype=np.int32))
    may = np.concatenate([*parts, ends])
    cells, places = bounds.edges[move.position]
    allowed = bounds.inner_allowed[move.position]
    share = popcount(may[places] & allowed[cells]) / np.maximum(popcount(may[places]), 1)
    wrong = np.zeros(move.cells, dtype=np.bool_)
    wrong[cells[share < 1]] = True
    totals = np.bincount(cells, weights=share, minlength=move.cells)
    mean = totals / np.maximum(np.bincount(cells, minlength=move.cells), 1)
    chosen = np.flatnonzero(wrong)
    # Neighbouring cells tend to be wrong together: among equals, jump around.
    jumps = (chosen * 7919) % max(move.cells, 1)
    return chosen[np.lexsort((jumps, np.round(mean[chosen], 6)))]


def _hit(found: Candidates, hit: Hit) -> Flags:
    good = np.zeros(len(found), dtype=np.bool_)
    for slot in hit.slots:
        good |= hit.allowed[found.cell(int(slot))]
    return good


def passes(
    domain: Domain, demand: Demand, values: Ids, tally: Tally, *, hits: bool = True
) -> Flags:
    """Which states meet the demand; each test sees only what the ones before it left."""
    left = np.arange(len(values))
    for name, tests in (("hit", demand.hits if hits else ()), ("cover", demand.covers)):
        patience = Patience()
        for test in tests:
            if len(left) == 0 or patience.lost:
                break
            few = left[:: max(1, len(left) // SAMPLE)]
            bad = ~_meets(domain, test, values[few[:, None], test.slots])
            if not patience.saw(int(np.count_nonzero(bad)), len(few)) and len(few) < len(left):
                continue
            good = _meets(domain, test, values[left[:, None], test.slots])
            tally.prune(name, len(good) - int(np.count_nonzero(good)))
            left = left[good]
    if demand.part is not None and len(left):
        good = _parts(demand.part, values[left])
        tally.prune("part", len(good) - int(good.sum()))
        left = left[good]
    if demand.count is not None and len(left):
        good = _counts(domain, demand.count, values[left])
        tally.prune("count", len(good) - int(good.sum()))
        left = left[good]
    keep = np.zeros(len(values), dtype=np.bool_)
    keep[left] = True
    return keep


def _meets(domain: Domain, test: Hit | Cover, values: Ids) -> Flags:
    if isinstance(test, Hit):
        return np.asarray(test.allowed[values].any(axis=1))
    return _covers(domain, test, values)


def _covers(domain: Domain, cover: Cover, values: Ids) -> Flags:
    """Do the slots together contain every needed term?"""
    words = np.flatnonzero(cover.need)
    need = cover.need[words]
    good = np.ones(len(values), dtype=np.bool_)
    step = max(1, VALUES_AT_ONCE // max(1, values.shape[1] * len(words)))
    contains = np.ascontiguousarray(domain.contains[:, words])
    for start in range(0, len(values), step):
        together = np.bitwise_or.reduce(contains[values[start : start + step]], axis=1)
        good[start : start + step] = ((together & need) == need).all(axis=1)
    return good


def _counts(domain: Domain, count: Count, values: Ids) -> Flags:
    """Is each term copied at most, and at least, as often as the goal wants it?"""
    rows, size = len(values), len(domain)
    good = np.ones(rows, dtype=np.bool_)
    step = max(1, VALUES_AT_ONCE // max(size, values.shape[1]))
    copies = domain.copies[:, count.terms]
    for start in range(0, rows, step):
        part = values[start : start + step]
        keys = (part + np.arange(len(part), dtype=np.int64)[:, None] * size).ravel()
        for amounts, upper in ((count.least, False), (count.most, True)):
            weights = np.tile(amounts, len(part))
            held = np.bincount(keys, weights=weights, minlength=size * len(part))
            total = held.reshape(len(part), size) @ copies
            fine = total >= count.wanted if upper else total <= count.wanted
            if upper:
                fine |= ~count.only_here
            good[start : start + step] &= fine.all(axis=1)
    return good


def _parts(part: Part, values: Ids) -> Flags:
    """Is every bag, its items in order, part of a value that it may end up in?"""
    good = np.ones(len(values), dtype=np.bool_)
    step = max(1, VALUES_AT_ONCE // (len(part.cells) * part.holds.shape[2] * 8))
    for start in range(0, len(values), step):
        rows = values[start : start + step]
        bags = rows.reshape(len(rows), -1, part.bag)[:, part.cells]
        left = np.broadcast_to(part.whole, (*bags.shape[:2], part.whole.shape[1]))
        often = np.zeros(bags.shape[:2], dtype=np.int64)
        for slot in range(part.bag):
            item = bags[:, :, slot]
            if slot:
                often = np.where(item == bags[:, :, slot - 1], often + 1, 0)
            left = left & part.holds[item, np.minimum(often, part.holds.shape[1] - 1)]
        good[start : start + step] = np.all(left.any(axis=2), axis=1)
    return good
