"""A kernel as a Python function: `load(kernel)(x, y)` checks its arguments, runs, gives outputs.

Where it runs is the `device`: `cuda` (a GPU), `opencl`, `c` (compiled for this processor), `ptx`
(compiled to PTX, run on the emulator), `simulator` (the kernel evaluator), or `auto`: arrays on a
GPU are computed there, arrays in host memory on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from warploom.errors import DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Argument, Binding, bind, check_indices, check_overlap
from warploom.kernel.check import check
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.kernel.traverse import widest_access
from warploom.runtime.emulated import EmulatedFunction
from warploom.runtime.gpu import GpuFunction, Launch
from warploom.runtime.host import HostFunction
from warploom.runtime.opencl import OpenclFunction
from warploom.runtime.view import View, as_number, empty_like, is_number, view

_REMEMBERED = 1024

Device = Literal["auto", "cuda", "opencl", "c", "ptx", "simulator"]


@dataclass(frozen=True, slots=True)
class Manner:
    """How a kernel is run. `checked` code for this processor (`c`) reports an index outside its
    array instead of using it; `isolate` runs it in a process of its own, so that even a crash is an
    error. With `contract` compilers may make one rounding of a product and a sum."""

    checked: bool = True
    isolate: bool = False
    contract: bool = False


def load(
    kernel: Kernel,
    device: Device = "auto",
    *,
    checked: bool = True,
    isolate: bool = False,
    contract: bool = False,
) -> Callable:
    """The kernel, checked, as a callable. Nothing is compiled before it is needed."""
    if device not in get_args(Device):
        known = ", ".join(get_args(Device))
        raise DeviceError(f"there is no device '{device}'", advice=f"use one of {known}")
    if device != "c" and (isolate or not checked):
        raise DeviceError(
            f"'{device}' has no unchecked code and no process of its own",
            advice="leave out checked and isolate, or load the kernel for 'c'",
        )
    check(kernel)
    return Callable(kernel, device, Manner(checked, isolate, contract))


class Callable:
    """A loaded kernel. Call it with all arguments in order, with the arrays alone, or with the
    input arrays alone; scalars may be named, and those that follow from the sizes left out.
    """

    def __init__(self, kernel: Kernel, device: Device, manner: Manner) -> None:
        self.kernel = kernel
        self.device = device
        self.manner = manner
        self._functions: dict[Device, Any] = {}
        self._launches: dict[frozenset[tuple[str, int | float]], None] = {}

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
        check_overlap(self.kernel, _spans(self.kernel, ordered))
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
        key = frozenset(binding.scalars.items())
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
                launch: Launch = self._function(device).bind(ordered, grid, stream)
                return launch
            case "opencl":
                return lambda: self._function(device)(ordered, grid)
            case "c" if not self.manner.checked:
                hosts = [each.host if isinstance(each, View) else each for each in ordered]
                return lambda: self._function(device)(hosts)
            case "c":
                return lambda: self._on_copies(ordered, lambda given: self._function(device)(given))
            case "ptx":
                return lambda: self._on_copies(
                    ordered, lambda given: self._function(device)(given, grid)
                )
            case _:
                return lambda: self._on_copies(ordered, lambda given: run(self.kernel, given))

    def _function(self, device: Device) -> Any:
        """The kernel compiled for a device, once."""
        if device not in self._functions:
            self._functions[device] = self._compiled(device)
        return self._functions[device]

    def _compiled(self, device: Device) -> Any:
        kernel, contract = self.kernel, self.manner.contract
        match device:
            case "cuda":
                return GpuFunction(kernel, contract=contract)
            case "opencl":
                return OpenclFunction(kernel, contract=contract)
            case "ptx":
                return EmulatedFunction(kernel, contract=contract)
            case _:
                checked, isolate = self.manner.checked, self.manner.isolate
                return HostFunction(kernel, checked=checked, isolate=isolate, contract=contract)

    def _on_copies(
        self, ordered: list[View | int | float], work: Function[[list[Any]], object]
    ) -> None:
        """Runs on copies of the outputs, so that a failure leaves nothing half-written.

        An array that is given twice has one copy.
        """
        copies: dict[int, Any] = {}
        written: list[tuple[Any, Any]] = []
        for param, each in zip(self.kernel.params, ordered, strict=True):
            if isinstance(each, View) and isinstance(param, ArrayParam) and not param.const:
                assert each.host is not None
                if each.pointer not in copies:
                    copies[each.pointer] = each.host.copy()
                    written.append((each.host, copies[each.pointer]))
        work(
            [
                copies.get(each.pointer, each.host) if isinstance(each, View) else each
                for each in ordered
            ]
        )
        for host, copy in written:
            np.copyto(host, copy)


def _describe(each: View | int | float) -> Argument:
    return each.described if isinstance(each, View) else each


def _main(views: dict[str, View], inputs: Sequence[ArrayParam]) -> Any:
    """The array that outputs are made like: the first one that is not passed by value."""
    names = [each.name for each in inputs if each.space == "global"] or list(views)
    return views[names[0]].owner


def _spans(kernel: Kernel, ordered: list[View | int | float]) -> dict[str, tuple[int, int]]:
    """Where each array argument begins and ends in memory."""
    return {
        param.name: (each.pointer, each.end)
        for param, each in zip(kernel.params, ordered, strict=True)
        if isinstance(each, View)
    }


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
