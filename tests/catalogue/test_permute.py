"""`warploom.permute` gives what NumPy gives, whatever shapes, strides, types and orders are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.catalogue.permute_random import failures

import warploom
from warploom.catalogue.permute import rule
from warploom.catalogue.permute.launch import Spec
from warploom.catalogue.permute.problem import movement
from warploom.errors import CheckError, DeviceError
from warploom.runtime.callable import Device

ROOT = Path(__file__).resolve().parents[2]


def dense(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]


def spec_of(shape: tuple[int, ...], axes: tuple[int, ...], size: int) -> Spec:
    """The kernel of a dense tensor."""
    strides, moved = dense(shape), tuple(shape[axis] for axis in axes)
    found = movement(size, moved, [strides[axis] for axis in axes], dense(moved))
    (part,) = rule.parts(found)
    return part.spec


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_random_tensors_in_c(count: int) -> None:
    assert failures(count, "c", most=4000) == []


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_random_tensors_in_the_simulator(count: int) -> None:
    assert failures(count, "simulator", most=1500) == []


def test_random_tensors_in_compiled_ptx() -> None:
    assert failures(2, "ptx", 40, most=1000) == []


@pytest.mark.parametrize("device", ["c", "simulator"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (1, 1, 1), (3, 0, 2), (1, 5, 1)])
def test_sizes_0_and_1(shape: tuple[int, ...], device: Device) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    axes = tuple(range(len(shape)))[::-1]
    found = warploom.permute(x, axes, device=device)
    assert found.shape == x.transpose(axes).shape
    assert np.array_equal(found, x.transpose(axes))


def test_nothing_is_written_where_there_is_nothing() -> None:
    """Rows are widened to longer elements; one of no element stays one of none."""
    memory = np.arange(8.0)
    warploom.permute(np.zeros((0, 32, 5, 3)), (0, 1, 2, 3), memory[:0].reshape(0, 32, 5, 3))
    assert np.array_equal(memory, np.arange(8.0))


def test_negative_axes_are_counted_from_the_end() -> None:
    x = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    assert np.array_equal(warploom.permute(x, (-1, 0, -2)), x.transpose(-1, 0, -2))


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (0, "1"), 5, (0.5, 1)])
def test_what_is_no_order_of_the_axes_is_refused(axes: Any) -> None:
    with pytest.raises(CheckError, match=r"no order of the 2 axes|whole numbers"):
        warploom.permute(np.zeros((2, 3), np.float32), axes)


def test_more_than_eight_axes_are_refused() -> None:
    with pytest.raises(CheckError, match="a tensor of 9 axes"):
        warploom.permute(np.zeros((1,) * 9, np.float32), tuple(range(9)))


def test_overlapping_arrays_are_refused() -> None:
    memory = np.arange(40, dtype=np.float32)
    x = memory[:16].reshape(4, 4)
    for out in (x, memory[15:31].reshape(4, 4)):
        with pytest.raises(DeviceError, match="share memory"):
            warploom.permute(x, (1, 0), out)
    assert np.array_equal(warploom.permute(x, (1, 0), memory[16:32].reshape(4, 4)), x.T)
    itself = np.lib.stride_tricks.as_strided(memory[20:], (4, 4), (4, 4))
    with pytest.raises(DeviceError, match="share memory"):
        warploom.permute(x, (1, 0), itself)


def test_an_output_of_another_shape_or_type_is_refused() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(DeviceError, match="the shape"):
        warploom.permute(x, (1, 0), np.zeros((2, 3), np.float32))
    with pytest.raises(DeviceError, match="the type"):
        warploom.permute(x, (1, 0), np.zeros((3, 2), np.int32))


def test_the_page_has_the_figures_of_the_record() -> None:
    page = (ROOT / "docs/kernels.md").read_text()
    record = json.loads((ROOT / "bench/results/permute_device.json").read_text())
    assert all(each["wrong"] == 0 for each in record["summary"].values())
    table = page[page.index("| tensors | rows |") :].split("\n\n")[0].splitlines()[2:]
    shown = {}
    for line in table:
        name, *figures = [each.strip() for each in line.strip("|").split("|")]
        shown[name.split("`")[1]] = figures
    assert shown == {
        kind: [str(each["rows"]), f"{each['median']:.2f}", f"{each['least']:.2f}",
               str(each["slower_than_torch"])]
        for kind, each in record["summary"].items()
    }  # fmt: skip
