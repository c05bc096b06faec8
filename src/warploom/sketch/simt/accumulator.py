"""Accumulators: what may be said of one, what its `init` means beside a goal and in which element
types, and what a kernel of one type sets its register to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

from warploom.errors import CheckError, UnsupportedError
from warploom.kernel.dtype import DType
from warploom.kernel.ir import INTEGER_ONLY
from warploom.sketch.code.accumulate import neutral_number, types_started
from warploom.sketch.simt.ir import Accumulator
from warploom.sketch.term.ir import Constant, Goal, leaves_of
from warploom.sketch.term.operator import NEUTRAL, OPERATORS, says
from warploom.sketch.term.read import place_text

_ADVICE = "leave init out: then it starts at the neutral element that the type has"


def check_accumulator(made: Accumulator, others: Iterable[Accumulator]) -> None:
    """Refuses what no accumulator is, and one name for two functions."""
    for operator in (made.outer, made.inner):
        if operator is not None and operator not in OPERATORS:
            raise CheckError(
                f"an accumulator needs an operator, not {operator!r}",
                advice=f"use one of {', '.join(OPERATORS)}",
            )
    if bool(made.finalize) != (made.finish is not None):
        raise CheckError("give both, the name `finalize` and the function `finish`, or none")
    if made.finish is not None and not (callable(made.finish) and isinstance(made.finalize, str)):
        raise CheckError(
            f"`finalize` is a name and `finish` a function, not {made.finalize!r:.40} and "
            f"{made.finish!r:.40}"
        )
    init = made.init
    if init is not None and (not isinstance(init, Real) or init != init):  # NaN is no number
        raise CheckError(f"an accumulator starts at a number, not at {init!r:.40}")
    for other in others:
        if made.finalize == other.finalize and not _same(made.finish, other.finish):
            raise CheckError(
                f"finish '{made.finalize}' is another function than before{place_text(other.span)}",
                made.span,
                "give each function a name of its own",
            )


def _same(one: object, other: object) -> bool:
    """Whether two functions are one, or were made by the same line with the same values."""
    if one is other:
        return True
    codes = [getattr(each, "__code__", None) for each in (one, other)]
    if codes[0] is None or codes[0] is not codes[1]:
        return False
    try:
        return _bound(one) == _bound(other)
    except ValueError:  # arrays do not say whether they are equal
        return False


def _bound(function: Any) -> tuple[Any, ...]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return (*cells, function.__defaults__, function.__kwdefaults__)


def started(accumulator: Accumulator, goal: Goal) -> Accumulator:
    """The accumulator with the types in which its `init` is the neutral element of its operator.

    A number that the goal has is an item. One that it has not could be an item in no solution, so
    the limit of a type, such as −2³¹ under `max`, can only be meant as neutral.
    """
    init, outer = accumulator.init, accumulator.outer
    if init is None or init == NEUTRAL[outer]:
        return accumulator
    said = {leaf.value for leaf in leaves_of(list(goal.values)) if isinstance(leaf, Constant)}
    types = () if init in said else types_started(outer, init)
    return replace(accumulator, types=types)


def start_of(accumulator: Accumulator, dtype: DType) -> float:
    """The number at which an accumulator starts in a kernel of this type."""
    init, outer, span = accumulator.init, accumulator.outer, accumulator.span
    for operator in (outer, accumulator.inner):
        if operator in INTEGER_ONLY and dtype.is_float:
            raise UnsupportedError(
                f"an accumulator {says(operator)} of {dtype.value}", span, "use an integer type"
            )
    if init is None:
        return neutral_number(outer, dtype)
    if not dtype.has(init):
        raise CheckError(f"an accumulator starts at {init}, which is no {dtype!r}", span, _ADVICE)
    if accumulator.types and dtype not in accumulator.types:
        raise CheckError(
            f"an accumulator that {says(outer)} starts at {init}, which is its neutral element in "
            f"{_listed(accumulator.types)}, but not in {dtype.value}",
            span,
            _ADVICE,
        )
    return init


def narrowed(accumulators: Iterable[Accumulator]) -> Iterator[str]:
    """The element types that a verdict does not cover, because of where accumulators start."""
    for each in accumulators:
        if each.types:
            yield (
                f"element types other than {_listed(each.types)} ({each.init} is the neutral "
                f"element of {each.outer} there)"
            )


def _listed(types: tuple[DType, ...]) -> str:
    return " and ".join(each.value for each in types)
