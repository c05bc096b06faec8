"""A loop nest explored: its space, a bound, the best implementation that is found, tried.

In come a program, a target and the rates of a machine, with decisions that a user has taken; out go
estimates of the space, reasons of the bound, or an `Explored` record. What is minimised is
`measure`: times on a device, or, where there is none, the bound itself, which is a model only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.parts import with_names, with_notes
from warploom.errors import CheckError, InternalError, UnsupportedError, located
from warploom.kernel.ir import Kernel
from warploom.kernel.work import work_of
from warploom.loopnest.bound import Bound, Reason
from warploom.loopnest.decided import Implementation
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower, outlined
from warploom.loopnest.schedule import bound_words, limit_words, nest_schedule
from warploom.loopnest.show import show, show_instruction
from warploom.loopnest.space import DECIDED, NestSpace
from warploom.loopnest.strategies.form import LOOPS, Variant
from warploom.loopnest.target import DEFAULT, Target
from warploom.loopnest.trial import Tried, tried
from warploom.machine.rates import Rates
from warploom.machine.times import Prediction, predicted, time_words
from warploom.pictured import PublicResult
from warploom.pipeline.ended import ended_words
from warploom.pipeline.kept import NOTHING_KEPT, Kept
from warploom.search.branching.bound import Best, minimise
from warploom.search.branching.candidate import Bits, Candidates, Decision, Flags, Numbers
from warploom.search.branching.decided import decision_from, decision_record, decisions_of
from warploom.search.branching.descent import Descents, descended, seeds
from warploom.search.branching.estimate import Estimate, Walks, represented, together, walked
from warploom.search.branching.explore import (
    Exploration,
    explore,
    random_improvements,
    tree_improvements,
)
from warploom.search.branching.fix import allows, fixed
from warploom.search.branching.problem import SpaceProblem
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.engine import OnProgress, Progress, Result, Watch
from warploom.search.history import History
from warploom.search.outcome import Found, NothingFoundError, Outcome
from warploom.search.outcome_json import Record, outcome_record, statistics_record
from warploom.search.statistics import Statistics
from warploom.search.storage.content import content_digest

ENGINES = {"tree": tree_improvements, "random": random_improvements}
# How many at a time: measuring goes over all cores, and something soon is better than nothing.
MEASURED, LOOKED_AT = 64, 16
# Of the time, what is kept for the trial of what was found, and seconds that it always gets.
TRIAL_SHARE, TRIAL_SECONDS, TRIAL_LEAST = 0.25, 2.0, 0.3
ROUNDING = 1e-9  # of a bound that was written and read
PLENTY = 1 << 30  # bytes of shared memory, more than any kernel uses
FREE = "none"  # the nest itself, without a strategy
# Of which kind a space is, then what makes it.
Recipe: TypeAlias = tuple[Any, ...]
WALKED = {"Knuth": 64, "Chen": 4}  # at a time
Measured = Callable[[Candidates], Numbers]
# Decided again in the neighbourhood of a good implementation.
NEARBY = (
    ("size",), ("order",), ("dim_kind", "thread_mapping", "order", "layout"),
    *((each, "padding", "swizzle", "stages", "fill") for each in ("size", "cache")),
)  # fmt: skip
TRIES = 4  # descents of what runs after a kernel, of which the best by the model is taken


class Helpers(Protocol):
    """Others who know the nest, too (`helped.py`)."""

    def descend(self, here: Candidates, seed: Bits, cost: float, watch: Watch) -> Descents: ...
    def walks(self, asked: Sequence[tuple[Any, ...]]) -> list[Walks]: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explored(PublicResult):
    """What `explore` found: the best implementation of a loop nest that was looked at.

    `nanoseconds` is its time, measured on `device`; where that is None it is predicted by the time
    model of the machine, or, where the machine has none, the bound. With the
    tile sizes that the nest gives, no implementation takes less than `bound`. `candidate` is the
    implementation in its space, which is that of a `strategy` where one made it. `race` says all
    that was measured.
    """

    outcome: Outcome[Best]
    candidate: Candidates | None
    nanoseconds: float
    bound: float
    evaluated: int
    trial: Tried | None
    statistics: Statistics
    nest: Nest | None = None  # what was explored
    history: History | None = None
    device: str | None = None  # where times were taken
    strategy: str = ""
    race: Any = None
    ended: str | None = None  # why no more were looked at
    predicted: bool = False  # whether times are those of the time model

    def __str__(self) -> str:
        name = "loop nest" if self.nest is None else self.nest.whole.name
        if self.candidate is None:
            return f"{name}: {self.outcome}"
        lines = [f"{name}: {time_words(self.nanoseconds)} {self.how}"]
        if self.nest is not None:
            lines.append(f"  {self.nest.bound_words(bool(self.strategy))}; {self.looked_at}")
            lines.append(f"  schedule: {self.nest.schedule(self.candidate)}")
        return "\n".join([*lines, *([] if self.trial is None else [f"  it {self.trial}"])])

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def how(self) -> str:
        """Where its time is from."""
        if self.device is not None:
            return f"measured on {self.device}"
        return (
            f"by the {'time model' if self.predicted else 'bound, which is a model'}: not measured"
        )

    @property
    def looked_at(self) -> str:
        """How many implementations were looked at, and why no more."""
        some = f"{self.evaluated} implementation{'' if self.evaluated == 1 else 's'} looked at"
        return some if self.ended is None else f"{some} ({self.ended})"

    @property
    def _known_nest(self) -> Nest:
        if self.nest is None:
            raise UnsupportedError("what was explored is not known any more: explore it again")
        return self.nest

    @property
    def program(self) -> Program:
        """The loop nest that was explored."""
        return self._known_nest.whole

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the best implementation, in the order in which they run."""
        if self.candidate is None:
            name = self.program.name
            raise NothingFoundError(
                f"'{name}' has no implementation to write: {self.outcome}", self.outcome
            )
        return self._known_nest.kernels(self)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the best implementation, where it is one alone."""
        first, *others = self.kernels
        if others:
            raise UnsupportedError(
                f"'{self.program.name}' has {1 + len(others)} kernels",
                advice="they are in .kernels",
            )
        return first

    @located
    def text(self, language: Language = "cuda", name: str | None = None) -> str:
        """All kernels, in a language by its name; `name` is theirs."""
        return "\n".join(emit(each, language) for each in with_names(self.kernels, name))

    @located
    def certificate(self) -> Record:
        """The proof of a product or of attention by warp groups, as plain data: `warploom verify`
        checks it."""
        found: Record = PublicResult.above("kernel_certificate")(self)
        return found

    def reasons(self) -> list[Reason]:
        """Why no implementation can be faster than the bound: the slowest resource first."""
        return self._known_nest.reasons()

    def record(self) -> Record:
        """What `warploom explore --json` writes."""
        nest = self._known_nest
        head = {"name": nest.whole.name, "machine": nest.rates.name}
        return {**head, **nest.record(self, NOTHING_KEPT, self.device)}


@dataclass(frozen=True, slots=True, eq=False)
class Then:
    """The program of a kernel that runs after another one, with what is decided of it."""

    program: Program
    fixes: tuple[str, ...]


class Nest:
    """A space with a bound, after the decisions that a user has taken; `then` is of a kernel that
    runs after those of the space, `whole` what a strategy made the program of. What a user has
    `asked` of a strategy's space is none of the decisions here."""

    asked: tuple[str, ...] = ()

    def __init__(
        self,
        program: Program,
        rates: Rates,
        target: Target = DEFAULT,
        fixes: Sequence[str] = (),
        decided: Sequence[str] = DECIDED,
        then: Then | None = None,
        whole: Program | None = None,
    ) -> None:
        self.program, self.rates, self.target, self.then = program, rates, target, then
        self.fixes, self.whole = tuple(fixes), whole or program
        self.recipe: Recipe = (
            LOOPS, program, rates, target, self.fixes, tuple(decided), then, whole
        )  # fmt: skip
        self.space = NestSpace(program, target, decided)
        if target.cuts and not allows(self.space.propagator, fixes):  # what a user wants is not cut
            self.target = replace(target, cuts=())
            self.space = NestSpace(program, self.target, decided)
        self.bound = Bound(self.space, rates)
        self.decisions = self._fixed(fixes)
        self.root = self.space.propagator.root(self.decisions)
        self._told: tuple[Candidates, str] | None = None
        self.problem = SpaceProblem(
            self.space.propagator, self.decisions, self.space.branch, self.bound, self.bound
        )

    def _fixed(self, fixes: Sequence[str]) -> tuple[Decision, ...]:
        """What a user decided; where only the room in shared memory is in the way, that is said."""
        try:
            return fixed(self.space.propagator, fixes)
        except CheckError as error:
            _, program, _, _, _, decided, *_ = self.recipe
            target = self.target
            room = target.machine.but(shared_bytes=PLENTY, shared_bytes_most=PLENTY)
            try:
                fixed(NestSpace(program, replace(target, machine=room), decided).propagator, fixes)
            except CheckError:
                raise error from None
            raise CheckError(
                f"decisions need more shared memory than the {target.shared_bytes} bytes that a "
                f"block of '{target.machine.name}' may take",
                advice="take smaller tiles, fewer stages or no padding",
            ) from None

    @cached_property
    def after(self) -> tuple[Nest, Candidates] | None:
        """What runs after a kernel of this space: the best of some descents by the time model, or
        by the bound. All that counts of it is decided, so that these differ in little."""
        if self.then is None:
            return None
        nest = Nest(self.then.program, self.rates, self.target, self.then.fixes)
        here = nest.root.take(np.zeros(TRIES if nest.is_possible else 0, np.int64))
        found = descended(nest.problem, here, seeds(len(here), np.random.default_rng(0)),
                          lambda some: 1 / (nest.bound(some) + 1), Watch())  # fmt: skip
        leaves = [found.leaves.take(slice(int(row), int(row) + 1))
                  for row in np.flatnonzero(found.arrived)]  # fmt: skip
        if not leaves:
            raise InternalError(f"nothing puts the parts of {self.whole.name} together")
        return nest, min(leaves, key=nest.predicted_time if self.has_times else nest.least_of)

    def least_of(self, candidate: Candidates) -> float:
        """The bound of a candidate; of two kernels one after the other, the sum."""
        own = float(self.bound(candidate)[0])
        return own if self.after is None else own + self.after[0].least_of(self.after[1])

    @property
    def is_possible(self) -> bool:
        return len(self.root) > 0

    def reasons(self) -> list[Reason]:
        """Why no implementation that is left can be faster than the bound."""
        return self.bound.explain(self.root)

    def least(self) -> float:
        return float(self.bound(self.root)[0])

    def bound_words(self, others: bool = False) -> str:
        """The bound, and of which implementations it holds; `others`: strategies have more."""
        return bound_words(self.program, self.least(), bool(self.decisions), others)

    def implementation(self, candidate: Candidates) -> Implementation:
        return Implementation(self.space, candidate, 0)

    def threads_of(self, candidate: Candidates) -> int:
        """How many threads a block has."""
        return math.prod(self.implementation(candidate).levels)

    draws = 1  # descents for each that is drawn, which is the best of them by its predicted time

    def reopened(self, random: np.random.Generator) -> tuple[str, ...]:
        """Choices that are decided again near a good implementation."""
        return NEARBY[int(random.integers(len(NEARBY)))]

    # -- predictions -------------------------------------------------------------------------------

    @property
    def has_times(self) -> bool:
        """Whether times can be predicted for this machine."""
        return "times" in vars(self.target.machine)

    def predicted(self, candidate: Candidates, kernel: Kernel | None = None) -> Prediction:
        """The time of an implementation by the time model, which ranks and proves nothing."""
        made = kernel or lower(self.implementation(candidate))
        return predicted(work_of(made), self.target.machine)

    def predicted_time(self, candidate: Candidates) -> float:
        """In nanoseconds; never below the bound."""
        return self._time(candidate, lower(self.implementation(candidate)))

    def outlined_time(self, candidate: Candidates) -> float:
        """In nanoseconds, by an outline of the kernel: many are compared by it."""
        return self._time(candidate, outlined(self.implementation(candidate)))

    def _time(self, candidate: Candidates, kernel: Kernel) -> float:
        bound = float(self.bound(candidate)[0])
        own = max(bound, float(self.predicted(candidate, kernel).nanoseconds))
        return own if self.after is None else own + self.after[0].predicted_time(self.after[1])

    # -- estimates ---------------------------------------------------------------------------------

    def estimates(
        self,
        walks: int,
        seed: int = 0,
        cut: float = math.inf,
        depth: int = 10**9,
        helpers: Helpers | None = None,
    ) -> tuple[Estimate, Estimate]:
        """By Knuth and by Chen; with a cut, without what its bound excludes down to a depth."""
        runs = max(2, walks // 100)
        asked = [
            (by, min(WALKED[by], count - first), (seed, at, first), cut, depth)
            for at, (by, count) in enumerate((("Knuth", walks), ("Chen", runs)))
            for first in range(0, count, WALKED[by])
        ]
        if helpers is None:
            found = [self.walks(*each) for each in asked]
        else:
            found = helpers.walks(asked)
        by = {
            name: [w for w, a in zip(found, asked, strict=True) if a[0] == name] for name in WALKED
        }
        return together(by["Knuth"]).estimate(), together(by["Chen"]).estimate()

    def walks(self, by: str, count: int, seed: tuple[int, ...], cut: float, depth: int) -> Walks:
        """Some walks, which depend on their seed alone."""

        def keep(candidates: Candidates, at: int) -> Flags:
            if at > depth:
                return np.ones(len(candidates), np.bool_)
            found: Flags = self.bound(candidates) < cut
            return found

        problem = SpaceProblem(self.space.propagator, self.decisions, self.space.decisions)
        way = walked if by == "Knuth" else represented
        random = np.random.default_rng(seed)
        return way(problem, count, random, keep=None if math.isinf(cut) else keep)

    # -- search ------------------------------------------------------------------------------------

    def search(
        self,
        engine: str = "tree",
        evaluations: int = 1000,
        *,
        measure: Measured | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        kept: Kept = NOTHING_KEPT,
        on_progress: OnProgress | None = None,
        helpers: Helpers | None = None,
        tries: bool = True,
    ) -> Explored:
        """The best implementation: of this run, or of those before it if none is better. Helpers
        do descents; what is found is the same. It is tried on the simulator, unless that is left to
        the caller."""
        count = 0
        whole = budget or Budget()
        budget = whole.shortened(TRIAL_SHARE, TRIAL_SECONDS)
        history = History([], "ns", self.least() if self.is_possible else None)
        on_progress = history.noting(on_progress)

        def counted(candidates: Candidates) -> Numbers:
            nonlocal count
            count += len(candidates)
            return (measure or self.bound)(candidates)

        if engine == "exact":
            problem = SpaceProblem(
                self.space.propagator, self.decisions, self.space.branch, self.bound, counted
            )
            result = minimise(problem, budget, on_progress)
        else:
            wanted = Exploration(
                self.problem,
                counted,
                evaluations,
                batch=LOOKED_AT if measure is None else MEASURED,
                seed=seed + kept.runs,
                cut=kept.nanoseconds,
                descend=None if helpers is None else helpers.descend,
            )
            result = explore(ENGINES[engine], wanted, budget, on_progress)
        left = whole.at_least(TRIAL_LEAST) if tries else None
        found = self._explored(result, kept, count, history, left)
        ended = ended_words(result.outcome, count, None if engine == "exact" else evaluations)
        return replace(found, ended=f"{count} in this run: {ended}" if kept.runs else ended)

    def _explored(
        self, result: Result[Best], kept: Kept, count: int, history: History, budget: Budget | None
    ) -> Explored:
        found, nanoseconds = None, math.inf
        if isinstance(result.outcome, Found):
            found, nanoseconds = result.outcome.answer.candidate, result.outcome.answer.cost
        if kept.best is not None and kept.nanoseconds <= nanoseconds and self.is_possible:
            found, nanoseconds = self.again(kept.best), kept.nanoseconds
        trial = None if found is None or budget is None else self.tried(found, budget)
        evaluated = kept.evaluated + count
        statistics = result.statistics
        # What engines say last is from before their last answer.
        last = None if found is None else nanoseconds
        history.add(
            Progress("end", statistics.states, count, last, statistics.seconds, statistics.pruned)
        )
        least = self.least() if self.is_possible else math.inf
        return Explored(
            result.outcome, found, nanoseconds, least, evaluated, trial, statistics, self, history
        )

    def tried(self, candidate: Candidates, budget: Budget | None = None) -> Tried:
        try:
            with (budget or Budget()).enforced():
                trial = tried(self.implementation(candidate))
                if self.after is not None:
                    trial = replace(trial, after=self.after[0].tried(self.after[1]))
        except BudgetSpentError as stop:
            return Tried({}, stopped=stop.reason)
        return self.right(trial)

    def right(self, trial: Tried) -> Tried:
        if trial.wrong:
            raise InternalError(
                f"an implementation of {self.program.name} is wrong: {trial.wrong}",
                advice="this is a bug of ours: please report it together with the decisions",
            )
        return trial

    def schedule(self, candidate: Candidates) -> str:
        """An implementation in words, and what limits its time."""
        if self._told is None or self._told[0] is not candidate:
            self._told = candidate, self._schedule(candidate)  # lowering takes a while
        return self._told[1]

    def _schedule(self, candidate: Candidates) -> str:
        made = self.implementation(candidate)
        kernel = lower(made)
        least = time_words(float(self.bound(candidate)[0]))
        limit = limit_words(self.bound.explain(candidate))
        told = ""
        if self.has_times:
            time = self.predicted(candidate, kernel)
            told = f"; {time}"
        own = f"{nest_schedule(made, kernel)}; bound {least}: limited by {limit}{told}"
        if self.after is None:
            return own
        return f"{own}; then another kernel: {self.after[0].schedule(self.after[1])}"

    def lowered(self, candidate: Candidates) -> tuple[Kernel, ...]:
        """All kernels of an implementation, in the order in which they run."""
        own = lower(self.implementation(candidate))
        return (own,) if self.after is None else (own, *self.after[0].lowered(self.after[1]))

    def kernels(self, explored: Explored) -> tuple[Kernel, ...]:
        """The kernels of what was found; their comments say what they compute, how, and what of
        them was checked."""
        assert explored.candidate is not None
        first, *others = self.lowered(explored.candidate)
        nest, own = self, self.schedule(explored.candidate)
        noted = [self._noted(first, own, explored.trial)]
        if self.after is not None:
            nest, leaf = self.after
            own = nest.schedule(leaf)
        return (*noted, *(nest._noted(each, own, explored.trial) for each in others))

    def _noted(self, kernel: Kernel, schedule: str, trial: Tried | None) -> Kernel:
        sizes = ", ".join(f"{axis.name} = {axis.size}" for axis in self.program.axes)
        made = [show_instruction(each) for each in self.program.instructions]
        return with_notes(
            kernel,
            *(f"  {each}" for each in made),
            f"Sizes: {sizes}.",
            f"Schedule: {schedule}.",
            f"Verdict: it {trial}.",
        )

    # -- records -----------------------------------------------------------------------------------

    def again(self, best: Mapping[str, Any]) -> Candidates:
        """The candidate that a record describes."""
        decisions = [decision_from(each) for each in best["decisions"]]
        found = self.space.propagator.root(decisions)
        if not len(found) or self.space.branch(found)[0] >= 0:
            raise CheckError("the kept implementation is none of this space")
        return found

    def best_record(self, explored: Explored) -> Record | None:
        if explored.candidate is None:
            return None
        follows = {choice.name for choice in self.space.space.choices if choice.derived}
        every = decisions_of(self.space.propagator, explored.candidate, 0)
        taken = [each for each in every if each.choice not in follows]
        return {
            "nanoseconds": explored.nanoseconds,
            "checked": str(explored.trial),
            "schedule": self.schedule(explored.candidate),
            **({"strategy": explored.strategy} if explored.strategy else {}),
            "decisions": [decision_record(each) for each in taken],
        }

    def _question(self, device: str | None) -> Record:
        """What an answer is of; `device` is where times were taken, None where they are bounds."""
        return {
            "program": show(self.program),
            "machine": self.rates.name,
            "space": [*self.target.kinds, *map(str, (*self.target.stages, *self.target.paddings))],
            "fixed": [*(decision_record(each) for each in self.decisions), *self.asked],
            "device": device,
            # Types, strides, constants to the last bit, limits: what the words above do not say.
            "details": content_digest((self.program, self.rates, self.target)),
        }

    def record(self, explored: Explored, kept: Kept, device: str | None = None) -> Record:
        """All that is needed to go on: see `kept_from`."""
        return {
            **self._question(device),
            "best": (explored.nest or self).best_record(explored),
            "bound": explored.bound if math.isfinite(explored.bound) else None,
            "evaluated": explored.evaluated,
            "ended": explored.ended,
            "runs": kept.runs + 1,
            **outcome_record(explored.outcome),
            # What an earlier run found is found, though this one has nothing better.
            **({} if explored.candidate is None else {"outcome": "found"}),
            **statistics_record(explored.statistics),
            "history": None if explored.history is None else explored.history.to_json(),
        }

    def kept_from(self, record: Mapping[str, Any], device: str | None = None) -> Kept:
        """What a record of this very question says; an error if it is of another."""
        for key, value in self._question(device).items():
            if record.get(key) != value or (key == "details" and value is None):
                raise CheckError(f"what was kept has another {key}", advice="name another file")
        match record:
            case {"runs": int(runs), "evaluated": int(evaluated), "best": best} if (
                runs >= 0 and evaluated >= 0 and self._is_best(best, device)
            ):
                return Kept(runs, evaluated, best)
        raise CheckError("what was kept is no record of an exploration")

    def _is_best(self, best: Any, device: str | None) -> bool:
        """Whether it may be the best of a record; an error if it is of another space. Said before
        anything is searched, or the search would be lost."""
        match best:
            case None:
                return True
            case {"nanoseconds": int() | float() as time, "decisions": list()}:
                if best.get("strategy", FREE) == FREE:
                    self.again(best)
                # Of what was measured the bound may have been wrong, which is counted elsewhere.
                least = self.least() * (1 - ROUNDING) if device is None else 0.0
                return least <= time <= sys.float_info.max
        return False


def recipe_of(variant: Variant, nest: Nest) -> Recipe:
    """What makes the space of a variant that a strategy made of a nest."""
    after = variant.after
    then = None if after is None else Then(after.program, after.fixes)
    made = variant.program, nest.rates, nest.target, variant.fixes, DECIDED, then, nest.program
    return variant.space, *made
