"""The operators of folds and scans, and what each begins with."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from warploom.kernel.dtype import DType

Fold: TypeAlias = Literal["+", "*", "min", "max", "&", "|", "^"]

# What a fold starts with: it changes nothing. For integers: the least and greatest of the type.
NEUTRAL: dict[Fold, float] = {
    "+": 0.0, "*": 1.0, "min": float("inf"), "max": -float("inf"), "&": -1, "|": 0, "^": 0,
}  # fmt: skip


def neutral(op: Fold, dtype: DType) -> float:
    """What a fold begins with where nothing is said."""
    if op not in ("min", "max") or dtype.is_float:
        value = NEUTRAL[op]
        if dtype.is_float:
            return value
        return int(np.iinfo(dtype.numpy).max) if value < 0 and not dtype.is_signed else int(value)
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if op == "min" else limits.min)
