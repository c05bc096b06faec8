"""`moves.im2col`: windows of images as columns in a single pass, zeros where they go beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from warploom.catalogue.permute.axes import count_of
from warploom.catalogue.permute.frame_call import planned_frames, remembered
from warploom.catalogue.permute.launched import Run
from warploom.catalogue.permute.padded import Frame
from warploom.errors import CheckError
from warploom.index.ir import whole_number
from warploom.runtime.callable import Device

Pair = Sequence[int]
Four = tuple[tuple[int, ...], ...]  # sizes, steps, frame and dilation, along both axes


def im2col(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, device: Device, stream: Any
) -> Any:
    if count_of(x) != 4:
        raise CheckError(f"a tensor of {x.ndim} axes", advice="images are of shape (N, C, H, W)")
    how = windows_of(kernel, stride, padding, dilation)
    places = counts(x.shape[2:], how)
    if min(places) < 1:
        spans = tuple((n - 1) * each + 1 for n, each in zip(how[0], how[3], strict=True))
        raise CheckError(f"windows of {spans} in images of {tuple(x.shape[2:])}")
    return remembered(x, ("im2col", how), lambda: _planned(x, how, places, device), device, stream)


def windows_of(kernel: Any, stride: Any, padding: Any, dilation: Any) -> Four:
    """The options of windows of images, along both axes."""
    sides, steps, apart = (
        several(each, 2, name)
        for each, name in ((kernel, "kernel"), (stride, "stride"), (dilation, "dilation"))
    )
    around = several(padding, 2, "padding")
    if min(*sides, *steps, *apart) < 1 or min(around) < 0:
        raise CheckError("windows, their steps and what is between them are at least 1")
    return sides, steps, around, apart


def several(given: Sequence[int] | int, count: int, name: str) -> tuple[int, ...]:
    """One whole number for all axes, or one for each."""
    try:
        numbers = (given,) * count if isinstance(given, int) else tuple(given)
    except TypeError:
        numbers = ()
    if len(numbers) != count or any(whole_number(each) is None for each in numbers):
        raise CheckError(f"'{name}' is a whole number, or {count} of them, not {given!r:.40}")
    return numbers


def counts(size: Pair, how: Four) -> list[int]:
    """How many windows there are along both axes of images of this size."""
    return [
        (n + 2 * around - (side - 1) * apart - 1) // step + 1
        for n, side, step, around, apart in zip(size, *how, strict=True)
    ]


def _planned(x: Any, how: Four, places: Sequence[int], device: Device) -> Run:
    sides, steps, around, apart = how

    def frames(sizes: Sequence[int], strides: Sequence[int]) -> list[Frame]:
        images = [Frame(n, 0, n, stride) for n, stride in zip(sizes[:2], strides[:2], strict=True)]
        elements, windows = (
            [
                Frame(n, pad, pad + size, stride, step, window)
                for window, (n, pad, size, stride, step) in enumerate(
                    zip(several, around, sizes[2:], strides[2:], by, strict=True), 1
                )
            ]
            for several, by in ((sides, apart), (places, steps))
        )
        return [*images, *elements, *windows]

    size = tuple(x.shape[2:])
    shape = (x.shape[0], x.shape[1] * math.prod(sides), math.prod(places))

    def back(gradient: Any) -> Any:
        """The sum of all windows that an element is in."""
        fold = import_module("torch").nn.functional.fold
        return fold(gradient, size, sides, apart, around, steps)

    return planned_frames(x, shape, frames, 0, device, back)
