"""Kernels of one batch in one text: as PTX on the emulator, and as C; and what the bound says.

Compilers take much longer to start than to compile a kernel, so that a batch is compiled at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.index.ir import Const
from warploom.kernel.ir import Kernel, ScalarParam, TensorProduct, walk
from warploom.machine.report import Report
from warploom.native import compile_c, load_library
from warploom.ptx import load
from warploom.runtime.compile import compile_cuda
from warploom.runtime.host import FLAGS

ALMOST = 1 - 1e-9


class Batch:
    """Kernels by their numbers, each under a name of its own."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = [replace(k, name=f"{k.name}_{at}") for at, k in enumerate(kernels)]
        made = "\n".join(map(cuda, self.kernels))
        self.module = load(compile_cuda(made, "sm_90", contract=False).text)
        plain = [k for k in self.kernels if not is_tensor(k)]
        self.host: Any = None
        if plain:
            text = "\n".join(c(each, checked=False) for each in plain)
            self.host = load_library(compile_c(text, ("-O1", "-ffp-contract=off", *FLAGS)))

    def by_ptx(self, number: int, given: Sequence[Any]) -> Report:
        """On the emulator, races and reads of what nobody stored among what it looks for."""
        kernel = self.kernels[number]
        grid = tuple(each.value for each in kernel.grid if isinstance(each, Const))
        function = self.module.kernel(function_name(kernel, "cuda"))
        return function.launch(grid, kernel.block, list(_typed(kernel, given)), races=True,
                               counters=True)  # fmt: skip

    def by_c(self, number: int, given: Sequence[Any]) -> bool:
        """Whether there is a text in C: without tensor cores."""
        kernel = self.kernels[number]
        if is_tensor(kernel):
            return False
        passed = [_pointer(each) for each in _typed(kernel, given)]
        self.host[function_name(kernel, "c")](*passed)
        return True


def is_tensor(kernel: Kernel) -> bool:
    return any(isinstance(each, TensorProduct) for each in walk(kernel.body))


def _typed(kernel: Kernel, given: Sequence[Any]) -> Iterator[Any]:
    """Numbers as their types have them."""
    for param, each in zip(kernel.params, given, strict=True):
        yield param.dtype.numpy.type(each) if isinstance(param, ScalarParam) else each


def _pointer(given: Any) -> Any:
    if isinstance(given, np.ndarray):
        return ctypes.c_void_p(given.ctypes.data)
    return np.ctypeslib.as_ctypes_type(given.dtype)(given.item())


def more_than_compiled(work: Mapping[str, Any], report: Report) -> Iterator[str]:
    """What the bound counts and the compiled kernel does not do."""
    total = {name: float(each.sum()) * ALMOST for name, each in work.items()}
    moved = report.global_loads + report.global_stores
    for name, counted, done in (
        ("requests", total["access"] / 32, moved.requests + report.shared.requests),
        ("stored sectors", total["l2_store"], report.global_stores.sectors),
        ("shared wavefronts", total["shared"] / 128, report.shared.wavefronts),
    ):
        if counted > done:
            yield f"the bound has {counted:.6g} {name}, the compiled kernel {done}"
