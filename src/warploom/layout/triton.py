"""Triton's layouts: linear bases and shared layouts by their parameters, read and written.

Triton's maps go from hardware to the tensor: the bases of `offset` say which coordinates lie at the
powers of two of an offset. Ours go from coordinates to an offset, so one is the inverse of the
other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from warploom.errors import CheckError, ParseError
from warploom.index.bits import BitMap
from warploom.layout.build import column_major, row_major
from warploom.layout.check import MOST_ELEMENTS, check
from warploom.layout.evaluate import values
from warploom.layout.expression import sizes_of
from warploom.layout.facts import as_matrix, as_swizzle, facts_of
from warploom.layout.ir import Compose, Layout, Matrix, Pad, Swizzle

Bases = dict[str, list[list[int]]]


def swizzled_shared(shape: tuple[int, ...], vec: int, per_phase: int, max_phase: int) -> Layout:
    """SwizzledSharedLayout: column ^ vec · ((row / per_phase) mod max_phase), on rows.

    >>> from warploom.layout.show import show
    >>> show(swizzled_shared((64, 64), 8, 1, 8))
    'S<3,3,3> o (64,64):(64,1)'
    """
    for name, number in (("vec", vec), ("perPhase", per_phase), ("maxPhase", max_phase)):
        if number < 1 or number & (number - 1):
            raise CheckError(f"{name} = {number}", advice="it is a power of two, at least 1")
    columns = shape[-1]
    if vec * max_phase > columns or columns & (columns - 1):
        raise CheckError(
            f"{vec} · {max_phase} columns are exchanged, and a row has {columns}",
            advice="a row is a power of two, at least vec · maxPhase",
        )
    bits, base = max_phase.bit_length() - 1, vec.bit_length() - 1
    shift = (columns * per_phase // vec).bit_length() - 1
    swizzle = Swizzle(bits, base, shift) if bits else Swizzle(0, 0, 0)
    return check(Compose(swizzle, row_major(*shape)))


def nvmma_shared(shape: tuple[int, ...], swizzle_bytes: int, element_bytes: int) -> Layout:
    """NVMMASharedLayout for rows of `swizzle_bytes`: the mode that TMA and wgmma have.

    >>> from warploom.layout.show import show
    >>> show(nvmma_shared((64, 64), 128, 2))
    'S<3,3,3> o (64,64):(64,1)'
    """
    if swizzle_bytes not in (32, 64, 128):
        raise CheckError(f"a swizzle of {swizzle_bytes} bytes", advice="there are 32, 64 and 128")
    if shape[-1] * element_bytes != swizzle_bytes:
        raise CheckError(f"a row has {shape[-1] * element_bytes} bytes, not {swizzle_bytes}")
    phases = {128: (1, 8), 64: (2, 4), 32: (4, 2)}[swizzle_bytes]
    return swizzled_shared(shape, 16 // element_bytes, *phases)


def padded_shared(shape: tuple[int, ...], interval: int, padding: int) -> Layout:
    """PaddedSharedLayout with one interval: so many unused places after every so many elements."""
    return check(Compose(Pad(interval, padding), row_major(*shape)))


def offset_bases(layout: Layout) -> Bases:
    """The bases of `offset`; refused where the layout is not linear or leaves gaps.

    >>> offset_bases(swizzled_shared((8, 64), 8, 1, 8))["offset"][-3:]
    [[1, 8], [2, 16], [4, 32]]
    """
    sizes = sizes_of(layout)
    matrix = as_matrix(values(layout))
    if any(size & (size - 1) for size in sizes) or matrix is None or matrix.offset:
        raise CheckError("Triton's bases are of linear layouts of powers of two")
    if not facts_of(layout).bijective:
        raise CheckError("Triton's bases are of layouts without gaps")
    bits = len(matrix.columns)
    inverse = BitMap(matrix.columns, 0, bits, (bits,)).inverse()
    return {"offset": [_coordinates(column, sizes) for column in inverse.columns]}


def from_offset_bases(bases: list[list[int]], shape: tuple[int, ...]) -> Layout:
    """The layout whose offsets have these bases."""
    if any(size < 1 or size & (size - 1) for size in shape):
        raise CheckError(f"a shape of {shape} is no power of two")
    bits = int(np.prod(shape)).bit_length() - 1
    if len(bases) != bits or int(np.prod(shape)) > MOST_ELEMENTS:
        raise CheckError(f"{bits} bases are needed for {shape}, not {len(bases)}")
    columns = tuple(_number(each, shape) for each in bases)
    inverse = BitMap(columns, 0, bits, (bits,)).inverse()
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


_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


def read_bases(text: str) -> Bases:
    """Bases by the name of each input, as JSON or as Python writes them."""
    try:
        found: Any = json.loads(text.replace("'", '"'))
    except (json.JSONDecodeError, RecursionError):
        raise ParseError("bases are JSON", advice='write {"lane": [[0, 1], [0, 2]]}') from None
    right = isinstance(found, dict) and all(
        isinstance(bases, list)
        and all(isinstance(b, list) and all(type(n) is int for n in b) for b in bases)
        for bases in found.values()
    )
    if not right:
        raise ParseError("bases are lists of coordinates", advice='{"lane": [[0, 1], [0, 2]]}')
    return dict(found)


def read_call(text: str, shape: tuple[int, ...] | None, element_bytes: int) -> Layout | None:
    """A shared layout by its parameters, as Triton and Gluon write it; None if it is none.

    >>> from warploom.layout.show import show
    >>> show(read_call("SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8)", (8, 64), 2))
    'S<3,3,3> o (8,64):(64,1)'
    """
    found = _CALL.fullmatch(text)
    if found is None or found[1] not in _SHARED:
        return None
    if shape is None:
        raise ParseError(f"{found[1]} does not say the shape", advice="give the pattern it is for")
    names, build = _SHARED[found[1]]
    numbers = _arguments(found[1], found[2], names, len(shape))
    missing = [name for name in names if name not in numbers]
    if missing:
        raise ParseError(f"{found[1]} needs {', '.join(missing)}")
    return build(shape, [numbers[name] for name in names], element_bytes)


def _arguments(call: str, text: str, names: tuple[str, ...], rank: int) -> dict[str, int]:
    """Numbers by name or in order. An order of dimensions may be said if it is that of rows."""
    numbers: dict[str, int] = {}
    for place, word in enumerate(re.split(r",(?![^\[]*\])", text)):
        key, equals, value = word.partition("=")
        name = key.strip().lower().replace("_", "") if equals else dict(enumerate(names)).get(place)
        said = (value if equals else word).strip()
        if name == "order" and re.sub(r"\s", "", said) == str([*range(rank)][::-1]).replace(
            " ", ""
        ):
            continue
        if name not in names or not re.fullmatch(r"[0-9]{1,6}", said):
            raise ParseError(
                f"'{word.strip()[:40]}' is not understood in {call}",
                advice=f"it takes {', '.join(names)}, and an order in which rows are contiguous",
            )
        numbers[name] = int(said)
    return numbers


_Build: TypeAlias = Callable[[tuple[int, ...], list[int], int], Layout]
_SHARED: dict[str, tuple[tuple[str, ...], _Build]] = {
    "SwizzledSharedLayout": (
        ("vec", "perphase", "maxphase"), lambda shape, n, _: swizzled_shared(shape, *n)
    ),
    "swizzled": (
        ("vec", "perphase", "maxphase"), lambda shape, n, _: swizzled_shared(shape, *n)
    ),
    "NVMMASharedLayout": (
        ("swizzlebytewidth",), lambda shape, n, size: nvmma_shared(shape, n[0], size)
    ),
    "PaddedSharedLayout": (
        ("interval", "padding"), lambda shape, n, _: padded_shared(shape, *n)
    ),
}  # fmt: skip
