"""CUB's collectives as PTX (`tests/without_gpu/kept/cub_*.ptx`), each with a reference in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from bench.common.verdict.computations import ROOT
from bench.common.without_gpu.collectives import BLOCK, COLLECTIVES, TYPES

from warploom import ptx
from warploom.ptx.launch import LoadedModule
from warploom.verdict.answer import Judgement
from warploom.verdict.judged import judge

FOLDER = ROOT / "tests" / "without_gpu" / "kept"
BY_NAME = {each.name: each for each in COLLECTIVES}
BLOCKS = 2
SAID = {"int": "i32", "float": "f32"}


@cache
def kernels(kind: str) -> LoadedModule:
    path = FOLDER / f"cub_{kind}.ptx"
    return ptx.load(path.read_text(), path.name)


def summed(width: int) -> Callable[[Any], Any]:
    return lambda x: x.reshape(-1, width).sum(axis=1)


def scanned(width: int) -> Callable[[Any], Any]:
    return lambda x: np.cumsum(x.reshape(-1, width), axis=1)


def before(x: Any) -> Any:
    rows = x.reshape(-1, 512)
    return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)[:, :-1]], axis=1)


# On floats; what is not here compares them, or takes whole numbers of them.
ON_FLOATS: dict[str, Callable[[Any], Any]] = {
    **{f"warp_reduce_{width}": summed(width) for width in (32, 16, 8, 5)},
    **{f"warp_scan_{width}": scanned(width) for width in (32, 8)},
    "warp_exchange": BY_NAME["warp_exchange"].wanted,
    **dict.fromkeys(("block_reduce", "block_reduce_raking", "block_reduce_part"), summed(128)),
    **dict.fromkeys(("block_scan", "block_scan_raking"), before),
    "block_exchange": lambda x: x,
}


def judged(name: str, kind: str, seed: int, seconds: float = 60.0) -> Judgement:
    """Of two blocks, all of whose items are there."""
    one = BY_NAME[name]
    size = BLOCKS * one.items
    blocks, args, wanted, _ = one.make(kind, size)
    written = f"{'i32' if wanted.dtype == np.int32 else SAID[kind]}[{wanted.size}]=out"
    free = kind == "float" and "histogram" not in name  # whose items are places
    said = {"x": f"f32[{size}]" if free else args[0], "out": written, "n": f"i32={size}"}
    chosen = ON_FLOATS.get(name, one.wanted)
    reference = (lambda x: chosen(x).reshape(-1)) if free else lambda: wanted
    return judge(
        kernels(kind).kernel(name), reference, said, grid=blocks, block=BLOCK, seed=seed,
        seconds=seconds,
    )  # fmt: skip


NAMES = [(each.name, kind) for kind in TYPES for each in COLLECTIVES]
