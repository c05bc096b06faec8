"""Why a sketch is impossible: what was ruled out, which goal cells, what reaches them, which hole.

`explain` takes a program whose synthesis is Impossible and gives an `Explanation`, within a budget.
What it says is either certain or left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.errors import Span
from warploom.search.budget import Budget
from warploom.sketch.explain.blame import Blame, find_blame
from warploom.sketch.explain.core import find_core, part_of
from warploom.sketch.explain.cut import cut
from warploom.sketch.explain.numbers import agreeing_fill
from warploom.sketch.explain.reach import Reach, Reached
from warploom.sketch.synth.result import raw_space
from warploom.sketch.term.ir import Apply, Goal, Program, Shape, Term, size
from warploom.sketch.term.read import read

SECONDS = 3.0  # by default

_LEAST_SHARE = 0.15
_CORE_SHARE = 0.75  # of the budget; the rest is for the blame
_ITEMS_SHARE = 0.3  # of what the core left: finding what gets into the folds of its cells


@dataclass(frozen=True, slots=True)
class Space:
    """A hole, and how many gathers were tried for it."""

    name: str
    function: str
    choices: int
    shape: Shape
    span: Span | None


@dataclass(frozen=True, slots=True)
class CellReason:
    """A goal cell that cannot be right: what it should hold, and what can reach it."""

    number: int
    cell: tuple[int, ...]
    wanted: Term
    reached: Reached

    @property
    def is_unreachable(self) -> bool:
        """Whether its value cannot get there in any fill, whatever the other cells hold."""
        return self.wanted not in self.reached.values


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """`cells` cannot be right together.

    `cut` is the sketch with these cells as its only goal, which is impossible too. `minimal`: any
    fewer of them can be right. `agrees` is a fill, by hole, with which the program is its goal on
    the numbers tried, though not as a term; None: none was seen.
    """

    holes: tuple[Space, ...]
    cells: tuple[CellReason, ...]
    minimal: bool
    blame: Blame
    blamed: tuple[Space, ...]
    cut: Program
    agrees: dict[str, str] | None

    @property
    def is_whole(self) -> bool:
        """Whether all cells of the goal are named: no smaller reason was found in time."""
        return len(self.cells) == size(self.cut.steps[-2].shape) > 1 and not self.minimal

    @property
    def space(self) -> int:
        return raw_space([hole.choices for hole in self.holes])


def explain(program: Program, goal: int = 0, *, budget: Budget | None = None) -> Explanation:
    """Why a program has no fill for this goal."""
    limits = budget or Budget(SECONDS)
    holes = tuple(_space(program, hole) for hole in program.holes)
    reading = read(program, program.goals[goal])
    wanted = reading.goal
    reach = Reach(program, wanted)
    start = reach.unreachable[:1]
    core = find_core(program, reading, start, part_of(limits, _CORE_SHARE))
    looking = part_of(limits, _ITEMS_SHARE)
    cells = tuple(
        CellReason(
            cell,
            _place(cell, wanted.shape),
            wanted.values[cell],
            reach.of(cell, with_items=not looking.is_spent()),
        )
        for cell in core.cells
    )
    part = cut(program, wanted, core.cells)
    blame = find_blame(part, _rest(limits))
    blamed = tuple(_space(program, hole) for hole in blame.holes)
    agrees = _agreeing(program, program.goals[goal], _rest(limits))
    return Explanation(holes, cells, core.minimal, blame, blamed, part, agrees)


def _agreeing(program: Program, goal: Goal, budget: Budget) -> dict[str, str] | None:
    fill = agreeing_fill(program, goal, budget)
    if fill is None:
        return None
    steps = [(program.steps[hole], choice) for hole, choice in fill.items()]
    return {s.name: s.gathers.describe(c) for s, c in steps if isinstance(s, Apply)}


def _rest(budget: Budget) -> Budget:
    """What is left, and a little more if the core took it all: a hole is quickly tried."""
    left = budget.seconds_left
    if left is None or budget.seconds is None:
        return Budget(None, budget.megabytes)
    return Budget(max(left, _LEAST_SHARE * budget.seconds), budget.megabytes)


def _space(program: Program, position: int) -> Space:
    step = program.steps[position]
    assert isinstance(step, Apply)
    gathers = step.gathers
    return Space(step.name, gathers.function, len(gathers), gathers.out_shape, step.span)


def _place(cell: int, shape: Shape) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(cell, shape))
