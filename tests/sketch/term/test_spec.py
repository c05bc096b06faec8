from __future__ import annotations

import copy
import doctest
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom.errors import CheckError
from warploom.sketch.term import spec
from warploom.sketch.term.goals import built_in
from warploom.sketch.term.ir import Goal, Literal, Program, Shape, Symbol, Term, Zero, fold_of
from warploom.sketch.term.limits import height
from warploom.sketch.term.numeric import assign, given_numbers, term_numbers
from warploom.sketch.term.read import read


def text(value: object) -> str:
    return repr(value)


def test_sums_and_products_nest_and_flatten() -> None:
    a, b, c, d = spec.symbols((4,))
    assert text(a + b + c) == text(c + (a + b)) == "+(0, 1, 2)"
    assert text(a * b + c * d) == "+(*(0, 1), *(2, 3))"
    assert text((a + b) * c) == "*(2, +(0, 1))"
    assert text(a * b * c) == "*(0, 1, 2)"
    assert text(a + a) == "+(0, 0)"
    assert text(a & b & c | d) == "|(3, &(0, 1, 2))"
    assert text(a ^ b ^ 0) == "^(0, 1)"
    assert (a + b).term is (b + a).term


def test_a_reduction_that_started_is_a_fold_even_of_one() -> None:
    (a,) = spec.symbols((1,))
    assert text(a) == "0"
    assert text(sum([a])) == text(spec.total([a])) == text(0 + a) == text(a + 0) == "+(0,)"
    assert text(math.prod([a])) == text(spec.product([a])) == text(1 * a) == "*(0,)"
    assert text(sum([a * a])) == "+(*(0, 0),)"
    assert spec.total([]).term is Zero()


def test_partial_sums_can_stay_apart() -> None:
    a, b, c = spec.symbols((3,))
    assert text(spec.fold([spec.fold([a, b]), c])) == "(2, (0, 1))"
    assert text(spec.fold([spec.fold([a, b], "+"), c], "+")) == "+(2, +(0, 1))"
    assert text(spec.total([spec.total([a, b]), c])) == "+(0, 1, 2)"


def trove_sum(m: int, n: int) -> Any:
    x = spec.symbols((m * n,))
    return [sum(row) for row in x.reshape(m, n)]


def conv(w: int, k: int) -> Any:
    x = spec.symbols((w + k - 1,))
    return [spec.total(x[i : i + k]) for i in range(w)]


def weight_conv(width: int, k: int) -> Any:
    x = spec.symbols((width + k - 1,))
    w = spec.symbols((k,), start=width + k - 1)
    return [sum(x[i + j] * w[j] for j in range(k)) for i in range(width)]


def weight_conv_by_dot(width: int, k: int) -> Any:
    x = spec.symbols((width + k - 1,))
    w = spec.symbols((k,), start=width + k - 1)
    return np.array([x[i : i + k] @ w for i in range(width)])


def stencil_2d(w: int, k: int) -> Any:
    x = spec.symbols((w + k - 1, w + k - 1))
    return [[np.sum(x[i : i + k, j : j + k]) for j in range(w)] for i in range(w)]


def poly_mult(n: int) -> Any:
    a, b = spec.symbols((n,)), spec.symbols((n,), start=n)
    out: list[Any] = [0] * (2 * n)
    for i in range(n):
        for j in range(n):
            out[i + j] += a[i] * b[j]
    return np.array(out, object)


@pytest.mark.parametrize(
    ("function", "sizes", "name", "options", "shape"),
    [
        (trove_sum, (4, 3), "trove_sum", {"n": 3}, (4,)),
        (trove_sum, (4, 1), "trove_sum", {"n": 1}, (4,)),
        (conv, (5, 3), "conv", {"k": 3}, (5,)),
        (conv, (5, 1), "conv", {"k": 1}, (5,)),
        (weight_conv, (5, 3), "weight_conv", {"k": 3}, (5,)),
        (weight_conv, (5, 1), "weight_conv", {"k": 1}, (5,)),
        (weight_conv_by_dot, (5, 3), "weight_conv", {"k": 3}, (5,)),
        (stencil_2d, (4, 3), "stencil_2d", {"k": 3}, (4, 4)),
        (poly_mult, (4,), "poly_mult", {"w": 4}, (8,)),
        (poly_mult, (1,), "poly_mult", {"w": 1}, (2,)),
    ],
)
def test_plain_python_gives_the_built_in_goals(
    function: Callable[..., Any],
    sizes: tuple[int, ...],
    name: str,
    options: dict[str, int],
    shape: Shape,
) -> None:
    assert spec.terms_of(function(*sizes)) == (shape, built_in(name, options, shape).values)


def test_arrays_work_element_by_element() -> None:
    x, y = spec.symbols((2, 2)), spec.symbols((2, 2), start=4)
    shape, terms = spec.terms_of(x * y + x[0, 0])
    assert shape == (2, 2)
    zero = Symbol(0)
    assert terms[3] is fold_of([fold_of([Symbol(3), Symbol(7)], "*"), zero], "+")
    assert spec.terms_of(x[0, 0] + x * y) == (shape, terms)
    assert spec.terms_of((x @ y).T)[0] == (2, 2)
    assert spec.terms_of(x.sum(axis=1))[1] == (
        fold_of([zero, Symbol(1)], "+"), fold_of([Symbol(2), Symbol(3)], "+"),
    )  # fmt: skip


def test_every_operator_can_be_said() -> None:
    x = spec.symbols((2, 2))
    names = (spec.total, spec.product, spec.minimum, spec.maximum,
             spec.bit_and, spec.bit_or, spec.bit_xor)  # fmt: skip
    signs = ("+", "*", "min", "max", "&", "|", "^")
    assert [text(name(x)) for name in names] == [f"{sign}(0, 1, 2, 3)" for sign in signs]
    rows = [f"{sign}(0, 1)" for sign in ("min", "max")]
    assert [text(x.min(axis=1)[0]), text(x.max(axis=1)[0])] == rows
    assert [text(np.minimum(x[0], x[1])[0]), text(np.maximum(*x)[1])] == ["min(0, 2)", "max(1, 3)"]
    assert [text(np.min(x)), text(x.max())] == ["min(0, 1, 2, 3)", "max(0, 1, 2, 3)"]
    assert text((x & x.T)[0, 1]) == "&(1, 2)"
    assert text(np.bitwise_xor.reduce(x, axis=0)[0]) == "^(0, 2)"
    assert text(np.minimum(x[0, 0], math.inf)) == "min(0,)"
    assert text(spec.started(5, x[0])) == "+(0, 1, =5)"
    assert text(spec.started(0, x[0])) == "+(0, 1)"
    assert text(spec.started(-math.inf, x[0], "max")) == "max(0, 1)"
    assert text(spec.finalized("mean", spec.total(x[0]))) == '"mean"(+(0, 1))'


def functions() -> list[Callable[..., Any]]:
    return [
        lambda x, y: x * y + x[0, 0],
        lambda x, y: [sum(row) for row in x @ y],
        lambda x, y: x.min(axis=0) | y.max(axis=1),
        lambda x, y: np.maximum(x, y).T ^ spec.total(x),
        lambda x, y: spec.bit_xor(a & b for a, b in zip(x.flat, y.flat, strict=True)),
        lambda x, y: [spec.started(3, x), spec.started(-2, y, "*"), spec.total([]), 0],
        lambda x, y: [spec.minimum([x, y[0]]), spec.maximum(y), spec.product([x[0], 1])],
    ]


@pytest.mark.parametrize("function", functions())
def test_a_function_gives_the_same_on_numbers_as_its_terms(function: Callable[..., Any]) -> None:
    arrays = [np.arange(4).reshape(2, 2), np.arange(4, 8).reshape(2, 2)]
    ((shape, terms),), kept = spec.specify(function, arrays)
    program = Program("none", (Literal("x", shape, terms),), (Goal(shape, terms),))
    assignment = assign(read(program, program.goals[0]))
    for trial in range(assignment.trials):
        numbers = {number: values[trial] for number, values in assignment.symbols.items()}
        cells = given_numbers([spec.run(kept, numbers)] * assignment.trials, assignment)
        by_terms = term_numbers(terms, assignment)
        assert cells.values[trial].tolist() == by_terms.values[trial].tolist()


def test_what_cannot_be_said() -> None:
    a, b = spec.symbols((2,))
    with pytest.raises(CheckError, match=r"a specification has no 'x \* 2'"):
        a * 2
    with pytest.raises(CheckError, match=r"a specification has no 'x \* 0'"):
        0 * a
    with pytest.raises(CheckError, match="cannot depend on the value of an input"):
        bool(a)
    with pytest.raises(CheckError, match="returned 3 as a cell"):
        spec.terms_of([a, 3])
    with pytest.raises(CheckError, match="returns arrays"):
        spec.terms_of(None)
    with pytest.raises(CheckError, match="cannot fold 'x'"):
        spec.total([[a, b], "x"])
    with pytest.raises(CheckError, match=r"cannot fold 0 with \*"):
        spec.product([a, 0])
    with pytest.raises(CheckError, match="cannot depend on the value of an input"):
        min(a, b)
    with pytest.raises(CheckError, match="'fold' does not say how to compute"):
        spec.fold([1, 2])
    with pytest.raises(CheckError, match="cannot finalise"):
        spec.finalized("mean", [a, b])
    with pytest.raises(CheckError, match="more than"):
        spec.symbols((1 << 30,))


def test_deep_nests_are_refused_not_crashed_on() -> None:
    a, b = spec.symbols((2,))
    value = a
    with pytest.raises(CheckError, match="folds nest at most 32 deep"):  # noqa: PT012
        for _ in range(5000):
            value = (value + b) * b
    term: Term = Symbol(0)
    for _ in range(5000):
        term = fold_of([term])
    with pytest.raises(CheckError, match="folds nest at most 32 deep"):
        height((term,))


def test_the_example_in_the_documentation() -> None:
    failed, tried = doctest.testmod(spec)
    assert (failed, tried) == (0, 7)


@pytest.mark.parametrize(
    "computed",
    [
        lambda x: x - 1,
        lambda x: x.mean(axis=0),
        lambda x: abs(x),
        lambda x: x**2,
        lambda x: -x,
        lambda x: [x[0] / x[1], x[2] // 2],
        lambda x: [float(x[0])],
        lambda x: x << 1,
    ],
)
def test_other_arithmetic_is_refused_in_words(computed: Callable[[Any], Any]) -> None:
    with pytest.raises(CheckError, match="folds elements with") as caught:
        spec.specify(computed, [np.arange(3)])
    assert "spec.finalized" in caught.value.advice


@pytest.mark.parametrize(
    "computed",
    [
        lambda x, y: [0 if x[i] == x[i - 1] else x[i] for i in range(4)],
        lambda x, y: [v if v != 0 else y[0] for v in x],
        lambda x, y: np.where(x == y, y, x),
        lambda x, y: np.where(np.equal(x, y), y, x),
        lambda x, y: x[x != 0],
        lambda x, y: np.where(np.isin(x, [0]), 0, x),
        lambda x, y: [v for v in x if v not in list(y)],
        lambda x, y: [v for v in x if list(x).count(v) == 1],
        lambda x, y: [x[list(x).index(v)] for v in x],
        lambda x, y: [spec.total(set(x))],
        lambda x, y: list(dict.fromkeys(x)),
        lambda x, y: np.array([np.nansum(x)]),
    ],
)
def test_elements_are_neither_compared_nor_hashed(computed: Callable[[Any, Any], Any]) -> None:
    """By identity no two elements are equal, so a goal that asks would be read wrongly."""
    with pytest.raises(CheckError, match="cannot depend on the value of an input") as caught:
        spec.specify(computed, [np.arange(4), np.arange(4, 8)])
    place = caught.value.span
    assert place is not None
    assert place.source.name == __file__
    assert "lambda x, y" in place.source.line(place.line)


def test_a_function_is_given_everywhere_or_nowhere() -> None:
    def wanted(x: Any) -> Any:
        return [spec.finalized("f", x[0], abs), spec.finalized("f", x[1])]

    with pytest.raises(CheckError, match="'f' has a function in some cells and none in others"):
        spec.specify(wanted, [np.arange(2)])


SWALLOWED: list[Callable[[Any], Any]] = [
    lambda x: float(x[0]),
    lambda x: int(x[0]),
    lambda x: round(x[0]),
    lambda x: math.floor(x[0]),
    lambda x: divmod(x[0], 2),
    lambda x: x[0] > 0,
    lambda x: {x[0]: 1},
    lambda x: hex(x[0]),
    lambda x: x[0].conjugate(),
    lambda x: f"{x[0]:.3f}",
    lambda x: x[0] / 2,
    lambda x: x[0] * 3,
    lambda x: spec.total([x[0], 3]),
    lambda x: np.round(x),
    lambda x: np.sqrt(x),
    lambda x: np.asarray(x, float),
    lambda x: np.where(x > 0, x, 0),
    lambda x: spec.finalized("f", [x[0]]),
]


@pytest.mark.parametrize("asked", SWALLOWED)
def test_a_refusal_counts_even_if_it_is_caught(asked: Callable[[Any], Any]) -> None:
    """On numbers nothing is refused, and the function would do something else."""

    def wanted(x: Any) -> Any:
        try:
            asked(x)
        except Exception:  # noqa: BLE001  # that is the point
            return x
        return x[::-1]

    with pytest.raises(CheckError, match="caught this error and went on") as caught:
        spec.specify(wanted, [np.arange(4)])
    place = caught.value.span
    assert place is not None
    assert place.source.name == __file__


def test_what_was_refused_first_is_said() -> None:
    """Not what followed from it, in the user's code or in NumPy's."""

    def wanted(x: Any) -> Any:
        try:
            return x[0] / 2
        except CheckError:
            raise KeyError("no half") from None

    with pytest.raises(CheckError, match="folds elements with") as caught:
        spec.specify(wanted, [np.arange(4)])
    assert caught.value.span is not None
    assert "x[0] / 2" in caught.value.span.source.line(caught.value.span.line)
    with pytest.raises(CheckError, match="folds elements with"):
        spec.specify(lambda x: x[x[0]], [np.arange(4)])


@pytest.mark.parametrize(
    "name", ["round", "conj", "sqrt", "floor", "isnan", "log", "cos", "negative"]
)
def test_functions_of_numpy_that_are_no_folds_are_named(name: str) -> None:
    function = getattr(np, name)
    with pytest.raises(CheckError, match="nothing else, not with NumPy's '") as caught:
        spec.specify(lambda x: function(x), [np.arange(4)])
    assert caught.value.span is not None
    assert "goals index, slice and reshape inputs and fold their elements" in caught.value.advice


def test_functions_of_numpy_that_are_folds_are_understood() -> None:
    x = np.arange(4)
    for function in (
        np.square, np.cumsum, lambda x: np.convolve(x, x), lambda x: x @ x, np.flip,
        lambda x: np.einsum("i,i->i", x, x), lambda x: np.maximum.accumulate(x),
        np.vectorize(lambda each: each + each), lambda x: np.roll(x, 1), np.copy,
    ):  # fmt: skip
        spec.specify(function, [x])


def test_what_no_cell_can_be_is_placed() -> None:
    for wrong in (lambda x: [str(x[0])], lambda x: None, lambda x: [x[0], 3]):
        with pytest.raises(CheckError) as caught:
            spec.specify(wrong, [np.arange(4)])
        assert caught.value.span is not None


def test_numbers_of_numpy_begin_folds_as_pythons_do() -> None:
    a, b = spec.symbols((2,))
    zero: Any = np.float64(0)
    assert text(zero + a + b) == text(np.zeros(1, np.int32)[0] + a + b) == "+(0, 1)"
    assert text(np.int64(1) * a) == "*(0,)"
    with pytest.raises(CheckError, match=r"has no 'x \+ 5\.0'"):
        _ = np.float64(5) + a


def test_numpy_folds_into_places_that_are_given() -> None:
    x = spec.symbols((6,))
    assert [text(each) for each in np.add.reduceat(x, [0, 2])] == ["+(0, 1)", "+(2, 3, 4, 5)"]
    sums = np.zeros(2, object)
    np.add.at(sums, np.arange(6) % 2, x)
    assert [text(each) for each in sums] == ["+(0, 2, 4)", "+(1, 3, 5)"]
    with pytest.raises(CheckError, match="only an array of objects can take up elements"):
        np.add.at(np.zeros(2, np.int64), np.arange(6) % 2, x)  # it would stay zero


def test_a_goal_may_copy_its_inputs() -> None:
    def goal(x: Any) -> Any:
        return copy.deepcopy(x)[::-1]

    (outputs,), _ = spec.specify(goal, [np.arange(3)])
    assert outputs == ((3,), (Symbol(2), Symbol(1), Symbol(0)))
