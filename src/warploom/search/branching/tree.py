"""Depth-first search of a whole space: every solution, or their number.

Nodes are taken in batches, so that propagation runs on many at once; a batch is small enough that
the stack of open nodes stays small, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, TypeVar

from warploom.search.branching.candidate import Candidates
from warploom.search.branching.problem import SpaceProblem, children, start
from warploom.search.budget import Budget
from warploom.search.engine import OnProgress, Result, Watch, gather, outcome_of, run

BATCH_BYTES = 1 << 20
LARGEST_BATCH = 4096
SMALLEST_BATCH = 16


def batch_size(candidates: Candidates, most: int = LARGEST_BATCH) -> int:
    each = max(1, candidates.nbytes // max(1, len(candidates)))
    return max(SMALLEST_BATCH, min(most, BATCH_BYTES // each))


def solutions(problem: SpaceProblem, watch: Watch) -> Iterator[Candidates]:
    """Batches of decided candidates, which together are all solutions, each once."""
    branch = problem.brancher
    root = start(problem, watch)
    size = batch_size(root)
    stack = [root] if len(root) else []
    while stack:
        watch.pause("enumerate")
        batch = pop(stack, size)
        position = branch(batch)
        done = position < 0
        if done.any():
            leaves = batch.take(done)
            watch.found += len(leaves)
            yield leaves
        if not done.all():
            made = children(problem, batch.take(~done), position[~done], watch)
            if len(made.candidates):
                stack.append(made.candidates)


class Batch(Protocol):
    def __len__(self) -> int: ...
    def take(self, rows: slice) -> Self: ...


B = TypeVar("B", bound=Batch)


def pop(stack: list[B], size: int) -> B:
    """The last rows of a stack of batches."""
    last = stack.pop()
    if len(last) <= size:
        return last
    stack.append(last.take(slice(0, len(last) - size)))
    return last.take(slice(len(last) - size, None))


def enumerate_all(
    problem: SpaceProblem,
    budget: Budget | None = None,
    *,
    most: int | None = None,
    on_progress: OnProgress | None = None,
) -> Result[tuple[Candidates, ...]]:
    """Every solution, in batches; `most` batches at most."""
    return run(solutions, problem, budget, most=most, on_progress=on_progress)


def count_all(
    problem: SpaceProblem, budget: Budget | None = None, on_progress: OnProgress | None = None
) -> Result[int]:
    """How many solutions there are; "at least so many" if it did not come to the end."""
    watch = Watch(budget or Budget(), on_progress)
    sizes = (len(batch) for batch in solutions(problem, watch))
    gathered = gather(sizes, budget=watch.budget)
    watch.clock.lap("search")
    return Result(outcome_of(gathered, sum), watch.statistics())
