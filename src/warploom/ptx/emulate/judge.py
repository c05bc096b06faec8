"""Runs a launch on the evaluator, and again where what looks like a race may be none (`excuse`).

Every run starts from the same memory, so all of them are the same but for how they are looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import numpy.typing as npt

from warploom.errors import KernelError, Span, WarploomError
from warploom.machine.company import Company
from warploom.machine.judges import Practice
from warploom.machine.last import NO_CHANCE, Chance, LastWrites
from warploom.machine.overlap import Footprint, Overlap
from warploom.machine.race import Pair, Race, RaceDetector, Side
from warploom.machine.record import CUDA
from warploom.machine.report import Report
from warploom.machine.semantics import Kind
from warploom.ptx.emulate.asked import Asked
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.compile import CallCompiler, compile_function, meets_in_part
from warploom.ptx.emulate.excuse import (
    Excused,
    Kept,
    fused_sums,
    may_be_rounding,
    one_value,
    readers_among,
)
from warploom.ptx.emulate.hold import Hold
from warploom.ptx.emulate.ordering import acquires, follows_looks, uses_flags
from warploom.ptx.emulate.origins import AllOfUse, Origins, Reader
from warploom.ptx.emulate.skeleton import Recorded
from warploom.ptx.emulate.trial import Around, Trial
from warploom.ptx.emulate.work import Work
from warploom.ptx.ir import Function, Instruction
from warploom.ptx.known import COMMUTES
from warploom.ptx.patience import timed
from warploom.ptx.types import is_float, type_of


@dataclass(slots=True)
class Judge:
    """Runs launches of one kernel; `_unfused` is its code where sums round their products first."""

    around: Around
    function: Function
    shared: dict[str, int]
    call: CallCompiler
    skeletons: list[Recorded] = field(default_factory=list, init=False)  # of the last launch
    events: dict[Hold, int] = field(default_factory=dict, init=False)  # … where a schedule counts
    undecided: list[tuple[Side, Side]] = field(default_factory=list, init=False)  # … with others
    unused: tuple[Span, ...] = field(default=(), init=False)  # … loads whose races are excused
    chance: Chance = field(default=NO_CHANCE, init=False)  # … what is so by who came first
    relied: frozenset[str] = field(default=frozenset(), init=False)  # … rules of practice
    _unfused: Code | None = field(default=None, init=False)

    def run(self, asked: Asked, code: Code, before: Kept, work: Work | None = None) -> Report:
        """Runs a launch on the evaluator: again, where its races may be excused (`excuse`)."""
        excused = Excused()
        while True:
            launch = self._trial(code, asked, excused, work)
            fault: WarploomError | None = None
            try:
                launch.run()
            except KernelError as error:
                if asked.races == "all" or not launch.met:
                    raise
                fault = error  # the first race, which may be none
            more = None
            if launch.met and asked.benign and not self.around.heap.was_used:
                more = self._excused(asked, code, before, excused, launch.met)
            if more is None:
                if fault is not None:
                    raise fault
                self.skeletons, self.events = launch.skeletons, launch.events
                self.unused = tuple(span for span, dead in excused.dead_loads.items() if dead.any())
                self.chance, self.relied = _chance(launch.races), _relied(launch.races)
                self.undecided = [*launch.races.undecided.values()] if launch.races else []
                self._keep_footprint(asked, launch)
                return launch.report
            before.restore()
            excused, work = more, None  # compiled code would only suspect the same

    def _keep_footprint(self, asked: Asked, launch: Trial) -> None:
        """What the launch touched, for one that overlaps it; its threads are named by now."""
        races = launch.races
        if races is None or races.footprint is None:
            return

        def side(kind: Kind, entry: int) -> Side:
            found = launch.named_side(races.side(kind, entry))
            label = found.label
            place = self.around.places.at(label) if isinstance(label, Span) else None
            return replace(found, label=(place.span() if place else None) or label)

        races.footprint.end(asked.memory.regions, side)
        launch.report.footprint = races.footprint

    def _excused(
        self, asked: Asked, code: Code, before: Kept, known: Excused, met: list[Race]
    ) -> Excused | None:
        """What of these races is excused that was not before; memory is as it was."""
        after = Kept(asked.memory)
        try:
            readers = readers_among(met, prod(asked.block))
            if known.dead is None and readers:
                before.restore()
                dead = self._dead_loads(asked, code, readers)
                if any(load in dead and dead[load][who] for load, who in readers):
                    return replace(known, dead=dead)
            pairs = {race.pair for race in met if may_be_rounding(race)}
            if known.rounded is None and pairs and fused_sums(self.function):
                before.restore()
                rounded = self._rounded(asked, known)
                if pairs & rounded:
                    return replace(known, rounded=rounded)
            return None
        finally:
            after.restore()

    def _dead_loads(
        self, asked: Asked, code: Code, readers: set[Reader]
    ) -> Mapping[Span, npt.NDArray[np.bool_]]:
        """The loads that are of no use; none where the launch does not come to its end."""
        origins = Origins(asked.threads, readers)
        quiet = replace(asked, races=False, counters=False)
        try:
            Trial(self.around, code, quiet, None, None, Excused(), origins).run()
        except (WarploomError, AllOfUse):
            return {}
        return origins.dead

    def _rounded(self, asked: Asked, known: Excused) -> frozenset[Pair]:
        """Writes that are of one value where fused sums round their products first."""
        if self._unfused is None:
            self._unfused = compile_function(
                self.around.module, self.function, self.shared, self.call,
                fused_sums(self.function),
            )  # fmt: skip
        every = replace(asked, races="all", benign=False, counters=False)
        launch = self._trial(self._unfused, every, known)
        try:
            launch.run()
        except WarploomError:
            return frozenset()
        return one_value(launch.met)

    def _sums(self, steps: Sequence[Instruction]) -> dict[Hashable, Hashable]:
        """Atomics that leave the same whoever comes first, but for rounding: with which others."""
        return {
            self.around.module.span(ins): tuple(sorted({*ins.modifiers} & COMMUTES)) + _width(ins)
            for ins in steps
            if (ins.opcode in ("atom", "red") or "reduce" in ins.modifiers[:1])
            and {*ins.modifiers} & COMMUTES
        }  # fmt: skip

    def _trial(self, code: Code, asked: Asked, excused: Excused, work: Work | None = None) -> Trial:
        return Trial(self.around, code, asked, self._detector(asked, excused), work, excused)

    def _detector(self, asked: Asked, excused: Excused) -> RaceDetector | None:
        if not asked.races:
            return None
        functions = [f for f in self.around.module.functions if f.kind == "func"]
        steps = [step for f in (self.function, *functions) for step in timed(f.instructions())]
        detector = RaceDetector(
            prod(asked.grid), prod(asked.block), CUDA.lanes, len(steps) + 1,
            partial=asked.model == "ptx" or any(meets_in_part(step) for step in steps),
            flags=asked.overlaps or any(uses_flags(step) for step in steps) or follows_looks(steps),
            every=asked.races == "all", benign=asked.benign, cluster=prod(asked.cluster),
            meetings=any(s.opcode == "mbarrier" and "inval" in s.modifiers for s in steps),
            rounded=excused.rounded_pairs, strict=asked.model == "ptx",
        )  # fmt: skip
        if detector.flags is not None and any(acquires(step) for step in steps):
            detector.judges.company = Company(detector.layout)
        detector.judges.tells = asked.prove
        if asked.prove:
            detector.last = LastWrites(detector.layout, self._sums(steps))
        if asked.dependents:
            detector.footprint = Footprint(() if asked.after is None else (asked.after,))
        if asked.after is not None:
            detector.overlap = Overlap.of(asked.after, asked.memory, detector.new_source)
        return detector


def _width(ins: Instruction) -> tuple[str, ...]:
    """The type, as far as it makes a difference to atomics that meet; of reductions by tensor maps
    it is not written, so that each is alike to itself alone."""
    if "tensor" in ins.modifiers:
        return (ins.name, str(ins.start))
    kind = type_of(ins)
    if is_float(kind) or {*ins.modifiers} & {"min", "max"}:
        return (kind,)
    return (kind[1:],)


def _relied(races: RaceDetector | None) -> frozenset[str]:
    """The rules of practice that made a difference: what is no race by them alone."""
    if races is None:
        return frozenset()
    found = {each.value for each in races.judges.relied}
    if races.flags is not None and races.flags.cumulative.relied:
        found.add(Practice.CUMULATIVE.value)
    return frozenset(found)


def _chance(races: RaceDetector | None) -> Chance:
    """What a run owes to who came first, or last, where that was noted."""
    if races is None or races.last is None:
        return NO_CHANCE

    def label(number: int) -> Hashable:
        return races.side(Kind.ATOMIC, number << races.layout.code_bits).label

    counted = set() if races.flags is None else races.flags.counted
    return Chance(
        tuple(frozenset(label(each) for each in looks) for looks in sorted(counted, key=sorted)),
        tuple((label(one), label(other)) for one, other in races.last.found),
        tuple(label(each) for each in sorted(races.last.same)),
    )
