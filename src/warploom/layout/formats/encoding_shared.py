"""Layouts of shared memory and tensor memory in Triton's IR → linear layouts of offsets and blocks,
and → our layouts of addresses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

import numpy as np

from warploom.errors import CheckError, UnsupportedError
from warploom.layout.formats.attribute_fields import check_fields
from warploom.layout.formats.linear import (
    Base,
    Growing,
    Linear,
    bits_of,
    blocks_of,
    order_of,
)
from warploom.layout.formats.mlir import Attribute
from warploom.layout.formats.tma import MOST_SIDE
from warploom.layout.formats.triton import ATOM_ROWS, from_offset_bases, nvmma_shared, paddings
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import values
from warploom.layout.language.ir import Layout, compose

SHARED = (
    "ttg.swizzled_shared", "ttg.nvmma_shared", "ttg.shared_linear", "ttg.padded_shared",
    "ttg.amd_rotating_shared", "ttng.tensor_memory_encoding",
)  # fmt: skip
ALIGNMENT = 16  # bytes, where a shared_linear says nothing else
_PHASES = {0: (1, 1), 32: (4, 2), 64: (2, 4), 128: (1, 8)}  # swizzle bytes → perPhase, maxPhase


def shared_linear_of(attribute: Attribute, shape: Sequence[int]) -> Linear:
    check_fields(attribute)
    match attribute.name:
        case "ttg.swizzled_shared" | "ttg.amd_rotating_shared":
            return _swizzled(attribute, shape)
        case "ttg.nvmma_shared":
            return _nvmma(attribute, shape)
        case "ttng.tensor_memory_encoding":
            return _tensor_memory(attribute, shape)
        case "ttg.shared_linear" | "ttg.padded_shared":
            return _by_bases(attribute, shape)
    raise UnsupportedError(
        f"#{attribute.name[:40]} is no layout of shared memory that is known here",
        advice=f"known are {', '.join(SHARED)}",
    )


def shared_layout(attribute: Attribute, shape: Sequence[int]) -> Layout:
    """Where each element of a tile lies, in elements from the start of the tile; where several
    blocks share it, of the first block's part.

    >>> from warploom.layout.formats.mlir import read_attribute
    >>> from warploom.layout.language.show import show
    >>> text = "#ttg.padded_shared<[64:+4, 256:+8] {order = [1, 0], shape = [8, 64]}>"
    >>> show(shared_layout(read_attribute(text), (8, 64)))
    'pad<272,8> o pad<64,4> o S<0,0,0> o (8,64):(64,1)'
    """
    linear = shared_linear_of(attribute, shape).of_one_block()
    if "offset" not in linear.bases:
        raise CheckError(f"#{attribute.name} is no layout of shared memory")
    inner = from_offset_bases(linear.lists()["offset"], linear.shape)
    if attribute.name == "ttg.nvmma_shared":
        inner = _in_blocks(attribute, linear.shape, inner)
    return check(compose(*_padding(attribute), inner))


def check_width(attribute: Attribute, element_bytes: int | None) -> None:
    """Swizzles of bytes are those of other elements where elements have another size."""
    if attribute.name == "ttg.nvmma_shared" and element_bytes is not None:
        bits = attribute.number("elementBitWidth")
        if bits != 8 * element_bytes:
            raise CheckError(
                f"#{attribute.name} of {bits} bits, and an element has {8 * element_bytes}"
            )


def _in_blocks(attribute: Attribute, shape: tuple[int, ...], found: Layout) -> Layout:
    """The layout by shapes and strides, which CuTe can express, where that is known."""
    bits = attribute.number("elementBitWidth")
    width, turned = attribute.number("swizzlingByteWidth"), attribute.truth("transposed")
    with suppress(CheckError):
        known = nvmma_shared(shape, width, bits // 8, turned)
        if np.array_equal(values(known), values(found)):
            return known
    return found


def _padding(attribute: Attribute) -> list[Layout]:
    """After so many elements so many unused places; several pairs add up."""
    if attribute.name != "ttg.padded_shared":
        return []
    pairs = [attribute.checked_numbers(each, "the intervals") for each in _pairs(attribute)]
    for pair in pairs:
        if len(pair) != 2 or not all(pair):
            raise CheckError(f"#{attribute.name} with the pair {pair}", advice="write [32:+4]")
        bits_of(pair[0])
    return paddings(pairs)


def _pairs(attribute: Attribute) -> list[object]:
    found = attribute.places[0] if len(attribute.places) == 1 else None
    if not isinstance(found, list) or not found:
        raise CheckError(f"#{attribute.name} without its intervals", advice="write [32:+4]")
    return list(found)


def _split(attribute: Attribute, shape: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Bases of blocks, and the shape of one block's part."""
    blocks = blocks_of(attribute, len(shape))
    part = list(shape)
    for dimension in range(len(shape)):
        most = max((base[dimension] for base in blocks), default=0)
        part[dimension] = max(1, part[dimension] >> most.bit_length())
    return blocks, part


def _swizzled(attribute: Attribute, shape: Sequence[int]) -> Linear:
    rank, found = len(shape), Growing(len(shape), "offset")
    blocks, part = _split(attribute, shape)
    order = order_of(attribute, "order", rank)
    if rank == 1:
        found.grow("offset", 0, part[0])
        return found.filling(shape, order, blocks)
    vec, per, most = (_power(attribute, key) for key in ("vec", "perPhase", "maxPhase"))
    column, row = order[0], order[1]
    found.grow("offset", column, part[column])
    for bit in range(bits_of(part[row])):
        phase = ((1 << bit) // per) % most
        if attribute.name == "ttg.amd_rotating_shared":
            phase ^= ((1 << bit) // most // per) % most
        base = [0] * rank
        base[row], base[column] = 1 << bit, vec * phase % part[column]
        found.add("offset", tuple(base))
    found.sizes[row] = part[row]
    for dimension in order[2:]:
        found.grow("offset", dimension, part[dimension])
    return found.filling(shape, order, blocks)


def _power(attribute: Attribute, key: str) -> int:
    number = attribute.number(key)
    bits_of(number)
    return number


def _nvmma(attribute: Attribute, shape: Sequence[int]) -> Linear:
    """Boxes that one tensor copy writes, one after another, the first dimension's fastest."""
    rank = len(shape)
    blocks, part = _split(attribute, shape)
    swizzle = attribute.number("swizzlingByteWidth")
    bits = _power(attribute, "elementBitWidth")
    if swizzle not in _PHASES:
        raise attribute.wrong("swizzlingByteWidth", "0, 32, 64 or 128")
    turned, padded = attribute.truth("transposed"), attribute.truth("fp4Padded")
    together = 0 if turned else rank - 1
    box = [min(size, MOST_SIDE) for size in part]
    if swizzle:
        box[together] = 8 * swizzle // bits // (2 if padded else 1)
    if box[together] > part[together] or rank < 2 <= swizzle:
        raise CheckError(
            f"#{attribute.name} of {swizzle} bytes for {'x'.join(map(str, shape))}",
            advice="a row has at least as many bytes as the swizzle",
        )
    numbers = _box_numbers(swizzle, bits, padded, box, turned)
    outer = [*box[1:], box[0]] if turned else box  # the last is the fastest
    found = Growing(rank, "offset")
    for number in numbers:
        place = _unravelled(number, outer)
        found.add("offset", (place[-1], *place[:-1]) if turned else place)
    found.sizes = list(box)
    return found.filling(shape, range(rank), blocks)


def _box_numbers(swizzle: int, bits: int, padded: bool, box: list[int], turned: bool) -> list[int]:
    """Which element of a box each bit of an offset adds, as numbers with rows of all others."""
    if not swizzle:
        return [1 << bit for bit in range(bits_of(prod(box)))]
    per, most = _PHASES[swizzle]
    vec, columns = 128 // bits, 8 * swizzle // bits
    width = prod(box[:-1]) if turned else box[-1]
    rows = prod(box) // width
    if rows < ATOM_ROWS:
        raise CheckError(f"{rows} rows", advice=f"a swizzle goes over {ATOM_ROWS} rows")

    def packed(column: int) -> int:
        return column // 16 * 8 + column % 8 if padded else column

    found = [packed(1 << bit) for bit in range(bits_of(columns))]
    found += [(1 << bit) * width + packed(vec * ((1 << bit) // per % most)) for bit in range(3)]
    own = columns // (2 if padded else 1)
    found += [(1 << bit) * width for bit in range(3, bits_of(rows))]
    found += [own << bit for bit in range(bits_of(max(1, width // own)))]
    return found


def _unravelled(number: int, sizes: Sequence[int]) -> Base:
    found = []
    for size in reversed(sizes):
        found.append(number % size)
        number //= size
    return tuple(reversed(found))


def _by_bases(attribute: Attribute, shape: Sequence[int]) -> Linear:
    """Bases of offsets as they are said, or an order of dimensions."""
    rank, found = len(shape), Growing(len(shape), "offset")
    if "order" in attribute.fields:
        blocks, part = _split(attribute, shape)
        found.grow_all("offset", part, order_of(attribute, "order", rank))
        return found.filling(shape, range(rank), blocks)
    bases, blocks = attribute.bases("offset"), attribute.bases("block")
    for base in (*bases, *blocks):
        if len(base) != rank or any(n >= size for n, size in zip(base, shape, strict=True)):
            raise CheckError(f"the base {base} is outside {'x'.join(map(str, shape))}")
    return Linear(
        {"offset": tuple(map(tuple, bases)), "block": tuple(map(tuple, blocks))}, tuple(shape)
    )


def _tensor_memory(attribute: Attribute, shape: Sequence[int]) -> Linear:
    """Rows and columns of tensor memory; 64 rows of a block take every other group of 16."""
    blocks, part = _split(attribute, shape)
    height, width = _power(attribute, "blockM"), _power(attribute, "blockN")
    if len(shape) != 2 or height not in (64, 128):
        raise attribute.wrong("blockM", "64 or 128, of a matrix")
    width = min(width, part[1])
    found = Growing(2, "row", "col")
    found.repeat("col", attribute.number("colStride", 1))
    if attribute.truth("fp4Padded"):
        found.repeat("col", 2)
    if height == 128:
        found.grow("row", 0, 128)
        found.grow("col", 1, width)
    else:
        found.grow("row", 0, 16)
        found.grow("col", 1, width)
        gap = (64, 0) if part[0] > 64 else (0, width) if part[1] > width else (0, 0)
        for base in (gap, (16, 0), (32, 0)):
            found.add("row", base)
        found.sizes = [128 if gap[0] else 64, 2 * width if gap[1] else width]
    found.grow("col", 0, max(1, part[0] // found.sizes[0]))
    found.grow("col", 1, max(1, part[1] // found.sizes[1]))
    moved = tuple(tuple(n * size for n, size in zip(b, part, strict=True)) for b in blocks)
    bases = {name: tuple(each) for name, each in found.bases.items()}
    return Linear({**bases, "block": moved}, tuple(shape))
