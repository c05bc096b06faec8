"""What is said of one argument of a kernel, as text: `x=f32[rows,n]`, `y=f32[n]=out`, `n=i32=n`.

Sizes are index expressions over the sizes of the shape. Nothing is evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import ParseError, WarploomError, one_of
from warploom.index.evaluate import evaluate
from warploom.index.parse import parse
from warploom.ptx.types import DTYPES

Array = npt.NDArray[Any]
FLOATS = ("f16", "bf16", "f32", "f64")
WHOLE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
STARTS = (
    "out", "inout", "zeros", "ones", "range", "random", "out:zeros", "scratch", "scratch:zeros"
)  # fmt: skip
MOST_ELEMENTS = 1 << 22  # of one array: each is a number of its own
ADVICE = "write x=f32[rows,n], y=f32[rows,n]=out, k=i32[n]=range, n=i32=n or scale=f32"
_SIZED = re.compile(r"(?P<type>[a-z]\w*)\s*(?:\[(?P<sizes>[^\]]*)\])?\s*(?:=(?P<start>.*))?")


@dataclass(frozen=True, slots=True)
class Said:
    """One argument: `sizes` is None for a number; `start` says what it is, or holds at first."""

    name: str
    kind: str
    sizes: tuple[str, ...] | None
    start: str
    text: str
    values: Array | None = None  # of an array that was given as such

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS

    @property
    def is_output(self) -> bool:
        return self.start.startswith(("out", "inout"))

    @property
    def is_scratch(self) -> bool:
        """Whether it is memory to work in, of which nothing is asked."""
        return self.start.startswith("scratch")

    @property
    def is_free(self) -> bool:
        """Whether it stands for any value."""
        return self.is_float and self.start in ("", "inout")

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        if self.values is not None:
            return self.values.shape
        found = tuple(whole(each, sizes, self.text) for each in self.sizes or ())
        if any(each < 1 for each in found) or prod(found) > MOST_ELEMENTS:
            shown = " × ".join(map(str, found))
            advice = f"1 to {MOST_ELEMENTS} are possible; try a smaller shape"
            raise ParseError(f"'{self.text[:80]}' has {shown} elements", advice=advice)
        return found


def said(name: str, text: Any) -> Said:
    """What a caller says of an argument: a text, or an array or a number as it is."""
    if isinstance(text, np.ndarray) and text.ndim:
        return Said(name, _kind_of(name, text), None, "given", f"{name}=…", text.copy())
    if isinstance(text, str):
        return _read(name, text)
    raise ParseError(f"{name}={text!r:.60} says nothing of an argument", advice=ADVICE)


def said_in(text: str) -> Said:
    """`NAME=TYPE…`, as on the command line."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ParseError(f"'{text[:80]}' is not a named argument", advice=ADVICE)
    return _read(name.strip(), rest)


def _read(name: str, text: str) -> Said:
    shown = f"{name}={text}"
    match = _SIZED.fullmatch(text.strip())
    if match is None or match["type"] not in (*FLOATS, *WHOLE):
        kind = "" if match is None else match["type"]
        advice = one_of(kind, (*FLOATS, *WHOLE)) if kind else ADVICE
        raise ParseError(f"'{shown[:80]}' is not an argument", advice=advice)
    sizes = None if match["sizes"] is None else tuple(match["sizes"].split(","))
    found = Said(name, match["type"], sizes, (match["start"] or "").strip(), shown)
    _check(found)
    return found


def _check(found: Said) -> None:
    shown = found.text[:80]
    if found.sizes is None:
        if not found.is_float and not found.start:
            advice = f"write {found.name}={found.kind}=7, or an expression of sizes"
            raise ParseError(f"'{shown}' has no value", advice=advice)
        return
    if not found.start and not found.is_float:
        advice = f"whole numbers are the same in all runs: {one_of('', STARTS)}"
        raise ParseError(f"'{shown}' does not say what the array holds", advice=advice)
    if found.start and found.start not in STARTS:
        raise ParseError(
            f"'{shown}': '{found.start[:40]}' is no way to start an array",
            advice=one_of(found.start, STARTS),
        )


def _kind_of(name: str, array: Array) -> str:
    kind = {"f": "f", "i": "i", "u": "u"}.get(array.dtype.kind, "")
    found = f"{kind}{8 * array.dtype.itemsize}"
    if found not in (*FLOATS, *WHOLE):
        raise ParseError(f"{name} has the type {array.dtype}", advice=one_of("", (*FLOATS, *WHOLE)))
    return found


def dtype_of(kind: str) -> np.dtype[Any]:
    """How an array of the type lies in memory; NumPy has no bf16."""
    return np.dtype(np.uint16) if kind == "bf16" else DTYPES[kind.replace("i", "s")]


def whole(text: str, sizes: Mapping[str, int], within: str) -> int:
    """An index expression over sizes."""
    try:
        found = evaluate(parse(text.strip(), within[:80]), dict(sizes))
    except WarploomError as error:
        advice = error.advice or "write a whole number or an expression of sizes, such as n // 4"
        raise ParseError(f"'{within[:80]}': {error.message}", advice=advice) from None
    return int(found)


def extents(text: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A grid or a block: one to three expressions with commas between."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3:
        raise ParseError(f"'{text[:80]}' is not a shape", advice="write 256 or rows,(n+31)//32")
    return tuple(whole(part, sizes, text) for part in parts)
