"""A gather that would do in place of one hole, found by trying: others are filled at random.

With all other steps known, what the goal's cells ask for is followed back to the hole: each of its
cells must hold some term, which its arguments have or have not. What is found is only a proposal.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.search.budget import Budget
from warploom.sketch.holes import custom
from warploom.sketch.synth.free import with_gathers
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.gather import GatherSet
from warploom.sketch.term.ir import ZERO, Apply, Fold, Program, Term, Undefined, Zero, size
from warploom.sketch.term.read import Reading, read
from warploom.sketch.term.verify import verify

TRIALS = 24

Reads: TypeAlias = npt.NDArray[np.int32]  # what each cell reads


def witness(program: Program, hole: int, budget: Budget) -> dict[int, Reads] | None:
    """Tables for all holes with which the program meets its one goal: those of the others are among
    their choices, that of this hole is any. None says nothing: another filling might do.
    """
    goal = program.goals[0]
    reading, draw = read(program, goal), random.Random(0)
    step = program.steps[hole]
    assert isinstance(step, Apply)
    for trial in range(TRIALS):
        budget.check()
        fill = {h: draw.randrange(len(_gathers(program, h))) if trial else 0 for h in program.holes}
        table = _Trial(reading, hole, fill).table()
        if table is None:
            continue
        own = step.gathers
        made = custom(own.function, own.arg_shapes, own.out_shape, ("free",), table[None])
        filled = with_gathers(program, {hole: made})
        try:
            if verify(filled, goal, {h: fill[h] for h in filled.holes}):
                others = {h: _gathers(program, h).table(fill[h]) for h in filled.holes}
                return {**others, hole: table}
        except CheckError:
            continue  # not every gather is allowed there: a zero would be two numbers
    return None


def _gathers(program: Program, hole: int) -> GatherSet:
    step = program.steps[hole]
    assert isinstance(step, Apply)
    return step.gathers


class _StuckError(Exception):
    """This trial leads nowhere."""


@dataclass(slots=True)
class _Trial:
    """One filling of the other holes."""

    reading: Reading
    hole: int
    fill: dict[int, int]
    values: list[tuple[Term, ...]] = field(default_factory=list)
    known: list[bool] = field(default_factory=list)  # steps that do not depend on the hole
    asked: dict[int, Term] = field(default_factory=dict)  # of the hole's cells, before its fold

    def table(self) -> Reads | None:
        """What the hole would have to read; cells that nobody asks for read the first place."""
        program, goal = self.reading.program, self.reading.goal
        self.values = evaluate(program, self.fill, self.reading.words, goal.laws)
        for position, step in enumerate(program.steps):
            args = step.args if isinstance(step, Apply) else ()
            self.known.append(position != self.hole and all(self.known[arg] for arg in args))
        step = program.steps[self.hole]
        assert isinstance(step, Apply)
        source: dict[Term, int] = {Zero(): ZERO}
        for place, term in enumerate(t for arg in step.args for t in self.values[arg]):
            source.setdefault(term, place)
        table = np.zeros(size(step.gathers.out_shape), np.int32)
        try:
            for cell, value in enumerate(goal.values):
                self._ask(len(program.steps) - 1, cell, value)
            for cell, term in self.asked.items():
                table[cell] = self._found(source, term)
        except _StuckError:
            return None
        return table

    def _found(self, source: dict[Term, int], term: Term) -> int:
        if term not in source:
            raise _StuckError
        return source[term]

    def _ask(self, position: int, cell: int, term: Term) -> None:
        """That a cell of a step holds a term."""
        step = self.reading.program.steps[position]
        if self.known[position]:
            if self.values[position][cell] is not term:
                raise _StuckError
            return
        assert isinstance(step, Apply)
        if step.fold is None:
            self._ask_inner(position, step, cell, term)
        else:
            self._ask_run(position, step, range(cell * step.fold, (cell + 1) * step.fold), term)

    def _ask_run(self, position: int, step: Apply, run: range, term: Term) -> None:
        """A fold: cells that are known first, the others take what is left, in order."""
        fits = isinstance(term, Fold) and term.operator == step.operator
        left = Counter(term.items if fits and isinstance(term, Fold) else ())
        if not fits and not isinstance(term, Zero):
            raise _StuckError
        held = {cell: self._held(position, step, cell) for cell in run}
        for item in held.values():
            if item is not None and not isinstance(item, Zero):
                left[item] -= 1
                if left[item] < 0:
                    raise _StuckError
        rest = list(left.elements())
        open_cells = [cell for cell, item in held.items() if item is None]
        if len(rest) > len(open_cells):
            raise _StuckError
        for cell, item in zip(open_cells, [*rest, *[Zero()] * len(open_cells)], strict=False):
            self._ask_inner(position, step, cell, item)

    def _held(self, position: int, step: Apply, cell: int) -> Term | None:
        """What a cell before the fold holds already; None: that is still open."""
        if position == self.hole:
            return self.asked.get(cell)
        arg, at = self._read(step, position, cell)
        if arg < 0:
            return Zero() if at == ZERO else Undefined()
        if arg == self.hole and self._gather_of(arg).fold is None:
            return self.asked.get(at)
        return self.values[arg][at] if self.known[arg] else None

    def _ask_inner(self, position: int, step: Apply, cell: int, term: Term) -> None:
        if position == self.hole:
            if self.asked.setdefault(cell, term) is not term:
                raise _StuckError
            return
        arg, at = self._read(step, position, cell)
        if arg >= 0:
            self._ask(arg, at, term)
        elif at != ZERO or not isinstance(term, Zero):
            raise _StuckError

    def _read(self, step: Apply, position: int, cell: int) -> tuple[int, int]:
        """The argument and its cell that a gather reads; (−1, entry) for zero and undefined."""
        place = int(step.gathers.table(self.fill.get(position, 0))[cell])
        if place < 0:
            return -1, place
        for arg in step.args:
            cells = len(self.values[arg])
            if place < cells:
                return arg, place
            place -= cells
        raise _StuckError

    def _gather_of(self, position: int) -> Apply:
        step = self.reading.program.steps[position]
        assert isinstance(step, Apply)
        return step
