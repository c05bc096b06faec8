"""A sketch cut down to some cells of its goal: the same steps, and a gather of those cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warploom.sketch.holes import custom
from warploom.sketch.term.ir import Apply, Definition, Goal, Program


def cut(program: Program, goal: Goal, cells: Sequence[int]) -> Program:
    """The program with one goal: that these cells of its last step hold what `goal` says.

    Holes stay where they are, so a fill of the one is a fill of the other. The operators of `goal`
    should be resolved (`term/read.py`): the word `fold` may mean something else without the cells
    that are left out.
    """
    last = program.steps[-1]
    taken = {step.name for step in program.steps} | {d.name for d in program.definitions}
    name = next(n for n in ("core", *(f"core.{i}" for i in range(len(taken)))) if n not in taken)
    table = np.array([list(cells)], np.int32)
    shape = (len(cells),)
    gathers = custom(name, (last.shape,), shape, (name,), table)
    step = Apply(name, shape, (len(program.steps) - 1,), gathers, span=last.span)
    wanted = Goal(shape, tuple(goal.values[cell] for cell in cells), span=goal.span, laws=goal.laws)
    made = Definition(name, (last.shape,), shape, (name,), table)
    return replace(
        program,
        steps=(*program.steps, step),
        goals=(wanted,),
        definitions=(*program.definitions, made),
    )
