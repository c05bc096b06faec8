"""What operators compute, and their gradients, in PyTorch's own words.

The plain expressions run on the CPU and are what tests compare with; a gradient is a function of
`(ops, gradient, *arguments)`, where `ops` has the operators themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from warploom.errors import DeviceError

Tensor = Any


def copied(tensor: Tensor) -> Tensor:
    """In memory order, and never the memory of another tensor."""
    return tensor.clone(memory_format=import_module("torch").contiguous_format)


def converted(
    x: Tensor, axes: Sequence[int], dtype: Any, scale: float = 1.0, shift: float = 0.0
) -> Tensor:
    """A permutation with a conversion, a factor and a shift."""
    torch = import_module("torch")
    wide = torch.float64 if torch.float64 in (x.dtype, dtype) else torch.float32
    return copied((x.to(wide) * scale + shift).to(dtype).permute(axes))


def pairs(widths: Sequence[int]) -> list[tuple[int, int]]:
    """What is before and after each axis, of numbers in a row."""
    return list(zip(widths[::2], widths[1::2], strict=True))


def framed(shape: Sequence[int], widths: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + n + b for n, (a, b) in zip(shape, pairs(widths), strict=True))


def in_frame(x: Tensor, widths: Sequence[int], value: float = 0.0) -> Tensor:
    """A frame of a value around a tensor."""
    made = x.new_full(framed(x.shape, widths), value)
    made[_within(x.shape, widths)] = x
    return made


def frame_gradient(
    ops: Any, gradient: Tensor, shape: Sequence[int], widths: Sequence[int], _: float = 0.0
) -> Tensor:
    return ops.permute(gradient[_within(shape, widths)], list(range(len(shape))))


def _within(shape: Sequence[int], widths: Sequence[int]) -> tuple[slice, ...]:
    known = zip(shape, pairs(widths), strict=True)
    return tuple(slice(before, before + n) for n, (before, _) in known)


def with_rows(shape: Sequence[int], count: int, axis: int) -> tuple[int, ...]:
    at = axis % len(shape)
    return (*shape[:at], count, *shape[at + 1 :])


def rows(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """Rows by their numbers, which count from the end where they are below zero."""
    return x.index_select(axis, index.where(index >= 0, index + x.shape[axis]))


def rows_gradient(_: Any, gradient: Tensor, x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """A row that was taken several times has the sum."""
    numbers = index.where(index >= 0, index + x.shape[axis])
    return gradient.new_zeros(x.shape).index_add(axis, numbers, gradient)


def padded(tensor: Tensor, by: int) -> Tensor:
    """Zeros to both sides of a line."""
    longer = tensor.new_zeros(tensor.shape[0] + 2 * by)
    longer[by : by + tensor.shape[0]] = tensor
    return longer


def line_gradient(ops: Any, gradient: Tensor, _: Tensor, w: Tensor) -> Tensor:
    return ops.convolution_1d(padded(gradient, w.numel() - 1), w.reshape(-1).flip(0))


def line_weights(_: Any, gradient: Tensor, x: Tensor, w: Tensor) -> Tensor:
    n = gradient.shape[0]
    return _stacked([(gradient * x[j : j + n]).sum() for j in range(w.numel())], w)


def _stacked(values: list[Tensor], like: Tensor) -> Tensor:
    return import_module("torch").stack(values).to(like.device).reshape(like.shape)


def line(x: Tensor, w: Tensor) -> Tensor:
    n, flat = x.shape[0] - w.numel() + 1, w.to(x.device).reshape(-1)
    return sum(flat[j] * x[j : j + n] for j in range(flat.numel()))


def image_windows(image: Tensor, w: Tensor) -> Tensor:
    height, columns = image.shape[-2:]
    taps = side(int(w.numel()))
    around, weights = _edges(image, taps // 2), w.to(image.device).reshape(taps, taps)
    return sum(
        weights[y, x] * around[..., y : y + height, x : x + columns]
        for y in range(taps)
        for x in range(taps)
    )


def _edges(image: Tensor, by: int) -> Tensor:
    """Images with their borders replicated."""
    count = partial(import_module("torch").arange, device=image.device)
    rows, columns = (count(-by, size + by).clamp(0, size - 1) for size in image.shape[-2:])
    return image[..., rows, :][..., columns]


def image_gradient(ops: Any, gradient: Tensor, image: Tensor, w: Tensor) -> Tensor:
    """The convolution with the weights turned round, on zeros beyond the image; what comes to lie
    beyond it belongs to its border, which was replicated."""
    taps = side(int(w.numel()))
    half, (*outer, height, columns) = taps // 2, image.shape
    far, bottom, right = 2 * half, height + half, columns + half
    around = gradient.new_zeros((*outer, height + 2 * far, columns + 2 * far))
    around[..., far : far + height, far : far + columns] = gradient
    spread = ops.convolution_2d(around, w.reshape(-1).flip(0))
    spread = spread[..., half : bottom + far, half : right + far]
    result = spread[..., half:bottom, :].clone()
    result[..., 0, :] += spread[..., :half, :].sum(-2)
    result[..., -1, :] += spread[..., bottom:, :].sum(-2)
    inner = result[..., half:right].clone()
    inner[..., 0] += result[..., :half].sum(-1)
    inner[..., -1] += result[..., right:].sum(-1)
    return inner


def image_weights(_: Any, gradient: Tensor, image: Tensor, w: Tensor) -> Tensor:
    taps, (height, columns) = side(int(w.numel())), image.shape[-2:]
    around = _edges(image, taps // 2)
    products = [
        (gradient * around[..., y : y + height, x : x + columns]).sum()
        for y in range(taps)
        for x in range(taps)
    ]
    return _stacked(products, w)


def side(weights: int) -> int:
    """The side length of a square of so many weights; an error if they form none."""
    taps = math.isqrt(weights)
    if taps * taps != weights:
        raise DeviceError(f"{weights} weights are no square")
    return taps


def product(a: Tensor, b: Tensor) -> Tensor:
    degree = a.shape[-1]
    c = a.new_zeros((*a.shape[:-1], 2 * degree))
    for i in range(degree):
        c[..., i : i + degree] ^= a[..., i : i + 1] & b
    return c
