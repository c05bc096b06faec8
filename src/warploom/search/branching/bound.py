"""Branch and bound: the cheapest solution of a space, by a lower bound on partial candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.errors import SearchError
from warploom.search.branching.candidate import Candidates, Flags, Index, Numbers
from warploom.search.branching.problem import Measure, SpaceProblem, children, start
from warploom.search.branching.tree import batch_size, pop
from warploom.search.budget import Budget
from warploom.search.engine import OnProgress, Result, Watch, gather, outcome_of

# It goes deep soon: early solutions cut the rest.
LARGEST_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """A solution (one decided candidate) and its cost."""

    candidate: Candidates
    cost: float


@dataclass(slots=True, eq=False)
class _Open:
    """Nodes still to expand, the most promising last."""

    candidates: Candidates
    bounds: Numbers

    def __len__(self) -> int:
        return len(self.bounds)

    def take(self, rows: Index | Flags | slice) -> _Open:
        return _Open(self.candidates.take(rows), self.bounds[rows])


def improvements(problem: SpaceProblem, watch: Watch) -> Iterator[Best]:
    """Solutions, each cheaper than the one before; the last is the cheapest of all.

    A candidate is dropped if its bound is not below the cost of the best solution. Children are
    bounded at least as their parents were, whatever `bound` says of them.
    """
    if problem.cost is None:
        raise SearchError("branch and bound needs a cost", advice="give the problem a cost")
    root = start(problem, watch)
    stack = [_bounded(problem, root, np.full(len(root), -np.inf))]
    size, branch = batch_size(root, LARGEST_BATCH), problem.brancher
    while stack:
        watch.pause("branch and bound")
        nodes = _cut(pop(stack, size), watch)
        position = branch(nodes.candidates)
        leaves = nodes.candidates.take(position < 0)
        if len(leaves):
            costs = _measured("cost", problem.cost, leaves)
            cheapest = int(np.argmin(costs))
            watch.found += len(leaves)
            if watch.best is None or costs[cheapest] < watch.best:
                watch.best = float(costs[cheapest])
                yield Best(leaves.take(slice(cheapest, cheapest + 1)), watch.best)
        inner = position >= 0
        expanded = _cut(_expanded(problem, nodes.take(inner), position[inner], watch), watch)
        if len(expanded):
            stack.append(expanded.take(np.argsort(-expanded.bounds, kind="stable")))


def _measured(name: str, measure: Measure, candidates: Candidates) -> Numbers:
    """A number for each candidate: what is none would be dropped, or kept, by accident."""
    found = np.asarray(measure(candidates), np.float64)
    if found.shape != (len(candidates),) or np.isnan(found).any():
        raise SearchError(f"the {name} of a candidate is not a number")
    return found


def _bounded(problem: SpaceProblem, made: Candidates, inherited: Numbers) -> _Open:
    if problem.bound is None or not len(made):
        return _Open(made, inherited)
    return _Open(made, np.maximum(inherited, _measured("bound", problem.bound, made)))


def _cut(nodes: _Open, watch: Watch) -> _Open:
    if watch.best is None:
        return nodes
    keep = nodes.bounds < watch.best
    watch.tally("candidates").prune("bound", int(np.count_nonzero(~keep)))
    return nodes if keep.all() else nodes.take(keep)


def _expanded(problem: SpaceProblem, nodes: _Open, position: Index, watch: Watch) -> _Open:
    if not len(nodes):
        return nodes
    made = children(problem, nodes.candidates, position, watch)
    return _bounded(problem, made.candidates, nodes.bounds[made.parent])


def minimise(
    problem: SpaceProblem, budget: Budget | None = None, on_progress: OnProgress | None = None
) -> Result[Best]:
    """The cheapest solution; `complete` says that none is cheaper."""
    watch = Watch(budget or Budget(), on_progress)
    gathered = gather(improvements(problem, watch), budget=watch.budget)
    watch.clock.lap("search")
    return Result(outcome_of(gathered, lambda answers: answers[-1]), watch.statistics())
