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
MOST_POWER = 64
MOST_WHOLE = 1 << 53  # doubles hold whole numbers up to it


@dataclass(slots=True)
class Literals:
    """The floats of a kernel's type that stand for a reference's constants."""

    elements: Elements
    dtype: str = "f4"
    taken: dict[float, float] = field(default_factory=dict)
    inverted: bool = False  # a quotient by a constant is a product with the constant below it
    log2_e: float | None = None  # as the kernel has it, where it is not the float next to it
    among: Array | None = None  # the floats of that type that are taken; others are of `beyond`
    beyond: str = "f8"

    def elements_of(self, values: Array) -> Array:
        """Constants as elements; those that are no normal numbers of the type stay as they are."""
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise NotKnown(f"constants of the type {given.dtype}")
        doubles = given.astype(np.float64)
        if given.dtype.kind in "iu" and (np.abs(doubles) > MOST_WHOLE).any():
            raise NotKnown("a whole number beyond 2^53 in the reference")
        with np.errstate(all="ignore"):
            near = _nearest(doubles, self.dtype)
            if self.among is not None:
                other = _nearest(doubles, self.beyond)
                near = np.where(np.isin(near, self.among), near, other)
        for value, taken in zip(
            doubles.reshape(-1).tolist(), near.reshape(-1).tolist(), strict=True
        ):
            if value != taken and value == value:
                self.taken[value] = taken
        return self.elements.constants(near).reshape(doubles.shape)


def _nearest(values: Array, dtype: str) -> Array:
    """The floats of a type; but a number that has no normal one there as it is."""
    rounded = values.astype(dtype).astype(np.float64)
    unit = np.finfo(dtype).eps / 2
    return np.where(np.abs(rounded - values) <= unit * np.abs(values), rounded, values)


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

    def __float__(self) -> float:
        what = "an input as a number of Python, or in an array that was made without inputs"
        raise NotKnown(f"{what}; np.zeros_like makes one of them")

    __int__ = __index__ = __float__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what NumPy looks for
            raise AttributeError(name)
        raise NotKnown(f"the method or attribute '{name}' of inputs")

    def __iter__(self) -> Any:
        return (self[n] for n in range(len(self)))

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Exact:
        """Rounding between floats is ignored; to whole numbers is another function."""
        if np.dtype(dtype).kind != "f":
            raise NotKnown(f"a conversion to {np.dtype(dtype)} in the reference")
        return self._with(self.numbers.copy())

    def copy(self) -> Exact:
        return self._with(self.numbers.copy())

    def reshape(self, *shape: Any, **how: Any) -> Exact:
        return self._with(self.numbers.reshape(*shape, **how))

    def transpose(self, *axes: Any) -> Exact:
        return self._with(self.numbers.transpose(*axes))

    def swapaxes(self, first: int, second: int) -> Exact:
        return self._with(self.numbers.swapaxes(first, second))

    def ravel(self, order: Any = "C") -> Exact:
        return self._with(self.numbers.ravel(order))

    def flatten(self, order: Any = "C") -> Exact:
        return self._with(self.numbers.flatten(order))

    # Parameters are NumPy's, in its order, as its functions hand them on.

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        **more: Any,
    ) -> Exact:  # fmt: skip
        _refuse("sum", out, more, dtype)
        return reduced(self, _plus, axis, keepdims)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        **more: Any,
    ) -> Exact:  # fmt: skip
        total = self.sum(axis, dtype, out, keepdims, **more)
        found: Exact = total / float(self.size // max(1, total.size))
        return found

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, **more: Any,
    ) -> Exact:  # fmt: skip
        far = self - self.mean(axis, dtype, out, keepdims=True, **more)
        total = (far * far).sum(axis, keepdims=keepdims)
        found: Exact = total / (float(self.size // max(1, total.size)) - ddof)
        return found

    def std(self, *given: Any, **how: Any) -> Exact:
        spread: Any = self.var(*given, **how)
        found: Exact = np.sqrt(spread)
        return found

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, **more: Any) -> Exact:
        _refuse("max", out, more)
        return reduced(self, _largest, axis, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, **more: Any) -> Exact:
        _refuse("min", out, more)
        return reduced(self, _smallest, axis, keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Exact:
        _refuse("cumsum", out, {}, dtype)
        rows = self.numbers.reshape(-1) if axis is None else np.moveaxis(self.numbers, axis, 0)
        made = [rows[:1], *(rows[:0] for _ in rows[1:])]
        for n in range(1, len(rows)):
            now = self.literals.elements.add(made[n - 1].reshape(-1), rows[n].reshape(-1))
            made[n] = now.reshape(rows[:1].shape)
        total = np.concatenate(made)
        return self._with(total if axis is None else np.moveaxis(total, 0, axis))

    def dot(self, other: Any) -> Exact:
        return dot(self, other)

    def clip(self, *bounds: Any, **how: Any) -> Any:
        return clip(self, *bounds, **how)

    def _numbers(self, value: Any) -> Array:
        return value.numbers if isinstance(value, Exact) else self.literals.elements_of(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **how: Any) -> Any:
        name = ufunc.__name__
        if method == "reduce" and name in REDUCTIONS and set(how) <= {"axis", "keepdims"}:
            given, how = (given[0], *given[1:]), {"axis": 0, **how}
            if len(given) == 1:
                return reduced(given[0], REDUCTIONS[name], how["axis"], how.get("keepdims", False))
        if method != "__call__" or how or name not in (*FUNCTIONS, "matmul", "power"):
            options = "".join(f" with {each}" for each in how)
            raise NotKnown(f"numpy.{name}{options} of inputs")
        if name == "matmul":
            return matmul(*given)
        if name == "power":
            return power(*given)
        operands = np.broadcast_arrays(*(self._numbers(each) for each in given))
        flat = [each.reshape(-1) for each in operands]
        made = FUNCTIONS[name](self.literals, *flat)
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


REDUCTIONS: dict[str, Function] = {
    "add": _plus, "maximum": _largest, "minimum": _smallest,
}  # fmt: skip


def _refuse(name: str, out: Any, more: dict[str, Any], dtype: Any = None) -> None:
    """Options that are not followed."""
    kind = "f" if dtype is None else np.dtype(dtype).kind
    words = [*(["out"] if out is not None else []), *more, *(["dtype"] if kind != "f" else [])]
    if words:
        raise NotKnown(f"numpy.{name} of inputs with {', '.join(words)}")


def _exp(literals: Literals, x: Array) -> Array:
    e = literals.elements
    if literals.log2_e is None:
        scale = literals.elements_of(np.array(LOG2_E))
    else:
        literals.taken[LOG2_E] = literals.log2_e
        scale = e.constants(np.array(literals.log2_e)).reshape(())
    return e.exp2(e.mul(x, np.broadcast_to(scale, x.shape)))


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
    "positive": lambda _, x: x.copy(),
    "square": lambda s, x: s.elements.mul(x, x),
    "reciprocal": lambda s, x: s.elements.inverse(x),
    "exp": _exp, "exp2": lambda s, x: s.elements.exp2(x),
    "maximum": lambda s, x, y: _largest(s.elements, x, y),
    "minimum": lambda s, x, y: _smallest(s.elements, x, y),
    "absolute": _named("abs"), "sqrt": _named("sqrt"), "sin": _named("sin"), "cos": _named("cos"),
    "tanh": _named("tanh"), "log2": _named("lg2"), "log": lambda s, x: s.elements.mul(
        s.elements.function("lg2", x), np.broadcast_to(s.elements_of(np.array(LN_2)), x.shape)
    ),
    "expm1": lambda s, x: s.elements.add(_exp(s, x), s.elements_of(np.full(x.shape, -1.0))),
    "log1p": lambda s, x: FUNCTIONS["log"](
        s, s.elements.add(x, s.elements_of(np.ones(x.shape)))
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
    if not len(rows) and join is not _plus:
        raise NotKnown("an extremum of nothing")
    if not len(rows):
        rows = x.literals.elements_of(np.zeros((1, rows.shape[1])))
    while len(rows) > 1:
        half = len(rows) // 2
        made = join(e, rows[:half].reshape(-1), rows[half : 2 * half].reshape(-1))
        rows = np.concatenate([made.reshape(half, -1), rows[2 * half :]])
    shape = [1 if n in chosen else x.shape[n] for n in range(x.ndim)] if keepdims else outer
    return Exact(x.literals, rows[0].reshape(shape).copy())


def _literals(*given: Any) -> Literals:
    return next(each.literals for each in given if isinstance(each, Exact))


def joined(made: Array) -> Any:
    """An array of elements and numbers, one by one, as one of elements; others as they are."""
    listed = made.reshape(-1).tolist() if made.dtype.kind == "O" else []
    if not any(isinstance(each, Exact) for each in listed):
        return made
    if any(np.ndim(each.numbers if isinstance(each, Exact) else each) for each in listed):
        raise NotKnown("an array of arrays of inputs; np.stack makes one")
    return Exact(_literals(*listed), np.array(_both(*listed)).reshape(made.shape))


def _both(*given: Any) -> list[Array]:
    literals = _literals(*given)
    return [g.numbers if isinstance(g, Exact) else literals.elements_of(g) for g in given]


def dot(a: Any, b: Any) -> Exact:
    """A product of matrices and vectors; what NumPy makes of more dimensions is not followed."""
    shapes = [np.shape(each.numbers if isinstance(each, Exact) else each) for each in (a, b)]
    if not all(len(each) in (1, 2) for each in shapes):
        raise NotKnown("numpy.dot of what is no matrix or vector")
    return matmul(a, b)


def power(x: Any, exponent: Any) -> Any:
    """To a whole number, or half of one."""
    if isinstance(exponent, Exact) or np.ndim(exponent) or 2 * exponent != int(2 * exponent):
        raise NotKnown("numpy.power of inputs, but to a whole number or half of one")
    if abs(exponent) > MOST_POWER:
        raise NotKnown(f"numpy.power of inputs to {exponent}")
    twice = abs(int(2 * exponent))
    base = np.sqrt(x) if twice % 2 else x
    made = np.ones_like(x)
    for _ in range(twice if twice % 2 else twice // 2):
        made = made * base
    return 1 / made if exponent < 0 else made


def matmul(a: Any, b: Any) -> Exact:
    literals = _literals(a, b)
    x, y = _both(a, b)
    if not x.ndim or not y.ndim:
        raise NotKnown("numpy.matmul of a number")
    left, right = x.ndim == 1, y.ndim == 1
    x, y = x[None, :] if left else x, y[:, None] if right else y
    outer = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (np.broadcast_to(each, (*outer, *each.shape[-2:])) for each in (x, y))
    zero = literals.elements_of(np.zeros(()))
    before = np.broadcast_to(zero, (*outer, x.shape[-2], y.shape[-1]))
    made = literals.elements.products(x, np.swapaxes(y, -1, -2), before)
    made = made[..., 0, :] if left else made
    return Exact(literals, made[..., 0] if right else made)


def einsum(subscripts: str, *given: Any, **how: Any) -> Exact:
    """Products of two or more arrays, summed over the letters that the result lacks."""
    if set(how) - {"optimize"} or not isinstance(subscripts, str):
        raise NotKnown("numpy.einsum in this form")
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
        if set(how) - {"axis"}:
            raise NotKnown(f"numpy.{fn.__name__} of inputs with {', '.join(how)}")
        return Exact(_literals(*arrays), fn(_both(*arrays), *more, **how))

    return joined


def _moved(fn: Any) -> Any:
    return lambda x, *more, **how: Exact(x.literals, fn(x.numbers, *more, **how))


def full_like(x: Any, value: Any, dtype: Any = None, shape: Any = None, **how: Any) -> Exact:
    _refuse("zeros_like, ones_like or full_like", None, how, dtype)
    literals = _literals(x, value)
    numbers = value.numbers if isinstance(value, Exact) else literals.elements_of(np.array(value))
    return Exact(literals, np.broadcast_to(numbers, np.shape(x) if shape is None else shape).copy())


def _filled(value: float) -> Any:
    return lambda x, *more, **how: full_like(x, value, *more, **how)


def clip(
    x: Any, least: Any = None, most: Any = None, *, min: Any = None, max: Any = None, **how: Any
) -> Any:
    """Between two bounds, as NumPy has it: the upper one is applied last."""
    _refuse("clip", None, how)
    for bounds, fn in (((least, min), np.maximum), ((most, max), np.minimum)):
        for bound in bounds:
            x = x if bound is None else fn(x, bound)
    return x


def pad(x: Exact, width: Any, mode: Any = "constant", **how: Any) -> Exact:
    """With numbers around, zeros if none is said."""
    value = how.pop("constant_values", 0)
    if mode != "constant" or how or np.ndim(value):
        raise NotKnown("numpy.pad of inputs but with one number")
    around = int(x.literals.elements_of(np.array(value)))
    return Exact(x.literals, np.pad(x.numbers, width, constant_values=around))


def outer(x: Any, y: Any) -> Any:
    return np.ravel(x)[:, None] * np.ravel(y)[None, :]


def _triangle(fn: Any) -> Any:
    return lambda x, k=0: np.where(fn(np.ones(x.shape, bool), k), x, 0.0)


ARRAY_FUNCTIONS: dict[str, Any] = {
    "sum": lambda x, *a, **k: x.sum(*a, **k), "mean": lambda x, *a, **k: x.mean(*a, **k),
    "var": lambda x, *a, **k: x.var(*a, **k), "max": lambda x, *a, **k: x.max(*a, **k),
    "amax": lambda x, *a, **k: x.max(*a, **k), "min": lambda x, *a, **k: x.min(*a, **k),
    "amin": lambda x, *a, **k: x.min(*a, **k), "std": lambda x, *a, **k: x.std(*a, **k),
    "cumsum": lambda x, *a, **k: x.cumsum(*a, **k), "einsum": einsum, "dot": dot, "where": where,
    "concatenate": _joined(np.concatenate), "stack": _joined(np.stack),
    **{fn.__name__: _moved(fn) for fn in (
        np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.ravel,
        np.broadcast_to, np.flip, np.roll, np.repeat, np.tile, np.take, np.diagonal,
    )},
    "zeros_like": _filled(0.0), "ones_like": _filled(1.0),
    "full_like": full_like, "clip": clip, "pad": pad, "outer": outer,
    "tril": _triangle(np.tril), "triu": _triangle(np.triu),
    "shape": lambda x: x.shape, "ndim": lambda x: x.ndim,
    "size": lambda x, axis=None: x.size if axis is None else x.shape[axis],
    "vstack": _joined(np.vstack), "hstack": _joined(np.hstack), "copy": lambda x, **_: x.copy(),
}  # fmt: skip
