"""Products of many warps in C, for the evaluator: the same bits as `machine/fused.py`, sooner."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import InternalError
from warploom.machine.c_source import whole_text
from warploom.machine.fused import Rule
from warploom.machine.value.text import HEADERS
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.ptx.fast.build import FLAGS

Array = npt.NDArray[Any]
KINDS = ("f16", "bf16", "tf32", "e4m3", "e5m2")  # as the C text numbers them


class CompiledArithmetic:
    """Compiled sums of products."""

    def __init__(self, code: Callable[..., int]) -> None:
        self._code = code

    def fused(
        self, a: Array, b: Array, c: Array, kinds: tuple[str, str], result: str, rule: Rule
    ) -> Array | None:  # fmt: skip
        """c + Σ a·b for each warp: codes by row and k, by column and k; sums by row and column.

        None where the types are none of its own.
        """
        if not set(kinds) <= set(KINDS):
            return None
        left, right = (np.ascontiguousarray(each, np.uint32) for each in (a, b))
        sums = np.array(c, np.float32, order="C")
        count, rows, columns = sums.shape
        numbers = (
            rows, columns, left.shape[-1], *map(KINDS.index, kinds), rule.group, rule.below,
            rule.kept, int(result == "f16"),
        )  # fmt: skip
        given = np.array(numbers, np.int32)
        places = [ctypes.c_void_p(each.ctypes.data) for each in (left, right, sums, given)]
        if not self._code(*places[:3], ctypes.c_uint64(count), places[3]):
            raise InternalError("a product that is larger than compiled code was made for")
        return sums.astype(c.dtype)


@cache
def compiled_arithmetic() -> CompiledArithmetic:
    """What is compiled once for all kernels."""
    text = whole_text(Path(__file__).with_name("c") / "fused.c", [HEADERS])
    library = load_library(kept_library(text, ("-O2", *FLAGS), cache_folder()))
    library.fused.restype = ctypes.c_int
    return CompiledArithmetic(library.fused)
