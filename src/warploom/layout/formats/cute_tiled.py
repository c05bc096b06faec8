"""CuTe's TiledCopy and TiledMMA as they print → which elements each thread has.

    TiledCopy
      Tiler_MN:       (_16,_64)
      TiledLayout_TV: ((_8,_16),_8):((_128,_1),_16)
    Copy_Atom
      ThrID:        _1:_0
      ValLayoutSrc: (_1,_8):(_0,_1)
      …
      ValueType:    16b

A tile is repeated over a tensor, along its first dimension first. Threads and values number the
elements of a tile with the first coordinate fastest, as CuTe has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

import numpy as np

from warploom.errors import CheckError, ParseError, Source, Span, WarploomError, within
from warploom.layout.conversion.fragment import LANES, Fragment, check_fragment
from warploom.layout.formats.cute import read_cute
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.ir import Strided

MOST_TEXT = 20_000
OPERANDS = ("A", "B", "C")
_FIELD = re.compile(r"^\s*(\w+):[ \t]*(\S.*?)\s*$", re.MULTILINE | re.ASCII)
_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}  # of M, N and K


@dataclass(frozen=True, eq=False)
class Tiled:
    """`numbers[thread, value]` of one tile, with the first coordinate fastest; `width` values of a
    thread are moved together."""

    name: str
    shape: tuple[int, int]
    numbers: Numbers
    width: int

    def fragment(self, shape: tuple[int, ...] | None = None, lanes: int = LANES) -> Fragment:
        """The tile repeated over a tensor: repetitions are further registers."""
        rows, columns = self.shape
        whole = shape or self.shape
        if len(whole) != 2 or whole[0] % rows or whole[1] % columns:
            raise CheckError(
                f"{self.name} has tiles of {rows}x{columns}, and the tensor is of "
                f"{'x'.join(map(str, whole))}",
                advice="its sizes are multiples of the tile's",
            )
        if self.numbers.shape[0] % lanes:
            raise CheckError(f"{self.name} is of {self.numbers.shape[0]} threads, no whole warps")
        row, column = self.numbers % rows, self.numbers // rows
        parts = [
            (row + r) * whole[1] + column + c
            for c in range(0, whole[1], columns)
            for r in range(0, whole[0], rows)
        ]
        elements = np.concatenate(parts, axis=1)
        held = elements.reshape(-1, lanes, elements.shape[1])
        return check_fragment(Fragment(self.name, whole, held))


def is_tiled(text: str) -> bool:
    return "TiledCopy" in text or "TiledMMA" in text


def read_tiled(text: str, operand: str | None = None) -> Tiled:
    """A TiledCopy, or an operand of a TiledMMA: A, B or C. The operand may stand before the text:
    `A of TiledMMA …`."""
    if len(text) > MOST_TEXT:
        raise ParseError(f"a text of {len(text)} letters is no TiledCopy")
    before = re.match(r"\s*([ABC]) of\s", text)
    operand = operand or (before[1] if before else None)
    fields = Fields(text)
    with within(fields.source):
        if "TiledCopy" in text:
            if operand is not None:
                raise ParseError("a TiledCopy has no operands", advice="leave the operand out")
            return _copy(fields)
        if operand not in OPERANDS:
            advice = "write A of TiledMMA, or B, or C"
            raise ParseError("which operand of the TiledMMA is meant?", advice=advice)
        return _mma(fields, operand)


class Fields:
    """The lines `Name: value` of a text, each with its place."""

    def __init__(self, text: str) -> None:
        self.source = Source("<tiled>", text)
        self._found = {found[1]: found for found in _FIELD.finditer(text)}

    def text(self, key: str) -> str:
        return self._found[key][2] if key in self._found else ""

    def span(self, key: str) -> Span | None:
        if key not in self._found:
            return None
        return self.source.at(self._found[key].start(2), len(self._found[key][2]))

    def layout(self, key: str) -> Strided:
        if key not in self._found:
            raise ParseError(f"{key} is missing", advice="give all that print() shows")
        try:
            found = read_cute(self.text(key))
        except WarploomError as error:
            start = self._found[key].start(2)
            inside = 0 if error.span is None else error.span.column - 1
            error.span = self.source.at(start + inside, error.span.length if error.span else 1)
            raise
        if not isinstance(found, Strided):
            raise ParseError(f"{key} is no layout of shapes and strides", self.span(key))
        return found

    def sizes(self, key: str) -> tuple[int, ...]:
        text = self.text(key)
        if not re.fullmatch(r"\(_?[0-9]{1,6}(,\s*_?[0-9]{1,6})*\)", text):
            said = f"{key} is {text[:40] or 'missing'}"
            raise ParseError(said, self.span(key), "it is a tuple of sizes")
        return tuple(int(number) for number in re.findall(r"[0-9]+", text))

    def table(self, key: str) -> Numbers:
        """[thread, value] → the number of an element."""
        layout = self.layout(key)
        sizes = sizes_of(layout)
        if len(sizes) != 2 or prod(sizes) > 1 << 20:
            raise CheckError(f"{key} is not of threads and values", self.span(key))
        found = values(layout).reshape(sizes[::-1]).T
        if found.min() < 0:
            raise CheckError(f"{key} has a negative place", self.span(key))
        return found


def _copy(fields: Fields) -> Tiled:
    tile = fields.sizes("Tiler_MN")
    if len(tile) != 2:
        said = f"Tiler_MN of {len(tile)} dimensions"
        raise CheckError(said, fields.span("Tiler_MN"), "a tile is a matrix here")
    if prod(sizes_of(fields.layout("ThrID"))) != 1:
        raise CheckError(
            "a copy atom of several threads, such as ldmatrix",
            fields.span("ThrID"),
            'use = "ldmatrix" in a pattern file stands for such loads',
        )
    moved = sizes_of(fields.layout("ValLayoutSrc"))
    numbers = fields.table("TiledLayout_TV")
    width = prod(moved[1:])
    if numbers.max() >= prod(tile) or numbers.shape[1] % width:
        said = "TiledLayout_TV does not fit Tiler_MN and the values of the atom"
        raise CheckError(said, fields.span("TiledLayout_TV"))
    return Tiled("TiledCopy", (tile[0], tile[1]), numbers, width)


def _mma(fields: Fields, operand: str) -> Tiled:
    sizes = fields.sizes("Shape_MNK")
    threads = fields.layout("ThrLayoutVMNK")
    if len(sizes) != 3 or len(sizes_of(threads)) != 4:
        said = "Shape_MNK has three sizes, and ThrLayoutVMNK four"
        raise CheckError(said, fields.span("Shape_MNK"))
    if not re.fullmatch(r"\((_[0-9]*,?\s*){3}\)", fields.text("PermutationMNK")):
        raise CheckError(
            "a TiledMMA with permutations",
            fields.span("PermutationMNK"),
            "PermutationMNK is (_,_,_) or sizes",
        )
    atom = fields.table(f"Layout{operand}_TV")
    own = [sizes[mode] for mode in _MODES[operand]]
    lanes, *counts = sizes_of(threads)
    if lanes != atom.shape[0] or atom.max() >= prod(own):
        said = f"Layout{operand}_TV does not fit ThrLayoutVMNK and Shape_MNK"
        raise CheckError(said, fields.span(f"Layout{operand}_TV"))
    shape = [size * counts[mode] for size, mode in zip(own, _MODES[operand], strict=True)]
    number = values(threads).reshape(sizes_of(threads)[::-1]).T  # [v, m, n, k]
    found = np.full((int(number.max()) + 1, atom.shape[1]), -1)
    for place in np.ndindex(number.shape):
        across, along = (place[1 + mode] for mode in _MODES[operand])
        row, column = atom[place[0]] % own[0], atom[place[0]] // own[0]
        found[number[place]] = row + across * own[0] + (column + along * own[1]) * shape[0]
    if (found < 0).any():
        raise CheckError("ThrLayoutVMNK leaves out threads", fields.span("ThrLayoutVMNK"))
    return Tiled(f"{operand} of TiledMMA", (shape[0], shape[1]), found, 1)
