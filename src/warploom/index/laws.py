"""What may be rewritten: laws as data, and `simplify`, which applies them until none applies.

In a law `a, b, c` stand for constants, `u, v` for anything but a constant and `x, y, z` for
anything; `rewrite.py` says how laws are read. They hold for integers without bounds: a rewritten
sum may pass 64 bits on its way to a value within them, which wrapping arithmetic forgives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache

from warploom.index.ir import Binary, BinaryOp, Const, Expr, Unary, Var, operations, select
from warploom.index.ranges import Range
from warploom.index.rewrite import Law, LawTable, Rewriter, law

# Nodes whose simpler forms are remembered, for each of so many bounds of variables.
MOST_KEPT, MOST_BOUNDS = 1 << 15, 32


def simplify(expr: Expr, ranges: Mapping[str, tuple[int, int]] | None = None) -> Expr:
    """An equal expression to which no law applies, given the bounds of its variables.

    >>> from warploom.index.show import show
    >>> show(simplify((x * 8 + y) // 8 + (x * 8 + y) % 8, {"y": (0, 7)}))
    'x + y'
    """
    result = _rewriter(frozenset((ranges or {}).items())).rewrite(expr)
    # Taking a shared sum apart can cost more than it gains.
    return result if operations(result) <= operations(expr) else expr


def tidied(expr: Expr) -> Expr:
    """The expression without operations that do nothing; what else its author wrote stays.

    >>> from warploom.index.show import show
    >>> show(tidied((x + 0) * 4 + y // 1))
    'x * 4 + y'
    """
    return _tidying().rewrite(expr)


def total(terms: Iterable[Expr]) -> Expr:
    """The sum of all, in normal form; 0 of none."""
    found: Expr = Const(0)
    for term in terms:
        found = found + term
    return simplify(found)


@cache
def all_laws() -> tuple[Law, ...]:
    return tuple(each for group in GROUPS.values() for each in group())


@cache
def _table() -> LawTable:
    return LawTable(all_laws())


@lru_cache(maxsize=MOST_BOUNDS)
def _kept(bounds: frozenset[tuple[str, tuple[int, int]]]) -> Rewriter:
    return Rewriter(_table(), dict(bounds))


@cache
def _tidier() -> Rewriter:
    return Rewriter(LawTable((*neutral_laws(), *condition_laws())), {})


def _tidying() -> Rewriter:
    if _tidier().looked_at > MOST_KEPT:
        _tidier.cache_clear()
    return _tidier()


def _rewriter(bounds: frozenset[tuple[str, tuple[int, int]]]) -> Rewriter:
    """Where the same is known of variables, parts that were met before need no second look."""
    found = _kept(bounds)
    if found.looked_at > MOST_KEPT:
        _kept.cache_clear()  # whoever still uses one keeps it
        found = _kept(bounds)
    return found


def _power_of_two(a: int) -> bool:
    return a > 0 and a & (a - 1) == 0


def _is_truth(x: Range) -> bool:
    return x.low >= 0 and x.high <= 1


a, b, c = Var("a"), Var("b"), Var("c")
u, v = Var("u"), Var("v")
x, y, z = Var("x"), Var("y"), Var("z")

_MIRRORED: dict[BinaryOp, BinaryOp] = {
    "<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=",
}  # fmt: skip
_OPPOSITE: dict[BinaryOp, BinaryOp] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==",
}  # fmt: skip


def _each(*ops: BinaryOp) -> tuple[BinaryOp, ...]:
    return ops


def neutral_laws() -> Iterator[Law]:
    """Operations that do nothing, or leave nothing."""
    for op in _each("+", "-", "|", "^", "<<", ">>"):
        yield law(Binary(op, x, Const(0)), x)
    for op in _each("*", "//"):
        yield law(Binary(op, x, Const(1)), x)
    for op in _each("*", "&"):
        yield law(Binary(op, x, Const(0)), 0)
    for op in _each("//", "%", "<<", ">>"):
        yield law(Binary(op, Const(0), x), 0)
    for op in _each("-", "^", "%"):
        yield law(Binary(op, x, x), 0)
    for op in _each("&", "|"):
        yield law(Binary(op, x, x), x)
    for op in _each("*", "//"):
        yield law(Binary(op, x, Const(-1)), -x)
    yield law(x % 1, 0)
    yield law(x % -1, 0)
    yield law(x // x, 1)
    yield law(x & -1, x)
    yield law(x | -1, -1)
    yield law(0 - x, -x)
    yield law(Unary("-", -x), x)


def order_laws() -> Iterator[Law]:
    """Constants stand on the right, so that other laws need one form only."""
    for op in _each("+", "*", "&", "|", "^", "and", "or"):
        yield law(Binary(op, a, u), Binary(op, u, a))
    for op, mirrored in _MIRRORED.items():
        yield law(Binary(op, a, u), Binary(mirrored, u, a))
    yield law(u + a, u - (-a), lambda a: a < 0)
    yield law(u - a, u + (-a), lambda a: a < 0)


def sum_laws() -> Iterator[Law]:
    """Constants move outwards and meet; equal terms are counted."""
    yield law((x + a) + b, x + (a + b))
    yield law((x - a) + b, x + (b - a))
    yield law((x + a) - b, x + (a - b))
    yield law((x - a) - b, x - (a + b))
    yield law((a - x) + b, (a + b) - x)
    yield law((a - x) - b, (a - b) - x)
    yield law(a - (x + b), (a - b) - x)
    yield law(a - (x - b), (a + b) - x)
    yield law(a - (b - x), x + (a - b))
    yield law((u + a) + v, (u + v) + a)
    yield law((u - a) + v, (u + v) - a)
    yield law(u + (v + a), (u + v) + a)
    yield law(u + (v - a), (u + v) - a)
    yield law((u + a) - v, (u - v) + a)
    yield law((u - a) - v, (u - v) - a)
    yield law(u - (v + a), (u - v) - a)
    yield law(u - (v - a), (u - v) + a)
    yield law(x + -y, x - y)
    yield law(x - -y, x + y)
    yield law(-x + u, u - x)
    yield law(-(x - y), y - x)
    yield law((x + y) - x, y)
    yield law((x + y) - y, x)
    yield law((x - y) + y, x)
    yield law(y + (x - y), x)
    yield law(x - (x - y), y)
    yield law(x - (x + y), -y)
    yield law(x - (y + x), -y)
    yield law((x - y) - x, -y)
    yield law(u + u, u * 2)
    yield law(u * a + u, u * (a + 1))
    yield law(u + u * a, u * (a + 1))
    yield law(u * a - u, u * (a - 1))
    yield law(u - u * a, u * (1 - a))
    yield law(x * a + x * b, x * (a + b))
    yield law(x * a - x * b, x * (a - b))


def product_laws() -> Iterator[Law]:
    yield law((x * a) * b, x * (a * b))
    yield law((u * a) * v, (u * v) * a)
    yield law(u * (v * a), (u * v) * a)
    yield law((-x) * a, x * -a)
    yield law(-(x * a), x * -a)
    yield law((x + a) * b, x * b + a * b)
    yield law((x - a) * b, x * b - a * b)
    yield law((a - x) * b, a * b - x * b)


def bit_laws() -> Iterator[Law]:
    """Shifts and masks become the arithmetic they are, for which there are more laws."""
    yield law(x << a, x * (Const(1) << a), lambda a: 0 <= a < 63)
    yield law(x >> a, x // (Const(1) << a), lambda a: 0 <= a < 63)
    yield law(x & a, x % (a + 1), lambda a: _power_of_two(a + 1))
    yield law((x & a) & b, x & (a & b))
    yield law((x | a) | b, x | (a | b))
    yield law((x ^ a) ^ b, x ^ (a ^ b))
    yield law((x ^ y) ^ x, y)
    yield law((x ^ y) ^ y, x)
    yield law(x ^ (x ^ y), y)
    yield law(x ^ (y ^ x), y)


def division_laws() -> Iterator[Law]:
    """Quotients and remainders by constants: the heart of index arithmetic."""
    yield law((x * a) // b, x * (a // b), lambda a, b: b != 0 and a % b == 0)
    yield law((x * a) // b, x // (b // a), lambda a, b: a > 0 and b % a == 0)
    yield law((x * a) % b, 0, lambda a, b: b != 0 and a % b == 0)
    yield law((x * a) % b, (x % (b // a)) * a, lambda a, b: 0 < a < b and b % a == 0)
    for several, divided in (
        (x * a + y, x * (a // b) + y // b),
        (y + x * a, y // b + x * (a // b)),
        (y - x * a, y // b - x * (a // b)),
        (y + a, y // b + a // b),
        (y - a, y // b - a // b),
    ):
        yield law(several // b, divided, lambda a, b: b != 0 and a % b == 0)
        yield law(several % b, y % b, lambda a, b: b != 0 and a % b == 0)
    yield law((x + a) % b, (x + a % b) % b, lambda a, b: b > 0 and not 0 <= a < b)
    yield law((x - a) % b, (x + (-a) % b) % b, lambda b: b > 0)
    yield law((x // a) // b, x // (a * b), lambda b: b > 0)
    yield law((x % a) % b, x % b, lambda a, b: b != 0 and a % b == 0)
    yield law((x % a + y) % b, (x + y) % b, lambda a, b: b != 0 and a % b == 0)
    yield law((y + x % a) % b, (y + x) % b, lambda a, b: b != 0 and a % b == 0)
    yield law((y - x % a) % b, (y - x) % b, lambda a, b: b != 0 and a % b == 0)
    yield law(((x % a) * c) % b, (x * c) % b, lambda a, b, c: b != 0 and a * c % b == 0)
    yield law(((x % a) * c + y) % b, (x * c + y) % b, lambda a, b, c: b != 0 and a * c % b == 0)
    yield law((y + (x % a) * c) % b, (y + x * c) % b, lambda a, b, c: b != 0 and a * c % b == 0)
    yield law((x // a) * a + x % a, x)
    yield law(x % a + (x // a) * a, x)
    yield law(x - (x // a) * a, x % a)
    yield law(((x // a) % b) * a + x % a, x % (a * b), lambda a, b: a > 0 and b > 0)
    yield law(x % a + ((x // a) % b) * a, x % (a * b), lambda a, b: a > 0 and b > 0)


def range_laws() -> Iterator[Law]:
    """Quotients and remainders of values that are known to be small."""
    yield law(x % y, x, lambda x, y: x.low >= 0 and x.high < y.low)
    yield law(x % a, x - a, lambda x, a: 0 < a <= x.low and x.high < 2 * a)
    yield law(x % a, x + a, lambda x, a: a > 0 and -a <= x.low and x.high < 0)
    for several in (x * a + y, y + x * a):
        yield law(
            several // b,
            x // (b // a),
            lambda a, b, y: 0 < a <= b and b % a == 0 and y.low >= 0 and y.high < a,
        )
        yield law(
            several % b,
            (x % (b // a)) * a + y,
            lambda a, b, y: 0 < a < b and b % a == 0 and y.low >= 0 and y.high < a,
        )


def condition_laws() -> Iterator[Law]:
    """Conditions beside one that always holds, or never."""
    for both in (x.and_(1), Const(1).and_(x), x.or_(0), Const(0).or_(x)):
        yield law(both, x, _is_truth)


def truth_laws() -> Iterator[Law]:
    for op, opposite in _OPPOSITE.items():
        yield law(Binary(op, x, y).not_(), Binary(opposite, x, y))
        yield law(Binary(op, x, x), 1 if op in ("<=", ">=", "==") else 0)
        yield law(Binary(op, x + a, b), Binary(op, x, b - a))
        yield law(Binary(op, x - a, b), Binary(op, x, b + a))
    for op in _each("==", "!="):
        yield law(Binary(op, x - y, Const(0)), Binary(op, x, y))
    yield law(x.not_().not_(), x.ne(0))
    yield law(x.ne(0), x, _is_truth)
    yield law(x.eq(1), x, _is_truth)
    yield law(x.eq(0), x.not_(), _is_truth)
    yield law(x.ne(1), x.not_(), _is_truth)
    yield law(x.and_(0), 0)
    yield law(x.and_(a), x.ne(0), lambda a: a != 0)
    yield law(x.or_(0), x.ne(0))
    yield law(x.or_(a), 1, lambda a: a != 0)
    for both in (x.and_(x), x.or_(x)):
        yield law(both, x.ne(0))


def select_laws() -> Iterator[Law]:
    yield law(select(x, y, z), y, lambda x: x.low > 0 or x.high < 0)
    yield law(select(0, y, z), z)
    yield law(select(x, y, y), y)
    yield law(select(x, 1, 0), x.ne(0))
    yield law(select(x, 0, 1), x.eq(0))
    yield law(select(x.ne(0), y, z), select(x, y, z))
    yield law(select(x.eq(0), y, z), select(x, z, y))
    yield law(select(x.not_(), y, z), select(x, z, y))


GROUPS: dict[str, Callable[[], Iterator[Law]]] = {
    "neutral": neutral_laws,
    "condition": condition_laws,
    "order": order_laws,
    "sum": sum_laws,
    "product": product_laws,
    "bit": bit_laws,
    "division": division_laws,
    "range": range_laws,
    "truth": truth_laws,
    "select": select_laws,
}
