"""What an expression is of: numbers, short vectors, tuples, and arrays with symbolic sizes.

Types are interned and sizes are in normal form, so equal types are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from warploom.array.language.size import normal, with_numbers
from warploom.index.ir import Expr
from warploom.index.show import show
from warploom.kernel.dtype import DType
from warploom.node import Interned, node


@node
class Scalar(metaclass=Interned):
    """A machine number."""

    dtype: DType


@node
class Truth(metaclass=Interned):
    """The result of a comparison; it lies in no memory."""


@node
class Vector(metaclass=Interned):
    """`width` neighbouring numbers that move together."""

    element: Scalar
    width: int


@node
class Tuple(metaclass=Interned):
    parts: tuple[Type, ...]


@node
class Array(metaclass=Interned):
    """Build with `array`, which puts the size into normal form."""

    element: Type
    size: Expr


@node
class Any(metaclass=Interned):
    """A type that a law leaves open, by name."""

    name: str


Type: TypeAlias = Scalar | Truth | Vector | Tuple | Array | Any

TRUTH = Truth()


def array(element: Type | DType, *sizes: Expr | int) -> Type:
    """The array with these sizes, the outermost first: `array(f32, rows, columns)`."""
    result = Scalar(element) if isinstance(element, DType) else element
    for size in reversed(sizes):
        result = Array(result, normal(size))
    return result


def shape(type_: Type) -> tuple[Expr, ...]:
    """The sizes of an array of arrays, the outermost first."""
    sizes = []
    while isinstance(type_, Array):
        sizes.append(type_.size)
        type_ = type_.element
    return tuple(sizes)


def base(type_: Type) -> Type:
    """What an array of arrays is made of in the end."""
    while isinstance(type_, Array):
        type_ = type_.element
    return type_


def map_sizes(type_: Type, change: Callable[[Expr], Expr]) -> Type:
    """The same type with other sizes."""
    match type_:
        case Scalar() | Truth() | Vector() | Any():
            return type_
        case Tuple(parts):
            return Tuple(tuple(map_sizes(part, change) for part in parts))
        case Array(element, size):
            return array(map_sizes(element, change), change(size))
        case _:
            assert_never(type_)


def type_with(type_: Type, values: Mapping[str, int | Expr]) -> Type:
    """The type with size variables replaced."""
    return map_sizes(type_, lambda size: with_numbers(size, values))


def dtype_of(type_: Type) -> DType | None:
    """The machine number of a scalar or vector."""
    match type_:
        case Scalar(dtype):
            return dtype
        case Vector(element, _):
            return element.dtype
        case _:
            return None


def holds_truth(type_: Type) -> bool:
    match type_:
        case Truth():
            return True
        case Tuple(parts):
            return any(map(holds_truth, parts))
        case Array(element, _):
            return holds_truth(element)
        case Scalar() | Vector() | Any():
            return False
        case _:
            assert_never(type_)


def type_text(type_: Type) -> str:
    """
    >>> from warploom.kernel.dtype import f32
    >>> type_text(array(f32, 3, 4))
    '[[f32]4]3'
    """
    match type_:
        case Scalar(dtype):
            return repr(dtype)
        case Truth():
            return "truth"
        case Vector(element, width):
            return f"{element.dtype!r}x{width}"
        case Tuple(parts):
            return f"({', '.join(map(type_text, parts))})"
        case Array(element, size):
            return f"[{type_text(element)}]{_size_text(size)}"
        case Any(name):
            return name
        case _:
            assert_never(type_)


def _size_text(size: Expr) -> str:
    text = show(size)
    return text if text.isalnum() else f"({text})"
