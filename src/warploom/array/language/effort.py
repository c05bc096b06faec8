"""How much it takes to evaluate a program: its elements at once, and how many operations it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warploom.array.language.bind import known_shape
from warploom.array.language.ir import Apply, Program, Term
from warploom.array.language.op import Iterate, Map, Reduce, Scan
from warploom.array.types import Array, Tuple, Type, Vector, array, base


@dataclass(frozen=True, slots=True)
class Effort:
    """`elements` of the largest value, with those of all maps around; `operations` on arrays, one
    after another: a map is one for all its elements, a reduction one for each."""

    elements: int
    operations: int


def effort(program: Program) -> Effort:
    """The effort of evaluating a program whose sizes are numbers."""
    return _of(program.body, 1, set())


def _of(term: Term, batch: int, seen: set[Term]) -> Effort:
    """`seen`: what was evaluated already in the lambda around."""
    if term in seen or not isinstance(term, Apply):
        return Effort(batch * elements_of(term.type), 0 if term in seen else 1)
    seen.add(term)
    parts = [_of(each, batch, seen) for each in term.arguments]
    inner, iterations = batch, 1
    match term.op:
        case Map():
            inner = batch * _size(term.arguments[0].type)
        case Reduce() | Scan():
            iterations = _size(term.arguments[1].type)
        case Iterate(times):
            iterations = times
    bodies = [_of(each.body, inner, set()) for each in term.functions]
    own = batch * elements_of(term.type)
    return Effort(
        max([own, *(each.elements for each in (*parts, *bodies))]),
        1 + sum(each.operations for each in parts) + iterations * sum(b.operations for b in bodies),
    )


def elements_of(type_: Type) -> int:
    """Numbers in a value of a type."""
    inner = base(type_)
    outer = math.prod(known_shape(type_))
    if isinstance(inner, Tuple):
        return sum(elements_of(array(each, outer)) for each in inner.parts)
    return outer * (inner.width if isinstance(inner, Vector) else 1)


def _size(type_: Type) -> int:
    assert isinstance(type_, Array)
    return known_shape(type_)[0]
