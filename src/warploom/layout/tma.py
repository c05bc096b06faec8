"""The modes in which TMA writes shared memory and wgmma reads it; is a layout one of them?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.layout.evaluate import Numbers, evaluate
from warploom.layout.ir import Swizzle


@dataclass(frozen=True, slots=True)
class Mode:
    """A swizzle of bytes; rows of a box have at most `most_bytes`, and the box begins at a multiple
    of `alignment`."""

    name: str
    swizzle: Swizzle
    most_bytes: int | None
    alignment: int


MODES = (
    Mode("none", Swizzle(0, 4, 3), None, 128),
    Mode("32B", Swizzle(1, 4, 3), 32, 256),
    Mode("64B", Swizzle(2, 4, 3), 64, 512),
    Mode("128B", Swizzle(3, 4, 3), 128, 1024),
    Mode("128B, 32-byte atoms", Swizzle(2, 5, 2), 128, 512),
)


def mode_of(addresses: Numbers, columns: int, element_bytes: int) -> Mode | None:
    """The mode that puts every element of a row-major box where a layout has it, if there is one.

    >>> rows = np.arange(512)
    >>> found = mode_of(evaluate(Swizzle(3, 3, 3), rows), 64, 2)
    >>> found.name if found else None
    '128B'
    """
    byte = np.arange(len(addresses), dtype=np.int64) * element_bytes
    for mode in MODES:
        fits = mode.most_bytes is None or columns * element_bytes <= mode.most_bytes
        if fits and np.array_equal(evaluate(mode.swizzle, byte), addresses * element_bytes):
            return mode
    return None
