"""Z3's reading of an expression is ours, and equality is proved, refuted or left open."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from tests.index.strategies import BOUNDS, environments, expressions
from tests.sampled import examples

from warploom.errors import CheckError, UnsupportedError
from warploom.index import smt
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, select, substitute
from warploom.index.laws import simplify
from warploom.index.smt import prove_equal, to_z3

x, y, z = Var("x"), Var("y"), Var("z")


@given(expressions(), environments())
@examples(150)
def test_z3_gives_the_same_numbers(expr: Expr, env: dict[str, int]) -> None:
    z3 = pytest.importorskip("z3")
    try:
        value = evaluate(expr, env)
        term = to_z3(expr, {}, BOUNDS)
    except (CheckError, UnsupportedError):
        return
    exact = z3.substitute(term, *[(z3.Int(name), z3.IntVal(env[name])) for name in env])
    assert z3.simplify(exact).as_long() == value


@given(expressions())
@examples(60)
def test_simplified_is_proved_equal(expr: Expr) -> None:
    if "<<" not in repr(expr) and "*" not in repr(expr):  # no overflow
        assert prove_equal(expr, simplify(expr, BOUNDS), BOUNDS).equal


WIDE = {"x": (-(2**40), 2**40), "y": (1, 2**30), "z": (0, 31)}


@pytest.mark.parametrize("bounds", [BOUNDS, WIDE], ids=["tried", "solved"])
@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (x % 4, x & 3, True),
        (x // 4, x >> 2, True),
        ((x // 4) * 4 + x % 4, x, True),
        (x // -3, -x // 3, True),
        (x % -3, -(-x % 3), True),
        (z ^ 5 ^ z, z * 0 + 5, True),
        (select(x.lt(0), -x, x).ge(0), x * 0 + 1, True),
        (x // 3, -(-x // 3), False),
        (x - z, z - x, False),
        ((x + 1) % 4, x % 4 + 1, False),
        (x // z, x // z, True),
    ],
)
def test_verdicts(left: Expr, right: Expr, equal: bool, bounds: dict[str, tuple[int, int]]) -> None:
    if bounds is WIDE:
        pytest.importorskip("z3")
    found = prove_equal(left, right, bounds)
    assert found.equal is equal
    if not equal:
        env = found.counterexample
        assert env is not None
        assert all(bounds[name][0] <= value <= bounds[name][1] for name, value in env.items())
        assert evaluate(left, env) != evaluate(right, env)


def test_only_defined_values_count() -> None:
    guarded = select(x.eq(0), 7, 12 // x)
    assert prove_equal(guarded, 12 // x, {"x": (-3, 3)}).equal
    assert prove_equal(substitute(guarded, {"x": y}), 12 // y, {"y": (-3, 10**9)}).equal


def test_a_solver_that_gives_up_is_not_a_no() -> None:
    pytest.importorskip("z3")
    p, q, r = Var("p"), Var("q"), Var("r")
    found = prove_equal(p * p * p + q * q * q, r * r * r + 1_000_003, {}, seconds=0.001)
    assert found.equal is None
    assert found.counterexample is None


def test_bits_without_bounds_are_refused() -> None:
    pytest.importorskip("z3")
    with pytest.raises(UnsupportedError, match="bits"):
        to_z3(x ^ y, {})


def test_without_z3_small_questions_are_answered_and_large_ones_name_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    assert prove_equal(x % 4, x & 3, {"x": (0, 99)}).equal
    with pytest.raises(UnsupportedError, match="z3-solver"):
        smt.prove_equal(x % 4, x & 3, {})
