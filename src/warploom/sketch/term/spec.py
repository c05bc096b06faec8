"""Specifications in plain Python: a function on arrays runs on symbols and becomes a goal.

    >>> x = symbols((4,))
    >>> total(x[i] for i in range(3))
    (0, 1, 2)

`a + b + c` is one fold of three terms and `a * b` one of two; a sum of products nests. A reduction
that started at its neutral element is a fold even of one term, just as a kernel's accumulator is:
`0 + x`, hence `sum([x])`, `total([x])` and `acc = 0; acc += x`, is the fold `(x,)`, not `x`; so is
`1 * x`. NumPy's own `np.sum` and `@` start at the first element instead, so over one term they give
that term: use `total` where a reduction may have length one. A cell left at `0` is zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.sketch.term.ir import Shape, Symbol, Term, Zero, fold_of
from warploom.sketch.term.limits import MAX_NESTING, check_shape
from warploom.sketch.term.show import show_term

_NEUTRAL = {"+": 0, "*": 1}


class Sym:
    """A scalar of a specification: an input's element, a sum or a product of others."""

    __slots__ = ("_depth", "_items", "_operator", "_term")

    def __init__(self, operator: str, items: tuple[Sym, ...], term: Term | None = None) -> None:
        self._depth: int = 1 + max((item._depth for item in items), default=-1)
        if self._depth > MAX_NESTING:  # sums of products of sums …: no kernel has so many
            raise CheckError(f"folds nest at most {MAX_NESTING} deep")
        self._operator = operator
        self._items = items
        self._term = term

    @property
    def term(self) -> Term:
        if self._term is None:
            self._term = fold_of([item.term for item in self._items])
        return self._term

    def __add__(self, other: Any) -> Any:
        return other + self if isinstance(other, np.ndarray) else _combine("+", self, other)

    def __mul__(self, other: Any) -> Any:
        return other * self if isinstance(other, np.ndarray) else _combine("*", self, other)

    # A fold is a multiset, so the order of the operands does not matter.
    __radd__ = __add__
    __rmul__ = __mul__

    def __bool__(self) -> bool:
        raise CheckError(
            "a specification cannot depend on the value of an input",
            advice="decide by position (loop counters) instead",
        )

    def __repr__(self) -> str:
        return show_term(self.term, 200)


def _combine(operator: str, left: Sym, right: Any) -> Sym:
    """One fold of both sides; folds of the same operator merge into it."""
    if isinstance(right, Sym):
        return Sym(operator, (*_parts(operator, left), *_parts(operator, right)))
    if isinstance(right, (int, np.integer)) and int(right) == _NEUTRAL[operator]:
        return Sym(operator, _parts(operator, left))
    raise CheckError(
        f"a specification has no 'x {operator} {right!r}'",
        advice="constants are inputs too; only 0 + x (a sum) and 1 * x (a product) begin a fold",
    )


def _parts(operator: str, value: Sym) -> tuple[Sym, ...]:
    return value._items if value._operator == operator else (value,)


def _flat(items: Iterable[Any]) -> Iterator[Sym]:
    """The scalars in nested arrays and iterables; zeros are nothing."""
    for item in items:
        if isinstance(item, Sym):
            yield item
        elif isinstance(item, Iterable) and not isinstance(item, (str, bytes)):
            yield from _flat(item)
        elif not (isinstance(item, (int, np.integer)) and int(item) == 0):
            raise CheckError(f"cannot fold {item!r}", advice="fold elements of the inputs")


def total(items: Iterable[Any]) -> Sym:
    """The sum of everything in `items`: a fold even of one item."""
    return Sym("+", tuple(part for item in _flat(items) for part in _parts("+", item)))


def product(items: Iterable[Any]) -> Sym:
    """The product of everything in `items`: a fold even of one item."""
    return Sym("*", tuple(part for item in _flat(items) for part in _parts("*", item)))


def fold(items: Iterable[Any]) -> Sym:
    """A fold that never merges with another: partial sums that stay apart, or any operator."""
    return Sym("fold", tuple(_flat(items)))


def symbols(shape: Shape, start: int = 0) -> npt.NDArray[np.object_]:
    """An array of fresh symbols start, start + 1, … in row-major order."""
    check_shape(shape)
    array = np.empty(math.prod(shape), object)
    array[:] = [Sym("", (), Symbol(start + i)) for i in range(len(array))]
    return array.reshape(shape)


def terms_of(value: Any) -> tuple[Shape, tuple[Term, ...]]:
    """What a specification returned: arrays or nested lists of scalars, 0 for zero."""
    array = np.asarray(value, object)
    if array.ndim == 0 and not isinstance(value, (Sym, int)):
        raise CheckError(
            f"a specification returns arrays of its inputs' elements, got {value!r:.80}"
        )
    return array.shape, tuple(_term_of(cell) for cell in array.reshape(-1).tolist())


def _term_of(cell: Any) -> Term:
    if isinstance(cell, Sym):
        return cell.term
    if isinstance(cell, (int, np.integer)) and int(cell) == 0:
        return Zero()
    raise CheckError(
        f"a specification returned {cell!r:.80} as a cell",
        advice="cells are elements of the inputs, their sums and products, or 0",
    )
