"""Goals that contain a term more often than single precision can count."""

from __future__ import annotations

import pytest

from warploom.sketch.build import Sketch
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term import spec
from warploom.sketch.term.ir import Program


def copied(inner: int, outer: int) -> Program:
    """Cell x[0] has to reach the goal 2 * inner * outer times: two of every three places."""
    s = Sketch("copies")
    x = s.input("x", 2)
    a = s.choices({"same": [0, 0], "mix": [0, 1], "other": [1, 1]}, x, name="a")
    tables = {"zero": [0, 0, 0], "last": [0, 0, -1], "mid": [1, 1, -1]}
    b = s.choices(tables, a, name="b")
    rows = s.apply("broadcast", b, shape=(inner, 3))
    once = s.sum("reshape", rows, shape=(1, 3 * inner))
    s.sum("reshape", s.apply("broadcast", once, shape=(outer, 1)), shape=(1, outer))
    s.goal(lambda x: [spec.fold([spec.fold([x[0]] * (2 * inner))] * outer)])
    return s.program()


@pytest.mark.parametrize(
    ("inner", "outer", "engine"),
    [
        (3, 5, "default"),
        (3, 5, "pairs"),
        (2731, 6145, "default"),
        pytest.param(2731, 6145, "pairs", marks=pytest.mark.slow),
        pytest.param(4097, 8191, "default", marks=pytest.mark.slow),
        pytest.param(4097, 8191, "pairs", marks=pytest.mark.slow),
    ],
)
def test_no_fill_is_lost_however_often_a_term_is_copied(
    inner: int, outer: int, engine: str
) -> None:
    result = synthesize(copied(inner, outer), engine=engine)
    assert [result.described(i) for i in range(len(result.fills))] == [
        {"a": "same", "b": "last"},
        {"a": "same", "b": "mid"},
        {"a": "mix", "b": "last"},
    ]
