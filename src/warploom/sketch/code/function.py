"""A function that a user gives to finish folds: called on a kernel's registers, or on numbers.

It is the user's code: whatever is wrong with it is one error at the place where it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from warploom.errors import CheckError, Span, WarploomError
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Arithmetic, Cell, Kernel, Value
from warploom.sketch.term.numeric import plain

_ADVICE = "it takes a kernel's value: + - * / << >> and what warploom.kernel.build has"


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """`called` is what messages call it, `span` where it was given."""

    called: str
    compute: Callable[[Any], Any]
    span: Span | None


def on_register(function: Function, item: Cell) -> Value | float:
    """What the function makes of a register, after it was seen that a kernel can compute it."""
    _alone(function, item.dtype)
    return _applied(function, item)


def on_number(function: Function, number: Any, dtype: DType) -> Any:
    """The function of one number: as Python, or as a kernel computes it."""
    try:
        result = function.compute(plain(number))
    except Exception:  # noqa: BLE001  # it is the user's code, and may be for kernels only
        result = None
    if isinstance(result, Real):
        return result
    arrays = np.array([number], dtype.numpy), np.zeros(1, dtype.numpy)
    run(_alone(function, dtype), arrays)
    return arrays[1][0].item()


def _alone(function: Function, dtype: DType) -> Kernel:
    """A kernel of nothing but this function: what is wrong with it is the function's fault."""
    k = Builder("finish", block=1)
    x, y = k.array("x", dtype, 1, const=True), k.array("y", dtype, 1)
    item, result = k.register("item", dtype), k.register("result", dtype)
    k.set(item, x.at(0))
    try:
        k.set(result, _applied(function, item))
        y.put(0, result)
        return k.done()
    except CheckError as error:
        if error.span is not None:
            raise
        raise _fails(function, error.message, error.advice) from error


def _applied(function: Function, item: Cell) -> Value | float:
    try:
        result: Any = function.compute(item)
    except WarploomError as error:
        raise _fails(function, error.message, error.advice) from error
    except Exception as error:
        raise _fails(function, f"{type(error).__name__}: {error}"[:120], _ADVICE) from error
    if not isinstance(result, Arithmetic | Real):
        raise CheckError(
            f"{function.called} gives {result!r:.40}, not a value", function.span, _ADVICE
        )
    value: Value | float = result  # type: ignore[assignment]  # of the closed union
    return value


def _fails(function: Function, why: str, advice: str) -> CheckError:
    return CheckError(f"{function.called} fails in a kernel: {why}", function.span, advice)
