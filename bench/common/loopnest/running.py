"""Random implementations of a program, run on the simulator beside what the program means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.kernel.evaluate import run
from warploom.kernel.ir import Barrier, Kernel, Store, walk
from warploom.loopnest.bound import Bound
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import DEFAULT, Target
from warploom.search.branching.candidate import Decision
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem, children
from warploom.search.engine import Watch


def implementations(
    space: NestSpace, count: int, seed: int = 0, decisions: tuple[Decision, ...] = ()
) -> Iterator[Implementation]:
    problem = SpaceProblem(space.propagator, decisions, space.branch)
    for start in range(0, count, 64):
        random = np.random.default_rng([seed, start])
        found = descents(problem, min(64, count - start), random)
        for row in np.flatnonzero(found.arrived):
            yield Implementation(space, found.leaves, int(row))


@dataclass
class Seen:
    """What the implementations that were run were like."""

    runs: int = 0
    traits: Counter[Any] = field(default_factory=Counter)

    def note(self, made: Implementation, kernel: Kernel) -> None:
        self.runs += 1
        self.traits.update(traits(made, kernel))


def traits(made: Implementation, kernel: Kernel) -> list[str]:
    """What an implementation and its kernel have of what there is."""
    stmts = list(walk(kernel.body))
    stores = [each for each in stmts if isinstance(each, Store)]
    found = {made.kind[dim] for dim in made.dims}
    found |= {f"{len(made.levels)} levels", "lowered" if made.lowered else "in registers"}
    there = {
        "padded": any(made.padding[t] for t in made.lowered),
        "staged": any(made.stages[t] > 1 for t in made.lowered),
        "barriers": any(isinstance(each, Barrier) for each in stmts),
        "conditions": any(each.predicate is not None for each in stores),
    }
    return sorted(found | {name for name, is_there in there.items() if is_there})


def inputs(program: Program, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    random = np.random.default_rng(seed)
    arrays = {
        each.name: random.standard_normal(each.elements).astype(each.dtype.numpy)
        for each in program.arrays
    }
    return arrays, {each.name: float(random.normal()) for each in program.parameters}


def run_all(
    program: Program,
    count: int,
    seed: int = 0,
    target: Target = DEFAULT,
    space: NestSpace | None = None,
    decisions: tuple[Decision, ...] = (),
) -> Seen:
    """Every implementation passes the kernel check, races with nobody, and is right."""
    space = space or NestSpace(program, target)
    arrays, numbers = inputs(program, seed)
    wanted = evaluate(program, arrays, numbers)
    seen = Seen()
    for made in implementations(space, count, seed, decisions):
        kernel = lower(made)
        given = [
            np.full_like(wanted[each.name], 77) if each.name in wanted else arrays[each.name]
            for each in program.arrays
        ]
        report = run(kernel, [*given, *numbers.values()])
        assert not report.races
        for each, got in zip(program.arrays, given, strict=True):
            if each.name in wanted:
                assert np.allclose(got, wanted[each.name], rtol=1e-4, atol=1e-4), kernel
        seen.note(made, kernel)
    return seen


def grows_along(space: NestSpace, bound: Bound, walks: int, seed: int) -> int:
    """Asserts that no decision of some random walks lowers the bound; says how many there were."""
    problem = SpaceProblem(space.propagator, (), space.branch)
    random = np.random.default_rng(seed)
    here = space.propagator.root().take(np.zeros(walks, np.int64))
    steps = 0
    while len(here):
        position = space.branch(here)
        here, position = here.take(position >= 0), position[position >= 0]
        if not len(here):
            break
        made = children(problem, here, position, Watch())
        before, after = bound(here)[made.parent], bound(made.candidates)
        assert (after >= before * (1 - 1e-8)).all()
        steps += len(after)
        chosen = [random.choice(np.flatnonzero(made.parent == p)) for p in set(made.parent)]
        here = made.candidates.take(np.array(chosen))
    return steps
