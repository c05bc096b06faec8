"""Arrays of elements for a reference in NumPy: its functions compute with them instead of floats.

Whole numbers, shapes, indices and masks are NumPy's own. A constant that is no float of the
kernel's type is taken for the float next to it, and listed. What is not followed is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import e as euler
from math import log, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.field.elements import Elements, NotKnown

Array = npt.NDArray[Any]
LOG2_E, LN_2 = log2(euler), log(2)


@dataclass(slots=True)
class Literals:
    """The floats of a kernel's type that stand for a reference's constants."""

    elements: Elements
    dtype: str = "f4"
    taken: dict[float, float] = field(default_factory=dict)
    inverted: bool = False  # a quotient by a constant is a product with the constant below it

    def elements_of(self, values: Array) -> Array:
        doubles = np.asarray(values, np.float64)
        near = doubles.astype(self.dtype).astype(np.float64)
        for value, taken in zip(
            doubles.reshape(-1).tolist(), near.reshape(-1).tolist(), strict=True
        ):
            if value != taken and value == value:
                self.taken[value] = taken
        return self.elements.constants(near).reshape(doubles.shape)


class Exact(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of elements, by their numbers."""

    __array_priority__ = 1000

    def __init__(self, literals: Literals, numbers: Array) -> None:
        self.literals, self.numbers = literals, numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @property
    def ndim(self) -> int:
        return self.numbers.ndim

    @property
    def size(self) -> int:
        return self.numbers.size

    @property
    def T(self) -> Exact:  # noqa: N802 - NumPy's name
        return self._with(self.numbers.T)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.literals.dtype)

    def _with(self, numbers: Array) -> Exact:
        return Exact(self.literals, numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Exact:
        return self._with(np.asarray(self.numbers[index]))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.numbers[index] = self._numbers(value)

    def __bool__(self) -> bool:
        raise NotKnown("a branch of the reference that depends on data")

    __float__ = __int__ = __index__ = __bool__

    def __iter__(self) -> Any:
        return (self[n] for n in range(len(self)))

    def astype(self, *_: Any, **__: Any) -> Exact:
        """Rounding is ignored."""
        return self._with(self.numbers.copy())

    def copy(self) -> Exact:
        return self._with(self.numbers.copy())

    def reshape(self, *shape: Any, **how: Any) -> Exact:
        return self._with(self.numbers.reshape(*shape, **how))

    def transpose(self, *axes: Any) -> Exact:
        return self._with(self.numbers.transpose(*axes))

    def swapaxes(self, first: int, second: int) -> Exact:
        return self._with(self.numbers.swapaxes(first, second))

    def ravel(self) -> Exact:
        return self._with(self.numbers.reshape(-1))

    flatten = ravel

    def sum(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Exact:
        return reduced(self, _plus, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Exact:
        total = self.sum(axis, keepdims)
        found: Exact = total / float(self.size // max(1, total.size))
        return found

    def var(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Exact:
        far = self - self.mean(axis, keepdims=True)
        found: Exact = (far * far).mean(axis, keepdims)
        return found

    def max(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Exact:
        return reduced(self, _largest, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Exact:
        return reduced(self, _smallest, axis, keepdims)

    def dot(self, other: Any) -> Exact:
        return matmul(self, other)

    def _numbers(self, value: Any) -> Array:
        return value.numbers if isinstance(value, Exact) else self.literals.elements_of(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **how: Any) -> Any:
        if method == "reduce":
            found = {"add": _plus, "maximum": _largest, "minimum": _smallest}.get(ufunc.__name__)
            if found is not None:
                axis = how.get("axis", 0)
                return reduced(given[0], found, axis, how.get("keepdims", False))
        if method != "__call__" or how.get("out") is not None or ufunc.__name__ not in FUNCTIONS:
            if ufunc.__name__ == "matmul" and method == "__call__":
                return matmul(*given)
            raise NotKnown(f"numpy.{ufunc.__name__} of inputs")
        operands = np.broadcast_arrays(*(self._numbers(each) for each in given))
        flat = [each.reshape(-1) for each in operands]
        made = FUNCTIONS[ufunc.__name__](self.literals, *flat)
        return self._with(made.reshape(operands[0].shape))

    def __array_function__(self, function: Any, _: Any, given: Any, how: Any) -> Any:
        found = ARRAY_FUNCTIONS.get(function.__name__)
        if found is None:
            raise NotKnown(f"numpy.{function.__name__} of inputs")
        return found(*given, **how)


Function = Callable[..., Array]


def _plus(e: Elements, x: Array, y: Array) -> Array:
    return e.add(x, y)


def _largest(e: Elements, x: Array, y: Array) -> Array:
    return e.extreme(x, y, False)


def _smallest(e: Elements, x: Array, y: Array) -> Array:
    return e.extreme(x, y, True)


def _exp(literals: Literals, x: Array) -> Array:
    e = literals.elements
    return e.exp2(e.mul(x, np.broadcast_to(literals.elements_of(np.array(LOG2_E)), x.shape)))


def _inverse(literals: Literals, x: Array) -> Array:
    """One over something; of a constant rounded, too, where that is asked for."""
    e = literals.elements
    constants = e["constant"][x]
    if not literals.inverted or np.isnan(constants).any() or not (constants != 0).all():
        return e.inverse(x)
    return literals.elements_of(1 / constants)


def _named(name: str) -> Function:
    return lambda literals, x: literals.elements.function(name, x)


FUNCTIONS: dict[str, Function] = {
    "add": lambda s, x, y: s.elements.add(x, y),
    "subtract": lambda s, x, y: s.elements.add(x, s.elements.neg(y)),
    "multiply": lambda s, x, y: s.elements.mul(x, y),
    "divide": lambda s, x, y: s.elements.mul(x, _inverse(s, y)),
    "negative": lambda s, x: s.elements.neg(x),
    "positive": lambda _, x: x,
    "square": lambda s, x: s.elements.mul(x, x),
    "reciprocal": lambda s, x: s.elements.inverse(x),
    "exp": _exp, "exp2": lambda s, x: s.elements.exp2(x),
    "maximum": lambda s, x, y: _largest(s.elements, x, y),
    "minimum": lambda s, x, y: _smallest(s.elements, x, y),
    "absolute": _named("abs"), "sqrt": _named("sqrt"), "sin": _named("sin"), "cos": _named("cos"),
    "tanh": _named("tanh"), "log2": _named("lg2"), "log": lambda s, x: s.elements.mul(
        s.elements.function("lg2", x), np.broadcast_to(s.elements_of(np.array(LN_2)), x.shape)
    ),
}  # fmt: skip


def reduced(x: Exact, join: Function, axis: Any, keepdims: bool) -> Exact:
    """All along some axes, two at a time."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    chosen = sorted(each % x.ndim for each in axes)
    rest = [n for n in range(x.ndim) if n not in chosen]
    outer = [x.shape[n] for n in rest]
    rows = x.numbers.transpose(*chosen, *rest).reshape(-1, int(np.prod(outer, dtype=int)))
    e = x.literals.elements
    if not len(rows):
        rows = x.literals.elements_of(np.zeros((1, rows.shape[1])))
    while len(rows) > 1:
        half = len(rows) // 2
        made = join(e, rows[:half].reshape(-1), rows[half : 2 * half].reshape(-1))
        rows = np.concatenate([made.reshape(half, -1), rows[2 * half :]])
    shape = [1 if n in chosen else x.shape[n] for n in range(x.ndim)] if keepdims else outer
    return Exact(x.literals, rows[0].reshape(shape))


def _literals(*given: Any) -> Literals:
    return next(each.literals for each in given if isinstance(each, Exact))


def _both(*given: Any) -> list[Array]:
    literals = _literals(*given)
    return [g.numbers if isinstance(g, Exact) else literals.elements_of(g) for g in given]


def matmul(a: Any, b: Any) -> Exact:
    literals = _literals(a, b)
    x, y = _both(a, b)
    left, right = x.ndim == 1, y.ndim == 1
    x, y = x[None, :] if left else x, y[:, None] if right else y
    outer = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (np.broadcast_to(each, (*outer, *each.shape[-2:])) for each in (x, y))
    zero = literals.elements_of(np.zeros(()))
    before = np.broadcast_to(zero, (*outer, x.shape[-2], y.shape[-1]))
    made = literals.elements.products(x, np.swapaxes(y, -1, -2), before)
    made = made[..., 0, :] if left else made
    return Exact(literals, made[..., 0] if right else made)


def einsum(subscripts: str, *given: Any, **_: Any) -> Exact:
    """Products of two or more arrays, summed over the letters that the result lacks."""
    literals = _literals(*given)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    names = inputs.split(",")
    if not arrow or "." in subscripts or any(len(set(n)) < len(n) for n in names):
        raise NotKnown(f"numpy.einsum of {subscripts!r}")
    arrays = _both(*given)
    sizes = dict(zip("".join(names), (n for x in arrays for n in x.shape), strict=True))
    total, have = arrays[0], names[0]
    for number, (array, name) in enumerate(zip(arrays[1:], names[1:], strict=True), 2):
        later = set(output).union(*names[number:])
        total, have = _contracted(literals, (total, have), (array, name), later, sizes)
    summed = "".join(n for n in have if n not in output)
    if summed:
        axes = tuple(have.index(n) for n in summed)
        total = reduced(Exact(literals, total), _plus, axes, False).numbers
        have = "".join(n for n in have if n in output)
    return Exact(literals, np.transpose(total, [have.index(n) for n in output]))


def _contracted(
    literals: Literals, x: tuple[Array, str], y: tuple[Array, str], later: set[str],
    sizes: dict[str, int],
) -> tuple[Array, str]:  # fmt: skip
    (a, left), (b, right) = x, y
    batch = [n for n in left if n in right and n in later]
    over = [n for n in left if n in right and n not in later]
    rows, columns = (
        [n for n in own if n not in other] for own, other in ((left, right), (right, left))
    )

    def folded(array: Array, name: str, own: list[str]) -> Array:
        order = [name.index(n) for n in (*batch, *own, *over)]
        count = [int(np.prod([sizes[n] for n in part], dtype=int)) for part in (batch, own, over)]
        return array.transpose(order).reshape(count)

    p, q = folded(a, left, rows), folded(b, right, columns)
    zero = np.broadcast_to(literals.elements_of(np.zeros(())), (p.shape[0], p.shape[1], q.shape[1]))
    made = literals.elements.products(p, q, zero)
    have = [*batch, *rows, *columns]
    return made.reshape([sizes[n] for n in have]), "".join(have)


def where(mask: Any, x: Any, y: Any) -> Exact:
    """By a mask that does not depend on inputs."""
    if isinstance(mask, Exact):
        raise NotKnown("numpy.where of a condition on inputs")
    return Exact(_literals(x, y), np.where(mask, *_both(x, y)))


def _joined(fn: Any) -> Any:
    def joined(arrays: Sequence[Any], *more: Any, **how: Any) -> Exact:
        return Exact(_literals(*arrays), fn(_both(*arrays), *more, **how))

    return joined


def _moved(fn: Any) -> Any:
    return lambda x, *more, **how: Exact(x.literals, fn(x.numbers, *more, **how))


def _filled(value: float) -> Any:
    def filled(x: Exact, *_: Any, **__: Any) -> Exact:
        return Exact(
            x.literals, np.broadcast_to(x.literals.elements_of(np.array(value)), x.shape).copy()
        )

    return filled


ARRAY_FUNCTIONS: dict[str, Any] = {
    "sum": lambda x, *a, **k: x.sum(*a, **k), "mean": lambda x, *a, **k: x.mean(*a, **k),
    "var": lambda x, *a, **k: x.var(*a, **k), "max": lambda x, *a, **k: x.max(*a, **k),
    "amax": lambda x, *a, **k: x.max(*a, **k), "min": lambda x, *a, **k: x.min(*a, **k),
    "amin": lambda x, *a, **k: x.min(*a, **k), "einsum": einsum, "dot": matmul, "where": where,
    "concatenate": _joined(np.concatenate), "stack": _joined(np.stack),
    **{fn.__name__: _moved(fn) for fn in (
        np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.ravel,
        np.broadcast_to, np.flip, np.roll, np.repeat, np.tile, np.take, np.diagonal,
    )},
    "zeros_like": _filled(0.0), "ones_like": _filled(1.0),
}  # fmt: skip
