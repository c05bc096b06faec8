"""Runs the kernel of a filled sketch on the simulator, against its specification on numbers.

A kernel does many tiles of arrays of any length; the proof is about one tile. So it is launched on
several tiles, in more than one block, and on last tiles that are not whole, with inputs that end
where the specification needs no more. What is outside an array holds a mark that must stay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, DeviceError
from warploom.kernel.dtype import DType
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.sketch.code.limit import largest
from warploom.sketch.code.need import Shapes, scalars_of, shapes_for
from warploom.sketch.code.tiling import Array, Tiled, Tiling, cell_name
from warploom.sketch.code.wanted import Compute, Numbers, Wanted, function_names, wanted_of
from warploom.sketch.term.ir import Goal, Shape, size
from warploom.sketch.term.limits import heights

Arrays: TypeAlias = dict[str, Numbers]

MAX_TRIED = 1 << 25  # elements of one array
_MARGIN = 16  # elements on both sides of an array that nobody may touch


def tried(tiled: Tiled, *, on_arrays: bool = True) -> Tiled:
    """The kernel after it was run; its header says on what, how long an input is that all tiles
    read, and how large arrays may be, unless it is that of a function on registers."""
    kernel = tiled.kernel
    limit = [*_shared_inputs(tiled.tiling), largest(tiled)] if on_arrays else []
    doc = "\n".join([kernel.doc, try_kernel(tiled), *limit])
    return replace(tiled, kernel=replace(kernel, doc=doc))


def _shared_inputs(tiling: Tiling) -> Iterator[str]:
    """How long arrays are whose length no parameter holds."""
    for array in tiling.inputs:
        if array.space == "constant":
            yield f"'{array.name}' has {size(array.shape)} elements: all tiles read the same"


def try_kernel(tiled: Tiled) -> str:
    """What was run, in words; CheckError names the first element that is wrong."""
    tiling, wanted = tiled.tiling, wanted_of(tiled)
    random = np.random.default_rng(0)
    first = tiling.outputs[0]
    shapes = list(launches(tiling, tiled.group))
    for draw, each in itertools.product(wanted.draws, shapes):
        _try_once(tiled, wanted, each, partial(draw, random=random))
    tried = f" ({', '.join(map(str, wanted.draws))})" if function_names(tiling.goal) else ""
    sizes = dict.fromkeys(" × ".join(map(str, each[first.name])) for each in shapes)
    return (
        f"Run on the simulator, equal to {wanted.name} on numbers{tried}: '{first.name}' of "
        f"{', '.join(sizes)} elements in tiles of {' × '.join(map(str, first.shape))}"
    )


def _try_once(
    tiled: Tiled, wanted: Wanted, shapes: Shapes, draw: Callable[[Shape], Numbers]
) -> None:
    tiling = tiled.tiling
    for name, shape in shapes.items():
        if size(shape) > MAX_TRIED:
            raise CheckError(
                f"'{name}' has {size(shape)} elements in a few tiles of '{tiling.name}', too many "
                "for the simulator",
                tiling.goal.span,
                "let tiles begin closer to each other",
            )
    inputs = {a.name: draw(shapes[a.name]) for a in tiling.inputs}
    outputs = {a.name: draw(shapes[a.name]) for a in tiling.outputs}
    cells = by_tiles(tiling, inputs, shapes, wanted.compute, draw)
    found = _launched(tiled.kernel, tiling, inputs, outputs, shapes)
    _compare(tiled, found, cells, shapes, wanted.says)


# -- sizes ---------------------------------------------------------------------------------------


def launches(tiling: Tiling, group: int) -> Iterator[Shapes]:
    """Whole tiles in two blocks; two along each axis, the last of one element; most of one tile.

    Inputs end where nothing more is needed, in the last launch a little later.
    """
    axes = len(tiling.outputs[0].shape)
    whole = (*(2 for _ in range(axes - 1)), group + 1)
    for tiles, last, more in (
        (whole, lambda tile: tile, 0),
        ((2,) * axes, lambda _: 1, 0),
        ((1,) * axes, lambda tile: max(1, tile - 1), 3),
    ):
        yield shapes_at(tiling, tiles, last, more)


def shapes_at(
    tiling: Tiling, tiles: tuple[int, ...], last: Callable[[int], int], more: int = 0
) -> Shapes:
    """The shapes of all arrays for so many tiles along each axis; `last(n)` elements of a tile of n
    are in the last one. Inputs are as short as may be, and `more`."""
    outputs: Shapes = {}
    for array in tiling.outputs:
        pairs = zip(tiles, array.shape, strict=True)
        outputs[array.name] = tuple((count - 1) * tile + last(tile) for count, tile in pairs)
    return shapes_for(tiling, outputs, more)


# -- what the specification says -----------------------------------------------------------------


def by_tiles(
    tiling: Tiling,
    inputs: Arrays,
    shapes: Shapes,
    compute: Compute,
    draw: Callable[[Shape], Numbers],
) -> dict[str, npt.NDArray[np.object_]]:
    """The outputs, tile by tile; what an input tile has beyond its array is drawn at random."""
    outputs = {a.name: np.empty(shapes[a.name], object) for a in tiling.outputs}
    first = tiling.outputs[0]
    lengths = zip(shapes[first.name], first.shape, strict=True)
    for tile in itertools.product(*(range(-(-length // own)) for length, own in lengths)):
        numbers: dict[int, Any] = {}
        for array in tiling.inputs:
            values = _input_tile(array, inputs[array.name], tile, draw).reshape(-1).tolist()
            numbers |= dict(zip(tiling.symbols[array.name], values, strict=True))
        cells = compute(numbers)
        for array in tiling.outputs:
            made = np.empty(size(array.shape), object)
            made[:] = cells[: len(made)]
            cells = cells[len(made) :]
            _put(outputs[array.name], array, tile, made.reshape(array.shape))
    return outputs


def _input_tile(
    array: Array, whole: Numbers, tile: tuple[int, ...], draw: Callable[[Shape], Numbers]
) -> Numbers:
    if array.space == "constant":
        return whole
    # The last axes of all arrays go together; along further ones there is one tile.
    numbers = (*(0 for _ in array.shape), *tile)[-len(array.shape) :]
    part = whole[_slices(array, numbers)]
    cells = draw(array.shape)
    cells[tuple(slice(length) for length in part.shape)] = part
    return cells


def _put(whole: Numbers, array: Array, tile: tuple[int, ...], values: Numbers) -> None:
    place = _slices(array, tile)
    part = whole[place]
    whole[place] = values[tuple(slice(length) for length in part.shape)]


def _slices(array: Array, tile: tuple[int, ...]) -> tuple[slice, ...]:
    along = zip(tile, array.step, array.shape, strict=True)
    return tuple(slice(number * step, number * step + own) for number, step, own in along)


# -- running -------------------------------------------------------------------------------------


def _launched(
    kernel: Kernel, tiling: Tiling, inputs: Arrays, outputs: Arrays, shapes: Shapes
) -> Arrays:
    """Runs the kernel; the outputs, of which nothing outside was touched."""
    named = scalars_of(tiling, shapes)
    buffers = {name: _with_margin(values) for name, values in (inputs | outputs).items()}
    inner = {name: buffer[_MARGIN:-_MARGIN] for name, buffer in buffers.items()}
    before = {name: buffer.copy() for name, buffer in buffers.items()}
    try:
        run(kernel, [inner[each.name] for each in kernel.arrays], named)
    except DeviceError as error:
        raise CheckError(
            f"the kernel of '{tiling.name}' fails on the simulator: {error.message}",
            tiling.goal.span,
        ) from error
    for name, buffer in buffers.items():
        touched = buffer != before[name]
        if name in outputs:
            touched[_MARGIN:-_MARGIN] = False
        if touched.any():
            place = int(np.argmax(touched)) - _MARGIN
            raise CheckError(
                f"the kernel of '{tiling.name}' writes {name}[{place}]", tiling.goal.span
            )
    return {name: inner[name].reshape(shapes[name]) for name in outputs}


def _with_margin(values: Numbers) -> Numbers:
    mark = np.full(_MARGIN, 77, values.dtype)
    return np.concatenate([mark, values.reshape(-1), mark])


def _compare(
    tiled: Tiled,
    found: Arrays,
    wanted: Mapping[str, npt.NDArray[np.object_]],
    shapes: Shapes,
    says: str,
) -> None:
    tiling = tiled.tiling
    for name, values in found.items():
        wrong = ~_equal(values.reshape(-1), wanted[name].reshape(-1), tiling.goal, tiled.dtype)
        if wrong.any():
            cell = int(np.argmax(wrong))
            named = scalars_of(tiling, shapes)
            sizes = ", ".join(f"{each} = {length}" for each, length in named.items())
            raise CheckError(
                f"the kernel of '{tiling.name}' holds {values.reshape(-1)[cell]} in "
                f"{cell_name(name, shapes[name], cell)}, but {says} "
                f"{_shown(wanted[name].reshape(-1)[cell])} ({sizes})",
                tiling.goal.span,
            )


def _shown(number: Any) -> Any:
    return number if isinstance(number, int) else float(number)


def tolerance(goal: Goal, dtype: DType) -> float:
    """How much a right result may be off, relative to its size; 0 where nothing is computed."""
    if not dtype.is_float:
        return 0.0
    folds = heights(goal.values)
    if not folds:
        return 0.0
    terms = max(len(fold.items) for fold in folds)
    return float(np.finfo(dtype.numpy).eps) * (8 + 2 * terms * max(folds.values()))


def _equal(
    values: Numbers, wanted: npt.NDArray[np.object_], goal: Goal, dtype: DType
) -> npt.NDArray[np.bool_]:
    """Integers wrap and are equal; floating point rounds, by so much for each number in a cell."""
    if dtype.is_float:
        limits = np.finfo(dtype.numpy)
        close = tolerance(goal, dtype) or float(limits.eps)
        with np.errstate(all="ignore"):
            numbers = wanted.astype(np.float64).astype(dtype.numpy).astype(np.float64)
            # Where all numbers are small, a small difference is no rounding.
            scale = np.max(np.abs(numbers), initial=0.0, where=np.isfinite(numbers))
            least = max(close * min(1.0, float(scale)), float(limits.tiny))
            return np.asarray(np.isclose(values, numbers, rtol=close, atol=least, equal_nan=True))
    whole = np.array([_is_whole(number) for number in wanted], np.bool_)
    return np.asarray(whole & (values == as_type(np.where(whole, wanted, 0), dtype)), np.bool_)


def as_type(numbers: npt.NDArray[np.object_], dtype: DType) -> Numbers:
    """Exact numbers as a type holds them: integers wrap, a fraction is none of them."""
    if dtype.is_float:
        return numbers.astype(dtype.numpy)
    bits = 8 * dtype.bytes
    for number in numbers.reshape(-1):
        if not _is_whole(number):
            raise CheckError(f"the specification gives {number}, which is no {dtype.value}")
    wrapped = np.array([int(n) % (1 << bits) for n in numbers.reshape(-1)], f"u{dtype.bytes}")
    return wrapped.view(dtype.numpy).reshape(numbers.shape)


def _is_whole(number: Any) -> bool:
    return math.isfinite(number) and number == int(number)
