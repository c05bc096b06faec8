"""Which space of decisions a recipe is of: loops, products of warp groups, of warps or of packed
weights, attention."""

from __future__ import annotations

from typing import Any

from warploom.loopnest.strategies.form import (
    ATTENTION,
    LOOPS,
    MATRIX,
    PACKED,
    TURNED,
    WARPS,
    WEIGHTS,
)
from warploom.pipeline.attention_nest import AttentionNest, PackedNest
from warploom.pipeline.matrix_nest import MatrixNest, TurnedNest
from warploom.pipeline.nest import Nest, Recipe
from warploom.pipeline.warp_nest import WarpNest
from warploom.pipeline.weights_nest import WeightsNest

SPACES = {
    LOOPS: Nest, MATRIX: MatrixNest, TURNED: TurnedNest, WARPS: WarpNest,
    ATTENTION: AttentionNest, PACKED: PackedNest,
    WEIGHTS: WeightsNest,
}  # fmt: skip


def nest_by(recipe: Recipe) -> Nest:
    """The space that a recipe says."""
    kind, *parts = recipe
    made: Any = SPACES[kind]
    found: Nest = made(*parts)
    return found
