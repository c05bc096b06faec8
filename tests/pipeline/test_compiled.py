"""`warploom.compile`: what it takes, how lengths follow from each other, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from bench.common.own import sketches

import warploom
from warploom import Sketch, synthesize, warp_sketch
from warploom.errors import CheckError, DeviceError, SearchError, UnsupportedError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Binding, check_indices
from warploom.pipeline import subject
from warploom.search.outcome import Impossible
from warploom.sketch.code.need import scalars_of, shapes_for


def turned(length: int = 8) -> Sketch:
    s = Sketch("turned")
    x = s.input("x", length)
    s.hole("rots", x, main=0, second=0, out=0, name="y")
    s.goal(np.roll(np.arange(length), -1))
    return s


def numbers(length: int) -> Any:
    return np.arange(length, dtype=np.float32)


@pytest.mark.parametrize(
    "made",
    [turned, lambda: turned().program(), lambda: synthesize(turned())],
    ids=["sketch", "program", "result"],
)
def test_sketches_programs_and_results_are_taken(made: Any) -> None:
    function = warploom.compile(made())
    wanted = np.roll(numbers(24).reshape(3, 8), -1, axis=1).reshape(-1)
    assert np.array_equal(function(numbers(24)), wanted)
    assert "__global__" in function.text("cuda")


def test_outputs_follow_from_inputs() -> None:
    taps = warploom.compile(sketches.strided_taps(), steps={"x": 64}, dtype="int32")
    for length in (5, 6, 7, 67, 68, 1001):
        x = np.arange(length, dtype=np.int32)
        wanted = [x[i : i + 5].sum() for i in range(0, length - 4, 2)]
        assert taps(x).tolist() == wanted


def test_what_is_left_over_or_missing_is_refused() -> None:
    function = warploom.compile(turned())
    with pytest.raises(DeviceError, match="has 20 elements, but only 16 are used, for 16 of 'y'"):
        function(numbers(20))
    with pytest.raises(DeviceError, match="has 7 elements, but one element of 'y' needs 8"):
        function(numbers(7))
    with pytest.raises(DeviceError, match="requires x_size >="):
        function(numbers(16), numbers(17))
    out = np.zeros(13, np.float32)  # a partial tile of a whole input
    assert function(numbers(16), out).tolist() == [1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13]


def test_rows_are_not_read_as_one_without_a_word() -> None:
    """Windows would run across their ends."""
    taps = warploom.compile(sketches.strided_taps())
    with pytest.raises(DeviceError, match=r"shape \(2, 40\), but the sketch reads one axis"):
        taps(numbers(80).reshape(2, 40))


def test_whole_tiles_keep_the_shape_that_the_sketch_writes() -> None:
    s = Sketch("turned over")
    s.apply("transpose", s.input("x", (16, 6)), shape=(6, 16), name="y")
    s.goal(lambda x: x.T)
    over, x = warploom.compile(s, lanes=16), numbers(7 * 96).reshape(7, 16, 6)
    for given in (x, x[0], x[:0], x.reshape(7, 1, 16, 6)):
        assert np.array_equal(over(given), given.swapaxes(-1, -2))
    assert np.array_equal(over(x.reshape(-1)), x.swapaxes(1, 2).reshape(-1))  # tiles in a line
    part = np.zeros((5, 6, 16), np.float32)
    assert np.array_equal(over(x, part), x[:5].swapaxes(1, 2))
    with pytest.raises(DeviceError, match=r"reads one axis or whole tiles, \(…, 16, 6\)"):
        over(x.swapaxes(1, 2).copy())
    with pytest.raises(DeviceError, match=r"makes one axis or whole tiles, \(…, 6, 16\)"):
        over(x, np.zeros((7, 16, 6), np.float32))
    with pytest.raises(DeviceError, match="not contiguous"):
        over(np.asfortranarray(x))


def test_several_inputs_of_whole_tiles() -> None:
    s = Sketch("scaled pairs")
    a, b = s.input("a", (4, 2)), s.input("b", 4)
    each = s.gather(np.repeat(np.arange(4), 2).reshape(4, 2), b)
    s.product("stack", a, each, name="y")
    s.goal(lambda a, b: [[a[i][j] * b[i] for j in range(2)] for i in range(4)])
    scaled, x, by = warploom.compile(s), numbers(24).reshape(3, 4, 2), numbers(12).reshape(3, 4)
    wanted = x * by[..., None]
    assert np.array_equal(scaled(x, by), wanted)
    assert np.array_equal(scaled(x, by.reshape(-1)), wanted.reshape(-1))  # one of them in a line
    pairs = x.reshape(-1).view(np.complex64).reshape(3, 4)  # complex numbers are pairs
    assert np.array_equal(scaled(pairs, by), wanted)


def test_a_part_of_a_structure_is_refused() -> None:
    s = Sketch("sums of three")
    rows = s.apply("reshape", s.input("x", 12), shape=(4, 3))
    s.sum("identity", rows, name="y")
    s.goal(lambda x: x.reshape(4, 3).sum(axis=1))
    sums = warploom.compile(s)
    assert sums(numbers(9)).tolist() == [3, 12, 21]
    for length, whole in ((10, 9), (11, 9), (13, 12), (14, 12)):
        with pytest.raises(DeviceError, match=f"has {length} elements, but only {whole} are used"):
            sums(numbers(length))


def test_a_longer_second_input_is_refused() -> None:
    s = Sketch("sums of two")
    x, y = s.input("x", 8), s.input("y", 8)
    s.sum("stack", x, y, name="z")
    s.goal(lambda x, y: x + y)
    both = warploom.compile(s)
    assert both(numbers(11), numbers(11)).tolist() == (2 * numbers(11)).tolist()
    with pytest.raises(
        DeviceError, match="'y' has 12 elements, but only 11 are used, for 11 of 'z'"
    ):
        both(numbers(11), numbers(12))


def test_a_title_that_is_no_name_becomes_one_and_one_without_end_is_refused() -> None:
    s = turned()
    s.name = "größe"
    assert "gro_e(" in warploom.compile(s).text("c")
    s.name = "a" * 300
    with pytest.raises(CheckError, match=r"(?s)has 300 letters.*\^") as error:
        warploom.compile(s)
    assert error.value.span is not None


def test_of_nothing_nothing_is_made() -> None:
    assert warploom.compile(turned())(numbers(0)).shape == (0,)
    taps = warploom.compile(sketches.strided_taps(), steps={"x": 64})
    assert taps(numbers(0)).shape == (0,)
    with pytest.raises(DeviceError, match="needs 5"):
        taps(numbers(4))


def test_whole_numbers_may_be_those_of_numpy() -> None:
    eight: Any = np.int64(8)
    two: Any = np.int32(2)
    x = numbers(16)
    made = warploom.compile(turned(), lanes=eight, warps=two, steps={"x": eight})
    assert np.array_equal(made(x), warploom.compile(turned())(x))


def test_two_outputs() -> None:
    real, imaginary = warploom.compile(sketches.planes)(numbers(80))
    assert real.tolist() == numbers(80)[0::2].tolist()
    assert imaginary.tolist() == numbers(80)[1::2].tolist()


def test_what_has_no_fill_has_no_kernel() -> None:
    s = Sketch("none")
    s.hole("rots", s.input("x", 4), main=0, second=0, out=0)
    s.goal([0, 0, 0, 0])
    with pytest.raises(SearchError, match="'none' has no fill"):
        warploom.compile(s)
    with pytest.raises(SearchError, match=r"no kernel: y\[0\]"):
        warploom.compile(Impossible("y[0]"))


def test_mistakes() -> None:
    with pytest.raises(CheckError, match=r"test_compiled.py:\d+:\d+: a int cannot be compiled"):
        warploom.compile(3)  # type: ignore[call-overload]
    with pytest.raises(CheckError, match="no element type 'float5'"):
        warploom.compile(turned(), dtype="float5")
    with pytest.raises(CheckError, match="says itself"):
        warploom.compile(sketches.planes, lanes=32)
    with pytest.raises(CheckError, match="a step of 3 for 'z'"):
        warploom.compile(turned(), steps={"z": 3})
    with pytest.raises(DeviceError, match=r"takes \(x\) or \(x, y\)"):
        warploom.compile(turned())()
    with pytest.raises(SearchError, match="has 1 goals, counted from 0"):
        warploom.compile(turned(), goal="0")  # type: ignore[call-overload]
    with pytest.raises(CheckError, match="has no goal 1 to choose"):
        warploom.compile(sketches.planes, goal=1)
    with pytest.raises(CheckError, match="goal and budget are for sketches"):
        warploom.device_function("load-structures", fields=2, goal=1)
    with pytest.raises(CheckError) as caught:
        warploom.compile("sums.swflow")  # type: ignore[call-overload]
    assert "Sketch.from_file" in caught.value.advice


def boxes(rows: int = 4, lanes: int = 8) -> Any:
    @warp_sketch
    def box(k: Any, rows: int = rows, lanes: int = lanes) -> None:
        lane = k.warp(lanes)
        x = k.input("x", (rows + 1, lanes), step=(rows, lanes))
        y = k.output("y", (rows, lanes))
        for row in k.loop(rows):
            total = k.accumulator("+")
            for i in k.loop(2):
                total.add(x[row + i, lane])
            y[row, lane] = total.value()

    @box.specification
    def _(x: Any, rows: int, lanes: int) -> Any:
        return [[x[row][c] + x[row + 1][c] for c in range(lanes)] for row in range(rows)]

    return box


@pytest.mark.parametrize("tile", [(4, 8), (3, 2), (1, 16)])
def test_the_largest_size_holds_along_both_axes_of_tiles_that_are_not_square(
    tile: tuple[int, int],
) -> None:
    """What a header says must be refused just beyond it, not far below nor far above."""
    made = warploom.compile(boxes(*tile)).tiled
    said = re.search(r"'y' of at most (\d+) × (\d+) elements", made.kernel.doc)
    assert said is not None
    rows, columns = map(int, said.groups())
    assert rows == columns

    def launch(length: int) -> None:
        shapes = shapes_for(made.tiling, {"y": (length, length)})
        scalars = scalars_of(made.tiling, shapes)
        x, y, z = (int(evaluate(side, scalars)) for side in made.kernel.grid)
        check_indices(made.kernel, Binding(dict(scalars), (x, y, z)))

    launch(rows)
    with pytest.raises(DeviceError, match="overflows 32 bits"):
        launch(rows + 1)


def test_the_header_says_how_long_an_input_is_that_all_tiles_read() -> None:
    s = Sketch("weighted")
    x, w = s.input("x", 4), s.input("w", 4)
    s.product("stack", x, w, name="y")
    s.goal(lambda x, w: [x[i] * w[i] for i in range(4)])
    made = warploom.compile(s, steps={"w": 0})
    assert "// 'w' has 4 elements: all tiles read the same" in made.text("cuda")
    assert made(numbers(6), numbers(4)).tolist() == [0, 1, 4, 9, 0, 5]


def test_tables_read_through_one_another_stay_short() -> None:
    """Four tables of twelve numbers, one after another, were a line of a million characters."""
    random, s = np.random.default_rng(9), Sketch("dealt")
    v, wanted = s.input("x", 12), np.arange(12)
    for number in range(5):
        table = random.permutation(12)
        v = s.gather(table.reshape(4, 3), v, name=f"t{number}")
        wanted = wanted[table]
    s.goal(wanted.reshape(4, 3))
    made = warploom.compile(s, device="simulator")
    assert len(made.text("c")) < 4000
    assert made(numbers(24)).tolist() == [*wanted.tolist(), *(wanted + 12).tolist()]


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        (
            "y: [3] = + reshape{fold_len=2}(x)\nz: [3] = ?{iteration}(y)",
            "int32",
            "does not lie in lanes",
        ),
        ("y: [3,2] = reshape(x)\nz: [3] = ^ identity{fold_len=2}(y)", "float16", "of float32"),
    ],
)
def test_what_no_fill_could_be_lowered_with_is_refused_before_the_search(
    text: str, dtype: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: Any, **__: Any) -> None:
        pytest.fail("it was searched")

    monkeypatch.setattr(subject, "synthesize", searched)
    iteration = "rots{main=0,second=0,out=0}"
    whole = f"x: [6] = range(0, 6)\n{text.replace('{iteration}', iteration)}\n"
    folded = "^" if "^" in text else "+"
    goal = ", ".join(f"{folded}({2 * i}, {2 * i + 1})" for i in range(3))
    program = warploom.Sketch.from_text(f"{whole}goal: [3] = [{goal}]", "own.swflow")
    with pytest.raises(UnsupportedError, match=message):
        warploom.compile(program, dtype=dtype)
