"""CUB's warp and block collectives: right against NumPy, and no false alarm of the sanitizer.

`kept/cub_*.ptx` is what NVRTC makes of `cub.cu` with the headers of `nvidia-cuda-cccl`; where those
headers are, the text is compiled again (`make accept`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tools import require

from warploom import ptx
from warploom.ptx.emulate.launch import LoadedModule
from warploom.runtime.compile import compile_cuda

HERE = Path(__file__).parent
TYPES = {"int": np.int32, "float": np.float32}
SIZES = (1300, 77)


@dataclass(frozen=True)
class Collective:
    """`wanted(x)` of the items, filled up with zeros or (of sorts) with what comes last."""

    name: str
    items: int  # of a block
    wanted: Callable[[Any], Any]
    filled: int = 0
    whole: bool = False  # results of filling are there too

    def run(self, module: LoadedModule, kind: str, size: int, **options: Any) -> None:
        dtype = TYPES[kind]
        x = np.random.default_rng(size).integers(0, 50, size).astype(dtype)
        blocks = -(-size // self.items)
        full = np.full(blocks * self.items, self.filled, dtype)
        full[:size] = x
        wanted = self.wanted(full)
        out = np.zeros(wanted.shape, wanted.dtype).reshape(-1)
        report = module.kernel(self.name).launch(blocks, 128, [x, out, size], **options)
        assert not report.races
        flat = wanted.reshape(-1)
        end = flat.size if self.whole or flat.size < full.size else size
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


@lru_cache
def kept(kind: str) -> LoadedModule:
    path = HERE / "kept" / f"cub_{kind}.ptx"
    return ptx.load(path.read_text(), path.name)


@pytest.mark.parametrize("kind", ["int", pytest.param("float", marks=pytest.mark.slow)])
@pytest.mark.parametrize("collective", COLLECTIVES, ids=lambda each: each.name)
def test_right_and_quiet(collective: Collective, kind: str) -> None:
    """Ragged sizes; of several blocks without looking for races, of one block looking for them."""
    collective.run(kept(kind), kind, SIZES[0], races=False)
    collective.run(kept(kind), kind, SIZES[1], races="all", benign=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("collective", COLLECTIVES, ids=lambda each: each.name)
def test_quiet_whoever_runs_first(collective: Collective, kind: str) -> None:
    collective.run(kept(kind), kind, SIZES[0], races="all", benign=True)
    for seed in range(2):
        collective.run(kept(kind), kind, SIZES[1], races="all", benign=True, schedule=seed)


def headers() -> Path | None:
    """Where `nvidia-cuda-cccl` has put CUB."""
    found = find_spec("nvidia")
    roots = [] if found is None else list(found.submodule_search_locations or ())
    places = [Path(root, "cu13", "include", "cccl") for root in roots]
    return next((place for place in places if (place / "cub").is_dir()), None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_compiled_now(kind: str) -> None:
    require("ptx")
    folder = headers()
    if folder is None:
        pytest.skip("no headers of CUB (pip install nvidia-cuda-cccl)")
    options = (f"-DCOLLECTED={kind}", f"--include-path={folder}")
    text = (HERE / "cub.cu").read_text()
    module = ptx.load(compile_cuda(text, "sm_90", compiler="nvrtc", options=options).text)
    for collective in COLLECTIVES:
        collective.run(module, kind, SIZES[0], races="all", benign=True)
