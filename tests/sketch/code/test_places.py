"""Where arrays lie, as a sketch itself says: across lanes, in registers, in memory, in steps."""

from __future__ import annotations

import numpy as np
import pytest

from warploom import Sketch, synthesize
from warploom import compile as compiled
from warploom.errors import WarploomError
from warploom.kernel.ir import Shuffle, walk
from warploom.sketch.front import load_text
from warploom.sketch.term.ir import Program
from warploom.sketch.term.show import to_swflow

SMALL = """
@step=4 x: [6] = range(0, 6)
@lanes regs: [4,2] = load_trunc(x)
a: [4,3] = ?reg_select(regs)
b: [4,3] = ?col_xforms(a)
c: [4,3] = ?col_rots(b)
y: [4] = + identity{fold_len=3}(c)
goal: [4] conv{k=3}
"""
# The last step may be an exchange or a store in another order: both axes have the length of lanes.
SQUARE = """
x: [16] = range(0, 16)
r: [4,4] = load_rep(x)
s: [4,4] = ?row_rots(r)
%s y: [4,4] = transpose(s)
goal: [4,4] = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
"""


def first_fill(text: str) -> Program:
    return load_text(text, "places.swflow")


def test_marks_print_back() -> None:
    program = first_fill(SMALL)
    text = to_swflow(program)
    assert text.startswith("@step=4 x: [6]")
    assert "@lanes regs: [4, 2]" in text
    assert to_swflow(load_text(text)) == text


def test_a_step_makes_tiles_overlap() -> None:
    for program in (first_fill(SMALL), load_text(to_swflow(first_fill(SMALL)))):
        taps = compiled(program)
        x = np.arange(23, dtype=np.float32)
        assert (taps(x) == x[:-2] + x[1:-1] + x[2:]).all()
    # An option is stronger than what the text says.
    apart = compiled(first_fill(SMALL), steps={"x": 6})
    assert len(apart(np.arange(12, dtype=np.float32))) == 8


def test_a_sketch_in_python_says_the_same() -> None:
    s = Sketch("taps")
    x, w = s.input("x", 6, step=4), s.input("w", 3, step=0)
    regs = s.place(s.apply("load_trunc", x, shape=(4, 2)), "lanes")
    a = s.hole("reg_select", regs, shape=(4, 3))
    b = s.hole("col_rots", s.hole("col_xforms", a))
    both = s.product("stack", b, s.apply("broadcast", w, shape=(4, 3)))
    s.sum("identity", both)
    s.goal(lambda x, w: [sum(x[i + j] * w[j] for j in range(3)) for i in range(4)])
    taps = compiled(s)
    data, weights = np.arange(11, dtype=np.float32), np.array([1, 2, 3], np.float32)
    wanted = data[:-2] + 2 * data[1:-1] + 3 * data[2:]
    assert (taps(data, weights) == wanted).all()
    assert "@step=0 w" in to_swflow(s.program())
    with pytest.raises(WarploomError, match="'shared' is no place"):
        s.place(regs, "shared")
    with pytest.raises(WarploomError, match="a step of -1"):
        s.input("z", 3, step=-1)


@pytest.mark.parametrize(
    ("mark", "shuffles"), [("", True), ("@memory", False), ("@registers", True)]
)
def test_stores_are_described(mark: str, shuffles: bool) -> None:
    made = compiled(first_fill(SQUARE % mark))
    found = any(isinstance(stmt, Shuffle) for stmt in walk(made.kernel.body))
    assert found == shuffles
    x = np.arange(64, dtype=np.float32)
    assert (made(x) == x).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@step x: [4] = range(0, 4)\n", "'@step' without a number"),
        ("@lanes=4 x: [4] = range(0, 4)\n", "'@lanes' with a number"),
        ("@lane x: [4] = range(0, 4)\n", "an array has no '@lane'"),
        ("x: [4] = range(0, 4)\n@step=2 y: [4] = id(x)\n", "only inputs have a step"),
    ],
)
def test_wrong_marks_are_located(text: str, said: str) -> None:
    with pytest.raises(WarploomError, match=said) as found:
        load_text(f"{text}goal: [4] id\n", "wrong.swflow")
    assert found.value.span is not None


def test_what_cannot_be_is_refused() -> None:
    two = SMALL.replace("a: [4,3]", "@lanes a: [4,3]").replace("y: [4] =", "@lanes y: [4] =")
    assert compiled(first_fill(two))(np.arange(6, dtype=np.float32)).tolist() == [3, 6, 9, 12]
    other = "@lanes x: [8] = range(0, 8)\n@lanes r: [4,2] = load_rep(x)\n"
    other += "y: [4,2] = ?row_rots(r)\ngoal: [4,2] = [[0, 4], [1, 5], [2, 6], [3, 7]]\n"
    with pytest.raises(WarploomError, match="another array has 8 lanes"):
        compiled(first_fill(other))
    held = SMALL.replace("b: [4,3]", "@memory b: [4,3]")
    with pytest.raises(WarploomError, match="'b' is marked @memory"):
        compiled(first_fill(held))
    assert synthesize(first_fill(held)).fills.count  # it is only about kernels
