"""A program and one goal, lowered for search: integers for terms, one source array for each step.

Steps that the last one does not need are left out; holes among them may be filled in any way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from warploom.errors import SearchError
from warploom.sketch.synth.domain import UNDEFINED_ID, ZERO_ID, Domain, Ids, domain_of
from warploom.sketch.term.ir import Apply, Goal, Literal, Program, size


@dataclass(frozen=True, eq=False)
class Given:
    """An input: the same value in every fill."""

    position: int
    values: Ids


@dataclass(frozen=True, eq=False)
class Move:
    """One gather step. It reads a *source*: the arguments end to end, then undefined, then zero.

    `tables[i, c]` is the place in the source that choice i reads for cell c; `fold` cells in a row
    are packed into one (1: no fold).
    """

    position: int
    args: tuple[int, ...]  # positions of earlier steps, as in the program
    tables: npt.NDArray[np.int32]
    source_size: int  # with the two constants at the end
    fold: int
    folded: bool

    @property
    def is_hole(self) -> bool:
        return len(self.tables) > 1

    @property
    def cells(self) -> int:
        """Cells before the fold."""
        return int(self.tables.shape[1])

    @property
    def out_cells(self) -> int:
        return self.cells // self.fold

    @cached_property
    def permutes(self) -> bool:
        """Every choice reads every place of its one argument exactly once."""
        n = self.source_size - 2
        if self.cells != n or int(self.tables.max(initial=0)) >= n:
            return False
        seen = np.zeros((len(self.tables), n), dtype=np.bool_)
        np.put_along_axis(seen, self.tables, True, axis=1)
        return bool(seen.all())


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
    tables = step.gathers.tables
    # ZERO is -1 and UNDEFINED -2, which is where the two constants lie, counted from the end.
    places = np.where(tables < 0, tables + np.int32(inputs + 2), tables)
    folded = step.fold is not None
    return Move(position, step.args, places, inputs + 2, step.fold or 1, folded)


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
