"""A layout of shared memory → attributes of Triton's IR that say the same; Gluon's objects are
written of these.

Each attribute is read again, and must put every element where the layout has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from warploom.errors import CheckError
from warploom.layout.formats.encoding_shared import ALIGNMENT, shared_layout, shared_linear_of
from warploom.layout.formats.mlir import Attribute, Value
from warploom.layout.formats.triton import MOST_BASES, offset_bases
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.facts import is_injective
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show

_SWIZZLES = (128, 64, 32, 0)  # bytes of a row in NVMMASharedLayout
_BITS = (8, 16, 32, 64)  # of an element there


def attributes_of(layout: Layout, element_bytes: int | None = None) -> list[Attribute]:
    """All that say it, the shortest first; one error where there are none. `nvmma_shared` counts
    bytes, so it is among them only where an element's are known.

    >>> from warploom.layout.language.parse import parse
    >>> [each.name for each in attributes_of(parse("S<3,3,3> o (64,64):(64,1)"), 2)]
    ['ttg.swizzled_shared', 'ttg.nvmma_shared', 'ttg.shared_linear']
    """
    shape, wanted = sizes_of(layout), values(layout)
    if any(size & (size - 1) for size in shape):
        raise _no_word(layout, "sizes are powers of two there")
    if int(wanted.min()) or not is_injective(wanted):
        raise _no_word(layout, "the first element is at 0 there, and no two are at one place")
    bases = _bases(layout)
    found = [
        each
        for each in (
            *_swizzles(layout, bases, element_bytes),
            *_padded(wanted, shape),
            *_linear(bases),
        )
        if np.array_equal(values(shared_layout(each, shape)), wanted)
    ]
    if not found:
        raise _no_word(layout, "layouts there are linear over bits, or such ones with padding")
    return found


def _no_word(layout: Layout, advice: str) -> CheckError:
    return CheckError(f"Triton's IR cannot express {show(layout)[:60]}", advice=advice)


def _swizzles(
    layout: Layout, bases: list[list[int]], element_bytes: int | None
) -> Iterator[Attribute]:
    shape = sizes_of(layout)
    for order in permutations(range(len(shape))[::-1]):
        swizzled = _swizzled(bases, shape, order)
        if swizzled is not None:
            yield swizzled
            break
    yield from _of_matrix_units(bases, shape, 8 * (element_bytes or 0))


def _bases(layout: Layout) -> list[list[int]]:
    """None where it is not linear."""
    try:
        return offset_bases(layout)["offset"]
    except CheckError:
        return []


def _linear(bases: list[list[int]]) -> Iterator[Attribute]:
    if not bases:
        return
    fields: dict[str, Value] = {"offset": _value(bases), "block": [], "alignment": ALIGNMENT}
    yield Attribute("ttg.shared_linear", fields)


def _swizzled(
    bases: list[list[int]], shape: tuple[int, ...], order: tuple[int, ...]
) -> Attribute | None:
    """Columns as they are, then rows, each with a part of the columns exchanged: which part, and
    of which rows, the bases say themselves."""
    units = [(d, 1 << bit) for d in order for bit in range(shape[d].bit_length() - 1)]
    if len(units) != len(bases):
        return None  # there are gaps
    moved: list[tuple[int, int]] = []  # row, and what it adds to the column
    for (dimension, unit), base in zip(units, bases, strict=True):
        rest = list(base)
        rest[dimension] ^= unit
        if len(order) > 1 and dimension == order[1] and rest[order[0]]:
            moved.append((unit, rest[order[0]]))
            rest[order[0]] = 0
        if any(rest):
            return None
    per, vec = moved[0] if moved else (1, 1)
    if moved != [(per << bit, vec << bit) for bit in range(len(moved))]:
        return None
    fields: dict[str, Value] = {
        "vec": vec, "perPhase": per, "maxPhase": 1 << len(moved), "order": [*order],
    }  # fmt: skip
    return Attribute("ttg.swizzled_shared", fields)


def _of_matrix_units(
    bases: list[list[int]], shape: tuple[int, ...], bits: int
) -> Iterator[Attribute]:
    if bits not in _BITS or len(shape) < 2:
        return
    wanted = tuple(tuple(base) for base in bases)
    for width in _SWIZZLES:
        for turned in (False, True):
            fields: dict[str, Value] = {
                "swizzlingByteWidth": width, "transposed": turned, "elementBitWidth": bits,
            }  # fmt: skip
            found = Attribute("ttg.nvmma_shared", fields)
            try:
                same = shared_linear_of(found, shape).bases["offset"] == wanted
            except CheckError:
                continue
            if same:
                yield found
                return


def _padded(wanted: Numbers, shape: tuple[int, ...]) -> Iterator[Attribute]:
    """Elements in some order, with unused places after every so many of them, where paddings are
    what that attribute can say: powers of two."""
    order = np.argsort(wanted)
    jumps = np.diff(wanted[order]) - 1  # unused places before element 1, 2, …
    pairs: list[Value] = []
    while jumps.any():
        interval = int(np.flatnonzero(jumps)[0]) + 1
        padding = int(jumps[interval - 1])
        if interval & (interval - 1) or padding < 1 or padding & (padding - 1):
            return
        jumps[interval - 1 :: interval] -= padding
        pairs.append([interval, padding])
    bases = []
    for bit in range(len(wanted).bit_length() - 1):
        base, number = [], int(order[1 << bit])
        for size in shape:  # the first coordinate is the fastest of a number
            base.append(number % size)
            number //= size
        bases.append(base)
    if pairs and len(bases) <= MOST_BASES:
        yield Attribute("ttg.padded_shared", {"offset": _value(bases), "block": []}, (pairs,))


def _value(bases: list[list[int]]) -> Value:
    return [[*base] for base in bases]
