"""One run of a launch by the evaluator, cut into batches of blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.heap import Heap
from warploom.machine.judges import Cause
from warploom.machine.memory import owner_stride, per_owner
from warploom.machine.race import Race, RaceDetector, Side
from warploom.machine.record import H200
from warploom.machine.report import Report
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.access import SHARED
from warploom.ptx.emulate.asked import Asked
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.driver import WORKSPACE, begin_reserved
from warploom.ptx.emulate.excuse import Excused
from warploom.ptx.emulate.frame import Batch, Frame, in_grid
from warploom.ptx.emulate.hold import Hold, Holding
from warploom.ptx.emulate.ordering import may_look_far
from warploom.ptx.emulate.origins import Origins
from warploom.ptx.emulate.read_only import ReadOnly, read_only_of
from warploom.ptx.emulate.schedule import Runner
from warploom.ptx.emulate.skeleton import TURNS, Recorded, Skeleton
from warploom.ptx.emulate.tensor_map_edit import edits_maps
from warploom.ptx.emulate.waits import shared_name, shared_words
from warploom.ptx.emulate.work import Work
from warploom.ptx.ir import Function, Module
from warploom.ptx.patience import timed
from warploom.ptx.source import SourceMap

Array = npt.NDArray[Any]

BATCH_THREADS = 1 << 15  # what fits the caches of a core, a few registers at a time
RESIDENT_THREADS = H200.multiprocessors * H200.multiprocessor_threads
PRODUCT_THREADS = 1 << 11  # with wgmma, whose one step would take seconds: a limit is kept to one
BATCH_BYTES = 1 << 28  # shared and local memory of one batch


@dataclass(frozen=True, slots=True)
class Around:
    """What every launch of a kernel finds: its module, and the code that was made of it so far."""

    module: Module
    functions: dict[str, int]  # their addresses
    heap: Heap
    places: SourceMap
    codes: Mapping[str, tuple[Function, Code]]
    static_shared: int
    variables: Mapping[str, int]  # of shared memory
    reserved: int  # bytes of shared memory in front of these

    def forget_executed(self) -> None:
        for _, each in self.codes.values():
            each.executed[:] = [0] * len(each.executed)

    def mix(self) -> dict[str, int]:
        """Thread executions by opcode, of the launch that ran last."""
        mix: Counter[str] = Counter()
        for _, code in self.codes.values():
            for block, times in zip(code.blocks, code.executed, strict=True):
                if times:
                    for name in block.names:
                        mix[name] += times
        return dict(mix)


@dataclass(slots=True)
class Trial:
    """`met` are its races so far, `report` what it did."""

    around: Around
    code: Code
    asked: Asked
    races: RaceDetector | None
    work: Work | None
    excused: Excused
    origins: Origins | None = None
    waits: bool = False  # as many blocks run together as a GPU runs at once
    same_shape: dict[str, Array] = field(default_factory=dict)  # what batches have in common
    skeletons: list[Recorded] = field(default_factory=list)  # of each batch, where it is asked for
    events: dict[Hold, int] = field(default_factory=dict)  # of warps: where, if schedules count
    read_only: ReadOnly | None = field(init=False)
    chance: np.random.Generator | None = field(init=False)
    report: Report = field(init=False)

    def __post_init__(self) -> None:
        self.chance = self.asked.chance
        self.read_only = read_only_of(self.code)
        self.report = Report(
            grid=self.asked.grid, threads=prod(self.asked.block), serving=self.asked.serving
        )

    @property
    def met(self) -> list[Race]:
        """The races so far, as the detector numbers their blocks."""
        return [] if self.races is None else self.races.races

    def named_side(self, side: Side) -> Side:
        """With its block numbered as the grid does."""
        number = in_grid(np.array(side.block), self.asked.grid, self.asked.cluster)
        return replace(side, block=int(number))

    def _named(self, races: list[Race]) -> list[Race]:
        """The races with their memory in words, their blocks numbered as the grid does."""
        stride = owner_stride(self.around.static_shared + self.asked.shared_bytes)

        def place(race: Race) -> str:
            if race.region == SHARED:
                return shared_words(self.around.variables, race.offset % stride)
            if not isinstance(race.region, int):
                return race.place
            region = self.asked.memory.find(race.region)
            return "" if region is None else f"byte {race.offset} of {region.name}"

        return [
            replace(
                race,
                first=race.first if race.cause is Cause.GRID else self.named_side(race.first),
                second=self.named_side(race.second),
                place=place(race),
            )
            for race in races
        ]

    def run(self) -> None:
        """To its end, or to what is wrong with it."""
        self.around.forget_executed()
        output = self.report.output
        with np.errstate(all="ignore"), self.around.places.shown(output):
            self._run()
        self.report.mix = self.around.mix()
        self.report.races = self._named(self.met)
        self.report.rounding = [] if self.races is None else self._named(self.races.rounding)

    def _run(self) -> None:
        asked = self.asked
        blocks, threads = prod(asked.grid), prod(asked.block)
        shared = self.around.static_shared + asked.shared_bytes
        batch_threads = BATCH_THREADS if asked.batch_threads is None else asked.batch_threads
        waits = self.code.may_wait_for_blocks or self._calls_may_wait()
        if asked.batch_threads is None and waits:
            batch_threads, self.waits = RESIDENT_THREADS, True
        elif any("wgmma" in block.names for block in self.code.blocks):
            batch_threads = min(batch_threads, PRODUCT_THREADS)
        batch_threads //= asked.twins
        bytes_per_block = shared + threads * self.code.local_size + 1
        together = min(batch_threads // threads, BATCH_BYTES // bytes_per_block)
        size = prod(asked.cluster)
        if WORKSPACE in asked.symbols:
            together, self.waits = blocks, True  # as was checked, all run at once
        together = max(1, min(together // size, blocks // size)) * size
        for first in range(0, blocks, together):
            self._run_batch(first, min(together, blocks - first), threads, shared)

    def _skeleton(self, first: int, threads: int) -> Skeleton | None:
        if not self.asked.prove:
            return None
        asked = self.asked
        size, cluster = prod(asked.block), prod(asked.cluster)
        strict = asked.model == "ptx"
        far: dict[int, Array] | None = {} if edits_maps(self.code) else None
        meets = any(each.compare == TURNS for each in asked.loops.values())
        workspace = asked.symbols.get(WORKSPACE) if meets else None
        return Skeleton(
            threads, size, cluster, first, loops=asked.loops, strict=strict, far=far,
            workspace=workspace,
        )  # fmt: skip

    def _keep(self, batch: Batch, skeleton: Skeleton) -> None:
        """The skeleton of a batch that has ended; copies that nobody waits for come, too."""
        for barrier in batch.mbarriers.values():
            barrier.land()
        skeleton.left = {skeleton.site(each.label) for each in batch.copies.under_way}
        self.skeletons.append(skeleton.recorded(lambda byte: shared_name(batch, byte, 8)))

    def _calls_may_wait(self) -> bool:
        """Whether a function that the kernel may call reads what other blocks may write."""
        if not any("call" in block.names for block in self.code.blocks):
            return False
        functions = self.around.module.functions
        bodies = [f for f in functions if f.kind == "func" and f.body is not None]
        return any(may_look_far(step) for f in bodies for step in timed(f.instructions()))

    def _run_batch(self, first: int, blocks: int, threads: int, shared: int) -> None:
        last = first + blocks
        blocks *= self.asked.twins
        total = blocks * threads
        if self.races is not None:
            self.races.start(first, blocks)
            self.races.forget(SHARED)
            self.races.confine(SHARED)
        asked = self.asked
        batch = Batch(
            threads=total, block_size=threads, blocks=blocks, first_block=first, grid=asked.grid,
            block=asked.block, memory=asked.memory,
            shared=per_owner("shared memory", blocks, threads, shared, marked=asked.check),
            local=per_owner(
                "local memory", total, 1, self.code.local_size, marked=asked.check and asked.prove
            ),
            symbols=asked.symbols,
            functions=self.around.functions, alive=np.ones(total, bool),
            counters=self.report if asked.counters else None,
            races=self.races, deadline=asked.deadline,
            dynamic_shared=asked.shared_bytes, check=asked.check, chance=self.chance,
            output=self.report.output, cluster=asked.cluster, heap=self.around.heap,
            line_of=self.around.places.words, weak_volatile=asked.weak_volatile,
            variables=self.around.variables,
            resident=last == prod(asked.grid) or self.waits,
            origins=self.origins, dead=self.excused.dead_loads, work=self.work,
            skeleton=self._skeleton(first, total), registers=asked.registers,
            reserved=self.around.reserved, arithmetic=asked.arithmetic, twins=asked.twins,
            floats=asked.floats, read_only=self.read_only if asked.prove else None,
        )  # fmt: skip
        if asked.twins > 1:
            asked.memory.share_out(asked.twins, total)
        begin_reserved(batch.shared, blocks, self.around.reserved)
        if self.same_shape and self.same_shape["threads"].size == total:
            batch.special |= self.same_shape
        if asked.holds is not None:
            batch.holding = Holding(batch, asked.holds, self.events)
        frame = Frame(batch, self.code.new_registers(), 0, 0)
        undefined.begin(frame, self.code.slots, self.code.live[self.code.entry])
        Runner(self.code, frame).run(None)
        if batch.skeleton is not None:
            self._keep(batch, batch.skeleton)
        if batch.flight is not None:
            batch.flight.finish()
        if self.races is not None:
            self.races.end()
        own = ("%ctaid", "%clusterid")  # the only ones that differ from batch to batch
        self.same_shape = {k: v for k, v in batch.special.items() if not k.startswith(own)}
        self.same_shape["threads"] = batch.alive
