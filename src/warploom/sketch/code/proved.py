"""A program with a fill that was verified: what kernels are made of, and what their header says.

`find` searches, at a small size first where one is given, and carries the fill over; `prove` takes
a fill as it comes. Either way the fill is run against the goal once more before anyone sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from warploom.errors import CheckError, SearchError
from warploom.index.ir import Expr
from warploom.search.budget import Budget
from warploom.search.outcome import NothingFoundError, Verdict
from warploom.sketch.code.move import Move, composed, move_of
from warploom.sketch.holes import choice_from_json, choice_to_json
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.show import show_index
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.transfer import transfer
from warploom.sketch.term.evaluate import Fill, choices
from warploom.sketch.term.gather import GatherExpr, Sense
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.verify import Verification, Verifier

SECONDS = 20.0


@dataclass(frozen=True, eq=False)
class Proved:
    """`choices[n]` is what step n takes, 0 where it has no choice; operators are resolved."""

    program: Program
    choices: tuple[int, ...]
    verification: Verification

    @cached_property
    def positions(self) -> dict[str, int]:
        """Steps by name."""
        return {step.name: at for at, step in enumerate(self.program.steps)}

    def step(self, name: str) -> Apply:
        step = self.program.steps[self.positions[name]]
        if not isinstance(step, Apply):
            raise CheckError(f"'{name}' is an input, not a gather", step.span)
        return step

    def gather(self, name: str) -> GatherExpr:
        """The arithmetic of one step, over its output coordinates."""
        return self.step(name).gathers.expression(self.choices[self.positions[name]])

    def move(self, name: str, source: str | None = None) -> Move:
        """One step as a move, or all steps from `source`, each of the one before, as one."""
        step = self.step(name)
        shapes = step.gathers.arg_shapes
        own = move_of(self.gather(name), shapes, step.gathers.out_shape, step.span)
        before = [self.program.steps[arg].name for arg in step.args]
        if source is None or before == [source]:
            return own
        if len(before) != 1 or step.fold is not None:
            raise CheckError(f"'{name}' is not made of '{source}' by moves alone", step.span)
        return composed(own, self.move(before[0], source))

    def kept(self, name: str) -> Expr:
        """Where a step of one argument keeps a cell, over its lanes and registers."""
        return self.move(name).kept

    @property
    def doc(self) -> str:
        """The fill and the verdict, for the header of a kernel."""
        if not self.program.holes:
            nothing = f"Nothing is searched: the sketch '{self.program.name}' has no hole."
            return f"{nothing}\nVerdict: {self.verification}"
        lines = [f"Solution of the sketch '{self.program.name}', where x0 is the lane:"]
        for hole in self.program.holes:
            step = self.program.steps[hole]
            assert isinstance(step, Apply)
            sources = [self.program.steps[arg].name for arg in step.args]
            lines.append(f"  {step.name} = {show_index(self.gather(step.name), sources)}")
        return "\n".join([*lines, f"Verdict: {self.verification}"])

    def to_json(self) -> dict[str, dict[str, Any]]:
        """The choice of every hole, by its name."""
        return {
            step.name: choice_to_json(step.gathers, self.choices[hole])
            for hole in self.program.holes
            if isinstance(step := self.program.steps[hole], Apply)
        }


def prove(program: Program, fill: Fill, goal: int = 0) -> Proved:
    """The program with this fill; an error if it does not do what the goal asks."""
    verifier = Verifier(program, program.goals[goal])
    verification = verifier.verify(fill)
    if verification.verdict is not Verdict.PROVED:
        raise SearchError(f"the fill of '{program.name}' is {verification}")
    return Proved(verifier.program, choices(program, fill), verification)


def prove_json(program: Program, records: Mapping[str, object], goal: int = 0) -> Proved:
    """`prove` for choices that were carried as data, by the name of the hole."""
    return prove(program, fill_from_json(program, records), goal)


def fill_from_json(program: Program, records: Mapping[str, object]) -> dict[int, int]:
    """The fill that choices by the name of the hole stand for."""
    fill: dict[int, int] = {}
    for hole in program.holes:
        step = program.steps[hole]
        assert isinstance(step, Apply)
        if step.name not in records:
            raise CheckError(f"there is no choice for the hole '{step.name}'", step.span)
        fill[hole] = choice_from_json(step.gathers, records[step.name])
    return fill


def find(program: Program, small: Program | None = None, seconds: float = SECONDS) -> Proved:
    """The best fill, by search, or carried over from a `small` size of the same sketch."""
    if small is not None:
        carried = transfer(_searched(small, seconds), program, readings=(Sense.NATURAL,))
        if len(carried.fills):
            return prove(program, carried.fills.as_dict(0))
    return prove(program, _searched(program, seconds).fills.as_dict(0))


def _searched(program: Program, seconds: float) -> Result:
    result = synthesize(program, mode="best", budget=Budget(seconds))
    if not len(result.fills):
        why = f"the holes of '{program.name}' were not filled: {result.outcome}"
        raise NothingFoundError(why, result.outcome)
    return result
