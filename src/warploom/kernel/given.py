"""What the builder is given, looked at as it comes: the error then stands where the mistake is."""

from __future__ import annotations

from operator import index as integer
from typing import Any

from warploom.errors import CheckError, one_of
from warploom.index.ir import Const, Expr
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Arithmetic, Cell


def index_of(given: Any) -> Expr:
    """An index expression, or an integer as one."""
    if isinstance(given, Expr):
        return given
    if isinstance(given, Arithmetic):
        raise CheckError(
            "a value is no index: indices are computed from threads, iterations and parameters",
            advice="values are known when the kernel runs; let(…) names an index expression",
        )
    return Const(whole(given, "an index"))


def whole(given: Any, what: str) -> int:
    """An integer of Python or NumPy."""
    try:
        return integer(given)
    except TypeError:
        raise CheckError(f"{what} is an integer, not {given!r:.40}") from None


def type_of(given: Any) -> DType:
    """A type, or one by its name here or in NumPy: f32 or float32."""
    if isinstance(given, DType):
        return given
    for each in DType:
        if given in (repr(each), each.value):
            return each
    names = [repr(each) for each in DType]
    advice = one_of(given, names) if isinstance(given, str) else f"use {', '.join(names)}"
    raise CheckError(f"{given!r:.40} is no type", advice=advice)


def name_of(given: Any) -> str:
    if not isinstance(given, str):
        raise CheckError(f"{given!r:.40} is no name", advice="a name is a text")
    return given


def initial_of(given: Any) -> Any:
    """What a register begins with: a number, or nothing."""
    if given is not None and (isinstance(given, str | bytes | complex) or not _is_number(given)):
        raise CheckError(f"{given!r:.40} is no number that a register can begin with")
    return given


def register_of(given: Any) -> Cell:
    if not isinstance(given, Cell):
        raise CheckError(
            "only a register is set", advice="store to an array: y[i] = value, or y.put(i, value)"
        )
    return given


def sides_of(given: Any) -> tuple[int, int, int]:
    """The sides of a block: a number of threads, or up to three."""
    sides = given if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(sides) <= 3:
        raise CheckError(f"a block has one to three sides, not {len(sides)}")
    x, y, z = (whole(each, "the side of a block") for each in (*sides, *(1,) * (3 - len(sides))))
    return x, y, z


def _is_number(given: Any) -> bool:
    try:
        float(given)
    except (TypeError, ValueError, OverflowError):
        return isinstance(
            given, int
        )  # one too large for its type is refused with the type's limits
    return True
