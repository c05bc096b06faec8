"""What `explain` says, judged by trying everything in plain Python, without the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from bench.common.sketch.brute import Plain
from bench.common.sketch.nested import all_fills, all_values, plain
from bench.common.sketch.tables import table_set

from warploom.sketch.term.ir import ZERO, Apply, Goal, Program, size
from warploom.sketch.term.read import live_steps


def flattens(goal: Goal) -> bool:
    return bool(goal.laws)


def has_fill(program: Program, goal: Goal, cells: Sequence[int]) -> bool:
    """Whether some fill is right in these cells of the last step."""
    wanted = [plain(goal.values[cell], flattens(goal)) for cell in cells]
    return any(
        [values[-1][cell] for cell in cells] == wanted
        for _, values in all_values(program, flattens(goal))
    )


def held(program: Program, goal: Goal, cell: int) -> set[Plain]:
    """Everything that some fill puts into a cell of the last step."""
    return {values[-1][cell] for _, values in all_values(program, flattens(goal))}


def freed(program: Program, holes: Sequence[int]) -> Program | None:
    """The program with every gather there is in these holes; None if those are too many."""
    steps = list(program.steps)
    for hole in holes:
        step = steps[hole]
        assert isinstance(step, Apply)
        own = step.gathers
        places = [*range(sum(map(size, own.arg_shapes))), ZERO]
        cells = size(own.out_shape)
        if len(places) ** cells > 3000:
            return None
        rows = np.array(list(product(places, repeat=cells)), np.int32)
        names = [str(n) for n in range(len(rows))]
        made = table_set("any", (), own.arg_shapes, own.out_shape, names, rows)
        steps[hole] = replace(step, gathers=made)
    fills = 1
    for changed in steps:
        fills *= len(changed.gathers) if isinstance(changed, Apply) else 1
    return replace(program, steps=tuple(steps)) if fills <= 20_000 else None


def would_do(
    program: Program, goal: Goal, cells: Sequence[int], holes: Sequence[int]
) -> bool | None:
    """Whether some gathers in place of these holes get the cells right; None: too many to try."""
    free = freed(program, holes)
    return None if free is None else has_fill(free, goal, cells)


def live_holes(program: Program) -> list[int]:
    live = live_steps(program)
    return [hole for hole in program.holes if hole in live]


__all__ = ["all_fills", "has_fill", "held", "live_holes", "would_do"]
