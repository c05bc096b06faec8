"""Register layouts as others write them: Triton's bases, attributes of its IR, Gluon's objects, and
CuTe's layouts of threads and values. Each text is read again and must be the same.
"""

from __future__ import annotations

import json
from math import prod

import numpy as np

from warploom.errors import CheckError, UnsupportedError
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.formats.cute import write_cute
from warploom.layout.formats.encoding import written_linear
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.gluon import write_object
from warploom.layout.formats.linear import Base, Linear
from warploom.layout.language.ir import Strided
from warploom.layout.language.recognise import modes_of

FRAGMENT_SPELLINGS = ("triton", "ttgir", "gluon", "cute")


def write_fragment(fragment: Fragment, how: str) -> str:
    """
    >>> write_fragment(read_fragment("(32,2):(2,1)"), "cute")
    '(_32,_2):(_2,_1)'
    """
    if how not in FRAGMENT_SPELLINGS:
        raise UnsupportedError(
            f"register layouts are not written as '{how[:20]}'",
            advice=f"they are as {', '.join(FRAGMENT_SPELLINGS)}",
        )
    if how == "cute":
        text, shape = threads_and_values(fragment), fragment.shape
    else:
        linear = bases_of(fragment)
        attribute, shape = written_linear(linear), linear.shape
        if how == "triton":
            text = json.dumps(linear.lists())
        else:
            text = str(attribute) if how == "ttgir" else write_object(attribute, shape)
    again = read_fragment(text, shape, fragment.lanes)
    if not np.array_equal(again.elements, fragment.elements) or again.blocks != fragment.blocks:
        raise CheckError(f"{how} of {fragment.name[:60]} is another layout: this is a bug of ours")
    return text


def bases_of(fragment: Fragment) -> Linear:
    """What each bit of a register's, lane's, warp's and block's number adds, by exclusive or."""
    elements, shape = fragment.elements, fragment.shape
    counts = dict(zip(("warp", "lane", "register"), elements.shape, strict=True))
    sizes = (*shape, *counts.values())
    if any(size & (size - 1) for size in sizes) or elements[0, 0, 0]:
        raise _not_linear(fragment)
    bits = {name: [1 << bit for bit in range(n.bit_length() - 1)] for name, n in counts.items()}
    found = np.zeros(1, dtype=np.int64)
    for axis, name in ((2, "register"), (1, "lane"), (0, "warp")):
        for number in bits[name]:
            place = [0, 0, 0]
            place[axis] = number
            found = np.concatenate([found, found ^ elements[tuple(place)]])
    # A row-major number of powers of two has its coordinates as bits beside each other.
    if not np.array_equal(found.reshape(elements.shape), elements):
        raise _not_linear(fragment)
    bases: dict[str, tuple[Base, ...]] = {
        "register": tuple(_coordinates(int(elements[0, 0, n]), shape) for n in bits["register"]),
        "lane": tuple(_coordinates(int(elements[0, n, 0]), shape) for n in bits["lane"]),
        "warp": tuple(_coordinates(int(elements[n, 0, 0]), shape) for n in bits["warp"]),
        "block": fragment.blocks,
    }
    whole = [size << sum(base[d] > 0 for base in fragment.blocks) for d, size in enumerate(shape)]
    return Linear(bases, tuple(whole))


def _not_linear(fragment: Fragment) -> CheckError:
    return CheckError(
        f"Triton cannot express {fragment.name[:60]}",
        advice="its layouts are linear over bits, of sizes that are powers of two",
    )


def _coordinates(number: int, shape: tuple[int, ...]) -> Base:
    found = []
    for size in reversed(shape):
        found.append(number % size)
        number //= size
    return tuple(reversed(found))


# -- CuTe ------------------------------------------------------------------------------------------


def threads_and_values(fragment: Fragment) -> str:
    """(threads, values) → the number of an element, with the first coordinate fastest."""
    if fragment.blocks:
        raise _not_strided(fragment, "it says nothing of several blocks")
    order = np.arange(prod(fragment.shape), dtype=np.int64).reshape(fragment.shape[::-1])
    held = fragment.elements.reshape(-1, fragment.registers)
    if (held < 0).any():
        raise _not_strided(fragment, "every register holds an element there")
    table = order.T.ravel()[held]  # [thread, value]
    threads, registers = modes_of(table[:, 0]), modes_of(table[0])
    summed = table[:, :1] + table[:1]
    if threads is None or registers is None or not np.array_equal(summed, table):
        raise _not_strided(fragment, "numbers of threads and values add up there")
    shape, stride = zip(threads, registers, strict=True)
    return write_cute(Strided(shape, stride), "c++")


def _not_strided(fragment: Fragment, advice: str) -> CheckError:
    return CheckError(f"CuTe cannot express {fragment.name[:60]}", advice=advice)
