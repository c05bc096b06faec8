"""Views: layout operations as index expressions, for who reads through them and who writes.

A *path* leads to an element: indices into arrays, parts of tuples, lanes of vectors, outermost
first. Reading, the element of a result at a path is an element of an argument (`forward`); writing,
an argument's element becomes one of the result (`backward`). Nothing is ever moved.

    split c        result (i, j)  is  argument (i·c + j)
    transpose      result (i, j)  is  argument (j, i)
    pad 1          result (i)     is  argument (i - 1), where 0 <= i - 1 < n
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from warploom.array.language.ir import Apply
from warploom.array.language.op import (
    POSITION,
    AsScalar,
    AsVector,
    Element,
    Gather,
    Get,
    Join,
    Layout,
    Op,
    Pack,
    Pad,
    Scatter,
    Slice,
    Slide,
    Split,
    Transpose,
    Unzip,
    Zip,
)
from warploom.array.plan.known import Known
from warploom.array.types import Array, Type, Vector
from warploom.errors import UnsupportedError
from warploom.index.ir import Const, Expr, lift, maximum, minimum, select, substitute


@dataclass(frozen=True, slots=True)
class Part:
    """A step of a path into a tuple."""

    number: int


Step: TypeAlias = Expr | Part
Path: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """Where the condition fails, an element is this number."""

    condition: Expr
    value: float


@dataclass(frozen=True, slots=True)
class Seen:
    """An element as seen through an operation: of which argument, where, and under which guards."""

    argument: int
    path: Path
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Put:
    """Where an argument's element comes to lie; where a condition fails, nowhere."""

    path: Path
    conditions: tuple[Expr, ...] = ()


def index_at(path: Path, at: int = 0) -> Expr:
    step = path[at]
    assert not isinstance(step, Part)
    return step


def _part(step: Step) -> int:
    assert isinstance(step, Part)
    return step.number


def _array(type_: Type) -> Array:
    assert isinstance(type_, Array)
    return type_


def _row(type_: Type) -> Expr:
    """The size of the rows of an array of arrays."""
    return _array(_array(type_).element).size


def _width(type_: Type) -> Expr:
    vector = _array(type_).element
    assert isinstance(vector, Vector)
    return Const(vector.width)


def forward(term: Apply, path: Path, known: Known) -> Seen:
    """The element of a layout operation's result at a path."""
    op, given = term.op, term.arguments[0].type
    match op:
        case Zip():
            return Seen(_part(path[1]), (path[0], *path[2:]))
        case Pack():
            return Seen(_part(path[0]), path[1:])
        case Unzip() | Transpose():
            return Seen(0, (path[1], path[0], *path[2:]))
        case Get(number):
            return Seen(0, (Part(number), *path))
        case Element(index):
            return Seen(0, (index, *path))
        case Pad():
            return _padded(op, _array(given).size, path, known)
        case Join():
            return Seen(0, (*known.divided(index_at(path), _row(given)), *path[1:]))
        case AsScalar():
            return Seen(0, known.divided(index_at(path), _width(given)))
        case Gather(index, _):
            return Seen(0, (_reordered(index, index_at(path), known), *path[1:]))
        case _:
            return _forward_scaled(op, path, known)


def _forward_scaled(op: Op, path: Path, known: Known) -> Seen:
    match op:
        case Split(size) | Slide(_, size):
            return Seen(0, (known.simple(index_at(path) * size + index_at(path, 1)), *path[2:]))
        case AsVector(width):
            return Seen(0, (known.simple(index_at(path) * width + index_at(path, 1)),))
        case Slice(start, _):
            return Seen(0, (known.simple(index_at(path) + start), *path[1:]))
        case Scatter(_, inverse) if inverse is not None:
            return Seen(0, (_reordered(inverse, index_at(path), known), *path[1:]))
        case _:
            raise NoViewError(op, "read")


def _reordered(index: Expr, position: Expr, known: Known) -> Expr:
    return known.simple(substitute(index, {POSITION.name: position}))


def _padded(op: Pad, size: Expr, path: Path, known: Known) -> Seen:
    at = known.simple(index_at(path) - op.left)
    low, high = known.shows(at.ge(0)), known.shows(at.lt(size))
    if low and high:
        return Seen(0, (at, *path[1:]))
    guards: tuple[Guard, ...] = ()
    match op.boundary:
        case "clamp":
            inside = at if low else maximum(at, 0)
            inside = inside if high else minimum(inside, size - 1)
        case "wrap":
            inside = at % size
        case "mirror":
            inside = at if low else select(at.lt(0), lift(-1) - at, at)
            inside = inside if high else select(at.ge(size), size * 2 - 1 - at, inside)
        case "constant":
            inside = at
            conditions = [c for c, shown in ((at.ge(0), low), (at.lt(size), high)) if not shown]
            whole = conditions[0] if len(conditions) == 1 else conditions[0].and_(conditions[1])
            guards = (Guard(whole, op.value),)
        case _:
            assert_never(op.boundary)
    return Seen(0, (known.simple(inside), *path[1:]), guards)


class NoViewError(UnsupportedError):
    """An operation that has no view on one side; a copy is needed."""

    def __init__(self, op: Op, side: str) -> None:
        super().__init__(
            f"{type(op).__name__.lower()} cannot be {side} through",
            advice="give its inverse" if isinstance(op, Gather | Scatter) else "copy the result",
        )


def is_writable(op: Layout) -> bool:
    """Whether every element of the result is one of the argument, at a place that is known."""
    match op:
        case Pad() | Slide():
            return False
        case Gather(_, inverse):
            return inverse is not None
        case (
            Split() | Join() | Transpose() | Scatter() | Slice() | Element() | Zip() | Unzip()
            | Get() | Pack() | AsVector() | AsScalar()
        ):  # fmt: skip
            return True
        case _:
            assert_never(op)


def is_readable(op: Layout) -> bool:
    return not (isinstance(op, Scatter) and op.inverse is None)


def backward(term: Apply, argument: int, path: Path, known: Known) -> Put | None:
    """Where an argument's element comes to lie in the result; None: nowhere."""
    op, given = term.op, term.arguments[0].type
    match op:
        case Zip():
            return Put((path[0], Part(argument), *path[1:]))
        case Pack():
            return Put((Part(argument), *path))
        case Unzip() | Transpose():
            return Put((path[1], path[0], *path[2:]))
        case Get(number):
            return Put(path[1:]) if path[0] == Part(number) else None
        case Element(index):
            taken = _sliced(index_at(path) - index, Const(1), path[1:], known)
            return Put(taken.path[1:], taken.conditions)
        case Slice(start, size):
            return _sliced(index_at(path) - start, size, path[1:], known)
        case Join():
            at = index_at(path) * _row(given) + index_at(path, 1)
            return Put((known.simple(at), *path[2:]))
        case AsScalar():
            return Put((known.simple(index_at(path) * _width(given) + index_at(path, 1)),))
        case _:
            return _backward_divided(op, path, known)


def _backward_divided(op: Op, path: Path, known: Known) -> Put:
    match op:
        case Split(size):
            return Put((*known.divided(index_at(path), size), *path[1:]))
        case AsVector(width):
            return Put(known.divided(index_at(path), Const(width)))
        case Scatter(index, _):
            return Put((_reordered(index, index_at(path), known), *path[1:]))
        case Gather(_, inverse) if inverse is not None:
            return Put((_reordered(inverse, index_at(path), known), *path[1:]))
        case _:
            raise NoViewError(op, "written")


def _sliced(at: Expr, size: Expr, rest: Path, known: Known) -> Put:
    at = known.simple(at)
    wanted = (at.ge(0), at.lt(size))
    return Put((at, *rest), tuple(known.simple(c) for c in wanted if not known.shows(c)))
