"""A layout that somebody wrote, in our own text or in another's, and where it puts elements."""

from __future__ import annotations

import numpy as np

from warploom.errors import (
    CheckError,
    ParseError,
    Source,
    UnsupportedError,
    WarploomError,
    spelled,
    within,
)
from warploom.layout.formats.cute import read_cute
from warploom.layout.formats.descriptor import is_descriptor, operand_layout, read_descriptor
from warploom.layout.formats.encoding_shared import check_width, shared_layout
from warploom.layout.formats.export import read_cute_type
from warploom.layout.formats.mlir import read_attribute
from warploom.layout.formats.shared_text import read_call
from warploom.layout.formats.tilelang import read_tilelang
from warploom.layout.formats.triton import from_offset_bases, read_bases
from warploom.layout.language.check import MOST_ELEMENTS
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.ir import Layout, shape_of
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Problem


def given_layout(
    text: str,
    shape: tuple[int, ...] | None = None,
    element_bytes: int | None = None,
    packed: int = 1,
) -> Layout:
    """A layout in any text that we read; `packed` elements have `element_bytes`. What is wrong is
    shown at its place in the text."""
    with within(Source("<layout>", text)):
        return _given(text, shape, element_bytes, packed)


def _given(
    text: str, shape: tuple[int, ...] | None, element_bytes: int | None, packed: int
) -> Layout:
    if packed > 1:
        element_bytes = None
        if is_descriptor(text) or "nvmma" in text.lower():
            advice = "state the tile in whole bytes"
            raise UnsupportedError(
                "a layout that counts bytes, of elements of 4 bits", advice=advice
            )
    if text.lstrip().startswith("{"):
        bases = read_bases(text)
        if shape is None or set(bases) != {"offset"}:
            raise CheckError("bases of a shared layout are those of 'offset', and need a shape")
        return from_offset_bases(bases["offset"], shape)
    shapeless = "an attribute" if text.lstrip().startswith("#") else ""
    if shapeless or is_descriptor(text):
        return _of_shape(text, shape, element_bytes, shapeless or "a descriptor")
    called = read_call(text, shape, element_bytes) if "lambda" not in text else None
    return called or _with_shape(text, shape, element_bytes, packed)


def _with_shape(
    text: str, shape: tuple[int, ...] | None, element_bytes: int | None, packed: int
) -> Layout:
    """What says its own shape, which is that of the tensor."""
    found = _by_itself(text, element_bytes, packed)
    if shape is not None and shape_of(found) is not None and sizes_of(found) != shape:
        one, two = ("×".join(map(str, each)) for each in (sizes_of(found), shape))
        raise CheckError(f"the layout is of {one} elements, and the tensor of {two}")
    return found


def _by_itself(text: str, element_bytes: int | None, packed: int) -> Layout:
    if "lambda" in text:
        return read_tilelang(text)
    if "Layout<" in text:
        return read_cute_type(text)
    try:
        return parse(text)
    except WarploomError as error:
        ours = error
    try:
        return read_cute(text, element_bytes, packed)
    except WarploomError as error:
        theirs = any(word in text for word in ("Sw", "SW_", "ptr[", "_"))
        raise (error if theirs else ours) from None


def _of_shape(
    text: str, shape: tuple[int, ...] | None, element_bytes: int | None, what: str
) -> Layout:
    """An attribute of Triton's IR or a descriptor: neither says the shape."""
    if shape is None:
        advice = f"give {spelled('--shape 64x64', 'shape=(64, 64)')}"
        raise ParseError(f"{what} does not say the shape", advice=advice)
    if what == "an attribute":
        attribute = read_attribute(text.strip())
        check_width(attribute, element_bytes)
        return shared_layout(attribute, shape)
    if element_bytes is None:
        advice = f"give {spelled('--element f16', 'element_bytes=2')}"
        raise ParseError(
            "a descriptor counts bytes, and says not how large an element is", advice=advice
        )
    turned = text.rstrip().endswith("major mn")
    written = text.rstrip().removesuffix("major mn").removesuffix("major k")
    found = read_descriptor(written)
    return operand_layout(found, shape, element_bytes, "mn" if turned else "k")


def row_major_addresses(layout: Layout, problem: Problem) -> Numbers:
    """The address of each element of a tensor, by its row-major number."""
    sizes = sizes_of(layout)
    if sizes != problem.shape:
        raise CheckError(
            f"the layout is of {'×'.join(map(str, sizes))} elements, and the tensor of "
            f"{'×'.join(map(str, problem.shape))}"
        )
    table = values(layout)  # the first coordinate fastest
    if table.min() < 0:
        raise CheckError(
            f"the layout goes down to the address {int(table.min())}",
            advice=f"lift it to 0: shift<{-int(table.min())}> o {show(layout)[:60]}",
        )
    return np.ascontiguousarray(table.reshape(sizes[::-1]).T).ravel()


def sizes(text: str) -> tuple[int, ...]:
    """
    >>> sizes("16x32")
    (16, 32)
    """
    words = text.split("x")
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise ParseError(f"'{text[:40]}' is no shape", advice="write 16x32")
    found = tuple(int(word) for word in words)
    total = 1
    for number in found:
        total *= number
    if not 1 <= total <= MOST_ELEMENTS:
        raise CheckError(f"a tensor of {total} elements", advice=f"between 1 and {MOST_ELEMENTS}")
    return found
