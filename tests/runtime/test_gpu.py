"""Calls on a pretended GPU: what the driver gets, what is checked each time, what comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench.common.kernel import kernels
from tests.runtime import fakes
from tests.runtime.fakes import Machine, Ndarray, aligned, there

from warploom import runtime
from warploom.errors import DeviceError, UnsupportedError
from warploom.runtime import gpu
from warploom.runtime.compile import can_compile, compile_cuda
from warploom.runtime.plan import REMEMBERED


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with fakes.pretended(monkeypatch) as made:
        yield made


class Interfaced:
    """An array on a GPU, as far as an interface tells."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = dict(array.__array_interface__)


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).random(shape, dtype=np.float32)


def stencil(x: Any) -> Any:
    return (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)


def test_an_output_is_made_and_filled(machine: Machine) -> None:
    x = there(floats(102))
    y = runtime.load(kernels.stencil())(x)
    assert isinstance(y, fakes.Tensor)
    np.testing.assert_allclose(y.array, stencil(x.array), rtol=1e-6)
    launched = machine.cuda.launched[0]
    assert (launched.function, launched.grid, launched.block) == ("stencil", (2, 1, 1), (64, 1, 1))
    assert launched.arguments == [100, x.data_ptr(), y.data_ptr()]


def test_a_second_call_plans_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = runtime.load(kernels.stencil())
    kernel(there(floats(102)))
    monkeypatch.setattr(kernel, "plan", None)
    x = there(floats(102))
    np.testing.assert_allclose(kernel(x).array, stencil(x.array), rtol=1e-6)
    with pytest.raises(TypeError):  # another size is another plan
        kernel(there(floats(103)))


def test_everything_but_the_address_is_in_the_key(machine: Machine) -> None:
    """Whatever was accepted before, these are refused."""
    kernel = runtime.load(kernels.transpose())
    x, y = there(floats(6, 8)), there(floats(8, 6))
    assert kernel(x, y, height=6, width=8) is y
    assert np.array_equal(y.array, x.array.T)
    for bad, message in (
        (fakes.Tensor(x.array.astype(np.float64)), "holds float64"),
        (fakes.Tensor(aligned((8, 6), np.float32).T), "not contiguous"),
        (fakes.Tensor(x.array, device=-1), "'x' is in host memory, but 'y' is on a GPU"),
        (fakes.Tensor(x.array, device=1), "on different GPUs"),
        (fakes.Tensor(x.array[:5]), "has 40 elements"),
    ):
        with pytest.raises(DeviceError, match=message):
            kernel(bad, y, height=6, width=8)
    with pytest.raises(DeviceError, match=r"'width' must be an int32, not 8\.0"):
        kernel(x, y, height=6, width=8.0)
    with pytest.raises(DeviceError, match="has 48 elements"):
        kernel(x, y, height=6, width=9)


def test_addresses_are_looked_at_in_every_call(machine: Machine) -> None:
    kernel, weights = runtime.load(kernels.convolution()), np.ones(3, np.float32)
    memory = aligned((2100,), np.float32)
    memory[:] = 1
    x, y = fakes.Tensor(memory[:1000]), fakes.Tensor(memory[1000:2000])
    kernel(x, y, weights)
    with pytest.raises(DeviceError, match="'y' does not start at a multiple of 16 bytes"):
        kernel(x, fakes.Tensor(memory[1001:2001]), weights)
    for first in (996, 0, 4):
        with pytest.raises(DeviceError, match="'y' is written and shares memory with 'x'"):
            kernel(x, fakes.Tensor(memory[first : first + 1000]), weights)
    assert kernel(x, y, weights) is y


def test_the_stream_is_the_current_one_or_the_given_one(machine: Machine) -> None:
    kernel, x = runtime.load(kernels.stencil()), there(floats(102))
    for machine.torch.current in (0, 7, 9, 7):
        kernel(x)
    for stream in (5, SimpleNamespace(ptr=5), SimpleNamespace(cuda_stream=5)):
        kernel(x, stream=stream)
    kernel(x, stream=SimpleNamespace(__cuda_stream__=lambda: (0, 6)))
    assert [each.stream for each in machine.cuda.launched] == [0, 7, 9, 7, 5, 5, 5, 6]
    with pytest.raises(UnsupportedError, match="a str is no CUDA stream"):
        kernel(x, stream="fast")
    array = Ndarray(x.array)
    machine.cupy.current = 11
    kernel(array)
    kernel(Interfaced(x.array), Interfaced(aligned((100,), np.float32)))
    assert [each.stream for each in machine.cuda.launched[-2:]] == [11, 0]


def test_prepared_launches_only_launch(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = runtime.load(kernels.stencil())
    x, y = there(floats(102)), there(floats(100))
    launch, on_five = kernel.prepare(x, y), kernel.prepare(x, y, stream=5)
    monkeypatch.setattr(kernel, "plan", None)
    x.array[:] = floats(102)[::-1]
    for machine.torch.current in (0, 3):
        launch()
        on_five()
    np.testing.assert_allclose(y.array, stencil(x.array), rtol=1e-6)
    assert [each.stream for each in machine.cuda.launched] == [0, 5, 3, 5]
    with pytest.raises(DeviceError, match="given all its arrays"):
        runtime.load(kernels.stencil()).prepare(x)


def test_constants_are_passed_by_value_as_they_are_now(machine: Machine) -> None:
    kernel, weights = runtime.load(kernels.convolution()), np.array([0.5, 2, -1], np.float32)
    x = there(floats(1000))
    for given in (weights, fakes.Tensor(weights, device=-1)):
        y = kernel(x, given)
        wanted = sum(w * np.roll(x.array, 1 - d) for d, w in enumerate(weights))
        np.testing.assert_allclose(y.array, wanted, rtol=1e-5)
        weights += 1
    assert machine.cuda.launched[1].arguments[3].tolist() == [1.5, 3.0, 0.0]
    with pytest.raises(DeviceError, match="'w' is passed by value"):
        kernel(x, there(weights))


def test_cupy_and_interfaces(machine: Machine) -> None:
    kernel, x = runtime.load(kernels.stencil()), floats(102)
    y = kernel(Ndarray(x))
    assert isinstance(y, Ndarray)
    np.testing.assert_allclose(y.array, stencil(x), rtol=1e-6)
    out = Interfaced(np.zeros(100, np.float32))
    assert kernel(Interfaced(x), out) is out
    np.testing.assert_allclose(out.array, stencil(x), rtol=1e-6)
    with pytest.raises(DeviceError, match="cannot be made"):
        kernel(Interfaced(x))


def test_a_gradient_is_not_lost_in_silence(machine: Machine) -> None:
    kernel, x = runtime.load(kernels.stencil()), there(floats(102), requires_grad=True)
    for _ in range(2):
        machine.torch.recording = True
        with pytest.raises(DeviceError, match="wants a gradient"):
            kernel(x)
        machine.torch.recording = False
        np.testing.assert_allclose(kernel(x).array, stencil(x.array), rtol=1e-6)


def test_a_thread_without_a_context_gets_one(machine: Machine) -> None:
    kernel, x = runtime.load(kernels.stencil()), there(floats(102))
    kernel(x)
    for status in (201, 400):
        machine.cuda.failures = [status]
        kernel(x)
        assert machine.cuda.launched[-1].context == 1000
        assert machine.cuda.contexts == []
    machine.cuda.failures = [700]
    with pytest.raises(DeviceError, match=r"the launch failed: CUDA_ERROR_OTHER \(700\)"):
        kernel(x)
    machine.cuda.failures = [201, 201]
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_CONTEXT"):
        kernel(x)
    kernel(x)


def test_outputs_are_made_the_quick_way_where_that_is_known_to_be_right(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, guards = runtime.load(kernels.stencil()), machine.torch._C._dynamo.guards
    x = there(floats(102))
    kernel(x), kernel(x)
    assert machine.torch.quick == machine.torch.made == 3  # one was made to see what it is
    for other in (None, lambda *_: None, lambda shape, strides, kind: fakes.Tensor(np.empty(6))):
        monkeypatch.setattr(guards, "_empty_strided_cuda", other)
        machine.torch.made = 0
        y = runtime.load(kernels.stencil())(x)
        assert machine.torch.made == 1
        np.testing.assert_allclose(y.array, stencil(x.array), rtol=1e-6)


def test_outputs_are_made_on_the_gpu_of_the_inputs(machine: Machine) -> None:
    machine.torch.devices = machine.cuda.devices = 2
    kernel = runtime.load(kernels.stencil())
    for machine.torch.selected in (0, 1):
        for device in (0, 1):
            assert kernel(there(floats(102), device)).get_device() == device


def test_an_array_without_memory_is_not_launched_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, x = runtime.load(kernels.stencil()), there(floats(102))
    kernel(x)
    monkeypatch.setattr(x, "data_ptr", lambda: 0)
    with pytest.raises(DeviceError, match="'x' has no memory"):
        kernel(x)


def test_every_gpu_has_its_own_function(machine: Machine) -> None:
    machine.torch.devices = machine.cuda.devices = 2
    kernel = runtime.load(kernels.stencil())
    for device in (0, 1, 0, 1):
        y = kernel(there(floats(102), device))
        assert y.get_device() == device
    assert machine.cuda.loaded == [(1000, "stencil"), (1001, "stencil")]


def test_threads_do_not_share_arguments(machine: Machine) -> None:
    """A launch of another thread comes between filling the table and the driver reading it."""
    kernel = runtime.load(kernels.stencil())
    inner, real = there(floats(102) + 1), machine.cuda.cuLaunchKernelEx
    got: list[Any] = []
    waiting = True

    def interrupted(*arguments: Any) -> int:
        nonlocal waiting
        if waiting:
            waiting = False
            thread = threading.Thread(target=lambda: got.append(kernel(inner)))
            thread.start()
            thread.join()
        return real(*arguments)

    machine.cuda.cuLaunchKernelEx = interrupted  # type: ignore[assignment,method-assign]
    x = there(floats(102))
    np.testing.assert_allclose(kernel(x).array, stencil(x.array), rtol=1e-6)
    np.testing.assert_allclose(got[0].array, stencil(inner.array), rtol=1e-6)


def test_plans_are_not_kept_for_ever(machine: Machine) -> None:
    kernel = runtime.load(kernels.stencil())
    for n in range(REMEMBERED + 10):
        kernel._plans["pretended", n] = None  # type: ignore[assignment]
    kernel(there(floats(102)))
    assert len(kernel._plans) < REMEMBERED


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_a_text_of_ones_own(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def compiled(text: str, arch: str, **options: Any) -> Any:
        made = compile_cuda(text, arch, **options)
        seen.append(made.code[:4])
        return made

    monkeypatch.setattr(gpu, "compile_cuda", compiled)
    x, y = there(floats(102)), there(floats(100))
    text = 'extern "C" __global__ void stencil(const int n, const float* x, float* y) {}'
    machine.cuda.kernels["stencil"] = kernels.stencil()
    bound = gpu.load_function(text, "stencil")
    launch = bound.bind((2, 1, 1), (64, 1, 1), [np.int32(100), x.data_ptr(), y.data_ptr()], 3)
    launch()
    assert seen == [b"\x7fELF"]
    assert machine.cuda.launched[0].arguments == [100, x.data_ptr(), y.data_ptr()]
    assert machine.cuda.launched[0].stream == 3


def test_the_name_of_the_gpu(machine: Machine) -> None:
    assert gpu.gpu_name() == "pretended 0"
    assert gpu.gpu_name(1) is None
