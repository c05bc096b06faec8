"""Pairs of kernels (tests/verdict/slow.cu): something holds the first back, and the second has the
remedy. Each is launched small, to be counted, and large, to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warploom import ptx
from warploom.ptx.work import Counted, counted
from warploom.verdict.hindered import Hindered, hindered

FOLDER = Path(__file__).parents[3] / "tests" / "verdict"
SOURCE = FOLDER / "slow.cu"
FAST = "_fast"


@dataclass(frozen=True)
class Pair:
    """A launch of either kernel: grid, elements of x and of y, and n; small and large. `remedy`:
    what is to be told first of the slow one. `same`: both compute the same."""

    remedy: str
    block: tuple[int, ...]
    small: tuple[tuple[int, ...], int, int, int]
    large: tuple[tuple[int, ...], int, int, int]
    same: bool = True
    element: str = "f4"


_COMB = "bank conflicts"
PAIRS = {
    "column": Pair(_COMB, (32, 8), ((4,), 4096, 4096, 0), ((16384,), 1 << 24, 1 << 24, 0)),
    "comb": Pair(_COMB, (128,), ((4,), 4096, 512, 0), ((16384,), 1 << 24, 1 << 21, 0)),
    "wide_comb": Pair(_COMB, (128,), ((4,), 1 << 14, 512, 0), ((4096,), 1 << 24, 1 << 19, 0)),
    "naive": Pair(
        "lanes that are far apart", (32, 8), ((4, 4), 1 << 14, 1 << 14, 128),
        ((128, 128), 1 << 24, 1 << 24, 4096),
    ),
    "rows": Pair(
        "lanes that are far apart", (128,), ((2,), 1 << 16, 256, 256),
        ((256,), 1 << 23, 1 << 15, 256),
    ),
    "field": Pair(
        "sectors that are not used", (128,), ((4,), 8192, 512, 4),
        ((16384,), 1 << 25, 1 << 21, 16384), same=False,
    ),
    "scalars": Pair("narrow accesses", (128,), ((4,), 2048, 2048, 0),
                    ((32768,), 1 << 24, 1 << 24, 0)),
    "halves": Pair("narrow accesses", (128,), ((4,), 1024, 1024, 0),
                   ((65536,), 1 << 24, 1 << 24, 0), element="u2"),
    "tails": Pair("divergent lanes", (128,), ((4,), 512, 512, 200),
                  ((32768,), 1 << 22, 1 << 22, 200)),
    "crowd": Pair("few blocks at once", (64,), ((4,), 1 << 14, 256, 64),
                  ((4096,), 1 << 24, 1 << 18, 64)),
}  # fmt: skip


def counts(name: str) -> tuple[Counted, Hindered]:
    """What a small launch does, and what holds it back."""
    pair = PAIRS[name.removesuffix(FAST)]
    kernel = ptx.load((FOLDER / "slow.ptx").read_text(), "slow.ptx").kernel(name)
    grid, inputs, outputs, n = pair.small
    x, y = (np.ones(size, pair.element) for size in (inputs, outputs))
    found = counted(kernel, grid, pair.block, [x, y, np.int32(n)])
    return found, hindered(kernel, found)


def figure(found: Counted, of: str) -> float:
    """What a remedy counts, of a block."""
    fields = {
        "wavefronts": "wavefronts", "sectors": "sectors", "requests": "requests",
        "lines of the cache": "lines", "bytes of shared memory": "shared_bytes",
        "instructions": "arithmetic", "barriers": "barriers",
    }  # fmt: skip
    return float(getattr(found.work, fields[of]))


def said(found: Hindered) -> Any:
    """The first remedy, and its figure if all of its kind are applied."""
    first = found.remedies[0]
    alike = [each for each in found.remedies if each.what == first.what]
    return first, first.before - sum(each.before - each.after for each in alike)
