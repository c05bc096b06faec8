"""Tensors with PyTorch's names over whatever NumPy's functions take.

The judge runs a reference on elements of prime fields, which PyTorch's tensors cannot hold. So the
functions of references and problems are these, whether PyTorch is installed or not: each is written
with functions of NumPy that the judge follows. Functions of PyTorch itself that are given such a
tensor hand the call on, by `__torch_function__`. What is not here is an error that names it.

Nothing is rounded, so a tensor of another float type has the same numbers. It lies elsewhere, which
is how a candidate that converts its inputs is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import numpy as np

from warploom.verdict.tensor_types import (
    BFLOAT16,
    FLOATS,
    WHOLE,
    alike,
    as_asked,
    converted,
    floats_of,
    is_type,
    is_whole,
    of_pytorch,
    result_type,
    type_of,
)

Dim = int | tuple[int, ...] | list[int] | None


class Tensor:
    """An array, with the methods that references use. `kind` is its type, where that is another
    than the array's; `start` says how the memory of a new tensor begins, where that is `empty` or
    `zeros`."""

    __array_ufunc__ = None  # numbers of NumPy leave operators to these

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
        return as_asked(self.type_)

    @property
    def type_(self) -> Any:
        return type_of(self.array.dtype if self.kind is None else self.kind)

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
        kind = type_of(dtype)
        return self if self.type_ == kind else Tensor(converted(self.array, kind), kind)

    def float(self) -> Tensor:
        return self.as_type(FLOATS["float32"])

    def half(self) -> Tensor:
        return self.as_type(FLOATS["float16"])

    def bfloat16(self) -> Tensor:
        return self.as_type(BFLOAT16)

    def double(self) -> Tensor:
        return self.as_type(FLOATS["float64"])

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

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("a tensor as an array of NumPy is not followed")

    @classmethod
    def __torch_function__(
        cls, function: Any, _: Any, given: Any = (), how: dict[str, Any] | None = None
    ) -> Any:
        """What functions of PyTorch itself call in their place."""
        return _routed(str(getattr(function, "__name__", function)), given, how or {})

    def __neg__(self) -> Tensor:
        return Tensor(-self.array, self.kind)

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

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        return Tensor(np.swapaxes(self.array, dim0, dim1), self.kind)

    def t(self) -> Tensor:
        return self.T

    def unsqueeze(self, dim: int) -> Tensor:
        return Tensor(np.expand_dims(self.array, dim), self.kind)

    def squeeze(self, dim: int) -> Tensor:
        return Tensor(np.squeeze(self.array, dim), self.kind)

    def __getattr__(self, name: str) -> Any:
        function = FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"'Tensor.{name}' is not among what the judge follows")
        return lambda *given, **how: function(self, *given, **how)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_plain(each) for each in value)
    return of_constant(value).array if is_tensor(value) else value


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or of_pytorch(value, "Tensor")


def of_constant(value: Any) -> Tensor:
    """A tensor as one of these: those of PyTorch itself hold constants."""
    if isinstance(value, Tensor):
        return value
    kind = type_of(value.dtype)
    held = value.detach().cpu()
    return Tensor((held if str(kind) in WHOLE else held.double()).numpy(), kind)


def _in(given: Any) -> Iterator[Tensor]:
    """The tensors among arguments."""
    for each in given:
        if isinstance(each, tuple | list):
            yield from _in(each)
        elif is_tensor(each):
            yield of_constant(each)


_ALSO = {"axis": "dim", "keepdims": "keepdim"}  # what PyTorch takes from NumPy's names


def _typed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results have the types that PyTorch gives them."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        how = {_ALSO.get(name, name): value for name, value in named.items()}
        made = function(*given, **how)
        found = made.values if isinstance(made, _Both) else made
        if isinstance(found, Tensor) and found.kind is None and not is_whole(found.array):
            types = [(each.type_, each.ndim > 0) for each in _in((*given, *how.values()))]
            said = type_of(how.get("dtype"))
            found.kind = result_type(types) if said is None else said
        return made

    return call


def _operator(name: str) -> None:
    function = getattr(np, name)

    def forwards(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(*alike([self.array, _plain(other)])))

    def backwards(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(*alike([_plain(other), self.array])))

    method = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow"}
    word = method.get(name, name)

    def in_place(self: Tensor, other: Any) -> Tensor:
        raise NotImplementedError(f"{word} in place is not followed; write x = x … y")

    setattr(Tensor, f"__{word}__", _typed(forwards))
    setattr(Tensor, f"__r{word}__", _typed(backwards))
    setattr(Tensor, f"__i{word}__", in_place)
    _OPERATORS[f"__{word}__"] = _typed(forwards)
    _OPERATORS[f"__r{word}__"] = _typed(backwards)


_OPERATORS: dict[str, Callable[..., Any]] = {}  # by the names of their methods
for _name in ("add", "subtract", "multiply", "divide", "power", "matmul"):
    _operator(_name)


# -- functions -------------------------------------------------------------------------------------


def _each(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *given: Tensor(function(*alike([*map(_plain, given)])))


def _of_floats(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda x: Tensor(function(floats_of(_plain(x))))


def _axis(dim: Dim) -> Any:
    """Dimensions as NumPy has them."""
    if isinstance(dim, bool) or (isinstance(dim, tuple | list) and not dim):
        raise NotImplementedError(f"dim={dim!r} is not followed")
    return tuple(dim) if isinstance(dim, list) else dim


def _as(x: Tensor, dtype: Any) -> Any:
    return x.array if dtype is None else converted(x.array, dtype)


def _floats(name: str, array: Any) -> Any:
    if is_whole(array):
        raise NotImplementedError(f"'{name}' of whole numbers is none of PyTorch's functions")
    return array


def _over(name: str) -> Callable[..., Any]:
    """A reduction, over `dim` or everything."""
    function = getattr(np, name)

    def reduced(x: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        array = _as(x, dtype) if name == "sum" else _floats(name, _as(x, dtype))
        how = {"dtype": type_of(dtype) or np.int64} if is_whole(array) else {}
        return Tensor(function(array, axis=_axis(dim), keepdims=keepdim, **how))

    return reduced


def _spread(name: str) -> Callable[..., Tensor]:
    def spread(
        x: Tensor, dim: Dim = None, *, keepdim: bool = False, unbiased: bool = True,
        correction: int | None = None,
    ) -> Tensor:  # fmt: skip
        less = correction if correction is not None else int(unbiased)
        array = _floats(name, x.array)
        return Tensor(getattr(np, name)(array, axis=_axis(dim), keepdims=keepdim, ddof=less))

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
            return Tensor(pair(*alike([x.array, dim.array])))
        found = Tensor(getattr(np, name)(x.array, axis=_axis(dim), keepdims=keepdim))
        return found if dim is None else _Both((found, None))

    return extreme


def softmax(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    array = _floats("softmax", _as(x, dtype))
    made = np.exp(array - np.max(array, axis=dim, keepdims=True))
    return Tensor(made / np.sum(made, axis=dim, keepdims=True))


def log_softmax(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    array = _as(x, dtype)
    return Tensor(array - logsumexp(Tensor(array), dim, keepdim=True).array)


def logsumexp(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    top = np.max(_floats("logsumexp", x.array), axis=dim, keepdims=True)
    total = np.sum(np.exp(x.array - top), axis=dim, keepdims=True)
    found = top + np.log(total)
    return Tensor(found if keepdim else np.squeeze(found, dim))


def sigmoid(x: Tensor) -> Tensor:
    return Tensor(1 / (1 + np.exp(-floats_of(x.array))))


def silu(x: Tensor) -> Tensor:
    array = _floats("silu", x.array)
    return Tensor(array / (1 + np.exp(-array)))


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    if approximate != "tanh":
        raise NotImplementedError("gelu is followed with approximate='tanh' alone")
    array = _floats("gelu", x.array)
    inner = math.sqrt(2 / math.pi) * (array + 0.044715 * array * array * array)
    return Tensor(0.5 * array * (1 + np.tanh(inner)))


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        raise NotImplementedError("relu in place is not followed")
    return Tensor(np.maximum(x.array, 0))


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    array = _floats("leaky_relu", x.array)
    return Tensor(np.maximum(array, 0) + negative_slope * np.minimum(array, 0))


def softplus(x: Tensor) -> Tensor:
    return Tensor(np.log(1 + np.exp(_floats("softplus", x.array))))


def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:  # noqa: A002
    found = x.array if min is None else np.maximum(x.array, min)
    return Tensor(found if max is None else np.minimum(found, max))


def layer_norm(
    x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    axis = tuple(range(-len(shape), 0))
    found = _floats("layer_norm", x.array) - np.mean(x.array, axis=axis, keepdims=True)
    found = found / np.sqrt(np.var(x.array, axis=axis, keepdims=True) + eps)
    found = found if weight is None else found * _plain(weight)
    return Tensor(found if bias is None else found + _plain(bias))


def rms_norm(x: Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    if eps is None:
        raise NotImplementedError("rms_norm without eps is not followed")
    axis = tuple(range(-len(shape), 0))
    array = _floats("rms_norm", x.array)
    found = array / np.sqrt(np.mean(array * array, axis=axis, keepdims=True) + eps)
    return Tensor(found if weight is None else found * _plain(weight))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    found = np.matmul(_plain(x), _plain(weight).T)
    return Tensor(found if bias is None else found + _plain(bias))


def cat(tensors: Any, dim: int = 0) -> Tensor:
    return Tensor(np.concatenate([_plain(each) for each in tensors], axis=dim))


def stack(tensors: Any, dim: int = 0) -> Tensor:
    return Tensor(np.stack([_plain(each) for each in tensors], axis=dim))


def cumsum(x: Tensor, dim: int) -> Tensor:
    how: Any = {"dtype": np.int64} if is_whole(x.array) else {}
    return Tensor(np.cumsum(x.array, axis=dim, **how))


def _einsum(text: str, *given: Any) -> Tensor:
    listed = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
    return Tensor(np.einsum(text, *[_plain(each) for each in listed]))


def _triangle(name: str) -> Callable[..., Tensor]:
    function = getattr(np, name)
    return lambda x, diagonal=0: Tensor(function(x.array, diagonal), x.kind)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _of_floats(getattr(np, name)) for name in (
        "exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tanh",
    )},
    **{name: _each(getattr(np, name)) for name in ("abs", "maximum", "minimum", "matmul")},
    **{name: _over(name) for name in ("sum", "mean")},
    **{f"a{name}": _over(name) for name in ("max", "min")},
    **{name: _extreme(name) for name in ("max", "min")},
    **{name: _spread(name) for name in ("var", "std")},
    "mm": _each(np.matmul), "bmm": _each(np.matmul), "mv": _each(np.matmul),
    "add": _each(np.add), "sub": _each(np.subtract), "mul": _each(np.multiply),
    "div": _each(np.divide), "true_divide": _each(np.divide),
    "pow": _each(np.power), "neg": _each(np.negative),
    "outer": lambda a, b: _einsum("i,j->ij", a, b), "dot": _each(np.matmul),
    "rsqrt": lambda x: Tensor(1 / np.sqrt(floats_of(x.array))),
    "reciprocal": lambda x: Tensor(1 / floats_of(x.array)),
    "square": lambda x: Tensor(x.array * x.array),
    "softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp, "sigmoid": sigmoid,
    "silu": silu, "gelu": gelu, "relu": relu, "leaky_relu": leaky_relu, "softplus": softplus,
    "clamp": clamp, "layer_norm": layer_norm, "rms_norm": rms_norm, "linear": linear, "cat": cat,
    "stack": stack, "cumsum": cumsum, "einsum": _einsum, "tril": _triangle("tril"),
    "triu": _triangle("triu"),
}  # fmt: skip
FUNCTIONS = {name: _typed(function) for name, function in FUNCTIONS.items()}
# Functions of PyTorch that are methods here.
METHODS = (
    "transpose", "permute", "reshape", "flatten", "unsqueeze", "squeeze", "t", "clone", "detach",
)  # fmt: skip
FUNCTIONS |= {
    name: partial(lambda method, x, *given, **how: getattr(x, method)(*given, **how), name)
    for name in METHODS
}


def _routed(name: str, given: Any, how: dict[str, Any]) -> Any:
    """A call of PyTorch's, by its name. Options that are None or `inplace=False` are as if they
    were not there, and `_stacklevel` is about a warning."""
    kept = {k: v for k, v in how.items() if v is not None and (k, v) != ("inplace", False)}
    kept.pop("_stacklevel", None)
    function = FUNCTIONS.get(name) or _OPERATORS.get(name)
    if function is None:
        raise NotImplementedError(f"'torch.{name}' is not among what the judge follows")
    return function(*map(_own, given), **{k: _own(v) for k, v in kept.items()})


def _own(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_own(each) for each in value]
    return of_constant(value) if is_tensor(value) else value
