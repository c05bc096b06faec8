"""Tensors with PyTorch's names over whatever NumPy's functions take.

The judge runs a reference on elements of prime fields, which PyTorch's tensors cannot hold. So the
functions of a problem file are these, whether PyTorch is installed or not: each is written with
functions of NumPy that the judge follows. What is not here is an error that names it.

Nothing is rounded, so a tensor of another float type has the same numbers. It lies elsewhere, which
is how a candidate that converts its inputs is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Dim = int | tuple[int, ...] | list[int] | None


class _BFloat16:
    """The type that NumPy lacks: tensors of it are arrays of float32, and say so."""

    def __repr__(self) -> str:
        return "bfloat16"


BFLOAT16 = _BFloat16()
FLOATS = {
    "bfloat16": BFLOAT16, "float16": np.float16, "float32": np.float32, "float64": np.float64
}  # fmt: skip
WHOLE = {"int8": np.int8, "int32": np.int32, "int64": np.int64, "uint8": np.uint8}


class Tensor:
    """An array, with the methods that problems use. `kind` is BFLOAT16 or None; `start` says how
    the memory of a new tensor begins, where that is `empty` or `zeros`."""

    def __init__(self, array: Any, kind: Any = None, start: str = "") -> None:
        self.array, self.kind, self.start = array, kind, start

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Tensor:  # noqa: N802  # PyTorch's name
        return Tensor(self.array.T, self.kind)

    @property
    def dtype(self) -> Any:
        return self.kind or self.array.dtype

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def is_cuda(self) -> bool:
        return True  # what a candidate asks before it launches

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return math.prod(self.shape)

    def dim(self) -> int:
        return self.ndim

    def contiguous(self) -> Tensor:
        array = self.array
        is_so = not isinstance(array, np.ndarray) or array.flags.c_contiguous
        return self if is_so else Tensor(np.ascontiguousarray(array), self.kind)

    def cuda(self, *_: Any, **__: Any) -> Tensor:
        return self

    def to(self, *given: Any, **how: Any) -> Tensor:
        types = [each for each in (*given, how.get("dtype")) if is_type(each)]
        return self.as_type(types[0]) if types else self

    def as_type(self, dtype: Any) -> Tensor:
        is_same = self.kind is dtype or (self.kind is None and dtype == self.array.dtype)
        if is_same:
            return self
        return Tensor(converted(self.array, dtype), dtype if dtype is BFLOAT16 else None)

    def float(self) -> Tensor:
        return self.as_type(np.float32)

    def half(self) -> Tensor:
        return self.as_type(np.float16)

    def bfloat16(self) -> Tensor:
        return self.as_type(BFLOAT16)

    def double(self) -> Tensor:
        return self.as_type(np.float64)

    def stride(self, dim: int | None = None) -> Any:
        """The strides of a tensor that lies in the order of its dimensions."""
        found = tuple(math.prod(self.shape[n + 1 :]) for n in range(self.ndim))
        if self.contiguous() is not self:
            raise NotImplementedError("strides of a tensor that does not lie in order")
        return found if dim is None else found[dim]

    def is_contiguous(self) -> bool:
        return self.contiguous() is self

    def data_ptr(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return Tensor(self.array.copy(), self.kind)

    def detach(self) -> Tensor:
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.array[_plain(index)], self.kind)

    # What Python has for all objects would be taken for an answer.
    def __eq__(self, other: object) -> bool:
        raise NotImplementedError("comparisons of tensors are not followed")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise NotImplementedError("a tensor as a condition is not followed")

    def __neg__(self) -> Tensor:
        return Tensor(-self.array)

    def view(self, *shape: Any) -> Tensor:
        return self.reshape(*shape)

    def reshape(self, *shape: Any) -> Tensor:
        flat = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return Tensor(self.array.reshape(tuple(flat)), self.kind)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        last = end_dim % self.ndim
        kept = (*self.shape[:start_dim], -1, *self.shape[last + 1 :])
        return self.reshape(kept)

    def permute(self, *dims: Any) -> Tensor:
        order = dims[0] if isinstance(dims[0], tuple | list) else dims
        return Tensor(np.transpose(self.array, tuple(order)), self.kind)

    def transpose(self, first: int, second: int) -> Tensor:
        return Tensor(np.swapaxes(self.array, first, second), self.kind)

    def t(self) -> Tensor:
        return self.T

    def unsqueeze(self, dim: int) -> Tensor:
        return Tensor(np.expand_dims(self.array, dim), self.kind)

    def squeeze(self, dim: int) -> Tensor:
        return Tensor(np.squeeze(self.array, dim), self.kind)

    def __getattr__(self, name: str) -> Any:
        function = FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"tensors of problems have no '{name}' here")
        return lambda *given, **how: function(self, *given, **how)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    return value.array if isinstance(value, Tensor) else value


def is_type(value: Any) -> bool:
    return value is BFLOAT16 or (isinstance(value, type) and issubclass(value, np.generic)) or (
        isinstance(value, np.dtype)
    )  # fmt: skip


def converted(array: Any, dtype: Any) -> Any:
    """The numbers of an array as another type has them, but for rounding, in new memory."""
    is_whole = isinstance(array, np.ndarray) and array.dtype.kind in "biu"
    to_whole = dtype is not BFLOAT16 and np.dtype(dtype).kind in "biu"
    if to_whole and not is_whole:
        raise NotImplementedError("floats as whole numbers are not followed")
    if is_whole:
        return array.astype(dtype if to_whole else np.float64)
    return array.copy()


def _operator(name: str) -> None:
    function = getattr(np, name)

    def forwards(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(self.array, _plain(other)))

    def backwards(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(_plain(other), self.array))

    method = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow"}
    word = method.get(name, name)

    def in_place(self: Tensor, other: Any) -> Tensor:
        raise NotImplementedError(f"{word} in place is not followed; write x = x … y")

    setattr(Tensor, f"__{word}__", forwards)
    setattr(Tensor, f"__r{word}__", backwards)
    setattr(Tensor, f"__i{word}__", in_place)


for _name in ("add", "subtract", "multiply", "divide", "power", "matmul"):
    _operator(_name)


# -- functions -------------------------------------------------------------------------------------


def _each(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda x, *more: Tensor(function(_plain(x), *map(_plain, more)))


def _axis(dim: Dim) -> Any:
    """Dimensions as NumPy has them."""
    if isinstance(dim, bool) or (isinstance(dim, tuple | list) and not dim):
        raise NotImplementedError(f"dim={dim!r} is not followed")
    return tuple(dim) if isinstance(dim, list) else dim


def _typed(x: Tensor, dtype: Any) -> Any:
    return x.array if dtype is None else converted(x.array, dtype)


def _over(name: str) -> Callable[..., Any]:
    """A reduction, over `dim` or everything."""
    function = getattr(np, name)

    def reduced(x: Tensor, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
        return Tensor(function(_typed(x, dtype), axis=_axis(dim), keepdims=keepdim))

    return reduced


def _spread(name: str) -> Callable[..., Tensor]:
    def spread(
        x: Tensor, dim: Dim = None, *, keepdim: bool = False, unbiased: bool = True,
        correction: int | None = None,
    ) -> Tensor:  # fmt: skip
        less = correction if correction is not None else int(unbiased)
        return Tensor(getattr(np, name)(x.array, axis=_axis(dim), keepdims=keepdim, ddof=less))

    return spread


class _Both(tuple[Any, ...]):
    """What `max` over a dimension gives; where the largest stand is not followed."""

    @property
    def values(self) -> Tensor:
        return self[0]  # type: ignore[no-any-return]


def _extreme(name: str) -> Callable[..., Any]:
    def extreme(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            pair = {"max": np.maximum, "min": np.minimum}[name]
            return Tensor(pair(x.array, dim.array))
        found = Tensor(getattr(np, name)(x.array, axis=_axis(dim), keepdims=keepdim))
        return found if dim is None else _Both((found, None))

    return extreme


def softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    array = _typed(x, dtype)
    made = np.exp(array - np.max(array, axis=dim, keepdims=True))
    return Tensor(made / np.sum(made, axis=dim, keepdims=True))


def log_softmax(x: Tensor, dim: int) -> Tensor:
    return Tensor(x.array - logsumexp(x, dim, keepdim=True).array)


def logsumexp(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    top = np.max(x.array, axis=dim, keepdims=True)
    total = np.sum(np.exp(x.array - top), axis=dim, keepdims=True)
    found = top + np.log(total)
    return Tensor(found if keepdim else np.squeeze(found, dim))


def sigmoid(x: Tensor) -> Tensor:
    return Tensor(1 / (1 + np.exp(-x.array)))


def silu(x: Tensor) -> Tensor:
    return Tensor(x.array / (1 + np.exp(-x.array)))


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    if approximate != "tanh":
        raise NotImplementedError("gelu is followed with approximate='tanh' alone")
    inner = math.sqrt(2 / math.pi) * (x.array + 0.044715 * x.array * x.array * x.array)
    return Tensor(0.5 * x.array * (1 + np.tanh(inner)))


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        raise NotImplementedError("relu in place is not followed")
    return Tensor(np.maximum(x.array, 0))


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return Tensor(np.maximum(x.array, 0) + negative_slope * np.minimum(x.array, 0))


def softplus(x: Tensor) -> Tensor:
    return Tensor(np.log(1 + np.exp(x.array)))


def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:  # noqa: A002
    found = x.array if min is None else np.maximum(x.array, min)
    return Tensor(found if max is None else np.minimum(found, max))


def layer_norm(
    x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    axis = tuple(range(-len(shape), 0))
    found = x.array - np.mean(x.array, axis=axis, keepdims=True)
    found = found / np.sqrt(np.var(x.array, axis=axis, keepdims=True) + eps)
    found = found if weight is None else found * _plain(weight)
    return Tensor(found if bias is None else found + _plain(bias))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    found = np.matmul(x.array, weight.array.T)
    return Tensor(found if bias is None else found + bias.array)


def cat(tensors: Any, dim: int = 0) -> Tensor:
    return Tensor(np.concatenate([each.array for each in tensors], axis=dim))


def stack(tensors: Any, dim: int = 0) -> Tensor:
    return Tensor(np.stack([each.array for each in tensors], axis=dim))


def cumsum(x: Tensor, dim: int) -> Tensor:
    return Tensor(np.cumsum(x.array, axis=dim))


def _einsum(text: str, *given: Any) -> Tensor:
    listed = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
    return Tensor(np.einsum(text, *[each.array for each in listed]))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _each(getattr(np, name)) for name in (
        "exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tanh", "abs", "maximum", "minimum",
        "matmul",
    )},
    **{name: _over(name) for name in ("sum", "mean")},
    **{f"a{name}": _over(name) for name in ("max", "min")},
    **{name: _extreme(name) for name in ("max", "min")},
    **{name: _spread(name) for name in ("var", "std")},
    "mm": _each(np.matmul), "bmm": _each(np.matmul), "mv": _each(np.matmul),
    "add": _each(np.add), "sub": _each(np.subtract), "mul": _each(np.multiply),
    "div": _each(np.divide), "pow": _each(np.power),
    "outer": lambda a, b: _einsum("i,j->ij", a, b), "dot": _each(np.matmul),
    "rsqrt": lambda x: Tensor(1 / np.sqrt(x.array)),
    "reciprocal": lambda x: Tensor(1 / x.array),
    "square": lambda x: Tensor(x.array * x.array),
    "softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp, "sigmoid": sigmoid,
    "silu": silu, "gelu": gelu, "relu": relu, "leaky_relu": leaky_relu, "softplus": softplus,
    "clamp": clamp, "layer_norm": layer_norm, "linear": linear, "cat": cat, "stack": stack,
    "cumsum": cumsum, "einsum": _einsum,
    "transpose": lambda x, a, b: x.transpose(a, b), "permute": lambda x, dims: x.permute(dims),
    "reshape": lambda x, shape: x.reshape(shape), "flatten": lambda x, a=0, b=-1: x.flatten(a, b),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim), "squeeze": lambda x, dim: x.squeeze(dim),
    "t": lambda x: x.T,
}  # fmt: skip
