"""A program and one goal, lowered for search: integers for terms, one source array for each step.

Steps that the last one does not need are left out; holes among them may be filled in any way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from warploom.errors import SearchError
from warploom.search.budget import Budget
from warploom.sketch.synth.domain import UNDEFINED_ID, ZERO_ID, Domain, Ids, domain_of
from warploom.sketch.term.ir import Apply, Goal, Literal, Program, Table, size

TABLE_AT_ONCE = 1 << 22  # entries of tables that are looked at together


@dataclass(frozen=True, eq=False)
class Given:
    """An input: the same value in every fill."""

    position: int
    values: Ids


@dataclass(frozen=True, eq=False)
class Move:
    """One gather step. It reads a *source*: the arguments end to end, then undefined, then zero.

    What choice i reads for cell c is asked for by `column`, `places` and `rows`: the tables of a
    large set are never copied as a whole. `fold` cells in a row are packed into one (1: no fold).
    """

    position: int
    args: tuple[int, ...]  # positions of earlier steps, as in the program
    gathers: Table  # as in `GatherSet`: constants are negative, counted from the source's end
    source_size: int  # with the two constants at the end
    fold: int
    folded: bool

    @property
    def count(self) -> int:
        """Choices."""
        return len(self.gathers)

    @property
    def is_hole(self) -> bool:
        return self.count > 1

    @property
    def cells(self) -> int:
        """Cells before the fold."""
        return int(self.gathers.shape[1])

    @property
    def out_cells(self) -> int:
        return self.cells // self.fold

    def column(self, cell: int, choices: npt.NDArray[np.int64]) -> Ids:
        """The place that each of some choices reads for one cell."""
        return self._lowered(self.gathers[choices, cell])

    def places(self, choices: npt.NDArray[np.int64], cells: npt.NDArray[np.integer]) -> Ids:
        """The place that each of some choices reads for a cell of its own."""
        return self._lowered(self.gathers.reshape(-1)[choices * self.cells + cells])

    def rows(self, choices: npt.NDArray[np.int64] | slice) -> Ids:
        """The whole tables of some choices: [choices, cells]."""
        return self._lowered(self.gathers[choices])

    def _lowered(self, read: Table) -> Ids:
        # ZERO is -1 and UNDEFINED -2, which is where the two constants lie, counted from the end.
        if not (read < 0).any():
            return read
        return np.where(read < 0, read + np.int32(self.source_size), read)

    @cached_property
    def tables(self) -> Ids:
        """All of them at once, for engines that are made for small problems."""
        return self.rows(slice(None))

    def blocks(
        self, choices: npt.NDArray[np.int64], budget: Budget, cells: slice = slice(None)
    ) -> Iterator[Ids]:
        """The tables of some choices, a few at a time, at these cells."""
        width = max(self.cells, self.source_size)
        step = budget.at_once(max(1, TABLE_AT_ONCE // width), 24 * width)
        for start in range(0, len(choices), step):
            budget.check()
            yield self._lowered(self.gathers[choices[start : start + step], cells])

    def permutes(self, choices: npt.NDArray[np.int64], budget: Budget) -> bool:
        """Whether each of these choices reads every place of its one argument exactly once."""
        n = self.source_size - 2
        if self.cells != n:
            return False
        for tables in self.blocks(choices, budget):
            if not places_seen(tables, n + 2)[:, :n].all():
                return False
        return True


def places_seen(tables: Ids, places: int) -> npt.NDArray[np.bool_]:
    """For each table which places it reads: [tables, places]."""
    seen = np.zeros((len(tables), places), dtype=np.bool_)
    # One index array into the flat result: three times as fast as `put_along_axis`.
    at = tables.astype(np.int64)
    at += np.arange(0, len(tables) * places, places)[:, None]
    seen.reshape(-1)[at.reshape(-1)] = True
    return seen


@dataclass(frozen=True, eq=False)
class Problem:
    """`steps` by position in the program (dead ones absent). The last step must equal `goal`."""

    program: Program
    domain: Domain
    steps: dict[int, Given | Move]
    goal: Ids
    last: int
    free_holes: tuple[int, ...]  # dead holes: any choice will do

    @cached_property
    def users(self) -> dict[int, tuple[int, ...]]:
        """Positions of the steps that read each step."""
        found: dict[int, list[int]] = {position: [] for position in self.steps}
        for step in self.steps.values():
            if isinstance(step, Move):
                for arg in dict.fromkeys(step.args):
                    found[arg].append(step.position)
        return {position: tuple(users) for position, users in found.items()}

    @cached_property
    def open_holes(self) -> dict[int, frozenset[int]]:
        """The holes that each step's value depends on."""
        cones: dict[int, frozenset[int]] = {}
        for position, step in self.steps.items():
            cone: frozenset[int] = frozenset()
            if isinstance(step, Move):
                cone = cone.union(*(cones[arg] for arg in step.args))
                cone |= {position} if step.is_hole else set()
            cones[position] = cone
        return cones

    def cells_of(self, position: int) -> int:
        step = self.steps[position]
        return len(step.values) if isinstance(step, Given) else step.out_cells

    def layout(self, move: Move) -> list[tuple[int, int, int]]:
        """Where each argument lies in the source: (argument, first place, end)."""
        spans, start = [], 0
        for arg in move.args:
            end = start + self.cells_of(arg)
            spans.append((arg, start, end))
            start = end
        return spans


def lower(program: Program, goal: Goal) -> Problem:
    if not program.steps:
        raise SearchError("the program has no step", advice="bind at least one variable")
    last = len(program.steps) - 1
    if program.steps[last].shape != goal.shape:
        raise SearchError(
            f"the goal has shape {list(goal.shape)}, "
            f"the last step {list(program.steps[last].shape)}",
            goal.span,
        )
    domain = domain_of(goal)
    live = _live(program)
    steps = {i: _lower_step(program, i, domain) for i in range(last + 1) if i in live}
    free = tuple(hole for hole in program.holes if hole not in live)
    return Problem(program, domain, steps, domain.ids_of(goal.values), last, free)


def _live(program: Program) -> set[int]:
    live = {len(program.steps) - 1}
    for i in reversed(range(len(program.steps))):
        step = program.steps[i]
        if i in live and isinstance(step, Apply):
            live.update(step.args)
    return live


def _lower_step(program: Program, position: int, domain: Domain) -> Given | Move:
    step = program.steps[position]
    if isinstance(step, Literal):
        return Given(position, domain.ids_of(step.values))
    inputs = sum(size(program.steps[arg].shape) for arg in step.args)
    folded = step.fold is not None
    return Move(position, step.args, step.gathers.tables, inputs + 2, step.fold or 1, folded)


def source_rows(move: Move, values: dict[int, Ids]) -> Ids:
    """The sources of a batch: `values[arg]` is [rows, cells] or, if all agree, [1, cells]."""
    (rows,) = np.broadcast_shapes(*((len(values[arg]),) for arg in move.args), (1,))
    parts = [np.broadcast_to(values[a], (rows, values[a].shape[1])) for a in move.args]
    constants = np.empty((rows, 2), dtype=np.int32)
    constants[:, 0] = UNDEFINED_ID
    constants[:, 1] = ZERO_ID
    return np.concatenate([*parts, constants], axis=1)


def pack(domain: Domain, move: Move, cells: Ids) -> Ids:
    """The fold of a step: [rows, cells] -> [rows, out_cells]."""
    if not move.folded:
        return cells
    runs = cells.reshape(len(cells), -1, move.fold)
    return domain.fold(domain.weights[runs].sum(axis=2, dtype=np.uint64))
