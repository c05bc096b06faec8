"""A loop nest explored without a GPU: strategies first, then the nest itself, by the bound.

The bound of the time is no ranking: many implementations meet it that nobody would run. So what
comes of a strategy stands, unless the search of the nest itself finds something far better; and
threads that compute the same count as often as they do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from warploom.errors import CheckError, WarploomError, spelled
from warploom.loopnest.repeated import repeated
from warploom.loopnest.strategies.form import Variant
from warploom.pipeline.nest import TRIAL_LEAST, Explored, Nest
from warploom.search.branching.bound import Best
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.descent import descended, seeds
from warploom.search.budget import STOPS, Budget
from warploom.search.engine import Watch
from warploom.search.outcome import Found

DRAWN, AT_ONCE = 12, 4  # of each strategy
FAR_BETTER = 0.5  # of the cost of what a strategy gave
SHARE = 0.5  # of the time, for strategies
MOST = 0.9  # of the time, until a strategy has given anything
ALIKE = 1.1  # costs that differ by less are one: then blocks of usual size come first
USUAL = 256  # threads of a block


@dataclass(frozen=True, slots=True, eq=False)
class _First:
    """An implementation by a strategy; `cost` is its bound, times what is repeated."""

    variant: Variant
    nest: Nest
    candidate: Candidates
    cost: float
    rank: tuple[float, float]


def modelled(
    nest: Nest,
    variants: Sequence[Variant],
    engine: str,
    evaluations: int,
    budget: Budget,
    seed: int = 0,
    free: bool = True,
    **others: Any,
) -> Explored:
    """The best by the bound of what strategies and the nest itself have; unless it is `free`, of
    strategies alone."""
    first = _first(nest, _one_of_each(variants), budget, seed)
    if variants and not free and first is None:
        raise CheckError(
            f"the strategy '{variants[0].strategy}' has nothing that fits your decisions",
            advice=spelled("leave out --fix, or --strategy", "leave out fix=, or strategy="),
        )
    alone = first is None
    found = nest.search(engine, evaluations, budget=budget, seed=seed, tries=alone, **others)
    if first is None:
        return found
    if (
        free
        and found.candidate is not None
        and _cost(nest, found.candidate) < FAR_BETTER * first.cost
    ):
        return replace(found, trial=nest.tried(found.candidate, budget.at_least(TRIAL_LEAST)))
    own, best = first.nest, first.candidate
    bound = float(own.bound(best)[0])
    return replace(
        found,
        outcome=Found(Best(best, bound), complete=False),
        candidate=best,
        nanoseconds=bound,
        bound=min(found.bound, own.least()),
        evaluated=found.evaluated + DRAWN,
        trial=own.tried(best, budget.at_least(TRIAL_LEAST)),
        nest=own,
        strategy=first.variant.strategy,
    )


def _one_of_each(variants: Iterable[Variant]) -> list[Variant]:
    """The first of each strategy: spaces take a while to be built."""
    return list({each.strategy: each for each in reversed(list(variants))}.values())


def _first(nest: Nest, variants: Sequence[Variant], budget: Budget, seed: int) -> _First | None:
    found: list[_First] = []
    left = budget.seconds_left or 0.0
    part = budget.up_to(MOST * left) if budget.seconds else Budget()
    enough = budget.up_to(SHARE * left) if budget.seconds else part
    try:
        with part.enforced() if budget.seconds else nullcontext():
            for one in chain.from_iterable(_drawn(each, nest, part, seed) for each in variants):
                found.append(one)
                enough.check()
    except STOPS:
        pass  # with what there is
    return min(found, key=lambda one: one.rank, default=None)


def _drawn(variant: Variant, nest: Nest, budget: Budget, seed: int) -> Iterator[_First]:
    try:
        own = Nest(variant.program, nest.rates, nest.target, variant.fixes)
    except WarploomError:
        return  # its decisions contradict those of the user
    random = np.random.default_rng(seed)
    for _ in range(DRAWN // AT_ONCE):
        here = own.root.take(np.zeros(AT_ONCE, np.int64))
        drawn = descended(own.problem, here, seeds(AT_ONCE, random),
                          lambda some: 1 / (own.bound(some) + 1), Watch(budget))  # fmt: skip
        for row in np.flatnonzero(drawn.arrived):
            leaf = drawn.leaves.take(slice(int(row), int(row) + 1))
            cost = _cost(own, leaf)
            threads = math.prod(own.implementation(leaf).levels)
            rank = math.floor(math.log(max(cost, 1e-3), ALIKE)), abs(math.log2(threads / USUAL))
            yield _First(variant, own, leaf, cost, rank)


def _cost(nest: Nest, leaf: Candidates) -> float:
    return float(nest.bound(leaf)[0]) * repeated(nest.implementation(leaf))
