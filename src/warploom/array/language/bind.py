"""Sizes become numbers: a program and numbers come in, a program without size variables goes out.

Every condition on the sizes is checked here: divisions are exact, pieces are not larger than what
they are cut from, reorderings stay inside. An error is at the line that wrote the operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warploom.array.language.check import bad_reordering, conditions, name_of
from warploom.array.language.ir import (
    Apply,
    Param,
    Program,
    Term,
    place_of,
    walk,
    with_sizes,
)
from warploom.array.language.op import POSITION, Gather, Scatter, sizes_of
from warploom.array.language.size import MOST, number, value_of
from warploom.array.types import Array, Tuple, Type, base, shape, type_text, type_with
from warploom.errors import CheckError, ensure
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, variables

Sizes = Mapping[str, int]


def bound(program: Program, sizes: Sizes) -> Program:
    """The program with these numbers as its sizes, checked."""
    _check_numbers(program, sizes)
    _check_term(program.body, sizes)
    for each in program.inputs:
        _check_type(each.type, sizes)
    inputs = tuple(Param(each.name, type_with(each.type, sizes)) for each in program.inputs)
    return Program(program.name, inputs, with_sizes(program.body, sizes))


def variables_of(program: Program) -> frozenset[str]:
    """The size variables that a program is written with."""
    found: set[str] = set()
    for each in program.inputs:
        found |= _in_type(each.type)
    for part in walk(program.body):
        found |= _in_type(part.type)
        if isinstance(part, Apply):
            for size in sizes_of(part.op):
                found |= variables(size)
    return frozenset(found - {POSITION.name})


def _in_type(type_: Type) -> set[str]:
    found = {name for size in shape(type_) for name in variables(size)}
    inner = base(type_)
    if isinstance(inner, Tuple):
        for part in inner.parts:
            found |= _in_type(part)
    return found


def _check_numbers(program: Program, sizes: Sizes) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise CheckError(f"the size {name} is {value!r:.40}, which is no whole number")
        if not 1 <= value <= MOST:
            raise CheckError(
                f"'{program.name}': the size {name} is {value}", advice=f"use 1 to {MOST}"
            )
    missing = sorted(variables_of(program) - sizes.keys())
    if missing:
        raise CheckError(
            f"'{program.name}': the size '{missing[0]}' has no value",
            advice=f"give it one: {missing[0]}=64",
        )


def _check_term(term: Term, sizes: Sizes) -> None:
    for part in walk(term):
        try:
            _check_type(part.type, sizes)
            if isinstance(part, Apply) and part.arguments:
                _check_conditions(part, sizes)
        except CheckError as error:
            error.span = error.span or place_of(part)
            raise


def _check_type(type_: Type, sizes: Sizes) -> None:
    total = 1
    for size in shape(type_):
        value = value_of(size, sizes)
        total *= value
        if value < 1 or total > MOST:
            raise CheckError(
                f"an array {type_text(type_with(type_, sizes)) if value > 0 else ''} of "
                f"{total} elements",
                advice=f"arrays have 1 to {MOST} elements",
            )
    inner = base(type_)
    if isinstance(inner, Tuple):
        for part in inner.parts:
            _check_type(part, sizes)


def _check_conditions(term: Apply, sizes: Sizes) -> None:
    given = term.arguments[0].type
    for condition, text in conditions(term.op, given):
        if not evaluate(condition, sizes):
            values = ", ".join(f"{n} = {sizes[n]}" for n in sorted(variables(condition)))
            where = f", where {values}" if values else ""
            raise CheckError(f"{name_of(term.op)}: {text}{where}")
    if isinstance(term.op, Gather | Scatter) and isinstance(given, Array):
        wrong = wrong_reordering(term.op, value_of(given.size, sizes), sizes)
        if wrong:
            raise CheckError(f"{name_of(term.op)}: {wrong}")


def wrong_reordering(op: Gather | Scatter, size: int, sizes: Sizes) -> str:
    return bad_reordering(op, size, lambda index: positions(index, size, sizes).tolist())


def positions(index: Expr, size: int, sizes: Sizes) -> Any:
    """The values of an index function for all positions of an array of this size."""
    values = evaluate(index, {**sizes, POSITION.name: np.arange(size)})
    return np.broadcast_to(np.asarray(values), (size,))


def sizes_of_inputs(program: Program, values: Sequence[Any]) -> dict[str, int]:
    """Sizes that the shapes of arrays say: those that are an axis of an input."""
    found: dict[str, int] = {}
    for each, value in zip(program.inputs, values, strict=False):
        if isinstance(base(each.type), Tuple):
            continue
        for size, length in zip(shape(each.type), np.shape(value), strict=False):
            if isinstance(size, Var) and found.setdefault(size.name, length) != length:
                raise CheckError(
                    f"'{program.name}': {size.name} is {found[size.name]} and {length} in "
                    f"'{each.name}'"
                )
    return found


def known_shape(type_: Type) -> tuple[int, ...]:
    """The sizes of an array type without variables."""
    found = [number(size) for size in shape(type_)]
    known = tuple(each for each in found if each is not None)
    ensure(len(known) == len(found), f"{type_text(type_)} has no variables")
    return known
