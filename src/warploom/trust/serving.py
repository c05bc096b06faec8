"""Which lanes of an access to shared memory are served together: the checker's own table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import bits_of, require, span_of

Numbers = npt.NDArray[np.int64]

# Lanes and banks. Lanes are served together in runs that ask for a word of every bank; but for some
# loads of 16 bytes, where this basis spans the lanes that are served with lane 0.
MACHINES = {"cuda": (32, 32), "h200": (32, 32), "gfx942": (64, 32), "gfx950": (64, 64),
             "gfx1100": (32, 32), "gfx1201": (32, 32)}  # fmt: skip
_SCATTERED = {"gfx942": (1, 2, 20), "gfx950": (1, 2, 12, 20), "gfx1100": (1, 2, 20)}
# They have matrices, and serve wide loads in double groups if lanes ask in equal pairs.
NVIDIA = ("cuda", "h200")


def served(machine: str, banks: int, kind: str, width: int) -> tuple[tuple[int, ...], int]:
    """The lanes served with lane 0, as a basis, and what joins it where lanes ask in pairs."""
    require(width in (1, 2, 4, 8, 16), f"vectors of {width} bytes")
    known = ("ld", "st", "cp.async", "ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans")
    require(kind in known, f"there is no {kind}")
    if "matrix" in kind:
        require(machine in NVIDIA and width == 16, f"{machine} has no such {kind}")
        return (1, 2, 4), 0
    if kind == "ld" and width == 16 and machine in _SCATTERED:
        return _SCATTERED[machine], 0
    lanes = banks * 4 // max(4, width)
    paired = lanes if machine in NVIDIA and kind == "ld" and width > 4 else 0
    return tuple(1 << bit for bit in range(bits_of(lanes))), paired


def groups_of(step: Numbers, basis: tuple[int, ...], paired: int, lanes: int) -> Iterator[Numbers]:
    """The elements that are served together in one step, without idle lanes."""
    first, lane = step[:, 0], np.arange(len(step))
    others = [np.append(first, -1)[np.minimum(lane ^ by, len(step))] for by in (1, 2)]
    if paired and any(((first < 0) | (o < 0) | (first == o)).all() for o in others):
        basis = (*basis, paired)
    span = span_of(basis)
    for start in range(lanes):
        members = (start ^ span)[(start ^ span) < len(step)]
        wanted = step[members[first[members] >= 0]]
        if start == (start ^ span).min() and wanted.size:
            yield np.unique(wanted)
