"""Tensor maps for a GPU: what the driver is asked, and what is refused before it is."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError
from warploom.runtime.driver import Driver
from warploom.runtime.tensor import for_gpu


class Library:
    """In place of the driver's library: remembers what it was asked, writes a byte of the map."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def cuInit(self, flags: int) -> int:  # noqa: N802 - the driver's name
        return 0

    def cuTensorMapEncodeTiled(self, room: Any, *asked: Any) -> int:  # noqa: N802
        self.asked = [list(a) if isinstance(a, ctypes.Array) else a.value for a in asked]
        place = ctypes.cast(room, ctypes.c_void_p).value
        assert place is not None
        assert place % 64 == 0
        ctypes.memset(place, 7, 128)
        return 0


class Copy:
    def __init__(self, array: np.ndarray, address: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (address, False),
            "strides": None,
        }  # fmt: skip


def test_what_the_driver_is_asked() -> None:
    """Axes from the innermost outwards, strides of all but that one."""
    library = Library()
    array = np.zeros((5, 40, 72), np.float16)
    made = ptx.tensor_map(array, (2, 16, 32), 64, nan_outside=True)
    for there in (0x7000, Copy(array, 0x7000)):
        assert for_gpu(made, there, Driver(library)) == b"\7" * 128
        kind, rank, address, sizes, strides, box, steps, *modes = library.asked
        assert (kind, rank, address) == (6, 3, 0x7000)
        assert (sizes, strides) == ([72, 40, 5], [144, 5760])
        assert (box, steps, modes) == ([32, 16, 2], [1, 1, 1], [0, 2, 0, 1])


def test_refused() -> None:
    array = np.zeros((8, 16), np.float32)
    made = ptx.tensor_map(array, (8, 16))
    for there, message in (
        (array, "not on a GPU"),
        (Copy(np.zeros((16, 8), np.float32), 64), "shape and type"),
        (Copy(array.astype(np.int32), 64), "shape and type"),
    ):
        with pytest.raises(DeviceError, match=message):
            for_gpu(made, there, Driver(Library()))
    odd = ptx.TensorMap(np.zeros((8, 16), np.complex64), (8, 16))
    with pytest.raises(DeviceError, match="complex64"):
        for_gpu(odd, 64, Driver(Library()))
