"""PTX that Triton and Numba made, run without them: right against NumPy, and no false alarm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.without_gpu.cases import NUMBA, TRITON, Case

from warploom import ptx
from warploom.ptx.launch import Kernel

KEPT = Path(__file__).parent / "kept"
CASES = {case.name: case for case in TRITON}


def kept(path: Path) -> tuple[dict[str, Any], Kernel]:
    text = path.read_text()
    return json.loads(text.partition("\n")[0][2:]), ptx.load(text, path.name).kernel()


def run(path: Path, size: int, *, races: bool) -> None:
    _, name, dtype, _ = path.stem.split("_", 3)
    case: Case = CASES[name]
    args, result, wanted = case.make(np.random.default_rng(size), dtype, size)
    record, kernel = kept(path)
    passed = [args[each] for each in record["args"]] + [None] * record["scratch"]
    report = kernel.launch(
        case.grid(args), record["threads"], passed, shared_bytes=record["shared"],
        races="all" if races else False, benign=True,
    )  # fmt: skip
    assert not report.races
    case.close(args[result], wanted, dtype)


TEXTS = sorted(KEPT.glob("triton_*.ptx"))


def test_every_kernel_is_there() -> None:
    for case in TRITON:
        for dtype in case.dtypes:
            for arch in ("sm_80", "sm_90"):
                assert KEPT / f"triton_{case.name}_{dtype}_{arch}.ptx" in TEXTS
    assert sum(path.stem.endswith("sm_100") for path in TEXTS) >= 10


def often(path: Path) -> bool:
    """Of sm_100 only what differs from sm_90 in more than its target."""
    return not path.stem.endswith("sm_100") or "softmax" in path.stem


SOME = [pytest.param(p, id=p.stem, marks=[] if often(p) else pytest.mark.slow) for p in TEXTS]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", SOME)
def test_triton(path: Path) -> None:
    """The small ragged size of each, looking for races."""
    run(path, CASES[path.stem.split("_")[1]].sizes[1], races=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_triton_at_a_larger_size(path: Path) -> None:
    run(path, CASES[path.stem.split("_")[1]].sizes[0], races=True)


@pytest.mark.parametrize("name", NUMBA)
def test_numba(name: str) -> None:
    case = NUMBA[name]
    args, result, wanted = case.make(np.random.default_rng(5), case.dtype)
    passed: list[Any] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            passed += [None, None, arg.size, arg.itemsize, arg, *arg.shape, *arg.strides]
        else:
            passed.append(arg)
    _, kernel = kept(KEPT / f"numba_{name}_sm_90.ptx")
    report = kernel.launch(*case.shape, passed, races="all")
    assert not report.races
    np.testing.assert_allclose(result, wanted, rtol=case.tolerance)


@pytest.mark.parametrize("arch", ["sm_80", pytest.param("sm_90", marks=pytest.mark.slow)])
def test_a_product_of_256_in_halves(arch: str) -> None:
    """With Triton's pipelining; whole numbers, so that every sum is exact."""
    record, kernel = kept(KEPT / f"triton_matmul_float16_{arch}.ptx")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 4, (256, 256)).astype(np.float16) for _ in range(2))
    given = {"a": a, "b": b, "c": np.zeros((256, 256), np.float32), "M": 256, "N": 256, "K": 256}
    passed = [given[each] for each in record["args"]] + [None] * record["scratch"]
    kernel.launch((4, 8), record["threads"], passed, shared_bytes=record["shared"])
    np.testing.assert_array_equal(given["c"], a.astype(np.float32) @ b.astype(np.float32))
