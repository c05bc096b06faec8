"""Runs an engine on a program: budget, interruption, listing, verification, statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Protocol

import numpy as np

from warploom.errors import InternalError, SearchError, located
from warploom.search.budget import STOPS, Budget, BudgetSpentError, peak_megabytes, reason_of
from warploom.search.engine import Gathered, gather, outcome_of
from warploom.search.outcome import Impossible, Reason, Undecided
from warploom.search.statistics import Clock, Tally
from warploom.sketch.build import Sketch
from warploom.sketch.given import program_of
from warploom.sketch.synth.cost import Prices, cheapest
from warploom.sketch.synth.derivations import Derivations, derivations
from warploom.sketch.synth.engine import BATCH_BYTES, FIRST_BATCH_BYTES, Engine
from warploom.sketch.synth.fills import LIST_AT_MOST, Fills, oracle_states
from warploom.sketch.synth.pairs import PairsEngine
from warploom.sketch.synth.parts import Collected
from warploom.sketch.synth.problem import Problem, lower
from warploom.sketch.synth.result import HoleStats, Result, Stats, raw_space, search_tree
from warploom.sketch.synth.rows import Rows
from warploom.sketch.synth.smt import SmtEngine
from warploom.sketch.synth.split import Parting, Searched, search_in_pieces
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.read import check_symbols, with_laws
from warploom.sketch.term.verify import WRONG_ON_NUMBERS, Verification, Verifier

MODES = ("all", "first", "best")
ENGINES = ("default", "pairs", "smt")

# Of the time, what is kept for listing and verification; of the memory, what they may take more.
FINISHING_SHARE, FINISHING_SECONDS = 0.1, 1.0
FINISHING_MEMORY = 1.05
INTERRUPTED_SECONDS = 0.25  # for the same after Ctrl-C
PROVING_SECONDS = 0.25  # at least, for the proof of what was found

Progress = Callable[[str, int], None]


class SearchEngine(Protocol):
    """What `synthesize` needs of an engine."""

    budget: Budget
    tallies: dict[int, Tally]
    shared: dict[int, Rows]

    def prepare(self) -> bool: ...
    def solutions(self) -> Iterator[Rows]: ...


@located
def synthesize(
    program: Program | Sketch,
    goal: int = 0,
    *,
    mode: str = "all",
    engine: str = "default",
    laws: str | None = None,
    budget: Budget | None = None,
    on_progress: Progress | None = None,
    set_seconds: float = 0.0,
    fuel: int | None = None,
    single: bool = False,
    only_symbols: bool = False,
    parting: Parting | None = None,
) -> Result:
    """Fills the holes of a sketch so that its last step equals goal number `goal`.

    `laws`, "flatten" or "none", says which rewrites count as equal; by default the goal says.
    `mode`: all fills, the first one found, or the best by cost. `set_seconds` is the CPU time that
    was already spent on building the gather sets. `fuel` and `single` weaken the pairs engine, for
    the ablations of the paper. Ctrl-C and a spent budget keep what was found; fills not verified
    in time have verdict unknown. A fill that is right on symbols and wrong on numbers
    means that there is none; with `only_symbols` such fills are given, with that verdict. With
    `parting` a long search of the default engine is done in pieces that are kept, on as many cores
    as that says; modes "all" and "best" only, as the first fill is soon found.

    >>> from warploom import Sketch, synthesize
    >>> s = Sketch.from_text("x: [4] = range(0, 4)\\ny: [4] = ?rots{main=0,second=0,out=0}(x)\\n"
    ...                      "goal: [4] = [1, 2, 3, 0]", "turned")
    >>> result = synthesize(s)
    >>> print(result)
    turned: found, 1 fill, all there are; proved
      y  rot[shift=1]  x.flat[(x0 + 1) % 4]
    >>> "__shfl_sync" in result.text("cuda")
    True
    """
    if mode not in MODES or engine not in ENGINES:
        raise SearchError(
            f"unknown mode or engine: {mode}, {engine}",
            advice=f"modes: {', '.join(MODES)}; engines: {', '.join(ENGINES)}",
        )
    program = program_of(program)
    if isinstance(goal, bool) or goal not in range(len(program.goals)):
        raise SearchError(
            f"'{program.name}' has {len(program.goals)} goals, counted from 0", advice="give goal=0"
        )
    if budget is not None and not isinstance(budget, Budget):
        raise SearchError(
            f"a budget is a Budget, not {budget!r:.40}", advice="write budget=Budget(seconds=3)"
        )
    program = program if laws is None else with_laws(program, laws)
    check_symbols(program, program.goals[goal])
    limits = budget or Budget()
    with limits.interruptible():
        run = _Run(program, goal, mode, limits, on_progress, Clock({"sets": set_seconds}))
        found = run.result(engine, fuel, single, parting if engine == "default" else None)
    return found if only_symbols else settled(found)


def settled(result: Result) -> Result:
    """Impossible, if a fill is wrong on numbers: all that are right on symbols hold the same terms,
    so they compute the same."""
    wrong = next((each for each in result.verdicts if not each), None)
    if wrong is None:
        return result
    if not wrong.on_numbers:
        raise InternalError(f"the search for '{result.program.name}' gave a wrong fill: {wrong}")
    why = f"{WRONG_ON_NUMBERS}: {wrong}"
    none = Fills(result.fills.holes, 0, result.fills.choices[:0])
    return replace(result, outcome=Impossible(why), fills=none, verdicts=(wrong,))


@dataclass(slots=True, eq=False)
class _Run:
    """One call of `synthesize`: search, list, choose, verify, each within the budget."""

    program: Program
    goal: int
    mode: str
    limits: Budget
    on_progress: Progress | None
    clock: Clock
    started: float = field(default_factory=time.monotonic)

    def result(
        self, engine: str, fuel: int | None, single: bool, parting: Parting | None
    ) -> Result:
        try:
            with self.limits.enforced():
                problem = lower(self.program, self.program.goals[self.goal])
        except BudgetSpentError as stop:
            return self._unread(stop.reason)
        searcher = self._searcher(problem, engine, fuel, single)
        if parting is not None and isinstance(searcher, Engine) and self.mode != "first":
            search = search_in_pieces(
                searcher, self.program, self.goal, self.mode, parting, self.clock, self.on_progress
            )
        else:
            search = self._whole(problem, searcher)
        found, tallies, exhausted, stopped = search
        del searcher, search  # what is left of the memory is for what follows
        limits = self._finishing(stopped, sum(t.visited for t in tallies.values()))
        listed = found.first(self._listed(), limits.split(2))  # the other half is for the proofs
        fills = Fills(self.program.holes, found.count(), listed)
        self.clock.lap("search")
        complete = exhausted and len(fills) == fills.count
        oracle = oracle_states(fills, _options(self.program)) if complete else None
        if self.mode != "all" and len(fills):
            fills = self._best(found, fills, limits) if self.mode == "best" else fills.only(0)
        self.clock.lap("choose")
        searched = time.monotonic() - self.started
        verdicts, cut = _verify(self.program, self.goal, fills, limits)
        self.clock.lap("verify")
        seconds = self.clock.phases["sets"] + searched
        stats = _stats(self.program, tallies, oracle, self.clock, seconds)
        answers = [fills] if len(fills) else []
        complete = exhausted and (self.mode == "all" or not answers)
        outcome = outcome_of(Gathered(answers, complete, stopped or cut), itemgetter(0))
        goal = self.program.goals[self.goal]
        return Result(self.program, goal, outcome, fills, verdicts, stats)

    def _unread(self, reason: Reason) -> Result:
        """The budget was spent while program and goal were read together."""
        holes = self.program.holes
        fills = Fills(holes, 0, np.zeros((0, len(holes)), np.int64))
        stats = _stats(self.program, {}, None, self.clock, time.monotonic() - self.started)
        goal = self.program.goals[self.goal]
        return Result(self.program, goal, Undecided(reason), fills, (), stats)

    def _whole(self, problem: Problem, searcher: SearchEngine) -> Searched:
        # The default engine is enforced step by step: what a step has found goes on to the next.
        budget = None if isinstance(searcher, Engine) else searcher.budget
        most = 1 if self.mode == "first" else None
        finals = gather(_finals(searcher, self.clock), most, budget)
        found = derivations(problem, finals.answers, searcher.shared)
        return Searched(found, searcher.tallies, finals.exhausted, finals.stopped)

    def _searcher(
        self, problem: Problem, engine: str, fuel: int | None, single: bool
    ) -> SearchEngine:
        report = _by_name(self.program, self.on_progress)
        limits = self.limits.shortened(FINISHING_SHARE, FINISHING_SECONDS)
        if engine == "pairs":
            return PairsEngine(problem, limits, report, fuel, single)
        if engine == "smt":
            return SmtEngine(problem, limits, report)
        batch = FIRST_BATCH_BYTES if self.mode == "first" else BATCH_BYTES
        return Engine(problem, limits, batch, report)

    def _listed(self) -> int:
        return 1 if self.mode == "first" else LIST_AT_MOST

    def _finishing(self, stopped: Reason | None, states: int) -> Budget:
        """For listing and verification: what is left of the time, and never quite nothing."""
        seconds, megabytes = self.limits.seconds_left, self.limits.megabytes
        if stopped is Reason.MEMORY and seconds is None:
            seconds = FINISHING_SECONDS
        if stopped is Reason.MEMORY and megabytes is not None:
            megabytes *= FINISHING_MEMORY
        report, name = self.on_progress, self.program.steps[-1].name
        watch = None if report is None else partial(report, name, states)
        left = self.limits.at_least(INTERRUPTED_SECONDS)  # another Ctrl-C ends this, too
        if not self.limits.interrupted:
            left.seconds = seconds
        left.megabytes = megabytes
        return left.watched(watch)

    def _best(self, found: Derivations | Collected, fills: Fills, limits: Budget) -> Fills:
        """The cheapest of all fills, or, where they are too many to list, of those with fewest
        operations (the first `LIST_AT_MOST` of these, should they be too many again)."""
        prices = Prices(self.program)
        if len(fills) < fills.count:

            def price(hole: int, choice: int) -> int:
                limits.check()
                return prices.of({hole: choice})[0]

            with suppress(*STOPS):  # then of those that are listed
                choices = found.cheapest(price).first(LIST_AT_MOST, limits)
                fills = Fills(fills.holes, fills.count, choices)
        return cheapest(prices, fills, limits)


def _by_name(program: Program, report: Progress | None) -> Callable[[int, int], None] | None:
    if report is None:
        return None
    return lambda position, states: report(program.steps[position].name, states)


def _finals(searcher: SearchEngine, clock: Clock) -> Iterator[Rows]:
    """The final states of an engine, batch by batch."""
    feasible = searcher.prepare()
    clock.lap("prepare")
    if feasible:
        yield from searcher.solutions()


def _verify(
    program: Program, goal: int, fills: Fills, budget: Budget
) -> tuple[tuple[Verification, ...], Reason | None]:
    """One for each listed fill; fewer if the budget is spent, and then the verdict is open. There
    is always some time for the first."""
    checked: list[Verification] = []
    try:
        with budget.at_least(PROVING_SECONDS).enforced():
            verifier = Verifier(program, program.goals[goal]) if len(fills) else None
            for number in range(len(fills)):
                if verifier is not None:
                    checked.append(verifier.verify(fills.as_dict(number)))
                budget.check()
    except STOPS as stop:
        return tuple(checked), reason_of(stop) if len(checked) < len(fills) else None
    return tuple(checked), None


def _options(program: Program) -> list[int]:
    steps: Iterable[Apply] = (program.steps[h] for h in program.holes)  # type: ignore[misc]
    return [len(step.gathers) for step in steps]


def _stats(
    program: Program, tallies: dict[int, Tally], oracle: int | None, clock: Clock, seconds: float
) -> Stats:
    holes = tuple(
        HoleStats(program.steps[p].name, t.options, t.visited, t.kept, dict(t.pruned))
        for p, t in sorted(tallies.items())
    )
    options = _options(program)
    return Stats(
        states=sum(t.visited for t in tallies.values()),
        holes=holes,
        raw_space=raw_space(options),
        tree=search_tree(options),
        oracle=oracle,
        phases=dict(clock.phases),
        seconds=seconds,
        cpu_seconds=sum(s for name, s in clock.phases.items() if name != "verify"),
        peak_mb=peak_megabytes(),
    )
