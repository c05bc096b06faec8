"""The rows that permutations are measured on: shapes, orders of axes and types.

The rows of the page, 24 orders of one odd shape, and random odd shapes: 200 that settings may be
fitted to, and 40 that are kept aside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from warploom.catalogue.permute.problem import Movement, movement

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int8": 1, "uint8": 1,
         "int16": 2, "int32": 4, "int64": 8}  # fmt: skip


@dataclass(frozen=True)
class Row:
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * BYTES[self.dtype]


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for n in (16384, 8192, 4096):
        for dtype in ("float32", "float16", "float64", "int8"):
            found[f"square/{n}/{dtype}"] = Row((n, n), (1, 0), dtype)
    for dtype in ("float32", "float16", "float64", "int8"):
        found[f"odd/10007x7777/{dtype}"] = Row((10007, 7777), (1, 0), dtype)
    for dtype in ("float32", "float16"):
        found[f"nchw/64x256x56x56/{dtype}"] = Row((64, 256, 56, 56), (0, 2, 3, 1), dtype)
    found["nhwc/64x56x56x256/float32"] = Row((64, 56, 56, 256), (0, 3, 1, 2), "float32")
    found["heads/8x2048x32x128/bfloat16"] = Row((8, 2048, 32, 128), (0, 2, 1, 3), "bfloat16")
    found["keys/8x32x2048x128/bfloat16"] = Row((8, 32, 2048, 128), (0, 1, 3, 2), "bfloat16")
    found["reversed/512/float32"] = Row((512, 512, 512), (2, 1, 0), "float32")
    for dtype in ("uint8", "float16", "float32"):
        found[f"rgb/16x3x1080x1920/{dtype}"] = Row((16, 3, 1080, 1920), (0, 2, 3, 1), dtype)
        found[f"rgb-back/16x1080x1920x3/{dtype}"] = Row((16, 1080, 1920, 3), (0, 3, 1, 2), dtype)
    for axes in permutations(range(4)):
        name = "".join(map(str, axes))
        found[f"hundred/{name}/float32"] = Row((100, 101, 102, 103), axes, "float32")
    for kind, first, count in (("random", 1000, 200), ("aside", 9000, 40)):
        for at in range(count):
            found[f"{kind}/{at}"] = drawn(first + at)
    return found


def drawn(seed: int, least: int = 24 << 20, most: int = 192 << 20) -> Row:
    """A shape of 2 to 6 axes of odd sizes, so many bytes in all, and an order that moves them."""
    random = np.random.default_rng(seed)
    dtype = str(random.choice(["int8", "float16", "float32", "int64"]))
    count = int(random.integers(2, 7))
    total = random.uniform(math.log(least), math.log(most)) - math.log(BYTES[dtype])
    shares = random.dirichlet(np.full(count, 2.0))
    shape = tuple(max(3, round(math.exp(total * share)) | 1) for share in shares)
    axes = tuple(range(count))
    while axes == tuple(range(count)):
        axes = tuple(int(axis) for axis in random.permutation(count))
    return Row(shape, axes, dtype)


def movement_of(row: Row) -> Movement:
    """The movement of a dense tensor to a dense one."""
    strides = [math.prod(row.shape[axis + 1 :]) for axis in range(len(row.shape))]
    shape = [row.shape[axis] for axis in row.axes]
    write = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return movement(BYTES[row.dtype], shape, [strides[axis] for axis in row.axes], write)
