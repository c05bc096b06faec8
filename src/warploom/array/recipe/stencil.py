"""A stencil in the plane → tiles for groups, each read with its border into local memory."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.build import sizes
from warploom.array.language.ir import Program
from warploom.array.recipe.common import HOIST, Step, cached
from warploom.array.rewrite.laws import REDUCE_MAP, STENCIL_TILES
from warploom.array.rewrite.strategy import at, by, everywhere, in_body, map_over, transformed
from warploom.array.types import Type, base, shape
from warploom.index.ir import Expr

N, M, TH, TW = sizes("n m th tw")
TUNED = ["th", "tw"]


def mid_level(program: Program, staged: bool = True) -> Program:
    """The stencil (`workload.stencil_2d`) in the form that is mapped."""
    number = base(program.inputs[0].type)
    points = shape(program.inputs[1].type)[0]
    return transformed(program, *_steps(number, points, staged))


def _steps(number: Type, points: Expr, staged: bool) -> Iterator[Step]:
    yield "products into sums", everywhere(by(REDUCE_MAP))
    yield "tiles", at(map_over(N), by(STENCIL_TILES.with_(rows=TH, columns=TW)))
    yield "layout outside", HOIST
    if staged:
        tile = (TH + points - 1, TW + points - 1)
        yield "tiles in local memory", at(map_over(M // TW), in_body(cached("local", number, tile)))
