"""CUB's warp and block collectives: right against NumPy, and no false alarm of the sanitizer.

`kept/cub_*.ptx` is what NVRTC makes of `cub.cu` with the headers of `nvidia-cuda-cccl`; where those
headers are, the text is compiled again (`make accept`).
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.common.without_gpu.collectives import COLLECTIVES, TYPES, Collective
from tests.tools import require

from warploom import ptx
from warploom.ptx.launch import LoadedModule
from warploom.runtime.compile import compile_cuda

HERE = Path(__file__).parent
SIZES = (1300, 77)


@lru_cache
def kept(kind: str) -> LoadedModule:
    path = HERE / "kept" / f"cub_{kind}.ptx"
    return ptx.load(path.read_text(), path.name)


@pytest.mark.sampled(7)
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
