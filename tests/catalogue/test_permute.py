"""`warploom.permute` gives what NumPy gives, whatever shapes, strides, types and orders are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.catalogue import permute_fit
from bench.catalogue.permute_random import failures
from bench.harness import RESULTS

import warploom
from warploom.catalogue.operators import operators
from warploom.catalogue.permute import call, rule
from warploom.catalogue.permute.fitted import COSTS
from warploom.catalogue.permute.gather import Gather
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


# 300 in all; `python -m bench.catalogue.permute_random` has 5,000 on each.


@pytest.mark.slow
def test_random_tensors_in_c() -> None:
    assert failures(200, "c", most=4000) == []


@pytest.mark.slow
def test_random_tensors_in_the_simulator() -> None:
    assert failures(85, "simulator", most=1500) == []


def test_random_tensors_in_compiled_ptx() -> None:
    assert failures(15, "ptx", 40, most=1000) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shape", "axes", "dtype"),
    [((9000, 5), (1, 0), "float16"), ((13, 30, 3, 13), (2, 1, 3, 0), "int64"),
     ((67, 131), (1, 0), "int8"), ((3, 5, 217, 3), (2, 1, 0, 3), "float32"),
     ((5, 33, 29), (1, 0, 2), "int16"), ((2, 1100, 3), (0, 2, 1), "uint8")],
)  # fmt: skip
def test_every_launch_that_could_do_a_movement_does_it(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(dtype)
    moved = tuple(shape[axis] for axis in axes)
    strides = dense(shape)
    known = movement(x.itemsize, moved, [strides[axis] for axis in axes], dense(moved))
    kinds: dict[str, Any] = {}
    for each in rule.candidates(known):
        rows = isinstance(each.spec, Gather) and min(each.spec.rows, 4)
        lines = getattr(each.spec, "lines", 1)
        kinds.setdefault(f"{type(each.spec).__name__} {lines} {rows}", each)
    assert len(kinds) > 1
    for name, each in kinds.items():
        part = each.part()
        monkeypatch.setattr(call, "parts", lambda *_, part=part, **__: [part])
        call._plans.clear()
        found = warploom.permute(x, axes, device="simulator")
        assert np.array_equal(found, x.transpose(axes)), name
    call._plans.clear()


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


def test_orders_have_names() -> None:
    images = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    last = warploom.permute(images, "channels_last")
    assert np.array_equal(last, images.transpose(0, 2, 3, 1))
    assert np.array_equal(warploom.permute(last, "channels_first"), images)
    assert np.array_equal(warploom.permute(images[0], "channels_last"), last[0])
    assert np.array_equal(warploom.permute(images, "transposed"), images.swapaxes(2, 3))
    with pytest.raises(CheckError, match="no order of axes"):
        warploom.permute(images, "channel_last")
    with pytest.raises(CheckError, match="a tensor of 2 axes"):
        warploom.permute(images[0, 0], "channels_last")


def test_truth_values_are_moved_as_bytes() -> None:
    x = np.random.default_rng(0).random((5, 7, 11)) > 0.5
    found = warploom.permute(x, (2, 0, 1))
    assert found.dtype == np.bool_
    out = np.zeros((11, 5, 7), np.bool_)
    assert warploom.permute(x, [2, 0, 1], out) is out
    assert np.array_equal(found, x.transpose(2, 0, 1))
    assert np.array_equal(out, found)


def test_an_output_of_no_element_may_lie_anywhere() -> None:
    itself = np.lib.stride_tricks.as_strided(np.zeros(1), (4, 0, 3), (0, 0, 0), writeable=True)
    assert warploom.permute(np.zeros((3, 0, 4)), (2, 1, 0), itself) is itself


@pytest.mark.parametrize("device", ["c", "simulator"])
def test_views_make_other_movements_of_it(device: Device) -> None:
    """Cut out, padded, joined, taken apart, windows of an image: all are views of x or of out."""
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 99, shape).astype(np.int16) for shape in ((13, 40), (9, 40)))
    joined = np.full((44, 25), -1, np.int16)  # transposed, side by side, with a frame around
    for part, first in ((a, 1), (b, 14)):
        warploom.permute(part, (1, 0), joined[2:42, first : first + len(part)], device=device)
    wanted = np.pad(np.concatenate([a, b]).T, ((2, 2), (1, 2)), constant_values=-1)
    assert np.array_equal(joined, wanted)
    cut = warploom.permute(a[2:11, 5:37:2], (1, 0), device=device)
    assert np.array_equal(cut, a[2:11, 5:37:2].T)
    mixed = np.empty((13, 40, 2), np.int16)
    for at, part in enumerate((a, a + 1)):
        warploom.permute(part, (0, 1), mixed[:, :, at], device=device)
    assert np.array_equal(mixed, np.stack([a, a + 1], axis=-1))
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 5))  # im2col
    found = warploom.permute(windows, (2, 3, 0, 1), device=device)
    assert np.array_equal(found, windows.transpose(2, 3, 0, 1))


def test_it_is_loaded_by_name() -> None:
    loaded = warploom.load("permute", axes=(2, 0, 1))
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert np.array_equal(loaded(x), x.transpose(2, 0, 1))
    out = np.empty((4, 2, 3), np.float32)
    assert loaded(x, out) is out
    assert "permute_201" in loaded.text("opencl")
    with pytest.raises(CheckError, match="no order of axes"):
        warploom.load("permute", axes=(0, 2))
    with pytest.raises(CheckError, match="nothing to tune"):
        warploom.load("permute", axes=(1, 0), tune=True)
    with pytest.raises(DeviceError, match="other elements than int8"):
        warploom.load("permute", axes=(2, 0, 1), dtype="int8")(x)


def test_pytorch_records_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    x = torch.rand(3, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: warploom.permute(t, (2, 0, 1)), (x,))
    with pytest.raises(DeviceError, match="wants a gradient"):
        warploom.permute(x, (2, 0, 1), torch.empty(5, 3, 4, dtype=torch.float64))
    ops = operators()
    assert set(torch.library.opcheck(ops.permute.default, (x, [2, 0, 1])).values()) == {"SUCCESS"}


@pytest.mark.slow
def test_costs_are_those_that_are_fitted() -> None:
    """The constants in the package are what the script makes of the records."""
    found = permute_fit.fitted(
        permute_fit.points([RESULTS / "permute" / f"{name}.json" for name in permute_fit.FILES])
    )
    assert found == COSTS


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
