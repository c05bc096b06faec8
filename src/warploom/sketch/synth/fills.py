"""From final states to fills: which choice for each hole, counted exactly and listed in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.sketch.synth.problem import Problem
from warploom.sketch.synth.rows import Columns, Rows

LIST_AT_MOST = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Fills:
    """`count` fills exist; `choices[i, h]` is what listed fill i puts into hole `holes[h]`.

    Listed in lexicographic order. `choices` is shorter than `count` only if the count is huge.
    """

    holes: tuple[int, ...]
    count: int
    choices: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.choices)

    def only(self, number: int) -> Fills:
        """Just this one."""
        return Fills(self.holes, 1, self.choices[number : number + 1])

    def as_dict(self, number: int) -> dict[int, int]:
        row = self.choices[number]
        return {hole: int(choice) for hole, choice in zip(self.holes, row, strict=True)}


def collect_fills(
    problem: Problem, finals: Sequence[Rows], shared: dict[int, Rows], at_most: int = LIST_AT_MOST
) -> Fills:
    holes = problem.program.holes
    counts = [_count(rows, shared) for rows in finals]
    free = 1
    for hole in problem.free_holes:
        free *= _options(problem, hole)
    total = sum(int(c.sum()) for c in counts) * free
    tables = []
    room = at_most
    for rows, ways in zip(finals, counts, strict=True):
        if room <= 0:
            break
        listed = (
            _list(problem, rows, ways, shared, room)
            if at_most > 1 or total <= LIST_AT_MOST
            else _any(problem, rows, shared)
        )
        tables.append(listed)
        room -= len(listed)
    choices = np.concatenate(tables) if tables else np.zeros((0, len(holes)), np.int64)
    order = np.lexsort(choices.T[::-1]) if len(holes) and len(choices) else np.arange(len(choices))
    return Fills(holes, total, choices[order])


def _options(problem: Problem, hole: int) -> int:
    step = problem.program.steps[hole]
    return len(step.gathers)  # type: ignore[union-attr]  # holes are Apply steps


def _count(rows: Rows, shared: dict[int, Rows]) -> npt.NDArray[np.object_]:
    counts = rows.origin.counts()
    for key, column in rows.keys.items():
        counts = counts * shared[key].origin.counts()[column]
    return counts


def _list(
    problem: Problem,
    rows: Rows,
    ways: npt.NDArray[np.object_],
    shared: dict[int, Rows],
    room: int,
) -> npt.NDArray[np.int64]:
    """The fills of as many rows as fit into `room`, but at least of one."""
    running = np.cumsum(ways)
    count = max(1, int(np.count_nonzero(running <= room)))
    picked = np.arange(min(count, len(rows)))
    which, columns = rows.origin.fills(picked)
    for key, column in rows.keys.items():
        again, more = shared[key].origin.fills(column[picked][which])
        which = which[again]
        columns = {hole: choice[again] for hole, choice in columns.items()} | more
    columns = _fill_free(problem, columns, len(which), room)
    return (
        np.stack([columns[hole] for hole in problem.program.holes], axis=1)
        if columns
        else (np.zeros((len(which), 0), np.int64))
    )


def _any(problem: Problem, rows: Rows, shared: dict[int, Rows]) -> npt.NDArray[np.int64]:
    columns = rows.origin.any_fill(0)
    for key, column in rows.keys.items():
        columns |= shared[key].origin.any_fill(int(column[0]))
    columns = _fill_free(problem, columns, 1, 1)
    return np.stack([columns[hole] for hole in problem.program.holes], axis=1)


def _fill_free(problem: Problem, columns: Columns, count: int, room: int) -> Columns:
    """Holes that nothing depends on take every choice (as far as there is room)."""
    for hole in problem.free_holes:
        options = min(_options(problem, hole), max(1, room // max(1, count)))
        columns = {h: np.repeat(choice, options) for h, choice in columns.items()}
        columns[hole] = np.tile(np.arange(options), count)
        count *= options
    return columns


def oracle_states(fills: Fills, options: Sequence[int]) -> int:
    """What a search visits that knows for every prefix whether it can be completed."""
    total = 0
    for depth, size in enumerate(options):
        prefixes = np.unique(fills.choices[:, :depth], axis=0) if depth else fills.choices[:1, :0]
        total += size * max(1 if depth == 0 else 0, len(prefixes))
    return total
