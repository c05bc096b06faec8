"""`warploom.moves` gives what NumPy gives: rows by number, frames, parts, windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from warploom import moves
from warploom.catalogue.permute import frame_call, frames, joined, several, take_call, taken
from warploom.catalogue.permute.call import copied
from warploom.catalogue.permute.launched import bundle_on_host
from warploom.catalogue.permute.padded import Frame
from warploom.errors import CheckError, DeviceError
from warploom.runtime.callable import Device
from warploom.runtime.view import view

TYPES = ("uint8", "int16", "float16", "float32", "int64", "complex64", "complex128")
ON: Any = {"device": "simulator"}


def drawn(random: np.random.Generator, axes: int, most: int = 4000) -> np.ndarray:
    """A tensor of any bits, sometimes a view with steps."""
    shape: tuple[int, ...] = ()
    for _ in range(axes):
        side = min(int(random.choice([3, 9, 20, 60])), most // max(1, int(np.prod(shape))))
        shape += (int(random.integers(1, max(2, side))),)
    kind = np.dtype(str(random.choice(TYPES)))
    count = int(np.prod(shape)) * kind.itemsize
    x = random.integers(0, 256, count).astype(np.uint8).view(kind).reshape(shape)
    if random.random() < 0.3:
        x = x[tuple(slice(None, None, int(random.choice([1, 2, -1]))) for _ in shape)]
    return x


def same(one: np.ndarray, other: np.ndarray) -> bool:
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and one.tobytes() == np.ascontiguousarray(other).tobytes()


@pytest.mark.parametrize(("device", "count"), [("simulator", 30), ("c", 3), ("ptx", 4)])
def test_frames_around_random_tensors(device: Device, count: int) -> None:
    random = np.random.default_rng({"simulator": 0, "c": 1, "ptx": 2}[device])
    for _ in range(count):
        x = drawn(random, int(random.integers(1, 6)))
        widths = [tuple(map(int, random.integers(0, 9, 2) * (random.random() < 0.6)))
                  for _ in x.shape]  # fmt: skip
        found = moves.pad(x, widths, 3, device=device)
        assert same(found, np.pad(x, widths, constant_values=3)), (x.shape, x.strides, widths)


def test_frames_of_several_words_for_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large tensors: rows that begin again within a run, and words of two rows."""
    monkeypatch.setattr(frames, "FEW_BLOCKS", 0)
    frame_call._plans.clear()
    random = np.random.default_rng(4)
    for kind, shape in (("uint8", (3, 70, 61)), ("float16", (5, 30, 40)), ("float32", (2, 4099)),
                        ("int64", (3, 5, 7, 11))):  # fmt: skip
        x = random.integers(0, 99, shape).astype(kind)
        for widths in (1, [(2, 0)] + [(0, 3)] * (x.ndim - 1)):
            wanted = np.pad(x, widths, constant_values=3)
            assert same(moves.pad(x, widths, 3, **ON), wanted), (kind, shape, widths)
    frame_call._plans.clear()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (1, 1)])
def test_frames_around_little_and_nothing(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.int16)
    for width in (0, 1):
        assert same(moves.pad(x, width, 7, **ON), np.pad(x, width, constant_values=7))


def test_rows_longer_than_a_run() -> None:
    x = np.arange(3 * 9001, dtype=np.uint8).reshape(3, 9001)
    widths = ((1, 0), (5, 2))
    assert same(moves.pad(x, widths, **ON), np.pad(x, widths))


def test_few_axes_and_long_elements_say_the_same() -> None:
    """A frame of whole rows is one axis, and of multiples of 16 bytes."""
    axes = [Frame(10, 1, 9, 64), Frame(8, 0, 8, 8), Frame(8, 0, 8, 1)]
    (part,) = frames.frame_parts(axes, 4, 16, b"\0" * 4)
    assert part.spec.name == "permute_padded_16_1_1_1"
    assert part.scalars["size0"] == 10 * 16


def test_frames_in_parts_of_few_offsets() -> None:
    """What is beyond 32 bits is launched in parts; here with smaller limits."""
    x = np.random.default_rng(0).integers(0, 99, (7, 11, 13)).astype(np.int32)
    widths = ((2, 1), (0, 3), (1, 1))
    wanted = np.pad(x, widths, constant_values=5)
    axes = [
        Frame(n + a + b, a, a + n, stride // 4)
        for n, (a, b), stride in zip(x.shape, widths, x.strides, strict=True)
    ]
    element = np.int32(5).tobytes()
    parts = frames.frame_parts(axes, 4, 4, element, most=500)
    assert len(parts) > 8
    from warploom.catalogue.permute.launched import _on_host

    out = np.full_like(wanted, -1)
    for part in parts:
        _on_host(part, "simulator", x.ctypes.data, out.ctypes.data)
    assert np.array_equal(out, wanted)


def test_values_of_frames() -> None:
    x = np.zeros((1, 1), np.float16)
    assert np.isinf(moves.pad(x, 1, -np.inf, **ON)).sum() == 8
    truths = moves.pad(np.zeros((1, 1), np.bool_), 1, True, **ON)
    assert truths.dtype == np.bool_
    assert truths.sum() == 8
    for kind, value in (("uint8", 300), ("int32", 0.5), ("float32", 1j), ("bool", 2)):
        with pytest.raises(CheckError):
            moves.pad(x.astype(kind), 1, value)
    strange: tuple[Any, ...] = (((0, 0),), ((0, -1), (0, 0)), ((0.5, 0), (0, 0)), "ab")
    for widths in strange:
        with pytest.raises(CheckError, match="no frame"):
            moves.pad(x, widths)


@pytest.mark.parametrize("device", ["c", "ptx"])
def test_rows_by_number(device: Device) -> None:
    random = np.random.default_rng(3)
    for _ in range(5 if device == "ptx" else 30):
        x = drawn(random, int(random.integers(1, 5)), 1000)
        axis = int(random.integers(-x.ndim, x.ndim))
        kind = random.choice(["int64", "int32", "uint8"])
        size = x.shape[axis]
        least = 0 if kind == "uint8" else -size
        numbers = random.integers(least, size, int(random.integers(0, 40))).astype(kind)
        found = moves.take(x, numbers, axis, device=device)
        assert same(found, np.take(x, numbers, axis)), (x.shape, x.dtype, axis)


def test_a_permutation_of_rows_and_its_inverse() -> None:
    x = np.random.default_rng(0).random((50, 7))
    order = np.random.default_rng(1).permutation(50)
    there = moves.take(x, order)
    assert np.array_equal(there, x[order])
    assert np.array_equal(moves.take(there, np.argsort(order)), x)


def test_rows_in_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take_call, "MOST_WORDS", 100)
    x = np.arange(9 * 4 * 3, dtype=np.int16).reshape(9, 4, 3)
    assert np.array_equal(moves.take(x, [3, 0, 0, 2, 1], 1), x[:, [3, 0, 0, 2, 1]])


def test_numbers_of_no_row_are_refused_or_give_zeros() -> None:
    x = np.ones((2, 3), np.int32)
    for numbers in ([0, 2], [-3], np.array([5])):
        with pytest.raises(CheckError, match="of an axis of 2"):
            moves.take(x, numbers)
    others: tuple[Any, ...] = ([0.5], [[0]], "ab")
    for other in others:
        with pytest.raises((CheckError, DeviceError), match=r"whole numbers|no array|cannot be"):
            moves.take(x, other)
    with pytest.raises(CheckError, match="no axis 2"):
        moves.take(x, [0], 2)
    # Where nobody looks at the numbers, as on a GPU.
    out, numbers = np.full((3, 3), 9, np.int32), np.array([1, 2, -3])
    for device in ("c", "ptx"):
        run = taken.launcher(taken.Taking(4, 8, 3, 3, 2, 9), device, -1)
        run(x.ctypes.data, numbers.ctypes.data, out.ctypes.data)
        assert out.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_division_by_multiplying() -> None:
    random = np.random.default_rng(0)
    for by in (1, 2, 3, 5, 7, 641, 65536, 65537, 2**30 + 1, 2**31 - 1):
        factor, shift = taken.divider(by)
        assert factor < 2**32
        near = [k * by + d for k in (0, 1, (2**31 - 1) // by) for d in (-1, 0, 1)]
        for n in (*near, *map(int, random.integers(0, 2**31, 50))):
            if 0 <= n < 2**31:
                assert (n if not factor else (n * factor >> 32) >> shift) == n // by


def test_parts_of_tensors() -> None:
    x = np.arange(5 * 6 * 7).reshape(5, 6, 7)
    assert same(moves.crop(x, [None, (1, 4), slice(None, None, 2)], **ON), x[:, 1:4, ::2])
    for found, wanted in zip(
        moves.split(x, [1, 4, 2], -1, **ON), np.split(x, [1, 5], 2), strict=True
    ):
        assert same(found, wanted)
    assert [each.shape for each in moves.split(x, 3, 1, **ON)] == [(5, 2, 7)] * 3
    joined = moves.concatenate([x, x[:, :2], x[:, ::2]], 1, **ON)
    assert same(joined, np.concatenate([x, x[:, :2], x[:, ::2]], 1))
    for call in (lambda: moves.split(x, 4), lambda: moves.split(x, [1, 2]),
                 lambda: moves.concatenate([x, x[1:]], 1), lambda: moves.concatenate([]),
                 lambda: moves.crop(x, [None]), lambda: moves.split(x, 1, 3)):  # fmt: skip
        with pytest.raises(CheckError):
            call()
    with pytest.raises(DeviceError, match="several types"):
        moves.concatenate([x, x.astype(np.float32)])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_in_turn(axis: int) -> None:
    parts = [np.arange(24, dtype=np.int16).reshape(2, 3, 4) + 100 * i for i in range(3)]
    wanted = np.stack(parts, axis % 3 + 1).reshape([n * (3 if i == axis % 3 else 1)
                                                    for i, n in enumerate((2, 3, 4))])  # fmt: skip
    assert same(moves.interleave(parts, axis, **ON), wanted)
    assert same(moves.interleave(np.stack(parts), axis, **ON), wanted)
    assert same(moves.deinterleave(wanted, 3, axis, **ON), np.stack(parts))
    with pytest.raises(CheckError):
        moves.deinterleave(wanted, 5, axis)
    with pytest.raises(CheckError, match="several shapes"):
        moves.interleave([parts[0], parts[1][:1]])


def columns_of(x: np.ndarray, kernel: Any, stride: Any, padding: Any, dilation: Any) -> np.ndarray:
    """im2col as its definition says it."""
    x = np.pad(x, ((0, 0), (0, 0), *((each, each) for each in padding)))
    options = zip(x.shape[2:], kernel, stride, dilation, strict=True)
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in options]
    found = [
        x[:, :, i * dilation[0] :: stride[0], j * dilation[1] :: stride[1]][
            :, :, : counts[0], : counts[1]
        ].reshape(*x.shape[:2], -1)
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    return np.stack(found, 2).reshape(x.shape[0], -1, counts[0] * counts[1])


def test_windows_of_images() -> None:
    x = np.random.default_rng(0).random((2, 3, 9, 12)).astype(np.float32)
    for options in (((3, 3), (1, 1), (1, 1), (1, 1)), ((2, 3), (2, 3), (0, 0), (1, 1)),
                    ((2, 2), (3, 1), (2, 0), (2, 3))):  # fmt: skip
        assert same(moves.im2col(x, *options, **ON), columns_of(x, *options))
    slid = np.lib.stride_tricks.sliding_window_view(x, (4, 2), (2, 3))
    assert same(moves.windows(x, (4, 2), **ON), slid)
    assert same(moves.windows(x, (4, 2), (2, 3), **ON), slid[:, :, ::2, ::3])
    with pytest.raises(CheckError, match="windows of 13"):
        moves.windows(x, (13,))
    with pytest.raises(CheckError, match="3 axes"):
        moves.im2col(x[0], 3)


@pytest.mark.parametrize(("device", "count"), [("simulator", 12), ("c", 3), ("ptx", 3)])
def test_random_windows_of_images(device: Device, count: int) -> None:
    random = np.random.default_rng({"simulator": 0, "c": 1, "ptx": 2}[device])
    for _ in range(count):
        bounds = ((1, 5), (1, 4), (0, 3), (1, 3))
        options = [tuple(map(int, random.integers(*each, 2))) for each in bounds]
        shape = (*random.integers(1, 4, 2), *random.integers(14, 40, 2))
        kind = str(random.choice(["uint8", "int16", "float32", "complex128"]))
        x = random.integers(1, 120, shape).astype(kind)
        if random.random() < 0.4:  # channels last
            x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        found = moves.im2col(x, *options, device=device)
        assert same(found, columns_of(x, *options)), (shape, kind, options)


def test_windows_larger_than_images_are_refused() -> None:
    with pytest.raises(CheckError, match=r"windows of \(7, 5\) in images of \(5, 9\)"):
        moves.im2col(np.zeros((1, 1, 5, 9)), (4, 3), dilation=2)


def test_images_of_windows_apart() -> None:
    x = np.random.default_rng(0).random((2, 3, 8, 12)).astype(np.float32)
    for kernel, stride, padding in (((2, 3), (2, 3), (0, 0)), ((2, 2), (3, 4), (0, 0)),
                                    ((4, 5), (5, 7), (1, 1))):  # fmt: skip
        columns = moves.im2col(x, kernel, stride, padding, **ON)
        found = moves.col2im(columns, (8, 12), kernel, stride, padding, **ON)
        seen = moves.col2im(np.ones_like(columns), (8, 12), kernel, stride, padding, **ON)
        assert np.array_equal(found, x * seen)
        assert np.array_equal(columns_of(found, kernel, stride, padding, (1, 1)), columns)
    with pytest.raises(CheckError, match="their sum is no movement"):
        moves.col2im(np.zeros((2, 27, 96)), (8, 12), 3, 1, 1)
    with pytest.raises(CheckError, match="have 16 windows"):
        moves.col2im(np.zeros((2, 18, 15)), (8, 12), (2, 3), (2, 3))


def test_a_plan_that_is_kept_puts_other_tensors_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU later calls launch what an earlier one found; here the plan is made by hand."""
    monkeypatch.setattr(joined, "OUT_MASK", 0)  # results of NumPy begin anywhere
    parts = [np.arange(3.0 * n).reshape(3, n) for n in (4, 2, 5)]
    out = np.empty((3, 11))
    targets = [out[:, :4], out[:, 4:6], out[:, 6:]]
    found = [
        (each, number, target.ctypes.data - out.ctypes.data)
        for number, (part, target) in enumerate(zip(parts, targets, strict=True))
        for each in copied(view(part, "x"), view(target, "y"), "simulator")
    ]
    (bundle,) = several.bundles(found)

    def launch(pointers: Sequence[int], to: int, stream: int) -> None:
        assert stream == 7
        bundle_on_host(bundle, "simulator", pointers, to)

    again = joined._again([launch], (3, 11), lambda array: array.ctypes.data, lambda: 7)
    others = [part + 7 for part in parts]
    found_again = again(others, [part.ctypes.data for part in others])
    assert np.array_equal(found_again, np.concatenate(others, 1))
    monkeypatch.setattr(joined, "OUT_MASK", -1)
    assert again(others, [part.ctypes.data for part in others]) is None


@pytest.mark.parametrize(("device", "count"), [("simulator", 12), ("c", 4), ("ptx", 3)])
def test_tensors_put_together_in_one_launch(device: Device, count: int) -> None:
    random = np.random.default_rng({"simulator": 0, "c": 1, "ptx": 2}[device])
    for _ in range(count):
        first = drawn(random, int(random.integers(1, 4)), 300)
        axis = int(random.integers(first.ndim))
        parts = [np.repeat(first, int(random.integers(0, 4)), axis) for _ in range(4)]
        parts[-1] = np.asfortranarray(parts[-1])
        found = moves.concatenate(parts, axis, device=device)
        assert same(found, np.concatenate(parts, axis)), [part.shape for part in parts]


def test_more_tensors_than_a_launch_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    made = several._bundle

    def counted(found: Any) -> Any:
        seen.append(len(found))
        return made(found)

    monkeypatch.setattr(several, "_bundle", counted)
    parts = [np.full((2, 5), n, np.int16) for n in range(20)]
    assert same(moves.concatenate(parts, 1, **ON), np.concatenate(parts, 1))
    assert seen == [8, 8, 4]


IMAGE: Any = np.zeros((1, 2, 3, 4), np.float32)


MOVES: Any = moves  # with arguments that its types forbid


@pytest.mark.parametrize("call", [
    lambda x: MOVES.pad([1], 1), lambda x: MOVES.pad(x, 1, "x"), lambda x: MOVES.pad(x, 1, None),
    lambda x: MOVES.pad(x, 1, [1]), lambda x: MOVES.pad(x, 10**12),
    lambda x: MOVES.crop([1], [None]), lambda x: MOVES.crop(x, ["ab", None, None, None]),
    lambda x: MOVES.crop(x, [1, None, None, None]), lambda x: MOVES.crop(x, 4),
    lambda x: MOVES.crop(x, [slice(0, 2, 0), None, None, None]),
    lambda x: MOVES.split(x, "a"), lambda x: MOVES.split(x, 2.0), lambda x: MOVES.split(x, True),
    lambda x: MOVES.split(x, [1.0, 2.0], 2), lambda x: MOVES.concatenate(x),
    lambda x: MOVES.concatenate(3), lambda x: MOVES.concatenate([x > 0, x.astype(np.uint8)]),
    lambda x: MOVES.interleave(3), lambda x: MOVES.deinterleave(x, 2.0, 3),
    lambda x: MOVES.windows(x, 2), lambda x: MOVES.windows(x, (1,) * 5),
    lambda x: MOVES.windows(x, (2.0, 2)), lambda x: MOVES.im2col([1], 2),
    lambda x: MOVES.im2col(x, 2.0), lambda x: MOVES.im2col(x, None),
    lambda x: MOVES.col2im(x, (2, 2), 1), lambda x: MOVES.col2im(x[0], "ab", 1),
    lambda x: MOVES.take([1], [0]), lambda x: MOVES.take(x, [[0], [1, 2]], 1),
])  # fmt: skip
def test_what_is_no_movement_is_refused_in_a_sentence(call: Any) -> None:
    with pytest.raises((CheckError, DeviceError)):
        call(IMAGE)


def test_truth_values_and_generators_are_put_together() -> None:
    truths = IMAGE == 0
    assert same(MOVES.concatenate((each for each in (truths, ~truths)), 1),
                np.concatenate([truths, ~truths], 1))  # fmt: skip
    assert same(moves.interleave([truths, ~truths], 3)[..., 0::2], truths)


def test_frames_of_zeros_of_both_signs() -> None:
    for value in (0.0, -0.0):
        found = moves.pad(np.ones(2, np.float32), 1, value)
        assert np.signbit(found[0]) == np.signbit(value)


def test_an_axis_that_is_none_is_refused() -> None:
    for axis in (2, "1", [1], None):
        with pytest.raises(CheckError, match="has no axis"):
            moves.concatenate([np.zeros((2, 2))], axis)  # type: ignore[arg-type]
