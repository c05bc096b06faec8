"""Lowering keeps the meaning: the sketch run lane by lane is the term program evaluated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples
from tests.sketch.simt import random_sketches

from warploom.bench import inventor_sketches as paper
from warploom.errors import CheckError
from warploom.sketch.holes import choice_from_json, choice_to_json
from warploom.sketch.simt.evaluate import interpret
from warploom.sketch.simt.function import sketch
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.lower import lower
from warploom.sketch.simt.space import candidates
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.synth.transfer import counterparts
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.gather import Sense
from warploom.sketch.term.ir import Apply, GatherSet, Program, Undefined


def agree(traced: Traced, space: int, draw: st.DataObject) -> Program:
    offered = {hole.name: candidates(hole, space) for hole in traced.holes.values()}
    lowered = lower(traced, offered)
    choices = {n: draw.draw(st.integers(0, len(c) - 1)) for n, c in offered.items()}
    # Candidates that are equal where they are used share a choice: take the one that stands.
    which = lowered.which
    choices = {n: c if c in which[n] else int(which[n][0]) for n, c in choices.items()}
    filled = {name: offered[name].expression(choice) for name, choice in choices.items()}
    fill = lowered.fill(choices)
    assert lowered.choices(fill) == choices
    assert evaluate(lowered.program, fill)[-1] == interpret(traced, filled)
    return lowered.program


@examples(60)
@given(random_sketches.traced_sketches(), st.integers(1, 3), st.data())
def test_random_sketches_mean_the_same_as_their_terms(
    traced: Traced, space: int, data: st.DataObject
) -> None:
    agree(traced, space, data)


SMALL = (
    (paper.stencil_1d, {"warp": 4}),
    (paper.convolution_1d, {"warp": 5, "taps": 4}),
    (paper.convolution_2d, {"rows": 2, "warp": 3, "taps": 3}),
    (paper.multiplication_32_shared, {"warp": 3}),
    (paper.multiplication_64, {"warp": 2}),
    (paper.aos_sum, {"warp": 4, "s": 3}),
    (paper.aos_crc, {"warp": 4, "s": 2}),
    (paper.aos_rcr, {"warp": 4, "s": 3}),
)


@examples(30)
@given(st.sampled_from(SMALL), st.integers(1, 3), st.data())
def test_the_papers_sketches_mean_the_same_as_their_terms(
    case: tuple[object, dict[str, int]], space: int, data: st.DataObject
) -> None:
    made, sizes = case
    agree(made.at(**sizes), space, data)  # type: ignore[attr-defined]


def test_a_hole_in_a_loop_is_one_hole() -> None:
    traced = paper.stencil_1d.at(warp=4)
    lowered = lower(traced, {h.name: candidates(h, 1) for h in traced.holes.values()})
    assert len(lowered.program.holes) == 3
    assert [lowered.program.steps[h].shape for h in lowered.program.holes] == [(4, 3)] * 3


def opened(warp: int) -> dict[str, GatherSet]:
    """The holes of a lowered sketch as sets of gathers, by name."""
    traced = paper.stencil_1d.at(warp=warp)
    lowered = lower(traced, {h.name: candidates(h, 2) for h in traced.holes.values()})
    steps = {name: lowered.program.steps[at] for name, at in lowered.position.items()}
    return {name: step.gathers for name, step in steps.items() if isinstance(step, Apply)}


def test_the_gathers_of_a_hole_are_data_too() -> None:
    small, large = opened(4), opened(8)
    assert set(small) == {"part", "source", "keep"}
    for name, gathers in small.items():
        for choice in range(0, len(gathers), 3):
            record = choice_to_json(gathers, choice)
            assert choice_from_json(gathers, record) == choice
            assert record["text"] == gathers.describe(choice)
            assert choice in counterparts(gathers, choice, gathers, Sense.NATURAL)
            if name != "source":  # conditions name the size, so they are there at every size
                assert len(counterparts(gathers, choice, large[name], Sense.NATURAL)) == 1
        with pytest.raises(CheckError):
            choice_from_json(gathers, record | {"parameters": {"nothing": 1}})


def test_dropped_statements_take_their_holes_along() -> None:
    traced = paper.multiplication_64.at()
    offered = {h.name: candidates(h, 1) for h in traced.holes.values()}
    lowered = lower(traced, offered, frozenset({0, 4}))
    assert set(lowered.position) == {
        "part_a0", "from_a0", "part_b0", "from_b0", "to0_00", "to1_00",
    }  # fmt: skip


def test_a_cell_that_several_lanes_write_holds_nothing() -> None:
    @sketch
    def clash(k: Tracer) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 4), k.output("y", 4)
        y[lane // 2 * 3 - 1] = x[lane]  # lanes 0 and 1 outside, 2 and 3 both at 2

    clash.specification(lambda x: np.zeros(4, int))
    traced = clash.at()
    cells = evaluate(lower(traced, {}).program)[-1]
    assert cells == interpret(traced, {}) == (Undefined(),) * 4
