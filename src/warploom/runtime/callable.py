"""A kernel as a Python function: `load(kernel)(x, y)` checks its arguments, runs, gives outputs.

Where it runs is the `device`: `cuda` (a GPU), `opencl`, `c` (compiled for this processor), `ptx`
(compiled to PTX, run on the emulator), `simulator` (the kernel evaluator), or `auto`: arrays on a
GPU are computed there, arrays in host memory on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from warploom.emit.simt import widest_access
from warploom.errors import DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Argument, Binding, bind, check_indices
from warploom.kernel.check import check
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.runtime.emulated import EmulatedFunction
from warploom.runtime.gpu import GpuFunction, Launch
from warploom.runtime.host import HostFunction
from warploom.runtime.opencl import OpenclFunction
from warploom.runtime.view import View, as_number, empty_like, is_number, view

_REMEMBERED = 1024

Device = Literal["auto", "cuda", "opencl", "c", "ptx", "simulator"]


def load(kernel: Kernel, device: Device = "auto") -> Callable:
    """The kernel, checked, as a callable. Nothing is compiled before it is needed."""
    if device not in get_args(Device):
        known = ", ".join(get_args(Device))
        raise DeviceError(f"there is no device '{device}'", advice=f"use one of {known}")
    check(kernel)
    return Callable(kernel, device)


class Callable:
    """A loaded kernel. Call it with all arguments in order, with the arrays alone, or with the
    input arrays alone; scalars may be named, and those that follow from the sizes left out.
    """

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self.kernel = kernel
        self.device = device
        self._functions: dict[Device, Any] = {}
        self._launches: dict[tuple[int | float, ...], None] = {}

    def __repr__(self) -> str:
        names = ", ".join(param.name for param in self.kernel.params)
        return f"<warploom kernel {self.kernel.name}({names}) on {self.device}>"

    def __call__(self, *arguments: Any, stream: Any = None, **named: int | float) -> Any:
        """Runs the kernel; the output array, or the tuple of them if there are several."""
        ordered, launch = self._bind(self._with_outputs(arguments, named), named, stream)
        launch()
        outputs = [
            each.owner
            for param, each in zip(self.kernel.params, ordered, strict=True)
            if isinstance(each, View) and isinstance(param, ArrayParam) and not param.const
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def prepare(self, *arguments: Any, stream: Any = None, **named: int | float) -> Launch:
        """Everything checked once; the result launches again and again, for timing."""
        return self._bind(arguments, named, stream)[1]

    def _bind(
        self, arguments: Sequence[Any], named: dict[str, int | float], stream: Any
    ) -> tuple[list[View | int | float], Launch]:
        """The arguments by parameter, and a launch with them."""
        views = self._views(arguments)
        binding = bind(self.kernel, [_describe(each) for each in views], named)
        self._check_launch(binding)
        device, ordered = self._where(views), self._in_order(views, binding)
        _check_overlap(self.kernel, ordered)
        return ordered, self._launch(device, ordered, binding, stream)

    # -- arguments

    def _with_outputs(
        self, arguments: Sequence[Any], named: dict[str, int | float]
    ) -> Sequence[Any]:
        """The arguments, with new arrays for the outputs if only inputs are given."""
        inputs = [each for each in self.kernel.arrays if each.const]
        if not inputs or len(arguments) != len(inputs) or len(inputs) == len(self.kernel.arrays):
            return arguments
        views = {
            param.name: view(each, param.name)
            for param, each in zip(inputs, arguments, strict=True)
        }
        sizes = self._output_sizes(views, named)
        by_name = {
            param.name: views[param.name].owner
            if param.name in views
            else empty_like(_main(views, inputs), sizes[param.name], param.dtype)
            for param in self.kernel.arrays
        }
        return [by_name[param.name] for param in self.kernel.arrays]

    def _output_sizes(
        self, views: dict[str, View], named: dict[str, int | float]
    ) -> dict[str, int]:
        """How large the outputs must be, given the inputs and named scalars."""
        inputs = Kernel(
            self.kernel.name,
            tuple(
                each
                for each in self.kernel.params
                if not isinstance(each, ArrayParam) or each.const
            ),
            self.kernel.block,
            self.kernel.grid,
            (),
            requires=self.kernel.requires,
        )
        binding = bind(inputs, [each.described for each in views.values()], named)
        integers = {
            name: value for name, value in binding.scalars.items() if isinstance(value, int)
        }
        return {
            each.name: int(evaluate(each.size, integers))
            for each in self.kernel.arrays
            if not each.const
        }

    def _views(self, arguments: Sequence[Any]) -> list[View | int | float]:
        params: Sequence[Any] = self.kernel.params
        if len(arguments) != len(params):
            params = self.kernel.arrays
        names = [param.name for param in params] if len(params) == len(arguments) else []
        return [
            as_number(each) if is_number(each) else view(each, name)
            for each, name in zip(arguments, names or ["an argument"] * len(arguments), strict=True)
        ]

    def _in_order(
        self, views: Sequence[View | int | float], binding: Binding
    ) -> list[View | int | float]:
        """One argument per parameter, scalars from the binding."""
        arrays = iter([each for each in views if isinstance(each, View)])
        return [
            next(arrays) if isinstance(param, ArrayParam) else binding.scalars[param.name]
            for param in self.kernel.params
        ]

    def _check_launch(self, binding: Binding) -> None:
        """Index arithmetic stays within 32 bits; looked at once for each set of scalars."""
        key = tuple(binding.scalars.values())
        if key not in self._launches:
            check_indices(self.kernel, binding)
            if len(self._launches) >= _REMEMBERED:
                self._launches.clear()
            self._launches[key] = None

    def _where(self, views: Sequence[View | int | float]) -> Device:
        arrays = [each for each in views if isinstance(each, View)]
        data = [
            each
            for param, each in zip(self.kernel.arrays, arrays, strict=True)
            if param.space == "global"
        ]
        places = {each.where for each in data}
        if len(places) > 1:
            raise DeviceError("some arrays are in host memory and some on a GPU")
        for param, each in zip(self.kernel.arrays, arrays, strict=True):
            if param.space == "constant" and each.where == "gpu":
                raise DeviceError(
                    f"'{param.name}' is passed by value", advice="give it as an array on the host"
                )
        on_gpu = places == {"gpu"}
        if self.device == "auto":
            return "cuda" if on_gpu else "simulator"
        if on_gpu != (self.device == "cuda"):
            where = "on a GPU" if on_gpu else "in host memory"
            raise DeviceError(
                f"the arrays are {where}, but the kernel is loaded for '{self.device}'",
                advice="move the arrays, or load the kernel with device='auto'",
            )
        return self.device

    # -- running

    def _launch(
        self, device: Device, ordered: list[View | int | float], binding: Binding, stream: Any
    ) -> Launch:
        grid = binding.grid
        match device:
            case "cuda":
                _check_alignment(self.kernel, ordered)
                launch: Launch = self._function(device, GpuFunction).bind(ordered, grid, stream)
                return launch
            case "opencl":
                return lambda: self._function(device, OpenclFunction)(ordered, grid)
            case "c":
                return lambda: self._function(device, HostFunction)(ordered)
            case "ptx":
                return lambda: self._on_copies(ordered, lambda given: self._emulate(given, grid))
            case _:
                return lambda: self._on_copies(ordered, lambda given: run(self.kernel, given))

    def _emulate(self, arguments: list[Any], grid: tuple[int, int, int]) -> None:
        self._function("ptx", EmulatedFunction)(arguments, grid)

    def _function(self, device: Device, make: Function[[Kernel], Any]) -> Any:
        if device not in self._functions:
            self._functions[device] = make(self.kernel)
        return self._functions[device]

    def _on_copies(
        self, ordered: list[View | int | float], work: Function[[list[Any]], object]
    ) -> None:
        """Runs on copies of the outputs, so that a failure leaves nothing half-written."""
        arguments: list[Any] = []
        written: list[tuple[Any, Any]] = []
        for param, each in zip(self.kernel.params, ordered, strict=True):
            if not isinstance(each, View):
                arguments.append(each)
                continue
            assert each.host is not None
            if isinstance(param, ArrayParam) and not param.const:
                copy = each.host.copy()
                written.append((each.host, copy))
                arguments.append(copy)
            else:
                arguments.append(each.host)
        work(arguments)
        for host, copy in written:
            np.copyto(host, copy)


def _describe(each: View | int | float) -> Argument:
    return each.described if isinstance(each, View) else each


def _main(views: dict[str, View], inputs: Sequence[ArrayParam]) -> Any:
    """The array that outputs are made like: the first one that is not passed by value."""
    names = [each.name for each in inputs if each.space == "global"] or list(views)
    return views[names[0]].owner


def _check_overlap(kernel: Kernel, ordered: list[View | int | float]) -> None:
    """An output may share memory with another array only if neither is declared restrict."""
    arrays = [
        (param, each)
        for param, each in zip(kernel.params, ordered, strict=True)
        if isinstance(each, View) and isinstance(param, ArrayParam)
    ]
    for param, each in arrays:
        for other, there in arrays:
            if param.const or other is param or not (param.restrict or other.restrict):
                continue
            if each.pointer < there.end and there.pointer < each.end:
                raise DeviceError(
                    f"'{param.name}' is written and shares memory with '{other.name}'",
                    advice="give the output its own array",
                )


def _check_alignment(kernel: Kernel, ordered: list[View | int | float]) -> None:
    """Wide accesses need aligned arrays; a slice of an array may start anywhere."""
    for param, each in zip(kernel.params, ordered, strict=True):
        if isinstance(each, View) and isinstance(param, ArrayParam) and param.space == "global":
            wanted = widest_access(kernel, param.name) * param.dtype.bytes
            if each.pointer % wanted:
                raise DeviceError(
                    f"'{param.name}' does not start at a multiple of {wanted} bytes",
                    advice="give a whole array, or a copy of the slice",
                )
