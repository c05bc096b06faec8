"""What a call needs of an array library: arrays read fast, new ones made, the current stream.

PyTorch, CuPy and NumPy are known; none of them is imported before an array of it was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, Protocol, TypeAlias

import numpy as np

from warploom.errors import DeviceError
from warploom.kernel.dtype import DType
from warploom.runtime.view import Shape, library_of

Move: TypeAlias = Callable[[Any], Any]

# What an argument is but for its address, and the address. Equal keys mean equal launches.
Reader: TypeAlias = Callable[[Any], tuple[Hashable, int]]

# By the exact class: a subclass may mean something else by the same names.
READERS: dict[type, Reader] = {}


def read_torch(tensor: Any) -> tuple[Hashable, int]:
    return (
        tensor.shape,
        tensor.dtype,
        tensor.get_device(),
        tensor.stride(),
        tensor.requires_grad,
        tensor.is_neg(),
    ), tensor.data_ptr()


def read_cupy(array: Any) -> tuple[Hashable, int]:
    memory = array.data
    return (array.shape, array.dtype, memory.device_id, array.strides), memory.ptr


def read_numpy(array: Any) -> tuple[Hashable, int]:
    key = array.shape, array.dtype, array.strides, array.flags.writeable
    return key, array.__array_interface__["data"][0]


def read_number(number: float) -> tuple[Hashable, int]:
    return number_key(number), 0


def number_key(number: float) -> Hashable:
    """By bits: 0.0 and −0.0 are equal but launch differently, and NaN is not even itself."""
    return type(number), number.hex() if isinstance(number, float) else number


READERS |= {np.ndarray: read_numpy, int: read_number, float: read_number}


def reader_of(argument: Any) -> Reader | None:
    """How to read an argument of a class that was not met before; None if it has to be looked at
    each time."""
    found: Reader | None = None
    match library_of(argument):
        case "torch":
            torch = import_module("torch")
            if type(argument) in (torch.Tensor, torch.nn.Parameter):
                found = read_torch
        case "cupy":
            if type(argument) is import_module("cupy").ndarray:
                found = read_cupy
    if found is not None:
        READERS[type(argument)] = found
    return found


def bits_of(array: Any) -> Move | None:
    """What shows the elements of an array as bytes, where they have one of a type that kernels
    lack; None if they have it."""
    name = str(getattr(array, "dtype", "")).rpartition(".")[2]
    if name != "bool" and not name.startswith("float8"):
        return None
    byte = import_module("torch").uint8 if library_of(array) == "torch" else np.uint8
    return lambda given: given.view(byte)


def blank(array: Any, shape: Shape) -> Any:
    """A new array of the same library, type and device, its elements undefined."""
    new = getattr(array, "new_empty", None)
    if new is not None:
        return new(shape)
    name = library_of(array)
    if name not in ("numpy", "cupy"):
        raise DeviceError(f"an array like a {name} array cannot be made", advice="use CuPy's")
    return import_module(name).empty(shape, array.dtype)


class Library(Protocol):
    """A library whose arrays lie on a GPU, or in host memory."""

    def maker(self, shape: Shape, dtype: DType, device: int) -> Callable[[], Any]:
        """What makes a new array, its elements undefined."""
        ...

    def pointer(self, array: Any) -> int: ...

    def stream(self, device: int) -> Callable[[], int]:
        """What tells the address of the current stream."""
        ...

    def wants_gradients(self) -> bool:
        """Whether what is computed now is recorded for a gradient."""
        ...

    def recorded(self, run: Callable[..., Any], back: Move, *arrays: Any) -> Any:
        """What `run` makes of arrays, recorded: `back` makes their gradients of the result's, as a
        tuple where there are several."""
        ...


def _strides(shape: Shape) -> Shape:
    """The row-major strides of an array, in elements.

    >>> _strides((4, 3, 2))
    (6, 2, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class _NumpyArrays:
    def maker(self, shape: Shape, dtype: DType, device: int) -> Callable[[], Any]:  # noqa: ARG002
        return partial(np.empty, shape, dtype.numpy)

    def pointer(self, array: Any) -> int:
        return int(array.ctypes.data)

    def stream(self, device: int) -> Callable[[], int]:  # noqa: ARG002
        return int

    def wants_gradients(self) -> bool:
        return False

    def recorded(self, run: Callable[..., Any], back: Move, *arrays: Any) -> Any:  # noqa: ARG002
        return run(*arrays)


class _TorchArrays:
    def __init__(self) -> None:
        self._torch = import_module("torch")
        self.pointer = self._torch.Tensor.data_ptr

    def maker(self, shape: Shape, dtype: DType, device: int) -> Callable[[], Any]:
        torch, strides = self._torch, _strides(shape)
        where = torch.device("cpu" if device < 0 else f"cuda:{device}")
        kind = getattr(torch, dtype.value)
        make = partial(torch.empty_strided, shape, strides, dtype=kind, device=where)
        quick, current = self._quick(device), getattr(torch._C, "_cuda_getDevice", None)
        if quick is None:
            return make
        if torch.cuda.device_count() == 1:
            return partial(quick, shape, strides, kind)
        if current is None:
            return make
        # The quick way makes arrays on the current GPU.
        return lambda: quick(shape, strides, kind) if current() == device else make()

    def _quick(self, device: int) -> Any:
        """How PyTorch's own compilers make arrays, at a third of the cost; None where this version
        has no such function, or one that does something else."""
        guards = getattr(getattr(self._torch._C, "_dynamo", None), "guards", None)
        quick = getattr(guards, "_empty_strided_cuda", None)
        if device < 0 or quick is None:
            return None
        try:
            tried = quick((2, 3), (3, 1), self._torch.float64)
            right = (
                tuple(tried.shape) == (2, 3)
                and tuple(tried.stride()) == (3, 1)
                and tried.dtype is self._torch.float64
                and tried.device.type == "cuda"
                and type(tried) is self._torch.Tensor
            )
        except (RuntimeError, TypeError, AttributeError):
            return None
        return quick if right else None

    def stream(self, device: int) -> Callable[[], int]:
        # PyTorch's own compilers ask this way; the public way makes an object for each question.
        raw = getattr(self._torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return partial(raw, device)
        return lambda: int(self._torch.cuda.current_stream(device).cuda_stream)

    def wants_gradients(self) -> bool:
        return bool(self._torch.is_grad_enabled())

    def recorded(self, run: Callable[..., Any], back: Move, *arrays: Any) -> Any:
        if not (self.wants_gradients() and any(each.requires_grad for each in arrays)):
            return run(*arrays)  # a record costs more than a launch
        return _moved(self._torch).apply(run, back, *arrays)


@lru_cache(maxsize=1)
def _moved(torch: Any) -> Any:
    """A function of PyTorch whose gradient is a function of the result's gradient alone."""

    class Moved(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, run: Callable[..., Any], back: Move, *arrays: Any) -> Any:
            ctx.back = back
            return run(*arrays)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            found = ctx.back(gradient.resolve_conj().resolve_neg())
            return (None, None, *(found if isinstance(found, tuple) else (found,)))

    return Moved


class _CupyArrays:
    def __init__(self) -> None:
        self._cupy = import_module("cupy")

    def maker(self, shape: Shape, dtype: DType, device: int) -> Callable[[], Any]:
        make = partial(self._cupy.empty, shape, dtype.numpy)

        def there() -> Any:
            with self._cupy.cuda.Device(device):
                return make()

        return make if self._cupy.cuda.runtime.getDeviceCount() == 1 else there

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr)

    def stream(self, device: int) -> Callable[[], int]:  # noqa: ARG002
        current = self._cupy.cuda.get_current_stream
        return lambda: int(current().ptr)

    def wants_gradients(self) -> bool:
        return False

    def recorded(self, run: Callable[..., Any], back: Move, *arrays: Any) -> Any:  # noqa: ARG002
        return run(*arrays)


class _OtherArrays:
    """Arrays that come by an interface alone: they are on the default stream."""

    def __init__(self, name: str) -> None:
        self._name = name

    def maker(self, shape: Shape, dtype: DType, device: int) -> Callable[[], Any]:  # noqa: ARG002
        raise DeviceError(
            f"an output like a {self._name} array cannot be made", advice="give the outputs too"
        )

    def pointer(self, array: Any) -> int:  # noqa: ARG002
        return 0

    def stream(self, device: int) -> Callable[[], int]:  # noqa: ARG002
        return int

    def wants_gradients(self) -> bool:
        return False

    def recorded(self, run: Callable[..., Any], back: Move, *arrays: Any) -> Any:  # noqa: ARG002
        return run(*arrays)


def library(array: Any) -> Library:
    """The library of an array."""
    match library_of(array):
        case "torch":
            return _TorchArrays()
        case "cupy":
            return _CupyArrays()
        case "numpy":
            return _NumpyArrays()
        case name:
            return _OtherArrays(name)
