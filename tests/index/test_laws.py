"""Every law is true, over a box of integers and, with Z3, for all; simplifying keeps values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.index.strategies import BOUNDS, environments, expressions
from tests.sampled import examples

from warploom.errors import CheckError, InternalError
from warploom.index.evaluate import evaluate, totalise
from warploom.index.ir import Const, Expr, Unary, Var, operations, select, substitute, variables
from warploom.index.laws import GROUPS, a, all_laws, b, simplify, tidied, u, v, x, y, z
from warploom.index.ranges import Range
from warploom.index.rewrite import CONSTANTS, Law, LawTable, Rewriter, law
from warploom.index.show import show
from warploom.index.smt import to_z3

LAWS = 182
CONSTANT_VALUES = range(-4, 9)
# What a condition on a range is tried with: each is also the box of the variable.
RANGES = [Range(low, low + more) for low in range(-5, 6) for more in (0, 1, 3)]
ANYTHING = Range(-6, 6)


def instances(each: Law) -> Iterator[tuple[dict[str, int], dict[str, Range]]]:
    """Constants, and boxes for the other variables, for which the condition holds."""
    names = sorted(variables(each.left))
    fixed = [name for name in names if name in CONSTANTS]
    ranged = [name for name in names if name not in CONSTANTS and name in each.asks]
    free = {name: ANYTHING for name in names if name not in CONSTANTS and name not in ranged}
    for values in itertools.product(CONSTANT_VALUES, repeat=len(fixed)):
        numbers = dict(zip(fixed, values, strict=True))
        for ranges in itertools.product(RANGES, repeat=len(ranged)):
            boxes = dict(zip(ranged, ranges, strict=True))
            facts = {**numbers, **boxes}
            if each.when(*[facts[name] for name in each.asks]):
                yield numbers, {**boxes, **free}


def false_at(each: Law) -> dict[str, int] | None:
    """Values where the left side is defined and the right side is not, or differs."""
    left, left_defined = totalise(each.left)
    right, right_defined = totalise(each.right)
    wrong = left_defined.and_(right_defined.not_().or_(left.ne(right)))
    tried = 0
    for numbers, boxes in instances(each):
        tried += 1
        axes = np.ix_(*[np.arange(low, high + 1) for low, high in boxes.values()])
        env: dict[str, int | np.ndarray[Any, Any]] = {
            **numbers,
            **dict(zip(boxes, axes, strict=True)),
        }
        sizes = tuple(high - low + 1 for low, high in boxes.values())
        places = np.argwhere(np.broadcast_to(np.asarray(evaluate(wrong, env)), sizes))
        if len(places):
            where = zip(boxes.items(), places[0], strict=True)
            return {**numbers, **{name: low + int(at) for (name, (low, _)), at in where}}
    assert tried, f"the condition of {each.name} never held"
    return None


def test_the_number_of_laws() -> None:
    assert len(all_laws()) == LAWS
    assert sum(len(list(group())) for group in GROUPS.values()) == LAWS


@pytest.mark.sampled(5)
@pytest.mark.parametrize("group", GROUPS)
def test_every_law_is_true_over_a_box(group: str) -> None:
    wrong = {each.name: false_at(each) for each in GROUPS[group]()}
    assert {name: where for name, where in wrong.items() if where is not None} == {}
    assert wrong


FALSE_LAWS = [
    law(x - y, y - x),
    law(x // a, x // -a),
    law((x * a) // b, x * (a // b), lambda b: b != 0),
    law((x // a) // b, x // (a * b)),  # lacks its condition
    law(x % y, x, lambda x, y: x.low >= 0 and x.high <= y.low),  # one too many
    law((x * a + y) % b, (x % (b // a)) * a + y, lambda a, b: 0 < a < b and b % a == 0),
    law(x, x // x * x),  # undefined at 0
    law(select(x, y, z), select(x, z, y)),
    law(Unary("not", Unary("not", x)), x),
]


@pytest.mark.parametrize("each", FALSE_LAWS, ids=lambda each: each.name)
def test_a_false_law_is_caught_by_the_same_check(each: Law) -> None:
    assert false_at(each) is not None


def test_a_law_must_bind_what_it_uses() -> None:
    with pytest.raises(InternalError, match="does not bind"):
        law(x + 0, x + y)


@pytest.mark.slow
def test_z3_agrees_for_all_integers() -> None:
    """Each law at some of its constants, with its variables unbounded where it asks no range."""
    z3 = pytest.importorskip("z3")
    visited, proved = 0, 0
    for each in all_laws():
        if any(op in show(each.left) for op in ("&", "|", "^", "<<", ">>")):
            continue  # bits have no unbounded form; the box covers them
        visited += 1
        answers = [
            z3_answer(each, *instance)
            for instance in itertools.islice(instances(each), 0, None, 97)
        ]
        assert z3.sat not in answers, each.name
        proved += all(answer == z3.unsat for answer in answers)
    assert visited == 157
    assert proved >= 145  # the solver may be slow; it may not object


def z3_answer(each: Law, numbers: dict[str, int], boxes: dict[str, Range]) -> object:
    z3 = pytest.importorskip("z3")
    left, left_defined = totalise(substitute(each.left, numbers))
    right, right_defined = totalise(substitute(each.right, numbers))
    solver = z3.Solver()
    solver.set("timeout", 2000)
    symbols = {name: z3.Int(name) for name in boxes}
    for name in set(each.asks) & set(boxes):
        solver.add(boxes[name].low <= symbols[name], symbols[name] <= boxes[name].high)
    wrong = left_defined.and_(right_defined.not_().or_(left.ne(right)))
    solver.add(to_z3(wrong, symbols) != 0)
    return solver.check()


def test_z3_objects_to_a_false_law() -> None:
    z3 = pytest.importorskip("z3")
    assert z3_answer(law(x - y, y - x), {}, {"x": ANYTHING, "y": ANYTHING}) == z3.sat


@given(expressions(12), environments())
@examples(400)
def test_simplifying_keeps_the_value(expr: Expr, env: dict[str, int]) -> None:
    try:
        value = evaluate(expr, env)
    except CheckError:
        return
    assert evaluate(simplify(expr), env) == value
    assert evaluate(simplify(expr, BOUNDS), env) == value
    assert evaluate(tidied(expr), env) == value


@given(expressions(12))
@examples(200)
def test_simplifying_ends_and_never_costs(expr: Expr) -> None:
    once = simplify(expr, BOUNDS)
    assert simplify(once, BOUNDS) is once
    assert operations(once) <= operations(expr)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((x * 8 + y) // 8, "x"),
        ((x * 8 + y) % 8, "y"),
        ((x * 8 + y) // 16, "x // 2"),
        ((x * 8 + y) % 16, "x % 2 * 8 + y"),
        ((y + 8) % 8, "y"),
        (y % 32, "y"),
        (y.lt(8), "1"),
        (3 + x + 4 - 7, "x"),
        (x * 4 - x, "x * 3"),
        ((x // 4) * 4 + x % 4, "x"),
        ((x // 4) % 8 * 4 + x % 4, "x % 32"),
        ((x << 3) >> 3, "x"),
        (x.lt(y).not_().not_(), "x < y"),
        (select(y.ge(0), x, y), "x"),
        ((x ^ y) ^ y, "x"),
        ((x - 1) % 8, "(x + 7) % 8"),
        (x // 0, "x // 0"),
        (Const(2**62) * 2, f"{2**62} * 2"),
        ((x + 2**62) + 2**62, f"x + {2**62} + {2**62}"),
    ],
)
def test_known_simplifications(expr: Expr, text: str) -> None:
    assert show(simplify(expr, {"y": (0, 7)})) == text


def test_depth_is_no_limit() -> None:
    deep: Expr = Var("x")
    for i in range(1_500):
        deep = (deep + i) * 1 - i
    assert simplify(deep) is Var("x")
    nested: Expr = Var("x")
    for i in range(1_200):
        nested = (nested % 7 + Var(f"y{i % 5}")) // 2
    assert operations(simplify(nested)) <= operations(nested)


def test_laws_that_never_end_are_an_error() -> None:
    turning = [law(u + v, v + u)]
    with pytest.raises(InternalError, match="do not end"):
        Rewriter(LawTable(turning), {}).rewrite(Var("p") + Var("q"))
    growing = [law(u.not_(), (u + u).not_())]
    with pytest.raises(InternalError, match="do not end"):
        Rewriter(LawTable(growing), {}).rewrite(Var("p").not_())
