"""A program whose maps say how they run → its kernels: nothing is left to choose but threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warploom.array.code.program import Candidate, Compiled, compile_candidate
from warploom.array.code.spread import Spread
from warploom.array.language.ir import Program
from warploom.array.mapping.constraint import Assignment
from warploom.array.mapping.solve import all_mappings, as_assignment
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import map_tree
from warploom.array.plan.plan import plan
from warploom.errors import CheckError
from warploom.search.outcome import Found

Group = tuple[int, int, int]


def compile_fixed(
    program: Program,
    groups: Callable[[int, Assignment], Group],
    sizes: Mapping[str, int] | None = None,
) -> Compiled:
    """The kernels of a program that leaves one mapping; `groups` gives the threads of a group of
    each stage."""
    made = plan(program)
    spreads = []
    for stage in range(len(made.stages)):
        constraints = sound(map_tree(made, stage))
        outcome = all_mappings(constraints).outcome
        if not isinstance(outcome, Found) or len(outcome.answer) != 1:
            count = len(outcome.answer) if isinstance(outcome, Found) else 0
            raise CheckError(
                f"'{program.name}' leaves {count} mappings of kernel {stage}, not one",
                advice="say how each map runs: map_local(0, …)",
            )
        runs = as_assignment(constraints, outcome.answer[0])
        spreads.append(Spread(runs, groups(stage, runs)))
    return compile_candidate(made, Candidate(sizes or {}, tuple(spreads)))
