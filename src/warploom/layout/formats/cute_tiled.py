"""CuTe's TiledCopy and TiledMMA as they print → which elements each thread has.

    TiledCopy
      Tiler_MN:       (_16,_64)
      TiledLayout_TV: ((_8,_16),_8):((_128,_1),_16)
    Copy_Atom
      ThrID:        _1:_0
      ValLayoutSrc: (_1,_8):(_0,_1)
      …
      ValueType:    16b

CuTe's Python prints the same in other words: `Tiler MN: (16:1,64:1)`, `TV Layout tiled: …`.

A tile is repeated over a tensor, along its first dimension first. Threads and values number the
elements of a tile with the first coordinate fastest, as CuTe has it. A tiler or a permutation may
name the rows or columns of a tile in another order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import lcm, prod

import numpy as np

from warploom.errors import CheckError, ParseError, Source, Span, WarploomError, within
from warploom.layout.conversion.fragment import LANES, Fragment, check_fragment
from warploom.layout.formats.cute import read_cute
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.ir import Strided

MOST_TEXT = 20_000
OPERANDS = ("A", "B", "C")
# Programs have such texts as comments, and comments behind their lines.
_FIELD = re.compile(
    r"^[ \t]*(?://|\#)?[ \t]*(\w+(?: \w+){0,2}):[ \t]*(\S.*?)[ \t]*(?://.*)?$",
    re.MULTILINE | re.ASCII,
)
_PYTHON = {
    "Tiler MN": "Tiler_MN", "TV Layout tiled": "TiledLayout_TV", "TV Layout Src": "ValLayoutSrc",
    "Thr Layout VMNK": "ThrLayoutVMNK", "Permutation MNK": "PermutationMNK",
    "Shape MNK": "Shape_MNK", "TV Layout A": "LayoutA_TV", "TV Layout B": "LayoutB_TV",
    "TV Layout C": "LayoutC_TV",
}  # fmt: skip
_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}  # of M, N and K


@dataclass(frozen=True, eq=False)
class Tiled:
    """`numbers[thread, value]` of one tile, with the first coordinate fastest; `width` values of a
    thread are moved together. `orders`: what each coordinate of a tile means along a dimension,
    again and again over the tensor."""

    name: str
    shape: tuple[int, int]
    numbers: Numbers
    width: int
    orders: tuple[Numbers, Numbers]

    def fragment(self, shape: tuple[int, ...] | None = None, lanes: int = LANES) -> Fragment:
        """The tile repeated over a tensor: repetitions are further registers."""
        rows, columns = self.shape
        least = [lcm(n, len(order)) for n, order in zip(self.shape, self.orders, strict=True)]
        whole = shape or tuple(least)
        if len(whole) != 2 or whole[0] % least[0] or whole[1] % least[1]:
            raise CheckError(
                f"{self.name} has tiles of {least[0]}x{least[1]}, and the tensor is of "
                f"{'x'.join(map(str, whole))}",
                advice="its sizes are multiples of the tile's",
            )
        if self.numbers.shape[0] % lanes:
            raise CheckError(f"{self.name} is of {self.numbers.shape[0]} threads, no whole warps")
        row, column = self.numbers % rows, self.numbers // rows
        down, across = self.orders
        parts = [
            _meant(down, row + r) * whole[1] + _meant(across, column + c)
            for c in range(0, whole[1], columns)
            for r in range(0, whole[0], rows)
        ]
        elements = np.concatenate(parts, axis=1)
        held = elements.reshape(-1, lanes, elements.shape[1])
        return check_fragment(Fragment(self.name, whole, held))


def _meant(order: Numbers, at: Numbers) -> Numbers:
    found: Numbers = order[at % len(order)] + at // len(order) * len(order)
    return found


def is_tiled(text: str) -> bool:
    return re.search("Tiled ?(Copy|MMA)", text) is not None


def read_tiled(text: str, operand: str | None = None) -> Tiled:
    """A TiledCopy, or an operand of a TiledMMA: A, B or C. The operand may stand before the text:
    `A of TiledMMA …`."""
    if len(text) > MOST_TEXT:
        raise ParseError(f"a text of {len(text)} letters is no TiledCopy")
    before = re.match(r"\s*([ABC]) of\s", text)
    operand = operand or (before[1] if before else None)
    fields = Fields(text)
    with within(fields.source):
        if re.search("Tiled ?Copy", text):
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
        self._found = {_PYTHON.get(f[1], f[1]): f for f in _FIELD.finditer(text)}

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

    def orders(self, key: str, count: int) -> list[Numbers]:
        """What the coordinates along each dimension mean: `_` stands for any number of them, a size
        for as many in order, and a layout for others."""
        text = self.text(key)
        parts = _top_parts(text[1:-1]) if re.fullmatch(r"\(.*\)", text) else []
        if len(parts) != count:
            said = f"{key} is {text[:40] or 'missing'}"
            raise ParseError(said, self.span(key), f"it is a tuple of {count}: sizes or layouts")
        return [self._order(key, part) for part in parts]

    def _order(self, key: str, part: str) -> Numbers:
        if part == "_":
            return np.zeros(1, dtype=np.int64)
        if size := re.fullmatch("_?([0-9]{1,6})", part):
            part = f"{size[1]}:1"
        try:
            found = read_cute(part)
        except WarploomError as error:
            error.span = self.span(key)
            raise
        if not isinstance(found, Strided) or prod(sizes_of(found)) > 1 << 20:
            raise CheckError(f"{key} has {part[:40]}", self.span(key), "write sizes or layouts")
        order = values(found)
        if len(order) > 1 and not np.array_equal(np.sort(order), np.arange(len(order))):
            said = f"{key} has {part[:40]}, which is no order of {len(order)} rows or columns"
            raise CheckError(said, self.span(key))
        return np.zeros(1, dtype=np.int64) if len(order) == 1 else order

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


def _top_parts(text: str) -> list[str]:
    """What commas outside of all brackets separate."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _copy(fields: Fields) -> Tiled:
    down, across = fields.orders("Tiler_MN", 2)
    tile = len(down), len(across)
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
    return Tiled("TiledCopy", tile, numbers, width, (down, across))


def _mma(fields: Fields, operand: str) -> Tiled:
    sizes = fields.sizes("Shape_MNK")
    threads = fields.layout("ThrLayoutVMNK")
    if len(sizes) != 3 or len(sizes_of(threads)) != 4:
        said = "Shape_MNK has three sizes, and ThrLayoutVMNK four"
        raise CheckError(said, fields.span("Shape_MNK"))
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
    orders = fields.orders("PermutationMNK", 3)
    own_orders = orders[_MODES[operand][0]], orders[_MODES[operand][1]]
    return Tiled(f"{operand} of TiledMMA", (shape[0], shape[1]), found, 1, own_orders)
