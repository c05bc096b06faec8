"""The element of an abstract expression at a path: where in memory it lies.

In come an expression that computes nothing and a path; out goes an element of a free parameter,
which is memory, or a constant, with the guards under which it is that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from warploom.array.language.ir import Apply, Lambda, Literal, Param, Term, apply, facts_of, opened
from warploom.array.language.op import Element, Iterate, Layout, Let, Map, To
from warploom.array.plan.known import Known
from warploom.array.plan.view import Guard, Path, backward, forward, index_at
from warploom.array.types import Array
from warploom.errors import InternalError
from warploom.index.ir import Const, Expr


@dataclass(frozen=True, slots=True)
class Stored:
    """An element of memory, where all guards hold; the first that fails gives its number."""

    memory: Param
    path: Path
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    value: float
    guards: tuple[Guard, ...] = ()


Found: TypeAlias = Stored | Constant


def element_of(term: Term, path: Path, known: Known) -> Found:
    """The element of an abstract expression."""
    match term:
        case Param():
            return Stored(term, path)
        case Literal(value, _):
            return Constant(value)
        case Apply(To(), _, (argument,)):
            return element_of(argument, path, known)
        case Apply(Map(), (f,), (argument,)):
            inside = _nearest(argument, index_at(path))
            return element_of(f(at_index(argument, inside)), path[1:], known)
        case Apply(Let(), (f,), (argument,)):
            return element_of(f(argument), path, known)
        case Apply(Iterate(times), (f,), (argument,)):
            for _ in range(times):
                argument = f(argument)
            return element_of(argument, path, known)
        case Apply(op) if isinstance(op, Layout):
            seen = forward(term, path, known)
            found = element_of(term.arguments[seen.argument], seen.path, known)
            return replace(found, guards=(*seen.guards, *found.guards))
        case _:
            raise InternalError(f"{type(term).__name__} is no view")


def at_index(xs: Term, index: Expr) -> Apply:
    """The element of an array in one iteration of a loop, or at a number."""
    return apply(Element(index), (), (xs,))


def _nearest(xs: Term, index: Expr) -> Expr:
    """A number outside of the array, which a guard keeps from being looked at, as one inside."""
    if isinstance(index, Const) and isinstance(xs.type, Array) and isinstance(xs.type.size, Const):
        return Const(max(0, min(index.value, xs.type.size.value - 1)))
    return index


@dataclass(frozen=True, slots=True)
class Landed:
    """Where an element of the hole comes to lie, where all conditions hold."""

    path: Path
    conditions: tuple[Expr, ...] = ()


def landing(term: Term, hole: Param, path: Path, known: Known) -> Landed | None:
    """Where the hole's element comes to lie in an abstract expression around it; None: nowhere.

    The hole occurs once, and the operations around it can be written through.
    """
    match term:
        case Param() if term is hole:
            return Landed(path)
        case Apply(To(), _, (argument,)):
            return landing(argument, hole, path, known)
        case Apply(Map(), (f,), (argument,)):
            outer = landing(argument, hole, path, known)
            return None if outer is None else through_map(f, outer, known)
        case Apply(op) if isinstance(op, Layout):
            at = next(n for n, each in enumerate(term.arguments) if occurs(hole, each))
            inner = landing(term.arguments[at], hole, path, known)
            put = None if inner is None else backward(term, at, inner.path, known)
            if inner is None or put is None:
                return None
            return Landed(put.path, (*inner.conditions, *put.conditions))
        case _:
            raise InternalError(f"{type(term).__name__} cannot be written through")


def through_map(f: Lambda, outer: Landed, known: Known) -> Landed | None:
    """Where an element of a map's argument lands in its result, if the map only moves it."""
    (param,), body = opened(f)
    inside = landing(body, param, outer.path[1:], known)
    if inside is None:
        return None
    path = (outer.path[0], *inside.path)
    return Landed(path, (*outer.conditions, *inside.conditions))


def occurs(param: Param, term: Term) -> bool:
    return param in facts_of(term).params
