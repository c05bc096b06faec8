"""Building expressions: types, and errors at the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from bench.common.narrowed import of

from warploom.array import build as al
from warploom.array.language.bind import bound
from warploom.array.language.effort import effort
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Param, Program, Term, close, instantiate, is_concrete, opened
from warploom.array.language.show import show, show_program
from warploom.array.types import Scalar, Tuple, Vector, array, type_text
from warploom.errors import CheckError
from warploom.kernel.dtype import f16, f32, i32

n, m, k, c = al.sizes("n m k c")
X = Param("x", array(f32, n))
Y = Param("y", array(f32, m))
ROWS = Param("rows", array(f32, n, m))
EIGHT = Param("eight", array(f32, 8))
HALVES = Param("halves", array(f16, n))
PAIRS = al.zip_(EIGHT, al.reverse(EIGHT))


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (al.map_(lambda v: v + 1, X), "[f32]n"),
        (al.reduce(lambda s, v: s + v, 0.0, X), "[f32]1"),
        (al.fold(lambda s, v: s + v, 0.0, X), "f32"),
        (al.scan(lambda s, v: s + v, 0.0, X), "[f32]n"),
        (al.split(c, X), "[[f32]c](n // c)"),
        (al.join(al.split(c, X)), "[f32]n"),
        (al.transpose(ROWS), "[[f32]n]m"),
        (al.slide(3, 1, X), "[[f32]3](n - 2)"),
        (al.slide(c + 2, c, al.pad(1, 1, X)), "[[f32](c + 2)](n // c)"),
        (al.pad(c, 1, X, "clamp"), "[f32](c + n + 1)"),
        (al.slice_(0, c, X), "[f32]c"),
        (al.zip_(X, X), "[(f32, f32)]n"),
        (al.unzip(PAIRS), "([f32]8, [f32]8)"),
        (al.pack(X, Y), "([f32]n, [f32]m)"),
        (al.get(1, al.pack(X, Y)), "[f32]m"),
        (al.as_vector(4, X), "[f32x4](n // 4)"),
        (al.as_scalar(al.as_vector(4, X)), "[f32]n"),
        (al.iterate(3, al.reverse, X), "[f32]n"),
        (
            al.iterate(3, lambda v: al.map_(lambda p: al.element(0, p), al.split(2, v)), EIGHT),
            "[f32]1",
        ),
        (al.map_local(1, lambda r: al.map_sequential(al.copy, r), ROWS), "[[f32]m]n"),
        (al.to_local(al.map_(al.copy, X)), "[f32]n"),
        (al.let(al.map_(al.copy, X), al.reverse), "[f32]n"),
        (al.map_(lambda a, b: a * b, PAIRS), "[f32]8"),
        (al.map_(lambda v: al.choose(v.lt(0), -v, v), X), "[f32]n"),
        (al.map_(lambda v: al.convert(i32, v), X), "[i32]n"),
        (al.filled(0, array(f32, n, 2)), "[[f32]2]n"),
        (al.filled(1.0, f32), "f32"),
    ],
)
def test_types(term: Term, text: str) -> None:
    assert type_text(term.type) == text


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: al.zip_(X, Y), "n and m elements"),
    (lambda: al.split(3, EIGHT), "3 does not divide 8"),
    (lambda: al.split(0, X), "divided by zero|pieces of 0"),
    (lambda: al.split(16, EIGHT), "pieces of 16 of 8|does not divide"),
    (lambda: al.join(X), "array of arrays"),
    (lambda: al.map_(lambda v: v + v, HALVES), "f16: kernels do not compute in it"),
    (lambda: al.map_(lambda v: al.choose(v.lt(v), v, v), HALVES), "nothing is computed"),
    (lambda: al.map_(lambda v: al.convert(i32, v), HALVES), "f16 is converted to i32"),
    (lambda: al.transpose(X), "array of arrays"),
    (lambda: al.map_(lambda v: al.map_(al.copy, v), X), "map takes an array, not f32"),
    (lambda: al.map_(lambda v, w: v, X), "a function of 1 values"),
    (lambda: al.map_(lambda v: None, X), "returns NoneType"),  # type: ignore[arg-type,return-value]
    (lambda: al.map_(lambda v: v.lt(3), X), "returns a Boolean"),
    (lambda: al.map_(lambda v: v + ROWS, X), "mixes f32 and"),
    (lambda: al.map_(lambda v: v & 1, X), "for integers"),
    (lambda: al.map_(lambda v: v + X, X), "mixes"),
    (lambda: X + 1, r"takes numbers, not \[f32\]n"),
    (lambda: al.reduce(lambda s, v: al.pack(s, v), 0.0, X), "its function returns"),
    (lambda: al.reduce(lambda s, v: s + v, 0.0, 3), "takes an array"),  # type: ignore[arg-type]
    (lambda: al.get(2, al.pack(X, Y)), "no part 2"),
    (lambda: al.slide(9, 1, EIGHT), "pieces of 9 of 8"),
    (lambda: al.slide(3, 2, EIGHT), "does not divide"),
    (lambda: al.slide(3, 0, EIGHT), "divided by zero|does not divide|step of 0"),
    (lambda: al.pad(-1, 0, EIGHT), "-1 elements"),
    (lambda: al.pad(9, 0, EIGHT, "wrap"), "at most"),
    (lambda: al.pad(1, 1, X, "nearest"), "no boundary"),  # type: ignore[arg-type]
    (lambda: al.slice_(4, 5, EIGHT), "elements 4 to 9 of 8"),
    (lambda: al.element(8, EIGHT), "element 8 of 8"),
    (lambda: al.as_vector(3, X), "a vector of 3"),
    (lambda: al.as_vector(4, al.slice_(0, 6, EIGHT)), "4 does not divide 6"),
    (lambda: al.to_local(X), "computes nothing"),
    (lambda: al.map_local(3, al.copy, X), "no dimension 3"),
    (lambda: al.iterate(-1, al.reverse, X), "-1 times"),
    (lambda: al.filled(0.5, array(i32, 3)), "is no i32"),
    (lambda: al.filled(0.5, i32), "is no i32"),
    (lambda: al.gather(lambda i: i, X), "a function of 2 values"),  # type: ignore[arg-type,misc]
    (lambda: al.map_(7, X), "is no function"),  # type: ignore[arg-type]
    (lambda: al.compute("sqrt", 2.0), "in Python"),
    (lambda: al.program("two words", lambda x: x, x=X.type), "name of a program"),
    (lambda: al.program("p", lambda: X, x=X.type), "a function of 1 values"),
    (lambda: al.program("p", lambda x: 3, x=X.type), "returns int"),  # type: ignore[arg-type,return-value]
]


@pytest.mark.parametrize("at", range(len(MISTAKES)))
def test_mistakes_are_at_the_line_of_the_call(at: int) -> None:
    written, message = MISTAKES[at]
    with pytest.raises(CheckError, match=message) as caught:
        written()
    span = caught.value.span
    assert span is not None
    assert span.source.name == __file__
    assert span.line == inspect.getsourcelines(written)[1]


def test_a_mistake_inside_a_function_is_at_its_own_line() -> None:
    def wrong(row: Term) -> Term:
        return al.split(3, row)

    with pytest.raises(CheckError, match="does not divide 8") as caught:
        al.map_(
            lambda row: wrong(row),
            al.split(8, X),
        )
    assert caught.value.span is not None
    assert caught.value.span.line == inspect.getsourcelines(wrong)[1] + 1


def test_deep_expressions_are_refused_in_time() -> None:
    def deep(count: int) -> Term:
        term: Term = EIGHT
        for _ in range(count):
            term = al.reverse(term)
        return term

    assert deep(200).type is EIGHT.type
    with pytest.raises(CheckError, match="200 operations"):
        deep(300)


# -- sizes become numbers --------------------------------------------------------------------------


def simple(body: Callable[[Term], Term], type_: Any = None) -> Program:
    return al.program("simple", body, x=type_ or array(f32, n))


@pytest.mark.parametrize(
    ("program", "sizes", "message"),
    [
        (simple(lambda x: al.split(c, x)), {"n": 8, "c": 3}, "c does not divide n: 8 by 3"),
        (simple(lambda x: al.split(c, x)), {"n": 8, "c": 0}, "the size c is 0"),
        (simple(lambda x: al.slide(c, 1, x)), {"n": 3, "c": 4}, "pieces of c of n, where c = 4"),
        (simple(lambda x: al.slide(3, 2, x)), {"n": 6}, "2 does not divide n - 3"),
        (simple(lambda x: al.slice_(c, 2, x)), {"n": 3, "c": 2}, "elements c to c . 2 of n"),
        (simple(lambda x: al.pad(c, 0, x, "mirror")), {"n": 3, "c": 4}, "mirror reaches n"),
        (simple(al.reverse), {"n": 0}, "the size n is 0"),
        (simple(al.reverse), {"n": -4}, "the size n is -4"),
        (simple(al.reverse), {"n": 2**40}, "the size n is"),
        (simple(al.reverse), {"n": 2.0}, "no whole number"),
        (simple(al.reverse), {}, "'n' has no value"),
        (simple(al.join, array(f32, n, n)), {"n": 2**17}, "elements"),
        (simple(lambda x: al.gather(lambda i, n: i + 1, x)), {"n": 4}, "position 3 of 4 is sent"),
        (simple(lambda x: al.scatter(lambda i, n: i // 2, x)), {"n": 4}, "no permutation"),
        (
            simple(lambda x: al.gather(lambda i, n: (i + 1) % n, x, lambda i, n: (i + 1) % n)),
            {"n": 4},
            "not the inverse",
        ),
    ],
)
def test_bad_sizes(program: Program, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(CheckError, match=message) as caught:
        bound(program, sizes)
    if "size n" not in message and "no value" not in message and "size c" not in message:
        span = caught.value.span
        assert span is None or span.source.name == __file__


def test_bad_inputs() -> None:
    twice = simple(lambda x: al.map_(lambda v: v + v, x))
    with pytest.raises(CheckError, match="takes 1 inputs"):
        evaluate(twice)
    with pytest.raises(CheckError, match="has the shape"):
        evaluate(twice, [[1.0]], n=1)


# -- binding ---------------------------------------------------------------------------------------


def test_names_do_not_matter() -> None:
    one = al.map_(lambda left: left + left, X)
    other = al.map_(lambda right: right + right, X)
    assert one is other


def test_opened_and_closed_is_the_same() -> None:
    term = al.map_(lambda row: al.map_(lambda v: v * al.element(0, row), row), ROWS)
    (function,) = term.functions
    params, body = opened(function)
    assert close(params, body) is function
    assert instantiate(function, (al.element(0, ROWS),)) is al.map_(
        lambda v: v * al.element(0, al.element(0, ROWS)), al.element(0, ROWS)
    )


def test_what_computes_is_concrete() -> None:
    assert not is_concrete(al.map_(lambda row: al.reverse(row), ROWS))
    assert is_concrete(al.map_(lambda row: al.map_(al.copy, row), ROWS))
    assert is_concrete(al.reduce(lambda s, v: s + v, 0.0, X))


def test_text() -> None:
    term = al.map_(lambda row: al.fold(lambda s, v: s + v, 0.0, al.pad(1, 1, row)), ROWS)
    assert show(term) == ("map(λa. element(0, reduce(λb c. (b + c), 0, pad(1, 1, 0, a))), rows)")
    named = al.program("p", lambda a: al.map_(lambda v: v + 1, a), a=array(f32, n))
    assert show_program(named) == "p\na: [f32]n\n→ [f32]n\nmap(λb. (b + 1), a)"
    wide = al.program("w", lambda x: al.split(4, al.reverse(al.split(2, x))), x=array(f32, 8 * n))
    assert show(wide.body, 30).splitlines() == [
        "split(",
        "  4,",
        "  gather(",
        "    n * 4 - position - 1,",
        "    split(2, x)))",
    ]


def test_vectors_and_tuples_in_types() -> None:
    number = of(Scalar, al.element(0, X).type)
    assert type_text(Tuple((Vector(number, 4), X.type))) == "(f32x4, [f32]n)"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda v: v if v > 0 else -v, "compare"),
        (lambda v: v if v.gt(0) else -v, "no truth value"),
        (lambda v: v.ge(0) and v, "no truth value"),
        (lambda v: v[0], "apart"),
        (lambda v: sum(v), "apart"),
    ],
)
def test_what_python_would_decide_is_refused(wrong: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(CheckError, match=said) as refused:
        al.program("wrong", lambda x: al.map_(wrong, x), x=array(f32, 9))
    assert refused.value.span is not None
    assert refused.value.span.source.name == __file__


def test_inputs_are_of_types() -> None:
    assert al.program("f", lambda s: s + 1, s=f32).inputs[0].type is array(f32)
    with pytest.raises(CheckError, match=r"the input 's' is 3, no type"):
        al.program("f", lambda s: s + 1, s=3)  # type: ignore[arg-type]


def test_how_much_an_evaluation_takes() -> None:
    """Products of all pairs of 4 by 6 numbers at once; a sum of 6 of them one after another."""
    dots = al.program(
        "dots",
        lambda xs, ys: al.map_(
            lambda x: al.map_(
                lambda y: al.reduce(
                    lambda t, v: t + v, 0.0, al.map_(lambda z: z.get(0) * z.get(1), al.zip_(x, y))
                ),
                ys,
            ),
            xs,
        ),
        xs=array(f32, n, m),
        ys=array(f32, k, m),
    )
    few = effort(bound(dots, {"n": 4, "m": 6, "k": 2}))
    more = effort(bound(dots, {"n": 400, "m": 6, "k": 2}))
    assert (few.elements, more.elements) == (2 * 4 * 2 * 6, 2 * 400 * 2 * 6)
    assert few.operations == more.operations
    assert effort(bound(dots, {"n": 4, "m": 12, "k": 2})).operations > few.operations
