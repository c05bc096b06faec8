"""`triton.jit` and `gluon.jit` functions through Triton's own compiler, which needs no GPU.

This module and `triton_script` alone import Triton.
"""

from __future__ import annotations

import re
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from warploom.errors import DeviceError
from warploom.ptx.launch import Kernel, load
from warploom.without_gpu.prepared import Prepared, moved_texts, python_files
from warploom.without_gpu.triton_arguments import Call, call_of
from warploom.without_gpu.triton_settings import function_of, settled


def is_triton(kernel: Any) -> bool:
    return type(kernel).__module__.startswith("triton.")


class TritonKernel:
    def __init__(self, kernel: Any, arch: str) -> None:
        self.outer, self.function = kernel, function_of(kernel)
        found = re.fullmatch(r"sm_(\d+)a?", arch)
        if found is None:
            raise DeviceError(f"'{arch}' is no GPU architecture", advice="use sm_80, sm_90, …")
        self.capability = int(found[1])
        self._compiled: dict[str, tuple[Kernel, Any]] = {}

    def prepare(self, launch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Prepared:
        named = settled(self.outer, args, named)
        options = self._options(named)
        taken = {name: named[name] for name in named if name in self.function.arg_names}
        call = call_of(self.function, args, taken)
        kernel, settings = self._compile(call, options)
        return prepared(kernel, settings, call, launch(call.given) if callable(launch) else launch)

    def _options(self, named: dict[str, Any]) -> dict[str, Any]:
        """The settings of the compiler among what is named; Gluon's kernels may ask for them."""
        compiler = import_module("triton.compiler.compiler")
        known = vars(compiler.make_backend(self._target()).parse_options({}))
        for name in named:
            if name not in known and name not in self.function.arg_names:
                raise DeviceError(
                    f"{self.function.__name__}: '{name}' is neither an argument nor a setting"
                )
        return {name: value for name, value in named.items() if name in known}

    def _target(self) -> Any:
        return import_module("triton.backends.compiler").GPUTarget("cuda", self.capability, 32)

    def _compile(self, call: Call, options: dict[str, Any]) -> tuple[Kernel, Any]:
        key = repr((call.signature, call.constants, call.known, options))
        if key not in self._compiled:
            source = self._source_type()(
                self.function, call.signature, call.constants, call.known
            )  # fmt: skip
            made = import_module("triton").compile(source, target=self._target(), options=options)
            self._compiled[key] = loaded(made, self.function), made.metadata
        return self._compiled[key]

    def _source_type(self) -> Any:
        is_gluon = getattr(self.function, "is_gluon", lambda: False)()
        if is_gluon:  # where its functions are made
            return import_module(type(self.function).__module__).GluonASTSource
        return import_module("triton.compiler").ASTSource


def loaded(made: Any, function: Any) -> Kernel:
    """What Triton compiled, as a kernel to be launched."""
    text, name = made.asm["ptx"], function.__name__
    texts = moved_texts(text, function)
    module = load(text, f"{name}, as PTX", texts, named=python_files(function))
    return module.kernel(made.metadata.name)


def prepared(kernel: Kernel, settings: Any, call: Call, shape: Any) -> Prepared:
    """A launch of a grid, as Triton's own launcher makes it: each program is so many blocks."""
    grid = tuple(shape) if isinstance(shape, tuple | list) else (int(shape),)
    together = int(getattr(settings, "num_ctas", 1) or 1)
    wide = (grid[0] * together, *grid[1:]) if together > 1 else grid
    args = call.args(getattr(settings, "tensordesc_meta", None) or ())
    scratch = _scratch(kernel, settings, len(args), prod(wide))
    cluster = (together, 1, 1) if together > 1 else None
    return Prepared(
        kernel, wide, _threads(kernel, settings), [*args, *scratch], int(settings.shared), cluster
    )  # fmt: skip


def _threads(kernel: Kernel, settings: Any) -> int:
    """As the PTX says: warps that Triton adds for copies of its own are among them."""
    for directive in kernel.function.directives:
        if directive.name == "reqntid":
            return prod(int(word) for word in directive.words if word.isdigit())
    return 32 * int(settings.num_warps)


def _scratch(kernel: Kernel, settings: Any, given: int, blocks: int) -> list[Any]:
    """Memory that Triton allocates for a launch: none, or so many bytes for each block."""
    wanted = len(kernel.function.parameters) - given
    size = int(getattr(settings, "global_scratch_size", 0) or 0) * blocks
    first = np.zeros(size, np.uint8) if size else None
    return [first, *[None] * wanted][:wanted]
