"""Launches of Triton's kernels in a candidate, noted instead of made.

Comes in: calls `kernel[grid](x, y, n, BLOCK=128)` on tensors of the stand-in. Goes out: launches
with the kernel that Triton's own compiler makes, which needs no GPU. Only where Triton is installed
can a candidate import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.problems.host import Launch
from warploom.verdict.tensor_types import BFLOAT16
from warploom.verdict.tensors import Tensor
from warploom.without_gpu.arrays import Passed
from warploom.without_gpu.triton_kernel import TritonKernel


@contextmanager
def launches_of_triton(into: list[Launch], arch: str, candidate: Path) -> Iterator[None]:
    """While a candidate is read and called, its launches are added to a list. Triton is imported
    before anything stands in for PyTorch, and only for a candidate that speaks of it."""
    if not _speaks_of_it(candidate) or find_spec("triton") is None:
        yield
        return
    jit = import_module("triton.runtime.jit").JITFunction
    tuner = import_module("triton.runtime.autotuner").Autotuner
    before = jit.run, tuner.run
    note = partial(_note, into, arch)

    def run(function: Any, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> None:
        if not warmup:
            note(function, args, grid, named)

    def run_first(
        tuned: Any, *args: Any, grid: Any, warmup: bool = False, **named: Any
    ) -> None:  # fmt: skip
        """Nothing is timed: the first configuration."""
        if not warmup:
            note(tuned, args, grid, {**named, "config": 0})

    jit.run, tuner.run = run, run_first
    try:
        yield
    finally:
        jit.run, tuner.run = before


def _speaks_of_it(candidate: Path) -> bool:
    try:
        return b"triton" in candidate.read_bytes()
    except OSError:  # said by who reads it
        return False


def _note(
    into: list[Launch], arch: str, function: Any, args: tuple[Any, ...], grid: Any,
    named: dict[str, Any],
) -> None:  # fmt: skip
    standing: list[tuple[Any, Tensor]] = []

    def memory(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        found = _placeholder(value)
        standing.append((found.raw, value))
        return found

    kernel = TritonKernel(function, arch)
    made = kernel.prepare(
        grid, tuple(map(memory, args)), {name: memory(each) for name, each in named.items()}
    )
    passed = [_of(each, standing, made.kernel.name) for each in made.args]
    into.append(
        Launch("", made.kernel.name, _three(made.grid), _three(made.block), made.shared_bytes,
               tuple(passed), None if made.cluster is None else _three(made.cluster), made.kernel)
    )  # fmt: skip


def _placeholder(tensor: Tensor) -> Passed:
    """Memory of the tensor's type and size, which begins where PyTorch's begin: at a multiple of
    what Triton asks for."""
    if not tensor.is_contiguous():
        raise CheckError("a kernel of Triton is given a tensor that does not lie in order")
    kind = "bfloat16" if tensor.kind is BFLOAT16 else str(tensor.dtype)
    raw = np.zeros(max(tensor.numel(), 1), np.uint16 if tensor.kind is BFLOAT16 else tensor.dtype)
    return Passed(raw, kind, raw)


def _of(value: Any, standing: list[tuple[Any, Tensor]], name: str) -> Any:
    """An argument of the PTX, with the candidate's tensor in place of what stood for it."""
    for raw, tensor in standing:
        if value is raw:
            return tensor
    if value is None or isinstance(value, bool | int | float | np.generic):
        return value
    raise CheckError(
        f"'{name}' takes a {type(value).__name__}, which is not followed",
        advice="give it tensors and numbers alone",
    )


def _three(shape: Any) -> tuple[int, ...]:
    return tuple(int(each) for each in shape) if isinstance(shape, tuple | list) else (int(shape),)
