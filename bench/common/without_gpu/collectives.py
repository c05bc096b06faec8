"""CUB's warp and block collectives as `cub.cu` calls them, and what NumPy says they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.ptx.launch import LoadedModule

TYPES = {"int": np.int32, "float": np.float32}
BLOCK = 128  # threads


@dataclass(frozen=True)
class Collective:
    """`wanted(x)` of the items, filled up with zeros or (of sorts) with what comes last."""

    name: str
    items: int  # of a block
    wanted: Callable[[Any], Any]
    filled: int = 0
    whole: bool = False  # results of filling are there too

    def make(self, kind: str, size: int) -> tuple[int, list[Any], Any, int]:
        """Blocks, arguments, what the second becomes, and how much of it is said."""
        dtype = TYPES[kind]
        x = np.random.default_rng(size).integers(0, 50, size).astype(dtype)
        blocks = -(-size // self.items)
        full = np.full(blocks * self.items, self.filled, dtype)
        full[:size] = x
        wanted = self.wanted(full)
        flat = wanted.reshape(-1)
        end = flat.size if self.whole or flat.size < full.size else size
        return blocks, [x, np.zeros(flat.size, flat.dtype), size], flat, end

    def run(self, module: LoadedModule, kind: str, size: int, **options: Any) -> None:
        blocks, args, flat, end = self.make(kind, size)
        out = args[1]
        report = module.kernel(self.name).launch(blocks, BLOCK, args, **options)
        assert not report.races
        np.testing.assert_array_equal(out[:end], flat[:end])


def summed(width: int) -> Callable[[Any], Any]:
    return lambda x: x.reshape(-1, width).sum(axis=1, dtype=x.dtype)


def scanned(width: int) -> Callable[[Any], Any]:
    return lambda x: np.cumsum(x.reshape(-1, width), axis=1, dtype=x.dtype)


def before(x: Any) -> Any:
    rows = x.reshape(-1, 512)
    return np.cumsum(rows, axis=1, dtype=x.dtype) - rows


def turned(x: Any) -> Any:
    """Lane l gets items 4l to 4l + 3, and stores its k-th at k · 16 + l."""
    return x.reshape(-1, 16, 4).transpose(0, 2, 1)


def in_order(width: int) -> Callable[[Any], Any]:
    return lambda x: np.sort(x.reshape(-1, width), axis=1)


def counted(x: Any) -> Any:
    rows = x.reshape(-1, 512).astype(np.int64)
    return np.stack([np.bincount(row, minlength=64) for row in rows]).astype(np.int32)


COLLECTIVES = (
    Collective("warp_reduce_32", 128, summed(32)),
    Collective("warp_reduce_16", 128, summed(16)),
    Collective("warp_reduce_8", 128, summed(8)),
    Collective("warp_reduce_5", 20, summed(5)),
    Collective("warp_scan_32", 128, scanned(32)),
    Collective("warp_scan_8", 128, scanned(8)),
    Collective("warp_exchange", 512, turned, whole=True),
    Collective("warp_sort", 256, in_order(32), 1000, True),
    Collective("block_reduce", 128, summed(128)),
    Collective("block_reduce_raking", 128, summed(128)),
    Collective("block_reduce_part", 128, summed(128)),
    Collective("block_scan", 512, before),
    Collective("block_scan_raking", 512, before),
    Collective("block_exchange", 512, lambda x: x),
    Collective("block_radix_sort", 512, in_order(512), 1000, True),
    Collective("block_merge_sort", 512, in_order(512), 1000, True),
    Collective("block_histogram", 512, counted, 63),
    Collective("block_histogram_sort", 512, counted, 63),
)
