"""A loop nest explored on a GPU: strategies first, then the nest itself, with all cores drawing.

In come a nest and the variants that strategies make of it; out goes an `Explored` record. What was
measured is kept in the store with its decisions; the same question again goes on from there.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from warploom.kernel.ir import TensorKind
from warploom.loopnest.evaluate import evaluate_at
from warploom.loopnest.ir import Program
from warploom.loopnest.show import show
from warploom.loopnest.strategies.form import ATTENTION, PACKED, Variant
from warploom.loopnest.trial import agrees, nearness, some_inputs
from warploom.pipeline.drawn import made_again
from warploom.pipeline.nest import (
    FREE,
    TRIAL_LEAST,
    TRIAL_SECONDS,
    TRIAL_SHARE,
    Explored,
    Nest,
    recipe_of,
)
from warploom.pipeline.race import Entry, Found, Measured, TimedRace
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.timed_nest import MOST_ITERATIONS, some_points
from warploom.pipeline.winners import leaf_of, winner_of
from warploom.runtime.quick import Quick, QuickGpu
from warploom.search import outcome
from warploom.search.branching.bound import Best
from warploom.search.budget import Budget
from warploom.search.engine import OnProgress, Progress
from warploom.search.history import History
from warploom.search.outcome import Reason
from warploom.search.statistics import Clock, Stopwatch
from warploom.search.storage import row
from warploom.search.storage.content import content_digest
from warploom.search.storage.store import Json, Key, Store

MOST_ELEMENTS = 1 << 16  # compared with what NumPy computes, for each kernel
UNTIMED = 1000  # evaluations where no seconds are given
# Spaces of attention: loops alone would compute its scores for each number of a result, and one
# launch would take as long as the whole race.
WHOLE = (ATTENTION, PACKED)
AGAIN = 4  # of an earlier run, measured again first
KEPT_EVERY = 10.0  # seconds between two times that all is kept


def quick_gpu(program: Program, tensor: TensorKind | None = None) -> Quick:
    """The first GPU of this machine, with random inputs for a program."""
    random = np.random.default_rng(0)
    arrays, numbers = some_inputs(program, random, seen=tensor)
    folded = {dim.axis for each in program.instructions
              for dim in (*each.over, *each.scanned)}  # fmt: skip
    most = MOST_ELEMENTS * math.prod(axis.size for axis in folded)
    points = some_points(program, random, min(most, MOST_ITERATIONS))
    wanted = evaluate_at(program, arrays, numbers, points)
    typed = {each.name: each.dtype.numpy.type(numbers[each.name]) for each in program.parameters}
    ordered = {each.name: arrays[each.name] for each in program.arrays}
    codes = {each.name: each.dtype for each in program.arrays if each.dtype.is_code}
    apart = 2 * nearness(program)
    return QuickGpu(ordered, typed, wanted, partial(agrees, program), codes, apart)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a race is asked for."""

    seed: int = 0
    evaluations: int | None = None
    workers: int | None = None
    free: bool = True  # also without strategies
    before: tuple[tuple[str, bytes], ...] = ()  # variants and decisions, measured first


def raced(
    nest: Nest,
    variants: Sequence[Variant],
    quick: Quick,
    budget: Budget,
    wanted: Wanted,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Explored:
    """The fastest implementation that was measured within the budget, tried on the simulator."""
    free = wanted.free and not any(each.space in WHOLE for each in variants)
    entries = entries_of(nest, variants, free)
    winner = winner_of(nest.program, quick.device)
    if winner is not None:
        first = leaf_of(winner, nest, variants)
        wanted = replace(wanted, before=(*wanted.before, *first))
    kept = _Kept(nest, entries, quick.device, store)
    clock, watch = Clock(), Stopwatch()
    history = History([], "ns", nest.least())
    report = history.noting(on_progress)

    def told(found: Found) -> None:
        best = found.best if found.good else None
        report(Progress("measuring", found.drawn, len(found.measured), best, watch.seconds))
        kept.put(found)

    limited = budget.seconds is not None
    race = TimedRace(
        entries,
        quick,
        budget,
        has_free=free or not variants,
        seed=wanted.seed + kept.runs,
        workers=wanted.workers,
        evaluations=wanted.evaluations or (None if limited else UNTIMED),
        before=kept.before(wanted.before),
        known=kept.measured,
        on_found=told,
    )
    found = race.run(min(TRIAL_SHARE * (budget.seconds or 0.0), TRIAL_SECONDS))
    contenders = race.contended() if found.good else []
    kept.put(found, at_last=True)
    clock.lap("search")
    statistics = watch.statistics({}, clock)
    least = min(nest.least(), found.least)
    history.add(Progress("end", found.drawn, len(found.measured),
                         contenders[0][0] if contenders else None, watch.seconds))  # fmt: skip
    made = Explored(
        outcome.Undecided(found.stopped or Reason.DEAD_ENDS), None, math.inf, least,
        len(found.measured), None, statistics, nest, history, quick.device, race=found,
    )  # fmt: skip
    if not contenders:
        return made
    nanoseconds, at, best = contenders[0]
    own = nest if entries[at].name == FREE else nest_by(entries[at].recipe)
    leaf = made_again(own, {"leaf": best.leaf.hex()})
    return replace(
        made,
        outcome=outcome.Found(Best(leaf, nanoseconds), complete=False, stopped=found.stopped),
        candidate=leaf,
        nanoseconds=nanoseconds,
        trial=own.tried(leaf, budget.at_least(TRIAL_LEAST)),
        nest=own,
        strategy=entries[at].name,
    )


def entries_of(nest: Nest, variants: Sequence[Variant], free: bool) -> list[Entry]:
    """What takes part in a race: the variants, each with the number that it has in what is kept."""
    found = []
    counts: dict[str, int] = {}
    for each in variants:
        counts[each.strategy] = counts.get(each.strategy, 0) + 1
        found.append(_entry(f"{each.strategy} {counts[each.strategy]}", recipe_of(each, nest)))
    return [*found, *([_entry(FREE, nest.recipe)] if free or not variants else [])]


def _entry(name: str, recipe: tuple[Any, ...]) -> Entry:
    return Entry(name, recipe, hashlib.sha256(pickle.dumps(recipe)).hexdigest())


class _Kept:
    """What earlier runs of the same question measured, in the store."""

    def __init__(
        self, nest: Nest, entries: Sequence[Entry], device: str, store: Store | None
    ) -> None:
        self.store, self.names = store, [each.name for each in entries]
        details = content_digest((nest.program, nest.rates, nest.target))
        asked = {
            "program": show(nest.program),
            "details": details,
            "fixed": [*map(str, nest.decisions), *nest.asked],
        }
        self.key = Key("race", asked, device, f"{nest.program.name}: measured")
        self.runs, self.measured = 0, list[Measured]()
        self._since = time.monotonic()
        read = None if store is None or details is None else store.get(self.key, _rows)
        if read is not None:
            self.runs, measured = read
            self.measured = [each for each in measured if each.entry in self.names]

    def before(self, told: Sequence[tuple[str, bytes]]) -> list[tuple[int, bytes]]:
        """The best of earlier runs: which variant, and the decisions."""
        sure = sorted((e for e in self.measured if e.is_sure), key=lambda each: each.nanoseconds)
        first = [*told, *((each.entry, each.leaf) for each in sure[:AGAIN])]
        known = {entry: at for at, entry in enumerate(self.names)}
        return [(known[name], leaf) for name, leaf in dict.fromkeys(first) if name in known]

    def put(self, found: Found, at_last: bool = False) -> None:
        """All that is known now, every now and then."""
        now = time.monotonic()
        if self.store is None or not (at_last or now - self._since > KEPT_EVERY):
            return
        self._since = now
        rows = [
            [e.entry, e.key, e.leaf.hex(), e.bound, e.nanoseconds, int(e.is_sure)]
            for e in found.measured.values()
        ]
        self.store.put(self.key, {"runs": self.runs + 1, "measured": rows})


def _rows(kept: Json) -> tuple[int, list[Measured]]:
    runs, measured = row.entries(kept, "runs", "measured")
    found = []
    for each in row.items(measured):
        entry, key, leaf, bound, taken, sure = row.items(each)
        found.append(Measured(row.text(entry), row.text(key), bytes.fromhex(row.text(leaf)),
                              row.seconds(bound, 0.0), row.seconds(taken, 0.0),
                              bool(sure)))  # fmt: skip
    return row.whole(runs, 0), found
