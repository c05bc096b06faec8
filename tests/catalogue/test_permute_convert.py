"""`warploom.permute` with another type, factors and shifts gives what NumPy gives in two steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom
from warploom.catalogue.permute import call, convert, rule
from warploom.catalogue.permute.fields import Fields
from warploom.catalogue.permute.planes import Planes
from warploom.catalogue.permute.problem import movement, slabs
from warploom.errors import CheckError, DeviceError
from warploom.kernel.dtype import from_numpy
from warploom.runtime.callable import Device

TYPES = ("uint8", "int8", "int16", "float16", "int32", "float32", "int64", "float64")


def by_numpy(
    x: np.ndarray, axes: Any, dtype: str, scale: Any, shift: Any, along: int | None
) -> np.ndarray:
    """In two steps; small numbers, so that a product and a sum are rounded alike."""
    across = [1] * x.ndim
    if along is not None:
        across[along] = -1
    numbers = x.astype(np.float64)
    for each, way in ((scale, np.multiply), (shift, np.add)):
        if each is not None:
            each = np.asarray(each, np.float64)
            numbers = way(numbers, each.reshape(across) if each.ndim else each)
    return np.ascontiguousarray(numbers.astype(dtype).transpose(axes))


def drawn(seed: int) -> tuple[np.ndarray, tuple[int, ...], dict[str, Any]]:
    random = np.random.default_rng(seed)
    shape: tuple[int, ...] = ()
    for _ in range(int(random.integers(1, 6))):
        most = min(int(random.choice([3, 9, 40, 90])), 3000 // max(1, int(np.prod(shape))))
        shape += (int(random.integers(1, max(2, most))),)
    source, target = (str(each) for each in random.choice(TYPES, 2))
    x = random.integers(0, 25, shape).astype(source)
    if random.random() < 0.3:
        x = x[tuple(slice(None, None, int(random.choice([1, 2, -1]))) for _ in shape)]
    how: dict[str, Any] = {"dtype": target}
    match int(random.integers(3)):
        case 1:
            how |= {"scale": 0.5, "shift": 3.0}
        case 2:
            along = int(random.integers(x.ndim))
            count = x.shape[along]
            how |= {"along": along, "scale": random.integers(1, 4, count).tolist()}
            if random.random() < 0.5:
                how["shift"] = random.integers(0, 9, count).astype(np.float32)
    return x, tuple(int(axis) for axis in random.permutation(x.ndim)), how


def wrong(seed: int, device: Device) -> str:
    x, axes, how = drawn(seed)
    asked = {"scale": None, "shift": None, "along": None} | how
    wanted = by_numpy(x, axes, **asked)
    found = warploom.permute(x, axes, device=device, **how)
    right = found.dtype == wanted.dtype and np.array_equal(found, wanted)
    return "" if right else f"{seed}: {x.shape} {x.dtype} {axes} {how}"


@pytest.mark.parametrize(("device", "count"), [("simulator", 30), ("c", 3), ("ptx", 5)])
def test_random_conversions(device: Device, count: int) -> None:
    first = {"simulator": 0, "c": 1000, "ptx": 2000}[device]
    assert [said for seed in range(first, first + count) if (said := wrong(seed, device))] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", [{"dtype": "float32"}, {"dtype": "float16", "scale": 0.25},
                                 {"scale": [2, 3, 4], "shift": [1, 0, 2], "along": 2}])  # fmt: skip
def test_every_launch_that_could_do_a_conversion_does_it(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).integers(0, 20, (37, 150, 3)).astype(np.uint8)
    wanted = by_numpy(x, (2, 0, 1), **({"dtype": "uint8", "scale": None, "shift": None,
                                        "along": None} | how))  # fmt: skip
    seen: dict[str, Any] = {}
    chosen = rule.candidates

    def kept(*given: Any) -> Any:
        found = chosen(*given)
        for each in found:
            seen.setdefault(type(each.spec).__name__ + str(getattr(each.spec, "linear", "")), each)
        return found

    monkeypatch.setattr(rule, "candidates", kept)
    warploom.permute(x, (2, 0, 1), device="simulator", **how)
    assert set(seen) == {"WindowTileTrue", "WindowTileFalse", "Gather", "Box", "Fields"}
    for name, each in seen.items():
        monkeypatch.setattr(call, "parts", lambda *_, each=each, **__: [each.part()])
        call._plans.clear()
        found = warploom.permute(x, (2, 0, 1), device="simulator", **how)
        assert np.array_equal(found, wanted), name
    call._plans.clear()


@pytest.mark.parametrize(("source", "target"), [
    ("uint8", "float16"), ("uint8", "float32"), ("float16", "uint8"), ("int16", "float32"),
])  # fmt: skip
@pytest.mark.parametrize("back", [False, True])
def test_few_fields_are_converted_in_registers(
    source: str, target: str, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fields side by side become planes, and planes fields; each field has its factor."""
    axes = (0, 2, 3, 1) if back else (0, 3, 1, 2)
    shape = (2, 3, 20, 208) if back else (2, 20, 208, 3)
    x = np.random.default_rng(0).integers(0, 25, shape).astype(source)
    how: dict[str, Any] = {"scale": [1, 2, 4], "shift": [3, 0, 1], "along": 1 if back else 3}
    to = convert.asked(from_numpy(x.dtype), shape, target, *how.values())
    read = [stride // x.itemsize for stride in x.transpose(axes).strides]
    moved = tuple(shape[axis] for axis in axes)
    write = [int(np.prod(moved[at + 1 :])) for at in range(4)]
    known = movement(x.itemsize, moved, read, write, to=to, along=axes.index(how["along"]))
    (part,) = (each.part() for each in rule.candidates(known) if isinstance(each.spec, Planes))
    monkeypatch.setattr(call, "parts", lambda *_, **__: [part])
    call._plans.clear()
    found = warploom.permute(x, axes, dtype=target, device="simulator", **how)
    call._plans.clear()
    assert np.array_equal(found, by_numpy(x, axes, target, **how))


@pytest.mark.parametrize("device", ["simulator", "c", "ptx"])
@pytest.mark.parametrize("target", ["uint8", "float16", "float32", "float64"])
def test_fields_are_taken_apart_into_planes_that_begin_anywhere(
    target: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of odd sizes, in two blocks: most planes begin inside of a word."""
    shape, axes = (2, 31, 41, 3), (0, 3, 1, 2)
    x = np.random.default_rng(0).integers(0, 25, shape).astype(np.uint8)
    how: dict[str, Any] = {"scale": [1, 2, 4], "shift": [3, 0, 1], "along": 3}
    chosen = rule.candidates

    def apart(*given: Any) -> Any:
        return [each for each in chosen(*given) if isinstance(each.spec, Fields)][-1:]

    monkeypatch.setattr(rule, "candidates", apart)
    call._plans.clear()
    found = warploom.permute(x, axes, dtype=target, device=device, **how)
    plain = warploom.permute(x, axes, device=device)
    call._plans.clear()
    assert np.array_equal(found, by_numpy(x, axes, target, **how))
    assert np.array_equal(plain, x.transpose(axes))


def test_factors_go_on_where_a_movement_is_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "slabs", lambda moved: slabs(moved, 900))
    x = np.arange(40 * 60, dtype=np.float32).reshape(40, 60)
    scale = np.arange(40.0)
    found = warploom.permute(x, (1, 0), scale=scale, along=0, device="simulator")
    assert np.array_equal(found, (x * scale[:, None]).T)


def test_mean_and_deviation_of_frames() -> None:
    frames = np.random.default_rng(1).integers(0, 256, (2, 20, 30, 3)).astype(np.uint8)
    mean, deviation = np.array([120.0, 110.0, 100.0]), np.array([60.0, 50.0, 40.0])
    found = warploom.permute(
        frames, "channels_first", dtype="float32", device="simulator",
        scale=1 / deviation, shift=-mean / deviation, along=-1,
    )  # fmt: skip
    wanted = ((frames - mean) / deviation).transpose(0, 3, 1, 2)
    assert np.allclose(found, wanted, atol=1e-6)


def test_floats_are_cut_off_and_integers_wrap() -> None:
    x = np.array([[-3.7, 300.0], [np.nan, 2.5]])
    assert warploom.permute(x, (1, 0), dtype="uint8").tolist() == [[0, 0], [255, 2]]
    assert warploom.permute(np.array([300, -1]), (0,), dtype="uint8").tolist() == [44, 255]


def test_truth_values_become_numbers() -> None:
    x = np.array([[True, False, True]])
    assert warploom.permute(x, (1, 0), dtype=np.float32, device="simulator").tolist() == [
        [1.0],
        [0.0],
        [1.0],
    ]


def test_a_given_output_has_the_type_that_is_asked_for() -> None:
    x, out = np.arange(6.0).reshape(2, 3), np.zeros((3, 4), np.float32)[:, 1:3]
    assert warploom.permute(x, (1, 0), out, dtype="float32", scale=2) is out
    assert np.array_equal(out, 2 * x.T)
    with pytest.raises(DeviceError, match="'out' has the type f32, but the result has f64"):
        warploom.permute(x, (1, 0), out)


@pytest.mark.parametrize(("how", "said"), [
    ({"scale": [1, 2]}, "2 factors, but not along which axis"),
    ({"scale": [1, 2], "along": 0}, "2 factors for an axis of 3"),
    ({"scale": 2.0, "along": 5}, "no axis 5"),
    ({"along": 0}, "there are none"),
    ({"scale": "much"}, "'scale' is a number"),
    ({"dtype": "bool"}, "no element type bool"),
    ({"dtype": object()}, "no type of elements"),
    ({"scale": 1.0, "along": 1}, "400 factors along an axis"),
])  # fmt: skip
def test_what_no_kernel_computes_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises((CheckError, DeviceError), match=said):
        warploom.permute(np.zeros((3, 400), np.float32), (1, 0), **how)


def test_what_is_no_option_of_a_conversion_is_never_ignored() -> None:
    """A call whose options nobody understands is refused; it does not move the tensor as it is."""
    x = np.ones((2, 3), np.float32)
    options: tuple[dict[str, Any], ...] = (
        {"scale": 2, "along": "a"}, {"scale": 2, "along": True}, {"scale": [[1, 2]]},
        {"scale": "2"}, {"scale": {}}, {"scale": 10**400}, {"dtype": [1]}, {"shift": 1j},
    )  # fmt: skip
    for how in options:
        with pytest.raises((CheckError, DeviceError)):
            warploom.permute(x, (1, 0), **how)


def test_zeros_of_both_signs_are_two_calls() -> None:
    x = np.full((2, 3), -0.0, np.float32)
    for shift in (0.0, -0.0):
        found = warploom.permute(x, (1, 0), shift=shift)
        assert np.signbit(found).all() == np.signbit(shift)


def test_complex_numbers_are_not_converted() -> None:
    with pytest.raises(CheckError, match="complex numbers are moved"):
        warploom.permute(np.zeros((2, 3), np.complex64), (1, 0), dtype="complex128")
