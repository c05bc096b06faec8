"""How a kernel repeats over large arrays: tiles of inputs and outputs, and the goal of one tile.

Along each axis tile b of an array begins at b times its step. Both kinds of sketches come to this;
from it follow which lengths go together (`need.py`), and how a kernel is tried out (`trial.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from warploom.errors import CheckError, Span
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import Kernel
from warploom.sketch.code.function import Function
from warploom.sketch.term.ir import Goal, Shape
from warploom.sketch.term.verify import Verification

Space: TypeAlias = Literal["input", "output", "constant", "shared", "register"]

_SIZES = ("columns", "rows", "planes")


@dataclass(frozen=True, slots=True)
class Array:
    """`step` says how far apart the tiles of two neighbouring warps begin, for global arrays.

    The tiles of an output lie side by side: its step is its shape. All tiles read the same
    `constant`. Arrays of a term sketch have one axis; `written` is the shape of a tile there.
    """

    name: str
    space: Space
    shape: Shape
    step: Shape = ()
    written: Shape = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How a sketch lies on the machine. `lanes` and `steps` are for term sketches: how long the
    axis across lanes is, and how far apart the tiles of an input begin (0: all read the same).
    With `function` the kernel has a function in it (`kernel/function.py`), and one warp in a
    block. Indices are computed in `index`, i32 or i64."""

    lanes: int | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    dtype: DType = f32
    warps: int = 4
    function: bool = False
    index: DType = DType.I32

    def as_function(self) -> Layout:
        return replace(self, warps=1, function=True)


@dataclass(frozen=True, slots=True, eq=False)
class Tiling:
    """`symbols[name]` are the goal's symbols that the elements of an input's tile stand for, and
    `functions` what the functions in it compute, by operator."""

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    goal: Goal
    symbols: Mapping[str, tuple[int, ...]]
    functions: Mapping[str, Function]


@dataclass(frozen=True, slots=True, eq=False)
class Tiled:
    """A kernel, what it does to large arrays, and how one tile of it was verified."""

    kernel: Kernel
    tiling: Tiling
    verification: Verification
    dtype: DType
    group: int  # tiles of a block, along the fastest axis


def check_launch(dtype: DType, warps: int, span: Span | None = None) -> None:
    """Refuses what is no element type, and no number of warps of a block; `span` says who asks."""
    if not isinstance(dtype, DType):
        known = ", ".join(map(repr, DType))
        raise CheckError(f"{dtype!r:.40} is no element type", span, f"use a DType: {known}")
    if isinstance(warps, bool) or not isinstance(warps, int) or warps < 1:
        raise CheckError(f"a block has at least one warp, not {warps!r:.40}", span)


def size_names(array: Array) -> tuple[str, ...]:
    """The parameters that hold an array's lengths, slowest axis first."""
    if len(array.shape) == 1:
        return (f"{array.name}_size",)
    return tuple(f"{array.name}_{name}" for name in _SIZES[: len(array.shape)][::-1])


def cell_name(array: str, shape: Shape, cell: int) -> str:
    """
    >>> cell_name("y", (2, 4), 6)
    'y[1, 2]'
    """
    return f"{array}[{', '.join(str(int(i)) for i in np.unravel_index(cell, shape))}]"
