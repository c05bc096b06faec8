"""`moves.pad`: a tensor with a frame of one value around, in a single pass."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from warploom.catalogue.permute.call import device_of, permute
from warploom.catalogue.permute.frames import frame_parts
from warploom.catalogue.permute.launched import Run, run_of
from warploom.catalogue.permute.padded import Frame
from warploom.catalogue.permute.problem import MOST_AXES, WIDEST
from warploom.errors import CheckError, DeviceError, located
from warploom.index.ir import whole_number
from warploom.kernel.dtype import DType, coded
from warploom.runtime.callable import Device, check_device
from warploom.runtime.library import READERS, bits_of, blank, library, reader_of
from warploom.runtime.view import View, is_complex, view

Widths = tuple[tuple[int, int], ...]
REMEMBERED = 1024
_plans: dict[Hashable, Run] = {}


@located
def pad(
    x: Any,
    widths: Sequence[Sequence[int]] | int,
    value: complex = 0,
    *,
    device: Device = "auto",
    stream: Any = None,
) -> Any:
    """The tensor with so many elements of a value before and after it, along each axis.

    `widths` are as in `numpy.pad`: a pair for each axis, or one number for all. A part of the
    tensor is taken by `moves.crop`, not by widths below zero.
    """
    check_device(device)
    known, reader = _widths(widths, x.ndim), READERS.get(x.__class__) or reader_of(x)
    if reader is None:
        return _planned(x, known, value, device)(x, None, view(x, "x").pointer, 0, stream)
    key, pointer = reader(x)
    asked: Hashable = key, known, value, type(value), device, pointer % WIDEST
    plan = _plans.get(asked)
    if plan is None:
        if len(_plans) >= REMEMBERED:
            _plans.clear()
        plan = _plans[asked] = _planned(x, known, value, device)
    return plan(x, None, pointer, 0, stream)


def _widths(given: Sequence[Sequence[int]] | int, count: int) -> Widths:
    if isinstance(given, int):
        given = ((given, given),) * count
    try:
        pairs = tuple(tuple(whole_number(each) for each in pair) for pair in given)
    except TypeError:
        pairs = ()
    right = len(pairs) == count and all(
        len(pair) == 2 and all(each is not None and each >= 0 for each in pair) for pair in pairs
    )
    if not right:
        raise CheckError(
            f"{given!r:.60} is no frame of a tensor of {count} axes",
            advice="give (before, after) for each axis, whole numbers from 0; crop takes parts",
        )
    return pairs  # type: ignore[return-value]


def _planned(x: Any, widths: Widths, value: complex, device: Device) -> Run:
    bits = bits_of(x)
    source = view(x if bits is None else bits(x), "x")
    if len(widths) > MOST_AXES:
        raise CheckError(f"a tensor of {len(widths)} axes", advice=f"at most {MOST_AXES}")
    if source.strides is None:
        raise DeviceError("'x' does not say how it lies in memory", advice="give a copy of it")
    pairs = is_complex(x)
    framed = (*widths, (0, 0)) if pairs else widths
    axes = [
        Frame(before + size + after, before, before + size, stride)
        for (before, after), size, stride in zip(framed, source.shape, source.strides, strict=True)
    ]
    size = source.dtype.bytes
    if pairs:  # real and imaginary part stay together
        *axes, _ = [Frame(each.size, each.low, each.high, each.read // 2) for each in axes]
        size *= 2
    where = device_of(source, device)
    aligned = source.pointer % WIDEST
    element = _element(x, source, value, bits is not None)
    found = frame_parts(axes, size, aligned & -aligned or WIDEST, element)
    shape = tuple(before + n + after for (before, after), n in zip(widths, x.shape, strict=True))
    reach = sum(abs(each.high - each.low) * abs(each.read) for each in axes) * size
    like = x if bits is None else bits(x)
    run = run_of(found, source, where, lambda: blank(like, shape), ((-reach, reach), (0, 0)))
    if bits is not None:
        return lambda given, *others: run(bits(given), *others).view(given.dtype)
    if not source.tracked:
        return run
    kept = tuple(slice(before, before + n) for (before, _), n in zip(widths, x.shape, strict=True))
    made = library(x)

    def call(given: Any, out: Any, pointer: int, to: int, stream: Any) -> Any:
        if not made.wants_gradients():
            return run(given, out, pointer, to, stream)
        return made.recorded(
            lambda inner: run(inner, None, pointer, to, stream),
            lambda gradient: permute(gradient[kept], range(gradient.ndim)),
            given,
        )

    return call


def _element(x: Any, source: View, value: complex, as_bytes: bool) -> bytes:
    """The value as the elements of a tensor have it."""
    if as_bytes and value not in (0, 1):
        raise CheckError(f"{value!r:.40} is no element of {x.dtype}", advice="use 0 or 1")
    if as_bytes and value == 1 and "bool" not in str(x.dtype):
        raise CheckError(f"elements of {x.dtype} are moved as bytes", advice="pad with 0")
    kind = source.dtype
    if is_complex(x):
        number = complex(value)
        return np.array([number.real, number.imag], kind.numpy).tobytes()
    if isinstance(value, complex):
        raise CheckError(f"{value!r:.40} is no {kind!r}")
    if kind is DType.BF16:
        return bytes(coded(np.array([value], np.float32), kind).tobytes())
    if not kind.is_code and not kind.has(value):
        raise CheckError(f"{value!r:.40} is no {kind!r}", advice="give a number of the type")
    with np.errstate(over="ignore"):
        return np.array(value, kind.numpy).tobytes()
