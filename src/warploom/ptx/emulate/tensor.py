"""Tensor maps: an array in global memory, a box of it, and how the box lies in shared memory.

    map = tensor_map(array, box=(64, 16), swizzle=128)       # box by axis, as the array's shape
    kernel.launch(grid, block, [map, out])

The map of a kernel's argument is 128 bytes that the emulator writes and reads; a GPU's driver
has its own (`runtime/tensor.py`). A kernel may write one, too, field by field (`tensor_map_edit`).
"""

from __future__ import annotations

import numbers
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError

Array = npt.NDArray[Any]
MAP_BYTES = 128
_MAGIC = 0x7A97
# Magic; rank less one, number of the swizzle, fill, type, interleave; address, sizes, strides, box,
# strides of elements. All but the magic are zero in a map that a kernel begins with zeros.
_LAYOUT = "<HBBBBBxQ5Q4Q5H5B"
_ELEMENTS = {("f", 2), ("f", 4), ("f", 8), ("b", 1)} | {(k, n) for k in "iu" for n in (1, 2, 4, 8)}
SWIZZLES = (0, 32, 64, 128)
UNIT = 16  # bytes, of which addresses and strides are multiples
# Types of elements by the numbers that PTX gives them; those with .ftz flush as they are reduced.
KINDS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16", "f32", "f32")
_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)
_ROUNDED = (11, 12)  # tf32: floats that lose bits on their way
# What lies outside, if not zero: a NaN of halves, which filled floats and doubles on an H200 too.
_NAN = b"\xf7\x7f"


@dataclass(frozen=True, eq=False)
class TensorMap:
    """The host's side: `box` goes by axis of the array, the last being the innermost."""

    array: Array
    box: tuple[int, ...]
    swizzle: int = 0
    nan_outside: bool = False
    kind: str = ""  # of the elements, where NumPy has no such type: bf16

    @property
    def number(self) -> int:
        """The number of the elements' type."""
        dtype = self.array.dtype
        sign = {"i": "s", "f": "f"}.get(dtype.kind, "u")
        name = self.kind or f"{sign}{8 * dtype.itemsize}"
        return KINDS.index(name if name in KINDS else f"u{8 * dtype.itemsize}")

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last."""
        sides = zip(self.array.shape, self.array.strides, strict=True)
        far: int = sum((side - 1) * stride for side, stride in sides)
        return far + self.array.itemsize

    def encode(self, address: int) -> bytes:
        rank = self.array.ndim
        sizes = [*reversed(self.array.shape), *[1] * (5 - rank)]
        strides = [*reversed(self.array.strides[:-1]), *[0] * (5 - rank)]
        box = [*reversed(self.box), *[1] * (5 - rank)]
        head = (rank - 1, SWIZZLES.index(self.swizzle), self.nan_outside, self.number, 0)
        steps = [1] * 5
        return struct.pack(
            _LAYOUT, _MAGIC, *head, address, *sizes, *strides[:4], *box, *steps
        ).ljust(MAP_BYTES, b"\0")


def tensor_map(
    array: Array, box: Sequence[int], swizzle: int = 0, *, nan_outside: bool = False,
    kind: str = "",
) -> TensorMap:  # fmt: skip
    """A map for cp.async.bulk.tensor, with the conditions that a GPU's driver checks.

    `swizzle` is 0, 32, 64 or 128 bytes; `nan_outside` fills what lies outside with NaN, not zero.
    `kind="bf16"` says that whole numbers of 16 bits are such floats, which reductions add up.
    """
    if not isinstance(array, np.ndarray):
        raise DeviceError(f"a tensor map is of a NumPy array, not of a {type(array).__name__}")
    sides = list(box) if isinstance(box, Iterable) else [box]
    if not all(isinstance(side, numbers.Integral) for side in sides):
        raise DeviceError("the sides of a tensor map's box are whole numbers")
    shape = tuple(int(side) for side in sides)
    if not 1 <= array.ndim <= 5 or len(shape) != array.ndim:
        raise DeviceError("a tensor map has 1 to 5 axes, and a box with a side for each")
    if swizzle not in SWIZZLES:
        raise DeviceError(f"there is no swizzle of {swizzle!r} bytes", advice="0, 32, 64 or 128")
    inner = shape[-1] * array.itemsize
    wrong = [
        (not array.dtype.isnative or (array.dtype.kind, array.itemsize) not in _ELEMENTS,
         f"no tensor has elements of the type {array.dtype}"),
        (not all(1 <= side <= 1 << 32 for side in array.shape), "a side is 1 to 2**32 elements"),
        (any(stride >= 1 << 40 for stride in array.strides), "a stride is below 2**40 bytes"),
        (_start(array) % 16 != 0, "the array does not start at a multiple of 16 bytes"),
        (array.strides[-1] != array.itemsize, "the last axis is not dense"),
        (any(stride % 16 or stride < 0 for stride in array.strides[:-1]),
         "the strides of all other axes are multiples of 16 bytes"),
        (any(not 1 <= side <= 256 for side in shape), "a side of the box is 1 to 256"),
        (inner % 16 != 0, f"a row of the box is {inner} bytes, no multiple of 16"),
        (bool(swizzle) and inner > swizzle, f"a row of {inner} bytes for a swizzle of {swizzle}"),
        (kind not in ("", "bf16") or (bool(kind) and array.itemsize != 2),
         f"no elements of {array.dtype} are of kind {kind!r}"),
        (nan_outside and array.dtype.kind != "f" and not kind,
         "only floating-point elements may be NaN"),
    ]  # fmt: skip
    for bad, why in wrong:
        if bad:
            raise DeviceError(f"no tensor map: {why}")
    return TensorMap(array, shape, int(swizzle), nan_outside, kind)


def _start(array: Array) -> int:
    """The offset in bytes of a view within its whole array, which a GPU aligns."""
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return int(array.ctypes.data - whole.ctypes.data)


@dataclass(frozen=True)
class Map:
    """The device's side: sizes, strides and box go from the innermost axis outwards."""

    rank: int
    size: int  # bytes of an element
    swizzle: int
    nan_outside: bool
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    kind: str = "u8"

    @property
    def count(self) -> int:
        return prod(self.box)

    @property
    def pitch(self) -> int:
        """Bytes from a row of the box to the next in shared memory: a row that is shorter than the
        swizzle takes as much room as one that is not (seen on an H200)."""
        return max(self.swizzle, self.box[0] * self.size)

    @property
    def room(self) -> int:
        return self.count // self.box[0] * self.pitch

    def outside(self) -> npt.NDArray[np.uint8]:
        """The bytes of an element that lies outside."""
        raw = _NAN * (self.size // 2) if self.nan_outside else b"\0" * self.size
        return np.frombuffer(raw, np.uint8)

    def elements(self, start: tuple[int, ...]) -> tuple[Array, Array]:
        """For each element of the box: whether it lies inside, and its offset in bytes."""
        number = np.arange(self.count)
        inside = np.ones(self.count, bool)
        offset = np.zeros(self.count, np.int64)
        strides = (self.size, *self.strides)
        for axis in range(self.rank):
            at = number % self.box[axis] + start[axis]
            number = number // self.box[axis]
            inside &= (at >= 0) & (at < self.sizes[axis])
            offset += at * strides[axis]
        return inside, offset

    def units(self, start: tuple[int, ...]) -> Array | None:
        """The offsets of the box's units of sixteen bytes, where all of it lies inside.

        Rows are whole units, and so is what lies between them.
        """
        if any(at < 0 or at + side > size
               for at, side, size in zip(start, self.box, self.sizes, strict=True)):  # fmt: skip
            return None
        steps = (self.size, *self.strides)
        far = sum(at * step for at, step in zip(start, steps, strict=True))
        return _units(self) + far

    def swizzled(self, target: int) -> Array:
        """Where in shared memory each element of the box lies."""
        row, column = np.divmod(np.arange(self.count), self.box[0])
        place = target + row * self.pitch + column * self.size
        rows = max(1, self.swizzle // 16)
        moved: Array = place ^ ((place >> 7 & rows - 1) << 4)
        return moved


@lru_cache(maxsize=64)
def _units(box: Map) -> Array:
    """The offsets of a box's units from its corner."""
    _, offsets = replace(box, sizes=box.box).elements((0,) * box.rank)
    return offsets[:: UNIT // box.size]


class MapError(Exception):
    """Why bytes are no tensor map."""


@dataclass(slots=True)
class MapFields:
    """The fields of a map as a kernel may write them, whole or not."""

    rank: int  # less one
    swizzle: int  # its number
    fill: int
    kind: int
    interleave: int
    address: int
    sizes: list[int]
    strides: list[int]
    box: list[int]
    steps: list[int]  # strides of elements

    @staticmethod
    def of(raw: npt.NDArray[np.uint8]) -> MapFields:
        """What 128 bytes hold: a map, or zeros, with which one begins."""
        found = struct.unpack(_LAYOUT, raw[: struct.calcsize(_LAYOUT)].tobytes())
        if found[0] != _MAGIC and raw.any():
            raise MapError("there is no tensor map at this address")
        lists = [list(found[a:b]) for a, b in ((7, 12), (12, 16), (16, 21), (21, 26))]
        return MapFields(*found[1:7], *lists)

    def bytes(self) -> npt.NDArray[np.uint8]:
        head = (self.rank, self.swizzle, self.fill, self.kind, self.interleave, self.address)
        lists = (*self.sizes, *self.strides, *self.box, *self.steps)
        raw = struct.pack(_LAYOUT, _MAGIC, *head, *lists).ljust(MAP_BYTES, b"\0")
        return np.frombuffer(raw, np.uint8)

    def map(self) -> Map:
        """The whole map; a GPU's driver asks for the same."""
        rank = self.rank + 1
        sizes, box = self.sizes[:rank], self.box[:rank]
        size, strides = _SIZES[self.kind], self.strides[: rank - 1]
        inner, swizzle = box[0] * size, SWIZZLES[self.swizzle]
        wrong = [
            (not all(sizes), f"the tensor has the sides {sizes}"),
            (not all(1 <= side <= 256 for side in box), f"the box has the sides {box}"),
            (self.steps[:rank] != [1] * rank, f"elements are {self.steps[:rank]} apart"),
            (bool(self.interleave), "its elements are interleaved"),
            (self.address % UNIT != 0, f"its address is no multiple of {UNIT}"),
            (any(stride % UNIT for stride in strides), f"a stride is no multiple of {UNIT}"),
            (inner % UNIT != 0, f"a row of its box is {inner} bytes, no multiple of {UNIT}"),
            (bool(swizzle) and inner > swizzle, f"a row of {inner} bytes, swizzled by {swizzle}"),
            (self.kind in _ROUNDED, "it rounds to tf32, which is not supported"),
        ]
        for bad, why in wrong:
            if bad:
                raise MapError(f"the tensor map here cannot be used: {why}")
        return Map(
            rank, size, swizzle, bool(self.fill), self.address, tuple(sizes), tuple(strides),
            tuple(box), KINDS[self.kind],
        )  # fmt: skip


def read_map(raw: npt.NDArray[np.uint8]) -> Map:
    """The map that 128 bytes are."""
    if not raw.any():
        raise MapError("there is no tensor map at this address")
    return MapFields.of(raw).map()
