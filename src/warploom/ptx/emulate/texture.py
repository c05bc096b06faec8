"""Textures and surfaces: an array, and how kernels read it by coordinates.

    image = texture(array, filter="linear", address="border")
    kernel.launch(grid, block, [image, out])

The argument of a kernel is a handle of 64 bits. Here it is the address of a few bytes that describe
the array, in a part of memory that no load reaches; a GPU's driver has its own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.machine.memory import ALIGNMENT, Memory, Region

Array = npt.NDArray[Any]
Filter = Literal["point", "linear"]
AddressMode = Literal["clamp", "border", "wrap", "mirror"]
Read = Literal["element", "normalized"]
SPACE = "texture"
FIRST_HANDLE = 1 << 58
FILTERS, ADDRESSES, READS = get_args(Filter), get_args(AddressMode), get_args(Read)
_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
_CHANNELS = (1, 2, 4)
# Of one, two and three axes, the innermost first; the driver's limits. In linear memory one axis
# may be that long.
_LONGEST = {1: (1 << 28,), 2: (131072, 65536), 3: (16384, 16384, 16384)}
_MOST_LAYERS = 2048
_MAGIC = 0x7E47
# Magic, type, channels, axes; surface, filter, address mode, normalised coordinates, way to read;
# address, width, height, depth, layers (0: it has none).
_LAYOUT = "<HBBBBBBBB6xQ4Q"


@dataclass(frozen=True, eq=False)
class Surface:
    """The host's side: an array that kernels read and write by coordinates.

    Axes are those of the array: layers, depth, height, width, and channels where there are any.
    """

    array: Array
    channels: int | None = None  # how many the last axis has; without, it is the width
    layered: bool = False

    @property
    def sides(self) -> tuple[int, ...]:
        """Texels along each axis, the innermost first; layers are none of them."""
        shape = self.array.shape[: -1 if self.channels else None]
        return tuple(reversed(shape[1:] if self.layered else shape))

    @property
    def layers(self) -> int:
        return int(self.array.shape[0]) if self.layered else 0

    def encode(self, address: int) -> bytes:
        kind = _TYPES.index(self.array.dtype.str[1:])
        sides = (*self.sides, 1, 1)[:3]
        head = (_MAGIC, kind, self.channels or 1, len(self.sides), *self._manner())
        return struct.pack(_LAYOUT, *head, address, *sides, self.layers)

    def _manner(self) -> tuple[int, ...]:
        return (1, 0, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Texture(Surface):
    """The host's side: an array that kernels read by coordinates, and how."""

    filter: Filter = "point"
    address: AddressMode = "clamp"
    normalized: bool = False
    read: Read = "element"

    def _manner(self) -> tuple[int, ...]:
        return (
            0, FILTERS.index(self.filter), ADDRESSES.index(self.address), int(self.normalized),
            READS.index(self.read),
        )  # fmt: skip


def texture(
    array: Array, filter: Filter = "point", address: AddressMode = "clamp", *,  # noqa: A002
    normalized: bool = False, read: Read = "element", channels: int | None = None,
    layered: bool = False,
) -> Texture:  # fmt: skip
    """A texture object of an array (width), (height, width) or (depth, height, width).

    `normalized`: coordinates go from 0 to 1. `read`: integers come as they are, or "normalized" as
    fractions of the largest. `channels`: the last axis holds that many, 1, 2 or 4, for each texel.
    `layered`: the first axis counts layers, as `tex2DLayered` reads them.
    """
    made = Texture(array, channels, bool(layered), filter, address, bool(normalized), read)
    _check("texture", made)
    for what, given, known in (
        ("filter", filter, FILTERS), ("address mode", address, ADDRESSES),
        ("way to read", read, READS),
    ):  # fmt: skip
        if given not in known:
            raise DeviceError(f"a texture has no {what} {given!r}", advice=" or ".join(known))
    floating = array.dtype.kind == "f"
    wrong = [
        (address in ("wrap", "mirror") and not normalized,
         f"the address mode {address} needs normalized=True: a driver would clamp instead"),
        (read == "normalized" and (floating or array.itemsize > 2),
         f"{array.dtype} cannot be read as fractions: only integers of 8 and 16 bits can"),
        (filter == "linear" and read == "element" and not floating,
         f"{array.dtype} cannot be filtered: read it as fractions (read=\"normalized\")"),
    ]  # fmt: skip
    _raise_first("texture", wrong)
    return made


def surface(array: Array, *, channels: int | None = None, layered: bool = False) -> Surface:
    """A surface object of an array, for `surf2Dread`, `surf2Dwrite` and the like."""
    made = Surface(array, channels, bool(layered))
    _check("surface", made)
    return made


def _check(what: str, made: Surface) -> None:
    array, channels = made.array, made.channels
    if not isinstance(array, np.ndarray):
        raise DeviceError(f"a {what} is of a NumPy array, not of a {type(array).__name__}")
    if channels not in (None, *_CHANNELS):
        raise DeviceError(f"a {what} has 1, 2 or 4 channels, not {channels!r}")
    shape = array.shape[: -1 if channels else None]
    axes = len(shape) - made.layered
    wrong = [
        (not array.dtype.isnative or array.dtype.str[1:] not in _TYPES,
         f"its elements cannot be of the type {array.dtype}"),
        (not array.flags.c_contiguous, "the array is not contiguous"),
        (channels is not None and array.shape[-1:] != (channels,),
         f"the last axis of an array {array.shape} does not hold {channels} channels"),
        (not 1 <= axes <= (2 if made.layered else 3),
         f"an array of {axes} axes beside channels and layers; one to three, with layers to two"),
    ]  # fmt: skip
    _raise_first(what, wrong)
    sizes = zip(made.sides, _LONGEST[axes], strict=True)
    long = [(not 1 <= side <= most, f"a side of {side}; from 1 to {most}") for side, most in sizes]
    many = made.layered and not 1 <= made.layers <= _MOST_LAYERS
    _raise_first(what, [*long, (many, f"{made.layers} layers; from 1 to {_MOST_LAYERS}")])


def _raise_first(what: str, wrong: Sequence[tuple[bool, str]]) -> None:
    for bad, why in wrong:
        if bad:
            raise DeviceError(f"no {what}: {why}")


# -- the device's side ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Image:
    """What a handle stands for."""

    dtype: np.dtype[Any]  # of one channel
    channels: int
    sides: tuple[int, ...]  # the innermost first
    layers: int
    is_surface: bool
    linear: bool
    mode: str
    normalized: bool
    fractions: bool  # integers are read as such
    address: int

    @property
    def texel(self) -> int:
        """Bytes of one."""
        return self.dtype.itemsize * self.channels

    @property
    def row(self) -> int:
        """Bytes."""
        return self.texel * self.sides[0]

    def base(self, layer: Array) -> Array:
        """Where each layer begins."""
        found: Array = self.address + layer * (self.texel * prod(self.sides))
        return found


def handle(memory: Memory, what: str, made: Surface, address: int) -> int:
    """Describes a texture or surface, whose array is in memory, and gives its handle."""
    taken = sum(region.space == SPACE for region in memory.regions)
    data = np.frombuffer(made.encode(address), np.uint8)
    base = FIRST_HANDLE + taken * ALIGNMENT
    memory.put(Region(what, base, data.size, data, read_only=True, space=SPACE))
    return base


def image_at(memory: Memory, address: int) -> Image | None:
    """What a handle stands for, if it is one."""
    region = memory.find(address)
    if region is None or region.space != SPACE or region.base != address:
        return None
    return _decoded(region.data.tobytes())


@lru_cache(maxsize=64)
def _decoded(raw: bytes) -> Image:
    _, kind, channels, axes, is_surface, linear, mode, normalized, read, address, *sides = (
        struct.unpack(_LAYOUT, raw)
    )
    return Image(
        np.dtype(_TYPES[kind]), channels, tuple(sides[:axes]), sides[3], bool(is_surface),
        bool(linear), ADDRESSES[mode], bool(normalized), bool(read), address,
    )  # fmt: skip
