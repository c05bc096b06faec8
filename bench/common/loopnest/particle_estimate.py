"""How large a space is where few walks reach most of it: populations of walks that go on where much
is.

Knuth's walks choose among children with equal chances. Where trees are uneven nearly all leaves
are behind choices that few walks make, and an estimate is too small until one of them is met by
chance. Here walks go on side by side, those that are furthest behind first; whenever few of them
stand for nearly all, the population is drawn anew among them, each as often as what it stands for,
so that it stays spread evenly over what was found. The mean over populations is the number of
leaves, whatever was drawn (Del Moral, 2004). Populations may run anywhere; one depends on its seed
alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warploom.search.branching.candidate import Candidates, Index, Numbers, joined
from warploom.search.branching.estimate import Mean, mean_of, one_of_each
from warploom.search.branching.problem import SpaceProblem, children, start
from warploom.search.engine import Watch

EFFECTIVE = 1 / 2  # of the walks, at least, has a say; else they are drawn anew


def population(
    problem: SpaceProblem,
    count: int,
    random: np.random.Generator,
    rank: Index | None = None,
    watch: Watch | None = None,
) -> float:
    """The logarithm of the number of leaves by one population of so many walks, minus infinity if
    none arrives. Of two walks the one whose next position has the lower rank is further behind."""
    watch = watch or Watch()
    ranks = np.arange(problem.propagator.choices) if rank is None else rank
    root = start(problem, watch)
    here = root.take(np.zeros(count if len(root) else 0, np.int64))
    weight: Numbers = np.zeros(len(here))
    while len(here):
        watch.pause("estimate")
        position = problem.brancher(here)
        if (position < 0).all():
            return _total(weight, count)
        behind = _behind(position, ranks)
        here, weight = _further(problem, here, weight, position, behind, random, watch)
        if len(here) and _says(weight) < EFFECTIVE * count:
            total = _total(weight, count)
            here = here.take(_drawn(weight, count, random))
            weight = np.full(count, total)
    return -math.inf


def _behind(position: Index, ranks: Index) -> Index:
    """The walks that have yet to decide what the others have decided."""
    place = np.where(position < 0, np.iinfo(np.int64).max, ranks[position])
    found: Index = np.flatnonzero(place == place.min())
    return found


def _further(
    problem: SpaceProblem,
    here: Candidates,
    weight: Numbers,
    position: Index,
    behind: Index,
    random: np.random.Generator,
    watch: Watch,
) -> tuple[Candidates, Numbers]:
    """One step of the walks that are behind; those without a child are gone."""
    found = children(problem, here.take(behind), position[behind], watch)
    chosen = one_of_each(found.parent, random)
    parent = found.parent[chosen]
    among = np.bincount(found.parent, minlength=len(behind))[parent]
    others = np.ones(len(here), np.bool_)
    others[behind] = False
    left = joined([here.take(others), found.candidates.take(chosen)])
    return left, np.concatenate([weight[others], weight[behind[parent]] + np.log(among)])


def _says(weight: Numbers) -> float:
    """How many walks have a say, if each has as much as it stands for."""
    share = np.exp(weight - weight.max())
    return float(share.sum() ** 2 / (share**2).sum())


def _total(weight: Numbers, count: int) -> float:
    """The logarithm of the mean of what walks stand for, those that are gone for nothing."""
    most = float(weight.max())
    return most + math.log(float(np.exp(weight - most).sum()) / count)


def _drawn(weight: Numbers, count: int, random: np.random.Generator) -> Index:
    """So many walks, evenly along what they stand for."""
    along = np.cumsum(np.exp(weight - weight.max()))
    places = (np.arange(count) + random.random()) / count * along[-1]
    found: Index = np.searchsorted(along, places, side="right").clip(0, len(along) - 1)
    return found


def leaves_of(populations: Sequence[float]) -> Mean:
    """The number of leaves by all populations together, each given as a logarithm."""
    return mean_of(np.exp(np.array(populations)))
