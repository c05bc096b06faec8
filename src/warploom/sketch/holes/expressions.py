"""Small index expressions over the output coordinates x0, x1, …, without idle operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warploom.index.ir import Const, Expr, Var, lift, select
from warploom.sketch.term.gather import GatherExpr, Shape, strides

OUTSIDE = -1  # an offset that no argument has


def coordinate(axis: int) -> Expr:
    return Var(f"x{axis}")


def total(terms: Iterable[tuple[int, Expr]], constant: int = 0) -> Expr:
    """The sum of factor times expression, plus a constant; no multiplication by 0 or 1."""
    added: list[Expr] = []
    taken: list[Expr] = []
    for factor, part in terms:
        if isinstance(part, Const):
            constant += factor * part.value
        elif factor:
            scaled = part if abs(factor) == 1 else part * abs(factor)
            (added if factor > 0 else taken).append(scaled)
    if constant > 0 or not added:
        added.append(Const(constant))
    elif constant < 0:
        taken.append(Const(-constant))
    result = added[0]
    for part in added[1:]:
        result = result + part
    for part in taken:
        result = result - part
    return result


def remainder(value: Expr, divisor: int, bound: int) -> Expr:
    """`value % divisor`, where 0 <= value < bound is known."""
    return value if bound <= divisor else value % divisor


def quotient(value: Expr, divisor: int, bound: int) -> Expr:
    """`value // divisor`, where 0 <= value < bound is known."""
    if bound <= divisor:
        return Const(0)
    return value if divisor == 1 else value // divisor


def flat(shape: Shape, source: Iterable[Expr | int]) -> Expr:
    """The row-major offset of a coordinate."""
    return total((s, lift(c)) for s, c in zip(strides(shape), source, strict=True))


def own_coordinates(shape: Shape) -> list[Expr]:
    """The output cell itself; an axis of length 1 is the constant 0."""
    return [coordinate(a) if n > 1 else Const(0) for a, n in enumerate(shape)]


def only(offset: Expr) -> GatherExpr:
    """Reads the only argument."""
    return GatherExpr(Const(0), offset)


def bounded(shape: Shape, source: list[Expr], suspects: Mapping[int, bool]) -> Expr:
    """The offset of `source`, outside the argument where a suspect axis is out of range.

    Axis 0 needs no test: beyond its end every offset is outside anyway.
    """
    offset = flat(shape, source)
    for axis, beyond in suspects.items():
        if beyond and axis > 0:
            offset = select(source[axis].lt(shape[axis]), offset, OUTSIDE)
    return offset


def replaced(in_shape: Shape, out_shape: Shape, axis: int, value: Expr, beyond: bool) -> GatherExpr:
    """Reads the cell itself, but at `value` along `axis`; `beyond`: it may be out of range."""
    source = own_coordinates(out_shape)
    source[axis] = value
    return only(bounded(in_shape, source, {axis: beyond}))
