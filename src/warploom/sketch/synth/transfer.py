"""Size transfer: a fill found at a small size comes in, a fill proved at a larger size comes out.

A choice is a row of parameters. A constant in it either means itself at every size, or it means the
size, a share of it, its end …: the family of the choice knows which rows it may be elsewhere, the
likeliest reading first (`Sense`). `offers` lists what whole fills may be; it serves term sketches
here, warp sketches in `simt/solve.py`, the catalogue and the table of transpositions. What is
offered is searched and verified as usual: a wrong guess costs time, never a wrong answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from warploom.errors import CheckError, located
from warploom.search.budget import Budget, BudgetSpentError, peak_megabytes
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.sketch.build import Sketch
from warploom.sketch.given import program_of
from warploom.sketch.holes import choices_of
from warploom.sketch.synth.fills import Fills
from warploom.sketch.synth.result import Result, Stats
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.gather import GatherSet, Sense
from warploom.sketch.term.ir import Apply, Program, Step
from warploom.sketch.term.verify import Verifier

# Fills of the small size that are tried before giving up.
FILLS_TO_TRY = 16

AnyHole = TypeVar("AnyHole")
AnyChoice = TypeVar("AnyChoice")
AnyOffer = TypeVar("AnyOffer")


def offers(
    fills: Sequence[Mapping[AnyHole, AnyChoice]],
    read: Callable[[AnyHole, AnyChoice, Sense], AnyOffer],
    readings: Iterable[Sense],
) -> Iterator[tuple[Sense, dict[AnyHole, AnyOffer]]]:
    """What fills of one size may be at another, by hole: the likeliest reading of each fill first.

    `read(hole, choice, reading)` says what one choice may be there.
    """
    for reading in readings:
        for fill in fills:
            yield reading, {hole: read(hole, choice, reading) for hole, choice in fill.items()}


def counterparts(
    small: GatherSet, choice: int, large: GatherSet, reading: Sense
) -> tuple[int, ...]:
    """The choices of the large set that one choice of the small set may correspond to."""
    if type(small.family) is not type(large.family):
        return ()
    if reading is Sense.FORM:
        form = small.family.forms(small.row(choice)[None])
        forms = large.family.forms(large.spelled)
        if form.shape[1] != forms.shape[1]:
            return ()
        return tuple(np.unique(large.owner[(forms == form).all(axis=1)]).tolist())
    rows = small.rows(choice) if reading is Sense.ANY else small.row(choice)[None]
    found = choices_of(large, small.family.counterparts(rows, large.family, reading))
    return tuple(np.unique(found[found >= 0]).tolist())


@located
def transfer(
    small: Result,
    large: Program | Sketch,
    *,
    readings: Iterable[Sense] = Sense,
    budget: Budget | None = None,
) -> Result:
    """The first fill of `small` that has a right counterpart in `large`, the same sketch larger.

    Undecided with reason COUNTERPART if there is none, which says nothing about other fills.
    """
    large = program_of(large)
    if not isinstance(small, Result):
        raise CheckError(
            f"what is carried over is a Result, not a {type(small).__name__}",
            advice="give what synthesize found at the small size",
        )
    _check_same_sketch(small.program, large)
    if not len(small.fills):
        raise CheckError("there is no fill to transfer", advice="find one at the small size first")
    goal = small.program.goals.index(small.goal)
    carrying = _Carrying(large, goal, budget or Budget())
    fills = [
        dict.fromkeys(large.holes, 0) | small.fills.as_dict(number)
        for number in range(min(len(small.fills), FILLS_TO_TRY))
    ]

    def read(hole: int, choice: int, reading: Sense) -> tuple[int, ...]:
        old, new = _gathers(small.program, hole), _gathers(large, hole)
        return counterparts(old, choice, new, reading)

    try:
        for reading, offered in offers(fills, read, readings):
            kept = {hole: offered[hole] for hole in large.holes}
            result = carrying.tried(kept, exact=reading in (Sense.NATURAL, Sense.SHARE))
            if result is not None:
                return result
    except BudgetSpentError as spent:
        return carrying.nothing(spent.reason)
    return carrying.nothing(Reason.COUNTERPART)


def _gathers(program: Program, position: int) -> GatherSet:
    step = program.steps[position]
    assert isinstance(step, Apply)
    return step.gathers


class _Carrying:
    """Tries what a fill may be in `large`; what was tried before is not tried again."""

    def __init__(self, large: Program, goal: int, budget: Budget) -> None:
        self.large, self.goal, self.budget = large, goal, budget
        self.seen: set[tuple[tuple[int, ...], ...]] = set()
        self.verifier = Verifier(large, large.goals[goal])
        self.started = time.monotonic(), time.process_time()

    def tried(self, kept: dict[int, tuple[int, ...]], exact: bool) -> Result | None:
        """A right fill among these choices by hole, or why the search stopped, or None.

        `exact`: nothing else is meant; else a hole for which nothing is offered is left open.
        """
        self.budget.check()
        if exact and not all(kept.values()):
            return None
        kept = {
            hole: some or tuple(range(len(_gathers(self.large, hole))))
            for hole, some in kept.items()
        }
        if tuple(kept.values()) in self.seen:
            return None
        self.seen.add(tuple(kept.values()))
        if all(len(some) == 1 for some in kept.values()):
            return self._checked({hole: some[0] for hole, some in kept.items()})
        found = synthesize(narrow(self.large, kept), self.goal, mode="best", budget=self.budget)
        if isinstance(found.outcome, Impossible):
            return None
        return self._widened(found, kept)

    def _checked(self, fill: dict[int, int]) -> Result | None:
        if not self.verifier.verify(fill):
            return None
        return self._result([fill], self._stats())

    def _widened(self, found: Result, kept: dict[int, tuple[int, ...]]) -> Result:
        """The result in the choices of the whole program, verified there."""
        fills = []
        for number in range(len(found.fills)):
            narrowed = found.fills.as_dict(number)
            fills.append({hole: some[narrowed.get(hole, 0)] for hole, some in kept.items()})
        if not isinstance(found.outcome, Found):
            return replace(self._result(fills, found.stats), outcome=found.outcome)
        return self._result(fills, found.stats, found.outcome.stopped)

    def _result(
        self, fills: list[dict[int, int]], stats: Stats, stopped: Reason | None = None
    ) -> Result:
        holes = self.large.holes
        rows = [[fill[hole] for hole in holes] for fill in fills]
        listed = Fills(holes, len(rows), np.array(rows, np.int64).reshape(len(rows), len(holes)))
        verdicts = tuple(self.verifier.verify(fill) for fill in fills)
        outcome = Found(listed, False, stopped)
        return Result(self.large, self.large.goals[self.goal], outcome, listed, verdicts, stats)

    def _stats(self) -> Stats:
        """Nothing was searched."""
        wall, cpu = self.started
        spent = time.monotonic() - wall, time.process_time() - cpu
        return Stats(0, (), 1, 0, None, {}, *spent, peak_megabytes())

    def nothing(self, reason: Reason) -> Result:
        result = self._result([], self._stats())
        return replace(result, outcome=Undecided(reason))


def narrow(program: Program, kept: Mapping[int, tuple[int, ...]]) -> Program:
    """The program with, in each of these holes, only some choices."""
    steps: list[Step] = list(program.steps)
    for position, some in kept.items():
        step = steps[position]
        assert isinstance(step, Apply)
        steps[position] = replace(step, gathers=step.gathers.only(some))
    return replace(program, steps=tuple(steps))


def _check_same_sketch(small: Program, large: Program) -> None:
    advice = "build both from one function of the sizes"
    if len(small.steps) != len(large.steps) or len(small.goals) != len(large.goals):
        raise CheckError("the two sizes have different numbers of steps or goals", advice=advice)
    for old, new in zip(small.steps, large.steps, strict=True):
        if _outline(old) != _outline(new):
            raise CheckError(f"step '{old.name}' differs between the two sizes", advice=advice)


def _outline(step: Step) -> tuple[object, ...]:
    """What must not change with the size: all but lengths."""
    if isinstance(step, Apply):
        gathers = step.gathers
        ranks = tuple(map(len, gathers.arg_shapes))
        return step.name, len(step.shape), step.args, gathers.function, ranks, step.operator
    return step.name, len(step.shape)
