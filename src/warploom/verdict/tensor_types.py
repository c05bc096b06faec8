"""Types of tensors by PyTorch's names, and which one a result has.

A type is one of NumPy, or `BFLOAT16`, which NumPy lacks. Nothing is rounded, so a type does not say
how an array is held: it answers what a reference asks of `x.dtype`, and decides as PyTorch does
what whole numbers become.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np


class _BFloat16:
    """The type that NumPy lacks: tensors of it are arrays of float32, and say so."""

    def __repr__(self) -> str:
        return "bfloat16"


BFLOAT16 = _BFloat16()
FLOATS: dict[str, Any] = {
    "bfloat16": BFLOAT16, **{n: np.dtype(n) for n in ("float16", "float32", "float64")}
}  # fmt: skip
WHOLE: dict[str, Any] = {n: np.dtype(n) for n in ("int8", "int16", "int32", "int64", "uint8")}
TYPES = {**FLOATS, **WHOLE}
_WIDTH = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}

_REAL: ContextVar[bool] = ContextVar("_REAL", default=False)


@contextmanager
def spoken_to_pytorch() -> Iterator[None]:
    """While a function is called that has PyTorch itself imported: types are asked for as its."""
    token = _REAL.set(True)
    try:
        yield
    finally:
        _REAL.reset(token)


def as_asked(kind: Any) -> Any:
    """A type as the function that asks knows it."""
    module = sys.modules.get("torch") if _REAL.get() else None
    return kind if module is None else getattr(module, str(kind))


def of_pytorch(value: Any, name: str) -> bool:
    """Whether something is of a class of PyTorch itself that is called so, or a subclass."""
    return any(
        each.__name__ == name and each.__module__.split(".")[0] == "torch"
        for each in type(value).__mro__
    )


def type_of(value: Any) -> Any:
    """A type as it is said, by NumPy or PyTorch; None if it is none."""
    if value is BFLOAT16 or isinstance(value, np.dtype):
        return value
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value)
    if of_pytorch(value, "dtype"):
        name = str(value).removeprefix("torch.")
        if name not in TYPES:
            raise NotImplementedError(f"the type {value} is not followed")
        return TYPES[name]
    return None


def is_type(value: Any) -> bool:
    return type_of(value) is not None


def is_whole(array: Any) -> bool:
    """Whether it holds whole numbers; elements of fields stand for floats."""
    return isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "biu"


def converted(array: Any, dtype: Any) -> Any:
    """The numbers of an array as another type has them, but for rounding, in new memory."""
    kind = type_of(dtype)
    to_whole = kind is not BFLOAT16 and kind.kind in "biu"
    if to_whole and not is_whole(array):
        raise NotImplementedError("floats as whole numbers are not followed")
    if is_whole(array):
        return array.astype(kind if to_whole else np.float64)
    return array.copy()


def floats_of(array: Any) -> Any:
    """What PyTorch's functions of floats make of whole numbers first, without rounding."""
    return array.astype(np.float64) if is_whole(array) else array


def result_type(given: Sequence[tuple[Any, bool]]) -> Any:
    """The type of floats that PyTorch computes with: `given` are types of tensors, and whether each
    has dimensions. Numbers of Python count only where all tensors are of whole numbers."""
    for with_dimensions in (True, False):
        names = {str(kind) for kind, has in given if has is with_dimensions} & _WIDTH.keys()
        if names == {"float16", "bfloat16"}:
            return FLOATS["float32"]
        if names:
            return FLOATS[max(names, key=lambda name: _WIDTH[name])]
    return FLOATS["float32"]


def alike(given: Sequence[Any]) -> list[Any]:
    """Whole numbers as PyTorch makes them of one type: arrays decide before arrays without
    dimensions, and those before numbers of Python. With a float among them they stay."""
    listed = [each for each in given if is_whole(each)]
    if not listed or any(not (is_whole(each) or isinstance(each, int)) for each in given):
        return list(given)
    with_dimensions = [each for each in listed if each.ndim]
    kind = np.result_type(*(each.dtype for each in with_dimensions or listed))
    return [_fitted(each, kind) for each in given]


def _fitted(value: Any, kind: np.dtype[Any]) -> Any:
    limits = np.iinfo(kind)
    values = np.asarray(value)
    if values.ndim == 0 and not limits.min <= int(values) <= limits.max:
        raise NotImplementedError(f"{int(values)} among numbers of {kind} is not followed")
    return values.astype(kind)
