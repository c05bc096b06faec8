"""Where the shared arrays of a kernel lie: one pool of bytes, an offset for each array.

Arrays that name no offset lie one after another behind those that do.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.kernel.ir import ClusterSum, Kernel, PingPong, Ring, Shared, walk
from warploom.kernel.warpgroup import GROUP
from warploom.machine.record import CUDA

BARRIER_BYTES = 8


def offsets(arrays: Sequence[Shared]) -> dict[str, int]:
    """The first byte of each array, aligned for the widest access there is."""
    placed = {each.name: each.offset for each in arrays if each.offset is not None}
    end = max((placed[each.name] + each.bytes for each in arrays if each.name in placed), default=0)
    for each in arrays:
        if each.name not in placed:
            placed[each.name] = aligned(end, each.align)
            end = placed[each.name] + each.bytes
    return placed


def pool_bytes(arrays: Sequence[Shared]) -> int:
    """The size of the pool."""
    placed = offsets(arrays)
    return max((placed[each.name] + each.bytes for each in arrays), default=0)


def barriers_at(kernel: Kernel) -> dict[str, int]:
    """The first byte of the barriers of each ring: two for each stage, behind all arrays."""
    at = aligned(pool_bytes([each for each in kernel.body if isinstance(each, Shared)]))
    found = {}
    for ring in rings_of(kernel):
        found[ring.stage] = at
        at += 2 * BARRIER_BYTES * ring.stages
    return found


def rings_of(kernel: Kernel) -> list[Ring]:
    """One ring of each stage: several may use it in turn."""
    found: dict[str, Ring] = {}
    for each in walk(kernel.body):
        if isinstance(each, Ring):
            found.setdefault(each.stage, each)
    return list(found.values())


def turn_barrier_at(kernel: Kernel) -> int:
    """The first byte of the barriers at which warp groups wait for their turn, one for each."""
    total = pool_bytes([each for each in kernel.body if isinstance(each, Shared)])
    return aligned(total) + sum(2 * BARRIER_BYTES * each.stages for each in rings_of(kernel))


def sum_barrier_at(kernel: Kernel) -> int:
    """The first byte of the barrier at which blocks wait for what others of the cluster send."""
    turns = any(isinstance(each, PingPong) for each in walk(kernel.body))
    return turn_barrier_at(kernel) + BARRIER_BYTES * turns * (kernel.threads // GROUP)


def whole_bytes(kernel: Kernel) -> int:
    """All of the pool: arrays, and barriers."""
    sums = any(isinstance(each, ClusterSum) for each in walk(kernel.body))
    return aligned(sum_barrier_at(kernel) + BARRIER_BYTES * sums)


def launched_bytes(kernel: Kernel) -> int:
    """What a launch has to ask for: all of the pool, where it is more than a kernel may declare."""
    total = whole_bytes(kernel)
    return total if total > CUDA.shared_bytes else 0


def asked_name(function: str) -> str:
    """The constant of a module that says how much a launch of a function asks for."""
    return f"{function}_shared_bytes"


def aligned(byte: int, to: int = CUDA.access_bytes) -> int:
    """The first place at or after a byte where any access may begin."""
    return -(-byte // to) * to
