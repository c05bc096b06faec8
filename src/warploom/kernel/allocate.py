"""Shared memory by lifetime: arrays that are never needed at the same time lie in the same bytes.

In comes a kernel, out goes one whose shared arrays have offsets in one pool of bytes; barriers are
put in where an array may be written before others have read the one that lay there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from warploom.errors import CheckError
from warploom.kernel.check_hopper import refuse_hopper
from warploom.kernel.ir import Kernel, Shared
from warploom.kernel.lifetime import Lifetime, lifetimes
from warploom.kernel.pool import aligned, offsets, pool_bytes
from warploom.kernel.synchronise import synchronise
from warploom.kernel.traverse import widest_access
from warploom.machine.record import CUDA


def allocate(kernel: Kernel) -> Kernel:
    """The kernel with its shared arrays placed, and synchronised; as it was if no two can share
    bytes."""
    refuse_hopper(kernel, "whose arrays are not placed by lifetime")
    arrays = [each for each in kernel.body if isinstance(each, Shared)]
    if any(each.offset is not None for each in arrays):
        return kernel
    places = placed(arrays, lifetimes(kernel))
    new = [replace(each, offset=places[each.name]) for each in arrays]
    if pool_bytes(new) >= pool_bytes(arrays):
        return kernel
    by_name = {each.name: each for each in new}
    body = tuple(by_name[s.name] if isinstance(s, Shared) else s for s in kernel.body)
    return synchronise(replace(kernel, body=body))


def placed(arrays: Sequence[Shared], lives: Mapping[str, Lifetime]) -> dict[str, int]:
    """An offset for each array: the largest first, each as low as those it meets allow."""
    places: dict[str, int] = {}
    for array in sorted(arrays, key=lambda each: -each.bytes):
        taken = sorted(
            (places[other.name], places[other.name] + other.bytes)
            for other in arrays
            if other.name in places and _together(lives.get(array.name), lives.get(other.name))
        )
        at = 0
        for start, end in taken:
            if at + array.bytes <= start:
                break
            at = max(at, aligned(end))
        places[array.name] = at
    return places


def _together(one: Lifetime | None, other: Lifetime | None) -> bool:
    return one is not None and other is not None and one.meets(other)


def check_places(kernel: Kernel) -> None:
    """Arrays with offsets are aligned, and those that share bytes are never needed together."""
    arrays = [each for each in kernel.body if isinstance(each, Shared)]
    if all(each.offset is None for each in arrays):
        return
    refuse_hopper(kernel, "but shared arrays with offsets")
    for array in arrays:
        # Wider accesses are several of these on every target that has them.
        unit = min(array.dtype.bytes * widest_access(kernel, array.name), CUDA.access_bytes)
        if array.offset is not None and (array.offset < 0 or array.offset % unit):
            raise CheckError(
                f"the shared array '{array.name}' lies at byte {array.offset}",
                advice=f"use a multiple of {unit}",
            )
    places, lives = offsets(arrays), lifetimes(kernel)
    for number, one in enumerate(arrays):
        for other in arrays[:number]:
            first, second = places[one.name], places[other.name]
            apart = first + one.bytes <= second or second + other.bytes <= first
            if not apart and _together(lives.get(one.name), lives.get(other.name)):
                raise CheckError(
                    f"the shared arrays '{other.name}' and '{one.name}' lie in the same bytes, but "
                    "may be needed at the same time",
                    advice="let warploom.kernel.allocate place them",
                )
