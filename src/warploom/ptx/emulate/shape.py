"""Shapes that most instructions have: one destination, and one to four sources of one type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Context, Fetch, Step, Store
from warploom.ptx.ir import Instruction
from warploom.ptx.types import DTYPES, UNSIGNED, DType

Array = npt.NDArray[Any]
Compile = Callable[[Context, Instruction], Step]


def parts(
    ctx: Context, ins: Instruction, result: str, *sources: str
) -> tuple[Store, tuple[Fetch, ...]]:
    """The destination and the sources of an instruction."""
    fetches = tuple(
        ctx.read(operand, kind) for operand, kind in zip(ins.operands[1:], sources, strict=False)
    )
    return ctx.write(ins.operands[0], result), fetches


def mixed(
    ctx: Context, ins: Instruction, result: str, sources: tuple[str, ...], fn: Callable[..., Array]
) -> Step:
    """Sources of different types; the result is cast to its type."""
    store, fetches = parts(ctx, ins, result, *sources)
    dtype = DTYPES[result]
    return lambda f: store(f, fn(*[fetch(f) for fetch in fetches]).astype(dtype, copy=False))


def pairwise(fn: Callable[..., Array], dtype: DType) -> Callable[..., Array]:
    """A function on values made one on packed pairs of them."""
    both = UNSIGNED[2 * dtype.itemsize]

    def packed(*values: Array) -> Array:
        halves = [v.view(dtype).reshape(-1, 2) for v in map(np.ascontiguousarray, values)]
        out = np.ascontiguousarray(np.atleast_2d(fn(*halves)))
        return out.view(both).reshape(-1)

    return packed
