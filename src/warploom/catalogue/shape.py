"""What the shapes of a kernel's inputs say: how much there is of what, and how outputs look.

Arrays that have the axes a kernel is about keep them; an array of one axis is read in memory order.
"""

from __future__ import annotations

import math
from typing import Any

from warploom.catalogue.entry import Fit, Shapes
from warploom.errors import DeviceError

Shape = tuple[int, ...]


def structures_to_arrays(shapes: Shapes, fields: int, **_: Any) -> Fit:
    """(…, fields) → (fields, …)."""
    outer = _structures(shapes["x"], fields)
    return Fit({"n": math.prod(outer)}, {"y": (fields, *outer)})


def arrays_to_structures(shapes: Shapes, fields: int, **_: Any) -> Fit:
    """(fields, …) → (…, fields)."""
    shape = shapes["x"]
    if len(shape) == 1:
        outer: Shape = (_divided(shape[0], fields, "structures of so many fields"),)
    else:
        first, *rest = shape
        outer = tuple(rest)
        if first != fields:
            raise _wrong(shape, f"({fields}, …)")
    return Fit({"n": math.prod(outer)}, {"y": (*outer, fields)})


def sums_of_structures(shapes: Shapes, fields: int, **_: Any) -> Fit:
    """(…, fields) → (…)."""
    outer = _structures(shapes["x"], fields)
    return Fit({"n": math.prod(outer)}, {"y": outer})


def transposed_matrices(shapes: Shapes, m: int, n: int, **_: Any) -> Fit:
    """(…, m, n) → (…, n, m)."""
    shape = shapes["x"]
    if len(shape) == 1:
        outer: Shape = (_divided(shape[0], m * n, f"{m} × {n} matrices"),)
    elif shape[-2:] == (m, n):
        outer = shape[:-2]
    else:
        raise _wrong(shape, f"(…, {m}, {n})")
    return Fit({"count": math.prod(outer)}, {"y": (*outer, n, m)})


def windows_of_line(shapes: Shapes, taps: int, **_: Any) -> Fit:
    """(n + taps - 1) → (n)."""
    shape = shapes["x"]
    if len(shape) != 1:
        raise _wrong(shape, "one axis")
    n = shape[0] - taps + 1
    if n < 1:
        raise DeviceError(
            f"'x' has {shape[0]} elements, fewer than the {taps} of one window",
            advice="a line of n + taps - 1 elements gives n",
        )
    return Fit({"n": n}, {"y": (n,)})


def windows_of_image(shapes: Shapes, **_: Any) -> Fit:
    """(height, columns) → (height, columns)."""
    shape = shapes["image"]
    if len(shape) != 2:
        raise DeviceError(
            f"'image' has the shape {shape}, but an image has a height and a width",
            advice="reshape it",
        )
    height, columns = shape
    return Fit({"height": height, "columns": columns}, {"out": (height, columns)})


def products(shapes: Shapes, degree: int, **_: Any) -> Fit:
    """(…, degree), twice → (…, 2·degree)."""
    first, second = shapes["a"], shapes["b"]
    if first != second:
        raise DeviceError(f"'a' has the shape {first}, but 'b' has {second}")
    if len(first) == 1:
        outer: Shape = (_divided(first[0], degree, "polynomials of so many coefficients"),)
    elif first[-1] == degree:
        outer = first[:-1]
    else:
        raise _wrong(first, f"(…, {degree})", "a")
    return Fit({"batch": math.prod(outer)}, {"c": (*outer, 2 * degree)})


def _structures(shape: Shape, fields: int) -> Shape:
    if len(shape) == 1:
        return (_divided(shape[0], fields, "structures of so many fields"),)
    if shape[-1] != fields:
        raise _wrong(shape, f"(…, {fields})")
    return shape[:-1]


def _divided(size: int, part: int, what: str) -> int:
    if size % part:
        raise DeviceError(f"{size} elements are no whole number of {what}: {part}")
    return size // part


def _wrong(shape: Shape, wanted: str, name: str = "x") -> DeviceError:
    return DeviceError(
        f"'{name}' has the shape {shape}, but the kernel takes {wanted}",
        advice="reshape it, or load the kernel with other parameters",
    )
