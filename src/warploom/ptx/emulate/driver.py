"""What a driver brings for cooperative groups: memory in which grids and tiles of warps meet.

A grid that meets (`grid.sync()`) finds a workspace at the address in %envreg1 and %envreg2. A
driver gives one to cooperative launches alone, and refuses these where not all blocks run at once.
Tiles of several warps meet in shared memory that is kept for the system: it lies in front of a
block's own, and %reserved_smem_offset_1 is where in it groups may write. What it holds at first is
not said, so here it is neither zero nor uninitialised.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from math import prod

import numpy as np

from warploom.errors import DeviceError
from warploom.machine.memory import Memory, Region
from warploom.machine.record import CUDA, Machine, MissingFieldError
from warploom.ptx.emulate.frame import Batch, Triple

WORKSPACE = "%envreg1"  # also the symbol of its address, which no variable can be called
RESERVED = "%reserved_smem_offset_1"
GIVEN = (WORKSPACE, "%envreg2", RESERVED)
_OF_THE_SYSTEM = 1024  # bytes of a block's shared memory
_OF_GROUPS = 32  # where those for groups begin, of which there are 288 at least
_WORKSPACE_BYTES = 8  # its own size, and the barrier
_UNKNOWN = 0xA5


def reserved_bytes(words: AbstractSet[str]) -> int:
    """Bytes in front of the shared variables of a kernel with these names in it."""
    return _OF_THE_SYSTEM if RESERVED in words else 0


def add_workspace(words: AbstractSet[str], memory: Memory) -> dict[str, int]:
    """The workspace of a grid, as a symbol, if the kernel asks for one."""
    if not {WORKSPACE, "%envreg2"} & words:
        return {}
    data = np.zeros(_WORKSPACE_BYTES, np.uint8)
    data.view(np.uint32)[0] = _WORKSPACE_BYTES
    return {WORKSPACE: memory.add("the workspace of the grid", data).base}


def blocks_at_once(machine: Machine, block: Triple, shared: int, registers: int | None) -> int:
    """How many blocks a machine runs at once; 0 where its record does not say. `registers` are
    those of a thread, if they are known."""
    threads = -(-prod(block) // CUDA.lanes) * CUDA.lanes
    try:
        most = [machine.multiprocessor_threads // threads, machine.rates.processor_blocks]
        most.append(machine.rates.processor_shared // (shared + _OF_THE_SYSTEM))
        if registers:
            most.append(machine.rates.processor_registers // (registers * threads))
    except MissingFieldError:
        return 0
    return min(most) * machine.multiprocessors


def check_together(machine: Machine, grid: Triple, together: int) -> None:
    """Whether all blocks run at once, as a driver asks of a cooperative launch."""
    if not together:
        advice = "give a machine whose record has that, such as h200"
        raise DeviceError(
            f"how many blocks {machine.name} runs at once is not known", advice=advice
        )
    if prod(grid) > together:
        raise DeviceError(
            f"a grid that meets has {prod(grid)} blocks, of which {machine.name} runs "
            f"{together} at once",
            advice="a cooperative launch needs all of them at once; give fewer blocks",
        )


def begin_reserved(shared: Region, blocks: int, size: int) -> None:
    """Fills what is kept for the system in the shared memory of each block."""
    if size:
        shared.data.reshape(blocks, -1)[:, :size] = _UNKNOWN
        if shared.written is not None:
            shared.written.reshape(blocks, -1)[:, :size] = 1


def driver_word(name: str, batch: Batch) -> int:
    """What a driver wrote into a special register."""
    if name == RESERVED:
        return _OF_GROUPS
    address = batch.symbols[WORKSPACE]
    return address >> 32 if name == WORKSPACE else address & 0xFFFFFFFF
