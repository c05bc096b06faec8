"""As much of PyTorch as operators need, over NumPy: tensors, a dispatcher of two levels, gradients.

An operator goes to its kernel for recording gradients, unless that is switched off, then to the one
for the CPU or the GPU. What a tensor on the pretended GPU may do is what PyTorch would do there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from tests.runtime import fakes
from tests.runtime.fakes import TorchType, aligned


class Tensor(fakes.Tensor):
    """A tensor with the few methods that expressions of operators use."""

    def __init__(self, array: Any, device: int = 0, requires_grad: bool = False) -> None:
        super().__init__(np.asarray(array), device, requires_grad)
        self.negative = False
        self.node: Any = None

    def like(self, array: Any) -> Tensor:
        return Tensor(array, self._device)

    def is_neg(self) -> bool:
        return self.negative

    def detach(self) -> Tensor:
        return self.like(self.array)

    def resolve_neg(self) -> Tensor:
        return self.like(-self.array) if self.negative else self

    def resolve_conj(self) -> Tensor:
        return self

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else self.clone()

    def clone(self, memory_format: Any = None) -> Tensor:
        del memory_format
        made = aligned(self.array.shape, self.array.dtype)
        made[...] = self.array
        return self.like(made)

    def numel(self) -> int:
        return int(self.array.size)

    def to(self, device: Any) -> Tensor:
        return Tensor(self.array, device.index)

    def view(self, kind: TorchType) -> Tensor:
        return self.like(self.array.view(kind.name))

    def new_zeros(self, *shape: Any) -> Tensor:
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        made = aligned(shape, self.array.dtype)
        made[...] = 0
        return self.like(made)

    new_empty = new_zeros

    def movedim(self, one: int, other: int) -> Tensor:
        return self.like(np.moveaxis(self.array, one, other))

    def permute(self, axes: Any) -> Tensor:
        return self.like(self.array.transpose(tuple(axes)))

    def transpose(self, one: int, other: int) -> Tensor:
        return self.like(np.swapaxes(self.array, one, other))

    def unfold(self, axis: int, size: int, step: int) -> Tensor:
        assert (axis, step) == (0, 1)
        return self.like(np.lib.stride_tricks.sliding_window_view(self.array, size))

    def mean(self, axis: int) -> Tensor:
        return self.like(self.array.mean(axis, dtype=self.array.dtype))

    def sum(self, axis: int | None = None, dtype: TorchType | None = None) -> Tensor:
        whole = np.int64 if self.array.dtype.kind in "iu" else self.array.dtype
        return self.like(self.array.sum(axis, dtype=dtype.name if dtype else whole))

    def unsqueeze(self, axis: int) -> Tensor:
        return self.like(np.expand_dims(self.array, axis))

    def expand(self, shape: Any) -> Tensor:
        return self.like(np.broadcast_to(self.array, shape))

    def flip(self, axis: int) -> Tensor:
        return self.like(np.flip(self.array, axis))

    def reshape(self, *shape: Any) -> Tensor:
        return self.like(self.array.reshape(*shape))

    def clamp(self, low: int, high: int) -> Tensor:
        return self.like(self.array.clip(low, high))

    def __getitem__(self, index: Any) -> Tensor:
        return self.like(self.array[_bare(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[_bare(index)] = _bare(value)

    def __add__(self, other: Any) -> Tensor:
        return self.like(self.array + _bare(other))

    __radd__ = __add__

    def __iadd__(self, other: Any) -> Tensor:
        self.array += _bare(other)
        return self

    def __mul__(self, other: Any) -> Tensor:
        return self.like(self.array * _bare(other))

    __rmul__ = __mul__

    def __and__(self, other: Any) -> Tensor:
        return self.like(self.array & _bare(other))

    def __ixor__(self, other: Any) -> Tensor:
        self.array ^= _bare(other)
        return self


Tensor.__module__ = "torch"


def _bare(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_bare(each) for each in value)
    return value.array if isinstance(value, Tensor) else value


class Overload:
    """One operator and what was registered for it."""

    def __init__(self, torch: Torch, schema: str) -> None:
        self._torch, self.schema = torch, schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.calls: list[str] = []

    @property
    def default(self) -> Overload:
        return self

    def __call__(self, *arguments: Any) -> Any:
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        where = "CUDA" if any(each.get_device() >= 0 for each in tensors) else "CPU"
        key = where
        if not self._torch.below and "Autograd" in self.kernels:
            key = f"Autograd{where}" if f"Autograd{where}" in self.kernels else "Autograd"
        self.calls.append(key)
        return self.kernels[key](*arguments)


class Library:
    def __init__(self, torch: Torch, namespace: str, kind: str) -> None:
        assert (namespace, kind) == ("warploom", "DEF")
        self._torch = torch

    def define(self, schema: str, tags: Any) -> None:
        assert tags == ("compliant",)
        name = schema.partition("(")[0]
        setattr(self._torch.ops.warploom, name, Overload(self._torch, schema))

    def impl(self, name: str, function: Callable[..., Any], key: str) -> None:
        getattr(self._torch.ops.warploom, name).kernels[key] = function


class Function:
    """`torch.autograd.Function`, in the form that has `setup_context`."""

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        given = SimpleNamespace(saved_tensors=())
        given.save_for_backward = lambda *tensors: setattr(given, "saved_tensors", tensors)
        given.needs_input_grad = tuple(getattr(each, "requires_grad", False) for each in arguments)
        output = cls.forward(*arguments)  # type: ignore[attr-defined]
        cls.setup_context(given, arguments, output)  # type: ignore[attr-defined]
        output.requires_grad, output.node = True, (cls, given)
        return output


def backward(output: Tensor, gradient: Tensor) -> tuple[Any, ...]:
    """What the operator that made the output makes of its gradient."""
    function, given = output.node
    found = function.backward(given, gradient)
    assert len(found) == len(given.needs_input_grad)
    return tuple(found)


class Torch(fakes.Torch):
    def __init__(self) -> None:
        super().__init__()
        self.Tensor = Tensor
        self.nn = SimpleNamespace(Parameter=type("Parameter", (Tensor,), {}))
        self.nn.Parameter.__module__ = "torch"
        self.contiguous_format, self.Tag = (
            "contiguous",
            SimpleNamespace(pt2_compliant_tag="compliant"),
        )
        self.ops = SimpleNamespace(warploom=SimpleNamespace())
        self.below, self.modes, self.transformed = False, 0, False
        self.fakes: dict[str, Callable[..., Any]] = {}
        self.library = SimpleNamespace(
            Library=lambda namespace, kind: Library(self, namespace, kind),
            register_fake=lambda name, function, lib: self.fakes.update({name: function}),
        )
        self.autograd = SimpleNamespace(Function=Function)
        self._C._AutoDispatchBelowAutograd = self._beneath
        self._C._len_torch_dispatch_stack = lambda: self.modes
        self._C._are_functorch_transforms_active = lambda: self.transformed

    @contextmanager
    def _beneath(self) -> Iterator[None]:
        before, self.below = self.below, True
        yield
        self.below = before

    def stack(self, tensors: list[Tensor]) -> Tensor:
        return tensors[0].like(np.stack([each.array for each in tensors]))

    def arange(self, start: int, stop: int, device: Any) -> Tensor:
        return Tensor(np.arange(start, stop), device.index)
