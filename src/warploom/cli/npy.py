"""Arrays of .npy and .npz files: a header is read by itself, before anything of its size is
allocated."""

from __future__ import annotations

import ast
import math
import os
import re
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from warploom.errors import ParseError

MAGIC = b"\x93NUMPY"
MOST_HEADER = 1 << 14  # characters; NumPy's own are about a hundred
MOST_AXES = 32
MOST_BYTES = 2 << 30  # of all arrays of one archive
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
            data = _elements(file, path, os.fstat(file.fileno()).st_size, count)
    except (OSError, ValueError) as error:
        raise _bad(path, str(getattr(error, "strerror", None) or error)) from None
    return converted(path, data.ravel(), kind)


def read_array(path: Path) -> Any:
    """The array of a .npy file, of the type and shape that it has."""
    try:
        with path.open("rb") as file:
            return _elements(file, path, os.fstat(file.fileno()).st_size)
    except (OSError, ValueError) as error:
        raise _bad(path, str(getattr(error, "strerror", None) or error)) from None


def read_archive(path: Path) -> dict[str, Any]:
    """The arrays of a .npz file, by name; none of them is evaluated or unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if each.filename.endswith(".npy")]
            if sum(each.file_size for each in members) > MOST_BYTES:
                raise _bad(path, f"it holds more than {MOST_BYTES >> 20} MiB")
            found = {}
            for each in members:
                with archive.open(each) as file:
                    name = Path(f"{path}:{each.filename.removesuffix('.npy')}")
                    found[each.filename.removesuffix(".npy")] = _elements(
                        cast("BinaryIO", file), name, each.file_size
                    )
            return found
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, zlib.error) as error:
        why = str(getattr(error, "strerror", None) or error)
        raise ParseError(f"cannot read '{path}' as .npz: {why}") from None


def _elements(file: BinaryIO, path: Path, size: int, count: int | None = None) -> Any:
    """The array of an opened file of so many bytes; `count`: how many elements it must have."""
    header = _header(file, path)
    total = math.prod(header.shape)
    if count not in (None, total):
        raise ParseError(f"'{path}' holds {total} elements, not {count}")
    wanted = header.begin + total * header.dtype.itemsize
    if size != wanted:
        raise _bad(path, f"the file has not the {wanted} bytes that its header tells of")
    raw = file.read(wanted - header.begin)
    if len(raw) != wanted - header.begin:
        raise _bad(path, "it ends before its last element")
    data = np.frombuffer(bytearray(raw), header.dtype)
    if header.fortran:
        return np.ascontiguousarray(data.reshape(header.shape[::-1]).transpose())
    return data.reshape(header.shape)


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


def converted(path: Path, data: Any, kind: np.dtype[Any]) -> Any:
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
