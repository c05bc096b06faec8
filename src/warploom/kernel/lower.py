"""Register permutations that differ from thread to thread, as code with constant register indices.

A rotation by an amount known only at run time takes ⌈log₂ n⌉ conditional steps, one per bit of the
amount: step s rotates by 2ˢ where bit s is set (a barrel shifter).

    y[i] = x[(i + a) mod n]   →   t0[i] = a & 1 ? x[(i+1) mod n] : x[i];  t1[i] = a & 2 ? …
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.errors import CheckError
from warploom.index.ir import Binary, Const, Expr, Unary, Var, fold_up, lift, rebuild, variables
from warploom.index.laws import simplify, total
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Assign, Cell, Choose, For, Let, Registers, Stmt, loop
from warploom.kernel.laws import spread
from warploom.kernel.names import INVENTED


@dataclass(frozen=True, slots=True)
class Row:
    """A register array, by name."""

    name: str
    dtype: DType
    size: int

    def __getitem__(self, index: Expr | int) -> Cell:
        return Cell(self.name, lift(index), self.dtype)


def permute(
    source: Row, target: Row, index: Expr, counter: str, counters: frozenset[str] = frozenset()
) -> tuple[Stmt, ...]:
    """`target[i] = source[index(i)]` for every i, where the index may differ by thread.

    `counter` names i in `index`; `counters` are the unrolled loops around. An index of the form
    `(f(i) + g) mod n` becomes a rotation by g, anything else selects. The target is declared by the
    caller and is not the source.
    """
    _check_rows(source, target)
    if variables(index) <= counters | {counter}:
        return (_copy(source, target, index, counter),)
    parts = split_rotation(index, source.size, counter)
    if parts is not None and source.size > 2:
        fixed, amount = parts
        return rotate(source, target, amount, counter, lambda i: substitute_one(fixed, counter, i))
    value = spread(source[index], index, source.size, counters | {counter})
    return (loop(counter, target.size, Assign(target[Var(counter)], value)),)


def rotate(
    source: Row,
    target: Row,
    amount: Expr,
    counter: str = "i",
    fixed: Callable[[Expr], Expr] = lambda i: i,
    most: int | None = None,
) -> tuple[Stmt, ...]:
    """`target[i] = source[(fixed(i) + amount) mod n]` in ⌈log₂ n⌉ conditional steps.

    Where the amount is known to lie between 0 and `most`, it may take fewer.
    """
    _check_rows(source, target)
    i, size = Var(counter), source.size
    if size == 1 or isinstance(simplify(amount), Const):
        return (_copy(source, target, (fixed(i) + simplify(amount)) % size, counter),)
    by = Var(f"{target.name}{INVENTED}by")
    small = most is not None and most < size
    stmts: list[Stmt] = [Let(by.name, simplify(amount if small else amount % size))]
    steps = (min(most, size - 1) if most is not None else size - 1).bit_length()
    row = source
    for step in range(steps):
        last = step == steps - 1
        place = fixed(i) if last else i
        into = target if last else Row(f"{target.name}{INVENTED}{1 << step}", target.dtype, size)
        if not last:
            stmts.append(Registers(into.name, into.dtype, size))
        value = Choose(
            (by & (1 << step)).ne(0),
            row[simplify((place + (1 << step)) % size)],
            row[_within(place, i, size)],
        )
        stmts.append(loop(counter, target.size if last else size, Assign(into[i], value)))
        row = into
    return tuple(stmts)


def split_rotation(index: Expr, size: int, counter: str) -> tuple[Expr, Expr] | None:
    """The parts (f, g) of an index `(f(i) + g) mod size` with i only in f, if it has that form."""
    match index:
        case Binary("%", place, Const(value)) if value == size:
            fixed: list[Expr] = []
            moving: list[Expr] = []
            for term in _terms(place):
                names = variables(term)
                if names == {counter}:
                    fixed.append(term)
                elif counter not in names:
                    moving.append(term)
                else:
                    return None
            return total(fixed), total(moving)
        case _:
            return None


def substitute_one(expr: Expr, name: str, by: Expr) -> Expr:
    return fold_up(
        expr,
        lambda part, parts: by if part is Var(name) else rebuild(part, parts),
    )


def _terms(expr: Expr) -> list[Expr]:
    match expr:
        case Binary("+", left, right):
            return _terms(left) + _terms(right)
        case Binary("-", left, right):
            return _terms(left) + [Unary("-", term) for term in _terms(right)]
        case _:
            return [expr]


def _within(place: Expr, counter: Var, size: int) -> Expr:
    return place if place is counter else simplify(place % size)


def _copy(source: Row, target: Row, index: Expr, counter: str) -> For:
    return loop(counter, target.size, Assign(target[Var(counter)], source[simplify(index)]))


def _check_rows(source: Row, target: Row) -> None:
    if source.name == target.name:
        raise CheckError(
            f"'{source.name}' cannot be permuted into itself", advice="declare another array"
        )
    if source.dtype != target.dtype or source.size < 1:
        raise CheckError(f"'{source.name}' and '{target.name}' hold different kinds of numbers")
