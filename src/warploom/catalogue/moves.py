"""Movements of tensors beside permutations: rows by number, frames, parts, windows.

Each gives a new tensor of the library that it was given, on its device, and runs as
`warploom.permute` does: on a GPU on the current stream, in host memory by C for this processor, or
on an emulator. PyTorch records a gradient where one is wanted. What is no movement, such as the sum
of windows that overlap, is refused.

>>> import numpy as np
>>> from warploom import moves
>>> x = np.arange(6).reshape(2, 3)
>>> moves.pad(x, ((0, 0), (1, 1))).tolist()
[[0, 0, 1, 2, 0], [0, 3, 4, 5, 0]]
>>> moves.take(x, [2, 0], axis=1).tolist()
[[2, 0], [5, 3]]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate
from typing import Any

from warploom.catalogue.permute import column_call
from warploom.catalogue.permute.axes import count_of
from warploom.catalogue.permute.call import permute
from warploom.catalogue.permute.column_call import Pair, counts, several, windows_of
from warploom.catalogue.permute.frame_call import pad
from warploom.catalogue.permute.joined import again, known_as, seen, together
from warploom.catalogue.permute.take_call import take
from warploom.errors import CheckError, DeviceError, located
from warploom.index.ir import whole_number
from warploom.runtime.callable import Device
from warploom.runtime.library import blank, library
from warploom.runtime.view import library_of

__all__ = [
    "col2im", "concatenate", "crop", "deinterleave", "im2col", "interleave", "pad", "permute",
    "split", "take", "windows",
]  # fmt: skip


@located
def crop(x: Any, ranges: Sequence[Any], *, device: Device = "auto") -> Any:
    """A part of a tensor, as a tensor of its own: for each axis a slice, (start, stop), or None."""
    count = count_of(x)
    if not isinstance(ranges, list | tuple) or len(ranges) != count:
        raise CheckError(f"{ranges!r:.40} for {count} axes", advice="None leaves an axis")
    kept = tuple(_range(each) for each in ranges)
    return _copied(x[kept], device)


@located
def split(x: Any, sizes: int | Sequence[int], axis: int = 0, *, device: Device = "auto") -> Any:
    """Parts of these sizes along an axis, each a tensor of its own; or so many alike."""
    at = _axis(axis, count_of(x))
    count = x.shape[at]
    if isinstance(sizes, list | tuple):
        numbers = [whole_number(each) for each in sizes]
        if None in numbers:
            raise CheckError(f"sizes are whole numbers, not {sizes!r:.40}")
        sizes = [each for each in numbers if each is not None]
    else:
        parts = whole_number(sizes)
        if parts is None or parts < 1 or count % parts:
            raise CheckError(
                f"an axis of {count} in {sizes!r:.20} parts", advice="give their sizes"
            )
        sizes = [count // parts] * parts
    if sum(sizes) != count or min(sizes, default=0) < 0:
        raise CheckError(f"parts of {tuple(sizes)} along an axis of {count}")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [
        _copied(_slice(x, at, slice(start, start + size)), device)
        for start, size in zip(starts, sizes, strict=True)
    ]


@located
def concatenate(parts: Sequence[Any], axis: int = 0, *, device: Device = "auto") -> Any:
    """Tensors one after the other along an axis; all other sizes are the same."""
    parts = _listed(parts)
    known = known_as(parts, ("concatenate", axis, device))
    found = again(known, parts)
    if found is not None:
        return found
    first, at = _alike(parts, axis)
    sizes = [part.shape[at] for part in parts]
    shape = (*first.shape[:at], sum(sizes), *first.shape[at + 1 :])
    ends = list(accumulate(sizes))

    def targets(out: Any) -> list[Any]:
        begun = zip(ends, sizes, strict=True)
        return [_slice(out, at, slice(end - size, end)) for end, size in begun]

    def run(*given: Any) -> Any:
        return together(known, given, shape, targets, device)

    return library(first).recorded(run, lambda g: tuple(split(g, sizes, at)), *parts)


@located
def interleave(parts: Any, axis: int = 0, *, device: Device = "auto") -> Any:
    """Elements of each tensor in turn along an axis. `parts` are tensors alike, or one tensor whose
    first axis counts them, which is a single launch."""
    if isinstance(parts, list | tuple):
        known = known_as(parts, ("interleave", axis, device))
        found = again(known, parts)
        if found is not None:
            return found
        first, at = _alike(parts, axis)
        count = len(parts)
        if any(part.shape != first.shape for part in parts):
            raise CheckError("tensors of several shapes", advice="interleave those of one shape")

        def targets(out: Any) -> list[Any]:
            return [_slice(out, at, slice(number, None, count)) for number in range(count)]

        def run(*given: Any) -> Any:
            return together(known, given, _longer(first.shape, at, count), targets, device)

        return library(first).recorded(run, lambda g: tuple(deinterleave(g, count, at)), *parts)
    at = _axis(axis, count_of(parts, "parts") - 1)
    order = (*range(1, at + 2), 0, *range(at + 2, parts.ndim))
    return permute(parts, order, device=device).reshape(
        _longer(parts.shape[1:], at, parts.shape[0])
    )


@located
def deinterleave(x: Any, count: int, axis: int = 0, *, device: Device = "auto") -> Any:
    """A tensor whose first axis counts the parts that were interleaved along an axis."""
    at = _axis(axis, count_of(x))
    parts = whole_number(count)
    if parts is None or parts < 1 or x.shape[at] % parts:
        raise CheckError(f"an axis of {x.shape[at]} in {count!r:.20} parts")
    apart = x.reshape((*x.shape[:at], x.shape[at] // count, count, *x.shape[at + 1 :]))
    order = (at + 1, *(axis for axis in range(apart.ndim) if axis != at + 1))
    return permute(apart, order, device=device)


@located
def windows(
    x: Any, size: Sequence[int], step: Sequence[int] | int = 1, *, device: Device = "auto"
) -> Any:
    """All windows of these sizes along the last axes, each `step` after the one before: their
    places are axes where those were, and their elements follow as the last ones."""
    axes = count_of(x)
    if not isinstance(size, list | tuple) or len(size) > axes:
        raise CheckError(f"windows of {size!r:.40} in {axes} axes", advice="a size for each axis")
    count = len(size)
    size, steps = several(size, count, "size"), several(step, count, "step")
    found = _windowed(x, list(range(x.ndim - count, x.ndim)), size, steps, [1] * count)
    return _copied(found, device)


@located
def im2col(
    x: Any,
    kernel: Pair | int,
    stride: Pair | int = 1,
    padding: Pair | int = 0,
    dilation: Pair | int = 1,
    *,
    device: Device = "auto",
    stream: Any = None,
) -> Any:
    """Windows of images as columns: (N, C, H, W) becomes (N, C · kernel, windows), as by
    `torch.nn.functional.unfold`."""
    return column_call.im2col(x, kernel, stride, padding, dilation, device, stream)


@located
def col2im(
    columns: Any,
    size: Pair,
    kernel: Pair | int,
    stride: Pair | int = 1,
    padding: Pair | int = 0,
    dilation: Pair | int = 1,
    *,
    device: Device = "auto",
) -> Any:
    """The images of this size whose windows these are, as by `torch.nn.functional.fold`; zero where
    no window is. Windows that overlap would have to be added up, and are refused."""
    sides, steps, around, apart = how = windows_of(kernel, stride, padding, dilation)
    size = several(size, 2, "size")
    if count_of(columns, "columns") != 3:
        raise CheckError(
            f"a tensor of {columns.ndim} axes",
            advice="columns are of shape (N, C · kernel, windows)",
        )
    spans = [(side - 1) * each + 1 for side, each in zip(sides, apart, strict=True)]
    if any(step < span for step, span in zip(steps, spans, strict=True)):
        raise CheckError(
            f"windows of {tuple(spans)} overlap, {tuple(steps)} apart: their sum is no movement",
            advice="use torch.nn.functional.fold, or windows as far apart as they are long",
        )
    whole = [side + 2 * each for side, each in zip(size, around, strict=True)]
    places_of = counts(size, how)
    batch, rows, places = columns.shape
    channels = rows // math.prod(sides)
    if places != math.prod(places_of) or rows % math.prod(sides):
        raise CheckError(
            f"columns of {tuple(columns.shape)}, but images of {tuple(size)} have"
            f" {math.prod(places_of)} windows of {math.prod(sides)} elements"
        )
    covered = all(n == count * span and step == span for n, count, span, step in
                  zip(whole, places_of, spans, steps, strict=True)) and apart == (1, 1)  # fmt: skip

    def run(given: Any) -> Any:
        out = blank(given, (batch, channels, *whole))
        if not covered:
            out[...] = 0
        target = _windowed(out, [2, 3], sides, steps, apart)
        parts = given.reshape((batch, channels, *sides, *places_of))
        permute(parts, (0, 1, 4, 5, 2, 3), target, device=device)
        if not any(around):
            return out
        inner = [slice(each, each + n) for each, n in zip(around, size, strict=True)]
        return _copied(out[(slice(None), slice(None), *inner)], device)

    back = partial(im2col, kernel=sides, stride=steps, padding=around, dilation=apart)
    return library(columns).recorded(run, back, columns)


# -- what they share -------------------------------------------------------------------------------


def _copied(x: Any, device: Device) -> Any:
    return permute(x, range(x.ndim), device=device)


def _axis(axis: int, count: int) -> int:
    number = whole_number(axis)
    if number is None or not -count <= number < count:
        raise CheckError(f"the tensor has no axis {axis!r:.20}", advice=f"it has {count}")
    return number % count


def _range(given: Any) -> slice:
    """A part of an axis as a call gives it."""
    ends: Sequence[Any] = ("",)
    if given is None:
        ends = (None,)
    elif isinstance(given, slice):
        ends = (given.start, given.stop, given.step)
    elif isinstance(given, list | tuple) and len(given) == 2:
        ends = given
    if any(each is not None and whole_number(each) is None for each in ends) or 0 in ends[2:]:
        raise CheckError(f"{given!r:.40} is no part of an axis", advice="(start, stop), or None")
    return slice(*ends)


def _listed(parts: Any) -> Sequence[Any]:
    """Tensors that are to be put together, as a list or tuple."""
    if isinstance(parts, list | tuple):
        return parts
    if hasattr(parts, "ndim") or not hasattr(parts, "__iter__"):
        raise CheckError(
            f"'parts' is of type {type(parts).__name__}", advice="give a list of tensors"
        )
    return list(parts)


def _slice(x: Any, axis: int, part: slice) -> Any:
    return x[(*[slice(None)] * axis, part)]


def _longer(shape: Sequence[int], axis: int, times: int) -> tuple[int, ...]:
    return (*shape[:axis], shape[axis] * times, *shape[axis + 1 :])


def _alike(parts: Sequence[Any], axis: int) -> tuple[Any, int]:
    """The first of several tensors, and the axis: all have its type, device and other sizes."""
    if not parts:
        raise CheckError("there are no tensors to put together")
    first, *others = [seen(each) for each in parts]
    at = _axis(axis, count_of(parts[0], "parts"))
    wanted = [n for i, n in enumerate(first.shape) if i != at]
    for each in others:
        if [n for i, n in enumerate(each.shape) if i != at] != wanted:
            raise CheckError(f"tensors of {first.shape} and {each.shape} along axis {at}")
        if (each.dtype, each.where, each.device) != (first.dtype, first.where, first.device):
            raise DeviceError("tensors of several types or devices", advice="convert them first")
    if len({str(each.dtype) for each in parts}) > 1:  # types that are moved as bytes
        raise DeviceError("tensors of several types", advice="convert them first")
    return parts[0], at


def _windowed(
    x: Any, axes: Sequence[int], size: Sequence[int], steps: Sequence[int], apart: Sequence[int]
) -> Any:
    """A view with the windows along some axes: where they are, then, as last axes, what they
    have."""
    for axis, side, step, each in zip(axes, size, steps, apart, strict=True):
        span = (side - 1) * each + 1
        if min(side, step, each) < 1 or span > x.shape[axis]:
            raise CheckError(f"windows of {span} along an axis of {x.shape[axis]}")
        if library_of(x) == "torch":
            x = x.unfold(axis, span, step)[..., ::each]
            continue
        count = (x.shape[axis] - span) // step + 1
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], side)
        strides = list(x.strides)
        strides[axis] *= step
        x = _strided(x, shape, (*strides, x.strides[axis] * each))
    return x


def _strided(x: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    tricks = import_module(f"{library_of(x)}.lib.stride_tricks")
    return tricks.as_strided(x, shape, strides)
