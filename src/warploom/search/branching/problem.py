"""A search problem over a space, and branching: which choice is decided next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from warploom.search.branching.candidate import Bits, Candidates, Decision, Flags, Index, Numbers
from warploom.search.engine import Watch
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.ir import Choice

# The position to decide next in each candidate; -1 where nothing is open.
Branch = Callable[[Candidates], Index]
# A number for each candidate.
Measure = Callable[[Candidates], Numbers]


def is_open(domains: Bits) -> Flags:
    """More than one value is left."""
    found: Flags = (domains & (domains - np.uint64(1))) != 0
    return found


def in_order(propagator: Propagator, choices: Sequence[Choice] | None = None) -> Branch:
    """The first open instance: choices as given (as declared; then the others, derived ones last),
    and their instances in the order of their objects."""
    listed = list(choices or ())
    listed += [c for c in propagator.space.choices if c not in listed and not c.derived]
    listed += [c for c in propagator.space.choices if c not in listed]
    every = np.arange(propagator.choices)
    parts = [every[propagator.columns(choice)] for choice in listed]
    sequence: Index = np.concatenate([np.zeros(0, np.int64), *parts])

    def first_open(candidates: Candidates) -> Index:
        if not len(sequence):
            return np.full(len(candidates), -1)
        undecided = is_open(candidates.domains[:, sequence])
        first = undecided.argmax(axis=1)
        return np.where(undecided.any(axis=1), sequence[first], -1)

    return first_open


def smallest_first(candidates: Candidates) -> Index:
    """The instance with the fewest values left."""
    words, positions = candidates.domains.shape
    word, _ = set_bits(candidates.domains.reshape(-1))
    values = np.bincount(word, minlength=words * positions).reshape(words, positions)
    undecided = np.where(values > 1, values, 65)
    return np.where((values > 1).any(axis=1), undecided.argmin(axis=1), -1)


@dataclass(frozen=True, slots=True, eq=False)
class SpaceProblem:
    """A space after some decisions. `bound` is at most the cost of every solution in a candidate;
    `cost` is that of a solution."""

    propagator: Propagator
    decisions: tuple[Decision, ...] = ()
    branch: Branch | None = None
    bound: Measure | None = None
    cost: Measure | None = None

    @property
    def brancher(self) -> Branch:
        return self.branch or in_order(self.propagator)


@dataclass(frozen=True, slots=True, eq=False)
class Children:
    """Candidates with one more decision each; `parent` says of which candidate."""

    candidates: Candidates
    parent: Index


def start(problem: SpaceProblem, watch: Watch) -> Candidates:
    """The root, or nothing if there is no solution."""
    root = problem.propagator.root(problem.decisions)
    note(watch, 1, len(root))
    return root


def children(problem: SpaceProblem, parents: Candidates, position: Index, watch: Watch) -> Children:
    """Every value of one open instance of each candidate, where propagation leaves it alive."""
    parent, value = set_bits(parents.domains[np.arange(len(parents)), position])
    made = parents.take(parent)
    row = np.arange(len(parent))
    alive = problem.propagator.restrict(made, row, position[parent], np.uint64(1) << value)
    note(watch, len(parent), int(np.count_nonzero(alive)))
    return Children(made.take(alive), parent[alive])


def set_bits(words: Bits) -> tuple[Index, Bits]:
    """Every set bit of every word: (word, bit), in order."""
    bits = np.arange(64, dtype=np.uint64)
    word, bit = np.nonzero(words[:, None] >> bits & np.uint64(1))
    return word, bit.astype(np.uint64)


def note(watch: Watch, tried: int, alive: int) -> None:
    tally = watch.tally("candidates")
    tally.visited += tried
    tally.kept += alive
    tally.prune("propagation", tried - alive)
