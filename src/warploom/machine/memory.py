"""Memory as flat bytes: separate allocations far apart, and regions with one copy per owner.

Addresses come in as arrays, one per thread; what comes out are arrays of values, or a `Fault` that
says which thread went wrong and how. Both evaluators use it, and it knows nothing about either.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError, Span
from warploom.machine.record import CUDA

Array = npt.NDArray[Any]
DType = np.dtype[Any]

# Where each state space begins among generic addresses; within a space they count from there.
WINDOWS = {"global": 0, "const": 1 << 56, "param": 1 << 57, "shared": 1 << 60, "local": 1 << 61}
FIRST_ADDRESS = {"global": 0x7F00_0000_0000, "const": 0x100, "param": 0x200}
ALIGNMENT = 256
GAP = 1 << 16  # bytes that belong to nobody between two allocations


def window_of(address: int) -> int:
    """Where the space of a generic address begins."""
    return max(start for start in WINDOWS.values() if start <= address)


@dataclass(frozen=True, slots=True)
class Fault(Exception):  # noqa: N818 - never leaves the evaluators, which make errors of it
    """An access that must not happen: `position` counts within the addresses given."""

    what: str
    position: int
    address: int
    piece: Any = None  # of a heap: the one that is meant


class Parts(Protocol):
    """The partition of a region that many share: which bytes belong to whom (see `heap`)."""

    def inside(self, offset: Array, width: int, active: Array | None) -> Array:
        """What `check` does, for one part at a time."""

    def bytes_from(self, offset: int) -> tuple[int, int]:
        """Where the bytes from an address on lie, and how many there are."""


@dataclass(slots=True, eq=False)
class Region:
    """Bytes at a generic address. With `owners`, each block or thread has its copy of `size` bytes.

    `origin[t]` is where the copy of thread t starts in `data` (None: all see one copy).
    `written` marks bytes that were stored to, where reads of others are to be reported.
    With `parts`, `size` counts addresses, of which most have no bytes.
    """

    name: str
    base: int
    size: int
    data: npt.NDArray[np.uint8]
    origin: npt.NDArray[np.int64] | None = None
    written: npt.NDArray[np.uint8] | None = None
    read_only: bool = False
    space: str = "global"
    parts: Parts | None = None
    _views: dict[tuple[DType, bool], Array] = field(default_factory=dict)

    def view(self, dtype: DType, marks: bool = False) -> Array:
        """All bytes (or all written-marks) seen as values of one type."""
        found = self._views.get((dtype, marks))
        if found is None:
            raw = self.written if marks else self.data
            assert raw is not None
            found = raw[: raw.size // dtype.itemsize * dtype.itemsize].view(dtype)
            self._views[dtype, marks] = found
        return found

    def reserve(self, size: int) -> None:
        """Makes every owner's copy at least `size` bytes, keeping what is there."""
        if size <= self.size:
            return
        assert self.origin is not None
        owners = self.origin.size
        stride = owner_stride(size)
        fresh = allocate(owners * stride, self.name).reshape(owners, stride)
        fresh[:, : self.data.size // owners] = self.data.reshape(owners, -1)
        if self.written is not None:
            marks = np.zeros((owners, stride), np.uint8)
            marks[:, : self.data.size // owners] = self.written.reshape(owners, -1)
            self.written = marks.reshape(-1)
        self.data, self.size = fresh.reshape(-1), stride
        self.origin = np.arange(owners, dtype=np.int64) * stride
        self._views.clear()

    def forget_bytes(self) -> None:
        """Its addresses stay taken; nothing lies there any more."""
        self.data, self.written = np.zeros(0, np.uint8), None
        self._views.clear()

    def offsets(self, address: Array) -> Array:
        """Distances from the base as unsigned numbers: below the base becomes very large."""
        if self.base == 0:
            return address.astype(np.uint64) if address.dtype.itemsize < 8 else address
        return np.subtract(address, np.uint64(self.base))


def allocate(size: int, what: str, span: Span | None = None) -> npt.NDArray[np.uint8]:
    try:
        return np.zeros(size, np.uint8)
    except (MemoryError, ValueError):  # more than there is, or more than an index can say
        raise DeviceError(f"no room for {size} bytes of {what}", span) from None


def per_owner(name: str, owners: int, threads: int, size: int, marked: bool = False) -> Region:
    """A region with a copy of `size` bytes for each owner: a block, or a thread.

    `threads` threads share a copy. `marked`: reads of uninitialised memory are to be reported.
    """
    stride = owner_stride(size)
    data = allocate(owners * stride, name)
    origin = np.repeat(np.arange(owners, dtype=np.int64) * stride, threads)
    written: npt.NDArray[np.uint8] | None = None
    if marked and size:
        marks = np.zeros((owners, stride), np.uint8)
        marks[:, size:] = 1
        written = marks.reshape(-1)
    alone = owners == 1 and threads > 1
    return Region(name, 0, size, data, None if alone else origin, written)


def owner_stride(size: int) -> int:
    """How many bytes apart the copies of two owners begin."""
    return -(-size // CUDA.access_bytes) * CUDA.access_bytes


class Memory:
    """The allocations of one launch, found by address."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._regions: list[Region] = []
        self._next = {space: WINDOWS[space] + first for space, first in FIRST_ADDRESS.items()}

    def add(
        self, name: str, data: npt.NDArray[np.uint8], read_only: bool = False, space: str = "global"
    ) -> Region:
        base = self._next[space]
        region = Region(name, base, data.size, data, read_only=read_only, space=space)
        self.put(region)
        self._next[space] += -(-(data.size + GAP) // ALIGNMENT) * ALIGNMENT
        return region

    def copy(self, copies: int) -> None:
        """Each owner has a copy of what is there, at the same address."""
        for region in self._regions:
            stride = owner_stride(region.size)
            data = allocate(copies * stride, region.name).reshape(copies, stride)
            data[:, : region.size] = region.data
            region.data = data.reshape(-1)
            region._views.clear()

    def share_out(self, copies: int, threads: int) -> None:
        """So many threads come, as many to each copy."""
        owner = np.repeat(np.arange(copies, dtype=np.int64), threads // copies)
        for region in self._regions:
            region.origin = owner * (region.data.size // copies)

    def put(self, region: Region) -> None:
        """A region that has its address already."""
        above = bisect_right(self._bases, region.base)
        self._bases.insert(above, region.base)
        self._regions.insert(above, region)

    def drop(self, region: Region) -> None:
        at = bisect_right(self._bases, region.base) - 1
        del self._bases[at], self._regions[at]

    @property
    def regions(self) -> tuple[Region, ...]:
        return tuple(self._regions)

    def find(self, address: int) -> Region | None:
        """The allocation that holds an address, or the one nearest to it."""
        above = bisect_right(self._bases, address)
        if above and address < self._bases[above - 1] + self._regions[above - 1].size + GAP // 2:
            return self._regions[above - 1]
        return self._regions[min(above, len(self._regions) - 1)] if self._regions else None

    def bytes_from(self, address: int) -> tuple[Region, int, int] | None:
        """The region that holds an address, where in its data that is, and how many bytes follow
        that belong to it."""
        found = self.find(address)
        if found is None or not 0 <= address - found.base <= found.size:
            return None
        at = address - found.base
        return (found, at, found.size - at) if found.parts is None else (
            found, *found.parts.bytes_from(at)
        )  # fmt: skip


def check(region: Region, offset: Array, width: int, active: Array | None) -> Array:
    """Indices in units of `width` into the region; raises `Fault` for a bad active access.

    Indices of inactive threads come back clipped into the region.
    """
    if region.parts is not None:
        return region.parts.inside(offset, width, active)
    limit = region.size - width
    mask = width - 1
    good = limit >= 0 and int(offset.max()) <= limit
    if not good or int(np.bitwise_or.reduce(offset)) & mask:
        offset = _check_slowly(region, offset, width, active)
    return (offset >> np.uint64(mask.bit_length())).view(np.int64)


def _check_slowly(region: Region, offset: Array, width: int, active: Array | None) -> Array:
    limit = region.size - width
    outside = offset > np.uint64(max(limit, 0)) if limit >= 0 else np.ones(offset.shape, bool)
    crooked = (offset & np.uint64(width - 1)) != 0
    bad = outside | crooked
    worst = bad if active is None else bad & active
    if worst.any():
        position = int(worst.argmax())
        at = int(offset[position % offset.size])
        address = (at + region.base) % (1 << 64)
        if (outside if outside.size == 1 else outside[position : position + 1]).any():
            raise Fault(_outside(region, at, width), position, address)
        raise Fault(f"misaligned access of {width} bytes", position, address)
    if limit < 0:
        return np.zeros_like(offset)
    return np.where(bad, np.uint64(0), offset)


def _outside(region: Region, offset: int, width: int) -> str:
    where = offset - (1 << 64) if offset >= 1 << 63 else offset
    whole = f"{region.name} ({region.size} bytes)"
    return f"out-of-bounds access of {width} bytes, {distance(where)} {whole}"


def distance(where: int) -> str:
    return f"{-where} bytes before" if where < 0 else f"{where} bytes into"


def place(index: Array, width: int, owner: Array | None) -> Array:
    """Index into a region's whole data; `owner` is the origin (bytes) per access."""
    if owner is None:
        return index
    moved: Array = index + (owner >> (width - 1).bit_length())
    return moved


def mark_stored(region: Region, index: Array, dtype: DType, *, stored: bool = True) -> None:
    """Something was stored there, or is no value any more; index in units of the type."""
    if region.written is not None:
        region.view(dtype, marks=True)[index] = _all_marked(dtype) if stored else 0


def unstored(region: Region, index: Array, dtype: DType, active: Array | None = None) -> Array:
    """Which accesses of active threads read an uninitialised byte."""
    bad: Array = region.view(dtype, marks=True).take(index, mode="clip") != _all_marked(dtype)
    return bad if active is None else bad & active


def _all_marked(dtype: DType) -> Any:
    return np.frombuffer(b"\x01" * dtype.itemsize, dtype)[0]
