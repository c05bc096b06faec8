"""A loaded kernel says what is wrong with its arguments, and writes nothing when it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.kernel import kernels
from tests.tools import require

from warploom import runtime
from warploom.errors import CheckError, DeviceError, UnsupportedError
from warploom.kernel.build import Builder, ceil_div, from_index
from warploom.kernel.dtype import f32, i32
from warploom.runtime import driver, gpu, opencl
from warploom.runtime.view import view


def floats(size: int) -> Any:
    return np.arange(size, dtype=np.float32)


def test_ways_to_call() -> None:
    kernel = runtime.load(kernels.stencil())
    x, y = floats(102), floats(100)
    expected = x[1:-1]
    for result in (kernel(100, x, y), kernel(x, y), kernel(x), kernel(x, y, n=100)):
        np.testing.assert_allclose(result, expected)
    assert kernel(x, y) is y
    assert repr(kernel) == "<warploom kernel stencil(n, x, y) on auto>"


def test_arrays_of_any_shape() -> None:
    kernel = runtime.load(kernels.transpose())
    x, y = floats(15).reshape(3, 5), np.zeros((5, 3), np.float32)
    assert np.array_equal(kernel(x, y, height=3, width=5), x.T)


def test_several_outputs() -> None:
    k = Builder("two", block=32)
    n = k.scalar("n")
    x = k.array("x", i32, n, const=True)
    y, z = k.array("y", i32, n), k.array("z", i32, n * 2)
    k.grid(ceil_div(n, 32))
    i, v = k.let("i", k.block_x * 32 + k.thread), k.register("v", i32)
    k.set(v, x.at(i, when=i.lt(n)))
    y.put(i, v + 1, when=i.lt(n))
    with k.loop("j", 2) as j:
        z.put(2 * i + j, v * 2, when=i.lt(n))
    y_out, z_out = runtime.load(k.done())(np.arange(5, dtype=np.int32))
    assert y_out.tolist() == [1, 2, 3, 4, 5]
    assert z_out.tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]


@pytest.mark.parametrize("device", ["auto", "c", "opencl", "ptx"])
def test_of_nothing_nothing_is_made(device: Any) -> None:
    """No launch has no block; one of an array that is written nowhere is refused as before."""
    if device != "auto":
        require(device)
    k = Builder("twice", block=32)
    n = k.scalar("n")
    x, y = k.array("x", i32, n, const=True), k.array("y", i32, n)
    k.require(n.ge(1))  # of a launch, and there is none
    k.grid(ceil_div(n, 32))
    i, v = k.let("i", k.block_x * 32 + k.thread), k.register("v", i32)
    k.set(v, x.at(i, when=i.lt(n)))
    y.put(i, v, when=i.lt(n))
    function = runtime.load(k.done(), device)
    nothing = np.zeros(0, np.int32)
    assert function(nothing).shape == (0,)
    function.prepare(nothing, nothing.copy())()
    with pytest.raises(DeviceError, match="'y' holds float32"):
        function(nothing, np.zeros(0, np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((floats(102).astype(np.float64), floats(100)), "'x' holds float64"),
        ((floats(102), floats(99)), "'y' has 99 elements, but the kernel needs n = 100"),
        ((floats(204)[::2], floats(100)), "'x' is not contiguous"),
        ((floats(0), floats(0)), "'x' is empty"),
        (([1.0, 2.0], floats(100)), "'x' is of type list, which is no array"),
        ((np.ma.masked_less(floats(102), 3), floats(100)), "'x': a mask, which kernels do not"),
        ((floats(102).astype(">f4"), floats(100)), "'x': .*byte order"),
        ((floats(102).astype(np.complex64), floats(100)), "'y' has 100 .* needs n = 202"),
        ((floats(102).astype("M8[s]"), floats(100)), "'x': .*no element type datetime64"),
        ((1, 2, 3, 4), r"takes \(n, x, y\), but 4 arguments"),
        ((), r"takes \(n, x, y\), but 0 arguments"),
        ((floats(102), "text"), "'y' is of type str"),
        ((floats(102), 5), "'y' must be an array"),
    ],
)
@pytest.mark.parametrize("device", ["auto", "c", "ptx"])
def test_wrong_arguments(arguments: tuple[Any, ...], message: str, device: Any) -> None:
    before = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    with pytest.raises(DeviceError, match=message):
        runtime.load(kernels.stencil(), device)(*arguments)
    for each, kept in zip(arguments, before, strict=True):
        assert each is kept or np.array_equal(each, kept)


def test_a_read_only_output() -> None:
    y = floats(100)
    y.flags.writeable = False
    with pytest.raises(DeviceError, match="'y' is written, but the array is read-only"):
        runtime.load(kernels.stencil())(floats(102), y)


def test_an_output_that_is_also_an_input() -> None:
    data = floats(102)
    kept = data.copy()
    with pytest.raises(DeviceError, match="'y' is written and shares memory with 'x'"):
        runtime.load(kernels.stencil())(data, data[:100])
    assert np.array_equal(data, kept)


def test_a_failed_run_writes_nothing() -> None:
    k = Builder("racing", block=32)
    y = k.array("y", i32, 33)
    y[k.thread] = from_index(1)
    y[k.thread + 1] = from_index(2)
    out = np.zeros(33, np.int32)
    with pytest.raises(DeviceError, match="race"):
        runtime.load(k.done(), "simulator")(out)
    assert not out.any()


def test_an_unknown_device_and_a_bad_kernel() -> None:
    with pytest.raises(DeviceError, match="no device 'gpu'"):
        runtime.load(kernels.stencil(), "gpu")  # type: ignore[arg-type]
    with pytest.raises(CheckError):
        runtime.load(kernels.stencil(checked=False))


def test_host_arrays_do_not_run_on_a_gpu() -> None:
    with pytest.raises(DeviceError, match="in host memory, but the kernel is loaded for 'cuda'"):
        runtime.load(kernels.stencil(), "cuda")(floats(102), floats(100))


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(opencl, "import_module", absent)
    with pytest.raises(UnsupportedError, match="pyopencl") as caught:
        runtime.load(kernels.stencil(), "opencl")(floats(102), floats(100))
    assert ".[opencl]" in str(caught.value)


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver.open_driver.cache_clear()
    monkeypatch.setattr(driver, "CUDA_LIBRARIES", ("libno-such-driver.so",))
    assert gpu.gpu_name() is None
    with pytest.raises(DeviceError, match="there is no CUDA driver on this machine"):
        gpu.load_function("", "f")


def test_prepared_launches_run_again() -> None:
    x, y = floats(102), np.zeros(100, np.float32)
    launch = runtime.load(kernels.stencil(), "c").prepare(x, y)
    for _ in range(2):
        y[:] = 0
        launch()
        np.testing.assert_allclose(y, x[1:-1])


class OnGpu:
    """Something that says it is on a GPU."""

    def __init__(self, strides: tuple[int, ...] | None = None, typestr: str = "<f4") -> None:
        data = (512, False)
        self.__cuda_array_interface__ = {
            "shape": (4, 3), "typestr": typestr, "data": data, "strides": strides, "version": 3
        }  # fmt: skip


class Packed:
    """Something with DLPack and nothing else."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_views_share_memory() -> None:
    array = floats(12).reshape(3, 4)
    packed = view(Packed(array), "x")
    assert packed.pointer == array.ctypes.data
    assert (packed.size, packed.dtype, packed.where) == (12, f32, "host")
    on_gpu = view(OnGpu(), "x")
    assert (on_gpu.pointer, on_gpu.size, on_gpu.where, on_gpu.contiguous) == (512, 12, "gpu", True)
    assert view(OnGpu((12, 4)), "x").contiguous
    assert not view(OnGpu((4, 16)), "x").contiguous


def test_views_of_strange_things() -> None:
    with pytest.raises(DeviceError, match=r"'x': .*no element type"):
        view(OnGpu(typestr="<f16"), "x")
    with pytest.raises(DeviceError, match="'x' is of type int"):
        view(3, "x")


def test_dlpack_arguments_are_used_as_they_are() -> None:
    x, y = floats(102), np.zeros(100, np.float32)
    kernel = runtime.load(kernels.stencil())
    if not np.from_dlpack(y).flags.writeable:
        with pytest.raises(DeviceError, match=r"'y' is written[^$]*NumPy 2\.3"):
            kernel(Packed(x), Packed(y))
        return
    kernel(Packed(x), Packed(y))
    np.testing.assert_allclose(y, x[1:-1])


def test_mixed_places_and_constants_on_a_gpu() -> None:
    kernel = runtime.load(kernels.transpose())
    with pytest.raises(DeviceError, match="'y' is in host memory, but 'x' is on a GPU"):
        kernel(OnGpu(), floats(12), height=3, width=4)
    weights = OnGpu()
    weights.__cuda_array_interface__["shape"] = (3,)
    with pytest.raises(DeviceError, match="'w' is passed by value"):
        runtime.load(kernels.convolution())(floats(8), floats(8), weights)


def test_a_stream_is_not_ignored_on_the_host() -> None:
    kernel = runtime.load(kernels.transpose())
    with pytest.raises(DeviceError, match="a stream is given, but the arrays are in host memory"):
        kernel(floats(12), floats(12), height=3, width=4, stream=0)


def test_numbers_are_told_apart_by_their_bits() -> None:
    k = Builder("product", block=1)
    y, a = k.array("y", f32, 1), k.number("a", f32)
    y[0] = a * 1.0
    kernel = runtime.load(k.done())
    numbers: tuple[Any, ...] = (0.0, -0.0, 0.0, np.float32(-0.0))
    for number in numbers:
        assert np.signbit(kernel(floats(1), number)[0]) == np.signbit(number)
        assert np.signbit(kernel(floats(1), a=number)[0]) == np.signbit(number)
    before = len(kernel._plans)
    for _ in range(3):
        assert np.isnan(kernel(floats(1), np.nan)[0])
        assert np.isnan(kernel(floats(1), float("nan"))[0])
    assert len(kernel._plans) == before + 1
    wrongs: tuple[Any, ...] = ([3.0], "3", None)
    for wrong in wrongs:
        with pytest.raises(DeviceError, match="'a' is a number, not"):
            kernel(floats(1), a=wrong)


def test_a_call_that_fails_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a class of their own are looked at each time; what fails may have run by then."""

    class Own(np.ndarray):
        pass

    kernel, calls = runtime.load(kernels.stencil()), []

    def fail(*_: Any) -> None:
        calls.append(1)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(kernel, "launch", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        kernel(floats(102).view(Own), floats(100))
    assert len(calls) == 1
