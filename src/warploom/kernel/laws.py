"""Rewrites that keep a kernel's meaning: register arrays end up indexed by constants only.

    r[c ? a : b]   →   c ? r[a] : r[b]                      (array references over conditionals)
    r[e]           →   e == 0 ? r[0] : e == 1 ? r[1] : …    (any other index that varies by thread)

A GPU keeps a register array in registers only if every index is known after unrolling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warploom.index.ir import Const, Expr, Select, fold_up, rebuild, substitute, variables, walk
from warploom.kernel.ir import (
    Cell,
    Choose,
    For,
    If,
    Kernel,
    Let,
    PingPong,
    Registers,
    Ring,
    Stmt,
    Value,
)
from warploom.kernel.traverse import map_stmt


def distribute(kernel: Kernel) -> Kernel:
    """The kernel with every read of a register array at an index known after unrolling."""
    return replace(kernel, body=_body(kernel.body, {}, {}, frozenset()))


def _body(
    body: tuple[Stmt, ...],
    sizes: Mapping[str, int | None],
    lets: Mapping[str, Expr],
    counters: frozenset[str],
) -> tuple[Stmt, ...]:
    known, here = dict(lets), dict(sizes)
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(name, expr):
                known[name] = substitute(expr, known)
                result.append(stmt)
            case Registers(name, _, size):
                here[name] = size
                result.append(stmt)
            case For():
                inner = counters | {stmt.var} if stmt.unroll else counters
                result.append(replace(stmt, body=_body(stmt.body, here, known, inner)))
            case Ring() | PingPong():
                result.append(replace(stmt, body=_body(stmt.body, here, known, counters)))
            case If(condition, then, otherwise):
                branches = [_body(each, here, known, counters) for each in (then, otherwise)]
                result.append(If(condition, branches[0], branches[1]))
            case _:
                result.append(_distribute_in(stmt, here, known, counters))
    return tuple(result)


def _distribute_in(
    stmt: Stmt,
    sizes: Mapping[str, int | None],
    lets: Mapping[str, Expr],
    counters: frozenset[str],
) -> Stmt:
    def on_value(value: Value) -> Value:
        if not isinstance(value, Cell) or value.index is None:
            return value
        size, index = sizes.get(value.name), substitute(value.index, lets)
        if size is None or variables(index) <= counters:  # a constant array, or in order
            return value
        return spread(value, index, size, counters)

    return map_stmt(stmt, lambda expr: expr, on_value)


def spread(cell: Cell, index: Expr, size: int, counters: frozenset[str]) -> Value:
    """A read at a thread-dependent index as selects between reads at constant ones."""
    if variables(index) <= counters:
        return replace(cell, index=index)
    choice = next(
        (part for part in reversed(walk(index)) if isinstance(part, Select)
         and not variables(part.condition) <= counters),
        None,
    )  # fmt: skip
    if choice is None:
        return _one_of(cell, index, size)
    then, otherwise = (
        spread(cell, _replace(index, choice, side), size, counters)
        for side in (choice.then, choice.otherwise)
    )
    return then if then == otherwise else Choose(choice.condition, then, otherwise)


def _one_of(cell: Cell, index: Expr, size: int) -> Value:
    result: Value = replace(cell, index=Const(size - 1))
    for position in reversed(range(size - 1)):
        result = Choose(index.eq(position), replace(cell, index=Const(position)), result)
    return result


def _replace(expr: Expr, part: Expr, by: Expr) -> Expr:
    return fold_up(expr, lambda node, parts: by if node is part else rebuild(node, parts))
