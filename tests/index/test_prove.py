"""What is proved is true: on every value of a box, by Z3, and for the shapes of kernels."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.index.strategies import BOUNDS, NAMES, expressions
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, Const, Expr, Var, maximum, minimum, select, substitute
from warploom.index.prove import proves

POINTS = [
    {"x": a, "y": b, "z": c}
    for a in range(BOUNDS["x"][0], BOUNDS["x"][1] + 1)
    for b in range(BOUNDS["y"][0], BOUNDS["y"][1] + 1)
    for c in range(BOUNDS["z"][0], BOUNDS["z"][1] + 1)
]

comparisons = st.sampled_from(("<", "<=", ">", ">=", "==", "!="))
conditions = st.builds(
    lambda op, left, right: Binary(op, left, right), comparisons, expressions(4), expressions(4)
)
joined = st.one_of(
    conditions,
    st.builds(lambda op, a, b: Binary(op, a, b), st.sampled_from(("and", "or")), conditions,
              conditions),
    conditions.map(lambda each: each.not_()),
)  # fmt: skip


def values(expr: Expr, hypotheses: list[Expr]) -> list[int]:
    """The values of an expression wherever it and the hypotheses are defined, and they hold."""
    found = []
    for env in POINTS:
        try:
            truths = [evaluate(each, env) for each in hypotheses]
            if all(truths):
                found.append(int(evaluate(expr, env)))
        except CheckError:
            continue
    return found


@given(expressions(8), st.lists(joined, max_size=3))
@examples(50)
def test_the_least_value_may_be_proved_and_nothing_above_it(
    expr: Expr, hypotheses: list[Expr]
) -> None:
    seen = values(expr, hypotheses)
    if not seen:
        return
    low, high = min(seen), max(seen)
    event(f"the least value is proved: {proves(expr.ge(low), hypotheses, BOUNDS)}")
    assert not proves(expr.gt(low), hypotheses, BOUNDS)
    assert not proves(expr.lt(high), hypotheses, BOUNDS)
    if low != high:
        assert not proves(expr.eq(low), hypotheses, BOUNDS)


@given(joined, st.lists(joined, max_size=3))
@examples(50)
def test_a_proved_condition_holds_everywhere(goal: Expr, hypotheses: list[Expr]) -> None:
    if proves(goal, hypotheses, BOUNDS):
        assert all(values(goal, hypotheses))
    if proves(goal.not_(), hypotheses, BOUNDS):
        assert not any(values(goal, hypotheses))


linear = st.builds(
    lambda a, b, c, d: Var("x") * a + Var("y") * b + Var("z") * c + d,
    *[st.integers(-4, 4) for _ in range(3)], st.integers(-12, 12),
)  # fmt: skip
divided = st.builds(
    lambda op, part, by: Binary(op, part, Const(by)), st.sampled_from(("//", "%")), linear,
    st.sampled_from((2, 3, 4, 8)),
)  # fmt: skip
sums = st.one_of(linear, divided, st.builds(lambda a, b: a + b, linear, divided))


@given(sums, sums, st.lists(st.builds(lambda a, b: a.le(b), sums, sums), max_size=3))
@examples(30)
def test_no_counterexample_without_bounds(left: Expr, right: Expr, facts: list[Expr]) -> None:
    """Over all whole numbers: Z3 finds nothing where the prover says it holds."""
    z3 = pytest.importorskip("z3")
    from warploom.index.smt import to_z3

    if not proves(left.le(right), facts, {}):
        return
    symbols = {name: z3.Int(name) for name in NAMES}
    solver = z3.Solver()
    solver.set("timeout", 2000)
    for fact in facts:
        solver.add(to_z3(fact, symbols) != 0)
    solver.add(to_z3(left.le(right), symbols) == 0)
    assert solver.check() != z3.sat


# -- the shapes that kernels have --------------------------------------------------------------

SIZE, BLOCK = (1, 2**31 - 1), (0, 2**31 - 2)
WORLD = {
    "n": SIZE, "m": SIZE, "k": SIZE, "b": BLOCK, "by": BLOCK, "bz": BLOCK, "warp": (0, 3),
    "lane": (0, 31), "j": (0, 2), "tile": (0, 3), "step": BLOCK, "e": (0, 3), "ty": (0, 7),
    "any": (-(2**31), 2**31 - 1),
}  # fmt: skip
n, m, k, b, by, bz, warp, lane, j, tile, step, e, ty, anything = (Var(name) for name in WORLD)
thread = warp * 32 + lane
i = b * 128 + thread
row, column = by * 8 + ty, b * 32 + lane
first = (b * 4 + warp) * 128


def clamp(at: Expr, size: Expr) -> Expr:
    return maximum(0, minimum(at, size - 1))


TRUE: dict[str, tuple[Expr, list[Expr]]] = {
    "a guard": (i.lt(n), [i.lt(n)]),
    "a grid that divides": (i.lt(n), [b.lt(n // 128)]),
    "a grid, by what is required": (i.lt(n), [(n % 128).eq(0), b.lt((n + 127) // 128)]),
    "runs of arrays": ((j * n + i).lt(n * 3), [i.lt(n)]),
    "around the ring": (((i + j - 1) % n).lt(n), []),
    "around the ring, below": (((i + j - 1) % n).ge(0), []),
    "a wide access": ((i * 4 + 4).le(n), [(n % 4).eq(0), (i * 4).lt(n)]),
    "a wide access is aligned": (((row * n + i * 4) % 4).eq(0), [(n % 4).eq(0)]),
    "two axes": ((row * n + column).lt(m * n), [row.lt(m), column.lt(n)]),
    "clamped": ((clamp(row - 3, m) * n + clamp(column - 2, n)).lt(m * n), []),
    "clamped, below": ((clamp(row - 3, m) * n + clamp(column - 2, n)).ge(0), []),
    "a small quotient": ((lane // n).eq(0), [n.gt(lane)]),
    "whole tiles": (
        ((first + tile * 32) * 3 + j * 32 + (lane + j * 11) % 32).lt(n * 3),
        [(first + 128).le(n)],
    ),
    "whole packed tiles": (
        (j * n + (first + tile * 32 + lane) * 2 + 2).le(n * 3),
        [((first + 128) * 2).le(n).and_((n % 2).eq(0))],
    ),
    "three axes": (
        (((bz * n + by) * n + b) * 128 + thread).lt(n * n * 256),
        [b.lt(n), by.lt(n), bz.lt(2)],
    ),
    "a tiled product": (
        ((by * 128 + thread) * k + step * 16 + e).lt(m * k),
        [(k % 16).eq(0), (m % 128).eq(0), by.lt(m // 128), step.lt(k // 16)],
    ),
    "a tail in a loop": (
        (step * 16 + lane).lt(k),
        [step.lt((k + 15) // 16), (step * 16 + lane).lt(k)],
    ),
    "a name for a condition": (i.lt(n), [i.lt(n).ne(0).and_(m.gt(3)).ne(0)]),
    "either end": (
        (column + select(lane.lt(16), 32, -32)).ge(0),
        [lane.lt(2).or_(lane.ge(30)), column.ge(32)],
    ),
    "cases exclude each other": (
        anything.gt(5),
        [anything.gt(7).or_(anything.lt(2)), anything.ge(2)],
    ),
    "not zero": (anything.ne(0), [anything.ge(3).or_(anything.lt(0))]),
    "a divisor of either sign": ((anything % -7).le(0), []),
    "square": ((n * n).ge(n), []),
    "swizzled by bits": ((b * 32 + (lane ^ 5)).lt(n), [(b * 32 + 31).lt(n)]),
    "one fact excludes the rest": (n.lt(0), [lane.lt(3), lane.gt(5)]),
    "an equation": ((n * 4 + lane).lt(m * 4 + 32), [n.eq(m)]),
    "a quotient that is named": ((step * 8).le(k), [step.eq(k // 8)]),
    "a truth as a number": ((i.lt(n) + lane).le(32), []),
}  # fmt: skip
FALSE: dict[str, tuple[Expr, list[Expr]]] = {
    "a grid that does not divide": (i.lt(n), [b.lt((n + 127) // 128)]),
    "one more": ((i + 1).lt(n), [i.lt(n)]),
    "a wide access at any size": ((i * 4 + 4).le(n), [(i * 4).lt(n)]),
    "the wrong axis": ((row * m + column).lt(m * n), [row.lt(m), column.lt(n)]),
    "not aligned": (((row * n + i * 4) % 4).eq(0), []),
    "below": ((i - 1).ge(0), [i.lt(n)]),
    "nothing is known": (anything.ne(0), []),
}


@pytest.mark.parametrize("name", TRUE)
def test_true_of_kernels(name: str) -> None:
    goal, hypotheses = TRUE[name]
    assert proves(goal, hypotheses, WORLD)


@pytest.mark.parametrize("name", FALSE)
def test_not_true_of_kernels(name: str) -> None:
    goal, hypotheses = FALSE[name]
    assert not proves(goal, hypotheses, WORLD)


@pytest.mark.parametrize("name", TRUE)
def test_a_claim_one_too_strong_is_not_proved(name: str) -> None:
    """The same shapes with the goal moved by one at a launch where it is tight would be false."""
    goal, hypotheses = TRUE[name]
    if name not in ("a guard", "runs of arrays", "a wide access", "two axes", "three axes"):
        return
    assert isinstance(goal, Binary)
    assert not proves(Binary(goal.op, goal.left + 1, goal.right), hypotheses, WORLD)


def test_names_do_not_matter() -> None:
    goal, hypotheses = TRUE["a tiled product"]
    other = {name: Var(f"v{number}") for number, name in enumerate(WORLD)}
    world = {f"v{number}": each for number, each in enumerate(WORLD.values())}
    assert proves(substitute(goal, other), [substitute(each, other) for each in hypotheses], world)


def test_large_expressions_end() -> None:
    total: Expr = n
    for number in range(40):
        total = total * (m + number) % (k + number) + total // (b + 1)
    assert not proves(total.lt(0), [], WORLD)
