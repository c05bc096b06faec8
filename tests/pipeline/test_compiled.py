"""`warploom.compile`: what it takes, how lengths follow from each other, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pipeline.own import sketches

import warploom
from warploom import Sketch, synthesize
from warploom.errors import CheckError, DeviceError, SearchError
from warploom.search.outcome import Impossible


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
    with pytest.raises(DeviceError, match="has 20 elements, of which 16 make 16 of 'y'"):
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


def test_a_part_of_a_structure_is_refused() -> None:
    s = Sketch("sums of three")
    rows = s.apply("reshape", s.input("x", 12), shape=(4, 3))
    s.sum("identity", rows, name="y")
    s.goal(lambda x: x.reshape(4, 3).sum(axis=1))
    sums = warploom.compile(s)
    assert sums(numbers(9)).tolist() == [3, 12, 21]
    for length, whole in ((10, 9), (11, 9), (13, 12), (14, 12)):
        with pytest.raises(DeviceError, match=f"has {length} elements, of which {whole} make"):
            sums(numbers(length))


def test_a_longer_second_input_is_refused() -> None:
    s = Sketch("sums of two")
    x, y = s.input("x", 8), s.input("y", 8)
    s.sum("stack", x, y, name="z")
    s.goal(lambda x, y: x + y)
    both = warploom.compile(s)
    assert both(numbers(11), numbers(11)).tolist() == (2 * numbers(11)).tolist()
    with pytest.raises(DeviceError, match="'y' has 12 elements, of which 11 make 11 of 'z'"):
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
    eight, x = np.int64(8), numbers(16)
    made = warploom.compile(turned(), lanes=eight, warps=np.int32(2), steps={"x": eight})
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
    with pytest.raises(CheckError, match=r"no kernel: y\[0\]"):
        warploom.compile(Impossible("y[0]"))


def test_mistakes() -> None:
    with pytest.raises(CheckError, match=r"test_compiled.py:\d+:\d+: a int cannot be compiled"):
        warploom.compile(3)  # type: ignore[arg-type]
    with pytest.raises(CheckError, match="no element type 'float5'"):
        warploom.compile(turned(), dtype="float5")
    with pytest.raises(CheckError, match="says itself"):
        warploom.compile(sketches.planes, lanes=32)
    with pytest.raises(CheckError, match="a step of 3 for 'z'"):
        warploom.compile(turned(), steps={"z": 3})
    with pytest.raises(DeviceError, match=r"takes \(x\) or \(x, y\)"):
        warploom.compile(turned())()
