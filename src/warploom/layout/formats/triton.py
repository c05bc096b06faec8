"""Triton's layouts: linear bases and shared layouts by their parameters, read and written.

Triton's maps go from hardware to the tensor: the bases of `offset` say which coordinates lie at the
powers of two of an offset. Ours go from coordinates to an offset, so one is the inverse of the
other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from warploom.errors import CheckError, ParseError, Source
from warploom.index.bits import BitMap
from warploom.layout.formats.tma import MOST_SIDE
from warploom.layout.language.build import column_major, row_major
from warploom.layout.language.check import MOST_ELEMENTS, check
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.facts import as_matrix, as_swizzle, is_injective
from warploom.layout.language.ir import (
    Compose,
    Layout,
    Matrix,
    Pad,
    Strided,
    Swizzle,
    Tree,
    compose,
)
from warploom.layout.language.laws import simplify

Bases = dict[str, list[list[int]]]
_UNIT = 1 << 31  # intervals are powers of two below it
MOST_BASES = 32  # of offsets
ATOM_ROWS = 8  # that a swizzle of the matrix units goes over


def swizzled_shared(
    shape: tuple[int, ...],
    vec: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int] | None = None,
) -> Layout:
    """SwizzledSharedLayout: column ^ vec · ((row / per_phase) mod max_phase), on rows; `order` has
    the dimension of columns first, then that of rows. Others only lie one after another.

    >>> from warploom.layout.language.show import show
    >>> show(swizzled_shared((64, 64), 8, 1, 8))
    'S<3,3,3> o (64,64):(64,1)'
    """
    for name, number in (("vec", vec), ("perPhase", per_phase), ("maxPhase", max_phase)):
        if number < 1 or number & (number - 1):
            raise CheckError(f"{name} = {number}", advice="it is a power of two, at least 1")
    inner = _ordered(shape, order)
    sizes = [shape[dimension] for dimension in order or range(len(shape))[::-1]]
    columns = sizes[0]
    if vec * max_phase > columns or columns & (columns - 1):
        raise CheckError(
            f"{vec} · {max_phase} columns are exchanged, and a row has {columns}",
            advice="a row is a power of two, at least vec · maxPhase",
        )
    phases = _phases(sizes, per_phase, max_phase)
    bits, base = phases.bit_length() - 1, vec.bit_length() - 1
    shift = (columns * per_phase // vec).bit_length() - 1
    swizzle = Swizzle(bits, base, shift) if bits else Swizzle(0, 0, 0)
    return check(Compose(swizzle, inner))


def _ordered(shape: tuple[int, ...], order: Sequence[int] | None) -> Strided:
    """The elements one after another, the first dimension of the order fastest."""
    if order is None:
        return row_major(*shape)
    if sorted(order) != [*range(len(shape))]:
        raise CheckError(f"the order {list(order)} of {len(shape)} dimensions")
    strides, stride = [0] * len(shape), 1
    for dimension in order:
        strides[dimension], stride = stride, stride * shape[dimension]
    return Strided(shape, tuple(strides)) if len(shape) > 1 else Strided(shape[0], 1)


def _phases(sizes: list[int], per_phase: int, max_phase: int) -> int:
    """How many phases there are: rows of the next matrix begin again with the first."""
    rows, matrices = ([*sizes, 1][1], int(np.prod(sizes[2:], dtype=np.int64)))
    if matrices == 1 or rows % (per_phase * max_phase) == 0:
        return max_phase
    if rows & (rows - 1):
        raise CheckError(
            f"{matrices} matrices of {rows} rows, swizzled in {per_phase} · {max_phase} rows",
            advice="rows are a power of two, or a multiple of perPhase · maxPhase",
        )
    return max(1, rows // per_phase)


def nvmma_shared(
    shape: tuple[int, ...], swizzle_bytes: int, element_bytes: int, transposed: bool = False
) -> Layout:
    """NVMMASharedLayout: rows of `swizzle_bytes` in the mode that TMA and wgmma have. A wider tile
    lies in blocks of such rows, one block after another. `transposed`: columns lie together.

    >>> from warploom.layout.language.show import show
    >>> show(nvmma_shared((64, 64), 128, 2))
    'S<3,3,3> o (64,64):(64,1)'
    >>> show(nvmma_shared((64, 128), 128, 2))
    'S<3,3,3> o (64,(64,2)):(64,(1,4096))'
    """
    if swizzle_bytes not in (32, 64, 128):
        raise CheckError(f"a swizzle of {swizzle_bytes} bytes", advice="there are 32, 64 and 128")
    if transposed and len(shape) != 2:
        raise CheckError("a transposed NVMMASharedLayout is of two dimensions")
    together = 0 if transposed else len(shape) - 1
    row = shape[together] * element_bytes
    if row % swizzle_bytes:
        raise CheckError(
            f"a row has {row} bytes, not {swizzle_bytes}", advice="it is that, or a multiple of it"
        )
    bits = {128: 3, 64: 2, 32: 1}[swizzle_bytes]
    swizzle = Swizzle(bits, (16 // element_bytes).bit_length() - 1, 3)
    blocks = _blocks(shape, together, swizzle_bytes // element_bytes)
    return check(simplify(Compose(swizzle, blocks)))


def _blocks(shape: tuple[int, ...], together: int, width: int) -> Strided:
    """Blocks one after another, the first dimension's fastest; each is what one tensor copy writes:
    `width` elements of the dimension that lies together, at most MOST_SIDE of the others."""
    sides = [min(size, MOST_SIDE) for size in shape]
    sides[together] = width
    outermost = 0 if together else len(shape) - 1
    if together or shape[together] == width:  # its blocks follow one another as its rows do
        sides[outermost] = shape[outermost] if len(shape) > 1 else width
    counts = [size // side for size, side in zip(shape, sides, strict=True)]
    rows = prod(sides) // width
    if any(size % side for size, side in zip(shape, sides, strict=True)) or (
        prod(counts) > 1 and rows % ATOM_ROWS
    ):
        raise CheckError(
            f"blocks of {'x'.join(map(str, sides))} do not fill {'x'.join(map(str, shape))}",
            advice=f"sizes are powers of two, and there are at least {ATOM_ROWS} rows",
        )
    inner, stride = [0] * len(shape), 1
    for axis in (together, *(axis for axis in range(len(shape))[::-1] if axis != together)):
        inner[axis], stride = stride, stride * sides[axis]
    modes: list[tuple[Tree, Tree]] = []
    for side, count, step in zip(sides, counts, inner, strict=True):
        modes.append((side, step) if count == 1 else ((side, count), (step, stride)))
        stride *= count
    sizes, strides = zip(*modes, strict=True)
    return Strided(sizes, strides) if len(modes) > 1 else Strided(*modes[0])


def padded_shared(shape: tuple[int, ...], *pairs: int) -> Layout:
    """PaddedSharedLayout: so many unused places after every so many elements, for each pair of an
    interval and its padding.

    >>> from warploom.layout.language.show import show
    >>> show(padded_shared((8, 64), 64, 4, 256, 8))
    'pad<272,8> o pad<64,4> o (8,64):(64,1)'
    """
    both = list(zip(pairs[::2], pairs[1::2], strict=True))
    return check(compose(*paddings(both), row_major(*shape)))


def padded_bases(
    bases: list[list[int]], shape: tuple[int, ...], pairs: Sequence[Sequence[int]]
) -> Layout:
    """PaddedSharedLayout of elements in the order of their offsets' bases."""
    return check(compose(*paddings(pairs), from_offset_bases(bases, shape)))


def paddings(pairs: Sequence[Sequence[int]]) -> list[Layout]:
    """What pairs of an interval and its padding do to offsets: all that an offset has passed adds
    up. A larger interval is counted in places, of which smaller paddings have made more."""
    found: list[Layout] = []
    longer = 0  # unused places, in 1/_UNIT of a place for each element
    if not pairs or len({pair[0] for pair in pairs}) < len(pairs):
        raise CheckError("paddings have intervals, each once", advice="write [[32, 4], [256, 8]]")
    for interval, padding in sorted((pair[0], pair[1]) for pair in pairs):
        if interval < 1 or (len(pairs) > 1 and interval & (interval - 1)):
            raise CheckError(f"an interval of {interval}", advice="it is a power of two")
        found.insert(0, Pad(interval + longer * interval // _UNIT, padding))
        longer += padding * _UNIT // interval
    return found


def offset_bases(layout: Layout) -> Bases:
    """The bases of `offset`; zeros where no element's offset has a bit. Refused where the layout is
    not linear, or leaves other gaps.

    >>> offset_bases(swizzled_shared((8, 64), 8, 1, 8))["offset"][-3:]
    [[1, 8], [2, 16], [4, 32]]
    """
    sizes = sizes_of(layout)
    matrix = as_matrix(values(layout))
    if any(size & (size - 1) for size in sizes) or matrix is None or matrix.offset:
        raise CheckError("Triton's bases are of linear layouts of powers of two")
    bits, every = len(matrix.columns), 0
    for column in matrix.columns:
        every |= column
    used = [bit for bit in range(every.bit_length()) if every >> bit & 1]
    if len(used) != bits or not is_injective(values(layout)):
        raise CheckError("Triton's bases are of layouts without gaps, but for whole bits")
    packed = [sum(1 << n for n, bit in enumerate(used) if c >> bit & 1) for c in matrix.columns]
    inverse = BitMap(tuple(packed), 0, bits, (bits,)).inverse()
    found = [[0] * len(sizes) for _ in range(every.bit_length())]
    for bit, column in zip(used, inverse.columns, strict=True):
        found[bit] = _coordinates(column, sizes)
    return {"offset": found}


def from_offset_bases(bases: list[list[int]], shape: tuple[int, ...]) -> Layout:
    """The layout whose offsets have these bases. A base of zeros is a bit that no element's offset
    has: places that stay unused."""
    if any(size < 1 or size & (size - 1) for size in shape):
        raise CheckError(f"a shape of {shape} is no power of two")
    bits = int(np.prod(shape)).bit_length() - 1
    used = [(bit, _number(each, shape)) for bit, each in enumerate(bases) if any(each)]
    if len(used) != bits or int(np.prod(shape)) > MOST_ELEMENTS or len(bases) > MOST_BASES:
        raise CheckError(f"{bits} bases are needed for {shape}, not {len(used)}")
    packed = BitMap(tuple(number for _, number in used), 0, bits, (bits,)).inverse()
    if len(used) < len(bases):
        spread = BitMap(tuple(1 << bit for bit, _ in used), 0, len(bases), (bits,))
        inverse = spread @ packed
    else:
        inverse = packed
    # The numbers of a shape go with the first coordinate fastest; ours of a tensor with the last.
    matrix = Compose(Matrix(inverse.columns, 0), column_major(*shape))
    by_rows = as_matrix(values(matrix)[np.argsort(values(row_major(*shape)))])
    swizzle = None if by_rows is None else as_swizzle(by_rows)
    if swizzle is not None:
        return check(Compose(swizzle, row_major(*shape)))
    return check(matrix)


def _coordinates(number: int, sizes: tuple[int, ...]) -> list[int]:
    """The coordinates of a number, the first fastest."""
    found = []
    for size in sizes:
        found.append(number % size)
        number //= size
    return found


def _number(coordinates: list[int], sizes: tuple[int, ...]) -> int:
    if len(coordinates) != len(sizes):
        raise CheckError(f"the base {coordinates} has not {len(sizes)} coordinates")
    result, stride = 0, 1
    for place, size in zip(coordinates, sizes, strict=True):
        if not 0 <= place < size:
            raise CheckError(f"the base {coordinates} is outside {sizes}")
        result += place * stride
        stride *= size
    return result


def read_bases(text: str) -> Bases:
    """Bases by the name of each input, as JSON or as Python writes them."""
    source = Source("<bases>", text)
    try:
        found: Any = json.loads(text.replace("'", '"'))
    except (json.JSONDecodeError, RecursionError) as error:
        where = source.at(min(getattr(error, "pos", 0), max(0, len(text) - 1)))
        advice = 'write {"lane": [[0, 1], [0, 2]]}'
        raise ParseError("bases are JSON", where, advice) from None
    right = isinstance(found, dict) and all(
        isinstance(bases, list)
        and all(isinstance(b, list) and all(type(n) is int for n in b) for b in bases)
        for bases in found.values()
    )
    if not right:
        advice = 'write {"lane": [[0, 1], [0, 2]]}'
        raise ParseError("bases are lists of coordinates", source.at(0, len(text)), advice)
    return dict(found)
