"""How fast a machine is at most: what it does in a nanosecond, how long a result takes at least.

These are for lower bounds on time: rates are peaks at the highest clock, latencies the shortest.
Work is counted by thread: an instruction of a warp is one for each of its lanes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from warploom.errors import ParseError, UnsupportedError, one_of


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


RESOURCES = tuple(each.name for each in fields(Pressure))


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one instruction: cycles until its result can be used, issue slots, arithmetic units."""

    latency: float
    issue: float = 1.0
    alu: float = 1.0


@dataclass(frozen=True, slots=True)
class Rates:
    """`device` is what the whole machine does in a nanosecond, `processor` one of its processors,
    `thread` a single thread. `turn` is the cost of a turn of a loop. `overlap` is how many turns of
    a loop a compiler may run into each other, and `hoists` says that it may do once what a loop
    would only repeat, also where there are loops inside of it of up to `unrolled` turns in all,
    which it may undo first (NVRTC 13 does so with 256 turns of one instruction). `cached` says that
    an L1 may serve global loads; without one, each line of `line_bytes` that a warp touches takes
    an access of all its lanes. `tensor` is how many products of tf32 tensor cores do, at most, in
    the time in which arithmetic units do one."""

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
    turn: Cost
    overlap: int = 1
    hoists: bool = True
    unrolled: int = 256
    cached: bool = True
    line_bytes: int | None = None
    tensor: float = 8.0

    def cost(self, op: str, is_float: bool = True) -> Cost:
        """Of an operator; what is not listed costs no more than an addition."""
        return self.instructions.get(op if is_float else f"integer {op}", self.instructions["+"])

    def nanoseconds(self, cycles: float) -> float:
        return cycles / self.clock


def _scaled(device: Pressure, processors: int) -> Pressure:
    """The share of one processor; memory is there for all of them."""
    return replace(device.times(1 / processors), dram=device.dram)


# Quadro K4000, as its authors' system described it (May 2018).
_K4000 = Pressure(
    issue=829.952, alu=622.464, access=103.744, lines=1.30875, l2_read=3.25358,
    l2_store=3.24025, shared=103.744 * 8, dram=134.784,
)  # fmt: skip
# fmt: off
K4000 = Rates(
    name="k4000",
    clock=0.8105,
    processors=4,
    processor_blocks=16,
    processor_threads=2048,
    processor_shared=48 << 10,
    processor_registers=65536,
    l2_bytes=384 << 10,
    device=_K4000,
    processor=_scaled(_K4000, 4),
    thread=Pressure(
        issue=1.621, alu=4.863, access=0.8105, lines=_K4000.lines / 4,
        l2_read=_K4000.l2_read / 4, l2_store=_K4000.l2_store / 4, shared=0.8105 * 16,
        dram=_K4000.dram,
    ),
    load_latency=167,
    shared_latency=24,
    instructions={
        "+": Cost(10), "*": Cost(10), "fma": Cost(10), "/": Cost(544, 51, 51),
        "integer /": Cost(261, 26, 26),
    },
    turn=Cost(52, 3, 2),
    hoists=False,
    cached=False,
    line_bytes=128,
)
# fmt: on

# H200: sizes as its driver reports them, rates of 4 warps an SM and cycle, 128 bytes of shared
# memory, 64 bytes from L2, at 1.98 GHz; 4.8 TB/s. Latencies are below all that was measured.
_SM = Pressure(issue=128, alu=128, access=32, lines=1, l2_read=2, l2_store=2, shared=128)
H200 = Rates(
    name="h200",
    clock=1.98,
    processors=132,
    processor_blocks=32,
    processor_threads=2048,
    processor_shared=228 << 10,
    processor_registers=65536,
    l2_bytes=60 << 20,
    device=replace(_SM.times(132 * 1.98), dram=4800.0),
    processor=replace(_SM.times(1.98), dram=4800.0),
    thread=Pressure(1.98, 1.98, 1.98, 1.98, 2 * 1.98, 2 * 1.98, 16 * 1.98, 4800.0),
    load_latency=28,
    shared_latency=20,
    instructions={"+": Cost(4), "*": Cost(4), "fma": Cost(4), "/": Cost(20, 4, 4)},
    turn=Cost(1, 1, 1),
    overlap=16,
)  # fmt: skip

RATES: dict[str, Rates] = {rates.name: rates for rates in (K4000, H200)}


def rates_of(name: str) -> Rates:
    """By name, or from the file that bench/machine/characterise_device.py wrote."""
    if name.endswith(".json"):
        return _from_file(Path(name))
    if name not in RATES:
        raise UnsupportedError(
            f"no rates are known for a machine called {name!r}",
            advice=f"{one_of(name, RATES)}; bench/machine/characterise_device.py measures others",
        )
    return RATES[name]


def rates_record(rates: Rates) -> dict[str, Any]:
    return asdict(rates)


def _from_file(path: Path) -> Rates:
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ParseError(f"cannot read the rates in '{path}': {error}") from None
    known = {each.name for each in fields(Rates)}
    try:
        made = {key: value for key, value in record.items() if key in known}
        for name in ("device", "processor", "thread"):
            made[name] = Pressure(**made[name])
        made["instructions"] = {op: Cost(**each) for op, each in made["instructions"].items()}
        return Rates(**(made | {"turn": Cost(**made["turn"])}))
    except (TypeError, KeyError, AttributeError) as error:
        raise ParseError(f"'{path}' is no record of rates: {error}") from None
