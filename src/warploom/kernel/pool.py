"""Where the shared arrays of a kernel lie: one pool of bytes, an offset for each array.

Arrays that name no offset lie one after another behind those that do.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.kernel.ir import Kernel, Shared
from warploom.machine.record import CUDA


def offsets(arrays: Sequence[Shared]) -> dict[str, int]:
    """The first byte of each array, aligned for the widest access there is."""
    placed = {each.name: each.offset for each in arrays if each.offset is not None}
    end = max((placed[each.name] + each.bytes for each in arrays if each.name in placed), default=0)
    for each in arrays:
        if each.name not in placed:
            placed[each.name] = aligned(end)
            end = placed[each.name] + each.bytes
    return placed


def pool_bytes(arrays: Sequence[Shared]) -> int:
    """The size of the pool."""
    placed = offsets(arrays)
    return max((placed[each.name] + each.bytes for each in arrays), default=0)


def launched_bytes(kernel: Kernel) -> int:
    """What a launch has to ask for: all of the pool, where it is more than a kernel may declare."""
    total = aligned(pool_bytes([each for each in kernel.body if isinstance(each, Shared)]))
    return total if total > CUDA.shared_bytes else 0


def asked_name(function: str) -> str:
    """The constant of a module that says how much a launch of a function asks for."""
    return f"{function}_shared_bytes"


def aligned(byte: int) -> int:
    """The first place at or after a byte where any access may begin."""
    return -(-byte // CUDA.access_bytes) * CUDA.access_bytes
