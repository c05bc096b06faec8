"""The space of a program's implementations, ready to be searched.

In come a program and a target; out goes a `NestSpace`: its choices with all constraints, compiled
for propagation, and the order in which they are decided unless the user has one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warploom.errors import CheckError
from warploom.loopnest.choices import Choices
from warploom.loopnest.constraints import declare_constraints
from warploom.loopnest.ir import Instruction, Program
from warploom.loopnest.target import DEFAULT, Target
from warploom.search.branching.candidate import Candidates, Index
from warploom.search.branching.problem import Branch, is_open
from warploom.search.propagate.propagator import Propagator

# What is decided first says most about the time that an implementation takes.
DECIDED = (
    "layout",
    "stages",
    "fill",
    "size",
    "dim_kind",
    "padding",  # for threads, which kinds say
    "swizzle",
    "thread_mapping",
    "mem_space",
    "order",
    "cache",
)


class NestSpace(Choices):
    """`branch` says what is decided next: the first open instance of the first open choice.
    `decisions` is the same without what is left to the end; `rank` is the place of each position
    in that order."""

    def __init__(
        self, program: Program, target: Target = DEFAULT, decided: Sequence[str] = DECIDED
    ) -> None:
        super().__init__(program, target)
        declare_constraints(self)
        self.propagator = Propagator(self.space)
        early, late = self._decided(decided)
        self.rank: Index = np.argsort(np.concatenate([early, late]))
        self.branch = self.first_open(np.concatenate([early, late]))
        self.decisions = self.first_open(early)

    def first_open(self, sequence: Index) -> Branch:
        """The first position that is open in each candidate, -1 where none is. What may still turn
        out not to be there, or to be no dimension of its array, is not decided, but for lack of
        anything else."""
        absent = np.zeros(self.propagator.choices, np.uint64)
        for choice in self.space.choices:
            absent[self.propagator.columns(choice)] = choice.absent_bit
        absent[self.propagator.columns(self.layout)] |= np.uint64(self.layout.bits(["NONE"]))
        absent = absent[sequence]

        def branch(candidates: Candidates) -> Index:
            domains = candidates.domains[:, sequence]
            undecided = is_open(domains)
            there = undecided & ((domains & absent) == 0)
            first = np.where(there.any(axis=1), there.argmax(axis=1), undecided.argmax(axis=1))
            return np.where(undecided.any(axis=1), sequence[first], -1)

        return branch

    def _iterations(self, dim: object) -> int:
        """How often what is in a loop is done at most."""
        return max((math.prod(axis.size for axis in inst.axes) for inst in self.insts
                    if dim in inst.dims), default=0)  # fmt: skip

    def _decided(self, names: Sequence[str]) -> tuple[Index, Index]:
        """Positions in the order in which they are decided, and those that are left to the end: the
        order of two instructions follows from that of the dimensions, or does not matter."""
        known = {choice.name: choice for choice in self.space.choices}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise CheckError(
                f"there is no choice '{unknown[0]}'", advice=f"known are {', '.join(known)}"
            )
        listed = [known[name] for name in dict.fromkeys(names)]
        plain = [c for c in self.space.choices if c not in listed and not c.derived]
        derived = [c for c in self.space.choices if c not in listed and c.derived]
        early: list[int] = []
        late: list[int] = []
        for choice in (*listed, *plain, *derived):
            columns = self.propagator.columns(choice)
            placed = list(enumerate(choice.instances, columns.start))
            if choice is self.kind:  # the loops of what is done most often say most
                placed.sort(key=lambda each: -self._iterations(each[1][0]))
            for position, objects in placed:
                last = all(isinstance(item, Instruction) for item in objects) and len(objects) > 1
                (late if last or choice.derived else early).append(position)
        return np.array(early, np.int64), np.array(late, np.int64)
