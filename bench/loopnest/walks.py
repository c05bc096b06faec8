"""Walks through the published spaces of loop nests: the pieces that `loopnest_estimates.py` shares
out among processes. A piece depends on its seed alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from bench.common.loopnest.particle_estimate import population

from warploom.loopnest.bound import Bound
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, axpy, matmul
from warploom.loopnest.space import DECIDED, NestSpace
from warploom.loopnest.target import paper
from warploom.machine.record import machine_named
from warploom.search.branching.candidate import Candidates, Decision, Flags
from warploom.search.branching.descent import descents
from warploom.search.branching.estimate import walked
from warploom.search.branching.problem import SpaceProblem

PROPER = Cut(proper=True)
# The program, and what was published: size, dead ends, cut in ms, what is left at depth 10.
ROWS: dict[str, tuple[Program, float, float, float, float]] = {
    "axpy": (axpy(1 << 26, cut=PROPER), 1.1e11, 0.001, 7.05, 121 / 86587),
    "matmul-256": (matmul(256, 256, 32, cut=PROPER), 1.83e21, 0.14, 0.0214, 20126 / 134060),
    "matmul-1024": (matmul(1024, 1024, 1024, cut=PROPER), 3.5e21, 0.028, 4.81, 6738 / 161980),
    "matmul-strided": (
        matmul(1024, 1024, 1024, stride=32, cut=PROPER), 6.0e20, 0.023, 10.1, 9512 / 142780,
    ),
}  # fmt: skip
Lowered = tuple[str, ...]  # of each temporary: does it go through memory?
REVERSED = DECIDED[::-1]
# How many leaves there are does not depend on what is decided first, but how evenly they lie does:
# most of them differ in the order of loops, and how many of these there are depends on kinds.
COUNTED = ("order", "dim_kind", "size", "thread_mapping")


@cache
def space_of(name: str, decided: tuple[str, ...] = DECIDED) -> NestSpace:
    """As published: nobody counts registers, so not all of these have a kernel of ours."""
    target = replace(paper(machine_named("k4000")), limits_registers=False)
    return NestSpace(ROWS[name][0], target, decided)


def problem_of(space: NestSpace, decisions: tuple[Decision, ...] = ()) -> SpaceProblem:
    """Only what is decided early: the order of two instructions follows, or does not matter."""
    return SpaceProblem(space.propagator, decisions, branch=space.decisions)


def parts_of(name: str) -> list[Lowered]:
    """The space in parts, by the values that go through memory, those with all of them first:
    nearly all implementations are there, and few walks get there by themselves."""
    space = space_of(name)
    every = product(("TRUE", "FALSE"), repeat=len(space.program.temporaries))
    return [part for part in every if len(space.propagator.root(_taken(space, part)))]


def _taken(space: NestSpace, part: Lowered) -> tuple[Decision, ...]:
    named = zip(space.program.temporaries, part, strict=True)
    return tuple(Decision("lowered", (str(each),), (value,)) for each, value in named)


def by_population(name: str, part: Lowered, count: int, seed: int) -> float:
    """The logarithm of a part's size by one population, which goes on in the order of decisions."""
    space = space_of(name, COUNTED)
    problem = problem_of(space, _taken(space, part))
    return population(problem, count, np.random.default_rng([1, seed]), space.rank)


def ended(name: str, count: int, seed: int) -> int:
    """How many of so many uniform descents are dead ends."""
    found = descents(problem_of(space_of(name)), count, np.random.default_rng([2, seed]))
    return int(np.count_nonzero(~found.arrived))


def nodes(name: str, reverse: bool, walks: int, depth: int, seed: int) -> tuple[float, float]:
    """Nodes at a depth, all of them and those whose bound is below the cut."""
    space, cut = space_of(name, REVERSED if reverse else DECIDED), ROWS[name][3]
    bound, problem = Bound(space, machine_named("k4000").rates), problem_of(space)

    def keep(candidates: Candidates, at: int) -> Flags:
        del at
        found: Flags = bound(candidates) < cut * 1e6
        return found

    random = np.random.default_rng([3, seed])
    every = walked(problem, walks, random, deepest=depth).estimate()
    kept = walked(problem, 4 * walks, random, keep=keep, deepest=depth).estimate()
    reached = kept.nodes[depth].value if depth < len(kept.nodes) else 0.0
    return every.nodes[depth].value, reached
