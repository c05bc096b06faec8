"""A kernel as a Python function: `load(kernel)(x, y)` checks its arguments, runs, gives outputs.

Where it runs is the `device`: `cuda` (a GPU), `opencl`, `c` (compiled for this processor), `ptx`
(compiled to PTX, run on the emulator), `simulator` (the kernel evaluator), or `auto`: arrays on a
GPU are computed there, arrays in host memory on the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from warploom.errors import DeviceError, ensure
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import (
    Argument,
    Binding,
    Described,
    bind,
    check_indices,
    check_overlap,
)
from warploom.kernel.check import check
from warploom.kernel.descriptor import UNIT, view_of
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel, Param
from warploom.kernel.traverse import widest_access
from warploom.runtime.driver import Launch
from warploom.runtime.gpu import GpuFunction
from warploom.runtime.host import HostFunction
from warploom.runtime.library import Library, library
from warploom.runtime.opencl import OpenclFunction
from warploom.runtime.plan import Given, GpuPlan, Made, Mapped, Named, Passed, Plan, Planner
from warploom.runtime.view import Shape, View, view

Device = Literal["auto", "cuda", "opencl", "c", "ptx", "simulator"]
WITHOUT_GPU: tuple[Device, ...] = ("simulator", "c", "opencl", "ptx")
MAP_BYTES = 128  # of a tensor map
OF_CUDA_TEXT: tuple[Device, ...] = ("cuda", "ptx")
Shapes: TypeAlias = Mapping[str, Shape]
# The shapes of outputs, by name, from those of the inputs.
Shaping: TypeAlias = Function[[Shapes], Shapes]


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a kernel is run. `checked` code for this processor (`c`) reports an index outside its
    array instead of using it; `isolate` runs it in a process of its own, so that even a crash is an
    error. With `contract` compilers may make one rounding of a product and a sum; with `calls` the
    kernel calls the function that is written in it, as a user's own kernel would."""

    checked: bool = True
    isolate: bool = False
    contract: bool = False
    calls: bool = False


def load(
    kernel: Kernel,
    device: Device = "auto",
    *,
    checked: bool = True,
    isolate: bool = False,
    contract: bool = False,
    calls: bool = False,
    shapes: Shaping | None = None,
    misaligned: Plan | None = None,
) -> Callable:
    """The kernel, checked, as a callable. Nothing is compiled before it is needed.

    `shapes` says how outputs that are made look, by the shapes of the inputs; without it they have
    one axis. On a GPU, `misaligned` is called instead where an array does not begin as the kernel's
    wide accesses need it; without it that is an error.
    """
    check_device(device)
    if device != "c" and (isolate or not checked):
        raise DeviceError(
            f"'{device}' supports neither checked=False nor isolate=True",
            advice="leave them out, or load the kernel for 'c'",
        )
    check(kernel)
    return Callable(
        kernel, device, CallOptions(checked, isolate, contract, calls), shapes, misaligned
    )


def check_device(device: str) -> None:
    if device not in get_args(Device):
        known = ", ".join(get_args(Device))
        raise DeviceError(f"there is no device '{device}'", advice=f"use one of {known}")


class Callable(Planner):
    """A loaded kernel. Call it with all arguments in order, with the arrays alone, or with the
    input arrays alone; scalars may be named, and those that follow from the sizes left out.
    """

    def __init__(
        self,
        kernel: Kernel,
        device: Device,
        options: CallOptions,
        shapes: Shaping | None = None,
        misaligned: Plan | None = None,
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.device = device
        self.options = options
        self._shapes, self._misaligned = shapes, misaligned
        self._functions: dict[tuple[Device, int], Any] = {}

    def __repr__(self) -> str:
        names = ", ".join(param.name for param in self.kernel.params)
        return f"<warploom kernel {self.kernel.name}({names}) on {self.device}>"

    def prepare(self, *arguments: Any, stream: Any = None, **named: int | float) -> Launch:
        """Everything checked once; the result launches again and again on the same arrays. On a
        GPU it does so on the given stream, or on the one that is current at each launch."""
        given = self.given(arguments)
        if sum(isinstance(each, View) for each in given) != len(self.kernel.arrays):
            raise DeviceError(
                f"a prepared launch of '{self.kernel.name}' is given all its arrays",
                advice="give the outputs, too",
            )
        found = self._on_device(self._call(given, named))
        pointers = [each.pointer if isinstance(each, View) else 0 for each in given]
        if isinstance(found, GpuPlan) and not _tracked(given):
            return found.prepared(arguments, pointers, stream)
        plan = self._recording(found, given)
        return lambda: plan(arguments, pointers, stream)

    # -- arguments

    def _forms(self) -> tuple[Sequence[Param], ...]:
        """What may be given: all parameters, the arrays alone, or the inputs alone."""
        arrays = self.kernel.arrays
        return self.kernel.params, arrays, [each for each in arrays if each.const]

    def names(self, count: int) -> Sequence[str]:
        for params in self._forms():
            if len(params) == count:
                return [each.name for each in params]
        return ["an argument"] * count

    def plan(self, given: list[Given], named: Named) -> Plan:
        return self._recording(self._on_device(self._call(given, named)), given)

    def _recording(self, found: GpuPlan | _HostPlan, given: list[Given]) -> Plan:
        """The plan, which asks each time whether a gradient is wanted if one may be."""
        plan = found.run if isinstance(found, GpuPlan) else found
        owners = _tracked(given)
        return _Untracked(self.kernel.name, owners[0].owner, plan) if owners else plan

    def _call(self, given: list[Given], named: Named) -> _Call:
        """The call, checked: with which scalars, which outputs are made."""
        *_, inputs = self._forms()
        alone = inputs and len(given) == len(inputs) < len(self.kernel.arrays)
        made = self._outputs(given, named) if alone else {}
        described = [_described(each) for each in given]
        if made:
            rest = iter(described)
            described = [
                Described(math.prod(made[each.name]), each.dtype)
                if each.name in made
                else next(rest)
                for each in self.kernel.arrays
            ]
        binding = bind(self.kernel, described, named)
        check_indices(self.kernel, binding)
        places = {name: at for at, name in enumerate(self.names(len(given)))}
        return _Call(given, places, made, binding)

    def _outputs(self, given: list[Given], named: Named) -> Shapes:
        """The shapes of the outputs that follow from the inputs."""
        kernel = self.kernel
        inputs = Kernel(
            kernel.name,
            tuple(p for p in kernel.params if not isinstance(p, ArrayParam) or p.const),
            kernel.block,
            kernel.grid,
            (),
            requires=kernel.requires,
        )
        binding = bind(inputs, [_described(each) for each in given], named)
        integers = {n: v for n, v in binding.scalars.items() if isinstance(v, int)}
        sizes = {p.name: int(evaluate(p.size, integers)) for p in kernel.arrays if not p.const}
        if self._shapes is None:
            return {name: (size,) for name, size in sizes.items()}
        names = self.names(len(given))
        shapes = self._shapes(
            {n: v.shape for n, v in zip(names, given, strict=True) if isinstance(v, View)}
        )
        found = {name: math.prod(shape) for name, shape in shapes.items()}
        ensure(found == sizes, f"outputs have {sizes} elements, not {found}")
        return shapes

    def _where(self, call: _Call) -> Device:
        arrays = [(p, call.array(p.name)) for p in self.kernel.arrays if p.name in call.places]
        places = {each.where: p.name for p, each in arrays if p.space == "global"}
        if len(places) > 1:
            raise DeviceError(
                f"'{places['host']}' is in host memory, but '{places['gpu']}' is on a GPU"
            )
        if len({each.device for param, each in arrays if param.space == "global"}) > 1:
            raise DeviceError("the arrays are on different GPUs")
        for param, each in arrays:
            if param.space == "constant" and each.where == "gpu":
                raise DeviceError(
                    f"'{param.name}' is passed by value", advice="give it as an array on the host"
                )
        on_gpu = "gpu" in places
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

    def _on_device(self, call: _Call) -> GpuPlan | _HostPlan:
        device, main = self._where(call), call.main(self.kernel)
        made = call.makers(self.kernel, library(main.owner), main.device)
        if device != "cuda" or not call.binding.blocks:  # what is empty needs no GPU
            return _HostPlan(self, device, call, made)
        function: GpuFunction = self._function(device, main.device)
        return GpuPlan(
            function.function,
            call.binding.grid,
            self.kernel.launched,
            call.values(self.kernel),
            call.passed(self.kernel),
            made,
            [call.places[p.name] for p in _outputs_of(self.kernel) if p.name in call.places],
            library(main.owner),
            _overlap_check(self.kernel, call),
            self._misaligned,
            _mapped(self.kernel, call.binding),
        )

    def launch(self, device: Device, ordered: list[View | int | float], binding: Binding) -> None:
        """Runs on arrays in host memory, one argument per parameter, and waits for the result."""
        grid = binding.grid
        if not binding.blocks:
            return
        check_overlap(self.kernel, _spans(self.kernel, ordered))
        match device:
            case "opencl":
                self._function(device)(ordered, grid)
            case "c" if not self.options.checked:
                hosts = [each.host if isinstance(each, View) else each for each in ordered]
                self._function(device)(hosts)
            case "c":
                self._on_copies(ordered, lambda given: self._function(device)(given))
            case "ptx":
                self._on_copies(ordered, lambda given: self._function(device)(given, grid))
            case _:
                self._on_copies(ordered, lambda given: run(self.kernel, given))

    def _function(self, device: Device, number: int = 0) -> Any:
        """The kernel compiled for a device, once."""
        found = self._functions.get((device, number))
        if found is None:
            found = self._functions[device, number] = self._compiled(device, number)
        return found

    def adopt(self, code: bytes, number: int = 0) -> None:
        """Takes machine code that was compiled elsewhere from the kernel's own text, for a GPU."""
        self._functions["cuda", number] = GpuFunction(self.kernel, number, code=code)

    def _compiled(self, device: Device, number: int) -> Any:
        kernel, how = self.kernel, self.options
        match device:
            case "cuda":
                return GpuFunction(kernel, number, how.contract, calls=how.calls)
            case "opencl":
                return OpenclFunction(kernel, how.contract, how.calls)
            case "ptx":
                # Here, not at the top: the emulator takes longer to import than all the rest.
                from warploom.runtime.emulated import EmulatedFunction

                return EmulatedFunction(kernel, contract=how.contract, calls=how.calls)
            case _:
                return HostFunction(
                    kernel,
                    checked=how.checked,
                    isolate=how.isolate,
                    contract=how.contract,
                    calls=how.calls,
                )

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


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that fits: what is given, by name where, what is made, and the scalars."""

    given: list[Given]
    places: dict[str, int]
    made: Shapes
    binding: Binding

    def array(self, name: str) -> View:
        found = self.given[self.places[name]]
        assert isinstance(found, View)
        return found

    def main(self, kernel: Kernel) -> View:
        """The array that outputs are made like: the first one that is not passed by value."""
        named = [p for p in kernel.arrays if p.name in self.places]
        return self.array(next((p for p in named if p.space == "global"), named[0]).name)

    def makers(self, kernel: Kernel, like: Library, device: int) -> list[Made]:
        return [
            Made(like.maker(self.made[p.name], p.dtype, device), at)
            for at, p in enumerate(kernel.params)
            if isinstance(p, ArrayParam) and p.name in self.made
        ]

    def passed(self, kernel: Kernel) -> list[Passed]:
        return [
            Passed(p.name, self.places[p.name], at, bytes=self.array(p.name).bytes)
            if p.space == "constant"
            else Passed(p.name, self.places[p.name], at, _alignment(kernel, p))
            for at, p in enumerate(kernel.params)
            if isinstance(p, ArrayParam) and p.name in self.places
        ]

    def values(self, kernel: Kernel) -> list[int | bytes]:
        """What the launch is given for each parameter, as far as it is known."""
        maps = [bytes(MAP_BYTES)] * len(kernel.maps)
        return [*(self._value(each) for each in kernel.params), *maps]

    def _value(self, param: Param) -> int | bytes:
        if not isinstance(param, ArrayParam):
            number = param.dtype.numpy.type(self.binding.scalars[param.name])
            return bytes(number.tobytes())
        return bytes(self.array(param.name).bytes) if param.space == "constant" else 0


class _HostPlan:
    """Runs on arrays in host memory."""

    def __init__(
        self, function: Callable, device: Device, call: _Call, made: Sequence[Made]
    ) -> None:
        self._function, self._device = function, device
        self._places, self._binding, self._made = call.places, call.binding, made

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
        del pointers
        if stream is not None:
            raise DeviceError(
                "a stream is given, but the arrays are in host memory",
                advice="leave it out, or move the arrays to the GPU",
            )
        made = {each.param: each.make() for each in self._made}
        ordered: list[View | int | float] = []
        outputs = []
        for at, param in enumerate(self._function.kernel.params):
            if not isinstance(param, ArrayParam):
                ordered.append(self._binding.scalars[param.name])
                continue
            array = made[at] if at in made else arguments[self._places[param.name]]
            ordered.append(view(array, param.name))
            if not param.const:
                outputs.append(array)
        self._function.launch(self._device, ordered, self._binding)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class _Untracked:
    """Refuses to compute what PyTorch would silently take for a constant."""

    def __init__(self, name: str, owner: Any, plan: Plan) -> None:
        self._name, self._plan = name, plan
        self._wants_gradients = library(owner).wants_gradients

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
        if self._wants_gradients():
            raise DeviceError(
                f"an argument of '{self._name}' wants a gradient, which a launch does not record",
                advice="use the operator torch.ops.warploom, call it under torch.no_grad(), "
                "or give x.detach()",
            )
        return self._plan(arguments, pointers, stream)


def _tracked(given: list[Given]) -> list[View]:
    return [each for each in given if isinstance(each, View) and each.tracked]


def _described(each: Given) -> Argument:
    return each.described if isinstance(each, View) else each


def _outputs_of(kernel: Kernel) -> list[ArrayParam]:
    return [each for each in kernel.arrays if not each.const]


def _spans(kernel: Kernel, ordered: list[View | int | float]) -> dict[str, tuple[int, int]]:
    """Where each array argument begins and ends in memory."""
    return {
        param.name: (each.pointer, each.end)
        for param, each in zip(kernel.params, ordered, strict=True)
        if isinstance(each, View)
    }


def _overlap_check(kernel: Kernel, call: _Call) -> Function[[Sequence[int]], None] | None:
    """What tells from addresses whether arguments share memory; nothing if none can."""
    arrays = [p for p in kernel.arrays if p.space == "global" and p.name in call.places]
    sizes = {p.name: (call.places[p.name], call.array(p.name).bytes) for p in arrays}
    pairs = [
        (*sizes[one.name], *sizes[other.name])
        for one in arrays
        for other in arrays
        if not one.const and other is not one
    ]

    def check(pointers: Sequence[int]) -> None:
        for at, size, other, other_size in pairs:
            first, second = pointers[at], pointers[other]
            if first < second + other_size and second < first + size:
                spans = {name: (pointers[a], pointers[a] + n) for name, (a, n) in sizes.items()}
                everywhere = {p.name: spans.get(p.name, (0, 0)) for p in kernel.arrays}
                check_overlap(kernel, everywhere)

    return check if pairs else None


def _alignment(kernel: Kernel, param: ArrayParam) -> int:
    """Wide accesses need aligned arrays; a slice of an array may start anywhere."""
    widest = widest_access(kernel, param.name) * param.dtype.bytes
    return max(widest, UNIT) if any(each.array == param.name for each in kernel.maps) else widest


def _mapped(kernel: Kernel, binding: Binding) -> list[Mapped]:
    """What makes the maps of a kernel, of arrays wherever they are on a GPU."""
    if not kernel.maps:
        return []
    # Here, not at the top: it takes longer to import than all the rest.
    from warploom.runtime.tensor import encoder

    integers = {n: v for n, v in binding.scalars.items() if isinstance(v, int)}
    places = {each.name: at for at, each in enumerate(kernel.params)}
    found = []
    for at, map in enumerate(kernel.maps, len(kernel.params)):
        array = kernel.params[places[map.array]]
        assert isinstance(array, ArrayParam)
        held = np.zeros(1, array.dtype.storage)
        whole = np.broadcast_to(held, int(evaluate(array.size, integers)))
        view = view_of(map, whole, integers)
        found.append(Mapped(places[map.array], at, encoder(view, map.box, map.swizzle)))
    return found
