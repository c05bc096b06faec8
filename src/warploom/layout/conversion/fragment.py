"""Registers as a layout: which element of a tensor each register of each thread holds.

An element may be held by several threads, and a register by none: sizes need not be powers of two.
`fragment_text.py` reads fragments by name, as Triton's bases and as CuTe's layouts of threads and
values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from warploom.errors import CheckError
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE
from warploom.machine.record import CUDA

LANES = CUDA.lanes  # of a warp, unless a layout says another number
WARPS_OF = (LANES, 2 * LANES)  # lanes that a warp may have: NVIDIA's and RDNA's, and CDNA's
MOST_WARPS = 32
MOST_REGISTERS = 2048  # elements of a thread: more than it has registers, as in Triton's IR


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """`elements[warp, lane, register]` is the row-major number of an element, or -1. `blocks`: what
    each bit of a block's number adds, where several share a tensor; the shape is of one's part."""

    name: str
    shape: tuple[int, ...]
    elements: Numbers = field(repr=False)
    blocks: tuple[tuple[int, ...], ...] = ()

    @property
    def warps(self) -> int:
        return int(self.elements.shape[0])

    @property
    def lanes(self) -> int:
        return int(self.elements.shape[1])

    @property
    def registers(self) -> int:
        return int(self.elements.shape[2])

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def check_fragment(fragment: Fragment) -> Fragment:
    """The fragment itself, if it is one."""
    warps, lanes, registers = fragment.elements.shape
    if lanes not in WARPS_OF or not 1 <= warps <= MOST_WARPS:
        raise CheckError(
            f"{fragment.name}: {warps} warps of {lanes} lanes",
            advice=f"1 to {MOST_WARPS} warps of {WARPS_OF[0]} or {WARPS_OF[1]} lanes",
        )
    if not 1 <= registers <= MOST_REGISTERS:
        raise CheckError(
            f"{fragment.name}: a thread holds {registers} elements",
            advice=f"between 1 and {MOST_REGISTERS}",
        )
    outside = (fragment.elements < IDLE) | (fragment.elements >= fragment.size)
    if outside.any():
        warp, lane, register = np.argwhere(outside)[0].tolist()
        raise CheckError(
            f"{fragment.name}: register {register} of lane {lane} of warp {warp} holds element "
            f"{int(fragment.elements[warp, lane, register])}, of {fragment.size}"
        )
    return fragment


@dataclass(frozen=True, slots=True)
class Digit:
    """A part of a register's, lane's or warp's number: it moves so far along one dimension."""

    size: int
    dimension: int
    stride: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tile as digits, the fastest first, and in which order it is repeated over a tensor."""

    register: tuple[Digit, ...]
    lane: tuple[Digit, ...]
    warp: tuple[Digit, ...]
    tile: tuple[int, ...]
    order: tuple[int, ...]


def tiled(name: str, shape: tuple[int, ...], tiling: Tiling) -> Fragment:
    """The tile over the whole tensor; repetitions are further registers.

    A tile that is a multiple of the tensor wraps around it, so that elements are held several
    times; where it only hangs over, what hangs over holds nothing.
    """
    if len(shape) != len(tiling.tile):
        raise CheckError(f"{name} has {len(tiling.tile)} dimensions, and the tensor {len(shape)}")
    repeated = [
        Digit(-(-shape[dimension] // tiling.tile[dimension]), dimension, tiling.tile[dimension])
        for dimension in tiling.order
    ]
    parts = [
        _coordinates(digits, len(shape))
        for digits in (tiling.warp, tiling.lane, (*tiling.register, *repeated))
    ]
    element, inside = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
    for dimension, size in enumerate(shape):
        warp, lane, register = (part[dimension] for part in parts)
        place = warp[:, None, None] + lane[:, None] + register
        if tiling.tile[dimension] % size == 0:
            place = place % size
        inside = inside & (place < size)
        element = element * size + place
    return check_fragment(Fragment(name, shape, np.where(inside, element, IDLE)))


def _coordinates(digits: Sequence[Digit], rank: int) -> Numbers:
    """How far each number moves along each dimension."""
    count = math.prod(digit.size for digit in digits)
    if count > MOST_REGISTERS * 16:
        raise CheckError(f"{count} registers of a thread are too many")
    number, found = np.arange(count, dtype=np.int64), np.zeros((rank, count), dtype=np.int64)
    for digit in digits:
        found[digit.dimension] += number % digit.size * digit.stride
        number = number // digit.size
    return found


# -- the usual ones --------------------------------------------------------------------------------


def blocked(
    shape: tuple[int, ...],
    size: Sequence[int],
    lanes: Sequence[int],
    warps: Sequence[int],
    order: Sequence[int],
) -> Fragment:
    """Triton's BlockedLayout: a thread's elements, then lanes, then warps, each in this order.

    >>> blocked((2, 32), [1, 2], [2, 16], [1, 1], [1, 0]).elements[0, 17].tolist()
    [34, 35]
    """
    rank = len(shape)
    if {len(size), len(lanes), len(warps), len(order)} != {rank} or set(order) != set(range(rank)):
        raise CheckError(f"a blocked layout of {rank} dimensions says {rank} numbers of each kind")
    if min(*size, *lanes, *warps) < 1:
        raise CheckError("sizes of a blocked layout are at least 1")
    stride = [1] * rank
    found = []
    for numbers in (size, lanes, warps):
        found.append(tuple(Digit(numbers[d], d, stride[d]) for d in order))
        stride = [s * n for s, n in zip(stride, numbers, strict=True)]
    register, lane, warp = found
    return tiled("blocked", shape, Tiling(register, lane, warp, tuple(stride), tuple(order)))


def mma_result(shape: tuple[int, ...], warps: Sequence[int]) -> Fragment:
    """What mma.m16n8 gives: two neighbours of a row, and of the row eight further."""
    down, across = _two(warps)
    return tiled(
        "mma-c",
        shape,
        Tiling(
            (Digit(2, 1, 1), Digit(2, 0, 8)),
            (Digit(4, 1, 2), Digit(8, 0, 1)),
            (Digit(across, 1, 8), Digit(down, 0, 16)),
            (16 * down, 8 * across),
            (1, 0),
        ),
    )


def mma_operand(shape: tuple[int, ...], which: int, width: int, warps: Sequence[int]) -> Fragment:
    """Operand A (0, m × k) or B (1, k × n) of mma, `width` neighbours along k in a lane; warps
    side by side along the other dimension of the result hold the same elements."""
    down, across = _two(warps)
    if which not in (0, 1) or width < 1 or width & (width - 1):
        raise CheckError(f"operand {which} with {width} neighbours along k")
    k, other = (1, 0) if which == 0 else (0, 1)
    below = (Digit(2, 0, 8),) if which == 0 else ()
    warp = (Digit(across, k, 0), Digit(down, 0, 16)) if which == 0 else (
        Digit(across, 1, 8), Digit(down, k, 0)
    )  # fmt: skip
    tile = (16 * down, 8 * width) if which == 0 else (8 * width, 8 * across)
    return tiled(
        f"mma-{'ab'[which]}",
        shape,
        Tiling(
            (Digit(width, k, 1), *below, Digit(2, k, 4 * width)),
            (Digit(4, k, width), Digit(8, other, 1)),
            warp,
            tile,
            (k, other),
        ),
    )


def _two(warps: Sequence[int]) -> tuple[int, int]:
    if len(warps) != 2 or min(warps) < 1:
        raise CheckError(f"warps are down × across, not {list(warps)}")
    return warps[0], warps[1]
