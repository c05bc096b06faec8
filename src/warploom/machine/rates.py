"""How fast a machine is at most: what it does in a nanosecond, how long a result takes at least.

These are for lower bounds on time: rates are peaks at the highest clock, latencies the shortest.
Work is counted by thread: an instruction of a warp is one for each of its lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Pressure:
    """What is used up: instructions issued and computed, accesses, lines and sectors (of 32 bytes)
    from L2 to processors and sectors back, bytes of shared memory, bytes of global memory; or how
    much of each goes through in a nanosecond."""

    issue: float = 0.0
    alu: float = 0.0
    access: float = 0.0
    lines: float = 0.0
    l2_read: float = 0.0
    l2_store: float = 0.0
    shared: float = 0.0
    dram: float = 0.0

    def times(self, factor: float) -> Pressure:
        return Pressure(*(getattr(self, each.name) * factor for each in fields(self)))


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one instruction: cycles until its result is there, issue slots, arithmetic units."""

    latency: float
    issue: float = 1.0
    alu: float = 1.0


@dataclass(frozen=True, slots=True)
class Rates:
    """`device` is what the whole machine does in a nanosecond, `processor` one of its processors,
    `thread` a single thread. `iteration` is the cost of an iteration of a loop. `overlap` is how
    many iterations of a loop a compiler may run into each other, and `hoists` says that it may do
    once what a loop would only repeat, also where there are loops inside of it of up to `unrolled`
    iterations in all, which it may undo first (NVRTC 13 does so with 256 iterations of one
    instruction). `cached` says that an L1 may serve global loads; without one, each line of
    `line_bytes` that a warp touches takes an access of all its lanes. `tensor` is how many products
    of tf32 tensor cores do, at most, in the time in which arithmetic units do one."""

    name: str
    clock: float  # GHz
    processors: int
    processor_blocks: int
    processor_threads: int
    processor_shared: int
    processor_registers: int
    l2_bytes: int
    device: Pressure
    processor: Pressure
    thread: Pressure
    load_latency: float
    shared_latency: float
    instructions: Mapping[str, Cost]
    iteration: Cost
    overlap: int = 1
    hoists: bool = True
    unrolled: int = 256
    cached: bool = True
    line_bytes: int | None = None
    tensor: float = 8.0

    def cost(self, op: str, is_float: bool = True) -> Cost:
        """The cost of an operator; one that is not listed costs no more than an addition."""
        return self.instructions.get(op if is_float else f"integer {op}", self.instructions["+"])

    def nanoseconds(self, cycles: float) -> float:
        return cycles / self.clock


def rates_record(rates: Rates) -> dict[str, Any]:
    return asdict(rates)
