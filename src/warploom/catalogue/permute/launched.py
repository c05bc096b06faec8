"""Launches of a movement on arrays that have been looked at: in host memory, or on a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.catalogue.permute.launch import Part, Spec, kernel_of
from warploom.catalogue.permute.several import Bundle, Several, several_kernel
from warploom.errors import DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.evaluate import run as simulate
from warploom.kernel.ir import ArrayParam, Kernel, Param
from warploom.runtime.callable import Device
from warploom.runtime.driver import Configurations, Sides, Table
from warploom.runtime.gpu import GpuFunction, stream_handle
from warploom.runtime.host import HostFunction
from warploom.runtime.launcher import quick
from warploom.runtime.library import Library, library
from warploom.runtime.view import View, view

Run = Callable[[Any, Any, int, int, Any], Any]  # x, out or None, their addresses, stream
OUT_MASK = 127  # what kernels know of where y begins
Spans = tuple[tuple[int, int], tuple[int, int]]


def _check_apart(x: int, y: int, spans: Spans) -> None:
    (x_low, x_high), (y_low, y_high) = spans
    if x + x_low < y + y_high and y + y_low < x + x_high:
        raise DeviceError("'x' and 'out' share memory", advice="leave out 'out', or give a copy")


def run_of(
    found: Sequence[Part], x: View, device: Device, make: Callable[[], Any], spans: Spans
) -> Run:
    """Launches on arrays like this one: `make` makes the output, `spans` are the bytes in use."""
    if device == "cuda" and found:
        return _GpuPlan(found, x.device, make, library(x.owner), spans).run
    return _HostPlan(found, device, make, spans).run


# -- in host memory --------------------------------------------------------------------------------


def built(spec: Spec | Several) -> Kernel:
    found = _kernels.get(spec)
    if found is None:
        made = several_kernel(spec) if isinstance(spec, Several) else kernel_of(spec)
        found = _kernels[spec] = made
    return found


_kernels: dict[Spec | Several, Kernel] = {}


@lru_cache(maxsize=256)
def _host_function(
    spec: Spec | Several, device: Device
) -> Callable[[list[Any], tuple[int, int, int]], Any]:
    kernel = built(spec)
    match device:
        case "c":
            function = HostFunction(kernel, checked=False)
            return lambda given, grid: function(given)  # noqa: ARG005
        case "opencl":
            from warploom.runtime.opencl import OpenclFunction

            return _opencl(OpenclFunction(kernel))
        case "ptx":
            from warploom.runtime.emulated import EmulatedFunction

            return EmulatedFunction(kernel)
        case _:
            return lambda given, grid: simulate(kernel, given)  # noqa: ARG005


def _opencl(function: Any) -> Callable[[list[Any], tuple[int, int, int]], Any]:
    def run(given: list[Any], grid: tuple[int, int, int]) -> None:
        views = [view(each, "array") if isinstance(each, np.ndarray) else each for each in given]
        function(views, grid)

    return run


class _HostPlan:
    """Launches on arrays in host memory, one after the other."""

    def __init__(
        self, found: Sequence[Part], device: Device, make: Callable[[], Any], spans: Spans
    ) -> None:
        self._parts, self._device, self._make, self._spans = found, device, make, spans

    def run(self, x: Any, out: Any, pointer: int, to: int, stream: Any) -> Any:
        if stream is not None:
            raise DeviceError("a stream is given, but 'x' is in host memory", advice="leave it out")
        if out is None:
            out = self._make()
            to = view(out, "out").pointer
        elif self._parts:
            _check_apart(pointer, to, self._spans)
        held = x, out  # their memory is used by address
        for part in self._parts:
            _on_host(part, self._device, pointer, to)
        return held[1]


def _on_host(part: Part, device: Device, x: int, y: int) -> None:
    function = _host_function(part.spec, device)
    function(arguments(part, x, y), part.grid)


def bundle_on_host(bundle: Bundle, device: Device, pointers: Sequence[int], to: int) -> None:
    begins = {name: pointers[number] + begin for name, number, begin in bundle.reads}
    begins["y"] = to + bundle.y_begin
    given = _arguments(built(bundle.spec), begins, bundle.scalars, {})
    _host_function(bundle.spec, device)(given, bundle.grid)


def arguments(part: Part, x: int, y: int) -> list[Any]:
    """What a kernel is given for addresses in host memory."""
    begins = {"x": x + part.x_begin, "y": y + part.y_begin}
    return _arguments(built(part.spec), begins, part.scalars, part.numbers)


def _arguments(
    kernel: Kernel,
    begins: Mapping[str, int],
    scalars: dict[str, int],
    numbers: Mapping[str, Sequence[float]],
) -> list[Any]:
    made: dict[str, Any] = {}
    for param in kernel.params:
        if param.name in numbers:
            made[param.name] = _number(param, numbers[param.name])
        elif isinstance(param, ArrayParam):
            made[param.name] = _memory(param, begins[param.name], scalars)
        else:
            made[param.name] = scalars[param.name]
    for name in begins:
        if name != "y" and np.may_share_memory(made[name], made["y"]):
            made[name] = _elsewhere(made[name])
    return list(made.values())


def _memory(param: ArrayParam, begin: int, scalars: dict[str, int]) -> np.ndarray[Any, Any]:
    count = int(evaluate(param.size, scalars))
    memory = (ctypes.c_ubyte * (count * param.dtype.bytes)).from_address(begin)
    return np.frombuffer(memoryview(memory), param.dtype.numpy)


def _number(param: Param, numbers: Sequence[float]) -> Any:
    """What is passed by value: a table, or one number."""
    made = np.array(numbers, param.dtype.numpy)
    return made if isinstance(param, ArrayParam) else made[0]


def _elsewhere(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins as late after a multiple of 128: words at its ends may be those of y."""
    room = np.empty(array.nbytes + OUT_MASK, np.uint8)
    first = (array.ctypes.data - room.ctypes.data) & OUT_MASK
    copied: np.ndarray[Any, Any] = room[first : first + array.nbytes].view(array.dtype)
    copied[:] = array
    return copied


# -- on a GPU --------------------------------------------------------------------------------------


def _gpu_function(spec: Spec | Several, device: int) -> Any:
    found = _functions.get((spec, device))
    if found is None:
        found = _functions[spec, device] = GpuFunction(built(spec), device).function
    return found


_functions: dict[tuple[Spec | Several, int], Any] = {}


def ready(spec: Spec | Several, kernel: Kernel, function: Any, device: int) -> None:
    """Takes a kernel that was built and compiled elsewhere: later calls find it."""
    _kernels[spec], _functions[spec, device] = kernel, function


class _GpuPlan:
    """Launches on a GPU. `run` holds what it needs in its own variables, since reading attributes
    would cost a noticeable part of a call; tables of arguments are taken from a list of spare ones,
    so that threads never share one."""

    def __init__(
        self,
        found: Sequence[Part],
        device: int,
        make: Callable[[], Any],
        made: Library,
        spans: Spans,
    ) -> None:
        self._launch = launches(found, device)
        self.run = self._running(device, make, made, spans)

    def _running(self, device: int, make: Callable[[], Any], made: Library, spans: Spans) -> Run:
        launch, current, address = self._launch, made.stream(device), made.pointer
        slow = launch
        if isinstance(launch, Launch) and launch.quick is not None:
            launch = launch.quick[0]

        def run(x: Any, out: Any, pointer: int, to: int, stream: Any) -> Any:
            del x
            if out is None:
                out = make()
                to = address(out)
            else:
                _check_apart(pointer, to, spans)
            where = current() if stream is None else stream_handle(stream)
            if launch(pointer, to, where):  # it was refused: once more, with a check of the device
                slow(pointer, to, where)
            return out

        return run


def launches(found: Sequence[Part], device: int) -> Callable[[int, int, int], Any]:
    """What launches all parts on addresses and a stream."""
    several = [Launch(part, built(part.spec), _gpu_function(part.spec, device)) for part in found]
    if len(several) == 1:
        return several[0]

    def each(x: int, y: int, stream: int) -> None:
        for launch in several:
            launch(x, y, stream)

    return each


def _passed(param: Param, part: Part) -> int | bytes:
    """An argument by its bytes; 0 for an address."""
    if param.name in part.numbers:
        made: bytes = _number(param, part.numbers[param.name]).tobytes()
        return made
    if isinstance(param, ArrayParam):
        return 0
    return part.scalars[param.name].to_bytes(4, "little", signed=True)


class Launch:
    """One launch: a function, its configuration for each stream, tables of its arguments."""

    def __init__(self, part: Part, kernel: Kernel, function: Any) -> None:
        self.function = function
        self.values = [_passed(each, part) for each in kernel.params]
        places = {each.name: at for at, each in enumerate(kernel.params)}
        self.x_at, self.y_at = places["x"], places["y"]
        self.x_begin, self.y_begin = part.x_begin, part.y_begin
        self.configurations = Configurations(part.grid, kernel.block)
        self.spare: list[Table] = []
        self.quick = quick(
            function, (part.grid, kernel.block), Table(self.values), self.x_at, self.y_at,
            (part.x_begin, part.y_begin),
        )  # fmt: skip

    def __call__(self, x: int, y: int, stream: int) -> None:
        try:
            table = self.spare.pop()
        except IndexError:
            table = Table(self.values)
        cells, function = table.cells, self.function
        cells[self.x_at].value = x + self.x_begin
        cells[self.y_at].value = y + self.y_begin
        config = self.configurations.references.get(stream) or self.configurations.reference(stream)
        status = function.enqueue(config, function.handle, table.reference, None)
        if status:
            function.again(status, config, table.reference)
        self.spare.append(table)


def bundled(bundle: Bundle, device: int) -> Callable[[Sequence[int], int, int], None]:
    """What launches a bundle on the addresses of its inputs and of the output, and a stream."""
    kernel, function = built(bundle.spec), _gpu_function(bundle.spec, device)
    places = {each.name: at for at, each in enumerate(kernel.params)}
    arrays = {"y", *(name for name, *_ in bundle.reads)}
    values = [
        0 if each.name in arrays else bundle.scalars[each.name].to_bytes(4, "little", signed=True)
        for each in kernel.params
    ]
    reads = [(number, begin) for _, number, begin in bundle.reads]
    cells = [*(places[name] for name, *_ in bundle.reads), places["y"]]
    launch, y_begin = Addressed(function, bundle.grid, kernel.block, values, cells), bundle.y_begin

    def run(pointers: Sequence[int], to: int, stream: int) -> None:
        launch([*(pointers[number] + begin for number, begin in reads), to + y_begin], stream)

    return run


class Addressed:
    """A launch that is given addresses, for these places of its table. Tables are taken from a list
    of spare ones, so that threads never share one."""

    def __init__(
        self,
        function: Any,
        grid: Sides,
        block: Sides,
        values: Sequence[int | bytes],
        places: Sequence[int],
    ) -> None:
        self.function, self.values, self.places = function, values, places
        self.configurations = Configurations(grid, block)
        self.spare: list[Table] = []

    def __call__(self, addresses: Sequence[int], stream: int) -> None:
        try:
            table = self.spare.pop()
        except IndexError:
            table = Table(self.values)
        cells, function = table.cells, self.function
        for place, address in zip(self.places, addresses, strict=True):
            cells[place].value = address
        config = self.configurations.references.get(stream) or self.configurations.reference(stream)
        status = function.enqueue(config, function.handle, table.reference, None)
        if status:
            function.again(status, config, table.reference)
        self.spare.append(table)
