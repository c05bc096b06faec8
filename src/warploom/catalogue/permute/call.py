"""`warploom.permute`: a tensor with its axes in another order, moved by a kernel.

What a call is but for addresses (shape, strides, type, device, order, where arrays begin within 16
bytes) is a key; its plan says which kernels are launched with which numbers. Later calls of the
same kind make the output, put two addresses into a table, and launch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from warploom.catalogue.permute.axes import Axes, checked_axes
from warploom.catalogue.permute.convert import Asked, asked
from warploom.catalogue.permute.launch import Part, Spec, kernel_of
from warploom.catalogue.permute.problem import WIDEST, Movement, movement
from warploom.catalogue.permute.rule import parts
from warploom.errors import CheckError, DeviceError, WarploomError, place
from warploom.index.evaluate import evaluate
from warploom.kernel.evaluate import run as simulate
from warploom.kernel.ir import ArrayParam, Kernel, Param
from warploom.runtime.callable import Device, check_device
from warploom.runtime.driver import Configurations, Table
from warploom.runtime.gpu import GpuFunction, stream_handle
from warploom.runtime.host import HostFunction
from warploom.runtime.launcher import quick
from warploom.runtime.library import READERS, Library, bits_of, blank, library, reader_of
from warploom.runtime.view import View, is_complex, view

How = tuple[Any, Any, Any, int | None]  # dtype, scale, shift, along
Run = Callable[[Any, Any, int, int, Any], Any]  # x, out or None, their addresses, stream
REMEMBERED = 4096
_MASK, _OUT_MASK = 15, 127  # what kernels know of where x and y begin


def permute(
    x: Any,
    axes: Sequence[int] | str,
    out: Any = None,
    *,
    dtype: Any = None,
    scale: Any = None,
    shift: Any = None,
    along: int | None = None,
    device: Device = "auto",
    stream: Any = None,
) -> Any:
    """The tensor with its axes in another order, as a new one whose elements lie in that order.

    `axes` are as in `numpy.transpose`: axis i of the result is axis `axes[i]` of `x`; or a name:
    "transposed" swaps the last two, "channels_last" and "channels_first" move the axis of channels,
    which is the second one of a batch and the first one of an image. Tensors of PyTorch, CuPy and
    NumPy are taken as they lie, sliced and strided ones too, and so is `out`. PyTorch records a
    gradient where one is wanted. On a GPU the kernel runs on the caller's stream; arrays in host
    memory are moved by C that is compiled for this processor (`device="c"`), or by an emulator
    ("ptx", "simulator").

    With `dtype`, elements become others on the way; with `scale` and `shift`, each is multiplied
    first, and moved. These are numbers, or as many as axis `along` of `x` has steps. Integers wrap;
    floats that become integers are cut off, to the nearest there is.

    >>> import numpy as np, warploom
    >>> image = np.arange(12, dtype=np.float32).reshape(2, 2, 3)  # height, width, channel
    >>> warploom.permute(image, (2, 0, 1)).tolist()
    [[[0.0, 3.0], [6.0, 9.0]], [[1.0, 4.0], [7.0, 10.0]], [[2.0, 5.0], [8.0, 11.0]]]
    """
    try:
        try:
            reader = READERS.get(x.__class__) or reader_of(x)
            if dtype is not None or scale is not None or shift is not None or along is not None:
                return _converted(x, axes, out, device, stream, (dtype, scale, shift, along))
            if reader is None:
                return _unread(x, axes, out, device, stream)
            key, pointer = reader(x)
            if axes.__class__ is list:
                axes = tuple(axes)
            if out is None:
                known: Hashable = key, axes, device, pointer & _MASK
                to = 0
            else:
                wanted = READERS.get(out.__class__) or reader_of(out)
                if wanted is None:
                    return _unread(x, axes, out, device, stream)
                out_key, to = wanted(out)
                known = key, axes, device, pointer & _MASK, out_key, to & _OUT_MASK
            found = _plans.get(known)
        except (RuntimeError, TypeError, AttributeError):  # no memory, or nothing that is hashed
            return _unread(x, axes, out, device, stream)
        if found is None:
            found = _remembered(known, _planned(x, axes, out, device))
        return found(x, out, pointer, to, stream)
    except WarploomError as error:
        place(error)
        raise


_plans: dict[Hashable, Run] = {}


def _remembered(known: Hashable, plan: Run) -> Run:
    if len(_plans) >= REMEMBERED:
        _plans.clear()
    _plans[known] = plan
    return plan


def _unread(
    x: Any, axes: Sequence[int] | str, out: Any, device: Device, stream: Any, how: How | None = None
) -> Any:
    """A call whose arguments are looked at each time."""
    plan = _planned(x, axes, out, device, how)
    bits = bits_of(x) or (lambda array: array)
    to = 0 if out is None else view((bits if how is None else _same)(out), "out").pointer
    return plan(x, out, view(bits(x), "x").pointer, to, stream)


def _same(array: Any) -> Any:
    return array


def _converted(
    x: Any, axes: Sequence[int] | str, out: Any, device: Device, stream: Any, how: How
) -> Any:
    """A call with a conversion: its plan is kept where all of it is hashed."""
    dtype, scale, shift, along = how
    how = dtype, _fixed(scale), _fixed(shift), along
    reader = READERS.get(x.__class__) or reader_of(x)
    wanted = None if out is None else READERS.get(out.__class__) or reader_of(out)
    if reader is None or (out is not None and wanted is None):
        return _unread(x, axes, out, device, stream, how)
    key, pointer = reader(x)
    out_key, to = (None, 0) if wanted is None else wanted(out)
    axes = tuple(axes) if isinstance(axes, list) else axes
    late = pointer & _MASK, to & _OUT_MASK
    known: Hashable = key, axes, device, late, out_key, how
    found = _plans.get(known)
    if found is None:
        found = _remembered(known, _planned(x, axes, out, device, how))
    return found(x, out, pointer, to, stream)


def _fixed(numbers: Any) -> Any:
    """Factors as a tuple, which is hashed."""
    if isinstance(numbers, list):
        return tuple(numbers)
    listed = getattr(numbers, "tolist", None)
    if listed is None:
        return numbers
    given = listed()
    return tuple(given) if isinstance(given, list) and numbers.ndim == 1 else given


def _planned(
    x: Any, axes: Sequence[int] | str, out: Any, device: Device, how: How | None = None
) -> Run:
    check_device(device)
    bits = bits_of(x)
    if bits is not None and how is not None:
        return _planned_of_truths(x, axes, out, device, how)
    if bits is not None:
        return _of_bits(_planned(bits(x), axes, None if out is None else bits(out), device), bits)
    source = view(x, "x")
    order = checked_axes(axes, len(source.shape) - is_complex(x))
    target = None if out is None else view(out, "out")
    if how is not None and is_complex(x):
        raise CheckError(
            "complex numbers are moved, and not converted", advice="convert x.real and x.imag"
        )
    to = None if how is None else asked(source.dtype, source.shape, *how)
    if is_complex(x):  # real and imaginary part stay together
        order = (*order, len(order))
    call = _Call(source, order, target, device, to)
    return call.plan()


def _planned_of_truths(
    x: Any, axes: Sequence[int] | str, out: Any, device: Device, how: How
) -> Run:
    """Truth values become 0 and 1."""
    bits = bits_of(x)
    if bits is None or "bool" not in str(x.dtype):
        raise CheckError(f"elements of {x.dtype} are moved, and not converted")
    run = _planned(bits(x), axes, out, device, how)
    return lambda given, *others: run(bits(given), *others)


def _of_bits(run: Run, bits: Callable[[Any], Any]) -> Run:
    """Elements that kernels have no type for are moved as bytes."""

    def call(x: Any, out: Any, pointer: int, to: int, stream: Any) -> Any:
        if out is not None:
            run(bits(x), bits(out), pointer, to, stream)
            return out
        return run(bits(x), None, pointer, to, stream).view(x.dtype)

    return call


class _Call:
    """A call that is planned: its arrays, checked, and the launches."""

    def __init__(
        self, x: View, order: Axes, out: View | None, device: Device, to: Asked | None = None
    ) -> None:
        self.x, self.order, self.out, self.to = x, order, out, to
        self.dtype = x.dtype if to is None else to.to.target
        self.device = device_of(x, device)
        self.shape = tuple(x.shape[axis] for axis in order)
        self.size = x.dtype.bytes
        self._check()

    def _check(self) -> None:
        x, out = self.x, self.out
        if x.strides is None:
            raise DeviceError("'x' does not say how it lies in memory", advice="give a copy of it")
        if out is None:
            return
        if x.tracked:
            self._check_gradient()
        if out.where != x.where or out.device != x.device:
            raise DeviceError("'x' and 'out' are on different devices", advice="move one of them")
        if out.dtype is not self.dtype:
            raise DeviceError(
                f"'out' has the type {out.dtype!r}, but the result has {self.dtype!r}",
                advice=f'write dtype="{out.dtype.value}"',
            )
        if out.shape != self.shape:
            raise DeviceError(f"'out' has the shape {out.shape}, but the result has {self.shape}")
        if not out.writable:
            raise DeviceError("'out' cannot be written", advice="give a copy of it")
        if out.strides is None or _meets_itself(out.shape, out.strides):
            raise DeviceError("several elements of 'out' share memory", advice="give a copy of it")

    def _check_gradient(self) -> None:
        if library(self.x.owner).wants_gradients():
            raise DeviceError(
                "'x' wants a gradient, which a launch does not record",
                advice="leave out 'out', or give x.detach()",
            )

    def movement(self, x_late: int, y_late: int) -> Movement:
        assert self.x.strides is not None
        read = [self.x.strides[axis] for axis in self.order]
        write = _dense(self.shape) if self.out is None else self.out.strides
        assert write is not None
        late = x_late | y_late | WIDEST
        aligned = late & -late
        along = None if self.to is None else self.to.along
        counted = None if along is None else self.order.index(along)
        return movement(self.size, self.shape, read, write, aligned, self.to, counted)

    def plan(self) -> Run:
        x_late = self.x.pointer & _MASK
        y_late = 0 if self.out is None else self.out.pointer & _OUT_MASK
        moved = self.movement(x_late, y_late)
        found = parts(moved, x_late, y_late, plain=self.device == "c")
        make = library(self.x.owner).maker(_public(self.shape, self.x), self.dtype, self.x.device)
        if is_complex(self.x.owner):
            make = _complex_maker(self.x, self.shape)
        spans = (
            _bytes(moved.bytes, moved.read_span), _bytes(moved.written_bytes, moved.write_span)
        )  # fmt: skip
        run = run_of(found, self.x, self.device, make, spans)
        if not self.x.tracked:
            return run
        order = self.order[: len(_public(self.shape, self.x))]
        return _recording(run, library(self.x.owner), partial(permute, **self._back(order)))

    def _back(self, order: Axes) -> dict[str, Any]:
        """How the gradient goes the other way."""
        back: dict[str, Any] = {"axes": tuple(order.index(axis) for axis in range(len(order)))}
        to = self.to
        if to is None:
            return back
        scale = to.scale[:1] if to.along is None else to.scale[: self.x.shape[to.along]]
        along = None if to.along is None else order.index(to.along)
        return back | {"dtype": to.to.source, "scale": scale or None, "along": along}


def _public(shape: tuple[int, ...], x: View) -> tuple[int, ...]:
    return shape[:-1] if is_complex(x.owner) else shape


def _complex_maker(x: View, shape: tuple[int, ...]) -> Callable[[], Any]:
    return lambda: blank(x.owner, shape[:-1])


def _bytes(size: int, span: tuple[int, int]) -> tuple[int, int]:
    return span[0] * size, span[1] * size


def device_of(x: View, device: Device) -> Device:
    if x.where == "gpu":
        if device not in ("auto", "cuda"):
            raise DeviceError(
                f"'x' is on a GPU, not for '{device}'", advice="leave out device, or move it"
            )
        return "cuda"
    if device == "cuda":
        raise DeviceError("'x' is in host memory", advice="leave out device, or move it")
    return "c" if device == "auto" else device


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def _meets_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share memory: each stride is beyond all smaller ones, or they may."""
    if 0 in shape:
        return False
    reach = 0
    for stride, size in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


Spans = tuple[tuple[int, int], tuple[int, int]]


def _check_apart(x: int, y: int, spans: Spans) -> None:
    (x_low, x_high), (y_low, y_high) = spans
    if x + x_low < y + y_high and y + y_low < x + x_high:
        raise DeviceError("'x' and 'out' share memory", advice="leave out 'out', or give a copy")


def _recording(run: Run, made: Library, back: Callable[[Any], Any]) -> Run:
    """A plan for tensors that may want a gradient: that is asked each time."""
    record, wants = made.recorded, made.wants_gradients

    def call(x: Any, out: Any, pointer: int, to: int, stream: Any) -> Any:
        if not wants():
            return run(x, out, pointer, to, stream)
        if out is not None:
            raise DeviceError(
                "'x' wants a gradient, which a given output does not have",
                advice="leave out 'out', or give x.detach()",
            )
        return record(
            lambda inner: run(inner, None, pointer, to, stream),
            back,
            x,
        )

    return call


def run_of(
    found: Sequence[Part], x: View, device: Device, make: Callable[[], Any], spans: Spans
) -> Run:
    """Launches on arrays like this one: `make` makes the output, `spans` are the bytes in use."""
    if device == "cuda" and found:
        return _GpuPlan(found, x.device, make, library(x.owner), spans).run
    return _HostPlan(found, device, make, spans).run


# -- in host memory --------------------------------------------------------------------------------


def built(spec: Spec) -> Kernel:
    found = _kernels.get(spec)
    if found is None:
        found = _kernels[spec] = kernel_of(spec)
    return found


_kernels: dict[Spec, Kernel] = {}


@lru_cache(maxsize=256)
def _host_function(spec: Spec, device: Device) -> Callable[[list[Any], tuple[int, int, int]], Any]:
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


def arguments(part: Part, x: int, y: int) -> list[Any]:
    """What a kernel is given for addresses in host memory."""
    kernel = built(part.spec)
    begins = {"x": x + part.x_begin, "y": y + part.y_begin}
    made: dict[str, Any] = {}
    for param in kernel.params:
        if param.name in part.numbers:
            made[param.name] = _number(param, part.numbers[param.name])
            continue
        if not isinstance(param, ArrayParam):
            made[param.name] = part.scalars[param.name]
            continue
        count = int(evaluate(param.size, part.scalars))
        memory = (ctypes.c_ubyte * (count * param.dtype.bytes)).from_address(begins[param.name])
        made[param.name] = np.frombuffer(memoryview(memory), param.dtype.numpy)
    if np.may_share_memory(made["x"], made["y"]):
        made["x"] = _elsewhere(made["x"])
    return list(made.values())


def _number(param: Param, numbers: Sequence[float]) -> Any:
    """What is passed by value: a table, or one number."""
    made = np.array(numbers, param.dtype.numpy)
    return made if isinstance(param, ArrayParam) else made[0]


def _elsewhere(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins as late after a multiple of 128: words at its ends may be those of y."""
    room = np.empty(array.nbytes + _OUT_MASK, np.uint8)
    first = (array.ctypes.data - room.ctypes.data) & _OUT_MASK
    copied: np.ndarray[Any, Any] = room[first : first + array.nbytes].view(array.dtype)
    copied[:] = array
    return copied


# -- on a GPU --------------------------------------------------------------------------------------


def _gpu_function(spec: Spec, device: int) -> Any:
    found = _functions.get((spec, device))
    if found is None:
        found = _functions[spec, device] = GpuFunction(built(spec), device).function
    return found


_functions: dict[tuple[Spec, int], Any] = {}


def ready(spec: Spec, kernel: Kernel, function: Any, device: int) -> None:
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
