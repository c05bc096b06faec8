"""`warploom.permute`: a tensor with its axes in another order, moved by a kernel.

What a call is but for addresses (shape, strides, type, device, order, where arrays begin within 16
bytes) is a key; its plan says which kernels are launched with which numbers. Later calls of the
same kind make the output, put two addresses into a table, and launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from warploom.catalogue.permute.axes import Axes, checked_axes
from warploom.catalogue.permute.convert import Asked, asked
from warploom.catalogue.permute.launch import Part
from warploom.catalogue.permute.launched import OUT_MASK, Run, run_of
from warploom.catalogue.permute.problem import WIDEST, Movement, movement
from warploom.catalogue.permute.rule import parts
from warploom.catalogue.permute.tuned import PermuteRig, tuned_parts
from warploom.errors import CheckError, DeviceError, WarploomError, place
from warploom.runtime.callable import Device, check_device
from warploom.runtime.library import READERS, Library, bits_of, blank, library, reader_of
from warploom.runtime.view import View, is_complex, view
from warploom.search.storage.store import users_store

How = tuple[Any, Any, Any, int | None]  # dtype, scale, shift, along
REMEMBERED = 4096
TUNE_SECONDS = 30.0
_MASK = 15  # what kernels know of where x begins


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
    tune: bool | float = False,
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

    Which kernel is launched follows from sizes and strides. With `tune` the likely ones are
    measured on the GPU when a call of its kind comes first, for 30 seconds at most or as many as it
    says, and kept in the store of this user.

    >>> import numpy as np, warploom
    >>> image = np.arange(12, dtype=np.float32).reshape(2, 2, 3)  # height, width, channel
    >>> warploom.permute(image, (2, 0, 1)).tolist()
    [[[0.0, 3.0], [6.0, 9.0]], [[1.0, 4.0], [7.0, 10.0]], [[2.0, 5.0], [8.0, 11.0]]]
    """
    try:
        if dtype is not None or scale is not None or shift is not None or along is not None:
            how = dtype, scale, shift, along
            return _converted(x, axes, out, device, stream, how, _seconds(tune))
        if tune is not False:
            return _converted(x, axes, out, device, stream, None, _seconds(tune))
        try:
            reader = READERS.get(x.__class__) or reader_of(x)
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
                known = key, axes, device, pointer & _MASK, out_key, to & OUT_MASK
            found = _plans.get(known)
        except (RuntimeError, TypeError, AttributeError):  # no memory, or nothing that is hashed
            return _unread(x, axes, out, device, stream)
        if found is None:
            found = _remembered(known, planned(x, axes, out, device))
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


def _seconds(tune: bool | float) -> float:
    """How long is measured; 0 if the rule decides."""
    if isinstance(tune, bool):
        return TUNE_SECONDS if tune else 0.0
    if not isinstance(tune, int | float) or not 0 < tune < math.inf:
        raise CheckError(f"tune is True, False or seconds, not {tune!r:.40}")
    return tune


def _unread(
    x: Any,
    axes: Sequence[int] | str,
    out: Any,
    device: Device,
    stream: Any,
    how: How | None = None,
    seconds: float = 0.0,
) -> Any:
    """A call whose arguments are looked at each time."""
    plan = planned(x, axes, out, device, how, seconds)
    bits = bits_of(x) or (lambda array: array)
    to = 0 if out is None else view((bits if how is None else _same)(out), "out").pointer
    return plan(x, out, view(bits(x), "x").pointer, to, stream)


def _same(array: Any) -> Any:
    return array


def _converted(
    x: Any,
    axes: Sequence[int] | str,
    out: Any,
    device: Device,
    stream: Any,
    how: How | None,
    seconds: float,
) -> Any:
    """A call with a conversion, or tuned: its plan is kept where all of it is hashed."""
    if how is not None:
        how = how[0], _fixed(how[1]), _fixed(how[2]), how[3]
    reader = READERS.get(x.__class__) or reader_of(x)
    wanted = None if out is None else READERS.get(out.__class__) or reader_of(out)
    if reader is None or (out is not None and wanted is None):
        return _unread(x, axes, out, device, stream, how, seconds)
    try:
        key, pointer = reader(x)
        out_key, to = (None, 0) if wanted is None else wanted(out)
        axes = tuple(axes) if isinstance(axes, list) else axes
        late = pointer & _MASK, to & OUT_MASK
        told = None if how is None else (how[0], repr(how[1:]))  # 0.0 is equal to -0.0, 1 to True
        known: Hashable = key, axes, device, late, out_key, told, seconds
        found = _plans.get(known)
    except (RuntimeError, TypeError, AttributeError):  # no memory, or nothing that is hashed
        return _unread(x, axes, out, device, stream, how, seconds)
    if found is None:
        found = _remembered(known, planned(x, axes, out, device, how, seconds))
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


def planned(
    x: Any,
    axes: Sequence[int] | str,
    out: Any,
    device: Device,
    how: How | None = None,
    seconds: float = 0.0,
) -> Run:
    check_device(device)
    bits = bits_of(x)
    if bits is not None and how is not None:
        return _planned_of_truths(x, axes, out, device, how, seconds)
    if bits is not None:
        to_bits = None if out is None else bits(out)
        return _of_bits(planned(bits(x), axes, to_bits, device, None, seconds), bits)
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
    return call.plan(seconds)


def copied(x: View, out: View, device: Device) -> list[Part]:
    """The launches that put a tensor into another, or a part of one, of its shape."""
    return _Call(x, tuple(range(len(x.shape))), out, device).parts()


def _planned_of_truths(
    x: Any, axes: Sequence[int] | str, out: Any, device: Device, how: How, seconds: float
) -> Run:
    """Truth values become 0 and 1."""
    bits = bits_of(x)
    if bits is None or "bool" not in str(x.dtype):
        raise CheckError(f"elements of {x.dtype} are moved, and not converted")
    run = planned(bits(x), axes, out, device, how, seconds)
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

    @property
    def late(self) -> tuple[int, int]:
        """What kernels know of where arrays begin."""
        return self.x.pointer & _MASK, 0 if self.out is None else self.out.pointer & OUT_MASK

    def parts(self) -> list[Part]:
        """The launches by the rule."""
        return parts(self.movement(*self.late), *self.late, plain=self.device == "c")

    def plan(self, seconds: float = 0.0) -> Run:
        late = self.late
        moved = self.movement(*late)
        found = self._tuned(moved, late, seconds) if seconds else self.parts()
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

    def _tuned(self, moved: Movement, late: tuple[int, int], seconds: float) -> list[Part]:
        if self.device != "cuda":
            raise DeviceError(
                "a permutation is tuned on a GPU, but 'x' is in host memory",
                advice="move it to a GPU, or leave out tune",
            )
        if not moved.count:
            return []
        bench = PermuteRig(self.x, moved, late)
        return tuned_parts(moved, late, bench, seconds, users_store())

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
