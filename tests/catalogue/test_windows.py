"""The 1-D stencil and the 1-D convolution: all devices, their fill, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.catalogue.agreement import (
    DEVICES,
    check_agreement,
    check_registers,
    counted,
    labels,
)
from tests.sampled import rounds

from warploom import runtime
from warploom.catalogue import find
from warploom.errors import CheckError, DeviceError

STENCIL, CONVOLUTION = find("stencil-1d"), find("convolution-1d")
CASES = [(entry, variant) for entry in (STENCIL, CONVOLUTION) for variant in entry.variants]
NAMES = [f"{e.name}-{name}" for e, name in zip([e for e, _ in CASES],
         labels(v for _, v in CASES), strict=True)]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("device", ["simulator", "c", "ptx"])
@pytest.mark.parametrize(("entry", "variant"), CASES, ids=NAMES)
def test_every_variant_computes_its_specification(entry: Any, variant: Any, device: str) -> None:
    sizes = entry.sizes(**entry.settings(variant))
    start = len(variant.get("dtype", "")) % 5
    check_agreement(entry, variant, device, sizes[start :: 14 if device == "simulator" else 7])


@pytest.mark.parametrize("entry", [STENCIL, CONVOLUTION], ids=["stencil", "convolution"])
def test_opencl_computes_the_specification(entry: Any) -> None:
    check_agreement(entry, {"width": 1, "rows": 1}, "opencl", entry.sizes()[::6])


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("entry", "variant"), CASES, ids=NAMES)
def test_every_variant_on_every_size(entry: Any, variant: Any, device: str) -> None:
    sizes = entry.sizes(**entry.settings(variant))
    assert len(sizes) >= 20
    check_agreement(entry, variant, device, sizes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("entry", [STENCIL, CONVOLUTION], ids=["stencil", "convolution"])
@pytest.mark.parametrize("taps", [3, 9, 17, 33])
def test_nothing_leaves_its_registers(entry: Any, taps: int) -> None:
    check_registers(entry.kernel(taps=taps))


def test_a_window_of_one_needs_no_sketch() -> None:
    assert CONVOLUTION.program(taps=1) is None
    check_agreement(CONVOLUTION, {"taps": 1}, "simulator", [{"n": 1}, {"n": 700}])


@pytest.mark.parametrize(("taps", "width", "rows"), [(3, 4, 4), (17, 4, 2), (9, 1, 3)])
def test_one_shuffle_for_each_element_of_another_lane(taps: int, width: int, rows: int) -> None:
    warps = 9
    n = 32 * width * rows * (warps - 1) + 32  # the last warp has little to do
    variant = {"taps": taps, "width": width, "rows": rows, "block": 32}
    report, _ = counted(CONVOLUTION, {"n": n}, **variant)
    assert report.shuffles == warps * rows * (taps - 1)
    assert report.store_efficiency > 0.95
    useful = (n + taps - 1) * 4
    halo = (warps - 1) * 32 * (taps // 8 + 1)
    assert report.loads["x"].sectors * 32 <= useful + halo + 32 * 32 * width


def test_random_lengths_and_taps() -> None:
    random = np.random.default_rng(7)
    for _ in range(rounds(6)):
        taps, n = int(random.integers(1, 34)), int(random.integers(1, 3000))
        variant = {"taps": taps, "width": int(random.choice([1, 2, 4])), "rows": 2, "block": 64}
        check_agreement(CONVOLUTION, variant, "simulator", [{"n": n}])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"taps": 0}, "0 taps"),
        ({"taps": 34}, "34 taps"),
        ({"width": 3}, "accesses of 3 elements"),
        ({"width": 4, "dtype": "float64"}, "at most 16 bytes"),
        ({"rows": -1}, "-1 rows"),
        ({"block": 100}, "block of 100"),
        ({"weights": "magic"}, "weights by 'magic'"),
        ({"tap": 3}, "did you mean taps"),
    ],
)
def test_wrong_parameters(wrong: Any, said: str) -> None:
    with pytest.raises(CheckError) as caught:
        CONVOLUTION.kernel(**wrong)
    assert said in str(caught.value)


def test_a_mean_of_integers_is_refused() -> None:
    with pytest.raises(CheckError, match="a mean of int32"):
        STENCIL.kernel(dtype="int32")


def test_wrong_arrays() -> None:
    kernel = runtime.load(CONVOLUTION.kernel(taps=3), "simulator")
    weights = np.ones(3, np.float32)
    with pytest.raises(DeviceError, match="'y' has 9 elements"):
        kernel(np.ones(10, np.float32), weights, np.ones(9, np.float32))
    with pytest.raises(DeviceError, match="float64"):
        kernel(np.ones(10), weights)
    with pytest.raises(DeviceError, match="not contiguous"):
        kernel(np.ones(20, np.float32)[::2], weights)
    with pytest.raises(DeviceError, match="'x' is empty"):
        kernel(np.ones(0, np.float32), weights)
