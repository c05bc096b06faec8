"""What each cell may hold: forward from the inputs, backward from the goal, until nothing changes.

`possible[s]` over-approximates what the cells of step s hold in any fill; `allowed[s]` what they
may hold in a *solution*. A choice that reads, for some cell, a place where nothing possible is
allowed is in no solution and is dropped. Every set only ever loses values that no solution needs,
so dropping is sound; see docs/search.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.sketch.synth.domain import UNDEFINED_ID, ZERO_ID, Bits, Domain
from warploom.sketch.synth.problem import Given, Move, Problem

Places = npt.NDArray[np.int64]

# Sweeps after which the sets are taken as they are; more would only tighten them further.
MAX_SWEEPS = 6
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
    # Steps whose sets may still change, in either direction.
    forward: set[int] = field(default_factory=set)
    backward: set[int] = field(default_factory=set)
    feasible: bool = True
    dropped: int = 0

    def restrict(self, position: int, allowed: Bits) -> bool:
        """Replaces what a step's cells may hold; whether that changed anything."""
        if np.array_equal(self.allowed[position], allowed):
            return False
        self.allowed[position] = allowed
        self.forward.add(position)
        self.backward.add(position)
        return True


def or_rows(group: Places, rows: Bits, count: int) -> Bits:
    """Union of the rows of each group: [count, words]."""
    out = np.zeros((count, rows.shape[1]), dtype=np.uint64)
    return _reduce(np.bitwise_or, group, rows, out)


def and_rows(group: Places, rows: Bits, out: Bits) -> Bits:
    """Intersects the rows of each group into `out`; groups without rows stay."""
    return _reduce(np.bitwise_and, group, rows, out)


def _reduce(op: np.ufunc, group: Places, rows: Bits, out: Bits) -> Bits:
    if len(group) == 0:
        return out
    if not bool((group[1:] >= group[:-1]).all()):
        order = np.argsort(group, kind="stable")
        group, rows = group[order], rows[order]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    at = group[starts]
    out[at] = op(out[at], op.reduceat(rows, starts, axis=0))
    return out


def edges_of(move: Move, alive: npt.NDArray[np.int64]) -> tuple[Places, Places]:
    """All (cell, place) such that a live choice reads the place for the cell, by cell."""
    if len(alive) == 1:
        return np.arange(move.cells), move.tables[alive[0]].astype(np.int64)
    mark = np.zeros((move.cells, move.source_size), dtype=np.bool_)
    tables = move.tables if len(alive) == len(move.tables) else move.tables[alive]
    mark[np.arange(move.cells)[None, :], tables] = True
    cells, places = np.nonzero(mark)
    return cells, places


def solve_bounds(problem: Problem, start: Bounds | None = None) -> Bounds:
    """Sweeps to a fixed point, or until some set is empty; `start` is tightened in place.

    A step is looked at again only if something it reads has changed.
    """
    bounds = start or _initial(problem)
    for _ in range(MAX_SWEEPS):
        for position, step in problem.steps.items():
            if position in bounds.forward and bounds.feasible:
                bounds.forward.discard(position)
                _forward(problem, bounds, step)
        for position in reversed(problem.steps):
            step = problem.steps[position]
            if position in bounds.backward and bounds.feasible:
                bounds.backward.discard(position)
                if isinstance(step, Move):
                    _backward(problem, bounds, step)
        if not bounds.feasible or not bounds.forward | bounds.backward:
            break
    return bounds


def _initial(problem: Problem) -> Bounds:
    bounds = no_bounds(problem)
    bounds.allowed[problem.last] = problem.domain.singletons(problem.goal)
    return bounds


def no_bounds(problem: Problem) -> Bounds:
    """Every cell may hold anything and every choice is open: what is known before the goal is."""
    bounds = Bounds(forward=set(problem.steps), backward=set(problem.steps))
    everything = problem.domain.all_bits()
    for position, step in problem.steps.items():
        bounds.allowed[position] = np.tile(everything, (problem.cells_of(position), 1))
        if isinstance(step, Move):
            bounds.inner_allowed[position] = np.tile(everything, (step.cells, 1))
            bounds.alive[position] = np.arange(len(step.tables))
            bounds.edges[position] = edges_of(step, bounds.alive[position])
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
        inner = or_rows(cells, source[places], step.cells) & bounds.inner_allowed[position]
        if not _same(bounds.inner_possible.get(position), inner):
            bounds.backward.add(position)
        bounds.inner_possible[position] = inner
        reached = _fold_forward(problem.domain, step, inner, bounds.allowed[position])
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
    good = (source[places] & bounds.inner_allowed[position][cells]).any(axis=1)
    if good.all():
        return
    bad = np.zeros((move.cells, move.source_size), dtype=np.bool_)
    bad[cells[~good], places[~good]] = True
    alive = bounds.alive[position]
    for cell in np.flatnonzero(bad.any(axis=1)):
        alive = alive[~bad[cell, move.tables[alive, cell]]]
        if len(alive) == 0:
            bounds.feasible = False
            return
    bounds.dropped += len(bounds.alive[position]) - len(alive)
    bounds.alive[position] = alive
    bounds.edges[position] = edges_of(move, alive)
    bounds.unread.pop(position, None)
    bounds.backward.add(position)


def _fold_forward(domain: Domain, move: Move, inner: Bits, allowed: Bits) -> Bits:
    """Folds that the runs of cells may form. Undefined is always one of them."""
    if not move.folded:
        return _over_bags(domain, move, inner, move.out_cells)
    cell, fold = _fold_candidates(domain, move, inner, allowed)
    out = np.zeros((move.out_cells, domain.words), dtype=np.uint64)
    if cell is None or fold is None:
        out |= domain.all_bits()
        return out
    out |= domain.bits_of([UNDEFINED_ID])
    return or_rows(cell, domain.singletons(fold.astype(np.int32)), move.out_cells) | out


def _over_bags(domain: Domain, move: Move, cells: Bits, count: int) -> Bits:
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
    domain: Domain, move: Move, inner: Bits, allowed: Bits
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
    keep &= ((together[cell] & members[fold]) == members[fold]).all(axis=1)
    cell, fold = cell[keep], fold[keep]
    if len(cell) * move.fold * domain.words > MAX_FOLD_WORDS:
        return cell, fold
    fits = (runs[cell] & (members[fold] | zero)[:, None, :]).any(axis=2).all(axis=1)
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
    demand = _demand_on_source(problem, bounds, move)
    for arg, start, end in problem.layout(move):
        bounds.restrict(arg, bounds.allowed[arg] & demand[start:end])


def _undefined_if_free(problem: Problem, bounds: Bounds, move: Move) -> Bits:
    # A cell that need not hold anything keeps the full set: it must stay recognisable as free.
    everything = problem.domain.all_bits()
    free = (bounds.allowed[move.position] == everything).all(axis=1)
    return np.where(free[:, None], everything, np.zeros_like(everything))


def _fold_backward(domain: Domain, move: Move, bounds: Bounds) -> Bits:
    allowed = bounds.allowed[move.position]
    if not move.folded:
        return _over_bags(domain, move, allowed, move.cells)
    assert move.forms is not None
    everything = domain.all_bits()
    inner = bounds.inner_possible[move.position]
    cell, fold = _fold_candidates(domain, move, inner, allowed)
    if cell is None or fold is None:
        return np.tile(everything, (move.cells, 1))
    members = move.forms.members
    zero = domain.bits_of([ZERO_ID])
    # A run that can only fold to something as long as itself has no room for a zero.
    may_pad = move.forms.count[fold] < move.fold
    rows = members[fold] | np.where(may_pad[:, None], zero, np.uint64(0))
    union = or_rows(cell, rows, move.out_cells)
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
        return and_rows(places, inner[cells], free)
    demand = or_rows(places, inner[cells], move.source_size)
    if move.position not in bounds.unread:
        bounds.unread[move.position] = ~_always_read(move, bounds.alive[move.position])
    demand[bounds.unread[move.position]] = everything
    return demand


def _always_read(move: Move, alive: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Places that every live choice reads at least once."""
    if move.permutes:
        out = np.ones(move.source_size, dtype=np.bool_)
        out[-2:] = False
        return out
    every = np.ones(move.source_size, dtype=np.bool_)
    step = max(1, 2**24 // move.source_size)
    for start in range(0, len(alive), step):
        tables = move.tables[alive[start : start + step]]
        seen = np.zeros((len(tables), move.source_size), dtype=np.bool_)
        np.put_along_axis(seen, tables, True, axis=1)
        every &= seen.all(axis=0)
    return every
