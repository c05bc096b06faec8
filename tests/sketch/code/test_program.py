"""Lowered programs compute what the evaluator says, tile by tile, and the rest is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sketch.code.programs import Filled, check_kernel, random_program
from tests.tools import require

from warploom.catalogue import texts as sketches
from warploom.errors import CheckError, SearchError, UnsupportedError, WarploomError
from warploom.kernel.dtype import f32, i64
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Shuffle, walk
from warploom.sketch import front
from warploom.sketch.build import Sketch
from warploom.sketch.code.program import lower_program
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term import spec

SKETCHES = Path(__file__).parents[3] / "examples" / "sketches"


def check_seed(seed: int) -> bool:
    filled = random_program(seed)
    if filled is None:
        return False
    check_kernel(filled, seed, tiles=1 + seed % 5)
    return True


@pytest.mark.slow
def test_random_programs_compute_what_the_evaluator_says() -> None:
    assert sum(check_seed(seed) for seed in range(7)) >= 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("device", ["c", "ptx"])
@pytest.mark.parametrize("seed", [2, 7, 15])
def test_compiled_programs(seed: int, device: str) -> None:
    require(device)
    filled = random_program(seed)
    assert filled is not None
    check_kernel(filled, seed, tiles=3, device=device)


@pytest.mark.slow
def test_many_random_programs() -> None:
    assert sum(check_seed(seed) for seed in range(2000)) >= 900


@pytest.mark.parametrize("name", ["sums", "transposition"])
def test_example_sketches(name: str) -> None:
    program = front.load_text((SKETCHES / f"{name}.swflow").read_text(), f"{name}.swflow")
    result = synthesize(program, mode="best")
    kernel = check_kernel(Filled(program, result.fills.as_dict(0)), 1, tiles=9)
    assert "Verdict: proved" in kernel.doc


def test_a_convolution_has_a_halo_and_weights_that_all_tiles_share() -> None:
    text = (SKETCHES / "convolution.swflow").read_text()
    program = front.load_text(text, "convolution.swflow")
    result = synthesize(program, mode="best")
    inputs = [step.name for step in program.steps if not hasattr(step, "args")]
    x, w = inputs
    out = program.steps[-1].shape[0]
    taps = len(program.steps[[s.name for s in program.steps].index(w)].values)  # type: ignore[union-attr]
    fill = result.fills.as_dict(0)
    kernel = lower_program(program, fill, steps={x: out, w: 0}, dtype=i64, warps=1)
    draw = np.random.default_rng(0)
    for length in (1, out - 1, out, out + 1, 5 * out + 3):
        values, weights = draw.integers(-9, 9, length + taps - 1), draw.integers(-9, 9, taps)
        made = np.full(length, 99)
        run(kernel, [length, len(values), values, weights, made])
        wanted = [(values[i : i + taps] * weights).sum() for i in range(length)]
        assert np.array_equal(made, wanted), length


def test_an_input_that_is_too_short_is_refused_at_launch() -> None:
    program = front.load_text((SKETCHES / "sums.swflow").read_text(), "sums.swflow")
    kernel = lower_program(program, synthesize(program).fills.as_dict(0), dtype=f32)
    with pytest.raises(WarploomError, match="requires"):
        run(kernel, [8, 23, np.zeros(23, np.float32), np.zeros(8, np.float32)])


PUBLISHED = {
    "transposition": sketches.transposition("crc", 3, 1),
    "other order": sketches.transposition("rcr", 4, 1),
    "sums of rows": sketches.transposition("cr", 5, 1),
    "stencil": sketches.stencil_1d(3, 1),
    "convolution": sketches.convolution_1d(5, 1),
    "stencil in two dimensions": sketches.stencil_2d(3, 1),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sketches(name: str) -> None:
    program = front.load_text(PUBLISHED[name], name)
    result = synthesize(program, mode="best")
    check_kernel(Filled(program, result.fills.as_dict(0)), 3, tiles=2)


def test_a_wrong_fill_is_refused() -> None:
    program = front.load_text((SKETCHES / "sums.swflow").read_text(), "sums.swflow")
    right = synthesize(program).fills.as_dict(0)
    hole = program.holes[0]
    with pytest.raises(SearchError, match="refuted"):
        lower_program(program, {**right, hole: (right[hole] + 1) % 3})


def test_several_shuffles_where_one_lane_is_asked_for_several_registers() -> None:
    s = Sketch("several")
    x = s.input("x", (4, 2))
    wanted = np.array([[0, 5], [1, 3], [0, 2], [1, 7]])
    s.choices({"own": np.arange(8).reshape(4, 2), "several": wanted}, x, name="y")
    s.goal(wanted)
    kernel = check_kernel(Filled(s.program(), {1: 1}), 0, tiles=3)
    assert sum(isinstance(stmt, Shuffle) for stmt in walk(kernel.body)) == 4


def test_idle_steps_leave_no_trace() -> None:
    s = Sketch("idle")
    x = s.input("x", (4, 2))
    s.choices(
        {"id": np.arange(8).reshape(4, 2), "turned": np.roll(np.arange(8), 1)}, x, shape=(4, 2)
    )
    s.goal(np.arange(8).reshape(4, 2))
    kernel = lower_program(s.program(), (0,))
    assert not any(isinstance(stmt, Shuffle) for stmt in walk(kernel.body))


def refused(s: Sketch, goal: Any, **options: Any) -> WarploomError:
    s.goal(goal)
    with pytest.raises((UnsupportedError, CheckError)) as caught:
        lower_program(s.program(), (), **options)
    return caught.value


def test_a_fold_across_lanes_is_refused_with_its_place() -> None:
    s = Sketch("total")
    s.sum("identity", s.input("x", 4), name="y", shape=(1, 4))
    s.sum("identity", s.apply("reshape", s.input("z", (4, 3)), shape=(12,)), shape=(12,), name="w")
    error = refused(s, lambda x, z: z.sum())
    assert error.span is not None


def test_too_many_lanes_are_refused() -> None:
    s = Sketch("wide")
    s.sum("identity", s.input("x", (64, 2)))
    assert "64 lanes" in refused(s, lambda x: x.sum(axis=1)).message


def test_a_step_of_an_unknown_input_is_refused() -> None:
    s = Sketch("steps")
    s.sum("identity", s.input("x", (4, 2)))
    assert "'z'" in refused(s, lambda x: x.sum(axis=1), steps={"z": 1}).message


def test_bits_of_floats_are_refused() -> None:
    s = Sketch("bits")
    s.fold("identity", s.input("x", (4, 2)), operator="^", name="y")
    error = refused(s, lambda x: [spec.bit_xor(row) for row in x])
    assert "float32" in error.message
    assert error.span is not None


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (300, {}, "'regs' needs 300 registers"),
        (3, {"warps": 64}, r"a block of \(2048, 1, 1\) threads"),
        (3, {"warps": "4"}, "at least one warp, not '4'"),
        (3, {"dtype": "int32"}, "'int32' is no element type"),
        (3, {"steps": {"y": 3}}, "a step of 3 for 'y'"),
        (3, {"steps": {"x": "3"}}, "a step of '3' for 'x'"),
        (3, {"lanes": "4"}, "an axis of '4' lanes"),
    ],
)
def test_what_no_kernel_can_have_is_placed_in_the_text(
    columns: int, options: dict[str, Any], message: str
) -> None:
    cells = 4 * columns
    text = f"x: [{cells}] = range(0, {cells})\nregs: [4,{columns}] = load_rep(x)\n"
    text += f"sum: [4] = + identity{{fold_len={columns}}}(regs)\ngoal: [4] = ["
    text += ", ".join(f"+({', '.join(map(str, range(i, cells, 4)))})" for i in range(4)) + "]"
    program = front.load_text(text, "wide.swflow")
    with pytest.raises(WarploomError, match=message) as caught:
        lower_program(program, **options)
    assert caught.value.span is not None
