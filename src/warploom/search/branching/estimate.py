"""How large a space is, without walking all of it: estimates from random walks.

In comes a problem; out goes the estimated number of its leaves, how sure that is, how often a walk
ends at a dead end, and how many nodes there are at each depth. Knuth (1975) weighs a walk by the
numbers of children it chose from; Chen (1992) keeps one representative of all nodes that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from warploom.search.branching.candidate import Candidates, Flags, Index, Numbers
from warploom.search.branching.problem import SpaceProblem, children, is_open, start
from warploom.search.engine import Watch

# How many standard errors hold 95 %, where few values say how large these are: Student's quantiles
# for 1 to 9 degrees of freedom, and what they tend to.
FEW = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
MANY = 1.960

# Which children are kept, given their depth: those below a bound, for instance.
Keep = Callable[[Candidates, int], Flags]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, and how far from it the truth may be (95 %)."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ± {self.error:.2g}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """`nodes[d]` are those at depth d, the root at 0."""

    leaves: Mean
    dead_ends: Mean  # the share of walks that end at one
    nodes: tuple[Mean, ...]
    walks: int


@dataclass(slots=True)
class Walks:
    """What each walk, or run, found: one entry in every list for each. `ended` is the share of it
    that came to a dead end."""

    count: int
    leaves: Numbers = field(init=False)
    ended: Numbers = field(init=False)
    nodes: list[Numbers] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leaves, self.ended = np.zeros(self.count), np.zeros(self.count)

    def estimate(self) -> Estimate:
        nodes = tuple(mean_of(each) for each in self.nodes)
        return Estimate(mean_of(self.leaves), mean_of(self.ended), nodes, self.count)


def together(parts: Sequence[Walks]) -> Walks:
    """Walks that were done apart, in this order."""
    whole = Walks(sum(each.count for each in parts))
    whole.leaves = np.concatenate([each.leaves for each in parts])
    whole.ended = np.concatenate([each.ended for each in parts])
    for depth in range(max(len(each.nodes) for each in parts)):
        at = [
            each.nodes[depth] if depth < len(each.nodes) else np.zeros(each.count) for each in parts
        ]
        whole.nodes.append(np.concatenate(at))
    return whole


def mean_of(values: Numbers) -> Mean:
    """The mean of independent samples, with its error; of a single one the error is infinite."""
    if len(values) < 2:
        return Mean(float(values.mean()), float("inf"))
    free = len(values) - 1
    # The first terms by which the quantiles come near to what they tend to (Cornish and Fisher).
    sure = FEW[free - 1] if free <= len(FEW) else MANY + 2.372 / free + 2.823 / free**2
    return Mean(float(values.mean()), sure * float(values.std(ddof=1)) / float(np.sqrt(free + 1)))


def walked(
    problem: SpaceProblem,
    walks: int,
    random: np.random.Generator,
    *,
    keep: Keep | None = None,
    watch: Watch | None = None,
    batch: int = 64,
    deepest: int | None = None,
) -> Walks:
    """Walks choose among living children with equal probability; a walk that arrives stands for the
    product of the numbers that it chose from, one that does not for nothing. Where only nodes are
    counted, walks may end at the `deepest` of interest."""
    watch = watch or Watch()
    tally = Walks(walks)
    for first in range(0, walks, batch):
        rows = slice(first, min(first + batch, walks))
        _walk(problem, rows, random, keep, watch, tally, deepest)
    return tally


def _walk(
    problem: SpaceProblem,
    rows: slice,
    random: np.random.Generator,
    keep: Keep | None,
    watch: Watch,
    tally: Walks,
    deepest: int | None,
) -> None:
    walk = np.arange(rows.start, rows.stop)
    root = start(problem, watch)
    here = root.take(np.zeros(len(walk) if len(root) else 0, np.int64))
    walk = walk[: len(here)]
    weight = np.ones(len(walk))
    depth = 0
    while len(walk):
        watch.pause("estimate")
        _note(tally, depth, walk, weight)
        if depth == deepest:
            return
        position = problem.brancher(here)
        done = position < 0
        tally.leaves[walk[done]] = weight[done]
        here, walk, weight = here.take(~done), walk[~done], weight[~done]
        made, parent = _children(problem, here, position[~done], depth, keep, watch)
        count = np.bincount(parent, minlength=len(walk))
        tally.ended[walk[count == 0]] = 1
        chosen = one_of_each(parent, random)
        here = made.take(chosen)
        walk, weight = walk[parent[chosen]], (weight * count)[parent[chosen]]
        depth += 1


def _children(
    problem: SpaceProblem,
    parents: Candidates,
    position: Index,
    depth: int,
    keep: Keep | None,
    watch: Watch,
) -> tuple[Candidates, Index]:
    if not len(parents):
        return parents, np.zeros(0, np.int64)
    found = children(problem, parents, position, watch)
    if keep is None or not len(found.candidates):
        return found.candidates, found.parent
    kept = keep(found.candidates, depth + 1)
    return found.candidates.take(kept), found.parent[kept]


def _note(tally: Walks, depth: int, walk: Index, weight: Numbers) -> None:
    while len(tally.nodes) <= depth:
        tally.nodes.append(np.zeros(tally.count))
    np.add.at(tally.nodes[depth], walk, weight)


def one_of_each(group: Index, random: np.random.Generator, weight: Numbers | None = None) -> Index:
    """One member of each group, with probability proportional to its weight."""
    keys = np.log(random.random(len(group)))
    if weight is not None:
        keys = keys / weight
    order = np.lexsort((keys, group))
    return order[np.flatnonzero(np.diff(group[order], append=-1))]


def represented(
    problem: SpaceProblem,
    runs: int,
    random: np.random.Generator,
    *,
    keep: Keep | None = None,
    watch: Watch | None = None,
) -> Walks:
    """Nodes of one depth with equally many open choices are alike: one of them stands for all.

    Depth by depth, every representative gives its weight to each of its children; the children of
    one stratum then choose one among themselves, with probability by weight.
    """
    watch = watch or Watch()
    tally = Walks(runs)
    dead: Numbers = np.zeros(runs)
    root = start(problem, watch)
    here = root.take(np.zeros(runs if len(root) else 0, np.int64))
    run, weight = np.arange(len(here)), np.ones(len(here))
    depth = 0
    while len(run):
        watch.pause("estimate")
        _note(tally, depth, run, weight)
        position = problem.brancher(here)
        done = position < 0
        np.add.at(tally.leaves, run[done], weight[done])
        here, run, weight = here.take(~done), run[~done], weight[~done]
        made, parent = _children(problem, here, position[~done], depth, keep, watch)
        barren = np.bincount(parent, minlength=len(run)) == 0
        np.add.at(dead, run[barren], weight[barren])
        here, run, weight = _represented(made, run[parent], weight[parent], random)
        depth += 1
    total = tally.leaves + dead
    tally.ended = np.divide(dead, total, out=np.zeros_like(total), where=total > 0)
    return tally


def _represented(
    made: Candidates, run: Index, weight: Numbers, random: np.random.Generator
) -> tuple[Candidates, Index, Numbers]:
    """One candidate of each stratum of each run, with the weight of all."""
    if not len(made):
        return made, run, weight
    still = np.count_nonzero(is_open(made.domains), axis=1)
    stratum = run * (made.domains.shape[1] + 1) + still
    chosen = one_of_each(stratum, random, weight)
    order = np.argsort(stratum[chosen], kind="stable")
    chosen = chosen[order]
    place = np.searchsorted(stratum[chosen], stratum)
    total: Numbers = np.zeros(len(chosen))
    np.add.at(total, place, weight)
    return made.take(chosen), run[chosen], total
