"""Layouts as source to paste: index functions in CUDA, OpenCL and C, each compared with its layout.

A function takes coordinates and gives an element's place. It is an expression, where bits are
reversed by an instruction if the language has one and that is cheaper, or a table.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from warploom.errors import CheckError, EmitError, UnsupportedError
from warploom.index.ir import Expr, Var, operations
from warploom.index.show import C_HELPERS, c_text
from warploom.index.table import tabulated
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import expression, names_of, sizes_of
from warploom.layout.language.facts import as_matrix
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show

Language: TypeAlias = Literal["cuda", "opencl", "c"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
_QUALIFIERS = {
    "cuda": "__host__ __device__ __forceinline__",
    "opencl": "static inline",  # plain `inline` is no definition where nothing is inlined
    "c": "static inline",
}
_DEVICE_ONLY = "__device__ __forceinline__"
_CONSTANT = {"cuda": "__constant__", "opencl": "__constant", "c": "static const"}
MOST_TABLE = 1 << 14
MOST_PLACE = (1 << 31) - 1  # functions give an int


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression; `reversed` are variables made of others by reversing so many of their bits."""

    result: Expr
    reversed: tuple[tuple[str, int], ...] = ()

    @property
    def operations(self) -> int:
        return operations(self.result) + 2 * len(self.reversed)


def index_function(layout: Layout, language: str = "cuda", name: str = "place") -> str:
    """The text of one function; it says what layout it is."""
    if language not in LANGUAGES:
        raise UnsupportedError(
            f"no index function in '{language[:20]}'", advice=f"known are {', '.join(LANGUAGES)}"
        )
    if not (name.isidentifier() and name.isascii()):
        raise EmitError(f"{name[:40]!r} is no name of a function")
    sizes = sizes_of(layout)
    names = names_of(len(sizes))
    if int(values(layout).max()) > MOST_PLACE:
        raise CheckError(f"place {int(values(layout).max())} does not fit into an int")
    head = f"// {show(layout)[:200]}\n" + ("// Compile with: -std=c11\n" if language == "c" else "")
    try:
        formula = cheapest(layout, language == "cuda")
    except UnsupportedError:
        return head + _table(layout, language, name, names, sizes)
    bounds = {n: (0, size - 1) for n, size in zip(names, sizes, strict=True)}
    ranges = bounds | {f"reversed_{n}": (0, (1 << bits) - 1) for n, bits in formula.reversed}
    text = c_text(formula.result, ranges)
    helpers = C_HELPERS if any(word in text for word in ("floor_", "shift_left")) else ""
    lines = [
        f"  const int reversed_{n} = (int)(__brev((unsigned){n}) >> {32 - bits});\n"
        for n, bits in formula.reversed
    ]
    qualifiers = _DEVICE_ONLY if formula.reversed else _QUALIFIERS[language]
    parameters = ", ".join(f"int {n}" for n in names)
    idle = [n for n in names if language == "c" and not re.search(rf"\b{n}\b", text)]
    lines += [f"  (void){n};\n" for n in idle]  # compilers warn of parameters that are not used
    body = "".join(lines) + f"  return {text};\n"
    return f"{helpers}{head}{qualifiers} int {name}({parameters}) {{\n{body}}}\n"


def cheapest(layout: Layout, can_reverse: bool) -> Formula:
    """The form with the fewest operations, equal to the layout everywhere."""
    forms = []
    with suppress(UnsupportedError):
        forms.append(Formula(expression(layout)))
    if can_reverse:
        forms += _reversing(layout)
    if not forms:
        raise UnsupportedError("this layout has no expression")
    return min(forms, key=lambda form: form.operations)


def _reversing(layout: Layout) -> list[Formula]:
    """column ^ (row << …) ^ (row reversed << …), where that is what the layout is."""
    table, sizes = values(layout), sizes_of(layout)
    matrix = as_matrix(table)
    if matrix is None or len(sizes) != 2 or matrix.offset or any(s & (s - 1) for s in sizes):
        return []
    row_bits, column_bits = (size.bit_length() - 1 for size in sizes)
    rows, columns = matrix.columns[:row_bits], matrix.columns[row_bits:]
    if columns != tuple(1 << bit for bit in range(column_bits)) or row_bits < 2:
        return []
    row, column, turned = Var("row"), Var("column"), Var("reversed_row")
    found = []
    for place in range(column_bits):
        added = [1 << (place + row_bits - 1 - bit) for bit in range(row_bits)]
        if list(rows) == [a | 1 << (column_bits + bit) for bit, a in enumerate(added)]:
            moved = turned if place == 0 else turned << place
            form = Formula(row * (1 << column_bits) + (column ^ moved), (("row", row_bits),))
            if np.array_equal(_values(form, sizes), table):
                found.append(form)
    return found


def _values(form: Formula, sizes: tuple[int, ...]) -> Numbers:
    turned = {f"reversed_{n}": (n, reversal(bits)) for n, bits in form.reversed}
    by_name = dict(zip(names_of(len(sizes)), sizes, strict=True))
    return tabulated(form.result, by_name, turned).ravel(order="F")


def reversal(bits: int) -> Numbers:
    """Every number of so many bits with its bits in reverse order."""
    numbers = np.arange(1 << bits, dtype=np.int64)
    result = np.zeros_like(numbers)
    for bit in range(bits):
        result |= (numbers >> bit & 1) << (bits - 1 - bit)
    return result


def _table(
    layout: Layout, language: str, name: str, names: tuple[str, ...], sizes: tuple[int, ...]
) -> str:
    table = values(layout)
    if len(table) > MOST_TABLE:
        raise CheckError(f"a table of {len(table)} places is too large to be written out")
    kind = "unsigned short" if table.max() < 1 << 16 else "unsigned int"
    rows = [
        ", ".join(map(str, part.tolist())) for part in np.split(table, range(16, len(table), 16))
    ]
    number, stride = [], 1
    for n, size in zip(names, sizes, strict=True):
        number.append(n if stride == 1 else f"{n} * {stride}")
        stride *= size
    parameters = ", ".join(f"int {n}" for n in names)
    qualifiers = _DEVICE_ONLY if language == "cuda" else _QUALIFIERS[language]
    return (
        f"{_CONSTANT[language]} {kind} {name}_table[{len(table)}] = {{\n  "
        + ",\n  ".join(rows)
        + f"}};\n{qualifiers} int {name}({parameters}) {{\n"
        f"  return {name}_table[{' + '.join(number)}];\n}}\n"
    )
