"""Fragments as people write them: Triton's bases and layout objects, names, CuTe's TV layouts.

    >>> read_fragment("(32,5):(5,1)").elements[0, 1].tolist()
    [5, 6, 7, 8, 9]

Nothing that is given is run: a call is parsed, and only numbers, lists and calls of known names are
taken from it.
"""

from __future__ import annotations

import math
import re

import numpy as np

from warploom.errors import CheckError, ParseError, Source, within
from warploom.layout.conversion.fragment import LANES, Fragment, check_fragment
from warploom.layout.formats.cute_tiled import is_tiled, read_tiled
from warploom.layout.formats.encoding import REGISTERS
from warploom.layout.formats.fragment_bases import from_attribute, from_bases
from warploom.layout.formats.fragment_call import (
    is_call,
    names_registers,
    read_call,
    shapeless,
    unknown,
)
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.mlir import read_attribute
from warploom.layout.formats.triton import read_bases
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of

MOST_TEXT = 20_000
_BASES = re.compile(r"""\s*\{\s*["'](?:register|lane|warp|block)["']""")
_ATTRIBUTE = re.compile(r"\s*#(?:\w+\s*=\s*#)?(?:ttg|triton_gpu)\.(\w+)")


def is_registers(text: str) -> bool:
    """Whether a text can only be a layout of registers. Threads and values look like any layout."""
    if is_tiled(text) or _BASES.match(text):
        return True
    attribute = _ATTRIBUTE.match(text)
    return names_registers(text) if attribute is None else f"ttg.{attribute[1]}" in REGISTERS


def read_fragment(text: str, shape: tuple[int, ...] | None = None, lanes: int = LANES) -> Fragment:
    """A fragment in any text that we read; `lanes` are those of a warp, where threads are counted
    without it. What is wrong is shown at its place in the text."""
    with within(Source("<layout>", text)):
        return _read(text, shape, lanes)


def _read(text: str, shape: tuple[int, ...] | None, lanes: int) -> Fragment:
    if is_tiled(text):
        return read_tiled(text).fragment(shape, lanes)
    if len(text) > MOST_TEXT:
        raise ParseError(f"a text of {len(text)} letters is no fragment")
    if text.lstrip().startswith("{"):
        return from_bases(read_bases(text), shape, text)
    if text.lstrip().startswith("#"):
        if shape is None:
            raise shapeless("an attribute")
        return from_attribute(read_attribute(text.strip()), shape, text.strip())
    if text.strip().isidentifier():
        raise unknown(text.strip())
    if is_call(text):
        return read_call(text, shape)
    return from_threads_and_values(text, shape, lanes)


def from_threads_and_values(
    text: str, shape: tuple[int, ...] | None, lanes: int = LANES
) -> Fragment:
    """CuTe's TV layout: (threads, values) → the number of an element.

    With a shape, a number stands for coordinates with the first fastest, as CuTe has it.
    """
    layout = given_layout(text)
    sizes = sizes_of(layout)
    if len(sizes) != 2 or sizes[0] % lanes:
        raise CheckError(
            f"'{text[:60]}' has sizes {sizes}",
            advice=f"a layout of threads and values has two, the first a multiple of {lanes}",
        )
    numbers = values(layout).reshape(sizes[::-1]).T  # [thread, value]
    if shape is None:
        shape = (int(numbers.max()) + 1,)
    if int(numbers.max()) >= math.prod(shape):
        raise CheckError(f"'{text[:60]}' names element {int(numbers.max())} of {math.prod(shape)}")
    order = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    elements = order.T.ravel()[numbers]
    return check_fragment(Fragment(text, shape, elements.reshape(-1, lanes, sizes[1])))
