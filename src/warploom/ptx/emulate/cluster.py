"""Clusters: blocks that reach each other's shared memory, and meet at a barrier of their own.

An address in the shared memory of block r of the cluster is its place there with r + 1 above bit
`REMOTE`; an address without it is the block's own. `barrier.cluster.arrive` is counted when it is
reached; `wait` lets a thread go on once all threads of the cluster that are still there arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError, Span, SynchronisationError
from warploom.machine.knowledge import Knowledge, joined
from warploom.machine.semantics import Scope
from warploom.ptx.emulate.access import LOCAL_PART, REMOTE
from warploom.ptx.emulate.barrier import Barrier, Fail, Going
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import NOTHING, Batch, Frame
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.skeleton import RELAXED, Act, Event, Skeleton
from warploom.ptx.ir import Instruction
from warploom.ptx.types import DTYPES, type_of

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
_NOT_COME = -1
DIVIDED = (
    "lanes of one warp come to the cluster's barrier by different instructions, which only "
    "barrier.cluster without .aligned allows"
)
ENDED = "by the manual all threads of a warp come to what is .aligned, and some have ended"
LEFT = "lanes that ended have come to every barrier.cluster, as it is on GPUs"


@dataclass(slots=True)
class ClusterPhases:
    """The phase of each cluster's barrier in one batch, and which threads arrived in which."""

    phase: Array  # by cluster
    came: Array  # by thread: the phase that it arrived in and has not waited for
    by: Array  # … and by which aligned instruction; 0 for one that is not
    arrivals: list[tuple[Instruction, Span]] = field(default_factory=list)  # aligned ones
    gathered: dict[int, Knowledge | None] = field(default_factory=dict)  # of those that arrived
    known: dict[int, Knowledge | None] = field(default_factory=dict)  # … in the phase before

    @staticmethod
    def of(batch: Batch) -> ClusterPhases:
        found = batch.special_state.get("clusters")
        if found is None:
            clusters = np.zeros(batch.blocks // batch.cluster_size, np.int64)
            came, by = np.full(batch.threads, _NOT_COME), np.zeros(batch.threads, np.int64)
            found = ClusterPhases(clusters, came, by)
            batch.special_state["clusters"] = found
        assert isinstance(found, ClusterPhases)
        return found

    def arrive(self, f: Frame, releases: bool, ins: Instruction, span: Span) -> None:
        cluster_of = _cluster_of(f.batch)
        threads = f.index
        self.came[threads] = self.phase[cluster_of[threads]]
        self.by[threads] = self._number(ins, span)
        if f.batch.skeleton is not None:
            how = 0 if releases else RELAXED
            self._note(f.batch.skeleton, Act.COME, threads, cluster_of, 0, span, how)
        races = f.batch.races
        if races is not None:
            if releases:
                races.vector.advance(threads)
            for thread in threads.tolist():
                cluster = int(cluster_of[thread])
                told = races.published(thread, Scope.CLUSTER, releases)
                self.gathered[cluster] = joined(self.gathered.get(cluster), told)
        self.settle(f.batch)

    def _number(self, ins: Instruction, span: Span) -> int:
        """The number of an aligned arrival, from 1 on."""
        if "aligned" not in ins.modifiers:
            return 0
        known = [each.start for each, _ in self.arrivals]
        if ins.start not in known:
            self.arrivals.append((ins, span))
            return len(self.arrivals)
        return 1 + known.index(ins.start)

    def _note(
        self, skeleton: Skeleton, act: Act, threads: Array, cluster_of: Array, late: int,
        span: Span, how: int = 0,
    ) -> None:  # fmt: skip
        for cluster in np.unique(cluster_of[threads]).tolist():
            mine = threads[cluster_of[threads] == cluster]
            phase, site = int(self.phase[cluster]) - late, skeleton.site(span)
            skeleton.note(mine, Event(act, ("cluster", cluster), phase, site=site, how=how))

    def passed(self, batch: Batch, threads: Array, span: Span) -> None:
        """For the skeleton: these threads have waited for the phase before this one."""
        if batch.skeleton is not None:
            self._note(batch.skeleton, Act.GO, threads, _cluster_of(batch), 1, span)

    def settle(self, batch: Batch) -> None:
        """The next phase begins where all threads that are still there have arrived."""
        cluster_of = _cluster_of(batch)
        here = self.came == self.phase[cluster_of]
        missing = np.bincount(cluster_of, batch.alive & ~here, self.phase.size) > 0
        some = np.bincount(cluster_of, here, self.phase.size) > 0
        for cluster in np.flatnonzero(some & ~missing).tolist():
            self._refuse_divided(batch, here & (cluster_of == cluster))
            self.phase[cluster] += 1
            known = self.known[cluster] = self.gathered.pop(cluster, None)
            if known is not None:
                known.flat()  # once, not by each that waits

    def _refuse_divided(self, batch: Batch, here: Mask) -> None:
        """Lanes of one warp that arrived by different instructions, of which one is aligned."""
        starts, number = batch.warp_starts, self.by
        low = np.minimum.reduceat(np.where(here, number, 1 << 62), starts)
        high = np.maximum.reduceat(np.where(here, number, -1), starts)
        for warp in np.flatnonzero((low < high) & (high > 0)).tolist():
            thread = int(starts[warp]) + int(here[starts[warp] :].argmax())
            ins, span = self.arrivals[int(high[warp]) - 1]
            where = batch.where(thread)
            raise SynchronisationError(f"{ins.name}: {DIVIDED}; {where}", span)
        every = (high > 0)[batch.warp_of]
        if batch.skeleton is not None and (every & ~here).any():
            span = self.arrivals[int(high[high > 0][0]) - 1][1]
            batch.skeleton.by_practice("aligned", ENDED, span, LEFT)


def _cluster_of(batch: Batch) -> Array:
    found: Array = batch.block_of // batch.cluster_size
    return found


class ClusterWaits:
    """The threads of a function that wait for their cluster, by place in the code."""

    def __init__(self, batch: Batch, fail: Fail) -> None:
        self.batch = batch
        self.fail = fail
        self.masks: dict[int, Mask] = {}
        self._barriers: dict[int, Barrier] = {}

    def arrive(self, f: Frame, rank: int, barrier: Barrier, mask: Mask | None) -> Going:
        f.activate(mask, NOTHING)
        phases = ClusterPhases.of(self.batch)
        alone = f.full_mask() & (phases.came == _NOT_COME)
        if alone.any():
            message = "waits for the cluster without having arrived"
            raise self.fail(barrier.instruction, message, int(alone.argmax()))
        self.masks[rank] = f.full_mask() | self.masks.get(rank, False)
        self._barriers[rank] = barrier
        return self._ready()

    def _ready(self) -> Going:
        phases = ClusterPhases.of(self.batch)
        cluster_of = _cluster_of(self.batch)
        passed = phases.came < phases.phase[cluster_of]
        going: Going = []
        for rank, mask in list(self.masks.items()):
            ready = mask & passed
            if self._barriers[rank].aligned:
                ready &= self._whole(rank, mask)
            if not ready.any():
                continue
            going.append((rank, ready))
            self.masks[rank] = mask & ~ready
            if not self.masks[rank].any():
                del self.masks[rank]
            phases.came[ready] = _NOT_COME
            span = self._barriers[rank].span
            assert span is not None
            phases.passed(self.batch, np.flatnonzero(ready), span)
            self._learn(phases, np.flatnonzero(ready), cluster_of)
        return going

    def _whole(self, rank: int, mask: Mask) -> Mask:
        """Threads whose warps have come as a whole; it is refused if some come elsewhere."""
        starts, warp_of = self.batch.warp_starts, self.batch.warp_of
        others = np.logical_or.reduce([m for r, m in self.masks.items() if r != rank] or [~mask])
        divided = np.logical_or.reduceat(mask, starts) & np.logical_or.reduceat(
            others & (len(self.masks) > 1), starts
        )
        if divided.any():
            thread = int(starts[int(divided.argmax())])
            raise self.fail(self._barriers[rank].instruction, DIVIDED, thread)
        lacking = np.logical_or.reduceat(self.batch.alive & ~mask, starts)
        return ~lacking[warp_of]

    def _learn(self, phases: ClusterPhases, threads: Array, cluster_of: Array) -> None:
        if self.batch.races is None:
            return
        for cluster in np.unique(cluster_of[threads]).tolist():
            known = phases.known.get(cluster)
            self.batch.races.vector.learn(threads[cluster_of[threads] == cluster], known)

    def settle(self) -> Going:
        """Who may go on since others left the kernel."""
        if not self.masks:
            return []
        ClusterPhases.of(self.batch).settle(self.batch)
        return self._ready()

    def stuck(self) -> DeviceError | None:
        for rank, mask in self.masks.items():
            message = "not all threads of the cluster come to its barrier"
            if self._barriers[rank].aligned and not self._whole(rank, mask)[mask].all():
                message = "not all lanes of the warp come here"
            return self.fail(self._barriers[rank].instruction, message, int(mask.argmax()))
        return None


def arrive(ctx: Context, ins: Instruction) -> Step:
    releases = "relaxed" not in ins.modifiers
    span = ctx.module.span(ins)

    def step(f: Frame) -> None:
        phases = ClusterPhases.of(f.batch)
        again = phases.came[f.index] != _NOT_COME
        if again.any():
            where = f.batch.where(int(f.index[int(again.argmax())]))
            message = f"{ins.name}: arrives again without having waited; {where}"
            raise SynchronisationError(message, span)
        phases.arrive(f, releases, ins, span)

    return step


# -- addresses ------------------------------------------------------------------------------------


def mapa(ctx: Context, ins: Instruction) -> Step:
    """An address of the block's own shared memory, in that of block b of the cluster."""
    kind = type_of(ins)
    store = ctx.write(ins.operands[0], kind)
    a, b = ctx.read(ins.operands[1], kind), ctx.read(ins.operands[2], "u32")
    span = ctx.module.span(ins)
    dtype = DTYPES[kind].type

    def step(f: Frame) -> None:
        rank = np.broadcast_to(f.active_part(b(f)), (f.count,))
        if (rank >= f.batch.cluster_size).any():
            at = int((rank >= f.batch.cluster_size).argmax())
            there = f"there is no block {int(rank[at])} in a cluster of {f.batch.cluster_size}"
            where = f.batch.where(int(f.index[at]))
            raise DeviceError(f"{ins.name}: {there}; {where}", span)
        own = a(f)
        above = (f.spread(rank).astype(DTYPES[kind]) + dtype(1)) << dtype(REMOTE)
        cleared = own & ~dtype(0xFF << REMOTE)
        store(f, (cleared | above).astype(DTYPES[kind]))

    return step


def getctarank(ctx: Context, ins: Instruction) -> Step:
    store = ctx.write(ins.operands[0], "u32")
    a = ctx.read(ins.operands[1], type_of(ins))

    def step(f: Frame) -> None:
        address = np.broadcast_to(f.active_part(a(f)), (f.count,)).astype(np.uint64)
        above = (address & np.uint64(LOCAL_PART)) >> np.uint64(REMOTE)
        own = f.batch.block_of[f.index] % f.batch.cluster_size
        rank = np.where(above > 0, above.astype(np.int64) - 1, own)
        store(f, f.spread(rank.astype(np.uint32)))

    return step


TABLE: dict[str, Compile] = {"mapa": mapa, "getctarank": getctarank}
