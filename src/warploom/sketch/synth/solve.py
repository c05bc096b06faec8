"""Runs an engine on a program: budget, interruption, listing, verification, statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from warploom.errors import SearchError
from warploom.search.budget import Budget, BudgetSpentError, peak_megabytes
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.sketch.synth.cost import cheapest
from warploom.sketch.synth.engine import BATCH_BYTES, FIRST_BATCH_BYTES, Engine
from warploom.sketch.synth.expand import Tally
from warploom.sketch.synth.fills import LIST_AT_MOST, Fills, collect_fills, oracle_states
from warploom.sketch.synth.pairs import PairsEngine
from warploom.sketch.synth.problem import Problem, lower
from warploom.sketch.synth.result import HoleStats, Result, Stats, raw_space, search_tree
from warploom.sketch.synth.rows import Rows
from warploom.sketch.synth.smt import SmtEngine
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.read import check_symbols, with_laws
from warploom.sketch.term.verify import Verification, Verifier

MODES = ("all", "first", "best")
ENGINES = ("default", "pairs", "smt")

Progress = Callable[[str, int], None]


class SearchEngine(Protocol):
    """What `synthesize` needs of an engine."""

    tallies: dict[int, Tally]
    shared: dict[int, Rows]

    def prepare(self) -> bool: ...
    def solutions(self) -> Iterator[Rows]: ...


@dataclass(slots=True)
class Clock:
    """CPU seconds by phase."""

    phases: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def lap(self, phase: str) -> None:
        now = time.process_time()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now


def synthesize(
    program: Program,
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
) -> Result:
    """Fills the holes of `program` so that its last step equals goal number `goal`.

    `laws`, "flatten" or "none", is up to what they must be equal; by default the goal says.
    `mode`: all fills, the first one found, or the best by cost. `set_seconds` is the CPU time that
    was already spent on building the gather sets. `fuel` and `single` weaken the pairs engine, for
    the ablations of the paper. Ctrl-C and a spent budget keep what was found.
    """
    if mode not in MODES or engine not in ENGINES:
        raise SearchError(
            f"unknown mode or engine: {mode}, {engine}",
            advice=f"modes: {', '.join(MODES)}; engines: {', '.join(ENGINES)}",
        )
    program = program if laws is None else with_laws(program, laws)
    check_symbols(program, program.goals[goal])
    started, clock = time.monotonic(), Clock({"sets": set_seconds})
    problem = lower(program, program.goals[goal])
    limits = budget or Budget()
    searcher: SearchEngine
    if engine == "pairs":
        searcher = PairsEngine(problem, limits, _by_name(program, on_progress), fuel, single)
    elif engine == "smt":
        searcher = SmtEngine(problem, limits, _by_name(program, on_progress))
    else:
        batch = FIRST_BATCH_BYTES if mode == "first" else BATCH_BYTES
        searcher = Engine(problem, limits, batch, _by_name(program, on_progress))
    finals, stopped, exhausted = _run(searcher, clock, mode)
    at_most = 1 if mode == "first" else LIST_AT_MOST
    fills = collect_fills(problem, finals, searcher.shared, at_most)
    clock.lap("search")
    complete = exhausted and len(fills) == fills.count
    oracle = oracle_states(fills, _options(program)) if complete else None
    if mode != "all" and len(fills):
        fills = cheapest(program, fills) if mode == "best" else fills.only(0)
    clock.lap("choose")
    searched = time.monotonic() - started
    verdicts = _verify(program, goal, fills)
    clock.lap("verify")
    stats = _stats(problem, searcher.tallies, oracle, clock, set_seconds + searched)
    outcome = _outcome(fills, stopped, exhausted and mode == "all")
    return Result(program, program.goals[goal], outcome, fills, verdicts, stats)


def _by_name(program: Program, report: Progress | None) -> Callable[[int, int], None] | None:
    if report is None:
        return None
    return lambda position, states: report(program.steps[position].name, states)


def _run(searcher: SearchEngine, clock: Clock, mode: str) -> tuple[list[Rows], Reason | None, bool]:
    """(final states, why it stopped early, whether the whole space was searched)."""
    finals: list[Rows] = []
    try:
        feasible = searcher.prepare()
        clock.lap("prepare")
        for rows in searcher.solutions() if feasible else ():
            finals.append(rows)
            if mode == "first":
                return finals, None, False
    except BudgetSpentError as spent:
        return finals, spent.reason, False
    except KeyboardInterrupt:
        return finals, Reason.INTERRUPTED, False
    except MemoryError:
        return finals, Reason.MEMORY, False
    return finals, None, True


def _outcome(
    fills: Fills, stopped: Reason | None, complete: bool
) -> Found[Fills] | Impossible | Undecided:
    if len(fills):
        return Found(fills, complete, stopped)
    return Undecided(stopped) if stopped is not None else Impossible()


def _verify(program: Program, goal: int, fills: Fills) -> tuple[Verification, ...]:
    """One for each listed fill; fewer if interrupted, and then the verdict is open."""
    verifier = Verifier(program, program.goals[goal])
    checked: list[Verification] = []
    try:
        for number in range(len(fills)):
            checked.append(verifier.verify(fills.as_dict(number)))  # noqa: PERF401 - kept on Ctrl-C
    except KeyboardInterrupt:
        pass
    return tuple(checked)


def _options(program: Program) -> list[int]:
    steps: Iterable[Apply] = (program.steps[h] for h in program.holes)  # type: ignore[misc]
    return [len(step.gathers) for step in steps]


def _stats(
    problem: Problem, tallies: dict[int, Tally], oracle: int | None, clock: Clock, seconds: float
) -> Stats:
    program = problem.program
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
