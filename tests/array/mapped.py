"""Random mappings of plans, and kernels run with races looked for."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from warploom.array.code.program import Candidate, Compiled, compile_candidate
from warploom.array.code.spread import Spread
from warploom.array.mapping.constraint import GLOBAL, LANE, LOCAL, Assignment
from warploom.array.mapping.solve import all_mappings, as_assignment
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import map_tree
from warploom.array.plan.loops import Plan
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.search.outcome import Found


def random_assignment(plan: Plan, stage: int, random: Random) -> Assignment:
    """One of all the mappings of a stage that obey the rules."""
    constraints = sound(map_tree(plan, stage))
    outcome = all_mappings(constraints).outcome
    assert isinstance(outcome, Found)
    return as_assignment(constraints, outcome.answer[random.randrange(len(outcome.answer))])


def some_threads(random: Random, runs: Assignment) -> tuple[int, int, int]:
    """Few threads, seldom as many as there are iterations."""
    used = set(runs.values())
    sides = [
        random.choice((1, 2, 3, 4)) if {LOCAL[d], GLOBAL[d]} & used else 1 for d in range(3)
    ]  # fmt: skip
    return (32 * sides[0] if LANE in used else sides[0], sides[1], sides[2])


def random_candidate(plan: Plan, random: Random, **sizes: int) -> Candidate:
    spreads = []
    for stage in range(len(plan.stages)):
        runs = random_assignment(plan, stage, random)
        spreads.append(Spread(runs, some_threads(random, runs)))
    return Candidate(sizes, tuple(spreads))


def checked_launch(kernel: Kernel, arguments: list[Any]) -> None:
    assert not run(kernel, arguments).races


def run_candidate(plan: Plan, candidate: Candidate, *inputs: Any) -> tuple[Compiled, Any]:
    compiled = compile_candidate(plan, candidate)
    return compiled, compiled(checked_launch, *inputs)


def same(left: Any, right: Any, exact: bool = True) -> bool:
    if isinstance(left, tuple):
        return all(same(a, b, exact) for a, b in zip(left, right, strict=True))
    if left.shape != right.shape:
        return False
    return bool((left == right).all() if exact else np.allclose(left, right, rtol=1e-4, atol=1e-4))


def lifted(value: Any) -> Any:
    """A number as plans store it: an array of one element."""
    return tuple(map(lifted, value)) if isinstance(value, tuple) else value[None]
