"""Every mapping that obeys: constraints become a space, which is searched with propagation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from warploom.array.mapping.constraint import LEVELS, RUNS, Clause, Constraints, Is
from warploom.array.mapping.reduced import reduced
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.problem import SpaceProblem, set_bits
from warploom.search.branching.tree import count_all, enumerate_all
from warploom.search.budget import Budget
from warploom.search.engine import Result
from warploom.search.outcome import Found
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space
from warploom.search.space.ir import Choice, Sentence
from warploom.search.space.ir import Or as AnyOf

# One row for each mapping, one column for each map in the order of its number: places in RUNS.
Table = npt.NDArray[np.int8]


class MappingSpace:
    """The space of mappings: `runs` of every map that is open; `used` says of every parallel run
    whether some map has it."""

    def __init__(self, constraints: Constraints) -> None:
        self.constraints = constraints
        self.reduced = reduced(constraints)
        self.maps = self.reduced.open
        self.space = Space("mappings")
        everyone = self.space.objects("maps", [_label(each) for each in self.maps])
        levels = self.space.objects("levels", LEVELS)
        self.runs: Choice = self.space.choice("runs", everyone, values=RUNS)
        self.used: Choice = self.space.boolean("used", levels, derived=True)
        self._map = {
            each: self.space.objects(f"only map {each}", [_label(each)]).one("m")
            for each in self.maps
        }
        self._level = {
            each: self.space.objects(f"only level {each}", [each]).one("c") for each in LEVELS
        }
        self._declare()

    def _declare(self) -> None:
        for each in self.maps:
            allowed = sorted(self.reduced.choices[each])
            self.space.require(self.runs(self._map[each]).is_(*allowed))
        for run in LEVELS:
            self._define(run)
        for clause in () if self.reduced.impossible else self.reduced.clauses:
            self.space.require(self._sentence(clause))
        if self.reduced.impossible:
            self.space.require(AnyOf(()))

    def _define(self, run: str) -> None:
        """A run is used if some map has it."""
        used, decided = self.used(self._level[run]), self.reduced.used.get(run)
        if decided is not None:
            self.space.require(used.is_("TRUE" if decided else "FALSE"))
        able = [each for each in self.maps if run in self.reduced.choices[each]]
        if decided is False:
            return
        for each in able:
            self.space.require(self.runs(self._map[each]).is_not(run) | used.is_("TRUE"))
        if not any(allowed == {run} for allowed in self.reduced.choices.values()):
            some = [self.runs(self._map[each]).is_(run) for each in able]
            self.space.require(AnyOf((used.is_("FALSE"), *some)))

    def _sentence(self, clause: Clause) -> Sentence:
        parts: list[Sentence] = []
        for each in clause:
            if isinstance(each, Is):
                parts.append(self.runs(self._map[each.map]).is_(*sorted(each.runs)))
            else:
                value = "TRUE" if each.truth else "FALSE"
                parts.append(self.used(self._level[each.run]).is_(value))
        return AnyOf(tuple(parts))

    def table(self, batches: Iterable[Candidates], propagator: Propagator) -> Table:
        """Decided candidates as rows of numbers, decided maps among them."""
        columns = propagator.columns(self.runs)
        rows = [np.zeros((0, len(self.maps)), np.int8)]
        for batch in batches:
            _, bit = set_bits(batch.domains[:, columns].reshape(-1))
            rows.append(bit.astype(np.int8).reshape(len(batch), len(self.maps)))
        some = np.concatenate(rows)
        every = np.zeros((len(some), len(self.reduced.choices)), np.int8)
        for at, (number, allowed) in enumerate(self.reduced.choices.items()):
            if number in self.maps:
                every[:, at] = some[:, self.maps.index(number)]
            else:
                every[:, at] = RUNS.index(min(allowed)) if allowed else 0
        return every


def _label(number: int) -> str:
    return f"map {number}"


def count_mappings(constraints: Constraints) -> Result[int]:
    """How many mappings there are."""
    return count_all(SpaceProblem(Propagator(MappingSpace(constraints).space)))


def all_mappings(constraints: Constraints, budget: Budget | None = None) -> Result[Table]:
    """Every mapping, as rows of numbers."""
    space = MappingSpace(constraints)
    propagator = Propagator(space.space)
    result = enumerate_all(SpaceProblem(propagator), budget)
    outcome = result.outcome
    if not isinstance(outcome, Found):
        return Result(outcome, result.statistics)
    table = space.table(outcome.answer, propagator)
    return Result(Found(table, outcome.complete, outcome.stopped), result.statistics)


def as_assignment(constraints: Constraints, row: npt.NDArray[np.int8]) -> dict[int, str]:
    """A row of a table, by map."""
    return {each: RUNS[int(at)] for each, at in zip(constraints.choices, row, strict=True)}
