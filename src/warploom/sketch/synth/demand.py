"""What a value must hold so that the steps after it can still reach the goal.

Four kinds of demand, all necessary for a solution (docs/search.md has the argument):
*cover*  some slot of a group must contain each of these terms: they reach a goal cell from
         nowhere else;
*hit*    some slot of a group must hold one of these values: a later cell can be filled from
         nowhere else;
*count*  a term must be copied often enough, but not too often;
*part*   a bag of items must be part of a fold that it may end up in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from warploom.sketch.synth.bounds import Bounds, Places, or_rows, overlap, pieces
from warploom.sketch.synth.problem import Given, Move, Problem
from warploom.sketch.synth.subterms import (
    COUNTED_EXACTLY,
    UNDEFINED_ID,
    ZERO_ID,
    Bits,
    Forms,
    Subterms,
    popcount,
)

# How many steps a value is followed to find cells that only it can fill.
FOLLOWED_STEPS = 4
# Slots of all hits of one step together; a hit among very many slots drops next to nothing.
MAX_HIT_SLOTS = 1 << 22

Flags = npt.NDArray[np.bool_]
Amounts = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    slots: Places
    need: Bits  # one row


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    slots: Places
    allowed: Flags  # by value


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """`least[s]` and `most[s]`: how many copies of slot s the later steps make."""

    least: Amounts
    most: Amounts
    terms: Places
    wanted: Amounts  # copies of each term in the goal
    only_here: Flags  # the term can come from nowhere else, so `most` applies too


@dataclass(frozen=True, slots=True, eq=False)
class BagPart:
    """`whole[c]`: the values that bag `cells[c]` may end up in; `holds[v, k]`: those that hold
    value v more than k times."""

    bag: int
    cells: Places
    whole: Bits
    holds: Bits


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    covers: tuple[Cover, ...] = ()
    hits: tuple[Hit, ...] = ()
    count: Count | None = None
    part: BagPart | None = None


Test = TypeVar("Test", Cover, Hit)


class Demands:
    """Computes demands of the steps of one problem from its bounds."""

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        self.problem = problem
        self.bounds = bounds
        self.budget = bounds.budget
        self.domain = problem.domain
        self._reach = self._compute_reach()
        self._wanted = self.domain.copies_in(problem.goal)
        self._goal_contains = self.domain.contains[problem.goal]
        self._held: dict[int, Bits] = {}
        self._avoiding: dict[int, Bits] = {}
        self._asked: dict[int, Bits] = {}
        self._covers: dict[int, list[Cover]] = {}
        self._read_bits: dict[int, Bits] = {}

    def of(self, position: int) -> Demand:
        """The demand on the value of a step, without what its source already guarantees."""
        covers = self._not_implied(position, self.covers(position))
        hits = self._not_implied(position, self.hits(position))
        return Demand(tuple(covers), tuple(hits), self.count(position), self.part(position))

    def unread(self, position: int) -> Places:
        """Slots that no live choice of the steps after brings to any goal cell."""
        return np.flatnonzero(~self._reach[position].any(axis=1))

    # -- where things can come from ------------------------------------------------------------

    def _compute_reach(self) -> dict[int, Bits]:
        """For each slot of each step the set of goal cells it may reach, as bits."""
        problem = self.problem
        goals = len(problem.goal)
        words = (goals + 63) // 64
        self.budget.room_for(8 * words * sum(problem.cells_of(p) for p in problem.steps))
        reach = {p: np.zeros((problem.cells_of(p), words), np.uint64) for p in problem.steps}
        at = np.arange(goals)
        reach[problem.last][at, at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)
        for move in self._moves_backward():
            self.budget.check()
            cells, places = self.bounds.edges[move.position]
            source = self._union(places, reach[move.position], move.source_size, cells // move.fold)
            for arg, start, end in problem.layout(move):
                reach[arg] |= source[start:end]
        return reach

    def _union(self, group: Places, rows: Bits, count: int, at: Places) -> Bits:
        return or_rows(group, rows, count, at, self.budget)

    def _moves_backward(self) -> list[Move]:
        return [s for s in reversed(self.problem.steps.values()) if isinstance(s, Move)]

    def held(self, position: int) -> Bits:
        """The terms that each slot may contain."""
        if position not in self._held:
            self.budget.check()
            self._held[position] = self._contained(self.bounds.possible[position])
        return self._held[position]

    def _contained(self, possible: Bits) -> Bits:
        """What the values of each set contain. Only folds contain more than themselves."""
        out = np.zeros_like(possible)
        for part in pieces(len(possible), 64 * self.domain.words, self.budget):
            cell, fold = np.nonzero(self.domain.unpack(possible[part] & self.domain.fold_bits))
            inside = self._union(cell, self.domain.contains, len(possible[part]), fold)
            out[part] = possible[part] | inside
        return out

    def _descendants(self, position: int) -> set[int]:
        found: set[int] = set()
        stack = [position]
        while stack:
            for user in self.problem.users[stack.pop()]:
                if user not in found:
                    found.add(user)
                    stack.append(user)
        return found

    def _elsewhere(self, position: int) -> Bits:
        """For each goal cell the terms that may reach it without passing through the step."""
        if position not in self._avoiding:
            self._avoiding[position] = self._reaching_without(position)
        return self._avoiding[position]

    def _reaching_without(self, position: int) -> Bits:
        problem = self.problem
        if self._everything_passes(position):
            return np.zeros((len(problem.goal), self.domain.words), np.uint64)
        later = self._descendants(position)
        carried: dict[int, Bits] = {position: np.zeros_like(self.held(position))}
        for move in problem.steps.values():
            if isinstance(move, Given) or move.position not in later:
                continue
            self.budget.check()
            parts = [carried[a] if a in carried else self.held(a) for a in move.args]
            source = np.concatenate([*parts, np.zeros((2, self.domain.words), np.uint64)])
            cells, places = self.bounds.edges[move.position]
            carried[move.position] = self._union(cells // move.fold, source, move.out_cells, places)
        return carried[problem.last]

    def _everything_passes(self, position: int) -> bool:
        """No way from an input to the last step avoids this one."""
        seen: set[int] = set()
        stack = [self.problem.last]
        while stack:
            here = stack.pop()
            step = self.problem.steps[here]
            if here == position or here in seen:
                continue
            if isinstance(step, Given):
                return False
            seen.add(here)
            stack.extend(step.args)
        return True

    def _built_later(self, position: int) -> Bits:
        """Folds that a later step may still form."""
        out = np.zeros(self.domain.words, dtype=np.uint64)
        for later in self._descendants(position):
            step = self.problem.steps[later]
            if isinstance(step, Move) and step.builds:
                out |= np.bitwise_or.reduce(self.bounds.possible[later], axis=0)
        return out & self.domain.fold_bits

    def _asked_here(self, position: int) -> Bits:
        """Terms that this value may contain and that no later step can form."""
        if position not in self._asked:
            self._asked[position] = self._contained_for_good(position)
        return self._asked[position]

    def _contained_for_good(self, position: int) -> Bits:
        here: Bits = np.bitwise_or.reduce(self.held(position), axis=0)
        never = self.domain.bits_of([ZERO_ID, UNDEFINED_ID]) | self._built_later(position)
        return here & ~never

    # -- covers --------------------------------------------------------------------------------

    def covers(self, position: int) -> list[Cover]:
        if position not in self._covers:
            self._covers[position] = self._find_covers(position)
        return self._covers[position]

    def _find_covers(self, position: int) -> list[Cover]:
        need = self._goal_contains & self._asked_here(position) & ~self._elsewhere(position)
        reach = self._reach[position]
        self.budget.check()
        self.budget.room_for(2 * len(reach) * len(self.problem.goal))
        flags = np.unpackbits(
            reach.view(np.uint8), axis=1, bitorder="little", count=len(self.problem.goal)
        )
        groups: dict[bytes, int] = {}
        columns = np.ascontiguousarray(flags.T)
        which = np.array([groups.setdefault(c.tobytes(), len(groups)) for c in columns])
        first = np.unique(which, return_index=True)[1]
        needs = or_rows(which, need, len(groups))
        return [
            Cover(np.flatnonzero(columns[at]), row)
            for at, row in zip(first, needs, strict=True)
            if row.any()
        ]

    def tighten(self) -> bool:
        """Hall's rule: as many terms needed as slots, so each slot holds one of them.

        Returns whether some set became smaller; marks the bounds infeasible if slots are too few.
        """
        changed = False
        for position in self.problem.steps:
            if self.problem.open_holes[position]:
                for cover in self.covers(position):
                    self.budget.check()
                    changed |= self._tighten_cover(position, cover)
        return changed

    def _tighten_cover(self, position: int, cover: Cover) -> bool:
        if int(popcount(cover.need)) < len(cover.slots):
            return False
        exact = self._whole_values(position, cover)
        count = int(popcount(exact))
        if count > len(cover.slots):
            self.bounds.feasible = False
        if count != len(cover.slots):
            return False
        allowed = self.bounds.allowed[position].copy()
        allowed[cover.slots] &= exact
        return self.bounds.restrict(position, allowed)

    def _whole_values(self, position: int, cover: Cover) -> Bits:
        """Needed terms that only a slot holding exactly them can contain."""
        possible: Bits = np.bitwise_or.reduce(self.bounds.possible[position][cover.slots], axis=0)
        if not (possible & self.domain.fold_bits).any():
            return cover.need & possible
        folds = np.flatnonzero(self.domain.unpack(possible & self.domain.fold_bits))
        inside = self.domain.contains[folds] & ~self.domain.singletons(folds.astype(np.int32))
        parts: Bits = np.bitwise_or.reduce(inside, axis=0)
        return cover.need & possible & ~parts

    # -- hits ----------------------------------------------------------------------------------

    def hits(self, position: int) -> list[Hit]:
        """Follows the value through the steps that read it alone, up to a fold or a second use."""
        slots = self.problem.cells_of(position)
        words = (slots + 63) // 64
        at = np.arange(slots)
        sources = np.zeros((slots, words), dtype=np.uint64)
        sources[at, at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)
        closed = np.ones(slots, dtype=np.bool_)
        found: list[Hit] = []
        here = position
        for _ in range(FOLLOWED_STEPS):
            move = self._only_user(here)
            if move is None:
                break
            self.budget.check()
            sources, closed = self._step_sources(here, move, sources, closed)
            found += self._hits_at(position, move, sources, closed)
            if move.settles:
                break
            here = move.position
        return sorted(found, key=lambda hit: len(hit.slots))

    def _only_user(self, position: int) -> Move | None:
        users = self.problem.users[position]
        if len(users) != 1:
            return None
        step = self.problem.steps[users[0]]
        return step if isinstance(step, Move) and step.args.count(position) == 1 else None

    def _step_sources(
        self, here: int, move: Move, sources: Bits, closed: Flags
    ) -> tuple[Bits, Flags]:
        """Slots that may feed each inner cell of `move`; closed: nothing else may."""
        cells, places = self.bounds.edges[move.position]
        start, end = next((s, e) for arg, s, e in self.problem.layout(move) if arg == here)
        inside = (places >= start) & (places < end)
        fed = self._union(cells[inside], sources, move.cells, places[inside] - start)
        # Another source leaves the cell open only if it could hold something allowed there.
        parts = [self.bounds.possible[arg] for arg in move.args]
        ends = self.domain.singletons(np.array([UNDEFINED_ID, ZERO_ID], dtype=np.int32))
        may = np.concatenate([*parts, ends])
        allowed = self.bounds.inner_allowed[move.position]
        other = ~inside
        other[other] = overlap(may, places[other], allowed, cells[other], self.budget)
        leaky = inside & ~closed[np.clip(places - start, 0, len(closed) - 1)]
        still_closed = np.ones(move.cells, dtype=np.bool_)
        still_closed[cells[other | leaky]] = False
        return fed, still_closed

    def _hits_at(self, position: int, move: Move, sources: Bits, closed: Flags) -> list[Hit]:
        allowed = self.bounds.inner_allowed[move.position]
        both = np.concatenate([sources, allowed], axis=1)[closed]
        if len(both) == 0:
            return []
        self.budget.room_for(3 * both.nbytes + len(both) * self.problem.cells_of(position))
        both = np.unique(both, axis=0)
        words = sources.shape[1]
        slots = np.unpackbits(
            np.ascontiguousarray(both[:, :words]).view(np.uint8),
            axis=1,
            bitorder="little",
            count=self.problem.cells_of(position),
        ).view(np.bool_)
        partial = slots.any(axis=1) & ~slots.all(axis=1)
        both, slots = both[partial], slots[partial]
        wanted = both[:, words:]
        rows = np.flatnonzero(self._may_miss(position, slots, wanted))
        rows = rows[np.cumsum(np.count_nonzero(slots[rows], axis=1)) <= MAX_HIT_SLOTS]
        self.budget.room_for(len(rows) * len(self.domain))
        flags = self.domain.unpack(np.ascontiguousarray(wanted[rows]))
        return [
            Hit(np.flatnonzero(slots[at]), allowed) for at, allowed in zip(rows, flags, strict=True)
        ]

    def _may_miss(self, position: int, slots: Flags, wanted: Bits) -> Flags:
        """A slot that can hold nothing but wanted values makes the demand empty."""
        out = np.ones(len(slots), dtype=np.bool_)
        for part in pieces(len(slots), slots.shape[1], self.budget):
            row, slot = np.nonzero(slots[part])
            sure = ~overlap(self.bounds.possible[position], slot, ~wanted[part], row, self.budget)
            out[part][row[sure]] = False
        return out

    # -- counts --------------------------------------------------------------------------------

    @cached_property
    def _copies(self) -> tuple[dict[int, Amounts], dict[int, Amounts], dict[int, bool]]:
        problem = self.problem
        least = {p: np.zeros(problem.cells_of(p)) for p in problem.steps}
        most = {p: np.zeros(problem.cells_of(p)) for p in problem.steps}
        varies: dict[int, bool] = {}
        least[problem.last] += 1
        most[problem.last] += 1
        for move in self._moves_backward():
            low, low_max = self._copies_of_source(move, least[move.position])
            high_min, high = low, low_max
            if not np.array_equal(least[move.position], most[move.position]):
                high_min, high = self._copies_of_source(move, most[move.position])
            varies[move.position] = bool((low != low_max).any() or (high_min != high).any())
            for arg, start, end in problem.layout(move):
                least[arg] += low[start:end]
                most[arg] += high[start:end]
        return least, most, varies

    def _copies_of_source(self, move: Move, copies: Amounts) -> tuple[Amounts, Amounts]:
        """Over the live choices, the least and the most copies made of each place."""
        inner = np.repeat(copies, move.fold)
        n = move.source_size
        alive = self.bounds.alive[move.position]
        if len(alive) == 1:
            total: Amounts = np.bincount(move.rows(alive)[0], inner, n).astype(np.float64)
            return total, total
        if self.bounds.permutes(move):
            least, most = np.full(n, np.inf), np.zeros(n)
            cells, places = self.bounds.edges[move.position]
            np.minimum.at(least, places, inner[cells])
            np.maximum.at(most, places, inner[cells])
            return np.where(np.isinf(least), 0, least), most
        lines = move.lines(inner)
        n = lines.count
        least, most = np.full(n, np.inf), np.zeros(n)
        weights = inner if lines.cells is None else inner[lines.cells]
        for read in lines.blocks(move, alive, self.budget):
            keys = (read + np.arange(0, n * len(read), n)[:, None]).reshape(-1)
            sums = np.bincount(keys, np.tile(weights, len(read)), n * len(read)).reshape(-1, n)
            least = np.minimum(least, sums.min(axis=0))
            most = np.maximum(most, sums.max(axis=0))
        return least[lines.number], most[lines.number]

    def count(self, position: int) -> Count | None:
        least, most, varies = self._copies
        move = self.problem.steps[position]
        in_bags = isinstance(move, Move) and move.bag > 1
        # Every value with every other: above some size that is dearer than what it could save.
        fits = self.budget.fits(8.0 * len(self.domain) ** 2)
        if not fits or not (in_bags or varies.get(position, False)):
            return None
        terms = np.flatnonzero(self.domain.unpack(self._asked_here(position)))
        terms = terms[self._wanted[terms] < COUNTED_EXACTLY]
        if len(terms) == 0:
            return None
        elsewhere = np.bitwise_or.reduce(self._elsewhere(position), axis=0)
        return Count(
            np.minimum(least[position], COUNTED_EXACTLY),
            np.minimum(most[position], COUNTED_EXACTLY),
            terms,
            self._wanted[terms],
            ~self.domain.unpack(elsewhere)[terms],
        )

    # -- parts ---------------------------------------------------------------------------------

    def part(self, position: int) -> BagPart | None:
        """Every bag that a solution needs is part of a fold inside a goal cell that it reaches."""
        move = self.problem.steps[position]
        if isinstance(move, Given) or move.bag == 1 or move.forms is None:
            return None
        allowed = self.bounds.allowed[position].reshape(-1, move.bag, self.domain.words)
        undefined = self.domain.bits_of([UNDEFINED_ID])
        cells = np.flatnonzero(~(allowed & undefined).any(axis=(1, 2)))
        if len(cells) == 0:
            return None
        reach = self._reach[position][:: move.bag][cells]
        forms, words = move.passed or move.forms, self.domain.words
        most = int(forms.count.max(initial=0)) + 1  # of one item in a bag
        self.budget.room_for(8 * words * (most * len(self.domain) + len(cells)))
        goals = np.unpackbits(
            reach.view(np.uint8), axis=1, bitorder="little", count=len(self.problem.goal)
        )
        cell, goal = np.nonzero(goals)
        whole = self._union(cell, self._goal_contains, len(cells), goal)
        return BagPart(move.bag, cells, whole, _holders(self.domain, forms))

    # -- what need not be asked again ----------------------------------------------------------

    def _not_implied(self, position: int, tests: list[Test]) -> list[Test]:
        """A hole that only permutes a group within itself cannot change what the group holds."""
        move = self.problem.steps[position]
        if not tests or isinstance(move, Given) or len(move.args) != 1 or move.settles:
            return tests
        if not self.bounds.permutes(move):
            return tests
        sizes = np.array([len(test.slots) for test in tests])
        slots = np.concatenate([test.slots for test in tests])
        group = np.repeat(np.arange(len(tests)), sizes)
        read = self._union(group, self._places_read(move), len(tests), slots)
        asked = np.flatnonzero(popcount(read) != sizes)
        return [tests[number] for number in asked]

    def _places_read(self, move: Move) -> Bits:
        """For each cell the set of places that a live choice reads for it."""
        if move.position not in self._read_bits:
            cells, places = self.bounds.edges[move.position]
            each = np.zeros((move.source_size, (move.source_size + 63) // 64), np.uint64)
            at = np.arange(move.source_size)
            each[at, at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)
            self._read_bits[move.position] = self._union(cells, each, move.cells, places)
        return self._read_bits[move.position]


def _holders(domain: Subterms, forms: Forms) -> Bits:
    """[values, k]: the values of which the items include each value more than k times."""
    made = np.flatnonzero(forms.count > 0)
    rows = [np.unique(forms.items[v, : forms.count[v]], return_counts=True) for v in made]
    most = max((int(counts.max()) for _, counts in rows), default=0)
    out = np.zeros((len(domain), most + 1, domain.words), dtype=np.uint64)
    out[ZERO_ID] = domain.all_bits()
    for value, (items, counts) in zip(made.tolist(), rows, strict=True):
        for often in range(int(counts.max())):
            out[items[counts > often], often] |= domain.bits_of([value])
    return out
