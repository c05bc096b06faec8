"""The candidates that the time model takes for the fastest, without measuring any.

    drawn → near the best of them, again and again → the best lowered, compared by their kernels

A batch is compared by counts (`work.py`), since lowering takes a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt

from warploom.array.code.program import Candidate, compile_candidate
from warploom.array.joint.measure import Batch, Ints, Runs
from warploom.array.joint.model import JointModel, stopped_by
from warploom.array.joint.parts import Parts, threads_along
from warploom.array.joint.work import predicted_times
from warploom.kernel.work import prediction
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome

REPEATED = 8  # how often the best may be drawn again, in small spaces
LOWERED = 8  # candidates that are compared by their kernels
NEAR, BEST = 1 << 11, 16  # draws near the best, and near how many of them
FRUITLESS = 3  # such draws, one after another, that bring nothing better


def promising(
    model: JointModel, count: int, among: int, seed: int = 0, budget: Budget | None = None
) -> Outcome[list[Candidate]]:
    """The most promising of so many candidates and of those near them, in order, each once."""
    spent = budget or Budget()
    outcome = model.parts(spent)
    if not isinstance(outcome, Found):
        return outcome
    if any(not len(axis.rows) for axis in model.axes):
        return Impossible()
    best = _Best(model, max(count, LOWERED))
    for kept in model.batches(outcome.answer, seed):
        best.add(kept)
        if best.seen >= among or spent.is_spent():
            break
    done = best.seen >= among
    random = np.random.default_rng((seed, 1))
    fruitless = 0
    while best.rows and fruitless < FRUITLESS and not spent.is_spent():
        before = best.rows[0][0]
        drawn = _near(model, best.nearest(), outcome.answer, random)
        best.add(drawn.only(model.valid(drawn)))
        fruitless = 0 if best.rows[0][0] < before else fruitless + 1
    found = _by_kernels(model, best.candidates, spent)[:count]
    stopped = stopped_by(spent)
    return Found(found, done, None if done else stopped) if found else model.none(stopped)


@dataclass(slots=True)
class _Best:
    """The best so far, with what each is predicted to take, and as a batch."""

    model: JointModel
    most: int
    seen: int = 0
    ranked: dict[str, tuple[float, int, Candidate]] = field(default_factory=dict)
    rows: list[tuple[float, Batch]] = field(default_factory=list)

    def add(self, kept: Batch) -> None:
        cost = predicted_times(kept, self.model.stages, self.model.machine)
        order = np.argsort(cost, kind="stable")[: REPEATED * self.most].tolist()
        for at, each in self.model.candidates(kept, order):
            self.ranked.setdefault(str(each), (float(cost[at]), self.seen + at, each))
        self.rows += [(float(cost[at]), kept.only(np.array([at]))) for at in order[:BEST]]
        self.rows = sorted(self.rows, key=lambda pair: pair[0])[:BEST]
        self.seen += kept.count
        best = sorted(self.ranked.items(), key=lambda pair: pair[1][:2])
        self.ranked = dict(best[: self.most])

    def nearest(self) -> list[Batch]:
        return [batch for _, batch in self.rows]

    @property
    def candidates(self) -> list[Candidate]:
        return [candidate for _, _, candidate in self.ranked.values()]


def _near(
    model: JointModel, best: list[Batch], parts: tuple[Parts, ...], random: np.random.Generator
) -> Batch:
    """Draws that differ from one of the best in one thing: the sizes of an axis, how maps that are
    linked run, or the threads of a group."""
    fresh = model.draw(random, NEAR, parts)
    at = random.integers(len(best), size=fresh.count)
    here = _joined(best).only(at)
    things = [each.names for each in model.axes]
    linked = [(stage, each.maps) for stage, part in enumerate(parts) for each in part.listed]
    which = random.integers(len(things) + len(linked) + len(parts), size=fresh.count)
    sizes = dict(here.sizes)
    for number, names in enumerate(things):
        sizes |= {n: np.where(which == number, fresh.sizes[n], here.sizes[n]) for n in names}
    runs: list[dict[int, npt.NDArray[np.int8]]] = [dict(each) for each in here.runs]
    for number, (stage, maps) in enumerate(linked, len(things)):
        other = fresh.runs[stage]
        runs[stage] |= {m: np.where(which == number, other[m], runs[stage][m]) for m in maps}
    groups = []
    for stage, group in enumerate(here.groups):
        used, before = (_used(each[stage], fresh.count) for each in (runs, here.runs))
        again = (which == len(things) + len(linked) + stage) | (used != before)
        groups.append(np.where(again[:, None], model.groups.draw(random, used), group))
    return Batch(sizes, tuple(runs), tuple(groups))


def _joined(batches: list[Batch]) -> Batch:
    first = batches[0]
    return Batch(
        {name: np.concatenate([each.sizes[name] for each in batches]) for name in first.sizes},
        tuple(
            {m: np.concatenate([each.runs[at][m] for each in batches]) for m in runs}
            for at, runs in enumerate(first.runs)
        ),
        tuple(
            np.concatenate([each.groups[at] for each in batches]) for at in range(len(first.groups))
        ),
    )


def _used(runs: Runs, count: int) -> Ints:
    """The dimensions in which maps have threads, as groups count them."""
    none: Ints = np.zeros(count, np.int64)
    return reduce(np.bitwise_or, map(threads_along, runs.values()), none)


def _by_kernels(model: JointModel, ranked: list[Candidate], spent: Budget) -> list[Candidate]:
    """The first of them lowered, and ordered by what their kernels do; then the others."""
    times: list[tuple[float, int]] = []
    for at, each in enumerate(ranked[:LOWERED]):
        if at and spent.is_spent():
            break
        made = compile_candidate(model.plan, each)
        took = sum(float(prediction(k, model.machine).nanoseconds) for k in made.kernels)
        times.append((took, at))
    return [ranked[at] for _, at in sorted(times)] + ranked[len(times) :]
