"""How long a launch takes: a prediction from what it does, beside the bounds that none can beat.

A processor has four schedulers, one L1 and one bank of shared memory for all blocks that it runs.
What these have to do for a block is its *need*; what its threads wait for, one after another, is
its *wait*. Blocks that are there at once hide each other's waits, but not each other's needs. Then
memory beneath gives what it can, and a launch takes a while by itself.

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
RESERVED_BYTES = 1024  # of shared memory, by each block


@dataclass(frozen=True, slots=True)
class Times:
    """Cycles, unless it says otherwise, at `clock` (GHz). Of an instruction of a warp: `access`
    (to memory), `move` (of a register), `special` (functions, divisions), `shuffle`, `product` (of
    a tensor core), `iteration` (of a loop that stays one). Of L1: `line` and `sector` that pass.
    Of shared memory: `wavefront`. Waits: `begin` and end of a block, `global_wait`, `memory_wait`
    more for each but the first where L2 does not keep what is loaded, `shared_wait`,
    `barrier_wait`, and `dependent` for each instruction of the longest warp. `own_registers` are
    those beside the declared ones, `spill` what lacking ones cost, of the need. `memory` and `l2`
    are bytes in a nanosecond; `launch` is in nanoseconds. Needs that are done beside each other,
    needs and waits, and a processor and its memory take together the sums of their powers
    `together`, `hidden` and `beside`: 1 is one after another."""

    name: str
    clock: float
    launch: float
    memory: float
    l2: float
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
    hidden: float
    beside: float


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
    needs = _needs(work, times)
    room, spilled = _room(work, machine)
    need = _joined(times.together, *needs.values()) * (1 + times.spill * spilled)
    busiest = np.ceil(work.blocks / rates.processors)
    waves = np.maximum(1.0, busiest / np.minimum(room, busiest))
    # What several blocks load at once comes from memory for all of them; `begin` has one wait.
    beyond = np.clip(work.touched / rates.l2_bytes - 1, 0.0, 1.0)
    wait = (
        times.begin
        + times.global_wait * work.global_rounds
        + times.memory_wait * beyond * np.maximum(0.0, work.global_rounds - 1)
        + times.shared_wait * work.shared_rounds
        + times.barrier_wait * work.barriers
        + times.dependent * work.longest
    )
    processor = _joined(times.hidden, busiest * need, waves * wait) / times.clock
    memory = beyond * work.touched / times.memory
    l2 = work.fetched / times.l2
    parts = {name: busiest * each / times.clock for name, each in needs.items()}
    parts |= {"waiting": waves * wait / times.clock, "memory": memory, "L2": l2}
    parts["launch"] = times.launch
    return Prediction(
        times.launch + _joined(times.beside, processor, memory, l2), parts, times.name
    )


def _needs(work: Work, times: Times) -> dict[str, Any]:
    """Cycles that the parts of a processor are busy with one block."""
    accesses = work.requests + work.shared_requests
    issued = (
        work.arithmetic
        + times.special * work.special
        + times.move * work.moves
        + times.shuffle * work.shuffles
        + times.product * work.products
        + times.iteration * work.iterations
        + times.access * accesses
    )
    return {
        "instructions": issued / SCHEDULERS,
        "shared memory": times.wavefront * work.wavefronts,
        "L1": times.line * work.lines,
        "sectors": times.sector * work.sectors,
    }


def _room(work: Work, machine: Machine) -> tuple[Any, Any]:
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
    held = np.minimum(machine.times.own_registers + work.registers, most)
    return {
        "blocks": rates.processor_blocks,
        "threads": rates.processor_threads // work.threads,
        "registers": rates.processor_registers // (held * work.threads),
        "shared memory": rates.processor_shared // (work.shared_bytes + RESERVED_BYTES),
    }


def _joined(power: float, *parts: Any) -> Any:
    """Parts done beside each other: between their longest and their sum."""
    longest = np.maximum.reduce(np.broadcast_arrays(*parts))
    safe = np.maximum(longest, 1e-9)
    return safe * sum((each / safe) ** power for each in parts) ** (1 / power)
