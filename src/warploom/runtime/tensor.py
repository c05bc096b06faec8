"""Tensor maps as a GPU's driver writes them: 128 bytes that a kernel takes by value."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.ptx.emulate.tensor import SWIZZLES, TensorMap
from warploom.runtime.driver import Driver, open_driver

_BYTES, _ALIGNMENT = 128, 64
# The driver's numbers of types of elements. Copies move bits: only what fills the outside asks.
_KINDS = {
    "b1": 0, "u1": 0, "i1": 0, "u2": 1, "i2": 1, "u4": 2, "i4": 3, "u8": 4, "i8": 5,
    "f2": 6, "f4": 7, "f8": 8,
}  # fmt: skip


_PROMOTED = 2  # what L2 fetches at once, as the driver numbers it: 128 bytes


def encoder(
    view: npt.NDArray[Any], box: tuple[int, ...], swizzle: int
) -> Callable[[int], bytes]:  # fmt: skip
    """What makes the map of an array that looks as this one does, by its address on a GPU."""
    map = TensorMap(view, box, swizzle)
    return lru_cache(maxsize=64)(lambda address: for_gpu(map, address, promotion=_PROMOTED))


def for_gpu(
    map: TensorMap, there: object, driver: Driver | None = None, promotion: int = 0
) -> bytes:
    """The map of `ptx.tensor_map`, for the array's copy on a GPU.

    `there` is that copy (CuPy's, PyTorch's), or its address.
    """
    address = there if isinstance(there, int) else _address(map, there)
    array = map.array
    kind = _KINDS.get(array.dtype.str[1:])
    if kind is None:
        raise DeviceError(f"no tensor map has elements of the type {array.dtype}")
    rank = array.ndim
    room = ctypes.create_string_buffer(_BYTES + _ALIGNMENT)
    start = -ctypes.addressof(room) % _ALIGNMENT
    sizes = (ctypes.c_uint64 * rank)(*reversed(array.shape))
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*reversed(array.strides[:-1]))
    box = (ctypes.c_uint32 * rank)(*reversed(map.box))
    steps = (ctypes.c_uint32 * rank)(*[1] * rank)
    (driver or open_driver()).call(
        "cuTensorMapEncodeTiled", ctypes.byref(room, start), ctypes.c_int(kind),
        ctypes.c_uint32(rank), ctypes.c_void_p(address), sizes, strides, box, steps,
        ctypes.c_int(0), ctypes.c_int(SWIZZLES.index(map.swizzle)),
        ctypes.c_int(promotion), ctypes.c_int(int(map.nan_outside)),
    )  # fmt: skip
    return room.raw[start : start + _BYTES]


def _address(map: TensorMap, there: object) -> int:
    view = getattr(there, "__cuda_array_interface__", None)
    if view is None:
        raise DeviceError("the array is not on a GPU")
    if tuple(view["shape"]) != map.array.shape or np.dtype(view["typestr"]) != map.array.dtype:
        raise DeviceError("the array on the GPU is not of the shape and type of the map's")
    if view.get("strides") not in (None, map.array.strides):
        raise DeviceError("the array on the GPU does not have the strides of the map's")
    return int(view["data"][0])
