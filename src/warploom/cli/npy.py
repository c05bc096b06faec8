"""Arrays of .npy files: the header is read by itself, before anything of its size is allocated."""

from __future__ import annotations

import ast
import math
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from warploom.errors import ParseError

MAGIC = b"\x93NUMPY"
MOST_HEADER = 1 << 14  # characters; NumPy's own are about a hundred
MOST_AXES = 32
_NUMBER = re.compile(r"[<>=|]?[biuf]\d{1,2}", re.ASCII)  # of a type: whole and other numbers
_ORDER = re.compile(r"^\s*\{[\s\w'\"<>=|(),:]*\}\s*$", re.ASCII)  # no nesting but a shape's


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of its array; `begin` is the byte at which its elements begin."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    begin: int


def read_npy(path: Path, kind: np.dtype[Any], count: int) -> Any:
    """The elements of a file, row by row, as numbers of this kind; there must be so many."""
    try:
        with path.open("rb") as file:
            header = _header(file, path)
            total = math.prod(header.shape)
            if total != count:
                raise ParseError(f"'{path}' holds {total} elements, not {count}")
            wanted = header.begin + count * header.dtype.itemsize
            if os.fstat(file.fileno()).st_size != wanted:
                raise _bad(path, f"the file has not the {wanted} bytes that its header tells of")
            data = np.fromfile(file, header.dtype, count)
    except (OSError, ValueError) as error:
        raise _bad(path, str(getattr(error, "strerror", None) or error)) from None
    if data.size != count:
        raise _bad(path, "it ends before its last element")
    if header.fortran:
        data = data.reshape(header.shape[::-1]).transpose().ravel()
    return _converted(path, data, kind)


def _header(file: BinaryIO, path: Path) -> Header:
    """Versions 1 to 3 differ in the length of the length, and in the letters."""
    begin = file.read(8)
    if begin[:6] != MAGIC or len(begin) != 8 or begin[6] not in (1, 2, 3) or begin[7] != 0:
        raise _bad(path, "it does not begin as one of version 1, 2 or 3")
    width = 2 if begin[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > MOST_HEADER:
        raise _bad(path, f"its header has {length} characters")
    raw = file.read(length)
    if len(raw) != length:
        raise _bad(path, "it ends within its header")
    text = raw.decode("utf-8" if begin[6] == 3 else "latin1", "replace")
    return _read(text, path, 8 + width + length)


def _read(text: str, path: Path, begin: int) -> Header:
    if not _ORDER.match(text) or text.count("(") > 1:
        raise _bad(path, "its header is no plain record of a type, an order and a shape")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as of a number that ends in letters
            found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, Warning):
        raise _bad(path, "its header cannot be read") from None
    match found:
        case {"descr": str(name), "fortran_order": bool(order), "shape": tuple(shape), **rest}:
            if rest:
                raise _bad(path, "its header says more than a type, an order and a shape")
        case _:
            raise _bad(path, "its header is no plain record of a type, an order and a shape")
    if len(shape) > MOST_AXES or not all(type(each) is int and each >= 0 for each in shape):
        raise _bad(path, f"{text_of(shape)} is no shape")
    return Header(_type(name, path), order, shape, begin)


def text_of(shape: tuple[object, ...]) -> str:
    return repr(shape) if len(repr(shape)) <= 60 else repr(shape)[:60] + "…"


def _type(name: str, path: Path) -> np.dtype[Any]:
    try:
        if _NUMBER.fullmatch(name):
            return np.dtype(name)
    except TypeError:
        pass
    raise _bad(path, f"its elements are of type '{name[:40]}', which are no numbers")


def _converted(path: Path, data: Any, kind: np.dtype[Any]) -> Any:
    """Numbers of another type are taken where they are whole: fractions, and what is too large, do
    not become some integer."""
    with np.errstate(all="ignore"):
        found = data.astype(kind)
    if kind.kind in "iu" and not np.array_equal(found, data):
        raise ParseError(
            f"'{path}' holds {data.dtype.name} numbers that are no {kind.name}",
            advice="save them as that type, or name another",
        )
    return found


def _bad(path: Path, why: str) -> ParseError:
    return ParseError(
        f"cannot read '{path}' as .npy: {why}", advice="write it with numpy.save of a plain array"
    )
