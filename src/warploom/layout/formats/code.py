"""A layout as the cheapest expression, in which bits may be reversed by an instruction.

`emit/index_function.py` writes it as source in each language."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from warploom.errors import UnsupportedError
from warploom.index.ir import Expr, Var, operations
from warploom.index.table import tabulated
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import expression, names_of, sizes_of
from warploom.layout.language.facts import as_matrix
from warploom.layout.language.ir import Layout


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression; `reversed` are variables made of others by reversing so many of their bits."""

    result: Expr
    reversed: tuple[tuple[str, int], ...] = ()

    @property
    def operations(self) -> int:
        return operations(self.result) + 2 * len(self.reversed)


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
