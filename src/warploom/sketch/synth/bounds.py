"""What each cell may hold: forward from the inputs, backward from the goal, until nothing changes.

`possible[s]` over-approximates what the cells of step s hold in any fill; `allowed[s]` what they
may hold in a *solution*. A choice that reads, for some cell, a place where nothing possible is
allowed is in no solution and is dropped. Every set only ever loses values that no solution needs,
so dropping is sound; see docs/search.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.search.budget import Budget
from warploom.sketch.synth.problem import Given, Move, Problem, places_seen
from warploom.sketch.synth.subterms import UNDEFINED_ID, ZERO_ID, Bits, Subterms

Places = npt.NDArray[np.int64]

# Sweeps after which the sets are taken as they are; more would only tighten them further.
MAX_SWEEPS = 6
# Entries of large temporary arrays.
WORDS_AT_ONCE = 1 << 20
MARKS_AT_ONCE = 1 << 26
# Above this much work the fold rule is skipped: sets stay larger, answers the same.
MAX_FOLD_WORDS = 16_000_000


@dataclass(slots=True)
class Bounds:
    """`inner` sets are those of the cells before a step's fold. Not `feasible`: no fill exists."""

    possible: dict[int, Bits] = field(default_factory=dict)
    allowed: dict[int, Bits] = field(default_factory=dict)
    inner_possible: dict[int, Bits] = field(default_factory=dict)
    inner_allowed: dict[int, Bits] = field(default_factory=dict)
    alive: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    edges: dict[int, tuple[Places, Places]] = field(default_factory=dict)
    unread: dict[int, npt.NDArray[np.bool_]] = field(default_factory=dict)
    _permuting: dict[int, bool] = field(default_factory=dict)
    # Steps whose sets may still change, in either direction.
    forward: set[int] = field(default_factory=set)
    backward: set[int] = field(default_factory=set)
    feasible: bool = True
    dropped: int = 0
    budget: Budget = field(default_factory=Budget)

    def permutes(self, move: Move) -> bool:
        """Whether every live choice reads every place of its one argument exactly once."""
        if move.position not in self._permuting:
            found = move.permutes(self.alive[move.position], self.budget)
            self._permuting[move.position] = found
        return self._permuting[move.position]

    def keep(self, move: Move, alive: npt.NDArray[np.int64]) -> None:
        """Drops all other choices."""
        position = move.position
        self.dropped += len(self.alive[position]) - len(alive)
        self.alive[position] = alive
        self.edges[position] = edges_of(move, alive, self.budget)
        self.unread.pop(position, None)
        if not self._permuting.get(position, False):  # fewer choices may permute where more do not
            self._permuting.pop(position, None)
        self.backward.add(position)

    def restrict(self, position: int, allowed: Bits) -> bool:
        """Replaces what a step's cells may hold; whether that changed anything."""
        if np.array_equal(self.allowed[position], allowed):
            return False
        self.allowed[position] = allowed
        self.forward.add(position)
        self.backward.add(position)
        return True


def or_rows(
    group: Places,
    rows: Bits,
    count: int,
    at: Places | None = None,
    budget: Budget | None = None,
) -> Bits:
    """Union of the rows of each group: [count, words]. With `at`, of `rows[at]`, which is never
    written down as a whole."""
    out = np.zeros((count, rows.shape[1]), dtype=np.uint64)
    at = np.arange(len(group)) if at is None else at
    return _reduce(np.bitwise_or, group, rows, at, out, budget or Budget())


def and_rows(group: Places, rows: Bits, at: Places, out: Bits, budget: Budget) -> Bits:
    """Intersects `rows[at]` of each group into `out`; groups without rows stay."""
    return _reduce(np.bitwise_and, group, rows, at, out, budget)


def _reduce(op: np.ufunc, group: Places, rows: Bits, at: Places, out: Bits, budget: Budget) -> Bits:
    if not bool((group[1:] >= group[:-1]).all()):
        order = np.argsort(_narrow(group, len(out)), kind="stable")
        group, at = group[order], at[order]
    for part in pieces(len(group), rows.shape[1], budget):
        some = group[part]
        starts = np.flatnonzero(np.concatenate([[True], some[1:] != some[:-1]]))
        to = some[starts]
        out[to] = op(out[to], op.reduceat(rows[at[part]], starts, axis=0))
    return out


def _narrow(group: Places, count: int) -> npt.NDArray[np.integer]:
    """NumPy sorts 16-bit numbers ten times as fast."""
    return group.astype(np.uint16) if count < 1 << 16 else group


def pieces(rows: int, words: int, budget: Budget) -> Iterator[slice]:
    """Cuts an array of sets into pieces that may be copied without much memory or time."""
    step = budget.at_once(max(1, WORDS_AT_ONCE // max(1, words)), 16 * max(1, words))
    for start in range(0, rows, step):
        budget.check()
        yield slice(start, start + step)


def overlap(
    one: Bits, at_one: Places, two: Bits, at_two: Places, budget: Budget
) -> npt.NDArray[np.bool_]:
    """Whether `one[at_one]` and `two[at_two]` have something in common, row by row."""
    out = np.zeros(len(at_one), dtype=np.bool_)
    for part in pieces(len(at_one), one.shape[1], budget):
        out[part] = (one[at_one[part]] & two[at_two[part]]).any(axis=1)
    return out


def edges_of(move: Move, choices: npt.NDArray[np.int64], budget: Budget) -> tuple[Places, Places]:
    """All (cell, place) such that one of these choices reads the place for the cell, by cell."""
    if len(choices) == 1:
        return np.arange(move.cells), move.rows(choices)[0].astype(np.int64)
    move, choices = move.spanning(choices)
    n = move.source_size
    step = budget.at_once(max(1, MARKS_AT_ONCE // n), n)
    found = []
    for start in range(0, move.cells, step):
        cells = np.arange(start, min(start + step, move.cells))
        mark = np.zeros(len(cells) * n, dtype=np.bool_)
        for tables in move.blocks(choices, budget, None if len(cells) == move.cells else cells):
            at = tables.astype(np.int64)
            at += np.arange(0, len(cells) * n, n)
            mark[at.reshape(-1)] = True
        found.append(np.flatnonzero(mark) + start * n)
        budget.room_for(4 * sum(edges.nbytes for edges in found))
    edges = np.concatenate(found)
    return edges // n, edges % n


def solve_bounds(
    problem: Problem, start: Bounds | None = None, budget: Budget | None = None
) -> Bounds:
    """Sweeps to a fixed point, or until some set is empty; `start` is tightened in place.

    A step is looked at again only if something it reads has changed.
    """
    limits = budget or Budget()
    bounds = start or _initial(problem, limits)
    bounds.budget = limits
    for _ in range(MAX_SWEEPS):
        for position, step in problem.steps.items():
            if position in bounds.forward and bounds.feasible:
                bounds.forward.discard(position)
                limits.check()
                _forward(problem, bounds, step)
        for position in reversed(problem.steps):
            step = problem.steps[position]
            if position in bounds.backward and bounds.feasible:
                bounds.backward.discard(position)
                limits.check()
                if isinstance(step, Move):
                    _backward(problem, bounds, step)
        if not bounds.feasible or not bounds.forward | bounds.backward:
            break
    return bounds


def _initial(problem: Problem, budget: Budget) -> Bounds:
    bounds = no_bounds(problem, budget)
    bounds.allowed[problem.last] = problem.domain.singletons(problem.goal)
    return bounds


def no_bounds(problem: Problem, budget: Budget | None = None) -> Bounds:
    """Every cell may hold anything and every choice is open: what is known before the goal is."""
    limits = budget or Budget()
    bounds = Bounds(forward=set(problem.steps), backward=set(problem.steps), budget=limits)
    everything = problem.domain.all_bits()
    for position, step in problem.steps.items():
        # Once here, and once each for what is possible.
        sets = problem.cells_of(position) + (step.cells if isinstance(step, Move) else 0)
        limits.room_for(2 * sets * everything.nbytes)
        bounds.allowed[position] = np.tile(everything, (problem.cells_of(position), 1))
        if isinstance(step, Move):
            bounds.inner_allowed[position] = np.tile(everything, (step.cells, 1))
            bounds.alive[position] = np.arange(step.count)
            bounds.edges[position] = edges_of(step, bounds.alive[position], limits)
    return bounds


def _empty(bits: Bits) -> bool:
    return not bool(bits.any(axis=1).all())


def source_bits(problem: Problem, bounds: Bounds, move: Move) -> Bits:
    """What each place of the step's source may hold."""
    constants = problem.domain.singletons(np.array([UNDEFINED_ID, ZERO_ID], dtype=np.int32))
    return np.concatenate([*(bounds.possible[arg] for arg in move.args), constants])


def _forward(problem: Problem, bounds: Bounds, step: Given | Move) -> None:
    position = step.position
    if isinstance(step, Given):
        reached = problem.domain.singletons(step.values)
    else:
        source = source_bits(problem, bounds, step)
        _drop_choices(bounds, step, source)
        if not bounds.feasible:
            return
        cells, places = bounds.edges[position]
        inner = or_rows(cells, source, step.cells, places, bounds.budget)
        inner &= bounds.inner_allowed[position]
        if not _same(bounds.inner_possible.get(position), inner):
            bounds.backward.add(position)
        bounds.inner_possible[position] = inner
        reached = _fold_forward(problem.domain, step, inner, bounds)
    reached = reached & bounds.allowed[position]
    if not _same(bounds.possible.get(position), reached):
        bounds.backward.add(position)
        bounds.forward.update(problem.users[position])
    bounds.possible[position] = reached
    bounds.feasible &= not _empty(reached)


def _same(before: Bits | None, now: Bits) -> bool:
    return before is not None and np.array_equal(before, now)


def _drop_choices(bounds: Bounds, move: Move, source: Bits) -> None:
    """Keeps the choices that read, for every cell, a place that may hold something allowed."""
    position = move.position
    cells, places = bounds.edges[position]
    good = overlap(source, places, bounds.inner_allowed[position], cells, bounds.budget)
    if good.all():
        return
    alive = move.without(bounds.alive[position], cells[~good], places[~good], bounds.budget)
    if len(alive) == 0:
        bounds.feasible = False
        return
    bounds.keep(move, alive)


def _fold_forward(domain: Subterms, move: Move, inner: Bits, bounds: Bounds) -> Bits:
    """Folds that the runs of cells may form. Undefined is always one of them."""
    if not move.folded:
        return _over_bags(domain, move, inner, move.out_cells)
    allowed = bounds.allowed[move.position]
    cell, fold = _fold_candidates(domain, move, inner, allowed, bounds.budget)
    out = np.zeros((move.out_cells, domain.words), dtype=np.uint64)
    if cell is None or fold is None:
        out |= domain.all_bits()
        return out
    out |= domain.bits_of([UNDEFINED_ID])
    each = domain.singletons(np.arange(len(domain), dtype=np.int32))
    return or_rows(cell, each, move.out_cells, fold, bounds.budget) | out


def _over_bags(domain: Subterms, move: Move, cells: Bits, count: int) -> Bits:
    """The items of a bag have no order: each of its cells may hold what any of them may.

    Of a run that passes a bag on nothing is said: `count` cells may hold anything.
    """
    if move.bag == 1:
        return cells
    if move.passed is not None:
        return np.tile(domain.all_bits(), (count, 1))
    runs = cells.reshape(-1, move.bag, cells.shape[1])
    return np.repeat(np.bitwise_or.reduce(runs, axis=1), move.bag, axis=0)


def _fold_candidates(
    domain: Subterms, move: Move, inner: Bits, allowed: Bits, budget: Budget
) -> tuple[Places | None, Places | None]:
    """All (cell, value) such that the run may fold to the allowed value; None: too many to list.

    A run folds to F only if each of its cells may hold an item of F or zero, and each item of F may
    be held by one of its cells.
    """
    forms = move.forms
    assert forms is not None
    runs = inner.reshape(move.out_cells, move.fold, domain.words)
    zero = domain.bits_of([ZERO_ID])
    members = forms.members
    together = np.bitwise_or.reduce(runs, axis=1)
    never_zero = (~(runs & zero).any(axis=2)).sum(axis=1)
    flags = domain.unpack(allowed)
    flags[:, UNDEFINED_ID] = False
    flags[:, forms.count < 0] = False
    if forms.lone.any():  # every value is one, so look first
        alone = domain.unpack(together)[:, forms.lone] & (never_zero <= 1)[:, None]
        flags[:, forms.lone] &= alone
    cell, fold = np.nonzero(flags)
    if len(cell) * domain.words > MAX_FOLD_WORDS:
        return None, None
    count = forms.count[fold]
    keep = (count <= move.fold) & (never_zero[cell] <= count)
    for part in pieces(len(cell), domain.words, budget):
        items = members[fold[part]]
        keep[part] &= ((together[cell[part]] & items) == items).all(axis=1)
    cell, fold = cell[keep], fold[keep]
    if len(cell) * move.fold * domain.words > MAX_FOLD_WORDS:
        return cell, fold
    fits = np.ones(len(cell), dtype=np.bool_)
    for part in pieces(len(cell), move.fold * domain.words, budget):
        items = (members[fold[part]] | zero)[:, None, :]
        fits[part] = (runs[cell[part]] & items).any(axis=2).all(axis=1)
    return cell[fits], fold[fits]


def _backward(problem: Problem, bounds: Bounds, move: Move) -> None:
    position = move.position
    if position not in bounds.inner_possible:
        return
    free = _undefined_if_free(problem, bounds, move)
    bounds.allowed[position] = bounds.allowed[position] & (bounds.possible[position] | free)
    inner = bounds.inner_allowed[position] & _fold_backward(problem.domain, move, bounds)
    if not _same(bounds.inner_allowed[position], inner):
        bounds.forward.add(position)
        bounds.inner_allowed[position] = inner
        # Now, not at the next sweep: what all live choices read is dear to find out for many.
        _drop_choices(bounds, move, source_bits(problem, bounds, move))
        bounds.backward.discard(position)
        if not bounds.feasible:
            return
    demand = _demand_on_source(problem, bounds, move)
    for arg, start, end in problem.layout(move):
        bounds.restrict(arg, bounds.allowed[arg] & demand[start:end])


def _undefined_if_free(problem: Problem, bounds: Bounds, move: Move) -> Bits:
    # A cell that need not hold anything keeps the full set: it must stay recognisable as free.
    everything = problem.domain.all_bits()
    free = (bounds.allowed[move.position] == everything).all(axis=1)
    return np.where(free[:, None], everything, np.zeros_like(everything))


def _fold_backward(domain: Subterms, move: Move, bounds: Bounds) -> Bits:
    allowed = bounds.allowed[move.position]
    if not move.folded:
        return _over_bags(domain, move, allowed, move.cells)
    assert move.forms is not None
    everything = domain.all_bits()
    inner = bounds.inner_possible[move.position]
    cell, fold = _fold_candidates(domain, move, inner, allowed, bounds.budget)
    if cell is None or fold is None:
        return np.tile(everything, (move.cells, 1))
    members = move.forms.members
    zero = domain.bits_of([ZERO_ID])
    # A run that can only fold to something as long as itself has no room for a zero.
    may_pad = move.forms.count[fold] < move.fold
    union = or_rows(cell, members, move.out_cells, fold, bounds.budget)
    union[np.unique(cell[may_pad])] |= zero
    undefined = domain.bits_of([UNDEFINED_ID])
    free = (allowed & undefined).any(axis=1)
    union[free] = everything
    return np.repeat(union, move.fold, axis=0)


def _demand_on_source(problem: Problem, bounds: Bounds, move: Move) -> Bits:
    """What each place of the source may hold so that the cells can hold what they may."""
    cells, places = bounds.edges[move.position]
    inner = bounds.inner_allowed[move.position]
    everything = problem.domain.all_bits()
    free = np.tile(everything, (move.source_size, 1))
    if len(bounds.alive[move.position]) == 1:
        return and_rows(places, inner, cells, free, bounds.budget)
    demand = or_rows(places, inner, move.source_size, cells, bounds.budget)
    if move.position not in bounds.unread:
        bounds.unread[move.position] = ~_always_read(bounds, move)
    demand[bounds.unread[move.position]] = everything
    return demand


def _always_read(bounds: Bounds, move: Move) -> npt.NDArray[np.bool_]:
    """Places that every live choice reads at least once."""
    every = np.ones(move.source_size, dtype=np.bool_)
    if bounds.permutes(move):
        every[-2:] = False
        return every
    lines = move.lines()
    found = np.ones(lines.count, dtype=np.bool_)
    for read in lines.blocks(move, bounds.alive[move.position], bounds.budget):
        found &= places_seen(read, lines.count).all(axis=0)
    return found[lines.number]
