"""A trace as the detector is given it: directly, as a PTX kernel, or as a SIMT kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from bench.common.machine.traces import ATOMIC, READ, WRITE, Meet, Touch, Trace
from bench.common.narrowed import of

from warploom import ptx
from warploom.errors import DeviceError, Span
from warploom.index.ir import Expr, lift, select
from warploom.kernel.build import Builder
from warploom.kernel.dtype import i32
from warploom.kernel.evaluate import run
from warploom.machine.race import RaceDetector
from warploom.machine.semantics import Kind

KINDS = {READ: Kind.READ, WRITE: Kind.WRITE, ATOMIC: Kind.ATOMIC}
Pairs = set[frozenset[int]]

# -- directly -----------------------------------------------------------------------------------


def direct(trace: Trace, *, partial: bool, every: bool, batch: int = 2) -> Pairs:
    """Pairs of labels; `batch` blocks run together, one batch after the other."""
    detector = RaceDetector(
        trace.blocks, trace.size, trace.lanes, len(trace.events), partial=partial, every=every
    )  # fmt: skip
    for first in range(0, trace.blocks, batch):
        blocks = min(batch, trace.blocks - first)
        detector.start(first, blocks)
        inside = range(first * trace.size, (first + blocks) * trace.size)
        for event in trace.events:
            if isinstance(event, Touch):
                _touch(detector, event, inside, 4 * trace.words)
            elif event.arrive[0] in inside:
                _meet(detector, event, inside.start, trace.size)
    return {
        frozenset({of(int, race.first.label), of(int, race.second.label)})
        for race in detector.races
    }


def _touch(detector: RaceDetector, event: Touch, inside: range, size: int) -> None:
    pairs = zip(event.threads, event.places, strict=True)
    here = [(thread, place) for thread, place in pairs if thread in inside]
    threads = np.array([thread for thread, _ in here], np.int64) - inside.start
    places = np.array([place for _, place in here], np.int64)
    detector.access("words", size, threads, places, event.width, KINDS[event.kind], event.label)


def _meet(detector: RaceDetector, event: Meet, first: int, size: int) -> None:
    arrive, wait = np.array(event.arrive) - first, np.array(event.wait, np.int64) - first
    if event.kind == "block":
        detector.block_barrier(arrive[:1] // size)
    elif event.kind == "warp":
        detector.warp_barrier(arrive[:1])
    elif event.kind == "lanes":
        detector.vector.meet(arrive, np.zeros_like(arrive))
    else:
        clock = detector.vector.new_clock(1)
        detector.vector.release(arrive, clock, np.zeros_like(arrive))
        detector.vector.acquire(wait, clock, np.zeros_like(wait))


# -- as PTX -------------------------------------------------------------------------------------

WARP = 32
HEADER = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{ .reg .pred %p, %q; .reg .b32 %me, %t, %n, %c, %r<3>; .reg .b64 %rd<3>, %d; .shared .align 8 .b8 tile[16];
mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %me, %c, %n, %t;
ld.param.u64 %rd0, [a]; mov.u64 %d, 7; mov.u32 %r1, 1; mov.u32 %r2, 2;
"""


class PtxText:
    """The kernel of a trace: a block has whole warps, of which the trace's threads are some lanes.

    In line, every thread runs one text and predicates say who does what; apart, every thread of
    the trace has its own text behind a branch, and meets the others at barriers only.
    """

    def __init__(self, trace: Trace, shared: bool) -> None:
        self.trace = trace
        self.warps = -(-trace.size // trace.lanes)
        self.base, self.space = ("tile", "shared") if shared else ("%rd0", "global")
        self.lines = HEADER.splitlines()
        self.labels: dict[int, int] = {}  # line to label
        self.count = 0

    def where(self, thread: int) -> int:
        """The thread of the launch that stands for one of the trace."""
        block, inside = divmod(thread, self.trace.size)
        warp, lane = divmod(inside, self.trace.lanes)
        return (block * self.warps + warp) * WARP + lane

    def in_line(self) -> str:
        for number, event in enumerate(self.trace.events):
            if isinstance(event, Touch):
                self.lines.append("setp.ne.u32 %q, 0, 0;")
                for thread, place in zip(event.threads, event.places, strict=True):
                    self.lines.append(f"setp.eq.u32 %p, %me, {self.where(thread)};")
                    self.lines.append(
                        f"@%p mov.u64 %rd1, {self.base}; @%p add.u64 %rd1, %rd1, {place};"
                    )
                    self.lines.append("or.pred %q, %q, %p;")
                self.access(event, "@%q ", "%rd1")
            else:
                self.meet(event, number)
        return self.text()

    def apart(self) -> str:
        threads = range(self.trace.blocks * self.trace.size)
        for thread in threads:
            self.lines.append(f"setp.eq.u32 %p, %me, {self.where(thread)}; @%p bra T{thread};")
        self.idle()
        for thread in threads:
            self.lines.append(f"T{thread}:")
            for number, event in enumerate(self.trace.events):
                if isinstance(event, Touch) and thread in event.threads:
                    place = event.places[event.threads.index(thread)]
                    self.lines.append(f"mov.u64 %rd1, {self.base}; add.u64 %rd1, %rd1, {place};")
                    self.access(event, "", "%rd1")
                elif isinstance(event, Meet) and thread in event.arrive:
                    self.lines.append(self.barrier(event, number, thread in event.wait))
            self.lines.append("ret;")
        return self.text()

    def idle(self) -> None:
        """What the threads do that stand for none of the trace: they come to the barriers."""
        for number, event in enumerate(self.trace.events):
            if isinstance(event, Meet) and event.kind != "lanes":
                self.meet(event, number)
        self.lines.append("ret;")

    def access(self, event: Touch, guard: str, base: str) -> None:
        kind = {1: "u8", 2: "u16", 4: "u32", 8: "v2.u32"}[event.width]
        value = "{%r1, %r2}" if event.width == 8 else "%r1"
        match event.kind:
            case "read":
                line = f"{guard}ld.{self.space}.{kind} {value}, [{base}];"
            case "write":
                line = f"{guard}st.{self.space}.{kind} [{base}], {value};"
            case _:
                kind, value = ("u64", "%d") if event.width == 8 else ("u32", "%r1")
                line = f"{guard}atom.{self.space}.add.{kind} {value}, [{base}], {value};"
        self.lines.append(line)
        self.labels[len(self.lines)] = event.label

    def meet(self, event: Meet, number: int) -> None:
        """A barrier, and who comes to it: a block, a warp, lanes or some warps."""
        self.count += 1
        end = f"E{self.count}"
        block, first = divmod(self.where(event.arrive[0]), self.warps * WARP)
        self.lines.append(f"setp.ne.u32 %p, %c, {block}; @%p bra {end};")
        if event.kind in ("warp", "lanes"):
            self.lines.append(
                f"shr.u32 %r0, %t, 5; setp.ne.u32 %p, %r0, {first // WARP}; @%p bra {end};"
            )
        if event.kind == "lanes":
            self.lines.append(
                f"and.b32 %r0, %t, 31; shr.u32 %r0, {self.mask(event)}, %r0; and.b32 %r0, %r0, 1; setp.eq.u32 %p, %r0, 0;"
            )
            self.lines.append(f"@!%p {self.barrier(event, number, True)}")
        elif event.kind == "some":
            for warp in self.warps_of(event.arrive):
                waits = warp in self.warps_of(event.wait)
                self.lines.append(
                    f"shr.u32 %r0, %t, 5; setp.ne.u32 %p, %r0, {warp}; @%p bra {end}x{warp};"
                )
                self.lines += [self.barrier(event, number, waits), f"{end}x{warp}:"]
        else:
            self.lines.append(self.barrier(event, number, True))
        self.lines.append(f"{end}:")

    def warps_of(self, threads: tuple[int, ...]) -> list[int]:
        return sorted({self.where(thread) // WARP % self.warps for thread in threads})

    def mask(self, event: Meet) -> int:
        return sum(1 << self.where(thread) % WARP for thread in event.arrive)

    def barrier(self, event: Meet, number: int, waits: bool) -> str:
        match event.kind:
            case "block":
                return "barrier.sync 0;"
            case "warp":
                return "bar.warp.sync -1;"
            case "lanes":
                return f"bar.warp.sync {self.mask(event):#x};"
            case _:
                word = "sync" if waits else "arrive"
                return f"barrier.{word} {number + 1}, {WARP * len(self.warps_of(event.arrive))};"

    def text(self) -> str:
        return "\n".join([*self.lines, "ret;", "}"])


def through_ptx(trace: Trace, seed: int, *, every: bool) -> Pairs:
    """Pairs of labels; where the first race ends the launch, the one pair of it."""
    shared = trace.blocks == 1 and seed % 2 == 0
    writer = PtxText(trace, shared)
    text = writer.apart() if seed // 2 % 2 else writer.in_line()
    kernel = ptx.load(text, "trace.ptx").kernel("k")
    array = np.zeros(16, np.uint8)
    threads = writer.warps * WARP
    batch_threads = 1 if seed % 5 == 0 else 1 << 14
    options: dict[str, Any] = {"check": False, "batch_threads": batch_threads}
    if every:
        report = kernel.launch(trace.blocks, threads, [array], races="all", **options)
        return {
            frozenset(
                writer.labels[of(Span, side.label).line] for side in (race.first, race.second)
            )
            for race in report.races
        }
    try:
        kernel.launch(trace.blocks, threads, [array], races=True, **options)
    except DeviceError as error:
        found = error
    else:
        return set()
    assert "data race" in found.message
    assert found.span is not None
    other = int(found.message.split("(line ")[1].split(")")[0])
    return {frozenset({writer.labels[found.span.line], writer.labels[other]})}


# -- as a SIMT kernel ---------------------------------------------------------------------------


def through_kernel(trace: Trace, seed: int) -> str:
    """What the evaluator says of a race, or nothing."""
    k = Builder("trace", block=trace.size, warp_size=trace.lanes)
    y = k.array("y", i32, 4)
    k.grid(trace.blocks)
    memory = y
    if trace.blocks == 1 and seed % 2:
        memory = k.shared("s", i32, 4)
        for cell in range(4):
            memory.put(cell, 0, when=k.thread.eq(0))
        k.barrier()
    r = k.registers("r", i32, 2, 0)
    me = k.let("me", k.block_x * trace.size + k.thread)
    for event in trace.events:
        if isinstance(event, Touch):
            width = event.width // 4
            here: Expr = lift(0)
            index: Expr = lift(0)
            for thread, place in zip(event.threads, event.places, strict=True):
                here = select(me.eq(thread), 1, here)
                index = select(me.eq(thread), place // 4, index)
            if event.kind == READ:
                k.set(r[0], memory.at(index, when=here.ne(0), width=width))
            else:
                memory.put(index, r[0], when=here.ne(0), width=width)
        else:
            block, inside = divmod(event.arrive[0], trace.size)
            whose = k.block_x.eq(block)
            if event.kind == "warp":
                whose = whose.and_(k.warp.eq(inside // trace.lanes))
            with k.when(whose):
                k.barrier("block" if event.kind == "block" else "warp")
    try:
        run(k.raw(), [np.zeros(4, np.int32)])
    except DeviceError as error:
        return error.message
    return ""
