from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import warploom
from warploom.errors import CheckError
from warploom.sketch.build import Sketch, Value
from warploom.sketch.front import load_text
from warploom.sketch.term import spec
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply
from warploom.sketch.term.show import to_swflow
from warploom.sketch.term.verify import verify


def convolution() -> Sketch:
    s = Sketch("convolution")
    x = s.input("x", 34)
    w = s.input("w", (3,))
    loaded = s.apply("load_trunc", x, shape=(32, 2))
    to_send = s.hole("reg_select_no_consts", loaded, shape=(32, 3), name="to_send")
    received = s.hole("col_rots_no_group", s.hole("col_xforms_no_group", to_send))
    weights = s.apply("broadcast", w, shape=(32, 3))
    products = s.product("stack", received, weights)
    s.sum("cond_keep_no_consts", products)
    return s


def test_a_sketch_reads_like_the_kernel_and_prints_as_text() -> None:
    s = convolution()
    s.goal(lambda x, w: [sum(x[i + j] * w[j] for j in range(3)) for i in range(32)])
    program = s.program()
    assert to_swflow(program) == (
        "x: [34] = range(0, 34)\n"
        "w: [3] = range(34, 37)\n"
        "s1: [32, 2] = load_trunc(x)\n"
        "to_send: [32, 3] = ?reg_select_no_consts(s1)\n"
        "s2: [32, 3] = ?col_xforms_no_group(to_send)\n"
        "s3: [32, 3] = ?col_rots_no_group(s2)\n"
        "s4: [32, 3] = broadcast(w)\n"
        "s5: [32, 3] = * stack{fold_len=2}(s3, s4)\n"
        "s6: [32] = + ?cond_keep_no_consts{fold_len=3}(s5)\n"
        "@flatten goal: [32] weight_conv{k=3}\n"
    )


def test_goals_can_be_given_in_three_ways() -> None:
    s = convolution()
    s.goal("weight_conv", k=3)
    s.goal(lambda x, w: [spec.total(x[i : i + 3] * w) for i in range(32)])
    one, other = s.program().goals
    assert one.values == other.values
    s = Sketch("reverse")
    x = s.input("x", (2, 2))
    s.gather([3, 2, 1, 0], x, shape=(2, 2))
    s.goal(np.arange(4)[::-1].reshape(2, 2))
    s.goal(lambda x: x[::-1, ::-1])
    program = s.program()
    assert all(verify(program, goal) for goal in program.goals)


def test_own_gathers_and_choices() -> None:
    s = Sketch("own")
    x, y = s.input("x", 2), s.input("y", 2)
    picked = s.choices({"low": [0, 2], "high": [1, 3], "same as low": [0, 2]}, x, y, name="picked")
    s.gather(np.array([[1, -1], [0, -2]]), picked)
    s.goal([[3, 0], [1, 0]])
    program = s.program()
    assert program.holes == (2,)
    step = program.steps[2]
    assert isinstance(step, Apply)
    assert [step.gathers.describe(i) for i in range(2)] == ["low", "high"]
    last = evaluate(program, [1])[-1]
    assert [repr(cell) for cell in last] == [
        "Symbol(number=3)", "Zero()", "Symbol(number=1)", "Undefined()",
    ]  # fmt: skip
    again = load_text(to_swflow(program), "t")
    assert evaluate(again, [1]) == evaluate(program, [1])


def test_literals_name_their_symbols() -> None:
    s = Sketch("literal")
    s.literal("x", [5, 5, 7])
    y = s.input("y", 2)
    s.fold("reshape", y, shape=(1, 2))
    s.goal(lambda _, y: [sum(y)])
    program = s.program()
    assert verify(program, program.goals[0])
    assert "y: [2] = range(8, 10)" in to_swflow(program)


def test_the_public_names() -> None:
    assert warploom.Sketch is Sketch
    assert warploom.spec is spec
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = warploom.nothing


def test_names_stay_apart() -> None:
    s = Sketch("names")
    s.input("x", 2)
    assert repr(s.input("x", 2)) == "x.2: [2]"


def _wrong_goal(s: Sketch) -> object:
    s.goal("id", shape=(2, 4))
    return s.program()


MISTAKES: dict[str, Callable[[Sketch, Value], object]] = {
    "function": lambda s, x: s.apply("reshap", x),
    "shape": lambda s, x: s.apply("reshape", x, shape=(3, 3)),
    "foreign": lambda s, _: s.apply("reshape", Sketch("other").input("z", 2)),
    "operator": lambda s, x: s.fold("reshape", x, operator="-"),
    "name": lambda s, _: s.input("a b", 2),
    "number": lambda s, _: s.input("12", 2),
    "big": lambda s, _: s.input("y", 1 << 30),
    "table": lambda s, x: s.gather([0, 8], x),
    "floats": lambda s, x: s.gather([0.5], x),
    "no tables": lambda s, x: s.choices({}, x),
    "choice": lambda s, x: s.choices({"a\\": [0], "b": [1]}, x),
    "no argument": lambda s, _: s.apply("reshape"),
    "goal shape": lambda s, _: _wrong_goal(s),
    "no goal": lambda s, _: s.program(),
    "empty": lambda *_: Sketch("empty").program(),
    "early goal": lambda *_: Sketch("empty").goal("id"),
}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("function", "unknown function 'reshap'"),
        ("shape", "reshape"),
        ("foreign", "'z' belongs to another sketch"),
        ("operator", "'-' is no operator"),
        ("name", "'a b' cannot name a value"),
        ("number", "'12' cannot name a value"),
        ("big", "has 1073741824 cells"),
        ("table", "a table reads cells 0 to 7"),
        ("floats", "a table for \\[1\\] holds 1 integers"),
        ("no tables", "needs at least one table"),
        ("choice", "cannot name a choice"),
        ("no argument", "'reshape' needs an argument"),
        ("goal shape", "the goal has shape \\[2, 4\\], but the last statement 'x' has \\[4, 2\\]"),
        ("no goal", "the sketch has no goal"),
        ("empty", "the sketch is empty"),
        ("early goal", "give the goal after the steps"),
    ],
)
def test_mistakes_are_errors_with_words(what: str, message: str) -> None:
    s = Sketch("wrong")
    x = s.input("x", (4, 2))
    with pytest.raises(CheckError, match=message):
        MISTAKES[what](s, x)
