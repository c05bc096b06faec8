"""A loop nest explored without a GPU: strategies first, then the nest itself.

The bound of the time is no ranking: many implementations meet it that nobody would run. So, where
the machine's record has times, implementations are compared by those that the model predicts. Some
are drawn of each strategy; then what is near to the best is drawn again and again. They are counted
in outline, and the best few again as the kernels that they become. Where there are
no times, what comes of a strategy stands, unless the search of the nest itself finds something far
better by the bound.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import count, product, zip_longest
from typing import Any

import numpy as np

from warploom.errors import CheckError, InternalError, WarploomError, spelled
from warploom.loopnest.strategies.form import Variant
from warploom.pipeline.drawn import Asked, leaves_of, packed
from warploom.pipeline.kept import NOTHING_KEPT, Kept
from warploom.pipeline.nest import FREE, TRIAL_LEAST, Explored, Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.search.branching.bound import Best
from warploom.search.branching.candidate import Candidates
from warploom.search.budget import STOPS, Budget
from warploom.search.outcome import Found
from warploom.search.outcome_json import Record

DRAWN, AT_ONCE = 12, 4  # of each strategy
NEAR_AT_ONCE = 8  # near the best
BY_KERNEL = 3  # of the best, which are lowered
PREDICTED = 16  # of those drawn, by their bounds, of each variant of a strategy as many
BESIDE = 3  # next to the best, near which others are drawn, too
NEAR = 6  # draws near the best, where no seconds are given
FAR_BETTER = 0.5  # of the bound of what a strategy gave
DRAWING, SHARE = 0.3, 0.75  # of the time: for draws of strategies, and also for those near the best
MOST = 0.9  # of the time, until a strategy has given anything
ALIKE = 1.1  # bounds that differ by less are one: then blocks of usual size come first
USUAL = 256  # threads of a block


@dataclass(frozen=True, slots=True, eq=False)
class _First:
    """An implementation by a strategy; `time` is what it is compared by."""

    variant: Variant
    nest: Nest
    candidate: Candidates
    bound: float
    rank: tuple[float, float]
    time: float = math.inf


def modelled(
    nest: Nest,
    variants: Sequence[Variant],
    engine: str,
    evaluations: int,
    budget: Budget,
    seed: int = 0,
    free: bool = True,
    kept: Kept = NOTHING_KEPT,
    **others: Any,
) -> Explored:
    """The best of what strategies and the nest itself have, and of what earlier runs found; unless
    it is `free`, of strategies alone."""
    drawn = _Drawn(nest, seed + kept.runs, budget)
    first = drawn.best(_in_turn(variants), kept.best)
    own_best = kept.best if _is_free(kept.best) else None
    if first is None or not nest.has_times:
        kept = replace(kept, best=own_best)
    else:  # times that are predicted are no bounds: they are compared below
        kept = replace(kept, best=None)
    if variants and not free and first is None:
        raise CheckError(
            f"the strategy '{variants[0].strategy}' has nothing that fits your decisions",
            advice=spelled("leave out --fix, or --strategy", "leave out fix=, or strategy="),
        )
    alone = first is None
    found = nest.search(
        engine, evaluations, budget=budget, seed=seed, tries=alone, kept=kept, **others
    )
    if first is None:
        return found
    if free and found.candidate is not None and not nest.has_times:
        if nest.bound(found.candidate)[0] < FAR_BETTER * first.bound:
            return replace(found, trial=nest.tried(found.candidate, budget.at_least(TRIAL_LEAST)))
    elif free:
        earlier = None if own_best is None else nest.again(own_best)
        itself = (_timed(nest, each) for each in (found.candidate, earlier) if each is not None)
        first = min((first, *itself), key=lambda one: one.time)
    own, best = first.nest, first.candidate
    return replace(
        found,
        outcome=Found(Best(best, first.time), complete=False),
        candidate=best,
        nanoseconds=first.time,
        bound=min(found.bound, own.least()),
        evaluated=found.evaluated + max(drawn.looked_at, len(drawn.found)),
        trial=own.tried(best, budget.at_least(TRIAL_LEAST)),
        nest=own,
        strategy="" if own is nest else first.variant.strategy,
        predicted=own.has_times,
    )


def _timed(nest: Nest, candidate: Candidates) -> _First:
    """An implementation of the nest itself, by no strategy."""
    itself = Variant(FREE, nest.program, nest.fixes)
    return replace(_first(itself, nest, candidate), time=_time(nest.predicted_time, candidate))


def _time(predicted: Callable[[Candidates], float], candidate: Candidates) -> float:
    """The predicted time; infinite where there is no kernel to predict it of."""
    try:
        return predicted(candidate)
    except InternalError:
        raise
    except WarploomError:
        return math.inf


def _is_free(kept: Record | None) -> bool:
    """Whether what was kept is of the nest itself, and no strategy's."""
    return kept is not None and kept.get("strategy", FREE) == FREE


def _in_turn(variants: Iterable[Variant]) -> list[list[Variant]]:
    """The first of each strategy, then the second of each, with their numbers, as races have them:
    spaces take a while to be built."""
    of: dict[str, list[Variant]] = defaultdict(list)
    for each in variants:
        name, some = each.strategy, of[each.strategy]
        some.append(replace(each, strategy=f"{name} {len(some) + 1}"))
    return [[each for each in some if each is not None] for some in zip_longest(*of.values())]


class _Drawn:
    """Draws of strategies, and near the best of them, as long as there is time for it."""

    def __init__(self, nest: Nest, seed: int, budget: Budget) -> None:
        self.nest, self.seed, self.budget = nest, seed, budget
        self.looked_at = 0
        self.found: list[_First] = []
        self.kept: list[_First] = []  # by an earlier run
        self._times: dict[tuple[str, bytes], float] = {}

    def best(self, variants: list[list[Variant]], kept: Record | None) -> _First | None:
        several = variants if self.budget.seconds and self.nest.has_times else variants[:1]
        self._until((DRAWING, MOST), lambda enough: self._each(several, kept, enough))
        if self.nest.has_times and self.found:
            self._until((SHARE, MOST), self._nearer)
            return self._by_kernel()
        best = min((*self.kept, *self.found), key=lambda one: one.rank, default=None)
        return None if best is None else replace(best, time=best.bound)

    def _until(self, shares: tuple[float, float], work: Callable[[Budget], None]) -> None:
        """Work that ends with one part of the time, or, if it has found nothing, with another."""
        left = self.budget.seconds_left or 0.0
        enough, most = (
            self.budget.up_to(share * left) if self.budget.seconds else Budget() for share in shares
        )
        try:
            with most.enforced() if self.budget.seconds else nullcontext():
                work(enough)
        except STOPS:
            pass  # with what there is

    def _each(self, rows: list[list[Variant]], kept: Record | None, enough: Budget) -> None:
        """Some of each variant of a row, then more of each: time may not last for all."""
        for row in rows:
            nests: dict[str, Nest | None] = {}
            for at, variant in product(range(DRAWN // AT_ONCE), row):
                if variant.strategy not in nests:
                    own = nests[variant.strategy] = _nest_of(variant, self.nest)
                    if own and kept is not None and kept.get("strategy") == variant.strategy:
                        self.kept.append(_first(variant, own, own.again(kept)))
                own = nests[variant.strategy]
                for one in _drawn(variant, own, (self.seed, at)) if own else ():
                    self.found.append(one)
                    enough.check()
                enough.check()

    def _nearer(self, enough: Budget) -> None:
        """Some of each variant are predicted, then others near the best of these."""
        drawn: dict[str, list[_First]] = defaultdict(list)
        for one in sorted(self.found, key=lambda one: one.rank):
            drawn[one.variant.strategy].append(one)
        self.found = []
        some = [one for each in zip_longest(*drawn.values()) for one in each if one is not None]
        for one in (*self.kept, *some[:PREDICTED]):
            self._predict(one)
            enough.check()
        for at in count() if self.budget.seconds else range(NEAR):
            self.found.sort(key=lambda one: one.time)
            # The best every other time, between those next to it.
            best = self.found[(at % 2) * (1 + at // 2 % BESIDE) % len(self.found)]
            asked = Asked(NEAR_AT_ONCE, (self.seed, at), near=packed(best.candidate, 0))
            near = leaves_of(best.nest, asked)
            for row in np.flatnonzero(near.arrived):
                leaf = near.leaves.take(slice(int(row), int(row) + 1))
                self._predict(replace(best, candidate=leaf, time=math.inf))
                enough.check()

    def _by_kernel(self) -> _First | None:
        """The best by their kernels, of the first that have one."""
        found: list[_First] = []
        for one in sorted(self.found, key=lambda one: (one.time, one.rank)):
            if len(found) == BY_KERNEL or math.isinf(one.time):
                break
            time = _time(one.nest.predicted_time, one.candidate)
            if not math.isinf(time):
                found.append(replace(one, time=time))
        return min(found, key=lambda one: (one.time, one.rank), default=None)

    def _predict(self, one: _First) -> None:
        key = one.variant.strategy, packed(one.candidate, 0)
        if key in self._times:
            return
        self.looked_at += 1
        self._times[key] = _time(one.nest.outlined_time, one.candidate)
        self.found.append(replace(one, time=self._times[key]))


def _nest_of(variant: Variant, nest: Nest) -> Nest | None:
    """None where decisions of a strategy contradict those of the user."""
    try:
        return nest_by(recipe_of(variant, nest))
    except WarploomError:
        return None


def _drawn(variant: Variant, own: Nest, seed: tuple[int, int]) -> Iterator[_First]:
    drawn = leaves_of(own, Asked(AT_ONCE, seed))
    for row in np.flatnonzero(drawn.arrived):
        yield _first(variant, own, drawn.leaves.take(slice(int(row), int(row) + 1)))


def _first(variant: Variant, own: Nest, leaf: Candidates) -> _First:
    bound = float(own.bound(leaf)[0])
    threads = own.threads_of(leaf)
    rank = math.floor(math.log(max(bound, 1e-3), ALIKE)), abs(math.log2(threads / USUAL))
    return _First(variant, own, leaf, bound, rank)
