"""Numbers for inputs: usual ones, and those that are hard on rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DISTRIBUTIONS = ("normal", "whole", "far", "small", "positive", "negative", "large")
HARD = ("apart", "near ties", "subnormal", "with zeros")  # all are finite
SPECIAL = ("with infinities", "with NaNs")
# log2: the smallest normal number, the unit in the last place of 1, and how far magnitudes may be
# apart so that squares stay numbers.
LOWEST = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}
UNIT = {"f16": -10, "bf16": -7, "f32": -23, "f64": -52}
APART = {"f16": 6, "bf16": 30, "f32": 30, "f64": 200}


def drawn(draw: np.random.Generator, how: str, shape: Sequence[int], kind: str) -> Array:
    """Numbers of a distribution, for a type."""
    normal: Array = np.asarray(draw.standard_normal(shape))
    match how:
        case "whole":
            return draw.integers(-4, 5, shape).astype(np.float64)
        case "far":
            return normal * np.exp2(draw.integers(-8, 9, shape))
        case "small":
            return normal / 1024
        case "positive":
            return np.abs(normal) + 0.125
        case "negative":
            return -np.abs(normal) - 0.125
        case "large":
            return normal * 8
    return np.asarray(normal if how == "normal" else _hard(draw, how, normal, kind))


def _hard(draw: np.random.Generator, how: str, normal: Array, kind: str) -> Any:
    shape, most = normal.shape, APART[kind]
    match how:
        case "apart":
            return normal * np.exp2(draw.integers(-most, most + 1, shape))
        case "near ties":  # neighbours of 1, of either sign
            near = 1 + np.exp2(UNIT[kind]) * draw.integers(-4, 5, shape)
            return near * draw.choice([-1.0, 1.0], shape)
        case "subnormal":
            return normal * np.exp2(LOWEST[kind] - 2)
        case "with zeros":
            return np.where(draw.random(shape) < 0.5, draw.choice([0.0, -0.0], shape), normal)
        case "with infinities":
            return np.where(draw.random(shape) < 0.1, np.sign(normal) * np.inf, normal)
    return np.where(draw.random(shape) < 0.1, np.nan, normal)
