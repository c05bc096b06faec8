"""How long a launch takes: a prediction from what it does, beside the bounds that none can beat.

A processor has four schedulers, one L1 and one bank of shared memory for all blocks that it runs.
What these have to do for a block is its *need*; what its threads wait for, one after another, is
its *wait*. L2, memory and what gives out blocks serve all processors. Whichever of all these has
most to do is busy nearly always. Blocks that are there at once hide each other's waits: while one
waits the others are served, and one alone waits by itself. A launch takes a while besides.

Every coefficient of `Times` has a meaning, and is fitted to measured times of many kernels by
`bench/loopnest/times.py`: half of them there; the others judge it. It ranks, and says what limits;
it proves nothing. All fields of `Work` may be arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.machine.work import Work

if TYPE_CHECKING:
    from warploom.machine.record import Machine

SCHEDULERS = 4  # of a processor
MOST_REGISTERS = 255  # of a thread
GRAIN = 8  # registers of a thread are given by so many
RESERVED_BYTES = 1024  # of shared memory, by each block


@dataclass(frozen=True, slots=True)
class Times:
    """Cycles, unless it says otherwise, at `clock` (GHz). Of an instruction of a warp: `access`
    (to memory), `move` (of a register), `special` (functions, divisions), `shuffle`, `product` (of
    a tensor core), `iteration` (of a loop that stays one). Of L1: `line` and `sector` that pass.
    Of shared memory: `wavefront`. Waits: `begin` and end of a block, `global_wait`, `memory_wait`
    more where L2 does not keep what is loaded, `shared_wait`, `barrier_wait`, and `dependent` for
    each instruction of the longest warp. `own_registers` are those of any thread, `spill` what
    lacking ones cost, of the need.

    Of the whole machine, in nanoseconds: `launch`, and `block` until the next one is given out.
    `memory` and `l2` are bytes in a nanosecond, `asked` the lines that L2 is asked for in one. As
    many more bytes of memory as `run` go for each piece that is apart from others, and as `stream`
    for each request to store what nobody keeps.

    Needs of a processor that are done beside each other, those of L2 and memory, all of these, and
    waits with what others do then, take together the sums of their powers `together`, `beneath`,
    `beside` and `hidden`: 1 is one after another."""

    name: str
    clock: float
    launch: float
    block: float
    memory: float
    run: float
    stream: float
    l2: float
    asked: float
    access: float
    move: float
    special: float
    shuffle: float
    product: float
    iteration: float
    line: float
    sector: float
    wavefront: float
    begin: float
    global_wait: float
    memory_wait: float
    shared_wait: float
    barrier_wait: float
    dependent: float
    own_registers: float
    spill: float
    together: float
    beneath: float
    beside: float
    hidden: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A time, and the parts that it comes of: each as if all else cost nothing."""

    nanoseconds: Any
    parts: dict[str, Any]
    times: str  # of which machine

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max(self.parts, key=lambda name: float(self.parts[name]))

    def record(self) -> dict[str, Any]:
        """As plain data; `times` is the machine whose times they are."""
        rounded = round(float(self.nanoseconds), 1)
        return {"nanoseconds": rounded, "limit": self.limit, "times": self.times}

    def __str__(self) -> str:
        return prediction_words(**self.record())


def prediction_words(nanoseconds: float, limit: str, times: str) -> str:
    return f"predicted {time_words(nanoseconds)} by the times of {times}: limited by {limit}"


def time_words(nanoseconds: float) -> str:
    """
    >>> [time_words(each) for each in (12.0, 3400.0, 5.6e6)]
    ['12 ns', '3.4 µs', '5.6 ms']
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.4g} ns"


def predicted(work: Work, machine: Machine) -> Prediction:
    """How long a launch takes, on a machine whose record has a table of times."""
    times, rates = machine.times, machine.rates
    busiest = np.ceil(work.blocks / rates.processors)
    room, spilled = room_of(work, machine)
    room = np.minimum(room, busiest)
    needs = _needs(work, times, room)
    need = _joined(times.together, *needs.values()) * (1 + times.spill * spilled)
    beneath = _beneath(work, machine, room)
    below = _joined(times.beneath, beneath["memory"], beneath["L2"])
    given = times.block * work.blocks
    busy = _joined(times.beside, busiest * need / times.clock, below, given)
    # Of all that is there at once, each is served by itself while the others wait.
    alone, waves = busy / room, busiest / room
    waited, ahead = (waves * each / times.clock for each in _waited(work, machine))
    parts = {name: busiest * each / times.clock for name, each in needs.items()}
    parts |= {"waiting": np.maximum(waited, ahead), **beneath, "giving out blocks": given}
    parts["launch"] = times.launch
    # What is asked for ahead is there when it is needed, unless all that is done takes less time.
    taken = np.maximum(alone + _joined(times.hidden, busy - alone, waited), ahead)
    return Prediction(times.launch + taken, parts, times.name)


def _needs(work: Work, times: Times, room: Any) -> dict[str, Any]:
    """Cycles that the parts of a processor are busy with one block."""
    issued = (
        work.arithmetic
        + times.special * work.special
        + times.move * work.moves
        + times.shuffle * work.shuffles
        + times.product * work.products
        + times.iteration * work.iterations
        + times.access * (work.requests + work.shared_requests)
    )
    return {
        "instructions": issued / SCHEDULERS,
        "shared memory": times.wavefront * work.wavefronts,
        "L1": times.line * work.lines,
        "sectors": times.sector * (work.sectors + work.common / room),
    }


def _beyond(work: Work, machine: Machine) -> Any:
    """The part of what is touched that L2 does not keep from one launch to the next."""
    return np.clip(work.touched / machine.rates.l2_bytes - 1, 0.0, 1.0)


def _beneath(work: Work, machine: Machine, room: Any) -> dict[str, Any]:
    """Nanoseconds that memory and L2 are busy with the whole launch. What all blocks load comes
    once to those that a processor has at once."""
    times = machine.times
    common = work.blocks * work.common / room
    fetched = work.fetched + machine.sector_bytes * common
    asked = work.asked + common * machine.sector_bytes / machine.line_bytes
    spent = work.touched + times.run * work.runs + times.stream * work.streamed * work.blocks
    return {
        "memory": _beyond(work, machine) * spent / times.memory,
        "L2": _joined(times.beneath, fetched / times.l2, asked / times.asked),
    }


def _waited(work: Work, machine: Machine) -> tuple[Any, Any]:
    """Cycles that a block waits for, and those until all has come that it asks for ahead."""
    times = machine.times
    round_ = times.global_wait + times.memory_wait * _beyond(work, machine)
    waited = (
        times.begin
        + round_ * work.global_rounds
        + times.shared_wait * work.shared_rounds
        + times.barrier_wait * work.barriers
        + times.dependent * work.longest
    )
    return waited, round_ * work.ahead_rounds


def room_of(work: Work, machine: Machine) -> tuple[Any, Any]:
    """How many blocks a processor has at once, and how many registers a thread lacks, of those it
    may have."""
    rates = machine.rates
    most = np.minimum(MOST_REGISTERS, rates.processor_registers / work.threads)
    wanted = machine.times.own_registers + work.registers
    room = np.minimum.reduce(np.broadcast_arrays(*rooms(work, machine).values()))
    return np.maximum(1.0, room), np.maximum(0.0, wanted / most - 1)


def rooms(work: Work, machine: Machine) -> dict[str, Any]:
    """How many blocks a processor has at once by each of what it has of it."""
    rates = machine.rates
    most = np.minimum(MOST_REGISTERS, rates.processor_registers / work.threads)
    wanted = np.ceil((machine.times.own_registers + work.registers) / GRAIN) * GRAIN
    warps = np.ceil(work.threads / machine.lanes) * machine.lanes
    return {
        "blocks": rates.processor_blocks,
        "threads": rates.processor_threads // warps,
        "registers": rates.processor_registers // (np.minimum(wanted, most) * warps),
        "shared memory": rates.processor_shared // (work.shared_bytes + RESERVED_BYTES),
    }


def _joined(power: float, *parts: Any) -> Any:
    """Parts done beside each other: between their longest and their sum."""
    longest = np.maximum.reduce(np.broadcast_arrays(*parts))
    safe = np.maximum(longest, 1e-9)
    return safe * sum((each / safe) ** power for each in parts) ** (1 / power)
