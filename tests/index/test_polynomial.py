"""A polynomial over atoms has the value of its expression, and its bounds hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.index.strategies import BOUNDS, environments, expressions
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, variables
from warploom.index.polynomial import Normal, Quotient, constant, tightened
from warploom.index.terms import Polynomial

x, y, z = Var("x"), Var("y"), Var("z")


def value_of(polynomial: Polynomial, normal: Normal, env: dict[str, int]) -> int:
    total = 0
    for monomial, factor in polynomial.terms.items():
        for atom in monomial:
            factor *= atom_value(normal, atom, env)
        total += factor
    return total


def atom_value(normal: Normal, atom: int, env: dict[str, int]) -> int:
    node = normal.atoms[atom]
    if not isinstance(node, Quotient):
        return int(evaluate(node, env))
    return value_of(node.value, normal, env) // value_of(node.divisor, normal, env)


def defined(expr: Expr, env: dict[str, int]) -> int | None:
    try:
        return int(evaluate(expr, env))
    except CheckError:
        return None


@given(expressions(12), st.lists(environments(), min_size=6, max_size=6))
@examples(300)
def test_same_value_within_the_bounds(expr: Expr, envs: list[dict[str, int]]) -> None:
    normal = Normal(BOUNDS)
    polynomial = normal.of(expr)
    low, high = normal.range_of(polynomial)
    for env in envs:
        value = defined(expr, env)
        if value is not None:
            assert value_of(polynomial, normal, env) == value
            assert low <= value <= high
            for number, (least, most) in enumerate(normal.bounds):
                node = normal.atoms[number]
                if isinstance(node, Quotient) or variables(node) <= env.keys():
                    assert least <= atom_value(normal, number, env) <= most


@given(expressions(6), expressions(6), environments())
@examples(200)
def test_arithmetic(left: Expr, right: Expr, env: dict[str, int]) -> None:
    if defined(left, env) is None or defined(right, env) is None:
        return
    normal = Normal(BOUNDS)
    p, q = normal.of(left), normal.of(right)
    a, b = value_of(p, normal, env), value_of(q, normal, env)
    assert value_of(p + q, normal, env) == a + b
    assert value_of(p - q, normal, env) == a - b
    assert value_of(p * q, normal, env) == a * b
    assert (value_of(tightened(p), normal, env) >= 0) == (a >= 0)
    for atom in p.atoms():
        put = p.with_atom(atom, q)
        expected = 0
        for monomial, factor in p.terms.items():
            for each in monomial:
                factor *= b if each == atom else atom_value(normal, each, env)
            expected += factor
        assert value_of(put, normal, env) == expected


def test_forms_that_meet() -> None:
    normal = Normal({"x": (0, 100), "y": (0, 3), "n": (1, 1000)})
    n = Var("n")
    pairs: list[tuple[Expr, Expr]] = [
        ((x * 8 + y) // 4, x * 2),
        ((x * 8 + y) % 8, y),
        ((x // 4) // 8, x // 32),
        ((x // 4 + 3) // 8, (x + 12) // 32),
        ((x * n + y) // n, x + y // n),
        ((x * 6 + 5) // 4, x + (x + 2) // 2),
        ((x - 1) // 4, (x + 3) // 4 - 1),
        (x % 32 + x // 32 * 32, x),
        (x >> 3, x // 8),
        (x & 7, x % 8),
        (x << 2, x * 4),
        (x // -3, (0 - x) // 3),
        (x ^ 0, x),
        ((x ^ 5) // 8, x // 8),
    ]
    for one, other in pairs:
        assert normal.of(one) == normal.of(other)
    assert normal.of(y // 4) == constant(0)
    assert normal.of(x // 4) != normal.of(x // 5)
