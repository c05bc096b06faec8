"""What people pass to kernels: NumPy arrays and CPU tensors, as memory that the emulator has.

Memory is not copied: what a kernel writes is in the array that was given.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError, UnsupportedError

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Passed:
    """An array among the arguments: its elements, how they are called, and the bytes they span."""

    array: Array  # elements of types that NumPy does not have are whole numbers of their size
    kind: str  # float32, bfloat16, …
    raw: Array  # contiguous: what the emulator is given

    @property
    def aligned(self) -> bool:
        """Whether it begins at a multiple of sixteen; what was allocated by itself does."""
        return self.array.base is None or self.address % 16 == 0

    @property
    def address(self) -> int:
        return int(self.array.__array_interface__["data"][0])


def memory_of(arg: Any, what: str) -> Passed | None:
    """The memory of an argument; None if it is no array."""
    if isinstance(arg, Passed):
        return arg
    if isinstance(arg, np.ndarray):
        return None if arg.ndim == 0 else _memory(arg, arg.dtype.name, what)
    if hasattr(arg, "data_ptr") and hasattr(arg, "dtype"):  # a tensor of PyTorch
        return _memory(*_tensor(arg, what), what)
    if hasattr(arg, "__cuda_array_interface__"):
        raise DeviceError(f"{what} lies on a GPU", advice="pass a NumPy array or a CPU tensor")
    return None


def _tensor(tensor: Any, what: str) -> tuple[Array, str]:
    if getattr(tensor, "is_cuda", False) or str(getattr(tensor, "device", "cpu")) != "cpu":
        raise DeviceError(f"{what} lies on a GPU", advice="pass a NumPy array or a CPU tensor")
    kind = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.detach() if hasattr(tensor, "detach") else tensor
    try:
        return np.asarray(plain.numpy()), kind
    except TypeError:  # a type that NumPy does not have: its bits
        size = int(tensor.element_size())
        torch_type = getattr(_package_of(tensor), f"int{8 * size}")
        return np.asarray(plain.view(torch_type).numpy()), kind


def _package_of(tensor: Any) -> Any:
    import sys  # the package is there: it made the tensor

    return sys.modules[type(tensor).__module__.split(".")[0]]


def _memory(array: Array, kind: str, what: str) -> Passed:
    if array.dtype.hasobject:
        raise UnsupportedError(f"{what} holds Python objects, which no kernel can read")
    return Passed(array, kind, _spanned(array, what))


def _spanned(array: Array, what: str) -> Array:
    """All bytes from the first element to the last; of a contiguous array, itself."""
    if array.flags.c_contiguous:
        return array
    if any(stride < 0 for stride in array.strides):
        raise UnsupportedError(
            f"{what} runs backwards through memory", advice="pass numpy.ascontiguousarray(…)"
        )
    start = int(array.__array_interface__["data"][0])
    size = array.itemsize + sum(
        stride * (side - 1) for stride, side in zip(array.strides, array.shape, strict=True)
    )
    whole: Any = (ctypes.c_uint8 * (size if array.size else 0)).from_address(start)
    found = np.frombuffer(whole, np.uint8)
    found.flags.writeable = array.flags.writeable
    return found
