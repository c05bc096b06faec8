"""What calls of ours are measured beside: a Triton kernel, a CuPy RawKernel, operators in Python.

Needs a machine with a GPU, PyTorch, Triton and CuPy; each function gives a call without arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

Call = Callable[[], object]

COPY = r"""
extern "C" __global__ void copy(const int n, const float* x, float* y) {
  const int i = (int)(blockIdx.x * 256 + threadIdx.x);
  if (i < n) y[i] = x[i];
}
"""


@triton.jit
def _copy(x, y, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(y + at, tl.load(x + at, mask=inside), mask=inside)


def triton_call(x: Any) -> Call:
    """A copy by Triton, output allocated."""
    n = x.numel()
    grid = (-(-n // 256),)

    def call() -> object:
        y = torch.empty_like(x)
        _copy[grid](x, y, n, block=256)
        return y

    return call


def triton_launch(x: Any, y: Any) -> Call:
    n = x.numel()
    grid = (-(-n // 256),)
    return lambda: _copy[grid](x, y, n, block=256)


def raw_kernel_launch(cupy: Any, x: Any, y: Any) -> Call:
    import numpy as np

    kernel = cupy.RawKernel(COPY, "copy")
    grid, block = (-(-x.size // 256),), (256,)
    arguments = (np.int32(x.size), x, y)
    return lambda: kernel(grid, block, arguments)


def raw_kernel_call(cupy: Any, x: Any) -> Call:
    import numpy as np

    kernel = cupy.RawKernel(COPY, "copy")
    grid, block, n = (-(-x.size // 256),), (256,), np.int32(x.size)

    def call() -> object:
        y = cupy.empty_like(x)
        kernel(grid, block, (n, x, y))
        return y

    return call


# -- ways to make an operator of a Python function -------------------------------------------------


def custom_op(run: Callable[[Any], Any], name: str, gradient: bool) -> Callable[[Any], Any]:
    """By `torch.library.custom_op`."""

    def body(x: torch.Tensor) -> torch.Tensor:
        return run(x)

    made = torch.library.custom_op(f"warploom_bench::{name}", body, mutates_args=())
    made.register_fake(lambda x: x.new_empty((x.shape[-1], x.shape[0])))
    if gradient:
        made.register_autograd(lambda _, g: g.t().contiguous())
    return made


def by_library(
    library: Any, run: Callable[[Any], Any], name: str, gradient: str
) -> Callable[[Any], Any]:
    """By `torch.library.Library`, with no gradient, PyTorch's way to give one, or our own."""
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, lambda x: run(x), "CUDA")
    qualified = f"warploom_bench::{name}"
    torch.library.register_fake(
        qualified, lambda x: x.new_empty((x.shape[-1], x.shape[0])), lib=library
    )
    operator = getattr(torch.ops.warploom_bench, name).default
    if gradient == "register":
        torch.library.register_autograd(qualified, lambda _, g: g.t().contiguous(), lib=library)
    if gradient in ("own", "own-keyset"):
        _own_gradient(library, run, name, operator, gradient == "own-keyset")
    return operator


def _own_gradient(library: Any, run: Any, name: str, operator: Any, keyset: bool) -> None:
    below, after = torch._C._AutoDispatchBelowAutograd, torch._C._after_autograd_keyset

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, keys: Any, x: Any) -> Any:
            with below():
                return operator(x) if keys is None else operator.redispatch(keys & after, x)

        @staticmethod
        def backward(_: Any, *gradients: Any) -> Any:
            return None, gradients[0].t().contiguous()

    grad_enabled = torch.is_grad_enabled
    plain: set[int] = set()

    def with_keys(keys: Any, x: Any) -> Any:
        if x.requires_grad and grad_enabled():
            return Recorded.apply(keys, x)
        if keys.raw_repr() in plain:
            return run(x)
        plain.add(keys.raw_repr())
        with below():
            return operator.redispatch(keys & after, x)

    def without(x: Any) -> Any:
        if x.requires_grad and grad_enabled():
            return Recorded.apply(None, x)
        return run(x)

    if keyset:
        library.impl(name, with_keys, "AutogradCUDA", with_keyset=True)
    else:
        library.impl(name, without, "AutogradCUDA")
