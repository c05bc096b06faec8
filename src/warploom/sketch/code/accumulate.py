"""Folds as kernel statements: an accumulator and an operator come in, an accumulation goes out."""

from __future__ import annotations

import math

import numpy as np

from warploom.errors import UnsupportedError
from warploom.index.ir import Const, Expr
from warploom.kernel.build import Builder, fma
from warploom.kernel.dtype import DType
from warploom.kernel.ir import INTEGER_ONLY, Cell, Operation, Value
from warploom.sketch.code.form import ALWAYS
from warploom.sketch.term.operator import NEUTRAL


def neutral_number(operator: str, dtype: DType) -> float:
    """The neutral element of an operator as a number of a type."""
    number = NEUTRAL[operator]
    if operator in INTEGER_ONLY and dtype.is_float:
        raise UnsupportedError(f"'{operator}' of {dtype.value}", advice="use an integer type")
    if dtype.is_float:
        return number
    limits = np.iinfo(dtype.numpy)
    if math.isinf(number):
        return int(limits.max if number > 0 else limits.min)
    return int(limits.max) if number < 0 and not dtype.is_signed else number


def types_started(operator: str, number: float) -> tuple[DType, ...]:
    """The integer types of which this number, a limit of theirs, is the operator's neutral element.

    Zero is the limit of every unsigned type, and too often meant as a number: it is none here.
    """
    integers = [each for each in DType if not (each.is_float or each.is_code)]
    return tuple(d for d in integers if number and neutral_number(operator, d) == number)


def joined(operator: str, left: Value, right: Value) -> Operation:
    """`left ⊕ right`."""
    return Operation(operator, (left, right))  # type: ignore[arg-type]


def added(outer: str, inner: str | None, total: Cell, items: list[Cell]) -> Operation:
    """`total ⊕ (item ⊗ item ⊗ …)`; a sum of products of two numbers is rounded once."""
    if total.dtype.is_float and (outer, inner, len(items)) == ("+", "*", 2):
        return fma(items[0], items[1], total)
    value: Value = items[0]
    for item in items[1:]:
        assert inner is not None  # one item needs no operator
        value = joined(inner, value, item)
    return joined(outer, total, value)


def accumulate(k: Builder, total: Cell, value: Value, kept: Expr = ALWAYS) -> None:
    """`total = value`, where `kept`."""
    if not isinstance(kept, Const):
        with k.when(kept):
            k.set(total, value)
    elif kept.value:
        k.set(total, value)
