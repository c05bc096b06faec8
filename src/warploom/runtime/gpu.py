"""Kernels and other CUDA texts on an NVIDIA GPU: compiled for it, loaded, launched.

Arguments come in checked; a launch does not wait for its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.emit.cuda import cuda
from warploom.emit.language import calling_text
from warploom.emit.spell import function_name
from warploom.errors import DeviceError, UnsupportedError
from warploom.kernel.ir import Kernel
from warploom.machine.record import CUDA, KNOWN, Machine, machine_named
from warploom.runtime.compile import arch_of, compile_cuda
from warploom.runtime.driver import (
    Configurations,
    Function,
    Launch,
    Sides,
    Table,
    open_driver,
)


class GpuFunction:
    """A kernel compiled for a GPU of this machine, unless its machine code is there already."""

    def __init__(
        self,
        kernel: Kernel,
        device: int = 0,
        contract: bool = False,
        code: bytes | None = None,
        calls: bool = False,
    ) -> None:
        self.kernel = kernel
        self.text = calling_text(kernel, "cuda") if calls else cuda(kernel)
        name = function_name(kernel, "cuda")
        if code is None:
            arch = arch_of(kernel, open_driver().architecture(device))
            self.function = load_function(
                self.text, name, device, contract=contract, arch=arch
            ).function
        else:
            self.function = open_driver().load(code, name, device)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A function of any CUDA text."""

    function: Function

    def bind(self, grid: Sides, block: Sides, arguments: Sequence[Any], stream: int = 0) -> Launch:
        """A launch on these arguments: addresses as integers, NumPy numbers by value."""
        values = [
            each if isinstance(each, int) else np.asarray(each).tobytes() for each in arguments
        ]
        config = Configurations(grid, block, self.function.shared_bytes).reference(stream)
        return fixed(self.function, Table(values), config)


def fixed(function: Function, table: Table, config: Any, arguments: Sequence[Any] = ()) -> Launch:
    """A launch that always does the same; it keeps the arguments alive."""
    enqueue, handle, reference = function.enqueue, function.handle, table.reference
    held = table, tuple(arguments)

    def launch() -> None:
        status = enqueue(config, handle, reference, None)
        if status:
            function.again(status, config, held[0].reference)

    return launch


def load_function(
    text: str, name: str, device: int = 0, *, contract: bool = True, arch: str = ""
) -> Loaded:
    """Compiles CUDA C++ for a GPU of this machine and loads one function of it."""
    driver = open_driver()
    made = compile_cuda(text, arch or driver.architecture(device), kind="cubin", contract=contract)
    return Loaded(driver.load(made.code, name, device))


def gpu_name(device: int = 0) -> str | None:
    """The name of a GPU, or None where there is none (or nothing to reach it with)."""
    try:
        driver = open_driver()
        return driver.name(device) if driver.devices() > device else None
    except DeviceError:
        return None


def machine_of(device: int) -> Machine:
    """What is known of a GPU by its number, of any GPU if that is negative."""
    name = gpu_name(device) if device >= 0 else None
    words = (name or "").lower().split()
    return next((machine_named(each) for each in KNOWN if each in words), CUDA)


def stream_handle(stream: Any) -> int:
    """The address of a stream of PyTorch, CuPy or cuda.core."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise UnsupportedError(
        f"a {type(stream).__name__} is no CUDA stream",
        advice="give a stream of PyTorch, CuPy or cuda.core, or its address",
    )
