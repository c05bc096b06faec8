"""What a kernel is compared with: a tiled kernel comes in, its goal as a function of numbers goes
out, with what that is called, and the random numbers on which the two are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, WarploomError, defining_line
from warploom.kernel.dtype import DType
from warploom.sketch.code.function import Function, on_number
from warploom.sketch.code.tiling import Tiled, Tiling
from warploom.sketch.term import spec
from warploom.sketch.term.ir import (
    Constant,
    Fold,
    Goal,
    Shape,
    Specification,
    Symbol,
    Term,
    Zero,
)
from warploom.sketch.term.limits import heights
from warploom.sketch.term.numeric import apply
from warploom.sketch.term.operator import is_function

Numbers: TypeAlias = npt.NDArray[Any]
Compute: TypeAlias = Callable[[Mapping[int, Any]], list[Any]]

_TRIED = 8  # tiles on which a specification must run
_MODULAR = frozenset("+*&|^")  # operators that do not mind numbers that wrap
_CLOSED = frozenset(("min", "max", "&", "|", "^"))  # operators whose results never wrap


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """`compute` gives the cells of one tile from the numbers of its symbols; `name` is what that
    is, and `says` how a message begins that quotes it."""

    compute: Compute
    name: str
    says: str
    draws: tuple[Draw, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """Random numbers of a type, from `least` to `most`: whole ones if `parts` is 1, halves if it is
    2, any if it is 0."""

    dtype: DType
    least: float
    most: float
    parts: int

    def __call__(self, shape: Shape, random: np.random.Generator) -> Numbers:
        numpy = self.dtype.numpy
        if not self.parts:
            return random.uniform(self.least, self.most, shape).astype(numpy)
        least, most = int(self.least * self.parts), int(self.most * self.parts)
        if not self.dtype.is_float:
            return random.integers(least, most, shape, numpy, endpoint=True)
        return (random.integers(least, most, shape, endpoint=True) / self.parts).astype(numpy)

    def __str__(self) -> str:
        what = ("", "whole numbers from ", "halves from ")[self.parts]
        return f"{what}{self.least} to {self.most}"


def wanted_of(tiled: Tiled) -> Wanted:
    """The specification's function where it says all and runs, else the goal's terms, with the
    sketch's own functions."""
    tiling, dtype, goal = tiled.tiling, tiled.dtype, tiled.tiling.goal
    given, names = goal.specification, function_names(goal)
    why = "there is none"
    if given is not None:
        missing = ", ".join(f"'{name}'" for name in sorted(names - given.known))
        why = f"it does not say what {missing} computes"
    if given is not None and names <= given.known:
        by_function = partial(_specified, given, len(goal.values))
        draws, why = _running(by_function, tiling, dtype)
        if draws:
            named = "the specification", "the specification says"
            return Wanted(partial(_located, by_function, given), *named, draws)
    by_terms = partial(_by_terms, goal, tiling.functions, dtype)
    draws, failed = _running(by_terms, tiling, dtype)
    if not draws:
        raise CheckError(
            f"the goal of '{tiling.name}' does not run on numbers: {failed}", goal.span
        )
    own = " and ".join(f"'{name}'" for name in sorted(names))
    name = f"the goal's terms with the sketch's own {own}" if own else "the goal's terms"
    if given is not None or own:
        name = f"{name} (the specification cannot be run: {why})"
    return Wanted(by_terms, name, "the goal's terms say", draws)


def function_names(goal: Goal) -> frozenset[str]:
    """The functions of folds in a goal."""
    operators = {fold.operator for fold in heights(goal.values)}
    return frozenset(each.removesuffix("()") for each in operators if is_function(each))


def _specified(given: Specification, count: int, numbers: Mapping[int, Any]) -> list[Any]:
    cells = spec.run(given, numbers)
    if len(cells) != count:
        raise CheckError("it returns another shape")
    return cells


def _located(compute: Compute, given: Specification, numbers: Mapping[int, Any]) -> list[Any]:
    try:
        return compute(numbers)
    except Exception as error:
        why = _why(error)
        place = defining_line(given.function)
        raise CheckError(f"the specification fails on numbers: {why}", place) from error


def _why(error: Exception) -> str:
    text = error.message if isinstance(error, WarploomError) else str(error)
    return f"{type(error).__name__}: {text}"[:120]


def _running(compute: Compute, tiling: Tiling, dtype: DType) -> tuple[tuple[Draw, ...], str]:
    """The first draw of each kind of numbers on which the computation runs, and the first error."""
    symbols = [number for each in tiling.symbols.values() for number in each]
    random = np.random.default_rng(0)
    found, why = [], ""
    for kinds in draws_of(tiling.goal, dtype):
        for draw in kinds:
            try:
                for _ in range(_TRIED):
                    values = draw((len(symbols),), random).tolist()
                    compute(dict(zip(symbols, values, strict=True)))
            except Exception as error:  # noqa: BLE001  # it is the user's code
                why = why or _why(error)
            else:
                found.append(draw)
                break
    return tuple(found), why


# -- terms on numbers ----------------------------------------------------------------------------


def _by_terms(
    goal: Goal, functions: Mapping[str, Function], dtype: DType, numbers: Mapping[int, Any]
) -> list[Any]:
    known: dict[Term, Any] = {}
    return [_value(term, numbers, functions, dtype, known) for term in goal.values]


def _value(
    term: Term,
    numbers: Mapping[int, Any],
    functions: Mapping[str, Function],
    dtype: DType,
    known: dict[Term, Any],
) -> Any:
    match term:
        case Symbol(number):
            return numbers[number]
        case Constant(value):
            return value
        case Zero():
            return 0
        case Fold(operator, items):
            if term not in known:
                parts = [_value(item, numbers, functions, dtype, known) for item in items]
                if is_function(operator):
                    known[term] = on_number(functions[operator], parts[0], dtype)
                else:
                    known[term] = apply(operator, parts)
            return known[term]
        case _:
            raise CheckError("an undefined goal has no value on numbers")


# -- numbers -------------------------------------------------------------------------------------


def draws_of(goal: Goal, dtype: DType) -> list[tuple[Draw, ...]]:
    """Numbers with which a result is right or far off: nothing cancels that rounds, nothing wraps
    that minds. Of each kind the first is meant with which the specification runs."""
    operators = {fold.operator for fold in heights(goal.values)}
    if dtype.is_float:
        draws: list[tuple[Draw, ...]] = [(Draw(dtype, 0.5, 2, 0),)]
        # Short numbers are exact, whatever cancels.
        kinds = [] if operators <= {"+", "*"} else [(4, 2)]
        kinds += [(1 << 12, 1)] if any(map(is_function, operators)) else []
        for most, parts in kinds:
            if _largest(goal.values, most * parts) < 1 << np.finfo(dtype.numpy).nmant:
                draws.append((Draw(dtype, -most, most, parts), Draw(dtype, 0, most, parts)))
        return draws
    limits = np.iinfo(dtype.numpy)
    if operators <= _MODULAR or operators <= _CLOSED:
        return [(Draw(dtype, int(limits.min), int(limits.max), 1),)]
    most = next((m for m in (1 << 12, 99, 7, 3, 2) if _largest(goal.values, m) <= limits.max), 1)
    signed = [Draw(dtype, -most, most, 1)] if limits.min < 0 else []
    return [(*signed, Draw(dtype, 0, most, 1), Draw(dtype, 1, most, 1))]


def _largest(values: tuple[Term, ...], most: int) -> int:
    """What no fold of the goal exceeds, if symbols are at most `most`."""
    bound: dict[Term, int] = {}
    for fold, _ in sorted(heights(values).items(), key=lambda pair: pair[1]):
        parts = [_bound(item, most, bound) for item in fold.items]
        if fold.operator == "*":
            product = 1
            for part in parts:
                product *= max(1, part)
            bound[fold] = product
        else:
            bound[fold] = sum(parts)
    return max(bound.values(), default=most)


def _bound(term: Term, most: int, bound: Mapping[Term, int]) -> int:
    if isinstance(term, Constant):
        return int(abs(term.value)) + 1 if abs(term.value) < 2**63 else 0  # infinite: neutral
    return bound.get(term, most)
