"""The tree of a `.swflow` text as written: names are not looked up yet, every part knows its place.

`parse.py` makes it, `check.py` turns it into a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from warploom.errors import Span
from warploom.sketch.term.ir import Shape


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Type:
    """`[32, 5]`."""

    shape: Shape
    span: Span


@dataclass(frozen=True, slots=True)
class Option:
    """`fresh` (value None), `group=2` or `restrict=[1, 0]`."""

    name: Name
    value: int | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Pack:
    """`+(a, b)` inside a literal: a fold of its items, of any operator if none is written; `()` is
    zero."""

    operator: str
    items: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """`?` inside a literal: an undefined value."""


@dataclass(frozen=True, slots=True)
class Exact:
    """`=2.5` inside a literal: the number itself, not a symbol."""

    value: float


Leaf: TypeAlias = int | Pack | Unknown | Exact


@dataclass(frozen=True, slots=True)
class Array:
    """A rectangular nested array; `leaves` in row-major order."""

    shape: Shape
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`range(start, stop)`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """An array or range behind any number of folds, each of which packs the last axis."""

    folds: tuple[str, ...]
    body: Array | Range
    span: Span


@dataclass(frozen=True, slots=True)
class Block:
    """`{ statements }`: a scope whose value is its last binding."""

    statements: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """`operator? function options? (args)?`; `args` is None where no list was written."""

    operator: str | None
    function: Name
    options: tuple[Option, ...]
    args: tuple[Name, ...] | None


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name` or `@name=number`."""

    name: Name
    number: int | None


@dataclass(frozen=True, slots=True)
class Binding:
    name: Name
    type: Type
    value: LiteralValue | Block | Call
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class NamedGoal:
    """`poly_mult {w=4}`."""

    name: Name
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class GoalStatement:
    """`@flatten goal: [4] = …`: the annotation names the laws up to which it is to be met."""

    type: Type
    value: LiteralValue | NamedGoal
    annotations: tuple[Annotation, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a gather: which argument (-1: zero), and which cell of it."""

    argument: int
    index: int | tuple[int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Gather:
    """One gather of a definition; an entry that is a bare number reads argument 0."""

    name: Name | None
    entries: tuple[Entry | int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Define:
    name: Name
    args: tuple[Type, ...]
    out: Type
    gathers: tuple[Gather, ...]


Statement: TypeAlias = Binding | GoalStatement | Define


@dataclass(frozen=True, slots=True)
class File:
    """A whole text. `end` is where it ends, for "something is missing" errors."""

    statements: tuple[Statement, ...]
    end: Span
