"""A compiled sketch as an entry like those of the catalogue, so that it is checked as they are.

The specification is the goal, run on numbers, tile by tile. Sizes are lengths of the first output:
parts of a tile, whole tiles, a tile more or less than a block does.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Size, Values
from warploom.kernel.ir import Kernel
from warploom.sketch.code.need import Shapes, scalars_of, shapes_for
from warploom.sketch.code.tiling import Tiled, Tiling, size_names
from warploom.sketch.code.trial import as_type, by_tiles, tolerance
from warploom.sketch.code.wanted import wanted_of


def entry_of(name: str, made: Tiled) -> Entry:
    """The entry of a kernel; it has no parameters, as the sketch has been built."""
    tiling, dtype = made.tiling, made.dtype.computed
    wanted = wanted_of(replace(made, dtype=dtype))

    def build() -> Kernel:
        return made.kernel

    def inputs(size: Size, random: np.random.Generator) -> Values:
        shapes = shapes_for(tiling, _output_shapes(tiling, size))
        draw = wanted.draws[int(random.integers(len(wanted.draws)))]
        return {
            **scalars_of(tiling, shapes),
            **{array.name: draw(shapes[array.name], random) for array in tiling.inputs},
        }

    def specification(values: Values) -> Arrays:
        shapes = {
            array.name: tuple(int(values[each]) for each in size_names(array))
            for array in tiling.outputs
        }
        given = {a.name: np.asarray(values[a.name]) for a in tiling.inputs}
        draw = partial(wanted.draws[0], random=np.random.default_rng(1))
        cells = by_tiles(tiling, given, shapes, wanted.compute, draw)
        return {each: as_type(numbers, dtype) for each, numbers in cells.items()}

    return Entry(
        name=name,
        doc=made.kernel.doc,
        parameters={},
        build=build,
        inputs=inputs,
        specification=specification,
        sizes=lambda: sizes_of(made),
        tolerance=tolerance(tiling.goal, dtype),
        stored=made.dtype if made.dtype.is_code else None,
    )


def sizes_of(made: Tiled) -> list[dict[str, int]]:
    """At least twenty, whole tiles and others."""
    *outer, last = made.tiling.outputs[0].shape
    group = made.group
    lengths = sorted(
        {1, 2, last - 1, last, last + 1, *(n * last for n in (2, 3, group, group + 1, 2 * group))}
        | {n * last + d for n in (2, 3, 5, group) for d in (-1, 1, last // 2)}
        | {n * last + d for n in (1, 4, 7) for d in (3, last // 3)}
        | {7, 11, 13, 29, 37, 61}
    )
    others = [sorted({1, max(1, n - 1), n, n + 1, 2 * n + 1}) for n in outer]
    names = size_names(made.tiling.outputs[0])
    cycles = [itertools.cycle(each) for each in others]
    return [
        dict(zip(names, (*map(next, cycles), length), strict=True)) for length in lengths if length
    ]


def _output_shapes(tiling: Tiling, size: Size) -> Shapes:
    """The first output by its size; others have as many tiles, and as much of the last one."""
    first = tiling.outputs[0]
    lengths = [size[name] for name in size_names(first)]
    shapes: Shapes = {first.name: tuple(lengths)}
    for array in tiling.outputs[1:]:
        own = []
        for length, tile, other in zip(lengths, first.shape, array.shape, strict=True):
            tiles = -(-length // tile)
            own.append((tiles - 1) * other + min(other, length - (tiles - 1) * tile))
        shapes[array.name] = tuple(own)
    return shapes
