"""The kernels of one kind of call of attention, launched one after the other."""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from warploom.catalogue.attention.asked import AttentionCall
from warploom.errors import DeviceError
from warploom.index.ir import Const
from warploom.kernel.ir import Kernel
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.merge import merge_of
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.machine.record import Machine
from warploom.runtime.callable import Callable, Device
from warploom.runtime.callable import load as load_kernel
from warploom.runtime.view import library_of

OUT = ("o", "lse")


@dataclass(slots=True, eq=False)
class Plan:
    """Called with arrays by their names, it gives results: o, and maybe lse."""

    asked: AttentionCall
    tiling: AttentionTiling
    kernels: tuple[Kernel, ...]
    functions: tuple[Callable, ...]

    def __call__(self, arrays: Mapping[str, Any], stream: Any = None) -> tuple[Any, ...]:
        held = self._held(arrays, stream)
        return tuple(held[name] for name in OUT if name in held)

    def prepare(
        self, arrays: Mapping[str, Any], stream: Any = None
    ) -> tuple[tuple[Any, ...], Function[[], None]]:
        """Results, and what computes them again and again from the same arrays."""
        held = self._held(arrays, stream)
        launches = [
            function.prepare(*(held[_argument(each.name)] for each in kernel.arrays), stream=stream)
            for kernel, function in zip(self.kernels, self.functions, strict=True)
        ]

        def run() -> None:
            for launch in launches:
                launch()

        return tuple(held[name] for name in OUT if name in held), run

    def _held(self, arrays: Mapping[str, Any], stream: Any) -> dict[str, Any]:
        """All arrays of the kernels, after they have run."""
        held = {name: self._as_read(name, each) for name, each in arrays.items()}
        for kernel, function in zip(self.kernels, self.functions, strict=True):
            given = [held[_argument(each.name)] for each in kernel.arrays if each.const]
            stored = [each.name for each in kernel.arrays if not each.const]
            made = function(*given, stream=stream)
            held |= dict(zip(stored, made if len(stored) > 1 else (made,), strict=True))
        return held

    def _as_read(self, name: str, array: Any) -> Any:
        """All memory that an array with gaps is in, as one line."""
        if name not in self.asked.steps:
            return array
        (param,) = [each for each in self.kernels[0].arrays if each.name == name]
        assert isinstance(param.size, Const)
        count = param.size.value
        match library_of(array):
            case "torch":
                return array.as_strided((count,), (1,))
            case "numpy":
                return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))
            case "cupy":
                tricks = import_module("cupy.lib.stride_tricks")
                return tricks.as_strided(array, (count,), (array.itemsize,))
        raise DeviceError(f"'{name}' is not dense", advice="give a copy of it")


def _argument(name: str) -> str:
    return "bias" if name.startswith("of_scores") else name


def planned_kernels(
    made: AttentionCall, tiling: AttentionTiling, machine: Machine
) -> tuple[Kernel, ...]:
    """All kernels of a call that is cut up so."""
    own = kernel_of(made.attention, tiling, machine, steps=made.steps)
    if tiling.splits == 1:
        return (own,)
    return own, merge_of(made.attention, tiling)


def functions_of(
    kernels: Sequence[Kernel], made: AttentionCall, device: Device
) -> tuple[Callable, ...]:  # fmt: skip
    def shapes_of(kernel: Kernel) -> Any:
        stored = [each.name for each in kernel.arrays if not each.const]
        if not set(stored) <= set(OUT):
            return None
        return lambda _: {name: made.shapes[name] for name in stored}

    return tuple(load_kernel(each, device, shapes=shapes_of(each)) for each in kernels)


def plan_of(made: AttentionCall, tiling: AttentionTiling, machine: Machine, device: Device) -> Plan:
    kernels = planned_kernels(made, tiling, machine)
    return Plan(made, tiling, kernels, functions_of(kernels, made, device))
