"""Layouts as TileLang's kernels have them: a shape, and a function of coordinates.

    T.Layout((64, 64), lambda i, j: j ^ i % 8 * 8 ^ i * 64)

The function is parsed as an index expression, never run. One that gives several coordinates, as
`[i, j ^ i % 8 * 8]`, names the places of a tile by rows, whose sizes are one more than the largest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import numpy as np

from warploom.errors import CheckError, EmitError, ParseError, Source, WarploomError, within
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables
from warploom.index.parse import parse as parse_index
from warploom.index.show import show as show_index
from warploom.layout.language.build import row_major
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.expression import expression, sizes_of
from warploom.layout.language.ir import Compose, Layout, Table
from warploom.layout.language.recognise import recognised

MOST_TEXT = 100_000
MOST_TABLE = 1 << 20
_CALL = re.compile(
    r"\s*(?:\w+\s*=\s*)?(?:\w+\.)*Layout\(\s*[\[(]([0-9,\s]{1,200})[\])]\s*,\s*"
    r"lambda\s+([\w,\s]{1,200}):(.*)\)\s*",
    re.ASCII | re.DOTALL,
)
_NAMES = ("i", "j", "k", "l", "m", "n")


def write_tilelang(layout: Layout, name: str = "place") -> str:
    """
    >>> from warploom.layout.language.parse import parse
    >>> print(write_tilelang(parse("S<3,3,3> o (8,64):(64,1)")), end="")
    place = T.Layout((8, 64), lambda i, j: j ^ i * 8 ^ i * 64)
    """
    if not (name.isidentifier() and name.isascii()):
        raise EmitError(f"{name[:40]!r} is no name of a layout")
    sizes = sizes_of(layout)
    if len(sizes) > len(_NAMES):
        raise CheckError(f"a layout of {len(sizes)} coordinates", advice=f"at most {len(_NAMES)}")
    names = _NAMES[: len(sizes)]
    text = show_index(expression(layout, names))
    shape = ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "")
    return f"{name} = T.Layout(({shape}), lambda {', '.join(names)}: {text})\n"


def read_tilelang(text: str) -> Layout:
    """
    >>> from warploom.layout.language.show import show
    >>> show(read_tilelang("T.Layout([8, 64], lambda i, j: [i, j ^ i * 8])"))
    'S<3,3,3> o (8,64):(64,1)'
    """
    with within(Source("<tilelang>", text)):
        return _read(text)


def _read(text: str) -> Layout:
    found = _CALL.fullmatch(text) if len(text) <= MOST_TEXT else None
    if found is None:
        raise ParseError(
            "this is no layout of TileLang", advice="write T.Layout((64, 64), lambda i, j: …)"
        )
    shape = tuple(int(size[:9]) for size in re.findall(r"[0-9]+", found[1]))
    names = [name.strip() for name in found[2].split(",")]
    if len(names) != len(shape) or len(set(names)) != len(names):
        raise ParseError(f"{len(names)} coordinates, and a shape of {len(shape)} sizes")
    if not 1 <= prod(shape) <= MOST_TABLE:
        raise CheckError(f"a layout of {prod(shape)} elements", advice=f"at most {MOST_TABLE}")
    body = found[3].strip()
    start = text.index(body, found.start(3))
    places = _places(Source("<tilelang>", text), start, body, names, shape)
    layout = recognised(places, shape)
    if layout is not None:
        return layout
    return check(Compose(Table(tuple(places.tolist())), row_major(*shape)))


def _places(
    source: Source, start: int, body: str, names: list[str], shape: tuple[int, ...]
) -> Numbers:
    """The place of each element, by rows; the function's body begins at `start` in the text."""
    grid = np.meshgrid(*(np.arange(size, dtype=np.int64) for size in shape), indexing="ij")
    env = {name: axis.ravel() for name, axis in zip(names, grid, strict=True)}
    result = np.zeros(prod(shape), dtype=np.int64)
    for at, part in _parts(body):
        parsed = _parsed(source, start + at, part)
        unknown = sorted(variables(parsed) - set(names))
        if unknown:
            found = re.search(rf"\b{re.escape(unknown[0])}\b", part)
            where = source.at(start + at + (found.start() if found else 0), len(unknown[0]))
            raise ParseError(f"unknown variable '{unknown[0][:40]}'", where, ", ".join(names))
        place = np.broadcast_to(np.asarray(evaluate(parsed, env), dtype=np.int64), result.shape)
        if place.min() < 0 or place.max() >= 1 << 40:
            where = source.at(start + at, len(part))
            raise CheckError("a coordinate is negative or too large", where)
        result = result * (int(place.max()) + 1) + place
    return result


def _parsed(source: Source, start: int, part: str) -> Expr:
    """An expression that begins at `start`; what is wrong with it is shown in the whole text."""
    before = re.sub(r"[^\n]", " ", source.text[:start])  # places in the text stay what they are
    try:
        return parse_index(before + part, source.name)
    except WarploomError as error:
        if error.span is not None:
            error.span = replace(error.span, source=source)
        raise


def _parts(body: str) -> list[tuple[int, str]]:
    """The expressions between brackets and commas, each with where it begins; one without them."""
    if not (body.startswith(("[", "(")) and body.endswith(("]", ")"))):
        return [(0, body)]
    parts, depth, start = list[tuple[int, str]](), 0, 1
    for at, letter in enumerate(body[1:-1], 1):
        depth += (letter in "([") - (letter in ")]")
        if depth < 0:
            return [(0, body)]  # the brackets are not a pair: (a) ^ (b)
        if letter == "," and not depth:
            parts.append((start, body[start:at]))
            start = at + 1
    last = body[start:-1]
    if body[0] == "(" and not parts:
        return [(0, body)]
    return [*parts, (start, last)] if last.strip() else parts
