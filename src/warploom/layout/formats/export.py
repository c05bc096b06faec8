"""A layout as what others use: a type of CuTe, bases of Triton, attributes of its IR, objects of
Gluon, a layout of TileLang; each read again and compared with the layout that it came from.

    using place = cute::ComposedLayout<cute::Swizzle<3,3,3>, cute::Int<0>, cute::Layout<
        cute::Shape<cute::Int<8>, cute::Int<64>>, cute::Stride<cute::Int<64>, cute::Int<1>>>>;
"""

from __future__ import annotations

import json
import re

import numpy as np

from warploom.errors import CheckError, EmitError, ParseError, Source, WarploomError, within
from warploom.layout.formats.cute import SPELLINGS, of_elements, read_cute, taken_apart, write_cute
from warploom.layout.formats.gluon import write_object
from warploom.layout.formats.shared_attribute import attributes_of
from warploom.layout.formats.tilelang import read_tilelang, write_tilelang
from warploom.layout.formats.triton import from_offset_bases, offset_bases
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.ir import Layout, Shift, Strided, Swizzle, Tree, compose
from warploom.layout.language.laws import simplify
from warploom.layout.language.parse import MOST_DEPTH
from warploom.layout.language.show import show

_WORD = re.compile(
    r"\s*(?:cute::)?(?:_(?P<constant>m?\d+)|(?P<name>[A-Za-z]\w*)|(?P<number>-?\d+))"
)

_ANY_TWO = (2, 4)  # sizes of an element, to see whether a text depends on it
_SEPARATOR = (re.compile(r"\s*<"), re.compile(r"\s*,"))  # before the first part, before others
_CLOSING = re.compile(r"\s*>")
_COMMENT = re.compile(r"//[^\n]*")
_USING = re.compile(r"\s*using\s+[A-Za-z_]\w*\s*=(.*);\s*", re.DOTALL)


def exported_to(
    layout: Layout, how: str, name: str, element_bytes: int | None, packed: int = 1
) -> str:
    """The text for one of SPELLINGS, which says what layout it is. What counts bytes is left out
    where nobody says how large an element is."""
    if how == "cute":
        return _spelled(layout, element_bytes, packed) + cute_type(layout, name)
    if how == "tilelang":
        text = write_tilelang(layout, name)
        _same(layout, read_tilelang(text), "TileLang's layout")
        return text
    if how in ("gluon", "ttgir"):
        return _attributes(layout, how, name, None if packed > 1 else element_bytes)
    bases = offset_bases(layout)
    _same(layout, from_offset_bases(bases["offset"], sizes_of(layout)), "Triton's bases")
    return json.dumps(bases) + "\n"


def _attributes(layout: Layout, how: str, name: str, element_bytes: int | None) -> str:
    """An attribute, or an object, with a name; others that say the same are comments after it."""
    if not (name.isidentifier() and name.isascii()):
        raise EmitError(f"{name[:40]!r} is no name of a layout")
    first, *others = attributes_of(layout, element_bytes)
    if how == "ttgir":
        return f"#{name} = {first}\n" + "".join(f"// {each}\n" for each in others)
    shape = sizes_of(layout)
    more = "".join(f"# {write_object(each, shape)}\n" for each in others)
    return f"{name} = {write_object(first, shape)}\n{more}"


def _spelled(layout: Layout, element_bytes: int | None, packed: int) -> str:
    """The layout in each of CuTe's spellings that has words for it, as comments."""
    lines = []
    for spelling in SPELLINGS:
        try:
            text, other = (
                write_cute(layout, spelling, size, packed)
                for size in ((element_bytes,) * 2 if element_bytes else _ANY_TWO)
            )
        except WarploomError:  # no offset there, or no place for an element's bytes
            continue
        if text != other:
            lines.append(f"// {spelling + ':':16}counts bytes, and needs the element's size\n")
            continue
        _same(layout, read_cute(text, element_bytes, packed), spelling)
        lines.append(f"// {spelling + ':':16}{text}\n")
    return "".join(lines)


def cute_type(layout: Layout, name: str = "place") -> str:
    """The type of a layout whose sizes and strides are all known; what CuTe has no word for is
    refused.

    >>> print(cute_type(Strided((4, 8), (8, 1)), "tile"), end="")
    using tile = cute::Layout<cute::Shape<cute::Int<4>, cute::Int<8>>, \
cute::Stride<cute::Int<8>, cute::Int<1>>>;
    """
    if not (name.isidentifier() and name.isascii()):
        raise EmitError(f"{name[:40]!r} is no name of a type")
    swizzle, offset, strided = taken_apart(layout)
    text = f"cute::Layout<{_tree('Shape', strided.shape)}, {_tree('Stride', strided.stride)}>"
    if swizzle is not None or offset:
        bits, base, shift = (0, 4, 3)
        if swizzle is not None:
            bits, base, shift = swizzle.bits, swizzle.base, swizzle.shift
        text = (
            f"cute::ComposedLayout<cute::Swizzle<{bits},{base},{shift}>, "
            f"cute::Int<{offset}>, {text}>"
        )
    _same(layout, read_cute_type(text), "the type")
    return f"using {name} = {text};\n"


def _tree(word: str, tree: Tree) -> str:
    if isinstance(tree, int):
        return f"cute::Int<{tree}>"
    return f"cute::{word}<{', '.join(_tree(word, part) for part in tree)}>"


def _same(layout: Layout, again: Layout, what: str) -> None:
    if not np.array_equal(values(layout), values(again)):
        raise CheckError(f"{what} of {show(layout)[:60]} is another layout: this is a bug of ours")


def read_cute_type(text: str) -> Layout:
    """A layout from its type in C++, alone, as an object `…{}` or with the name that it is given.

    >>> show(read_cute_type("ComposedLayout<Swizzle<1,3,3>, _0, Layout<Shape<_8,_16>,"
    ...                     "Stride<_16,_1>>>"))
    'S<1,3,3> o (8,16):(16,1)'
    """
    source = Source("<type>", text)
    text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)  # places stay what they are
    start, end = 0, len(text)
    if (named := _USING.fullmatch(text)) is not None:
        start, end = named.span(1)
    with within(source):
        found, last = _read(source, text, start)
        if text[last:end].strip() not in ("", "{}") or not isinstance(found, Layout):
            raise ParseError(f"{text[:60]!r} is no type of a layout", advice="cute::Layout<…>")
        return check(simplify(found))


def _read(source: Source, text: str, at: int, depth: int = 0) -> tuple[Layout | Tree, int]:
    """A type or a number, and where it ends; `text` is the source's without comments."""
    word = _WORD.match(text, at)
    if word is None or depth > MOST_DEPTH:
        raise ParseError(f"'{text[at : at + 20]}' where a type should stand", source.at(at))
    at = word.end()
    if word["name"] is None:
        return int((word["constant"] or word["number"])[:20].replace("m", "-")), at
    parts: list[Layout | Tree] = []
    while (opening := _SEPARATOR[bool(parts)].match(text, at)) is not None:
        part, at = _read(source, text, opening.end(), depth + 1)
        parts.append(part)
    closing = _CLOSING.match(text, at)
    if closing is None:
        raise ParseError(f"'{text[at : at + 20]}' where '>' should stand", source.at(at))
    try:
        return _made(word["name"], parts), closing.end()
    except WarploomError as error:
        error.span = error.span or source.at(word.start("name"), len(word["name"]))
        raise


class _Flag(tuple[int]):
    """smem_ptr_flag_bits: the swizzle before it counts bytes, and elements have so many bits."""


def _made(name: str, parts: list[Layout | Tree]) -> Layout | Tree:
    match name, parts:
        case (("Int" | "C"), [int() as number]):
            return number
        case (("Shape" | "Stride" | "tuple"), _) if not any(isinstance(p, Layout) for p in parts):
            return tuple(p for p in parts if isinstance(p, int | tuple))
        case "Swizzle", [int() as bits, int() as base, int() as shift]:
            return Swizzle(bits, base, shift)
        case "Layout", [(int() | tuple()) as shape, (int() | tuple()) as stride]:
            return Strided(shape, stride)
        case "ComposedLayout", [Swizzle() as swizzle, int() as offset, Strided() as strided]:
            return compose(swizzle, Shift(offset), strided)
        case "smem_ptr_flag_bits", [int() as bits]:
            return _Flag((bits,))
        case "ComposedLayout", [Swizzle() as swizzle, _Flag() as flag, Strided() as strided]:
            return compose(of_elements(swizzle, flag[0]), strided)
    raise ParseError(f"'{name[:40]}' with such parameters is no type of a layout")
