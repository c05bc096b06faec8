"""A launch of PTX, counted → what it does, as the time model asks for it (`machine/work.py`).

The launch is run once with counters. Instructions of warps and barriers are those of all blocks,
shared out among them: a warp that diverges executes both sides of a branch. Of one block in the
middle every address is kept, so that sectors that several instructions touch count once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import LimitError
from warploom.machine.coalesce import SECTOR_BYTES, distinct_per_row
from warploom.machine.memory import Memory
from warploom.machine.record import CUDA, H200, Machine
from warploom.machine.report import Report
from warploom.machine.tally import Request, Watched
from warploom.machine.times import Prediction, predicted
from warploom.machine.work import Work
from warploom.ptx import flow
from warploom.ptx.emulate.asked import Asked, triple
from warploom.ptx.emulate.excuse import Excused, Kept, writable_bytes
from warploom.ptx.emulate.trial import Trial
from warploom.ptx.launch import MOST_COPIED, Kernel
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.patience import deadline_of, timed
from warploom.ptx.table import OPCODES
from warploom.ptx.traffic import TrafficRow, live_registers

Array = npt.NDArray[Any]
MOVES = ("mov", "cvta")  # which an assembler leaves out, mostly
_ACCESSES = (MemoryEffect.READS, MemoryEffect.WRITES, MemoryEffect.UPDATES)


@dataclass(frozen=True, slots=True)
class Counted:
    """A launch with what it did: `requests` are those of one block."""

    report: Report
    work: Work
    requests: tuple[Request, ...]
    blocks: int
    warps: int  # of a block


def counted(
    kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], *, shared_bytes: int = 0,
    cluster: Any = None, deadline: float | None = None, machine: Machine = H200,
) -> Counted:  # fmt: skip
    """Runs a kernel; its arguments hold what it wrote then. `machine` serves shared memory."""
    code, memory, symbols = kernel._ready(args)
    asked = Asked(
        triple(grid, "grid"), triple(block, "block"), memory, symbols, shared_bytes, True, False,
        False, True, deadline, None, kernel._cluster(triple(grid, "grid"), cluster), None, False,
        machine.serving,
    )  # fmt: skip
    trial = Trial(kernel._judge.around, code, asked, None, None, Excused())
    blocks, threads = prod(asked.grid), prod(asked.block)
    watched = Watched(blocks // 2)
    trial.report.tallies.watched = watched
    trial.run()
    report = trial.report
    report.counted = True
    found = tuple(watched.requests)
    shared = kernel.static_shared + shared_bytes
    work = _work(kernel, report, watched, blocks, threads, shared, memory)
    return Counted(report, work, found, blocks, -(-threads // CUDA.lanes))


class Foretold:
    """A launch that is counted after it was run, from the memory that it began with; `rows` are
    what it asked of memory."""

    def __init__(self, kernel: Kernel, args: Sequence[Any]) -> None:
        self.kernel, self.args = kernel, args
        memory = kernel._ready(args)[1]
        self.start = Kept(memory) if writable_bytes(memory) <= MOST_COPIED else None

    def time(
        self, machine: Machine, report: Report, rows: Iterable[TrafficRow], seconds: float | None,
        **shape: Any,
    ) -> Prediction | str:  # fmt: skip
        """By the time model; or why there is none."""
        lacking = [each for each in ("rates", "times") if each in machine.missing]
        if lacking:
            return f"the record of the machine '{machine.name}' has no {' and no '.join(lacking)}"
        strange = sorted(_without_times(report, rows))
        if strange:
            return f"the time model has no cost of {', '.join(strange)}"
        if self.start is None:
            return f"the arrays have more than {MOST_COPIED >> 20} MiB"
        if self.kernel.owner.heap.was_used:
            return "the kernel takes memory by malloc"
        self.start.restore()
        try:
            found = counted(
                self.kernel, args=self.args, deadline=deadline_of(seconds), machine=machine, **shape
            )
        except LimitError:
            return "the launch took too long to be counted for the time model"
        return predicted(found.work, machine)


def _without_times(report: Report, rows: Iterable[TrafficRow]) -> set[str]:
    """What was executed of which the time model knows nothing."""
    opcodes = {name for name in report.mix if name == "wgmma" or is_of_images(name)}
    for row in rows:
        if row.requests and row.what == "updates" and row.space != "shared":
            opcodes.add("atomics on global memory")
        if row.requests and row.what == "copies" and ".bulk" in row.instruction:
            opcodes.add("bulk copies")
    return opcodes


def _work(
    kernel: Kernel, report: Report, watched: Watched, blocks: int, threads: int, shared: int,
    memory: Memory,
) -> Work:  # fmt: skip
    mix = {name: times / blocks for name, times in watched.executed.items()}
    requests = tuple(watched.requests)
    told = report.tallies.memory.items()

    def asked(space: str, figure: str) -> float:
        return float(sum(getattr(e, figure) for (_, of), e in told if of == space)) / blocks

    by_kind: dict[str, float] = defaultdict(float)
    for name, times in mix.items():
        by_kind[_kind_of(name)] += times
    outside = [each for each in requests if each.space == "global"]
    touched = np.unique(np.concatenate([_sectors(each) for each in outside] or [np.zeros(0)]))
    loaded = [each for each in outside if not each.write]
    read = np.unique(np.concatenate([_sectors(each) for each in loaded] or [np.zeros(0)]))
    # L1 keeps what is loaded; what is stored it passes on.
    stored = [each for each in outside if each.write]
    sectors = float(read.size + sum(map(_sent, stored)))
    missed = read.size / max(1, sum(map(_sent, loaded)))
    asked_lines = missed * sum(map(lines_of, loaded)) + sum(map(lines_of, stored))
    instructions = sum(mix.values())
    warps = -(-threads // CUDA.lanes)
    return Work(
        blocks=blocks, threads=threads, registers=live_registers(kernel), shared_bytes=shared,
        arithmetic=by_kind["other"], special=by_kind["special"], moves=by_kind["move"],
        shuffles=by_kind["shuffle"], products=by_kind["product"],
        barriers=report.barriers / blocks, longest=instructions / warps,
        requests=asked("global", "requests"), lines=float(sum(map(lines_of, outside))),
        sectors=sectors, shared_requests=asked("shared", "requests"),
        wavefronts=asked("shared", "wavefronts"),
        global_rounds=_rounds(kernel, requests, "global", warps),
        shared_rounds=_rounds(kernel, requests, "shared", warps),
        touched=float(min(blocks * touched.size * SECTOR_BYTES, _most(memory))),
        fetched=blocks * sectors * SECTOR_BYTES, asked=blocks * asked_lines,
    )  # fmt: skip


def is_of_images(name: str) -> bool:
    """Whether an opcode asks of textures or surfaces."""
    return any(each.startswith("[h") for form in OPCODES[name].forms for each in form.operands)


@cache
def _kind_of(name: str) -> str:
    """For what the time model has a cost of its own, by what the table says of an opcode."""
    record = OPCODES[name]
    words = {word for form in record.forms for slot in form.slots for word in slot.words}
    ways = {form.control for form in record.forms}
    if name.endswith("mma"):
        return "product"
    if ways & {Control.BARRIER, Control.LEAVE}:
        return "no time"
    if Control.LANES in ways:
        return "shuffle"
    if record.memory in _ACCESSES:
        return "access"
    if "approx" in words:  # functions that the machine has a unit of their own for
        return "special"
    return "move" if name in MOVES else "other"


def _most(memory: Memory) -> int:
    """Bytes of global memory that there are."""
    return sum(each.data.nbytes for each in memory.regions if each.space == "global")


def _places(each: Request, unit: int) -> Array:
    """Units of memory that each lane touches: one row per warp."""
    steps = np.arange(0, max(each.width, 1), unit)
    return np.asarray(((each.rows[:, :, None] + steps) // unit).reshape(len(each.rows), -1))


def _sectors(each: Request) -> Array:
    spread = _places(each, SECTOR_BYTES)
    return np.asarray(spread[np.repeat(each.active, spread.shape[1] // each.rows.shape[1], axis=1)])


def lines_of(each: Request) -> int:
    """Lines of the cache that a request takes, each for itself."""
    return int(distinct_per_row(each.rows // CUDA.line_bytes, each.active).sum())


def _sent(each: Request) -> int:
    """Sectors of each of its requests, one by one."""
    places = _places(each, SECTOR_BYTES)
    active = np.repeat(each.active, places.shape[1] // each.rows.shape[1], axis=1)
    return int(distinct_per_row(places, active).sum())


def _rounds(kernel: Kernel, requests: tuple[Request, ...], space: str, warps: int) -> float:
    """How often a warp waits for what it loads: loads of one basic block wait together."""
    times: dict[Hashable, float] = defaultdict(float)
    for each in requests:
        if each.space == space and not each.write:
            times[each.label] += len(each.rows) / warps
    graph = flow.build(kernel.owner.module, kernel.function)
    total = 0.0
    for block in timed(graph.blocks):
        labels = [kernel.owner.module.span(step) for step in graph.instructions(block)]
        total += max((times[each] for each in labels if each in times), default=0.0)
    return total
