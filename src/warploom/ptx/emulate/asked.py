"""What is said of a launch: its shape and its options, each refused where it is not understood."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from warploom.choices import MODELS
from warploom.errors import DeviceError
from warploom.machine.memory import Memory
from warploom.machine.overlap import Footprint
from warploom.machine.record import Machine
from warploom.machine.serving import Serving
from warploom.ptx.emulate.frame import WARP, Arithmetic, Triple
from warploom.ptx.emulate.hold import Hold, Schedule, parse_holds
from warploom.ptx.emulate.skeleton import FlagLoop

EngineName = Literal["auto", "numpy", "c"]
Races = bool | Literal["all"]
Volatile = Literal["relaxed", "weak"]
Model = Literal["practice", "ptx"]
MOST_HEAP = 1 << 29


@dataclass(frozen=True, slots=True)
class Asked:
    """A launch whose arguments lie in memory, as the evaluator is to run it."""

    grid: Triple
    block: Triple
    memory: Memory
    symbols: dict[str, int]
    shared_bytes: int  # dynamic ones
    check: bool
    races: Races
    benign: bool
    counters: bool
    deadline: float | None
    schedule: Schedule
    cluster: Triple
    batch_threads: int | None
    weak_volatile: bool
    serving: Serving
    prove: bool = False  # keep the skeleton of the run
    model: Model = "practice"  # by which rules races are judged
    registers: int | None = None  # of a thread as it starts, where that is known
    loops: Mapping[int, FlagLoop] = field(default_factory=dict)  # that look at flags
    dependents: bool = False  # the next launch may overlap: keep what is touched
    after: Footprint | None = None  # of a launch that may still run
    arithmetic: Arithmetic | None = None  # makes products, if not the evaluator
    at_once: int = 0  # blocks that the machine runs together; 0 where it is not known
    twins: int = 1  # copies of each block, each with a memory of its own (`ptx/field`)
    floats: Any = None  # what the floats of such a launch are

    @property
    def threads(self) -> int:
        return prod(self.grid) * prod(self.block)

    @property
    def overlaps(self) -> bool:
        """Whether another launch may run beside this one."""
        return self.dependents or self.after is not None

    @property
    def chance(self) -> np.random.Generator | None:
        """A random generator, equal for every run of the launch; None without a schedule."""
        seed = self.schedule
        return None if seed is None or isinstance(seed, str) else np.random.default_rng(seed)

    @property
    def holds(self) -> tuple[Hold, ...] | None:
        """Who is held back, where a schedule says so."""
        return parse_holds(self.schedule) if isinstance(self.schedule, str) else None


def check_switches(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, bool | np.bool_):
            raise DeviceError(f"{name}={value!r:.60}", advice="write True or False")


def check_machine(machine: Any) -> Machine:
    if isinstance(machine, Machine):
        return machine
    raise DeviceError(f"machine={machine!r:.60}", advice="give what machine_named(…) finds")


def check_shape(schedule: Schedule, batch: Any, grid: Triple, block: Triple) -> None:
    """A batch has threads, and whom a schedule holds back is there."""
    whole = isinstance(batch, numbers.Integral) and not isinstance(batch, bool)
    if batch is not None and (not whole or batch < 1):
        raise DeviceError(f"a batch of {batch!r:.60} threads", advice="one is the least")
    for each in parse_holds(schedule) if isinstance(schedule, str) else ():
        warps = -(-prod(block) // WARP)
        if each.block >= prod(grid):
            there = f"no block {each.block}; the grid has {prod(grid)}"
        elif each.warp >= warps:
            there = f"no warp {each.warp}; a block has {warps}"
        else:
            continue
        advice = "blocks and warps count from 0"
        raise DeviceError(f"schedule '{each}': there is {there}", advice=advice)


def check_options(
    races: Any, schedule: Any, engine: Any, cores: Any, volatile: Any, model: Any
) -> None:  # fmt: skip
    """What is said of a launch beside its shape: refused, never taken for something else."""
    if cores is not None and (not isinstance(cores, numbers.Integral) or cores < 1):
        raise DeviceError(f"a launch on {cores!r} cores", advice="one is the least")
    if isinstance(schedule, str):
        parse_holds(schedule)
    elif schedule is not None and (not isinstance(schedule, numbers.Integral) or schedule < 0):
        raise DeviceError(f"{schedule!r} is no seed of a schedule", advice="give 0 or more")
    if engine not in get_args(EngineName):
        known = ", ".join(get_args(EngineName))
        raise DeviceError(f"there is no engine {engine!r}", advice=f"there are {known}")
    if races != "all" and not isinstance(races, bool | np.bool_):
        raise DeviceError(f"races={races!r}", advice='write True, False or "all"')
    if volatile not in get_args(Volatile):
        raise DeviceError(f"volatile={volatile!r}", advice='write "relaxed" or "weak"')
    if model not in MODELS:
        raise DeviceError(f"model={model!r}", advice='write "practice" or "ptx"')


def check_overlap(
    dependents: Any, after: Any, races: Races, engine: EngineName
) -> Footprint | None:
    """What the launch before touched; to overlap others needs a detector of races, which the
    evaluator has."""
    check_switches(dependents=dependents)
    if (dependents or after is not None) and (not races or engine == "c"):
        advice = "give races=True, and not engine='c'"
        raise DeviceError("launches that overlap need races, and the evaluator", advice=advice)
    footprint: Footprint | None = getattr(after, "footprint", None)
    if after is not None and footprint is None:
        advice = "give the report of a launch with dependents=True"
        raise DeviceError("'after' is no launch that another may overlap", advice=advice)
    return footprint


def check_proof(prove: bool, races: Any, check: bool, engine: EngineName) -> None:
    """What a proof stands on has to be looked at."""
    if prove and (not races or not check or engine == "c"):
        raise DeviceError(
            "a proof needs races and check, and the evaluator",
            advice="give races=True, and neither check=False nor engine='c'",
        )


def heap_limit(given: Any) -> int:
    if not isinstance(given, int | np.integer) or not 0 <= given <= MOST_HEAP:
        advice = f"give a whole number of bytes, {MOST_HEAP} at most"
        raise DeviceError(f"a device heap of {given!r} bytes", advice=advice)
    return int(given)


def triple(value: int | Sequence[int], what: str) -> Triple:
    given = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    sizes = list(given)
    whole = all(isinstance(s, numbers.Real) and s >= 1 and s % 1 == 0 for s in sizes)
    if not 1 <= len(sizes) <= 3 or not whole:
        raise DeviceError(f"{what} must be one to three positive sizes")
    padded = [int(s) for s in sizes] + [1] * (3 - len(sizes))
    return padded[0], padded[1], padded[2]
