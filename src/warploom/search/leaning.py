"""How large a space is where few walks reach most of it: walks that learn where its leaves are.

Knuth's walks choose among children with equal chances. Where trees are uneven nearly all leaves
are behind choices that few walks make, and an estimate is too small until one of them is met by
chance. Here a walk chooses by what earlier ones found, and still stands for one over the chance of
its own way: its mean is the number of leaves, whatever was learnt (Rubinstein, 1997). Pieces of a
round may run anywhere; what they found together teaches the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warploom.search.candidate import Index, Numbers
from warploom.search.engine import Watch
from warploom.search.estimate import SURE, Mean, one_of_each
from warploom.search.problem import SpaceProblem, children, start

EVEN = 0.1  # of every choice is left to equal chances
SHARE = 1 / 8  # of the walks of a round, at least, has a say in what is learnt
FADED = 0.9  # weights get nearer to each other by this power until it is so
CAUTION = 2.0  # walks that are thought of as having chosen as they were told to
WORD = 64  # values of a choice


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """`leaves[w]` is the logarithm of what walk w stands for, minus infinity at a dead end; walk
    `walk[i]` chose the value `value[i]` at position `position[i]`."""

    leaves: Numbers
    walk: Index
    position: Index
    value: Index

    @property
    def dead_ends(self) -> float:
        return float(np.isneginf(self.leaves).mean())


def joined(parts: Sequence[Walks]) -> Walks:
    firsts = np.cumsum([0, *(len(part.leaves) for part in parts)])
    return Walks(
        np.concatenate([part.leaves for part in parts]),
        np.concatenate([part.walk + first for part, first in zip(parts, firsts, strict=False)]),
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def untaught(problem: SpaceProblem) -> Numbers:
    """Logarithms of chances by position and value: all equal."""
    table: Numbers = np.zeros((problem.propagator.choices, WORD))
    return table


def lean(
    problem: SpaceProblem,
    count: int,
    random: np.random.Generator,
    table: Numbers,
    watch: Watch | None = None,
    batch: int = 64,
) -> Walks:
    """So many walks that choose by the table, all living children included."""
    watch = watch or Watch()
    sizes = [min(batch, count - first) for first in range(0, count, batch)]
    return joined([_leaning(problem, size, random, table, watch) for size in sizes])


def _leaning(
    problem: SpaceProblem, count: int, random: np.random.Generator, table: Numbers, watch: Watch
) -> Walks:
    root = start(problem, watch)
    leaves: Numbers = np.full(count, -math.inf)
    here = root.take(np.zeros(count if len(root) else 0, np.int64))
    walk, weight = np.arange(len(here)), np.zeros(len(here))
    steps: list[tuple[Index, Index, Index]] = []
    while len(walk):
        watch.pause("estimate")
        position = problem.brancher(here)
        done = position < 0
        leaves[walk[done]] = weight[done]
        here, walk, weight, position = here.take(~done), walk[~done], weight[~done], position[~done]
        if not len(walk):
            break
        found = children(problem, here, position, watch)
        if not len(found.candidates):
            break
        decided = position[found.parent]
        bits = found.candidates.domains[np.arange(len(decided)), decided]
        value = np.bitwise_count(bits - np.uint64(1)).astype(np.int64)
        chance = _chances(table[decided, value], found.parent, len(walk))
        chosen = one_of_each(found.parent, random, chance)
        parent = found.parent[chosen]
        here, walk = found.candidates.take(chosen), walk[parent]
        weight = weight[parent] - np.log(chance[chosen])
        steps.append((walk, decided[chosen], value[chosen]))
    none = np.zeros(0, np.int64)
    parts = [np.concatenate([none, *each]) for each in zip(*steps, strict=True)] or [none] * 3
    return Walks(leaves, parts[0], parts[1], parts[2])


def _chances(told: Numbers, parent: Index, parents: int) -> Numbers:
    """Of each child among those of its parent."""
    most = np.full(parents, -math.inf)
    np.maximum.at(most, parent, told)
    likely = np.exp(told - most[parent])
    likely /= np.bincount(parent, likely, minlength=parents)[parent]
    even = 1 / np.bincount(parent, minlength=parents)[parent]
    chances: Numbers = (1 - EVEN) * likely + EVEN * even
    return chances


def learnt(table: Numbers, walks: Walks) -> Numbers:
    """What to tell the next walks: to choose as these did, each counted by what it stands for. A
    few would have all the say where weights differ by decades, so they are brought nearer."""
    if walks.dead_ends == 1:
        return table
    above = walks.leaves - walks.leaves.max()
    power = 1.0
    while (weight := np.exp(power * above)).sum() ** 2 < SHARE * len(above) * (weight**2).sum():
        power *= FADED
    weight *= len(weight) / weight.sum()
    made, say = np.zeros_like(table), np.zeros_like(table)
    np.add.at(made, (walks.position, walks.value), 1.0)
    np.add.at(say, (walks.position, walks.value), weight[walks.walk])
    there = made > 0
    before = np.divide(made, made.sum(axis=1, keepdims=True), out=np.ones_like(made), where=there)
    told: Numbers = np.where(there, np.log(say + CAUTION * before), table)
    return told


def leaves_of(rounds: Sequence[Walks]) -> Mean:
    """The number of leaves by all walks together; each round was told by earlier ones only."""
    weights = np.exp(np.concatenate([each.leaves for each in rounds]))
    error = SURE * float(weights.std(ddof=1)) / math.sqrt(len(weights))
    return Mean(float(weights.mean()), error)
