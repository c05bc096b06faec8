"""Tries all choices of one step on a whole batch of states at once.

An attempt is a pair (state, choice). Its cells are evaluated one after another and attempts
leave as soon as one cell is wrong, so most cost a cell or two. The first few cells are not even
evaluated: choices are kept by the places they read for them, so only those that read allowed values
are ever looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.search.budget import Budget
from warploom.search.statistics import Tally
from warploom.sketch.synth.bounds import Bounds, pieces
from warploom.sketch.synth.choices import Choices, Reads, Trie, Written, build_tries
from warploom.sketch.synth.demand import BagPart, Count, Cover, Demand, Flags, Hit
from warploom.sketch.synth.problem import Move, Problem, places_seen, settle
from warploom.sketch.synth.rows import Index
from warploom.sketch.synth.subterms import UNDEFINED_ID, Ids, Subterms, popcount

VALUES_AT_ONCE = 1 << 21
VALUE_BYTES = 32  # what a value of a candidate takes while it is worked out and packed

# Looking ahead: from how many candidates on, how far, and what a look costs, in cells that need not
# be written down. It is tried on a few first.
AHEAD_FROM = 1 << 12
AHEAD_SAMPLE = 1 << 8
AHEAD_CELLS = 16
AHEAD_COST = 4


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
class Attempts:
    """Pairs (row of the sources, choice), evaluated cell by cell on demand.

    Reading with one index into the flat array is several times as fast as with two, so rows are
    kept as `start`, the place where they begin in it.
    """

    sources: Ids
    choices: Choices
    start: Index
    choice: Index

    def __len__(self) -> int:
        return len(self.start)

    @property
    def row(self) -> Index:
        return np.floor_divide(self.start, self.sources.shape[1])

    def cell(self, cell: int) -> Ids:
        return self._read(self.start + self.choices.places(cell, self.choice))

    def cells(self, cells: Index) -> Ids:
        """Some cells of all: [attempts, cells given]."""
        return self._read(self.start[:, None] + self.choices.at(self.choice[:, None], cells))

    # As states of the next step, without writing them down.
    def read(self, row: Index, place: Ids) -> Ids:
        return self._read(self.start[row] + self.choices.at(self.choice[row], place))

    def holding(self, _row: Index, _allowed: Flags) -> None:
        return None

    def _read(self, at: Index) -> Ids:
        found: Ids = self.sources.reshape(-1)[at]
        return found

    def some(self, at: Index | slice) -> Attempts:
        return Attempts(self.sources, self.choices, self.start[at], self.choice[at])

    def sample(self) -> Attempts:
        return self.some(slice(None, None, max(1, len(self) // SAMPLE)))

    def keep(self, mask: Flags) -> int:
        """Drops the others and says how many they were."""
        dropped = len(mask) - int(np.count_nonzero(mask))
        if dropped:
            self.start, self.choice = self.start[mask], self.choice[mask]
        return dropped

    def written(self) -> Ids:
        """All cells: [candidates, cells]."""
        at = self.choices.tables(self.choice).astype(np.int64)
        at += self.start[:, None]
        return self._read(at)


@dataclass(slots=True, eq=False)
class Expander:
    """A step (with the hole before it, if the two are tried together), ready for batches."""

    domain: Subterms
    move: Move
    demand: Demand
    choices: Choices
    tries: tuple[Trie, ...]
    cells: Index  # informative cells, the most selective first
    flags: Flags  # [cells, values]: what each of those may hold
    out_flags: Flags | None  # what the folded cells may hold
    tally: Tally
    unread: Index  # slots that make no difference to the goal
    ahead: Expander | None = None  # the hole that reads this value alone

    @property
    def first(self) -> Move:
        """The step whose source is read: this one, or the hole tried together with it."""
        return (self.choices.first or self.choices.second).move

    def run(self, sources: Ids, budget: Budget) -> Iterator[tuple[Ids, Index, dict[int, Index]]]:
        """Survivors in pieces: (values, row, choice by hole)."""
        for trie in self.tries:
            looked = _Looked()
            for row, choice in trie.pairs(Written(sources), self.flags, budget, looked):
                self.tally.visited += max(looked.take(), len(row))
                found = Attempts(sources, self.choices, row * sources.shape[1], choice)
                self._screen(found, len(trie.places), budget)
                self._look_ahead(found, budget)
                step = budget.at_once(
                    max(1, VALUES_AT_ONCE // self.move.cells), VALUE_BYTES * self.move.cells
                )
                for start in range(0, len(found), step):
                    yield from self._finish(found.some(slice(start, start + step)), budget)
            self.tally.visited += looked.take()

    def _screen(self, found: Attempts, done: int, budget: Budget) -> None:
        """`done` cells were seen to by the trie."""
        for cell, flags in zip(self.cells[done:], self.flags[done:], strict=True):
            if len(found) == 0:
                return
            budget.check()
            self.tally.prune("cell", found.keep(flags[found.cell(int(cell))]))
        patience = Patience()
        for hit in () if self.move.settles else self.demand.hits:
            if len(found) == 0 or patience.lost:
                return
            few = found.sample()
            tried = len(few)
            if not patience.saw(few.keep(_hit(few, hit, budget)), tried) and tried < len(found):
                continue
            self.tally.prune("hit", found.keep(_hit(found, hit, budget)))
        if not self.move.settles and len(found) >= AHEAD_FROM:
            self._screen_covers(found, budget)

    def _screen_covers(self, found: Attempts, budget: Budget) -> None:
        """Many attempts are not written down as a whole to be dropped for some of their cells."""
        for cover in self.demand.covers:
            wide = len(cover.slots)
            step = budget.at_once(max(1, VALUES_AT_ONCE // wide), VALUE_BYTES * wide)
            good = np.zeros(len(found), dtype=np.bool_)
            for start in range(0, len(found), step):
                budget.check()
                some = slice(start, start + step)
                good[some] = _covers(self.domain, cover, found.some(some).cells(cover.slots))
            dropped = found.keep(good)
            self.tally.prune("cover", dropped)
            if not Patience().saw(dropped, len(good)) or len(found) < AHEAD_FROM:
                return

    def _look_ahead(self, found: Attempts, budget: Budget) -> None:
        """Drops candidates that no choice of the next hole can go on from, before they are written
        down: what it reads for its first cells can be worked out from here."""
        ahead = self.ahead
        if ahead is None or len(ahead.cells) == 0 or len(found) < AHEAD_FROM:
            return
        few = found.some(slice(None, None, len(found) // AHEAD_SAMPLE))
        looked = ahead.tally.visited
        going = ahead.may_go_on(few, budget)
        looked = ahead.tally.visited - looked
        dropped = len(few) - int(np.count_nonzero(going))
        if AHEAD_COST * looked <= dropped * self.move.cells:
            self.tally.prune("ahead", found.keep(ahead.may_go_on(found, budget)))

    def may_go_on(self, found: Attempts, budget: Budget) -> Flags:
        """Which candidates, taken as sources of this step, some choice reads allowed values from,
        for as many cells as are looked at."""
        going = np.zeros(len(found), dtype=np.bool_)
        looked = _Looked()
        for trie in self.tries:
            left = np.flatnonzero(~going)
            states = found.some(left)
            done = len(trie.places)
            for row, choice in trie.pairs(states, self.flags, budget, looked):
                for cell, flags in zip(
                    self.cells[done:AHEAD_CELLS], self.flags[done:AHEAD_CELLS], strict=True
                ):
                    budget.check()
                    keep = flags[states.read(row, self.choices.places(int(cell), choice))]
                    row, choice = row[keep], choice[keep]
                going[left[row]] = True
        self.tally.visited += looked.take()
        return going

    def _finish(
        self, found: Attempts, budget: Budget
    ) -> Iterator[tuple[Ids, Index, dict[int, Index]]]:
        budget.check()
        values = settle(self.move, found.written())
        if self.out_flags is not None:
            at = np.arange(values.shape[1])
            keep = np.asarray(self.out_flags[at, values].all(axis=1))
            self.tally.prune("fold", found.keep(keep))
            values = values[keep]
        hits = self.move.settles
        keep = passes(self.domain, self.demand, values, self.tally, budget, hits=hits)
        found.keep(keep)
        if len(found):
            self.tally.kept += len(found)
            values = values[keep]
            # States that differ nowhere else are one.
            values[:, self.unread] = UNDEFINED_ID
            yield values, found.row, self.choices.by_hole(found.choice)


class _Looked:
    """Counts nodes."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, nodes: int) -> None:
        self._count += nodes

    def take(self) -> int:
        count, self._count = self._count, 0
        return count


def prepare(
    problem: Problem,
    bounds: Bounds,
    move: Move,
    demand: Demand,
    unread: Index,
    tally: Tally,
    before: Move | None,
) -> Expander:
    """`before`: the hole just before this one, if the two are to be tried together."""
    second = Reads(move, bounds.alive[move.position])
    first = None if before is None else Reads(before, bounds.alive[before.position])
    choices = Choices(second, first)
    cells = _informative(problem, bounds, move)
    bounds.budget.room_for(len(cells) * len(problem.domain))
    flags = problem.domain.unpack(bounds.inner_allowed[move.position][cells])
    out_flags = None
    if move.folded:
        out_flags = problem.domain.unpack(bounds.allowed[move.position])
    tries = build_tries(choices, cells, bounds.budget)
    return Expander(
        problem.domain, move, demand, choices, tries, cells, flags, out_flags, tally, unread
    )  # fmt: skip


def _informative(problem: Problem, bounds: Bounds, move: Move) -> Index:
    """Cells that can be wrong, by the share of (choice, possible value) pairs that would be right.

    The share treats choices and values as independent; it only orders the work.
    """
    parts = [bounds.possible[arg] for arg in move.args]
    ends = problem.domain.singletons(np.array([1, 0], dtype=np.int32))
    may = np.concatenate([*parts, ends])
    cells, places = bounds.edges[move.position]
    allowed = bounds.inner_allowed[move.position]
    share = np.empty(len(cells))
    for part in pieces(len(cells), may.shape[1], bounds.budget):
        here = may[places[part]]
        fine = popcount(here & allowed[cells[part]])
        share[part] = fine / np.maximum(popcount(here), 1)
    wrong = np.zeros(move.cells, dtype=np.bool_)
    wrong[cells[share < 1]] = True
    totals = np.bincount(cells, weights=share, minlength=move.cells)
    mean = totals / np.maximum(np.bincount(cells, minlength=move.cells), 1)
    chosen = np.flatnonzero(wrong)
    # Neighbouring cells tend to be wrong together: among equals, jump around.
    jumps = (chosen * 7919) % max(move.cells, 1)
    return chosen[np.lexsort((jumps, np.round(mean[chosen], 6)))]


def _hit(found: Attempts, hit: Hit, budget: Budget) -> Flags:
    good = np.zeros(len(found), dtype=np.bool_)
    for slot in hit.slots:
        budget.check()
        good |= hit.allowed[found.cell(int(slot))]
    return good


def passes(
    domain: Subterms,
    demand: Demand,
    values: Ids,
    tally: Tally,
    budget: Budget,
    *,
    hits: bool = True,
) -> Flags:
    """Which states meet the demand; each test sees only what the ones before it left."""
    left = np.arange(len(values))
    for name, tests in (("hit", demand.hits if hits else ()), ("cover", demand.covers)):
        patience = Patience()
        for test in tests:
            if len(left) == 0 or patience.lost:
                break
            few = left[:: max(1, len(left) // SAMPLE)]
            bad = ~_meets(domain, test, values, few, budget)
            if not patience.saw(int(np.count_nonzero(bad)), len(few)) and len(few) < len(left):
                continue
            good = _meets(domain, test, values, left, budget)
            tally.prune(name, len(good) - int(np.count_nonzero(good)))
            left = left[good]
    if demand.part is not None and len(left):
        good = _parts(demand.part, values[left], budget)
        tally.prune("part", len(good) - int(good.sum()))
        left = left[good]
    if demand.count is not None and len(left):
        good = _counts(domain, demand.count, values[left], budget)
        tally.prune("count", len(good) - int(good.sum()))
        left = left[good]
    keep = np.zeros(len(values), dtype=np.bool_)
    keep[left] = True
    return keep


def _meets(domain: Subterms, test: Hit | Cover, values: Ids, rows: Index, budget: Budget) -> Flags:
    good = np.ones(len(rows), dtype=np.bool_)
    words = 1 if isinstance(test, Hit) else int(np.count_nonzero(test.need))
    wide = max(1, len(test.slots) * words)
    step = budget.at_once(max(1, VALUES_AT_ONCE // wide), 16 * wide)
    for start in range(0, len(rows), step):
        budget.check()
        some = rows[start : start + step]
        held = values.reshape(-1)[(some * values.shape[1])[:, None] + test.slots]
        if isinstance(test, Hit):
            good[start : start + step] = test.allowed[held].any(axis=1)
        else:
            good[start : start + step] = _covers(domain, test, held)
    return good


def _covers(domain: Subterms, cover: Cover, values: Ids) -> Flags:
    """Do the slots together contain every needed term?"""
    if int(values.max(initial=0)) < domain.first_fold:
        terms = np.flatnonzero(domain.unpack(cover.need))
        if int(terms[-1]) >= domain.first_fold:
            return np.zeros(len(values), dtype=np.bool_)
        return np.asarray(places_seen(values, domain.first_fold)[:, terms].all(axis=1))
    words = np.flatnonzero(cover.need)
    need = cover.need[words]
    together = np.bitwise_or.reduce(domain.contains[:, words][values], axis=1)
    return np.asarray(((together & need) == need).all(axis=1))


def _counts(domain: Subterms, count: Count, values: Ids, budget: Budget) -> Flags:
    """Is each term copied at most, and at least, as often as the goal wants it?"""
    rows, size = len(values), len(domain)
    good = np.ones(rows, dtype=np.bool_)
    wide = max(size, values.shape[1])
    step = budget.at_once(max(1, VALUES_AT_ONCE // wide), VALUE_BYTES * wide)
    copies = domain.copies[:, count.terms]
    for start in range(0, rows, step):
        budget.check()
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


def _parts(part: BagPart, values: Ids, budget: Budget) -> Flags:
    """Is every bag, its items in order, part of a value that it may end up in?"""
    good = np.ones(len(values), dtype=np.bool_)
    wide = len(part.cells) * part.holds.shape[2]
    step = budget.at_once(max(1, VALUES_AT_ONCE // wide), VALUE_BYTES * wide)
    for start in range(0, len(values), step):
        budget.check()
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
