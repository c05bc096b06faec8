"""Stand-ins for the CUDA driver, PyTorch and CuPy: what would be launched, and what it would do.

"Device memory" is host memory. The driver reads the arguments of a launch from the addresses it is
given, as the real one does, keeps them, and lets the simulator run the kernel.
"""

# ruff: noqa: N802 - the names are the driver's

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warploom.emit.cuda import cuda as emit_cuda
from warploom.emit.spell import function_name
from warploom.index.evaluate import evaluate
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.runtime import gpu, library
from warploom.runtime.compile import Compiled
from warploom.runtime.driver import Driver, LaunchConfig


@dataclass(frozen=True)
class Launched:
    """One launch as the driver saw it; arrays are addresses."""

    function: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    stream: int
    context: int | None
    arguments: list[Any]


@dataclass
class Cuda:
    """The driver's library. A launch runs the kernel that `kernels` has by the function's name."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    launched: list[Launched] = field(default_factory=list)
    loaded: list[tuple[int, str]] = field(default_factory=list)  # context and name
    contexts: list[int] = field(default_factory=list)  # the stack of the only thread
    failures: list[int] = field(default_factory=list)  # statuses of the next launches
    devices: int = 1
    asked: dict[str, int] = field(default_factory=dict)  # dynamic shared memory, by function
    allowed: list[tuple[int, int]] = field(default_factory=list)  # attributes that were set

    def emitted(self, kernel: Kernel) -> str:
        """A kernel whose text is asked for can be launched."""
        self.kernels[function_name(kernel, "cuda")] = kernel
        return emit_cuda(kernel)

    def cuInit(self, flags: int) -> int:
        return 0

    def cuGetErrorName(self, status: int, name: Any) -> int:
        name._obj.value = {201: b"CUDA_ERROR_INVALID_CONTEXT"}.get(status, b"CUDA_ERROR_OTHER")
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = number
        return 0 if number < self.devices else 101

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = f"pretended {device.value}".encode()
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        context._obj.value = 1000 + device.value
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.contexts.append(context.value)
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        context._obj.value = self.contexts.pop()
        return 0

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:
        module._obj.value = 5
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        self.loaded.append((self.contexts[-1], name.decode()))
        function._obj.value = 76 + len(self.loaded)
        return 0

    def cuModuleGetGlobal_v2(self, place: Any, size: Any, module: Any, name: bytes) -> int:
        function = name.decode().removesuffix("_shared_bytes")
        if function not in self.asked:
            return 500
        place._obj.value, size._obj.value = self.asked[function], 4
        return 0

    def cuMemcpyDtoH_v2(self, to: Any, place: Any, size: Any) -> int:
        assert size.value == 4
        to._obj.value = place.value  # what is there is its own address
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        self.allowed.append((attribute, value))
        return 0

    def cuLaunchKernelEx(self, config: Any, function: Any, table: Any, extra: None) -> int:
        assert extra is None
        if self.failures and (status := self.failures.pop(0)):
            return status
        held: LaunchConfig = config._obj
        _, name = self.loaded[_handle(function) - 77]
        kernel = self.kernels[name]
        arguments = [
            _read(param, address)
            for param, address in zip(kernel.params, list(table._obj), strict=True)
        ]
        context = self.contexts[-1] if self.contexts else None
        sides = tuple(held.grid), tuple(held.block)
        self.launched.append(Launched(name, *sides, held.stream or 0, context, arguments))
        run(kernel, _arrays(kernel, arguments))
        return 0


def _handle(function: Any) -> int:
    """The handle in an argument that ctypes made beforehand; it shows only in its text."""
    return int(repr(function).rpartition("(")[2].rstrip(")>"), 16)


def _read(param: Any, address: int) -> Any:
    if not isinstance(param, ArrayParam):
        return np.frombuffer(ctypes.string_at(address, param.dtype.bytes), param.dtype.numpy)[0]
    if param.space == "global":
        return ctypes.c_uint64.from_address(address).value
    size = int(evaluate(param.size, {})) * param.dtype.bytes
    return np.frombuffer(ctypes.string_at(address, size), param.dtype.numpy)


def _arrays(kernel: Kernel, arguments: Sequence[Any]) -> list[Any]:
    """The arguments as the simulator takes them."""
    named = {p.name: a for p, a in zip(kernel.params, arguments, strict=True)}
    scalars = {p.name: named[p.name].item() for p in kernel.scalars}
    found = []
    for param in kernel.params:
        given = scalars.get(param.name, named[param.name])
        if isinstance(param, ArrayParam) and param.space == "global":
            size = int(evaluate(param.size, scalars)) * param.dtype.bytes
            memory = (ctypes.c_ubyte * size).from_address(given)
            given = np.frombuffer(memoryview(memory), param.dtype.numpy)
        found.append(given)
    return found


# -- PyTorch ---------------------------------------------------------------------------------------


class Tensor:
    """A tensor over memory of NumPy's."""

    def __init__(self, array: Any, device: int = 0, requires_grad: bool = False) -> None:
        self.array, self._device, self.requires_grad = array, device, requires_grad
        self.calls: list[str] = []

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        return TORCH_TYPES[self.array.dtype.name]

    @property
    def device(self) -> Any:
        return SimpleNamespace(type="cpu" if self._device < 0 else "cuda", index=self._device)

    def get_device(self) -> int:
        return self._device

    def stride(self) -> tuple[int, ...]:
        return tuple(each // self.array.itemsize for each in self.array.strides)

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def detach(self) -> Tensor:
        return Tensor(self.array, self._device)

    def numpy(self) -> Any:
        assert self._device < 0
        return self.array


Tensor.__module__ = "torch"


class TorchType:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


TORCH_TYPES = {
    name: TorchType(name)
    for name in ("float32", "float64", "int32", "int64", "uint8", "uint32", "float16")
}


class Torch(SimpleNamespace):
    """The module, with a current stream and a mode that records gradients."""

    def __init__(self) -> None:
        super().__init__(**TORCH_TYPES)
        self.Tensor = Tensor
        self.nn = SimpleNamespace(Parameter=type("Parameter", (Tensor,), {}))
        self.current, self.recording, self.made = 0, True, 0
        self.selected, self.devices, self.quick = 0, 1, 0
        guards = SimpleNamespace(_empty_strided_cuda=self._quick)
        self._C = SimpleNamespace(
            _cuda_getCurrentRawStream=lambda device: self.current,
            _cuda_getDevice=lambda: self.selected,
            _dynamo=SimpleNamespace(guards=guards),
        )
        self.cuda = SimpleNamespace(device_count=lambda: self.devices)
        self.device = lambda text: text

    def is_grad_enabled(self) -> bool:
        return self.recording

    def empty_strided(self, shape: Any, strides: Any, *, dtype: TorchType, device: str) -> Tensor:
        self.made += 1
        number = -1 if device == "cpu" else int(device.removeprefix("cuda:"))
        made = self.Tensor(aligned(shape, dtype.name), number)
        assert made.stride() == strides or made.array.size == 0
        return made

    def _quick(self, shape: Any, strides: Any, dtype: TorchType) -> Tensor:
        self.quick += 1
        return self.empty_strided(shape, strides, dtype=dtype, device=f"cuda:{self.selected}")


class Ndarray:
    """An array of CuPy over memory of NumPy's."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.data = SimpleNamespace(ptr=int(array.ctypes.data), device_id=0)
        self.device = SimpleNamespace(id=0)
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.__cuda_array_interface__ = dict(array.__array_interface__)


Ndarray.__module__ = "cupy"


class Cupy(SimpleNamespace):
    def __init__(self) -> None:
        self.current = 0
        cuda = SimpleNamespace(
            get_current_stream=lambda: SimpleNamespace(ptr=self.current),
            runtime=SimpleNamespace(getDeviceCount=lambda: 1),
        )
        super().__init__(ndarray=Ndarray, cuda=cuda, current=0)

    def empty(self, shape: Any, dtype: Any) -> Ndarray:
        return Ndarray(aligned(shape, dtype))


def aligned(shape: Any, dtype: Any) -> Any:
    """An array that begins at a multiple of 256 bytes, as allocators of GPU memory have it."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    memory = np.empty(size + 256, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + size].view(kind).reshape(shape)


def there(array: Any, device: int = 0, **options: Any) -> Tensor:
    """An array as a tensor on the pretended GPU."""
    moved = aligned(array.shape, array.dtype)
    moved[...] = array
    return Tensor(moved, device, **options)


@dataclass
class Machine:
    cuda: Cuda
    torch: Torch
    cupy: Cupy


@contextmanager
def pretended(monkeypatch: pytest.MonkeyPatch, torch: Torch | None = None) -> Iterator[Machine]:
    """A machine with a GPU, PyTorch and CuPy."""
    cuda = Cuda()
    torch, cupy = torch or Torch(), Cupy()
    driver = Driver(cuda)
    modules = {"torch": torch, "cupy": cupy}
    with monkeypatch.context() as patch:
        patch.setattr(gpu, "open_driver", lambda: driver)
        patch.setattr(gpu, "compile_cuda", _compiled)
        patch.setattr(gpu, "cuda", cuda.emitted)
        patch.setattr(library, "import_module", modules.__getitem__)
        yield Machine(cuda, torch, cupy)
    for kind in (torch.Tensor, torch.nn.Parameter, Ndarray):
        library.READERS.pop(kind, None)


def _compiled(text: str, arch: str, **options: Any) -> Compiled:
    assert text
    assert arch == "sm_90"
    return Compiled(b"\x7fELF", "cubin", arch, "", "pretended")
