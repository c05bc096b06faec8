"""A mapping space taken apart into maps that nothing links: each part is listed by itself.

Whether a copy to registers is wide, say, depends on no other map; listing it with all others would
only repeat each mapping. All mappings are the product of the parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from warploom.array.joint.threads import ALONG, Groups, Ints
from warploom.array.mapping.constraint import (
    GLOBAL,
    LANE,
    LEVELS,
    LOCAL,
    RUNS,
    WARP,
    Clause,
    Constraint,
    Constraints,
    Is,
    Used,
)
from warploom.array.mapping.reduced import Reduced, reduced
from warploom.array.mapping.solve import MappingSpace, Table, all_mappings
from warploom.search.branching.descent import Sampling, sample
from warploom.search.branching.problem import SpaceProblem
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome, Undecided
from warploom.search.propagate.propagator import Propagator


@dataclass(frozen=True, slots=True)
class LinkedMaps:
    """Maps, and one row of runs (places in RUNS) for each way in which they can run."""

    maps: tuple[int, ...]
    rows: Table


@dataclass(frozen=True, slots=True)
class Parts:
    """`decided` are maps that can run in one way only."""

    decided: dict[int, str]
    listed: tuple[LinkedMaps, ...]

    @property
    def count(self) -> int:
        return prod(len(each.rows) for each in self.listed)

    def draw(
        self, random: np.random.Generator, count: int, groups: Groups
    ) -> tuple[dict[int, npt.NDArray[np.int8]], Ints]:
        """At most so many mappings, as a column for each map, and the dimensions in which each has
        threads. One that leaves more groups to choose from is drawn so much more often."""
        decided = [RUNS.index(run) for run in self.decided.values()]
        known = np.bitwise_or.reduce(threads_along(decided)) if decided else 0
        used, chosen = np.full(count, known, np.int64), []
        counted = np.ones(count)
        for part in self.listed:
            own = known | np.bitwise_or.reduce(threads_along(part.rows), axis=1)
            chances = np.where((own != known).any(), groups.counts[own], 1).astype(float)
            at = random.choice(len(part.rows), size=count, p=chances / chances.sum())
            chosen.append(at)
            used |= own[at]
            counted *= chances[at]
        # Several parts with threads have fewer groups together than one by one.
        keep = random.random(count) * counted <= groups.counts[used]
        keep |= sum((threads_along(part.rows) > 0).any() for part in self.listed) < 2
        left = int(keep.sum())
        found = {each: np.full(left, RUNS.index(run), np.int8)
                 for each, run in self.decided.items()}  # fmt: skip
        for part, at in zip(self.listed, chosen, strict=True):
            found |= {each: part.rows[at[keep], k] for k, each in enumerate(part.maps)}
        return found, used[keep]


def threads_along(runs: npt.ArrayLike) -> Ints:
    """The dimension of each run's threads, as `ALONG` counts them; 0 if it has none."""
    table = np.zeros(len(RUNS), np.int64)
    for side, same in enumerate(zip(LOCAL, GLOBAL, strict=True)):
        table[[RUNS.index(run) for run in same]] = ALONG[side]
    table[[RUNS.index(LANE), RUNS.index(WARP)]] = ALONG[0]
    found: Ints = table[np.asarray(runs)]
    return found


def parts_of(constraints: Constraints, budget: Budget | None = None) -> Outcome[Parts]:
    """Every mapping of each part; undecided if the budget is not enough to list them."""
    state = reduced(constraints)
    if state.impossible:
        return Impossible()
    decided = {
        each: min(allowed) for each, allowed in state.choices.items() if len(allowed) == 1
    }  # fmt: skip
    listed: list[LinkedMaps] = []
    for maps in _groups(state):
        outcome = all_mappings(_only(constraints, state, maps), budget).outcome
        if not isinstance(outcome, Found):
            return Impossible() if isinstance(outcome, Impossible) else outcome
        if not outcome.complete:
            assert outcome.stopped is not None
            return Undecided(outcome.stopped)
        listed.append(LinkedMaps(maps, outcome.answer))
    return Found(Parts(decided, tuple(listed)), complete=True)


def _groups(state: Reduced) -> Iterator[tuple[int, ...]]:
    """Open maps that share a clause, or a level that a clause asks for."""
    groups = [{each} for each in state.open]
    levels = [
        {each for each in state.open if run in state.choices[each]}
        for run in LEVELS
        if state.used.get(run) is None
    ]
    together = [set(_maps_of(clause, state)) for clause in state.clauses] + levels
    for linked in together:
        touched = [each for each in groups if each & linked]
        if len(touched) > 1:
            groups = [each for each in groups if each not in touched]
            groups.append(set().union(*touched))
    yield from sorted(tuple(sorted(each)) for each in groups)


def _maps_of(clause: Clause, state: Reduced) -> Iterator[int]:
    for literal in clause:
        if isinstance(literal, Is):
            yield literal.map
        else:
            yield from (each for each in state.open if literal.run in state.choices[each])


def _only(constraints: Constraints, state: Reduced, maps: tuple[int, ...]) -> Constraints:
    """The constraints on these maps, with what is known of all others put in."""
    clauses = [
        each for each in state.clauses if set(_maps_of(each, state)) & set(maps)
    ]  # fmt: skip
    taken = {run for allowed in state.choices.values() if len(allowed) == 1 for run in allowed}
    left = tuple(
        tuple(lit for lit in clause if not _is_false(lit, taken)) for clause in clauses
        if not any(_is_true(lit, taken) for lit in clause)
    )  # fmt: skip
    choices = {each: state.choices[each] for each in maps}
    return Constraints(constraints.name, choices, (Constraint("part", "", left),))


def _is_true(literal: Is | Used, taken: set[str]) -> bool:
    return isinstance(literal, Used) and literal.truth and literal.run in taken


def _is_false(literal: Is | Used, taken: set[str]) -> bool:
    return isinstance(literal, Used) and not literal.truth and literal.run in taken


def some_mappings(
    constraints: Constraints, count: int, seed: int = 0, budget: Budget | None = None
) -> Outcome[Parts]:
    """A few mappings by random descents, for who does not want to wait for all of them."""
    space = MappingSpace(constraints)
    if not space.maps:
        return parts_of(constraints, budget)
    propagator = Propagator(space.space)
    outcome = sample(Sampling(SpaceProblem(propagator), count, seed), budget).outcome
    if not isinstance(outcome, Found):
        return outcome
    rows = space.table(outcome.answer, propagator)
    part = LinkedMaps(tuple(constraints.choices), np.unique(rows, axis=0))
    return Found(Parts({}, (part,)), complete=False)
