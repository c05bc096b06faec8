"""Everything that is open in a program, together: what leaves the model compiles and fits.

Mappings are listed by propagation (`parts.py`), tile sizes by tables of those that divide
(`axes.py`), threads of a group from one table. A candidate is one of each; it is in the space if
the machine has room for it (`measure.py`). Sampling draws each part with equal probability and
leaves out what has no room: what comes out is uniform over all candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.array.code.program import Candidate
from warploom.array.code.scheduled import schedule_of
from warploom.array.code.spread import Spread
from warploom.array.joint.axes import Axis, axes_of
from warploom.array.joint.least import Least
from warploom.array.joint.measure import CODE, Batch, Ints, Placed, Sizes, StageMeasure
from warploom.array.joint.parts import Parts, parts_of, some_mappings
from warploom.array.joint.threads import Groups
from warploom.array.language.bind import variables_of
from warploom.array.language.ir import Program, place_of
from warploom.array.mapping.constraint import GLOBAL, GROUP, LANE, LOCAL, RUNS
from warploom.array.mapping.fusion import Fusion
from warploom.array.plan.loops import Plan
from warploom.array.plan.numbered import numbered
from warploom.array.plan.plan import plan as plan_of
from warploom.array.types import shape
from warploom.errors import CheckError
from warploom.index.ir import Const, substitute
from warploom.index.laws import simplify
from warploom.kernel.allocate import allocate
from warploom.kernel.bounds import INT_MAX
from warploom.kernel.ir import Shared
from warploom.kernel.pool import pool_bytes
from warploom.kernel.synchronise import synchronise
from warploom.machine.record import Machine
from warploom.schedule.lower import raw
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided

DRAWN = 1 << 14  # at once
FRUITLESS = 16  # batches without a candidate, one after another, before we look why
MOST_TILINGS = 1 << 20
MAPPINGS_FIRST = 16
RESERVED = 24  # registers for indices
MOST_STATEMENTS = 1 << 11  # of one kernel, with loops over registers written out
MOST_TEMPORARY = 1 << 31  # bytes between kernels


@dataclass(frozen=True, slots=True)
class NoGood:
    """Decisions that do not go together: sizes, and runs by stage and map."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    runs: Mapping[tuple[int, int], str] = field(default_factory=dict)


class JointModel:
    """The candidates of a program whose given sizes are numbers, on a machine."""

    def __init__(
        self,
        program: Program,
        sizes: Mapping[str, int],
        machine: Machine,
        fusion: Fusion = "intended",
        plan: Plan | None = None,
        memory: int = MOST_TEMPORARY,
    ) -> None:
        _check_names(program, sizes)
        _check_counts(program, sizes)
        self.program, self.machine, self.memory = program, machine, memory
        self.given = dict(sizes)
        self.axes: tuple[Axis, ...] = axes_of(program, sizes)
        self.plan = plan or plan_of(program)
        self.stages = [StageMeasure(self.plan, at, fusion) for at in range(len(self.plan.stages))]
        self.constraints = [each.constraints for each in self.stages]
        self.groups = Groups(machine)
        self.cuts: list[NoGood] = []
        self.drawn = 0  # in all, and how many of them had room
        self.kept = 0
        self._parts: tuple[Parts, ...] | None = None
        self.axes = tuple(Axis(each.names, self._with_room(each)) for each in self.axes)

    # -- the space

    def parts(self, budget: Budget | None = None) -> Outcome[tuple[Parts, ...]]:
        """All mappings, stage by stage."""
        if self._parts is None:
            found = []
            for constraints in self.constraints:
                outcome = parts_of(constraints, budget)
                if not isinstance(outcome, Found):
                    return outcome
                found.append(outcome.answer)
            self._parts = tuple(found)
        return Found(self._parts, complete=True)

    def mappings(self, budget: Budget | None = None) -> Outcome[int]:
        outcome = self.parts(budget)
        if not isinstance(outcome, Found):
            return outcome
        return Found(prod(each.count for each in outcome.answer), complete=True)

    @property
    def tilings(self) -> int:
        """Rows of all axes together that have room by themselves."""
        return prod(len(each.rows) for each in self.axes)

    def _with_room(self, axis: Axis) -> Ints:
        """Rows for which there is room if all other sizes take as little as they can."""
        least = Least(axis, [each for each in self.axes if each is not axis], self.given)
        return axis.rows[self._tiles_fit(least, len(axis.rows))]

    def _some_tiling_fits(self) -> bool:
        """False if no tile sizes have room together; True also if there are too many to look."""
        if self.tilings > MOST_TILINGS:
            return True
        counts = [len(axis.rows) for axis in self.axes]
        places = np.indices(counts).reshape(len(counts), self.tilings)
        sizes = {name: np.full(self.tilings, value) for name, value in self.given.items()}
        for axis, at in zip(self.axes, places, strict=True):
            sizes |= {name: axis.rows[at, k] for k, name in enumerate(axis.names)}
        return bool(self._tiles_fit(sizes, self.tilings).any())

    # -- room

    def _thread_fits(
        self, stage: StageMeasure, sizes: Sizes, placed: Placed | None = None
    ) -> npt.NDArray[np.bool_]:
        """Whether a thread has registers and statements enough; without how maps run, whether it
        may have."""
        machine = self.machine
        words = stage.registers(sizes, placed) + RESERVED
        threads = 1 if placed is None else placed[1].prod(1)
        fits = (words <= machine.thread_registers) & (words * threads <= machine.block_registers)
        return np.asarray(fits & (stage.statements(sizes, placed) <= MOST_STATEMENTS))

    def valid(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Which candidates have room, and are in no cut."""
        keep = np.ones(batch.count, bool)
        between: Ints = np.zeros(batch.count, np.int64)
        for at, stage in enumerate(self.stages):
            runs, group = batch.runs[at], batch.groups[at]
            keep &= self._thread_fits(stage, batch.sizes, (runs, group))
            keep &= self._groups_fit(stage, batch, at)
            keep &= stage.shared(batch.sizes, runs, group)[0] <= self.machine.shared_bytes
            between = between + stage.temporary(batch.sizes, runs)
        keep &= between <= self.memory
        for cut in self.cuts:
            keep &= ~self._in_cut(batch, cut)
        return keep

    def _groups_fit(self, stage: StageMeasure, batch: Batch, at: int) -> npt.NDArray[np.bool_]:
        """As many threads as there are iterations at most, one where no map runs on them."""
        machine, runs, group = self.machine, batch.runs[at], batch.groups[at]
        keep: npt.NDArray[np.bool_] = group.prod(1) <= machine.block_threads
        for side in range(3):
            codes = (LOCAL[side], GLOBAL[side])
            iterations = stage.along(codes, batch.sizes, runs)
            lanes = _uses(runs, LANE, len(group)) & (side == 0)
            keep &= np.where(lanes, True, group[:, side] <= np.maximum(1, iterations))
            keep &= group[:, side] <= machine.block_sides[side]
            keep &= np.where(lanes, group[:, side] % machine.lanes == 0, True)
            for run in (GROUP[side], GLOBAL[side]):
                keep &= stage.along((run,), batch.sizes, runs) <= machine.grid_sides[side]
        return keep

    def bytes_between(self, candidate: Candidate) -> int:
        """An upper bound on the bytes of global memory beside inputs and output."""
        sizes = {name: np.array([value]) for name, value in candidate.sizes.items()}
        total = 0
        for stage, spread in zip(self.stages, candidate.spreads, strict=True):
            runs = {each: np.array([CODE[run]], np.int8) for each, run in spread.runs.items()}
            total += int(stage.temporary(sizes, runs).max())
        return total

    def _tight(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Which candidates have room only if arrays lie in the same bytes."""
        found = np.zeros(batch.count, bool)
        for at, stage in enumerate(self.stages):
            most = stage.shared(batch.sizes, batch.runs[at], batch.groups[at])[1]
            found |= most > self.machine.shared_bytes
        return found

    def candidates(self, batch: Batch, order: Iterable[int]) -> Iterator[tuple[int, Candidate]]:
        """Those of a batch, in order, that have room. How arrays share bytes is up to lowering:
        what has room only by that is lowered before it leaves the model."""
        tight = self._tight(batch)
        for at in order:
            candidate = self.candidate(batch, at)
            if not tight[at] or self._placed_inside(candidate):
                yield at, candidate

    def _placed_inside(self, candidate: Candidate) -> bool:
        made = numbered(self.plan, candidate.sizes)
        for at, spread in enumerate(candidate.spreads):
            kernel = allocate(synchronise(raw(schedule_of(made, at, spread))))
            arrays = [each for each in kernel.body if isinstance(each, Shared)]
            if pool_bytes(arrays) > self.machine.shared_bytes:
                return False
        return True

    def _in_cut(self, batch: Batch, cut: NoGood) -> npt.NDArray[np.bool_]:
        inside = np.ones(batch.count, bool)
        for name, value in cut.sizes.items():
            inside &= batch.sizes[name] == value
        for (stage, number), run in cut.runs.items():
            inside &= batch.runs[stage][number] == CODE[run]
        return inside

    def cut(self, no_good: NoGood) -> None:
        """Leaves out all candidates that have these decisions."""
        self.cuts.append(no_good)

    # -- sampling

    def draw(self, random: np.random.Generator, count: int, parts: tuple[Parts, ...]) -> Batch:
        """At most so many of everything: tile sizes that have room by themselves, mappings and
        groups of threads that can be launched, all equally likely."""
        chosen = [each.draw(random, count, self.groups) for each in parts]
        sizes = self._draw_sizes(random, count)
        left = min([len(used) for _, used in chosen] + [len(each) for each in sizes.values()])
        return Batch(
            {name: each[:left] for name, each in sizes.items()},
            tuple({number: each[:left] for number, each in runs.items()} for runs, _ in chosen),
            tuple(self.groups.draw(random, used[:left]) for _, used in chosen),
        )

    def _draw_sizes(self, random: np.random.Generator, count: int) -> dict[str, Ints]:
        """Tile sizes that have room by themselves: whatever runs where, all others have none."""
        sizes = {name: np.full(count, value, np.int64) for name, value in self.given.items()}
        for axis in self.axes:
            rows = axis.rows[random.integers(len(axis.rows), size=count)]
            sizes |= {name: rows[:, k] for k, name in enumerate(axis.names)}
        keep = self._tiles_fit(sizes, count)
        return {name: each[keep] for name, each in sizes.items()}

    def _tiles_fit(self, sizes: Sizes, count: int) -> npt.NDArray[np.bool_]:
        keep, between = np.ones(count, bool), np.zeros(1, np.int64)
        for stage in self.stages:
            keep &= np.broadcast_to(self._thread_fits(stage, sizes), keep.shape)
            between = between + stage.temporary(sizes, None)
        return keep & np.broadcast_to(between <= self.memory, keep.shape)

    def batches(self, parts: tuple[Parts, ...], seed: int = 0) -> Iterator[Batch]:
        """Batches of candidates with room, without end; it ends if none has any for long."""
        random = np.random.default_rng(seed)
        fruitless = 0
        while fruitless < FRUITLESS:
            batch = self.draw(random, DRAWN, parts)
            kept = batch.only(self.valid(batch))
            self.drawn, self.kept = self.drawn + DRAWN, self.kept + kept.count
            fruitless = 0 if kept.count else fruitless + 1
            yield kept

    def sample(
        self, count: int, seed: int = 0, budget: Budget | None = None
    ) -> Outcome[list[Candidate]]:
        """So many candidates, all equally likely; undecided if the budget ends before one."""
        spent = budget or Budget()
        outcome = self.parts(spent)
        if not isinstance(outcome, Found):
            return outcome
        if any(not len(axis.rows) for axis in self.axes):
            return Impossible()
        found: list[Candidate] = []
        for kept in self.batches(outcome.answer, seed):
            some = self.candidates(kept, range(kept.count))
            found += [each for _, each in islice(some, count - len(found))]
            if len(found) == count:
                return Found(found, complete=True)
            if spent.is_spent():
                break
        stopped = stopped_by(spent)
        return Found(found, False, stopped) if found else self.none(stopped)

    def none(self, stopped: Reason) -> Outcome[Any]:
        return Undecided(stopped) if self._some_tiling_fits() else Impossible()

    def first(self, seed: int = 0, budget: Budget | None = None) -> Outcome[Candidate]:
        """Some candidate, soon: one mapping of each stage by a random descent, the rest drawn."""
        spent = budget or Budget()
        if any(not len(axis.rows) for axis in self.axes):
            return Impossible()
        parts = []
        for constraints in self.constraints:
            found = some_mappings(constraints, MAPPINGS_FIRST, seed, spent)
            if not isinstance(found, Found):
                return found
            parts.append(found.answer)
        for kept in self.batches(tuple(parts), seed):
            for _, candidate in self.candidates(kept, range(kept.count)):
                return Found(candidate, complete=True)
            if spent.is_spent():
                break
        return self.none(stopped_by(spent))

    def candidate(self, batch: Batch, at: int) -> Candidate:
        sizes = {name: int(each[at]) for name, each in batch.sizes.items()}
        spreads = []
        for runs, group in zip(batch.runs, batch.groups, strict=True):
            named = {number: RUNS[int(column[at])] for number, column in sorted(runs.items())}
            x, y, z = (int(side) for side in group[at])
            spreads.append(Spread(named, (x, y, z), self.machine.lanes))
        return Candidate(sizes, tuple(spreads))


def stopped_by(budget: Budget) -> Reason:
    """Why nobody goes on looking."""
    try:
        budget.check()
    except STOPS as stop:
        return reason_of(stop)
    return Reason.DEAD_ENDS


def _uses(runs: Mapping[int, npt.NDArray[np.int8]], run: str, count: int) -> npt.NDArray[np.bool_]:
    found = np.zeros(count, bool)
    for column in runs.values():
        found |= column == CODE[run]
    return found


def _check_counts(program: Program, sizes: Mapping[str, int]) -> None:
    """Every element has a number of 32 bits, as texts count in these."""
    for name, term in [(f"input '{each.name}'", each) for each in program.inputs] + [
        ("result", program.body)
    ]:
        dims = [simplify(substitute(each, dict(sizes))) for each in shape(term.type)]
        count = prod(each.value for each in dims if isinstance(each, Const))
        if count > INT_MAX:
            raise CheckError(
                f"'{program.name}': its {name} has {count} elements",
                span=place_of(term),
                advice=f"an array has {INT_MAX} at most; do a part of it at a time",
            )


def _check_names(program: Program, sizes: Mapping[str, int]) -> None:
    unknown = sorted(sizes.keys() - variables_of(program))
    if unknown:
        raise CheckError(
            f"'{program.name}' has no size '{unknown[0]}'",
            advice="its sizes are " + ", ".join(sorted(variables_of(program))),
        )
    for each in program.inputs:
        missing = sorted(variables_of(Program("", (each,), each)) - sizes.keys())
        if missing:
            raise CheckError(
                f"'{program.name}': the size '{missing[0]}' of its input '{each.name}' has no "
                "value",
                advice=f"give it one: {missing[0]}=64",
            )
