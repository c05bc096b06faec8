"""A page of a fill says what the evaluator says: cell by cell, line by line, count by count."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.report.pages import SKETCHES, data_of, found, memory_of, page_of

from warploom import solve, spec, warp_sketch
from warploom.emit import emit
from warploom.kernel.evaluate import run
from warploom.pipeline.pictures import picture
from warploom.report.code import STORED, steps_of_lines
from warploom.report.fill import shown
from warploom.report.traffic import sectors_of, streams_of
from warploom.sketch.code.memory import inputs_of
from warploom.sketch.code.need import scalars_of
from warploom.sketch.code.trial import shapes_at
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply, Fold, Symbol, leaves_of, size
from warploom.sketch.term.read import live_steps

LARGE = ("transposition", "large", "stencil", "gaussian")
EACH = [pytest.param(n, marks=[pytest.mark.slow] if n in LARGE else []) for n in SKETCHES]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EACH)
def test_a_value_is_traced_to_the_memory_that_the_evaluator_names(name: str) -> None:
    result = found(name)
    program = result.program
    terms = evaluate(program, result.fills.as_dict(0))
    data = data_of(page_of(name).html)
    inputs = inputs_of(program, live_steps(program))
    element = {n: (each.name, at) for each in inputs for at, n in enumerate(each.symbols)}
    by_name = {step.name: values for step, values in zip(program.steps, terms, strict=True)}
    drawn = 0
    for number, panel in enumerate(data["panels"]):
        if panel["kind"] == "memory":
            continue
        values = by_name[panel["name"]]
        assert panel["cells"] == len(values)
        for cell, term in enumerate(values):
            wanted = {
                element[leaf.number] for leaf in leaves_of([term]) if isinstance(leaf, Symbol)
            }
            assert memory_of(data, number, cell) == wanted
            drawn += 1
    assert drawn > size(program.steps[-1].shape)


@pytest.mark.parametrize("name", EACH)
def test_the_words_in_the_cells_are_the_terms(name: str) -> None:
    result = found(name)
    made = shown(result, code=False)
    terms = evaluate(made.program, result.fills.as_dict(0))
    for panel in made.flow.panels:
        if panel.step is None:
            continue
        for text, term in zip(panel.texts, terms[panel.step], strict=True):
            match term:
                case Symbol(number):
                    inputs = inputs_of(made.program, live_steps(made.program))
                    own = next(each for each in inputs if number in each.symbols)
                    assert text == str(own.symbols.index(number))
                case Fold(_, items):
                    assert re.sub(r"\D", "", text) == str(len(items))
                case _:
                    assert text in ("0", "?") or text.startswith("=")


def test_how_cells_move() -> None:
    made = shown(found("small"), code=False)
    moves = {
        panel.name: {made.flow.movement(panel, cell) for cell in range(panel.cells)}
        for panel in made.flow.panels
        if panel.step is not None
    }
    assert moves == {
        "s0": {"memory"},
        "s1": {"stays", "lane"},
        "s2": {"stays", "across"},
        "s3": {"stays"},
    }


def test_lines_of_code_belong_to_the_steps_that_they_compute() -> None:
    made = shown(found("small"))
    assert made.tiled is not None
    lines = emit(made.tiled.kernel, "cuda").splitlines()
    owners = steps_of_lines(lines, made.tiled.tiling.outputs[0].name)
    assert {owner for owner in owners if owner is not None} == {0, 1, 2, 3, STORED}
    for line, owner in zip(lines, owners, strict=True):
        assigned = re.match(r"\s*(?:float |const int )?v(\d)", line)
        if assigned:
            assert owner == int(assigned[1])
        if "__shfl_sync" in line:
            assert owner == 2
        if " s3[" in line:
            assert owner == STORED
        if line.startswith("//"):
            assert owner is None


@pytest.mark.parametrize("name", ["small", "sums"])
def test_requests_are_those_of_the_evaluator(name: str) -> None:
    """Four warps of a block do the same on tiles of their own."""
    made = shown(found(name))
    tiled = made.tiled
    assert tiled is not None
    shapes = shapes_at(tiled.tiling, (tiled.group,), lambda tile: tile)
    arrays = [np.zeros(size(shapes[a.name]), np.float32) for a in tiled.kernel.arrays]
    report = run(tiled.kernel, arrays, scalars_of(tiled.tiling, shapes))
    warps = tiled.kernel.threads // 32
    for stream in streams_of(tiled):
        counted = (report.stores if stream.writes else report.loads)[stream.array]
        assert counted.requests == warps * len(stream.requests)
        if name == "small":  # its tiles begin at sectors
            assert counted.sectors == warps * sectors_of(stream)


def test_axes_have_names_and_formulas_stand_first() -> None:
    drawn = page_of("small")
    result = found("small")
    assert "registers →, lanes ↓" in drawn.html or "registers →, rows ↓" in drawn.html
    assert "requests →, sectors of 32 bytes ↓" in drawn.html
    assert "registers →" in drawn.svgs["steps"]
    first = drawn.parts[0]
    assert first.heading == "What was found"
    applied = [step for step in result.program.steps if isinstance(step, Apply)]
    holes = [step.name for step in applied if step.gathers.is_hole]
    assert holes
    assert all(f"{name} = " in first.html for name in holes)


def test_without_code() -> None:
    assert shown(found("sums"), code=False).tiled is None


@pytest.mark.slow
def test_a_long_kernel_is_left_out() -> None:
    assert "100 registers in a lane" in shown(found("stencil")).without


def test_lines_of_text() -> None:
    lines = page_of("sums").lines
    assert lines[0].startswith("sums: proved")
    assert any(line.split()[:3] == ["lane", "0", "0"] for line in lines)
    assert all(len(line) <= 120 for line in lines)


@warp_sketch
def stencil(k: Any, lanes: int = 32, taps: int = 3) -> None:
    lane = k.warp(lanes)
    x, y = k.input("x", lanes + taps - 1, step=lanes), k.output("y", lanes)
    r = k.load(x, rounds=2)
    total = k.accumulator("+")
    for i in k.loop(taps):
        total.add(k.shuffle(r[k.partition(2, lane, i)], k.swizzle(lane, lanes, i)))
    y[lane] = total.value()


@stencil.specification
def _(x: Any, lanes: int, taps: int) -> Any:
    return [spec.total(x[i : i + taps]) for i in range(lanes)]


def test_a_warp_sketch_is_drawn_as_its_program() -> None:
    """Lane i adds up x[i] to x[i + 2]; its lines of code are not named by steps."""
    found = solve(stencil.at(lanes=8))
    drawn = picture(found, code=False)
    data = data_of(drawn.html)
    last = len(data["panels"]) - 1
    assert data["panels"][last]["cells"] == 8
    for cell in range(8):
        assert memory_of(data, last, cell) == {("x", cell + tap) for tap in range(3)}
    assert "<svg" in found._repr_html_()
