"""The arrays of a sketch as they are declared: shapes and steps that a kernel of tiles can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.sketch.simt.ir import Array, Space
from warploom.sketch.simt.reach import reach
from warploom.sketch.simt.tile import per_axis
from warploom.sketch.term.ir import Shape
from warploom.sketch.term.limits import check_shape, show_shape


def declared(name: str, space: Space, shape: int | Shape, step: int | Shape | None) -> Array:
    """An array; the step of a global one is its shape unless it says another."""
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not all(isinstance(n, (int, np.integer)) for n in sizes):
        raise CheckError(f"the shape of '{name}' is made of constants, not {sizes!r:.60}")
    sizes = tuple(map(int, sizes))
    check_shape(sizes)
    steps = sizes if step is None else per_axis(step, len(sizes))
    if len(steps) != len(sizes):
        raise CheckError(f"'{name}' needs a step for each of its {len(sizes)} axes")
    array = Array(name, space, sizes, steps if space in ("input", "output") else ())
    _check_steps(array)
    return array


def _check_steps(array: Array) -> None:
    """Every element of an output belongs to one tile; tiles of inputs may overlap."""
    if array.space == "output" and array.step != array.shape:
        raise CheckError(
            f"output '{array.name}' has tiles of {show_shape(array.shape)} every "
            f"{show_shape(array.step)} elements",
            advice="tiles of an output lie side by side: leave its step out",
        )
    if min(array.step, default=0) < 0:
        raise CheckError(f"'{array.name}' has a negative step, {show_shape(array.step)}")


def check_outputs(outputs: Sequence[Array], filled: Set[str]) -> None:
    """A sketch has outputs, all of them written, and tiles counted along the axes of all alike."""
    if not outputs:
        raise CheckError("a sketch needs an output", advice="k.output(name, shape)")
    for array in outputs:
        if array.name not in filled:
            raise CheckError(f"output '{array.name}' is never written")
        if len(array.shape) != len(outputs[0].shape):
            raise CheckError(
                f"output '{array.name}' has {len(array.shape)} axes, "
                f"'{outputs[0].name}' has {len(outputs[0].shape)}",
                advice="tiles are counted along the axes of all outputs alike",
            )


def check_registers(array: Array, index: tuple[Expr, ...], extents: Mapping[str, int]) -> None:
    """Registers have no addresses: a place outside an array is no register at all."""
    for axis, (expr, length) in enumerate(zip(index, array.shape, strict=True)):
        low, high = reach(expr, extents)
        if low < 0 or high >= length:
            raise CheckError(
                f"'{array.name}' has {length} registers along axis {axis}, "
                f"but register {low if low < 0 else high} is written"
            )
