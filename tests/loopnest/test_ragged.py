"""Rows that begin anywhere: accesses are aligned all the same, and touch no other row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.kernel.dtype import DType, bf16, f16, f32
from warploom.kernel.ir import If, Kernel, Load, walk
from warploom.loopnest.ir import Skew
from warploom.loopnest.lower import lower
from warploom.loopnest.rows import backward, forward
from warploom.loopnest.strategies.known import variants_of
from warploom.machine.record import machine_named
from warploom.pipeline.drawn import Asked, leaves_of
from warploom.pipeline.exploring import nest_of
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.schedule.combine import digits_of


def first(given: Any) -> tuple[Nest, Any]:
    """An implementation of the first variant whose rows begin anywhere, or else of the first."""
    nest = nest_of(given)
    found = variants_of(nest.program, free=False)[0]
    anywhere = (each for each in found if any(axis.skew for axis in each.program.axes))
    variant = next(anywhere, found[0])
    own = nest_by(recipe_of(variant, nest))
    drawn = leaves_of(own, Asked(2, (0,)))
    row = int(np.flatnonzero(drawn.arrived)[0])
    return own, drawn.leaves.take(slice(row, row + 1))


def widths(kernel: Kernel) -> set[int]:
    return {
        each.width for each in walk(kernel.body) if isinstance(each, Load) and each.array == "x"
    }


@pytest.mark.parametrize(("dtype", "width"), [(bf16, 8), (f32, 4)])
def test_rows_of_any_length_are_read_in_whole_accesses(dtype: DType, width: int) -> None:
    own, leaf = first(forward.softmax(5, 517, dtype))
    kernel = lower(own.implementation(leaf))
    assert widths(kernel) == {1, width}  # one by one at the ends
    assert any(isinstance(each, If) for each in walk(kernel.body))
    assert not own.tried(leaf).wrong


def test_what_is_the_same_for_all_rows_is_not_aligned_beside_them() -> None:
    norm = forward.Norm(True, True, weights=f16)
    own, leaf = first(backward.layer_norm(3, 261, f16, norm))
    kernel = lower(own.implementation(leaf))
    scale = {e.width for e in walk(kernel.body) if isinstance(e, Load) and e.array == "scale"}
    assert widths(kernel) == {1, 8}
    assert scale == {1}
    assert not own.tried(leaf).wrong


def test_rows_that_are_aligned_need_no_ends() -> None:
    own, leaf = first(forward.softmax(5, 520, bf16))
    kernel = lower(own.implementation(leaf))
    assert widths(kernel) == {8}


def test_a_skew_is_less_than_an_access() -> None:
    skew = Skew((("m", 5),), 3, 8)
    assert skew.most == 7
    assert str(skew.expr)


def test_blocks_of_any_whole_warps_exchange_within_them() -> None:
    lanes = machine_named("h200").lanes
    digits = digits_of((192,), (0,), lanes)
    assert [(each.size, each.way) for each in digits] == [(32, "exchanged"), (6, "shared")]
