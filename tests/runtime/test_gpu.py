"""The launch layer against stand-ins for cuda.core, the driver and CuPy: what would be launched."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.kernel import kernels

from warploom import runtime
from warploom.errors import UnsupportedError
from warploom.runtime import gpu
from warploom.runtime.compile import can_compile

pytestmark = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")


class Tensor:
    """An array on a GPU, as far as a launch can tell."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "<f4", "data": (pointer, False), "version": 3
        }  # fmt: skip


class Core:
    """Keeps what a launch through cuda.core is given."""

    def __init__(self) -> None:
        self.launched: list[Any] = []
        self.LaunchConfig = lambda **options: SimpleNamespace(**options)
        self.Stream = SimpleNamespace(from_handle=lambda handle: f"stream {handle}")
        self.ObjectCode = SimpleNamespace(from_cubin=self._load)

    def Device(self, number: int = 0) -> Any:  # noqa: N802  (cuda.core's name)
        return SimpleNamespace(
            compute_capability=(9, 0), set_current=lambda: None, default_stream="default stream"
        )

    def _load(self, code: bytes) -> Any:
        assert code[:4] == b"\x7fELF"
        return SimpleNamespace(get_kernel=lambda name: SimpleNamespace(name=name, handle=77))

    def launch(self, stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        self.launched.append((stream, config, kernel.name, arguments))


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    fake = Core()
    monkeypatch.setattr(gpu, "_cuda_core", lambda: fake)
    return fake


def test_a_launch_through_cuda_core(core: Core) -> None:
    x, y = Tensor(4096, 102), Tensor(8192, 100)
    assert runtime.load(kernels.stencil())(x, y) is y
    stream, config, name, arguments = core.launched[0]
    assert (stream, name) == ("default stream", "stencil")
    assert (config.grid, config.block) == ((2, 1, 1), (64, 1, 1))
    assert arguments == (np.int32(100), 4096, 8192)
    assert isinstance(arguments[0], np.int32)


def test_streams(core: Core) -> None:
    kernel = runtime.load(kernels.stencil())
    x, y = Tensor(4096, 102), Tensor(8192, 100)
    for stream in (5, SimpleNamespace(ptr=5), SimpleNamespace(cuda_stream=5)):
        kernel(x, y, stream=stream)
    assert [each[0] for each in core.launched] == ["stream 5"] * 3
    with pytest.raises(UnsupportedError, match="a str is no CUDA stream"):
        kernel(x, y, stream="fast")


def test_prepared_launches_only_launch(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = runtime.load(kernels.stencil()).prepare(Tensor(4096, 102), Tensor(8192, 100))
    monkeypatch.setattr(gpu, "_pack", None)
    launch()
    launch()
    assert core.launched[0] == core.launched[1]


def test_constants_are_passed_by_value(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def launch_kernel(function: int, *rest: Any) -> tuple[int]:
        where = (ctypes.c_uint64 * 4).from_address(rest[-2])
        n = ctypes.c_int32.from_address(where[0]).value
        pointers = [ctypes.c_uint64.from_address(where[i]).value for i in (1, 2)]
        weights = list((ctypes.c_float * 3).from_address(where[3]))
        seen.append((function, rest[:6], n, pointers, weights))
        return (0,)

    driver = SimpleNamespace(CUfunction=int, CUstream=int, cuLaunchKernel=launch_kernel)
    monkeypatch.setattr(gpu, "import_module", lambda name: driver)
    weights = np.array([0.5, 2, -1], np.float32)
    runtime.load(kernels.convolution())(Tensor(4096, 1000), Tensor(16384, 1000), weights)
    expected = (77, (4, 1, 1, 64, 1, 1), 1000, [4096, 16384], [0.5, 2.0, -1.0])
    assert seen == [expected]
    assert core.launched == []


def test_a_launch_through_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def get_function(name: str) -> Any:
        return lambda grid, block, arguments, stream: seen.append((name, grid, block, arguments))

    module = SimpleNamespace(load=lambda code: None, get_function=get_function)
    cuda = SimpleNamespace(
        Device=lambda number: SimpleNamespace(compute_capability="90"),
        function=SimpleNamespace(Module=lambda: module),
        Stream=SimpleNamespace(null=None),
    )
    monkeypatch.setattr(gpu, "_cuda_core", lambda: None)
    monkeypatch.setattr(gpu, "_cupy", lambda: SimpleNamespace(cuda=cuda))
    weights = np.array([0.5, 2, -1], np.float32)
    runtime.load(kernels.convolution())(Tensor(4096, 8), Tensor(16384, 8), weights)
    name, grid, block, arguments = seen[0]
    assert (name, grid, block) == ("convolution", (1, 1, 1), (64, 1, 1))
    assert arguments[:3] == (np.int32(8), 4096, 16384)
    assert arguments[3].shape == ()
    assert arguments[3].tobytes() == weights.tobytes()
