"""What can reach a goal cell, whatever fills the holes: forward from the inputs, cell by cell.

The sets are those of `synth/bounds.py` with nothing asked of the goal: a cell may hold no more than
they say, and perhaps less. Values are the subterms of the goal; anything else is told apart only as
"something else".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.sketch.synth.bounds import Bounds, no_bounds, solve_bounds
from warploom.sketch.synth.problem import Given, Move, Problem, lower
from warploom.sketch.synth.subterms import UNDEFINED_ID, ZERO_ID
from warploom.sketch.term.ir import Fold, Goal, Program, Term
from warploom.sketch.term.show import show_term

Cells = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reached:
    """What can reach one goal cell: at most these values, and perhaps others that the goal does not
    have (`others`). `items` are what can get into the folds that may become its value, None if it
    is no fold, or if that is not known."""

    values: tuple[Term, ...]
    others: bool
    items: tuple[Term, ...] | None

    def missing(self, wanted: Term) -> tuple[Term, ...]:
        """The items of the wanted fold that cannot get into it."""
        if self.items is None or not isinstance(wanted, Fold):
            return ()
        lost = [item for item in dict.fromkeys(wanted.items) if item not in self.items]
        return tuple(sorted(lost, key=show_term))


class Reach:
    """`goal` has its operators resolved and is in normal form."""

    def __init__(self, program: Program, goal: Goal) -> None:
        self._problem = lower(program, goal)
        self._bounds = solve_bounds(self._problem, no_bounds(self._problem))
        self._flags = self._problem.domain.unpack(self._bounds.possible[self._problem.last])

    @property
    def unreachable(self) -> list[int]:
        """The goal cells, in order, that can hold their value in no fill."""
        goal = self._problem.goal
        held = self._flags[np.arange(len(goal)), goal] & (goal != UNDEFINED_ID)
        return [int(cell) for cell in np.flatnonzero(~held)]

    def of(self, cell: int, with_items: bool = True) -> Reached:
        """Without its items they are not known; finding them may take long."""
        row = self._flags[cell]
        items = self._items(cell) if with_items else None
        return Reached(self._terms(row), bool(row[UNDEFINED_ID]), items)

    def _terms(self, flags: npt.NDArray[np.bool_]) -> tuple[Term, ...]:
        terms = self._problem.domain.terms
        return tuple(terms[int(v)] for v in np.flatnonzero(flags) if v != UNDEFINED_ID)

    def _items(self, cell: int) -> tuple[Term, ...] | None:
        domain = self._problem.domain
        wanted = domain.terms[int(self._problem.goal[cell])]
        if not isinstance(wanted, Fold):
            return None
        runs = _runs(self._problem, self._bounds, cell)
        if runs is None:
            return None
        held = np.zeros(len(domain), np.bool_)
        for position, inner in runs.items():
            flags = domain.unpack(self._bounds.inner_possible[position][inner])
            held |= flags.any(axis=0)
        held[ZERO_ID] = False
        return self._terms(held)


def _runs(problem: Problem, bounds: Bounds, cell: int) -> dict[int, Cells] | None:
    """By step, the cells before the folds that a goal cell may be a copy of.

    None if it may also come from an input, or from a step that passes folds on: then its items are
    not all in those cells.
    """
    seen: dict[int, Cells] = {problem.last: np.array([cell])}
    runs: dict[int, Cells] = {}
    for position in reversed(problem.steps):
        step = problem.steps[position]
        cells = seen.get(position)
        if cells is None or not len(cells):
            continue
        if isinstance(step, Given) or step.passed is not None:
            return None
        if step.folded:
            inner = cells[:, None] * step.fold + np.arange(step.fold)
            runs[position] = inner.reshape(-1)
            continue
        if step.bag > 1:
            return None
        _follow(problem, bounds, step, cells, seen)
    return runs


def _follow(
    problem: Problem, bounds: Bounds, move: Move, cells: Cells, seen: dict[int, Cells]
) -> None:
    """Adds what a step may read for these cells to what is seen of its arguments."""
    readers, places = bounds.edges[move.position]
    read = np.unique(places[np.isin(readers, cells)])
    for arg, start, end in problem.layout(move):
        found = read[(read >= start) & (read < end)] - start
        seen[arg] = np.union1d(seen.get(arg, np.empty(0, np.int64)), found).astype(np.int64)
