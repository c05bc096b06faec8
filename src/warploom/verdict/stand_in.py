"""A module `torch` for references, problem files and candidates, while they are read and called.

Comes in: names that such files import. Goes out: tensors over NumPy, modules with parameters, and
extensions whose functions are read instead of compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from warploom.machine.rounding import bf16_to_single, double_to_bf16
from warploom.verdict.tensor_types import BFLOAT16, FLOATS, TYPES, is_whole, type_of
from warploom.verdict.tensors import FUNCTIONS, Tensor, is_tensor

_MODULES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.utils", "torch.utils.cpp_extension",
    "torch.cuda",
)  # fmt: skip


class Module:
    """`torch.nn.Module`: parameters and modules are attributes."""

    def __call__(self, *given: Any) -> Any:
        return self.forward(*given)  # type: ignore[attr-defined]

    def named_parameters(self, before: str = "") -> Iterator[tuple[str, Tensor]]:
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield before + name, value
            elif isinstance(value, Module):
                yield from value.named_parameters(f"{before}{name}_")

    def register_buffer(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def cuda(self) -> Module:
        return self

    def to(self, *_: Any, **__: Any) -> Module:
        return self

    def eval(self) -> Module:
        return self


class Parameter(Tensor):
    """A tensor that stands for any values: the candidate has to take the same ones."""

    def __init__(self, value: Tensor, requires_grad: bool = True) -> None:
        del requires_grad
        super().__init__(value.array, value.kind)


class Source:
    """Makes tensors. What numbers it draws does not count, the judge draws its own; `made` are new
    ones that a candidate has its kernels write to."""

    def __init__(self) -> None:
        self.draw = np.random.default_rng(1)
        self.made: list[Tensor] = []

    def new(self, start: str, shape: tuple[int, ...], dtype: Any) -> Tensor:
        made = _tensor(np.zeros(shape), dtype, start)
        self.made.append(made)
        return made

    def empty(self, *shape: Any, **how: Any) -> Tensor:
        return self.new("empty", _shape(shape, how), _type(how))

    def zeros(self, *shape: Any, **how: Any) -> Tensor:
        return self.new("zeros", _shape(shape, how), _type(how))

    def empty_like(self, like: Tensor, **how: Any) -> Tensor:
        return self.new("empty", like.shape, how.get("dtype") or like.type_)

    def zeros_like(self, like: Tensor, **how: Any) -> Tensor:
        return self.new("zeros", like.shape, how.get("dtype") or like.type_)

    def randn(self, *shape: Any, **how: Any) -> Tensor:
        return _tensor(self.draw.standard_normal(_shape(shape, how)), _type(how))

    def rand(self, *shape: Any, **how: Any) -> Tensor:
        return _tensor(self.draw.random(_shape(shape, how)), _type(how))

    def randint(self, low: int, high: Any, size: Any = None, **how: Any) -> Tensor:
        low, high, size = (0, low, high) if size is None else (low, high, size)
        made = self.draw.integers(low, high, tuple(size))
        return Tensor(made.astype(how.get("dtype") or np.int64))


def _tensor(values: Any, dtype: Any, start: str = "") -> Tensor:
    is_bf16 = dtype is BFLOAT16
    array = np.asarray(values, np.float32 if is_bf16 else dtype)
    return Tensor(array, BFLOAT16 if is_bf16 else None, start)


def _shape(given: tuple[Any, ...], how: dict[str, Any]) -> tuple[int, ...]:
    if not given and "size" in how:
        given = (how["size"],)
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else given


def _type(how: dict[str, Any]) -> Any:
    return how.get("dtype") or FLOATS["float32"]


def constant(value: Any, dtype: Any = None, **_: Any) -> Tensor:
    """`torch.tensor`: of whole numbers they stay such, if no type is said."""
    held = np.asarray(value)
    if is_tensor(value) or held.dtype.kind not in "iuf":
        raise NotImplementedError(f"torch.tensor of {str(value)[:60]} is not followed")
    kind = type_of(dtype) or (np.dtype(np.int64) if is_whole(held) else FLOATS["float32"])
    if kind is not BFLOAT16:
        return Tensor(held.astype(kind))
    return Tensor(bf16_to_single(double_to_bf16(held.astype(np.float64))), BFLOAT16)


class _Linear(Module):
    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        self.weight = Parameter(Tensor(np.ones((outputs, inputs), np.float32)))
        self.bias = Parameter(Tensor(np.ones(outputs, np.float32))) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = FUNCTIONS["linear"](x, self.weight, self.bias)
        return found


class _LayerNorm(Module):
    def __init__(self, shape: Any, eps: float = 1e-5, elementwise_affine: bool = True) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps = eps
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = Parameter(Tensor(np.ones(self.shape, np.float32)))
            self.bias = Parameter(Tensor(np.ones(self.shape, np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = FUNCTIONS["layer_norm"](x, self.shape, self.weight, self.bias, self.eps)
        return found


def _activation(name: str) -> type[Module]:
    class Activation(Module):
        def __init__(self, *given: Any, **how: Any) -> None:
            self.given, self.how = given, how

        def forward(self, x: Tensor) -> Any:
            return FUNCTIONS[name](x, *self.given, **self.how)

    return Activation


def _sequential(*modules: Module) -> Module:
    class Sequential(Module):
        def __init__(self) -> None:
            for number, each in enumerate(modules):
                setattr(self, f"_{number}", each)

        def forward(self, x: Any) -> Any:
            for each in modules:
                x = each(x)
            return x

    return Sequential()


_LAYERS: dict[str, Any] = {
    "Module": Module, "Parameter": Parameter, "Linear": _Linear, "LayerNorm": _LayerNorm,
    "Sequential": _sequential,
    **{name: _activation(name.lower()) for name in ("ReLU", "Sigmoid", "SiLU", "Softplus", "Tanh")},
    "GELU": _activation("gelu"), "LeakyReLU": _activation("leaky_relu"),
    "Softmax": _activation("softmax"), "LogSoftmax": _activation("log_softmax"),
}  # fmt: skip


def _absent(module: str) -> Any:
    def missing(name: str) -> Any:
        raise AttributeError(f"'{module}.{name}' is not among what the judge follows")

    return missing


@contextmanager
def torch_stands_in(load_inline: Any) -> Iterator[Source]:
    """While a problem and its candidate are read and called, `import torch` gives this module."""
    source = Source()
    drawn = {name: getattr(source, name) for name in (*_NOT_CONSTANT, *_ZEROS)}
    made = _modules(drawn)
    made["torch.utils.cpp_extension"].__dict__["load_inline"] = load_inline
    made["torch.cuda"].__dict__.update(is_available=lambda: True, synchronize=lambda: None)
    with _in_place_of_torch(made):
        yield source


@contextmanager
def torch_of_references() -> Iterator[None]:
    """While a reference is read and called: what holds no constant is not there."""
    source = Source()
    made = _modules({name: getattr(source, name) for name in _ZEROS})
    made["torch"].__dict__.update(no_grad=_NoGradient, inference_mode=_NoGradient)
    made["torch.cuda"].__dict__["is_available"] = lambda: False
    with _in_place_of_torch(made):
        yield


class _NoGradient(ContextDecorator):
    """`torch.no_grad()`: there are no gradients here."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _modules(own: dict[str, Any]) -> dict[str, ModuleType]:
    made = {name: ModuleType(name) for name in _MODULES}
    for name, module in made.items():
        module.__dict__["__getattr__"] = _absent(name)
        module.__spec__ = ModuleSpec(name, None)  # for those that ask whether it is there
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    short = {name: TYPES[kind] for name, kind in _SHORT.items()}
    made["torch"].__dict__.update(FUNCTIONS, Tensor=Tensor, **own, **TYPES, **short, **_MAKERS)
    made["torch.nn"].__dict__.update(_LAYERS)
    made["torch.nn.functional"].__dict__.update(FUNCTIONS)
    return made


@contextmanager
def _in_place_of_torch(made: dict[str, ModuleType]) -> Iterator[None]:
    before = {name: sys.modules.get(name) for name in _MODULES}
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


_NOT_CONSTANT = ("randn", "rand", "randint", "empty", "empty_like")
_ZEROS = ("zeros", "zeros_like")
_SHORT = {
    "int": "int32", "long": "int64", "half": "float16", "float": "float32", "double": "float64"
}  # fmt: skip
_MAKERS: dict[str, Any] = {
    "ones": lambda *shape, **how: _tensor(np.ones(_shape(shape, how)), _type(how)),
    "tensor": constant,
    "manual_seed": lambda _seed: None,
}  # fmt: skip
