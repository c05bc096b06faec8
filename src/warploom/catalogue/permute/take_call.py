"""`moves.take`: rows of a tensor by their numbers, which are data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from warploom.catalogue.formula import rows_gradient
from warploom.catalogue.permute.axes import count_of
from warploom.catalogue.permute.call import device_of, permute
from warploom.catalogue.permute.joined import Again, Known, again, known_as, remember
from warploom.catalogue.permute.problem import WIDEST
from warploom.catalogue.permute.taken import INDEX, MOST_WORDS, Taking, launcher, word_of
from warploom.errors import CheckError, DeviceError, located
from warploom.index.ir import whole_number
from warploom.runtime.callable import Device, check_device
from warploom.runtime.gpu import stream_handle
from warploom.runtime.library import Library, bits_of, blank, library
from warploom.runtime.view import library_of, view


@located
def take(
    x: Any, indices: Any, axis: int = 0, *, device: Device = "auto", stream: Any = None
) -> Any:
    """The rows of a tensor with these numbers along an axis, as `numpy.take` gives them.

    `indices` are a list, or an array of one axis; those below zero count from the end. In host
    memory one outside of the axis is an error. On a GPU nobody looks at them: there its row is
    zero, and nothing else is read.
    """
    asked = known_as((x, indices), ("take", axis, device)) if stream is None else None
    found = again(asked, (x, indices))
    if found is not None:
        return found
    check_device(device)
    count = count_of(x)
    at = whole_number(axis)
    if at is None or not -count <= at < count:
        raise CheckError(f"the tensor has no axis {axis!r:.20}", advice=f"it has {count}")
    at %= count
    numbers = _numbers(x, indices, x.shape[at])

    def run(given: Any) -> Any:
        return _taken(given, numbers, at, device, stream, asked if numbers is indices else None)

    return library(x).recorded(run, lambda g: _added(g, numbers, at, x), x)


def _numbers(x: Any, indices: Any, size: int) -> Any:
    """The indices where x is, as one of two types; those that are in host memory are checked."""
    if isinstance(indices, list | tuple):
        try:
            indices = np.array(indices, None if len(indices) else np.int64)
        except ValueError:  # rows of several lengths
            indices = np.zeros((1, 1))
    known = view(indices, "indices")
    if len(known.shape) != 1 or known.dtype.is_float or known.dtype.is_code:
        raise CheckError(
            "'indices' are whole numbers in a row", advice="a list, or an array of one axis"
        )
    on_gpu = view(_bits(x), "x").where == "gpu"
    if known.where == "gpu":
        if not on_gpu:
            raise DeviceError("'x' is in host memory, 'indices' are not", advice="move one of them")
        return indices if known.dtype.bytes in INDEX else _typed(indices)
    assert known.host is not None
    host = np.ascontiguousarray(known.host, np.int64)
    if host.size and not (-size <= int(host.min()) and int(host.max()) < size):
        wrong = next(int(each) for each in host if not -size <= each < size)
        raise CheckError(f"index {wrong} of an axis of {size}")
    if not on_gpu:
        return host
    if library_of(x) == "torch":
        return import_module("torch").from_numpy(host).to(x.device)
    return import_module(library_of(x)).asarray(host)


def _typed(indices: Any) -> Any:
    kind = "int64"
    if library_of(indices) == "torch":
        return indices.to(getattr(import_module("torch"), kind))
    return indices.astype(kind)


def _bits(x: Any) -> Any:
    bits = bits_of(x)
    return x if bits is None else bits(x)


def _dense(x: Any) -> Any:
    flags = getattr(x, "flags", None)
    dense = x.is_contiguous() if flags is None else flags.c_contiguous
    return x if dense else permute(x, range(x.ndim))


def _taken(x: Any, numbers: Any, at: int, device: Device, stream: Any, asked: Known | None) -> Any:
    dense = _dense(x), _dense(numbers)
    as_they_lie = dense[0] is x and dense[1] is numbers
    x, numbers = dense
    out = blank(x, (*x.shape[:at], numbers.shape[0], *x.shape[at + 1 :]))
    source, target, index = view(_bits(x), "x"), view(_bits(out), "out"), view(numbers, "indices")
    where = device_of(source, device)
    if where not in ("cuda", "c", "ptx"):
        raise DeviceError(f"rows are not taken on '{where}'", advice='use device="c" or "ptx"')
    count, size = index.size, x.shape[at]
    outer, row = math.prod(x.shape[:at]), math.prod(source.shape[at + 1 :]) * source.dtype.bytes
    if not outer * row * count:
        return out
    if not size:  # indices on a GPU, which nobody has looked at
        out[...] = 0
        return out
    word = word_of(row, (source.pointer, target.pointer))
    run = row // word
    if count * run >= MOST_WORDS:
        raise DeviceError(f"{count} rows of {row} bytes", advice="take fewer at a time")
    handle = 0
    if where == "cuda":
        made = library(x)
        handle = made.stream(source.device)() if stream is None else stream_handle(stream)
    elif stream is not None:
        raise DeviceError("a stream is given, but 'x' is in host memory", advice="leave it out")
    most = max(1, (MOST_WORDS - 1) // (count * run))
    for first in range(0, outer, most):
        steps = min(most, outer - first)
        taking = Taking(word, index.dtype.bytes, run, count, size, steps * count * run)
        launch = launcher(taking, where, source.device)
        begins = source.pointer + first * size * row, target.pointer + first * count * row
        launch(begins[0], index.pointer, begins[1], handle)
    alone = where == "cuda" and not source.tracked and as_they_lie and outer <= most
    if asked is not None and alone and target.pointer % WIDEST == 0:
        remember(asked, _again(launch, out.shape, library(x), source.device))
    return out


def _again(launch: Callable[..., None], shape: Any, made: Library, device: int) -> Again:
    """What later calls do: no more than a new tensor and a launch."""
    address, stream = made.pointer, made.stream(device)

    def call(arrays: Sequence[Any], pointers: list[int]) -> Any:
        out = blank(arrays[0], shape)
        to = address(out)
        if to % WIDEST:  # words are as long as all that was known is a multiple of
            return None
        launch(*pointers, to, stream())
        return out

    return call


def _added(gradient: Any, numbers: Any, at: int, x: Any) -> Any:
    """The gradient of x."""
    torch = import_module("torch")
    index = numbers if library_of(numbers) == "torch" else torch.from_numpy(numbers)
    return rows_gradient(None, gradient, x, index.to(gradient.device, torch.int64), at)
