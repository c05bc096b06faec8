"""A few goal cells that no fill gets right together: asked for one at a time, then fewer.

A fill that is right in the cells so far is wrong in another one, which joins them, until there is
no such fill. Then each cell is left out once to see whether the others still cannot be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, InternalError, SearchError
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Impossible, Reason, Undecided
from warploom.sketch.explain.cut import cut
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Goal, Program
from warploom.sketch.term.limits import heights
from warploom.sketch.term.read import Reading

_GROWING = 0.35  # of the time: growing a core
_HALVING = 0.4  # of what is left: asking for one half of what is known to be one
_FEW = 4  # cells, up to twice as many of which are left out one by one

FillOf = dict[int, int]
Boxes = npt.NDArray[np.int64]  # numbers of cells


@dataclass(frozen=True, slots=True)
class Core:
    """Goal cells, by number, that cannot be right together; `minimal`: any fewer of them can."""

    cells: tuple[int, ...]
    minimal: bool


class Asker:
    """Whether some cells of one goal can be right together."""

    def __init__(self, program: Program, reading: Reading, budget: Budget) -> None:
        self.program, self.goal, self.budget = program, reading.goal, budget
        self._reading = reading
        self.refused = False  # whether some cells could not be asked for

    def fill_for(self, cells: list[int]) -> FillOf | None:
        """A fill that is right in these cells; None: there is none, and that is certain.

        Raises CheckError or SearchError where the cut sketch is refused: the cells left out may
        be what makes its operators plausible.
        """
        part = cut(self.program, self.goal, cells)
        try:
            result = synthesize(part, mode="first", budget=self._rest(), only_symbols=True)
        except MemoryError:
            raise BudgetSpentError(Reason.MEMORY) from None
        if isinstance(result.outcome, Undecided):
            raise BudgetSpentError(result.outcome.reason)
        return None if isinstance(result.outcome, Impossible) else result.fills.as_dict(0)

    def wrong_cells(self, fill: FillOf) -> list[int]:
        """The cells that a fill gets wrong: there are some, for the whole goal is impossible."""
        reading = self._reading
        held = evaluate(reading.program, fill, reading.words, self.goal.laws)[-1]
        pairs = enumerate(zip(held, self.goal.values, strict=True))
        wrong = [cell for cell, (has, wanted) in pairs if has is not wanted]
        if not wrong:
            raise InternalError(f"'{self.program.name}' was called impossible, but has a fill")
        return wrong

    def are_impossible(self, cells: list[int]) -> bool:
        try:
            return self.fill_for(cells) is None
        except (CheckError, SearchError):
            self.refused = True
            return False

    def _rest(self) -> Budget:
        self.budget.check()
        return Budget(self.budget.seconds_left, self.budget.megabytes)


def find_core(program: Program, reading: Reading, start: list[int], budget: Budget) -> Core:
    """A core, first looked for among the cells of `start`; at worst the whole goal.

    `reading` is how the program is read with the goal, which it cannot meet.
    """
    grower = Asker(program, reading, part_of(budget, _GROWING))
    try:
        cells = _grown(grower, start or _some_wrong(grower))
    except BudgetSpentError:
        cells = _shrunk(program, reading, budget)
    asker = Asker(program, reading, budget)
    try:
        fewest = _fewest(asker, cells)
        return Core(tuple(sorted(fewest)), minimal=not asker.refused)
    except _UnfinishedError as unfinished:
        return Core(tuple(sorted(unfinished.cells)), minimal=False)


def _shrunk(program: Program, reading: Reading, budget: Budget) -> list[int]:
    """Half of the goal, then half of that, …: where a few cells leave too many fills open, many of
    them may be ruled out quickly. At worst the whole goal, which is impossible."""
    box = np.arange(len(reading.goal.values)).reshape(reading.goal.shape)
    smaller: Boxes | None = box
    while smaller is not None:
        box = smaller
        smaller = next(
            (half for half in _halves(box) if _is_core(program, reading, half, budget)), None
        )
    return [int(cell) for cell in box.reshape(-1)]


def _is_core(program: Program, reading: Reading, box: Boxes, budget: Budget) -> bool:
    """Whether these cells are seen to be impossible in a share of the time."""
    try:
        asker = Asker(program, reading, part_of(budget, _HALVING))
        return asker.are_impossible([int(cell) for cell in box.reshape(-1)])
    except BudgetSpentError:
        return False


def _halves(box: Boxes) -> Iterator[Boxes]:
    for axis in reversed(range(box.ndim)):
        if box.shape[axis] > 1:
            yield from np.array_split(box, 2, axis)


def part_of(budget: Budget, share: float) -> Budget:
    """A share of the time that is left."""
    left = budget.seconds_left
    return Budget(None if left is None else max(0.0, left * share), budget.megabytes)


def _some_wrong(asker: Asker) -> list[int]:
    """A few cells, far apart, that some fill gets wrong: few fills are right in all of them."""
    wrong = asker.wrong_cells(dict.fromkeys(asker.program.holes, 0))
    return list(dict.fromkeys([wrong[0], wrong[len(wrong) // 2], wrong[-1]]))


def _grown(asker: Asker, start: list[int]) -> list[int]:
    cells = list(start)
    while True:
        try:
            fill = asker.fill_for(cells)
        except (CheckError, SearchError):
            if len(cells) == len(asker.goal.values):
                raise
            cells.append(_unlike(asker.goal, cells))
            continue
        if fill is None:
            return cells
        wrong = asker.wrong_cells(fill)
        cells += dict.fromkeys([wrong[0], wrong[-1]])


def _unlike(goal: Goal, cells: list[int]) -> int:
    """Another cell; if there is one, with an operator that these cells do not have."""
    said = {fold.operator for fold in heights(tuple(goal.values[cell] for cell in cells))}
    others = [cell for cell in range(len(goal.values)) if cell not in cells]
    return next(
        (c for c in others if {f.operator for f in heights((goal.values[c],))} - said), others[0]
    )


class _UnfinishedError(Exception):
    """The budget ended while cells were left out one by one: a core, if not a minimal one."""

    def __init__(self, cells: list[int]) -> None:
        super().__init__()
        self.cells = cells


def _fewest(asker: Asker, cells: list[int]) -> list[int]:
    """Leaves out what is not needed: halves, quarters, …, then single cells, the oldest first."""
    kept, run = list(cells), max(1, len(cells) // 2)
    while run >= 1:
        run = 1 if len(kept) <= 2 * _FEW else run
        for some in [kept[first : first + run] for first in range(0, len(kept), run)]:
            fewer = [cell for cell in kept if cell not in some]
            try:
                if fewer and asker.are_impossible(fewer):
                    kept = fewer
            except BudgetSpentError:
                raise _UnfinishedError(kept) from None
        run //= 2
    return kept
