"""Scalars of a specification: what a function on arrays of symbols may do with them, and what not.

`a + b + c` is one fold of three terms and `a * b` one of two; so it is with `&`, `|`, `^` and with
NumPy's minimum and maximum. Everything else is refused, and a refusal counts even if the function
catches it: what it does then is not what it does on numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.sketch.term.ir import Term, fold_of
from warploom.sketch.term.limits import MAX_NESTING
from warploom.sketch.term.operator import NEUTRAL
from warploom.sketch.term.show import show_term

Function = Callable[[Any], Any]

_MAY = (
    "goals index, slice and reshape inputs and fold their elements; for a mean, or another "
    "function of a fold, use spec.finalized"
)

_NOTHING_ELSE = "a specification folds elements with + * & | ^, minima and maxima, and nothing else"
_OBJECTS = "make it with np.zeros(…, object)"
_VALUE = (
    "a specification cannot depend on the value of an input",
    "decide by position (loop counters) instead; spec.minimum and spec.maximum fold",
)
_NUMBERS = (0, 0.0, Fraction(0))  # what the same function is run on

_INDEXING = ("at", "reduceat")  # methods of NumPy's whose second argument says where

_refusals: ContextVar[list[CheckError] | None] = ContextVar("refusals", default=None)


@contextmanager
def refusals() -> Iterator[list[CheckError]]:
    """Everything that is refused inside, whether the function goes on or not."""
    kept: list[CheckError] = []
    token = _refusals.set(kept)
    try:
        yield kept
    finally:
        _refusals.reset(token)


def refused(message: str, advice: str = "") -> CheckError:
    """The error to raise where a specification asks for what it cannot have."""
    error = CheckError(message, advice=advice)
    kept = _refusals.get()
    if kept is not None:
        kept.append(error)
    return error


class Sym:
    """A scalar of a specification: an input's element, or a fold of others."""

    __slots__ = ("_depth", "_function", "_items", "_known", "_operator", "_term")

    def __init__(self, operator: str, items: tuple[Sym, ...], term: Term | None = None) -> None:
        self._depth: int = 1 + max((item._depth for item in items), default=-1)
        if self._depth > MAX_NESTING:  # sums of products of sums …: no kernel has so many
            raise refused(f"folds nest at most {MAX_NESTING} deep")
        self._operator = operator
        self._items = items
        self._term = term
        self._function: Function | None = None
        # Names of functions inside, with whether it was said what they compute.
        self._known: dict[str, bool] = {}
        for item in items:
            self._known |= item._known

    @property
    def term(self) -> Term:
        if self._term is None:
            self._term = fold_of([item.term for item in self._items], self._operator)
        return self._term

    def __add__(self, other: Any) -> Any:
        return other + self if isinstance(other, np.ndarray) else _combine("+", self, other)

    def __mul__(self, other: Any) -> Any:
        return other * self if isinstance(other, np.ndarray) else _combine("*", self, other)

    def __and__(self, other: Any) -> Any:
        return other & self if isinstance(other, np.ndarray) else _combine("&", self, other)

    def __or__(self, other: Any) -> Any:
        return other | self if isinstance(other, np.ndarray) else _combine("|", self, other)

    def __xor__(self, other: Any) -> Any:
        return other ^ self if isinstance(other, np.ndarray) else _combine("^", self, other)

    # A fold is a multiset, so the order of the operands does not matter.
    __radd__ = __add__
    __rmul__ = __mul__
    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def _value(self, *_: object) -> Any:
        raise refused(*_VALUE)

    # Equality and hashing, too: by identity no two elements would ever be equal.
    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __hash__ = _value

    def _no_fold(self, *_: object) -> Any:
        raise refused(_NOTHING_ELSE, _MAY)

    __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _no_fold
    __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __invert__ = _no_fold
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __matmul__ = __rmatmul__ = _no_fold
    __divmod__ = __rdivmod__ = __round__ = __trunc__ = __floor__ = __ceil__ = _no_fold
    __float__ = __int__ = __complex__ = __index__ = _no_fold

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and any(hasattr(number, name) for number in _NUMBERS):
            raise refused(f"{_NOTHING_ELSE}: they have no '{name}'", _MAY)
        raise AttributeError(name)  # as numbers do, so that nothing can tell them apart

    def __format__(self, how: str) -> str:
        return str(self._no_fold()) if how else repr(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _by_numpy(ufunc, method, inputs, options)

    def __repr__(self) -> str:
        return show_term(self.term, 200)


class Symbols(np.ndarray):
    """An array of scalars, of which NumPy's minimum and maximum fold like its sum."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _by_numpy(ufunc, method, inputs, options)


def _by_numpy(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    _check_ufunc(ufunc)
    plain = [_operand(part) for part in inputs]
    if method in _INDEXING:
        plain[1] = inputs[1]
    if method == "at" and getattr(getattr(inputs[0], "dtype", None), "kind", "") != "O":
        raise refused("only an array of objects can take up elements of the inputs", _OBJECTS)
    if "out" in options:  # in place: seen as plain, lest it comes back here
        options["out"] = tuple(np.asarray(part).view(np.ndarray) for part in options["out"])
    result = getattr(_FOLDING.get(ufunc, ufunc), method)(*plain, **options)
    return result.view(Symbols) if isinstance(result, np.ndarray) else result


def _operand(part: Any) -> Any:
    """As NumPy takes apart what is an object; a scalar of its own would come back here."""
    own = part.item() if isinstance(part, np.generic) else part
    return np.asarray(own, object).view(np.ndarray)


def _check_ufunc(ufunc: Any) -> None:
    """Refuses NumPy's functions that are no folds; one made of a Python function calls that."""
    name = ufunc.__name__
    if ufunc in _COMPARING:
        raise refused(*_VALUE)
    if getattr(np, name, None) is ufunc and ufunc not in _UNDERSTOOD:
        raise refused(f"{_NOTHING_ELSE}, not with NumPy's '{name}'", _MAY)


def _combine(operator: str, left: Any, right: Any) -> Any:
    """One fold of both sides; folds of the same operator merge into it."""
    if isinstance(left, Sym) and isinstance(right, Sym):
        return Sym(operator, (*parts_of(operator, left), *parts_of(operator, right)))
    some, other = (left, right) if isinstance(left, Sym) else (right, left)
    if is_number(other) and other == NEUTRAL[operator]:
        return Sym(operator, parts_of(operator, some))
    raise refused(
        f"a specification has no 'x {operator} {other!r:.40}'",
        "constants are inputs too; only 0 + x (a sum) and 1 * x (a product) begin a fold",
    )


_FOLDING = {
    # The identity says that the order does not matter.
    np.minimum: np.frompyfunc(partial(_combine, "min"), 2, 1, identity=None),
    np.maximum: np.frompyfunc(partial(_combine, "max"), 2, 1, identity=None),
}
_UNDERSTOOD = frozenset((
    *_FOLDING, np.add, np.multiply, np.square, np.matmul,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor,
))  # fmt: skip
_COMPARING = frozenset((
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.sign,
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.fmin, np.fmax,
))  # fmt: skip


def parts_of(operator: str, value: Sym) -> tuple[Sym, ...]:
    return value._items if value._operator == operator else (value,)


def is_number(value: Any) -> bool:
    return isinstance(value, Real)
