"""Where a result goes: memory or a part of it, seen through the operations around a term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from warploom.array.language.ir import Apply, Lambda, Param
from warploom.array.plan.element import Landed, through_map
from warploom.array.plan.known import Known
from warploom.array.plan.view import Path, backward
from warploom.index.ir import Expr


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All of a buffer."""

    memory: Param


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """An element of an array, or a part of a tuple, that is a target."""

    outer: Target
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class Through:
    """An argument of a layout operation whose result is a target."""

    outer: Target
    term: Apply
    argument: int


@dataclass(frozen=True, slots=True, eq=False)
class ThroughMap:
    """The argument of a map that computes nothing."""

    outer: Target
    function: Lambda


Target: TypeAlias = Whole | At | Through | ThroughMap


@dataclass(frozen=True, slots=True)
class Located:
    memory: Param
    path: Path
    conditions: tuple[Expr, ...]


def memory_of(target: Target) -> Param:
    while not isinstance(target, Whole):
        target = target.outer
    return target.memory


def locate(target: Target, path: Path, known: Known) -> Located | None:
    """The place of an element of what is computed; None if nobody wants it."""
    conditions: tuple[Expr, ...] = ()
    while not isinstance(target, Whole):
        match target:
            case At(_, front):
                path = (*front, *path)
            case Through(_, term, argument):
                put = backward(term, argument, path, known)
                if put is None:
                    return None
                path, conditions = put.path, (*conditions, *put.conditions)
            case ThroughMap(_, function):
                landed = through_map(function, Landed(path), known)
                if landed is None:
                    return None
                path, conditions = landed.path, (*conditions, *landed.conditions)
        target = target.outer
    return Located(target.memory, path, conditions)
