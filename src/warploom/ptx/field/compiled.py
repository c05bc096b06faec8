"""Products modulo a prime in C, where there is a compiler."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import WarploomError
from warploom.machine.c_source import whole_text
from warploom.native import kept_library, load_library
from warploom.options import cache_folder

Array = npt.NDArray[np.uint64]
_FLAGS = ("-O2", "-shared", "-fPIC")


class ModularCode:
    """The functions of `modular.c`; `given` is what they are told of a prime."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def multiply(self, x: Any, y: Any, given: Array) -> Array:
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        left, right = (_whole(np.broadcast_to(each, shape)) for each in (x, y))
        out = np.empty(shape, np.uint64)
        self._call("multiply", left, right, out, out.size, given)
        return out

    def power(self, table: Array, exponent: Array, given: Array) -> Array:
        out = np.empty(exponent.shape, np.uint64)
        self._call("power", _whole(table), _whole(exponent), out, out.size, given)
        return out

    def products(self, a: Array, b: Array, given: Array) -> Array:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        left, right = (_whole(np.broadcast_to(x, (*outer, *x.shape[-2:]))) for x in (a, b))
        rows, depth = left.shape[-2:]
        columns = right.shape[-2]
        out = np.empty((*outer, rows, columns), np.uint64)
        count = int(np.prod(outer, dtype=np.int64))
        sizes = np.array([count, rows, columns, depth], np.uint64)
        self._call("products", left, right, out, sizes, given)
        return out

    def _call(self, name: str, *given: Any) -> None:
        getattr(self._library, name)(*(
            ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray) else ctypes.c_uint64(x)
            for x in given
        ))  # fmt: skip


def _whole(x: Any) -> Array:
    return np.ascontiguousarray(x, np.uint64)


@cache
def compiled() -> ModularCode | None:
    """What is compiled once; None where nothing can be."""
    text = whole_text(Path(__file__).with_name("modular.c"))
    try:
        return ModularCode(load_library(kept_library(text, _FLAGS, cache_folder())))
    except WarploomError:
        return None
