"""Arrays of other libraries as they are: pointer, size and type, never a copy.

Understood are NumPy arrays, PyTorch tensors, everything with `__cuda_array_interface__` (CuPy,
Numba, JAX) and everything with DLPack.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from warploom.errors import DeviceError, WarploomError
from warploom.kernel.arguments import Described
from warploom.kernel.dtype import DType, from_numpy

Where: TypeAlias = Literal["host", "gpu"]
Shape: TypeAlias = tuple[int, ...]

_WITHOUT_NUMPY = {
    f"torch.{each.value}": each for each in DType if each.is_code and each.numpy == each.storage
}
_UNMASKED = "fill what is masked: x.filled(0), or give x.data"
_DLPACK_HOST = (1, 3)  # plain and pinned memory
_DLPACK_GPU = (2, 13)  # device and managed memory


@dataclass(frozen=True, slots=True)
class View:
    """An array argument: what the kernel needs to know of it, and the object that owns it."""

    pointer: int
    shape: Shape
    dtype: DType
    contiguous: bool
    writable: bool
    where: Where
    owner: Any
    # The same memory as a NumPy array, for arrays in host memory.
    host: np.ndarray[Any, np.dtype[Any]] | None = None
    device: int = -1  # the number of the GPU
    tracked: bool = False  # PyTorch wants a gradient of what is made of it

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes

    @property
    def end(self) -> int:
        """The address after the last byte, for arrays without gaps."""
        return self.pointer + self.bytes

    @property
    def described(self) -> Described:
        return Described(self.size, self.dtype, self.contiguous, self.writable)

    @property
    def strides(self) -> Shape | None:
        """In elements; None where the owner does not say."""
        if self.host is not None:
            found = tuple(each // self.dtype.bytes for each in self.host.strides)
        elif callable(getattr(self.owner, "stride", None)):  # as PyTorch has it
            times = 2 if is_complex(self.owner) else 1
            found = tuple(int(each) * times for each in self.owner.stride())
        elif isinstance(getattr(self.owner, "strides", None), tuple):  # as CuPy has it
            found = tuple(int(each) // self.dtype.bytes for each in self.owner.strides)
        else:
            return None
        if is_complex(self.owner) and self.host is None:
            found = (*found, 1)
        return found if len(found) == len(self.shape) else None

    @property
    def key(self) -> Hashable:
        """Everything but where it lies: what a launch depends on besides addresses."""
        gaps = None if self.contiguous else self.strides
        known = self.shape, self.dtype, self.contiguous, gaps, self.writable
        return library_of(self.owner), self.where, self.device, self.tracked, known


def library_of(array: Any) -> str:
    """The package that an array's class comes from."""
    return type(array).__module__.partition(".")[0]


def view(argument: Any, name: str) -> View:
    """The array as a view; DeviceError with the parameter's name if it is none."""
    try:
        if isinstance(argument, np.ndarray):
            if isinstance(argument, np.ma.MaskedArray):
                raise DeviceError("a mask, which kernels do not look at", advice=_UNMASKED)
            return _host(_pairs(argument), argument)
        if library_of(argument) == "torch" and hasattr(argument, "data_ptr"):
            return _tensor(argument)
        interface = getattr(argument, "__cuda_array_interface__", None)
        if interface is not None:
            return _gpu(interface, argument)
        if hasattr(argument, "__dlpack__"):
            return _from_dlpack(argument)
    except WarploomError as error:
        raise DeviceError(f"'{name}': {error.message}", advice=error.advice) from None
    except (RuntimeError, TypeError, ValueError, BufferError, AttributeError) as error:
        raise DeviceError(f"'{name}' cannot be used as an array: {error}") from None
    raise DeviceError(
        f"'{name}' is of type {type(argument).__name__}, which is no array",
        advice="give a NumPy, CuPy or PyTorch array, or anything with DLPack",
    )


def is_complex(array: Any) -> bool:
    """Whether a view has an axis more than its array, of real and imaginary part."""
    return "complex" in str(getattr(array, "dtype", ""))


def is_number(argument: Any) -> bool:
    return isinstance(argument, int | float | np.integer | np.floating)


def as_number(argument: Any) -> int | float:
    return argument.item() if isinstance(argument, np.generic) else argument  # type: ignore[no-any-return]


def _pairs(array: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """Complex numbers as pairs, real and imaginary part along a last axis; others as they are."""
    if array.dtype.kind != "c" or not array.dtype.isnative:
        return array
    part = array.real
    shape, strides = (*array.shape, 2), (*array.strides, part.itemsize)
    return np.lib.stride_tricks.as_strided(part, shape, strides, writeable=part.flags.writeable)


def _host(
    array: np.ndarray[Any, np.dtype[Any]],
    owner: Any,
    tracked: bool = False,
    dtype: DType | None = None,
) -> View:
    if not array.dtype.isnative:
        raise DeviceError(f"{array.dtype} is not in this machine's byte order")
    return View(
        array.ctypes.data,
        array.shape,
        dtype or from_numpy(array.dtype),
        array.flags.c_contiguous,
        array.flags.writeable,
        "host",
        owner,
        array,
        tracked=tracked,
    )


def _tensor(tensor: Any) -> View:
    """A PyTorch tensor by its own names: it gives no interface away when it wants a gradient."""
    if tensor.is_neg() or tensor.is_conj():
        raise DeviceError(
            "the tensor stands for the negative, or the conjugate, of what its memory holds",
            advice="call .resolve_neg() or .resolve_conj() on it first",
        )
    kind, tracked = tensor.device.type, bool(tensor.requires_grad)
    if str(tensor.dtype).startswith("torch.complex"):  # real and imaginary part along a last axis
        pairs = _tensor(import_module("torch").view_as_real(tensor))
        return replace(pairs, owner=tensor)
    if kind == "cpu" and (known := _WITHOUT_NUMPY.get(str(tensor.dtype))):
        whole = getattr(import_module("torch"), f"int{8 * known.bytes}")
        bits = tensor.detach().view(whole).numpy().view(known.storage)
        return _host(bits, tensor, tracked, known)
    if kind == "cpu":
        return _host(tensor.detach().numpy(), tensor, tracked)
    if kind != "cuda":
        raise DeviceError(f"the tensor is on '{kind}', neither host nor CUDA")
    dtype = from_numpy(str(tensor.dtype).removeprefix("torch."))
    return View(
        int(tensor.data_ptr()),
        tuple(tensor.shape),
        dtype,
        bool(tensor.is_contiguous()),
        True,
        "gpu",
        tensor,
        device=int(tensor.get_device()),
        tracked=tracked,
    )


def _gpu(interface: dict[str, Any], owner: Any) -> View:
    shape = tuple(int(size) for size in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    pointer, read_only = interface["data"]
    contiguous = _is_contiguous(shape, interface.get("strides"), dtype.itemsize)
    if dtype.kind == "c":  # real and imaginary part along a last axis
        shape, dtype = (*shape, 2), np.zeros((), dtype).real.dtype
    device = int(getattr(getattr(owner, "device", None), "id", 0))  # as CuPy has it
    kind, address = from_numpy(dtype), int(pointer or 0)
    return View(address, shape, kind, contiguous, not read_only, "gpu", owner, device=device)


def _is_contiguous(shape: Shape, strides: Shape | None, itemsize: int) -> bool:
    if strides is None:
        return True
    expected = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _from_dlpack(argument: Any) -> View:
    kind = int(argument.__dlpack_device__()[0])
    if kind in _DLPACK_HOST:
        return _host(np.from_dlpack(argument), argument)
    if kind in _DLPACK_GPU:
        for library in ("cupy", "torch"):
            try:
                shared = import_module(library).from_dlpack(argument)
            except ImportError:
                continue
            return _gpu(shared.__cuda_array_interface__, argument)
        raise DeviceError("reading DLPack on a GPU needs CuPy or PyTorch", advice="install one")
    raise DeviceError(f"the array is on a device of DLPack kind {kind}, neither host nor CUDA")
