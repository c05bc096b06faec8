"""The 2-D convolution: all devices, all sizes of window, and what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import of
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

ENTRY = find("convolution-2d")
FEW_TAPS = [variant for variant in ENTRY.variants if of(int, variant.get("taps", 3)) <= 7]
SMALL = [{"height": 3, "columns": 5}, {"height": 7, "columns": 132}]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("device", ["c", "ptx"])
@pytest.mark.parametrize("variant", ENTRY.variants, ids=labels(ENTRY.variants))
def test_every_variant_computes_its_specification(variant: Any, device: str) -> None:
    check_agreement(ENTRY, variant, device, ENTRY.sizes()[variant.get("taps", 3) % 5 :: 6])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("variant", FEW_TAPS, ids=labels(FEW_TAPS))
def test_the_simulator_computes_the_specification(variant: Any) -> None:
    check_agreement(ENTRY, {**variant, "rows": 2, "block": 32}, "simulator", SMALL)


def test_opencl_computes_the_specification() -> None:
    variant = {"rows": 2, "step": 1, "width": 1, "block": 32}
    check_agreement(ENTRY, variant, "opencl", ENTRY.sizes()[::6])


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", ENTRY.variants, ids=labels(ENTRY.variants))
def test_every_variant_on_every_size(variant: Any, device: str) -> None:
    sizes = ENTRY.sizes()
    assert len(sizes) >= 20
    check_agreement(ENTRY, variant, device, sizes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("device", ["c", "ptx"])
def test_the_defaults(device: str) -> None:
    sizes = [{"height": 130, "columns": 300}, {"height": 64, "columns": 512}]
    check_agreement(ENTRY, {}, device, sizes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("taps", [3, 5, 7, 9, 11])
def test_nothing_leaves_its_registers(taps: int) -> None:
    check_registers(ENTRY.kernel(taps=taps))


@pytest.mark.slow
def test_an_image_is_read_once_but_for_the_rows_between_strips() -> None:
    size = {"height": 32, "columns": 512}
    report, _ = counted(ENTRY, size, taps=5, rows=16, block=128)
    warps, rows_in = 4 * 2, 16 + 4
    assert report.store_efficiency == 1.0
    # 16 sectors for the warp's own columns of a row, 2 for those beyond its strip; where these
    # are beyond the image, they are loaded one by one.
    at_the_border = 2 * 2
    expected = warps * rows_in * (16 + 2) + at_the_border * rows_in * 2 * 3
    assert report.loads["image"].sectors == expected
    assert report.shuffles == warps * rows_in * 4


def test_random_images() -> None:
    random = np.random.default_rng(3)
    for _ in range(rounds(8)):
        size = {"height": int(random.integers(1, 40)), "columns": int(random.integers(1, 400))}
        variant = {
            "taps": int(random.choice([3, 5, 7])), "width": int(random.choice([1, 2, 4])),
            "rows": int(random.integers(1, 9)), "step": int(random.integers(1, 4)),
            "exchange": str(random.choice(["shuffle", "load"])), "block": 64,
        }  # fmt: skip
        check_agreement(ENTRY, variant, "c", [size])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"taps": 4}, "4 x 4"),
        ({"taps": 1}, "1 x 1"),
        ({"taps": 17}, "3 to 15"),
        ({"rows": -1}, "-1 rows"),
        ({"step": 9}, "steps of 9"),
        ({"exchange": "mail"}, "'mail'"),
        ({"width": 8}, "8 elements"),
        ({"block": 48}, "block of 48"),
    ],
)
def test_wrong_parameters(wrong: Any, said: str) -> None:
    with pytest.raises(CheckError) as caught:
        ENTRY.kernel(**wrong)
    assert said in str(caught.value)


def test_a_shape_that_does_not_fit_the_image() -> None:
    kernel = runtime.load(ENTRY.kernel(), "simulator")
    image, w = np.ones(12, np.float32), np.ones(9, np.float32)
    with pytest.raises(DeviceError, match="'image' has 12 elements"):
        kernel(image, w, np.zeros(12, np.float32), columns=4, height=4)
    with pytest.raises(DeviceError, match="requires columns"):
        kernel(image, w, np.zeros(12, np.float32), columns=-4, height=-3)
