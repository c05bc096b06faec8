"""What a machine is: how many lanes, threads, bytes and registers it has, and what things cost.

Every limit that a check, an evaluator or a search asks for is a field of a `Machine`; a number like
32, 1024 or 48 KiB stands nowhere else. `CUDA` is what every CUDA device offers without being asked,
and is what kernels are checked against unless another machine is named.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.errors import UnsupportedError, one_of
from warploom.machine.latency import LATENCIES, Latency


@dataclass(frozen=True, slots=True)
class Machine:
    """Sizes are in bytes, sides in the order x, y, z; `latency` is None where nobody measured."""

    name: str
    lanes: int = 32
    block_threads: int = 1024
    block_barriers: int = 16  # of a block
    cluster_blocks: int = 16  # of a cluster; more than 8 must be asked for
    block_sides: tuple[int, int, int] = (1024, 1024, 64)
    grid_sides: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared_bytes: int = 48 << 10  # of a block, as declared
    shared_bytes_most: int = 48 << 10  # of a block that asks for more at its launch
    constant_bytes: int = 4 << 10  # of all arguments passed by value
    thread_registers: int = 255  # of 32 bits
    block_registers: int = 65536
    local_bytes: int = 512 << 10  # of one thread: registers that have no room spill there
    access_bytes: int = 16  # of the widest access of one thread
    sector_bytes: int = 32
    banks: int = 32
    bank_bytes: int = 4
    line_bytes: int = 128  # of the cache: what stores should fill
    multiprocessors: int = 0  # 0 where it is not known
    multiprocessor_threads: int = 2048  # that run on one at once
    copies: bool = True  # from global to shared memory past the registers (cp.async)
    latency: Latency | None = None


CUDA = Machine("cuda")
# Sizes of an H200 as its driver reports them; cycles as bench/ptx/shuffle_device.py measured them.
H200 = Machine("h200", shared_bytes_most=227 << 10, multiprocessors=132, latency=LATENCIES["h200"])
# The machine of the paper on partially specified implementations; its banks are 8 bytes wide.
K4000 = Machine("k4000", bank_bytes=8, copies=False)
# Like the GPU of the paper on mapping by constraints (Mali-G72): its warps, its largest group and
# local memory there; 64 registers let it have all its threads.
MALI = Machine(
    "mali",
    lanes=4,
    block_threads=384,
    block_sides=(384, 384, 384),
    shared_bytes=32 << 10,
    shared_bytes_most=32 << 10,
    thread_registers=64,
    multiprocessors=12,
    copies=False,
)

MACHINES: dict[str, Machine] = {machine.name: machine for machine in (CUDA, H200, K4000, MALI)}


def machine_named(name: str) -> Machine:
    if name not in MACHINES:
        raise UnsupportedError(
            f"no machine called {name!r} is known", advice=one_of(name, MACHINES)
        )
    return MACHINES[name]
