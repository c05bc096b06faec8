"""Descriptors by which wgmma reads its operands from shared memory, in both directions: what a
descriptor reads, and which descriptors read a tile.

    LBO, SBO   the leading and the stride offset, here in bytes
    major k    elements of one row lie together along k; major mn: along m or n

                 swizzled, major k     rows of 8, SBO from one eight to the next
                 swizzled, major mn    columns of 8 along k, SBO from eight to eight; LBO from one
                                       swizzled row to the next along m or n
                 no swizzle            pieces of 8 × 16 bytes, with both offsets between them

An instruction takes 32 bytes of k. Further instructions have other starts: `Reading.starts`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Literal, NoReturn, TypeAlias, get_args

import numpy as np

from warploom.errors import CheckError, ParseError, Source, Span, within
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.ir import Layout, Shift, Strided, Swizzle, Tree, compose

Major: TypeAlias = Literal["k", "mn"]
MAJORS: tuple[Major, ...] = get_args(Major)
SPANS = {"none": 16, "128B": 128, "64B": 64, "32B": 32}  # bytes of a swizzled row, by mode
_CODES = {name: code for code, name in enumerate(SPANS)}  # as the highest two bits say them
_CUTE = {"INTERLEAVE": "none", "B128": "128B", "B64": "64B", "B32": "32B"}
UNIT = 16  # bytes that offsets and starts count
MOST = 1 << 18  # bytes that they reach
_OFFSET, _BASE_OFFSET = 0x3FFF, 7 << 49
_KNOWN_BITS = _OFFSET | _OFFSET << 16 | _OFFSET << 32 | _BASE_OFFSET | 3 << 62
STEP_BYTES = 32  # of k, that one instruction takes
EIGHT = 8
_FIELD = re.compile(r"(\w+)\s*:\s*(0x[0-9a-fA-F]{1,4})(?:\s*\((\w+)\))?", re.ASCII)
_FIELDS = ("start_addr", "leading_off", "stride_off", "base_offset", "layout_type")
_OURS = re.compile(r"wgmma<(none|32B|64B|128B),(\d{1,6}),(\d{1,6})(?:,(\d{1,6}))?>")
_NO_BASE = "its matrix begins at a whole pattern of the swizzle, so that the base offset is 0"
_OF_WGMMA = "descriptors of other instructions, such as tcgen05.mma, are not known here"
_NUMBER = re.compile(r"(0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19})(?:u|ul|ull|U|UL|ULL)?")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Where a matrix starts and how far its parts are from each other, in bytes."""

    mode: str
    leading: int
    stride: int
    start: int = 0

    @property
    def bits(self) -> int:
        """As the instruction takes it.

        >>> hex(Descriptor("128B", 16, 1024).bits)
        '0x4000004000010000'
        """
        units = [each // UNIT for each in (self.start, self.leading, self.stride)]
        return units[0] | units[1] << 16 | units[2] << 32 | _CODES[self.mode] << 62

    def __str__(self) -> str:
        start = f",{self.start}" if self.start else ""
        return f"wgmma<{self.mode},{self.leading},{self.stride}{start}>"


def check_descriptor(descriptor: Descriptor) -> Descriptor:
    """The descriptor itself, if it is one."""
    if descriptor.mode not in SPANS:
        _fail(f"no mode is called '{descriptor.mode[:20]}'", f"known are {', '.join(SPANS)}")
    for name in ("leading", "stride", "start"):
        found = getattr(descriptor, name)
        if found % UNIT or not 0 <= found < MOST:
            _fail(f"{name} of a descriptor: {found} bytes", f"a multiple of {UNIT} below {MOST}")
    return descriptor


def from_bits(bits: int) -> Descriptor:
    if bits >> 64:
        _fail(f"the descriptor {bits:#x}", "a descriptor has 64 bits")
    if bits & ~_KNOWN_BITS:
        strange = bits & ~_KNOWN_BITS
        named = ", ".join(str(at) for at in range(64) if strange >> at & 1)
        _fail(f"the descriptor {bits:#x} has bits that wgmma's have not: {named}", _OF_WGMMA)
    if bits & _BASE_OFFSET:
        _fail(f"the descriptor {bits:#x} with a base offset", _NO_BASE)
    start, leading, stride = ((bits >> at & _OFFSET) * UNIT for at in (0, 16, 32))
    return Descriptor(next(m for m, c in _CODES.items() if c == bits >> 62), leading, stride, start)


def read_descriptor(text: str) -> Descriptor:
    """A number, what CuTe prints of a `GmmaDescriptor`, or `wgmma<128B,16,1024>`: mode, LBO, SBO
    and, if it is not 0, the start.

    >>> read_descriptor("0x4000004000010000")
    Descriptor(mode='128B', leading=16, stride=1024, start=0)
    """
    with within(Source("<descriptor>", text)):
        return _read(text.strip())


def _read(text: str) -> Descriptor:
    if (number := _NUMBER.fullmatch(text)) is not None:
        return from_bits(int(number[1], 0))
    if (ours := _OURS.fullmatch(text)) is not None:
        mode, *offsets = ours.groups(default="0")
        return check_descriptor(Descriptor(mode, *map(int, offsets)))
    if text.startswith("GmmaDescriptor"):
        return _printed(text)
    raise ParseError(f"'{text[:60]}' is no descriptor of wgmma", advice="write 0x4000004000010000")


def _printed(text: str) -> Descriptor:
    """What CuTe prints: the number, and its fields in lines, which say the same."""
    source = Source("<descriptor>", text)
    fields: dict[str, tuple[int, str]] = {}
    first, *others = text.split("\n")
    for number, line in enumerate(others, 2):
        said, column = line.strip(), len(line) - len(line.lstrip()) + 1
        field = _FIELD.fullmatch(said)
        if said and (field is None or field[1] not in _FIELDS or field[1] in fields):
            raise ParseError(
                f"'{said[:40]}' is no field of a descriptor, or one that is there already",
                Span(source, number, column, len(said)),
                f"fields are {', '.join(_FIELDS)}, each once: leading_off: 0x0001 (1)",
            )
        if field is not None:
            fields[field[1]] = int(field[2], 16), field[3] or ""
    whole = _NUMBER.fullmatch(first.removeprefix("GmmaDescriptor").lstrip(" :").rstrip())
    missing = [name for name in _FIELDS if name not in fields and name != "base_offset"]
    if whole is None or missing:
        raise ParseError(
            f"'{text[:60]}' is no descriptor of wgmma",
            source.at(0, len(first)),
            f"{', '.join(missing) or 'the number'} should be there, as CuTe prints it",
        )
    found, (code, word) = from_bits(int(whole[1], 0)), fields["layout_type"]
    units = [fields[name][0] for name in ("start_addr", "leading_off", "stride_off")]
    own = [each // UNIT for each in (found.start, found.leading, found.stride)]
    if units != own or code != _CODES[found.mode] or _CUTE.get(word, found.mode) != found.mode:
        raise ParseError(
            f"the descriptor {found.bits:#x} and its fields differ",
            source.at(0, len(first)),
            "both are printed of one descriptor",
        )
    return found


def is_descriptor(text: str) -> bool:
    return text.lstrip().startswith(("wgmma<", "GmmaDescriptor", "0x"))


def places(descriptor: Descriptor, rows: int, depth: int, size: int, major: Major) -> Numbers:
    """[row, k]: the bytes at which elements of `size` bytes are read."""
    row, k = np.arange(rows)[:, None], np.arange(depth)[None]
    span = SPANS[descriptor.mode]
    inner, line = (k * size, row) if major == "k" else (row * size, k)
    eights = line // EIGHT * descriptor.stride + line % EIGHT * span
    if descriptor.mode != "none":
        along = inner if major == "k" else inner // span * descriptor.leading + inner % span
        place = eights + along
    elif major == "k":
        place = eights + inner // UNIT * descriptor.leading + inner % UNIT
    else:
        leading = line // EIGHT * descriptor.leading + line % EIGHT * span
        place = leading + inner // UNIT * descriptor.stride + inner % UNIT
    return swizzled(descriptor.start + place, descriptor.mode)


def swizzled(byte: Numbers, mode: str) -> Numbers:
    """The place of a byte after the swizzle, which undoes itself."""
    found: Numbers = byte ^ ((byte >> 7 & SPANS[mode] // UNIT - 1) << 4)
    return found


def operand_layout(
    descriptor: Descriptor, shape: tuple[int, ...], size: int, major: Major = "k"
) -> Layout:
    """What one descriptor reads of a tile with m or n in rows and k in columns, as CuTe has it.

    >>> from warploom.layout.language.show import show
    >>> show(operand_layout(Descriptor("128B", 16, 1024), (64, 64), 2))
    'S<3,3,3> o ((8,8),64):((64,512),1)'
    """
    check_descriptor(descriptor)
    if len(shape) != 2 or size not in (1, 2, 4):
        _fail("a descriptor is of a matrix", "elements have 1, 2 or 4 bytes")
    start = [Shift(descriptor.start // size)] if descriptor.start else []
    if major == "mn" and size != 2:
        _fail(f"major mn of elements of {size} bytes", "only elements of 16 bits have that")
    span, mode = SPANS[descriptor.mode], descriptor.mode
    along, across = (shape[1], shape[0]) if major == "k" else shape
    if across % EIGHT or along * size % UNIT:
        _fail(f"a matrix of {'x'.join(map(str, shape))}", "whole pieces of 8 rows and 16 bytes")
    stride, leading, wide = descriptor.stride // size, descriptor.leading // size, span // size
    eights = _mode(((EIGHT, wide), (across // EIGHT, leading if _turned(mode, major) else stride)))
    if major == "k" and mode != "none":
        if along > wide:
            _fail(
                f"{along * size} bytes of k, and a row of the swizzle has {span}",
                "further k has a descriptor with another start",
            )
        lines: tuple[Tree, Tree] = (along, 1)
    else:
        further = stride if _turned(mode, major) else leading
        lines = _mode(((min(along, wide), 1), (max(1, along // wide), further)))
    modes = (eights, lines) if major == "k" else (lines, eights)
    inner = Strided(tuple(m[0] for m in modes), tuple(m[1] for m in modes))
    bits = (span // UNIT).bit_length() - 1
    swizzle = Swizzle(bits, 4 - (size.bit_length() - 1), 3)
    return check(compose(*([swizzle] if bits else []), *start, inner))


def _turned(mode: str, major: Major) -> bool:
    """Without a swizzle and with m or n together, the two offsets change places."""
    return mode == "none" and major == "mn"


def _mode(pairs: tuple[tuple[int, int], tuple[int, int]]) -> tuple[Tree, Tree]:
    (size, step), (count, further) = pairs
    return (size, step) if count == 1 else ((size, count), (step, further))


# -- which descriptors read a tile -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """`descriptor` without a start, and where instructions start, [rows][k], in bytes from the
    tile's own start, which is a multiple of 1024."""

    descriptor: Descriptor
    starts: tuple[tuple[int, ...], ...]


def reading_of(
    addresses: Numbers, shape: tuple[int, ...], size: int, rows: int, major: Major
) -> Reading | None:
    """The descriptors that read a whole tile, `rows` of m or n at a time, if there are such.
    `addresses`: of every element of the tile by its row-major number, in elements; k is the last
    dimension of the tile, or the first with m or n together."""
    if len(shape) != 2 or prod(shape) != len(addresses):
        return None
    table = addresses.reshape(shape) * size
    tile = table if major == "k" else table.T  # [m or n, k]
    depth = STEP_BYTES // size
    if tile.shape[0] % rows or tile.shape[1] % depth or rows % EIGHT:
        return None
    for mode in SPANS:
        found = _read_by(tile, mode, rows, depth, size, major)
        if found is not None:
            return found
    return None


def _read_by(
    tile: Numbers, mode: str, rows: int, depth: int, size: int, major: Major
) -> Reading | None:
    plain = swizzled(tile, mode)  # undone, if this is the mode
    pieces = plain.reshape(tile.shape[0] // rows, rows, tile.shape[1] // depth, depth)
    blocks = pieces.transpose(0, 2, 1, 3)
    first = blocks[..., 0, 0]
    descriptor = _offsets(blocks[0, 0] - first[0, 0], mode, size, major)
    if descriptor is None:
        return None
    for place, start in np.ndenumerate(first):
        if start % UNIT or not 0 <= start < MOST:
            return None
        moved = Descriptor(mode, descriptor.leading, descriptor.stride, int(start))
        expected = places(moved, rows, depth, size, major)
        if not np.array_equal(swizzled(blocks[place], mode), expected):
            return None
    return Reading(descriptor, tuple(map(tuple, first.tolist())))


def _offsets(block: Numbers, mode: str, size: int, major: Major) -> Descriptor | None:
    """The offsets that the distances of one instruction's elements say."""
    rows, depth = block.shape
    span = SPANS[mode] // size
    at_eight = int(block[EIGHT, 0]) if rows > EIGHT else 0
    if major == "k":
        beside = int(block[0, UNIT // size]) if mode == "none" else UNIT
        pair = (beside, at_eight)
    else:
        along = int(block[span, 0]) if rows > span else 0
        deep = int(block[0, EIGHT]) if depth > EIGHT else 0
        pair = (deep, along) if mode == "none" else (along, deep)
    if any(each % UNIT or not 0 <= each < MOST for each in pair):
        return None
    return Descriptor(mode, *pair)


def _fail(message: str, advice: str) -> NoReturn:
    raise CheckError(message, advice=advice)
