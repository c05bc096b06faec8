"""How many lines of 128 bytes the warps of a block ask for, reading and writing.

A multiprocessor serves about one line of a request after the other, however few bytes of it are
wanted: rows that are short, or far apart, cost more than their bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.catalogue.permute.box import Box
from warploom.catalogue.permute.cuts import Cut
from warploom.catalogue.permute.gather import Gather
from warploom.catalogue.permute.tile import WindowTile

LANES, LINE = 32, 128
SAMPLES = 7  # warps of a block that are looked at


def of_gather(spec: Gather, q: Cut) -> float:
    """Each element by itself, wherever it is; words of y side by side."""
    used = min(1.0, q.chunk / spec.count)  # others load what a neighbour loads
    firsts = np.arange(0, q.chunk, max(1, q.chunk // SAMPLES))[:SAMPLES, None]
    lanes = min(LANES, spec.across)
    steps = np.minimum(firsts + np.arange(lanes) * spec.out, q.chunk - 1)
    lines = np.sort(_offsets(q, steps) * spec.bytes // LINE, axis=1)
    different = 1 + (np.diff(lines, axis=1) != 0).sum(axis=1)
    warps = spec.times * spec.threads / LANES
    read = warps * spec.out * LANES / lanes * (used * float(different.mean()) + 1 - used)
    line = spec.out * spec.bytes * lanes / LINE
    return read + warps * used * LANES / lanes * max(1.0, line)


def _offsets(cut: Cut, steps: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where steps of a side are in x."""
    total, inner = np.zeros_like(steps), 1
    for axis in cut.digits[:-1]:
        total, inner = total + steps // inner % axis.size * axis.read, inner * axis.size
    total += steps // inner * cut.digits[-1].read
    return total


def of_tile(tile: WindowTile, p: Cut, q: Cut) -> float:
    """Rows of x and of y that begin anywhere in a line; a linear tile is a single run of x."""
    size = tile.bytes
    read = p.chunk * q.chunk * size / LINE
    if not tile.linear:
        row = _row(min(tile.across * tile.wide, p.chunk) * size, tile.wide * size)
        read = tile.passes * tile.times * tile.threads / tile.across * row
    line = _row(min(tile.along * tile.out, q.chunk) * size, tile.out * size)
    times = tile.lines * -(-tile.q // (tile.along * tile.out))
    return read + times * tile.threads / tile.along * line


def of_box(box: Box, p: Cut, j: Cut, lines: int) -> float:
    """Rows of x that begin anywhere in a line, lines of y."""
    size, across = box.bytes, min(LANES, box.across)
    row = _row(min(across * box.wide, p.chunk) * size, box.wide * size)
    read = box.passes * box.times * box.threads / across * row
    return read + p.chunk * j.chunk * size / LINE + lines


def _row(bytes: int, word: int) -> float:
    """The lines of so many bytes in words, on average over all beginnings."""
    return 1 + (bytes - word) / LINE
