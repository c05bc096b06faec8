"""The linear sets against their grammar, and the transpositions they must hold the fills of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import operations
from warploom.sketch.front import load_text
from warploom.sketch.holes import build, known
from warploom.sketch.holes.linear import forms
from warploom.sketch.term.ir import Apply, GatherSet, Shape

Sound = Callable[..., None]


def values(gathers: GatherSet, axis: int) -> np.ndarray:
    """What each gather puts for the coordinate along `axis`; the others must stay as they are."""
    shape = gathers.out_shape
    read = np.stack(np.unravel_index(gathers.tables, shape))
    own = np.indices(shape).reshape(len(shape), 1, -1)
    for other in range(len(shape)):
        if other != axis:
            assert (read[other] == own[other]).all()
    result: np.ndarray = read[axis].reshape(len(gathers), *shape)
    return result


def has(gathers: GatherSet, axis: int, wanted: Callable[[int, int], int]) -> bool:
    m, n = gathers.out_shape
    table = [[wanted(i, j) for j in range(n)] for i in range(m)]
    return bool((values(gathers, axis) == np.array(table)).all(axis=(1, 2)).any())


def sets(m: int, n: int) -> tuple[GatherSet, GatherSet]:
    shape = (m, n)
    return build("row_linear", {}, (shape,), shape), build("col_linear", {}, (shape,), shape)


@examples(25)
@given(m=st.integers(1, 12), n=st.integers(1, 12))
def test_sets_are_sound_and_hold_permutations_only(m: int, n: int, sound: Sound) -> None:
    for axis, gathers in ((1, sets(m, n)[0]), (0, sets(m, n)[1])):
        sound(gathers, most=40)
        moved = np.sort(np.moveaxis(values(gathers, axis), axis + 1, -1), axis=-1)
        assert (moved == np.arange((m, n)[axis])).all()


@examples(40)
@given(m=st.integers(1, 40), n=st.integers(1, 40))
def test_the_known_decomposition_is_there(m: int, n: int) -> None:
    """The steps of Catanzaro, Keller and Garland, at any size: m lanes, n registers."""
    row, col = sets(m, n)
    c = math.gcd(m, n)
    a, b = m // c, n // c
    assert has(row, 1, lambda i, j: (j + i // a) % n)
    assert has(row, 1, lambda i, j: (j - i // a) % n)
    assert has(col, 0, lambda i, j: (i * n + (j - i // a) % n) % m)
    assert has(row, 1, lambda i, j: (i + j * m + j // b) % n)


@examples(20)
@given(m=st.integers(1, 14), n=st.integers(1, 14))
def test_what_a_member_undoes_is_a_member(m: int, n: int) -> None:
    """The two linearisations are each other's inverse, and so are split and fan."""
    col = sets(m, n)[1]
    found = {table.tobytes() for table in col.tables}
    texts = dict(col.spellings())
    for name in (
        "linear[(x0 * S + (x1 - x0 // a) % S) % L]",
        "linear[(x0 * S + (x1 + x0 // a) % S) % L]",
        "linear[x0 // c * u % a + x0 % c * a]",
        "linear[x0 // c * b % a + x0 % c * a]",
        "linear[x0 // c + x0 % c * a]",
        "linear[(x0 + x1 // b) % L]",
    ):
        inverse = np.argsort(col.tables[texts[name]]).astype(np.int32)
        assert inverse.tobytes() in found, name


def test_units_move_as_one() -> None:
    """The paper's unit: u neighbours keep together. Here 12 registers in units of 4, 8 lanes."""
    row = sets(8, 12)[0]
    assert has(row, 1, lambda i, j: (j // 4 * 2) % 3 * 4 + j % 4)


def test_the_forms_are_few_and_in_order_of_cost() -> None:
    costs = [operations(form) for form in forms()]
    assert costs == sorted(costs)
    assert costs[0] == 0
    assert len(forms()) < 300
    for m, n in itertools.product((1, 2, 31, 36, 48), repeat=2):
        assert max(map(len, sets(m, n))) <= len(forms())


def test_names_are_expressions_that_do_not_depend_on_the_size() -> None:
    small, large = (sets(m, n)[0] for m, n in ((4, 6), (12, 18)))
    assert small.describe(0) == large.describe(0) == "linear[x1]"
    texts = [dict(s.spellings()) for s in (small, large)]
    split = "linear[(x1 - x0) % L // c * u % a + (x1 - x0) % L % c * a]"
    gather = large.expression(texts[1][split])
    env = {"x0": 5, "x1": 3}
    y = (3 - 5) % 18  # c = 6, a = 3, b = 2, u = 2
    assert evaluate(gather.offset, env) == 5 * 18 + y // 6 * 2 % 3 + y % 6 * 3
    assert small.describe(texts[0][split]) != "linear[x1]"
    # Linearisations that permute at every size; others may not at some.
    assert all("linear[(x1 * S + (x0 - x1 // a) % S) % L]" in text for text in texts)


@pytest.mark.parametrize("shape", [(2, 6, 4), (3, 1, 5)])
@pytest.mark.parametrize(("main", "second"), [(0, 1), (2, 0), (1, 2), (1, 1)])
def test_any_axes(shape: Shape, main: int, second: int, sound: Sound) -> None:
    options = {"main": main, "second": second, "out": main}
    gathers = build("linear", options, (shape,), shape)
    sound(gathers, most=30)
    moved = values(gathers, main)
    if main != second:  # the same tables as on the matrix of the two axes alone
        flat = build(
            "col_linear", {}, ((shape[main], shape[second]),), (shape[main], shape[second])
        )
        rest = next(axis for axis in range(3) if axis not in (main, second))
        plane = np.moveaxis(moved.take(0, axis=rest + 1), main + 1 - (rest < main), 1)
        assert np.array_equal(plane, values(flat, 0))


def test_in_a_text() -> None:
    text = "x: [24] = range(0, 24)\ns: [4,6] = load_rep(x)\nt: [4,6] = ?row_linear(s)\n"
    text += "r: [4,6] = ?linear{main=0,second=1,out=0}(t)\ngoal: [4,6] trove\n"
    program = load_text(text)
    assert len(program.holes) == 2
    last = program.steps[-1]
    assert isinstance(last, Apply)
    assert len(last.gathers) == len(sets(4, 6)[1])
    assert {"linear", "row_linear", "col_linear"} <= set(known())


@pytest.mark.parametrize(
    ("options", "shape", "out", "message"),
    [
        ({}, (4, 6), (4, 6), "needs the options main, second and out"),
        ({"main": 0, "second": 1, "out": 1}, (4, 6), (4, 6), "moves along its main axis 0"),
        ({"main": 0, "second": 2, "out": 0}, (4, 6), (4, 6), "axis 2 is out of range"),
        ({"main": 0, "second": 1, "out": 0}, (4, 6), (5, 6), "the output shape must be [4,6]"),
        ({"main": 0, "second": 1, "out": 0}, (5000, 5000), (5000, 5000), "is too large"),
    ],
)
def test_errors(options: dict[str, int], shape: Shape, out: Shape, message: str) -> None:
    with pytest.raises(CheckError) as caught:
        build("linear", options, (shape,), out)
    assert message in caught.value.message
