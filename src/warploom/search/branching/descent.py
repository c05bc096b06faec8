"""Random descents: from the root to a leaf by random decisions, a whole batch side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.search.branching.candidate import Bits, Candidates, Flags, Index, Numbers
from warploom.search.branching.problem import (
    Branch,
    Measure,
    SpaceProblem,
    children,
    note,
    set_bits,
    start,
)
from warploom.search.budget import Budget
from warploom.search.engine import Gathered, OnProgress, Result, Watch, gather
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided

BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Descents:
    """`leaves[r]` is a solution where `arrived[r]`; elsewhere the descent met a dead end, a
    candidate none of whose children is alive. `decisions[r]` were taken on the way.

    `estimate[r]` is the product of the numbers of living children on the way, 0 at a dead end.
    Where all children were equally likely its mean is the number of solutions (Knuth 1975). Only
    `weighted_descents` knows it.
    """

    leaves: Candidates
    arrived: Flags
    decisions: Index
    estimate: Numbers | None = None


def descents(
    problem: SpaceProblem, count: int, random: np.random.Generator, watch: Watch | None = None
) -> Descents:
    """Each decision takes one of the living children, all with the same probability.

    A value is drawn and tried; if it turns out dead it is ruled out, and another one is drawn. That
    is the same as drawing among the living, without looking at all of them.
    """
    watch = watch or Watch()
    here = _starts(problem, count, watch)
    arrived = np.zeros(len(here), np.bool_)
    decisions = np.zeros(len(here), np.int64)
    going, branch = np.arange(len(here)), problem.brancher
    while len(going):
        watch.pause("descend")
        going, position = _still_going(branch, here, going, arrived)
        drawn = _drawn(here.domains[going, position], random)
        alive, after = _tried(problem, here.take(going), position, drawn)
        note(watch, len(alive), int(np.count_nonzero(alive)))
        _store(here, going[alive], after.take(alive))
        decisions[going[alive]] += 1
        lost = going[~alive]
        again, after = _tried(problem, here.take(lost), position[~alive], ~drawn[~alive])
        _store(here, lost[again], after.take(again))
        going = np.concatenate([going[alive], lost[again]])
    watch.found += int(np.count_nonzero(arrived))
    return Descents(here, arrived, decisions)


def weighted_descents(
    problem: SpaceProblem,
    count: int,
    random: np.random.Generator,
    weigh: Measure | None = None,
    watch: Watch | None = None,
) -> Descents:
    """Each decision takes one of the living children with probability proportional to its weight
    (none negative, equal by default). All children are made, to be weighed and counted; where all
    weights are 0 the descent ends like at a dead end.
    """
    watch = watch or Watch()
    here = _starts(problem, count, watch)
    return descended(problem, here, seeds(len(here), random), weigh, watch)


def seeds(count: int, random: np.random.Generator) -> Bits:
    """One for each descent: where it goes depends on that alone, not on those beside it."""
    return random.integers(0, 1 << 64, count, np.uint64)


def descended(
    problem: SpaceProblem,
    here: Candidates,
    seed: Bits,
    weigh: Measure | None,
    watch: Watch,
) -> Descents:
    """`weighted_descents` that begin at these candidates, which they change, each by its seed."""
    arrived = np.zeros(len(here), np.bool_)
    decisions = np.zeros(len(here), np.int64)
    estimate = np.ones(len(here))
    going, branch = np.arange(len(here)), problem.brancher
    while len(going):
        watch.pause("descend")
        going, position = _still_going(branch, here, going, arrived)
        made = children(problem, here.take(going), position, watch)
        estimate[going] *= np.bincount(made.parent, minlength=len(going))
        weights = np.ones(len(made.parent)) if weigh is None else weigh(made.candidates)
        number = np.arange(len(made.parent)) - np.searchsorted(made.parent, made.parent)
        step = decisions[going][made.parent].astype(np.uint64)
        uniform = _mixed(seed[going][made.parent], step, number.astype(np.uint64))
        chosen = _chosen(made.parent, weights, uniform)
        going = going[made.parent[chosen]]
        _store(here, going, made.candidates.take(chosen))
        decisions[going] += 1
    watch.found += int(np.count_nonzero(arrived))
    return Descents(here, arrived, decisions, np.where(arrived, estimate, 0.0))


def _still_going(
    branch: Branch, here: Candidates, going: Index, arrived: Flags
) -> tuple[Index, Index]:
    """Those that have something to decide, and what; the others have arrived."""
    position = branch(here.take(going))
    arrived[going[position < 0]] = True
    return going[position >= 0], position[position >= 0]


def _starts(problem: SpaceProblem, count: int, watch: Watch) -> Candidates:
    """As many copies of the root; none if there is none."""
    root = start(problem, watch)
    return root.take(np.zeros(count if len(root) else 0, np.int64))


def _drawn(domains: Bits, random: np.random.Generator) -> Bits:
    """One of the set bits of each domain, all with the same probability."""
    word, bit = set_bits(domains)
    chosen = drawn_child(word, np.ones(len(word)), random)
    drawn: Bits = np.uint64(1) << bit[chosen]
    return drawn


def drawn_child(parent: Index, weights: Numbers, random: np.random.Generator) -> Index:
    """One child of each parent, by weight: the largest of u ** (1 / weight) wins (Efraimidis and
    Spirakis 2006), compared as log(u) / weight. In the order of the parents, which ascend."""
    return _chosen(parent, weights, random.random(len(parent)))


def _chosen(parent: Index, weights: Numbers, uniform: Numbers) -> Index:
    able = np.flatnonzero(weights > 0)
    with np.errstate(divide="ignore"):  # log(0) is never the largest
        keys = np.log(uniform[able]) / weights[able]
    order = able[np.lexsort((keys, parent[able]))]
    last = np.flatnonzero(np.diff(parent[order], append=-1))
    return order[last]


# Odd numbers that spread neighbours over all 64 bits (Steele, Lea and Flood 2014).
_SPREAD = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


def _mixed(seed: Bits, step: Bits, number: Bits) -> Numbers:
    """A number from 0 up to 1 for each seed, step and child, as if drawn."""
    golden, first, second = _SPREAD
    at = seed
    for more in (step, number):
        at = at + (more + np.uint64(1)) * golden
        at = (at ^ at >> np.uint64(30)) * first
        at = (at ^ at >> np.uint64(27)) * second
        at = at ^ at >> np.uint64(31)
    found: Numbers = (at >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


def _tried(
    problem: SpaceProblem, made: Candidates, position: Index, allowed: Bits
) -> tuple[Flags, Candidates]:
    """The candidates after a decision each, and which are alive."""
    return problem.propagator.restrict(made, np.arange(len(made)), position, allowed), made


def _store(here: Candidates, rows: Index, after: Candidates) -> None:
    here.domains[rows] = after.domains
    here.low[rows] = after.low
    here.high[rows] = after.high


# -- as an engine ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """How many random solutions of a space are wanted, and how many descents may be tried."""

    problem: SpaceProblem
    count: int
    seed: int = 0
    most_descents: int | None = None


def sampled(sampling: Sampling, watch: Watch) -> Iterator[Candidates]:
    """Batches of random solutions until there are enough, or descents have run out."""
    random = np.random.default_rng(sampling.seed)
    wanted, tried = sampling.count, 0
    most = sampling.most_descents if sampling.most_descents is not None else np.inf
    while wanted > 0 and tried < most:
        size = int(min(BATCH, wanted, most - tried))
        found = descents(sampling.problem, size, random, watch)
        if not len(found.leaves):
            return
        tried += size
        leaves = found.leaves.take(found.arrived)
        wanted -= len(leaves)
        if len(leaves):
            yield leaves


def sample(
    sampling: Sampling, budget: Budget | None = None, on_progress: OnProgress | None = None
) -> Result[tuple[Candidates, ...]]:
    """Random solutions in batches. Dead ends prove nothing: "impossible" is only said of a space
    that propagation alone empties."""
    watch = Watch(budget or Budget(), on_progress)
    gathered = gather(sampled(sampling, watch), budget=watch.budget)
    watch.clock.lap("search")
    return Result(_outcome(sampling.problem, gathered), watch.statistics())


def _outcome(
    problem: SpaceProblem, gathered: Gathered[Candidates]
) -> Outcome[tuple[Candidates, ...]]:
    if gathered.answers:
        return Found(tuple(gathered.answers), complete=False, stopped=gathered.stopped)
    if not len(problem.propagator.root(problem.decisions)):
        return Impossible()
    return Undecided(gathered.stopped or Reason.DEAD_ENDS)
