"""Sizes of arrays: index expressions come in, equal sizes go out as one object.

A quotient in a size is exact: `n // c` stands for the number n/c, and that c divides n is a
condition of the program, checked where sizes get numbers. So sizes are sums of products of powers,
of which some are negative, and (n // c) * c is n.

    >>> from warploom.index.show import show
    >>> n, c = Var("n"), Var("c")
    >>> show(normal((n // c + 1) * c))
    'c + n'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import (
    Binary,
    Const,
    Expr,
    Unary,
    Var,
    children,
    lift,
    rebuild,
    substitute,
    variables,
    walk,
)
from warploom.index.show import show
from warploom.index.terms import Powers, Ratios

MOST = 2**31 - 1  # elements along one axis, and what indices may count


def normal(size: Expr | int) -> Expr:
    """The one form of all expressions that are equal to this size."""
    return _normal(lift(size))


@lru_cache(maxsize=1 << 14)
def _normal(size: Expr) -> Expr:
    return _expression(_terms(size))


def quotient(size: Expr | int, by: Expr | int) -> Expr:
    """size / by, which is exact; a constant that does not divide is refused."""
    return normal(lift(size) // lift(by))


def number(size: Expr) -> int | None:
    """The value of a size that is known."""
    return size.value if isinstance(size, Const) else None


def with_numbers(size: Expr, values: Mapping[str, int | Expr]) -> Expr:
    """The size with variables replaced."""
    return normal(substitute(size, values)) if not variables(size).isdisjoint(values) else size


def divisions(size: Expr) -> list[tuple[Expr, Expr]]:
    """What must divide exactly for a normal size to be what it stands for: (number, divisor)."""
    return [
        (part.left, part.right)
        for part in walk(size)
        if isinstance(part, Binary) and part.op == "//"
    ]


def value_of(size: Expr, values: Mapping[str, int]) -> int:
    """The size as a number, at least 1; every division in it must be exact."""
    missing = sorted(variables(size) - values.keys())
    if missing:
        raise CheckError(
            f"the size '{missing[0]}' has no value", advice=f"give it one: {missing[0]}=64"
        )
    for left, right in divisions(size):
        if evaluate(right, values) == 0 or evaluate(left % right, values) != 0:
            raise CheckError(
                f"{show(right)} does not divide {show(left)}: "
                f"{evaluate(left, values)} by {evaluate(right, values)}",
                advice="pad the array first, or choose another size",
            )
    return int(evaluate(size, values))


def product(sizes: Iterable[Expr]) -> Expr:
    total: Expr = Const(1)
    for size in sizes:
        total = total * size
    return normal(total)


# -- sums of products ------------------------------------------------------------------------------


def _terms(size: Expr) -> Ratios:
    match size:
        case Const(value):
            return _number(value)
        case Unary("-", operand):
            return _terms(operand).scaled(-1)
        case Binary("+", left, right):
            return _terms(left) + _terms(right)
        case Binary("-", left, right):
            return _terms(left) - _terms(right)
        case Binary("*", left, right):
            return _terms(left) * _terms(right)
        case Binary("//", left, right):
            return _divided(left, right)
        case _:
            return _of_atom(size)


def _number(value: int) -> Ratios:
    return Ratios({(): Fraction(value)} if value else {})


def _of_atom(size: Expr) -> Ratios:
    """A variable, or an operation of which nothing is known but that it is itself."""
    atom = rebuild(size, tuple(normal(child) for child in children(size)))
    if not variables(atom):
        return _number(int(evaluate(atom, {})))
    return Ratios({((atom, 1),): Fraction(1)})


def _divided(left: Expr, right: Expr) -> Ratios:
    divisor = _terms(right)
    if not divisor.terms:
        raise CheckError(f"the size {show(left)} is divided by zero")
    value = _terms(left)
    if len(divisor.terms) == 1:
        ((monomial, factor),) = divisor.terms.items()
        inverse = tuple((atom, -power) for atom, power in monomial)
        return value * Ratios({inverse: 1 / factor})
    whole = _expression(divisor)  # a sum: its inverse is an atom of its own
    return value * Ratios({((whole, -1),): Fraction(1)})


def _expression(size: Ratios) -> Expr:
    """The sum over one common divisor."""
    terms = size.terms
    lowest: dict[Expr, int] = {}
    for monomial in terms:
        for atom, power in monomial:
            lowest[atom] = min(lowest.get(atom, 0), power)
    scale = lcm(1, *(factor.denominator for factor in terms.values()))
    divisor = size.merged(tuple((atom, -power) for atom, power in lowest.items()), ())
    whole = {
        size.merged(monomial, divisor): int(factor * scale) for monomial, factor in terms.items()
    }
    common = gcd(scale, *whole.values())
    whole, scale = {m: f // common for m, f in whole.items()}, scale // common
    if not divisor and scale > 1 and set(whole) <= {()}:
        raise CheckError(f"{scale} does not divide {whole.get((), 0)}")
    total = _sum(whole)
    below = _product(scale, divisor)
    return total if below is Const(1) else total // below


def _sum(terms: Mapping[Powers, int]) -> Expr:
    listed = sorted(terms.items(), key=lambda each: (each[1] < 0, not each[0], _text(each[0])))
    if not listed:
        return Const(0)
    total = _product(listed[0][1], listed[0][0])
    for monomial, factor in listed[1:]:
        part = _product(abs(factor), monomial)
        total = total + part if factor > 0 else total - part
    return total


def _product(factor: int, monomial: Powers) -> Expr:
    parts = [atom for atom, power in monomial for _ in range(power)]
    if factor != 1 or not parts:
        parts.insert(0, Const(factor))
    result = parts[0]
    for part in parts[1:]:
        result = result * part
    return result


def _text(monomial: Powers) -> str:
    return " ".join(show(atom) for atom, power in monomial for _ in range(power))


def size_variables(names: str) -> tuple[Var, ...]:
    """`n, m = sizes("n m")`: numbers of at least 1 that are not known yet."""
    return tuple(Var(name) for name in names.split())
