"""What cuts remove of a space, and the kept implementation that each of these becomes by its
witness; how both compare.

A removed implementation is decided otherwise by the witness of each cut that applies, again and
again, until no cut removes it. What follows from decisions is left to propagation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from warploom.kernel.evaluate import run
from warploom.kernel.work import work_of
from warploom.loopnest.cuts import CUTS, Changes
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import Evaluation
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import Target, everything
from warploom.loopnest.trial import before, some_inputs
from warploom.machine.record import H200, Machine
from warploom.machine.times import room_of
from warploom.machine.work import Work
from warploom.search.branching.candidate import Candidates, Flags, domain_of, joined
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem
from warploom.search.branching.tree import solutions
from warploom.search.engine import Watch
from warploom.search.propagate.propagator import Propagator

STEPS = 64
# Counts of the time model, of the processor that has most to do; and those of one block.
SUMS = (
    "arithmetic", "special", "moves", "shuffles", "products", "iterations", "barriers",
    "requests", "lines", "shared_requests", "wavefronts",
)  # fmt: skip
OF_A_BLOCK = ("longest", "global_rounds", "shared_rounds")
ROUNDING = 1e-9


@dataclass(frozen=True)
class Witnessed:
    """`steps` are the cuts by whose witnesses it came to the kept one; that is None where none
    applied, or decisions contradicted each other: a mistake of a cut."""

    steps: tuple[str, ...]
    kept: Candidates | None


class Cutting:
    """A program with its space, uncut and cut."""

    def __init__(self, program: Program, target: Target | None = None) -> None:
        self.program = program
        self.target = target or everything(H200)
        self.uncut = NestSpace(program, replace(self.target, cuts=()))
        self.cut = NestSpace(program, self.target)
        self.problem = SpaceProblem(self.uncut.propagator, branch=self.uncut.branch)

    @cached_property
    def by_cut(self) -> dict[str, Propagator]:
        """The space with each cut alone."""
        return {name: NestSpace(self.program, replace(self.target, cuts=(name,))).propagator
                for name in self.target.cuts}  # fmt: skip

    def implementations(self, most: int, drawn: int, seed: int = 0) -> tuple[Candidates, bool]:
        """All of them, and True, where a program has one instruction and no more than so many; else
        some random ones."""
        found, watch = list[Candidates](), Watch()
        one = len(self.program.instructions) == 1
        for batch in solutions(self.problem, watch) if one else ():
            found.append(batch)
            if sum(map(len, found)) > most:
                break
        else:
            if one:
                return joined(found), True
        random = descents(self.problem, drawn, np.random.default_rng(seed))
        return random.leaves.take(np.flatnonzero(random.arrived)), False

    def kept(self, leaves: Candidates, propagator: Propagator | None = None) -> Flags:
        """Which decided candidates fulfil all cuts, or those of another space."""
        own = propagator or self.cut.propagator
        root, count, width = own.root(), len(leaves), own.choices
        if not len(root):
            return np.zeros(count, np.bool_)
        here = root.take(np.zeros(count, np.int64))
        row, position = np.repeat(np.arange(count), width), np.tile(np.arange(width), count)
        return own.restrict(here, row, position, leaves.domains[:, :width].reshape(-1))

    def removing(self, leaf: Candidates) -> tuple[str, ...]:
        """The cuts that remove it."""
        return tuple(name for name, own in self.by_cut.items() if not self.kept(leaf, own)[0])

    def witnessed(self, leaf: Candidates) -> Witnessed:
        steps: list[str] = []
        while not self.kept(leaf)[0]:
            made = self.made(leaf)
            found = ((name, CUTS[name].witness(made)) for name in self.target.cuts)
            name, changes = next(((n, c) for n, c in found if c is not None), ("", None))
            after = None if changes is None else self._changed(leaf, changes)
            steps.append(name)
            if after is None or len(steps) > STEPS:
                return Witnessed(tuple(steps), None)
            leaf = after
        return Witnessed(tuple(steps), leaf)

    def made(self, leaf: Candidates) -> Implementation:
        return Implementation(self.uncut, leaf, 0)

    def _changed(self, leaf: Candidates, changes: Changes) -> Candidates | None:
        """The implementation with some decisions changed; None where there is none."""
        own, choices = self.uncut.propagator, {c.name: c for c in self.uncut.space.choices}
        words = leaf.domains[0, : own.choices].copy()
        fixed = np.zeros(own.choices, np.bool_)
        for choice in choices.values():
            fixed[own.columns(choice)] = not choice.derived
        for (name, objects), value in changes.items():
            choice = choices[name]
            place, exchanged = own.position(choice, objects)
            at = choice.values.index(value)
            if exchanged:
                assert choice.inverse is not None
                at = choice.inverse[at]
            there = domain_of(choice, int(words[place]))
            if there.values:  # else one of its objects is not there
                words[place] = 1 << at
        position = np.flatnonzero(fixed)
        here = own.root()
        alive = own.restrict(here, np.zeros(len(position), np.int64), position, words[position])
        if not alive[0] or not own.is_decided(here)[0]:
            return None
        return here


def worse(kept: Work, removed: Work, machine: Machine) -> Iterator[str]:
    """In which counts the kept one has more."""
    before, after = busiest(removed, machine), busiest(kept, machine)
    for name, count in after.items():
        if count > before[name] * (1 + ROUNDING):
            yield f"{name}: {count:g} instead of {before[name]:g}"


def busiest(work: Work, machine: Machine) -> dict[str, float]:
    """Counts of the processor that has most to do, and of one block what is of one. (Elements that
    all blocks touch together are the same; the model estimates them from some.) Registers and bytes
    of shared memory count by how many blocks have no room while others are there."""
    blocks: Any = -(-int(work.blocks) // machine.multiprocessors)
    room, lacking = room_of(work, machine)
    found = {name: float(getattr(work, name)) * blocks for name in SUMS}
    found |= {name: float(getattr(work, name)) for name in OF_A_BLOCK}
    at_once = min(float(room), blocks)
    found["sectors"] = blocks * float(work.sectors + work.common / at_once)
    return found | {"waves of blocks": blocks / at_once, "lacking registers": float(lacking)}


# -- a removed implementation beside its kept one --------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """`wrong` says what is worse of the kept one, or different; by which cuts it came there."""

    steps: tuple[str, ...]
    wrong: tuple[str, ...]


class Comparing:
    """Removed implementations of one program, with what kernels count and compute kept by what is
    decided: many have one witness."""

    def __init__(self, cutting: Cutting) -> None:
        self.cutting = cutting
        program = cutting.program
        arrays, self.numbers = some_inputs(program, np.random.default_rng(7))
        meant = Evaluation(program, arrays, self.numbers, {})
        self.before = dict(before(meant, arrays))
        self.seen: dict[bytes, tuple[Work, tuple[bytes, ...]]] = {}

    def compared(self, leaf: Candidates) -> Compared:
        found = self.cutting.witnessed(leaf)
        if found.kept is None:
            return Compared(found.steps, (f"no witness; removed by {self.cutting.removing(leaf)}",))
        (removed, first), (kept, then) = self._done(leaf), self._done(found.kept)
        wrong = [*worse(kept, removed, self.cutting.target.machine)]
        wrong += ["other results"] if first != then else []
        return Compared(found.steps, tuple(wrong))

    def _done(self, leaf: Candidates) -> tuple[Work, tuple[bytes, ...]]:
        """What its kernel does, and what is in all arrays afterwards."""
        key = leaf.domains.tobytes()
        if key not in self.seen:
            kernel = lower(self.cutting.made(leaf))
            given = [self.before[array].copy() for array in self.cutting.program.arrays]
            report = run(kernel, [*given, *self.numbers.values()])
            after = tuple(each.tobytes() for each in given)
            races = tuple(str(each).encode() for each in report.races)
            self.seen[key] = work_of(kernel), (*after, *races)
        return self.seen[key]
