"""Whether neighbouring iterations of a loop access neighbours, so that several can be one access.

x[4*q + i] for i in 0..3, where i < n and 4 divides n   →   one access of 4 elements
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.index.ir import Binary, Expr, Var, substitute, variables
from warploom.index.polynomial import Normal, Quotient
from warploom.index.terms import Polynomial
from warploom.schedule.context import conjuncts

MOST = 2**31 - 1


def is_next(index: Expr, counter: str, width: int) -> bool:
    """Whether an index grows by one with the counter, and all else in it by multiples of a
    width."""
    split = _split(index, counter)
    return split is not None and split[0] == 1 and _is_multiple(split[1], width)


def agree(condition: Expr, counter: str, width: int) -> bool:
    """Whether a condition is the same for all of so many iterations, which begin at a multiple."""
    return all(_agrees(each, counter, width) for each in conjuncts(condition))


def _agrees(condition: Expr, counter: str, width: int) -> bool:
    if counter not in variables(condition):
        return True
    match condition:
        case Binary("<=" | "<" | ">=" | ">" as op, left, right):
            # Of i + rest <= 0 all iterations of a piece agree if it ends where a piece does.
            split = _split(left - right, counter)
            if split is None or abs(split[0]) != 1:
                return False
            factor, rest = split
            offset = rest.terms.get((), 0) * factor
            free = Polynomial({m: f for m, f in rest.terms.items() if m})
            ends = {"<=": 1, "<": 0, ">=": 0, ">": 1}
            mirrored = {"<=": 0, "<": 1, ">=": 1, ">": 0}
            at = (ends if factor > 0 else mirrored)[op]
            return _is_multiple(free, width) and (offset - at) % width == 0
        case _:
            return False


def strictest(condition: Expr, counter: str, width: int) -> Expr:
    """The condition for all of so many iterations, as one on the first of them."""
    made: Expr | None = None
    for each in conjuncts(condition):
        last = each
        match each:
            case Binary("<=" | "<" | ">=" | ">" as op, left, right) if counter in variables(each):
                split = _split(left - right, counter)
                if split is not None and (split[0] > 0) == (op in ("<=", "<")):
                    last = substitute(each, {counter: Var(counter) + (width - 1)})
        made = last if made is None else made.and_(last)
    assert made is not None
    return made


def strictest_of_all(condition: Expr, counter: str, width: int) -> Expr | None:
    """Makes the same of one comparison; None where it is not monotone in the counter."""
    match condition:
        case Binary("<=" | "<" | ">=" | ">", left, right):
            if _split(left - right, counter) is not None:
                return strictest(condition, counter, width)
    return None


def _split(index: Expr, counter: str) -> tuple[int, Polynomial] | None:
    """By how much an index grows with a counter, if always by the same, and the rest of it."""
    normal = Normal(dict.fromkeys(variables(index), (0, MOST)))
    polynomial = normal.of(index)
    if counter not in variables(index):
        return 0, polynomial
    (own,) = normal.of(Var(counter)).atoms()
    factor, rest = 0, dict[tuple[int, ...], int]()
    for monomial, each in polynomial.terms.items():
        if monomial == (own,):
            factor = each
        elif any(_mentions(normal, atom, counter) for atom in monomial):
            return None
        else:
            rest[monomial] = each
    return factor, Polynomial(rest)


def _is_multiple(polynomial: Polynomial, of: int) -> bool:
    return all(factor % of == 0 for factor in polynomial.terms.values())


def _mentions(normal: Normal, atom: int, counter: str) -> bool:
    return counter in set(_names(normal, atom))


def _names(normal: Normal, atom: int) -> Iterator[str]:
    node = normal.atoms[atom]
    if isinstance(node, Quotient):
        for inside in node.value.atoms() | node.divisor.atoms():
            yield from _names(normal, inside)
    else:
        yield from variables(node)
