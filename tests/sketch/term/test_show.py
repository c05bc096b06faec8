from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.sketch.term.ir import (
    Apply,
    Literal,
    Program,
    Symbol,
    Term,
    Undefined,
    Zero,
    constant,
    fold_of,
)
from warploom.sketch.term.show import show_fill, show_term, to_swflow

Load = Callable[[str], Program]


def pack(*items: int | Term, operator: str = "fold") -> Term:
    return fold_of([Symbol(i) if isinstance(i, int) else i for i in items], operator)


def assert_equal(one: Program, other: Program) -> None:
    """Same steps, tables and goals."""
    assert len(one.steps) == len(other.steps)
    for left, right in zip(one.steps, other.steps, strict=True):
        assert left.shape == right.shape
        if isinstance(left, Literal):
            assert isinstance(right, Literal)
            assert left.values == right.values
            continue
        assert isinstance(right, Apply)
        assert (left.args, left.fold, left.operator) == (right.args, right.fold, right.operator)
        assert left.gathers.function == right.gathers.function
        assert np.array_equal(left.gathers.tables, right.gathers.tables)
        count = range(len(left.gathers))
        assert [left.gathers.describe(i) for i in count] == [
            right.gathers.describe(i) for i in count
        ]
    assert [goal.values for goal in one.goals] == [goal.values for goal in other.goals]
    assert [goal.shape for goal in one.goals] == [goal.shape for goal in other.goals]
    assert [goal.laws for goal in one.goals] == [goal.laws for goal in other.goals]


def test_terms() -> None:
    assert show_term(Zero()) == "()"
    assert show_term(Undefined()) == "?"
    assert show_term(Symbol(-3)) == "-3"
    assert show_term(pack(10, 9, 9)) == "(9, 9, 10)"
    assert show_term(pack(pack(10, 2), pack(3), 40)) == "(40, (2, 10), (3,))"
    assert show_term(pack(pack(10, 2, operator="*"), 3, operator="+")) == "+(3, *(2, 10))"
    assert show_term(pack(4, constant(2.0), operator="min")) == "min(4, =2)"
    assert show_term(pack(pack(1, operator="|"), operator="mean()")) == '"mean"(|(1,))'
    assert show_term(pack(Zero(), operator='a"b()')) == '"a\\"b"(())'
    assert show_term(constant(1e22)) == "=1e22"
    assert show_term(constant(1.5e-7)) == "=1.5e-07"


def test_a_term_with_shared_parts_does_not_explode() -> None:
    term: Term = Symbol(0)
    for _ in range(30):
        term = pack(term, term)
    text = show_term(term, 50)
    assert len(text) == 50
    assert text.endswith("…")


def test_a_fill_is_one_line_for_each_hole(load: Load) -> None:
    program = load("x: [4] = range(0, 4) a: [4] = rots(x) b: [4] = a c: [4] = rots(b) goal: [4] id")
    assert show_fill(program, [1, 3]) == "a = rot[1](x)\nc = rot[3](b)"


def test_the_printed_text(load: Load) -> None:
    program = load(
        """x: [4] = range(0, 4)
        define f([4], [4]) -> [4] = { a = [(1, 2), 3, (-1, 0), 4], "b c" = [0, 1, 2, 3] }
        y: [4] = f(x, x)
        z: [2] = + ?rots{fold_len=2, step=3}(y)
        goal: [2, 2] trove_sum
        goal: [2] = [(), (1, (2, 3))]"""
    )
    assert to_swflow(program) == (
        "x: [4] = range(0, 4)\n"
        "define f([4], [4]) -> [4] = {\n"
        "  a = [(1, 2), 3, (-1, 0), -1],\n"
        '  "b c" = [0, 1, 2, 3]\n'
        "}\n"
        "y: [4] = ?f(x, x)\n"
        "z: [2] = + ?rots{fold_len=2,step=3}(y)\n"
        "goal: [2] trove_sum{n=2}\n"
        "goal: [2] = [(), (1, (2, 3))]\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "x: [2, 2] = [[3, 1], [-1, ?]] goal: [2, 2] = [[1, 2], [3, 4]]",
        "x: [4] = range(0, 4) x: [4] = rots(x) b: [4] = { x: [4] = x } goal: [4] id",
        "x: [4] = fold range(0, 4) goal: [4] = fold [0, 1, 2, 3]",
        "x: [1] = fold [()] y: [1] = fold [?] z: [2] = fold [(1, 2), 3] goal: [1] = fold [()]",
        "x: [4] = range(0, 4) y: [4] = fold ?rots(x) goal: [4] = fold [0, 1, 2, 3]",
        # A definition used on both sides of the one that replaces it, and a built-in hidden by one.
        """x: [2] = range(0, 2) o: [2] = reshape(x)
        define reshape([2]) -> [2] = [1, 0]   a: [2] = reshape(x)
        define reshape([2]) -> [2] = [-1, (-1, 0)]   b: [2] = reshape(x)
        define unused([2]) -> [2] = [0, 1]   goal: [2] id""",
        # A variable that would hide a function once its block is gone.
        """define b.c([2]) -> [2] = [1, 0] x: [2] = range(0, 2)
        b: [2] = { c: [2] = x } d: [2] = b.c(x) goal: [2] = [1, 0]""",
        r'define f([1]) -> [2] = { a\ = [0, -1], "q\"" = [-1, 0], "" = [0, 0] } x: [1] = [3]'
        " y: [2] = f(x) goal: [2] = [3, 3]",
        "x: [4] = range(0, 4) @flatten goal: [4] = [+(0, +(1, 2)), *(0,), 2, 3] "
        "@flatten goal: [4] id @prune goal: [4] id",
        "x: [4] = range(0, 4) goal: [4] poly_mult{w=2} goal: [4] weight_conv{k=2} "
        "goal: [4] conv{k=3} goal: [4] trove_sum{n=1} goal: [4] id",
        "x: [2, 2] = range(0, 4) goal: [2, 2] stencil_2d{k=2} goal: [2, 2] conv_dealg "
        "goal: [2, 2] trove",
        'x: [4] = + range(0, 4) y: [1] = "mean" [(1)] z: [2] = min [+(1, 2), =0.5] '
        "goal: [1] = max [^(0, &(1, 2))]",
        'x: [4] = range(0, 4) a: [4] = "f" x{fold_len=1} b: [2] = | a{fold_len=2} '
        'c: [1] = ^ b{fold_len=2} goal: [1] = ["f"(0)]',
    ],
)
def test_a_printed_program_loads_as_an_equal_one(load: Load, text: str) -> None:
    program = load(text)
    printed = to_swflow(program)
    assert_equal(program, load(printed))
    assert to_swflow(load(printed)) == printed


NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False))
OPERATORS = st.sampled_from(("fold", "+", "*", "min", "max", "&", "|", "^"))
TERMS = st.recursive(
    st.one_of(st.integers(-3, 9).map(Symbol), NUMBERS.map(constant), st.just(Zero())),
    lambda inner: st.one_of(
        st.builds(fold_of, st.lists(inner, max_size=4), OPERATORS),
        st.builds(lambda item: fold_of([item], "f g()"), inner),
    ),
    max_leaves=8,
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TERMS, min_size=1, max_size=6))
def test_any_goal_prints(load: Load, terms: list[Term]) -> None:
    text = f"[{len(terms)}] = [{', '.join(map(show_term, terms))}]"
    program = load(f"x: {text} goal: {text}")
    assert program.goals[0].values == tuple(terms)
    assert_equal(program, load(to_swflow(program)))
