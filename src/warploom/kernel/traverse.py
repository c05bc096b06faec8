"""One place that knows where expressions and values sit in a statement: visiting and replacing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias, assert_never

from warploom.index.ir import Const, Expr
from warploom.kernel.ir import (
    Assign,
    Barrier,
    Cast,
    Cell,
    Choose,
    Comment,
    Compare,
    Condition,
    For,
    FromIndex,
    If,
    Kernel,
    Let,
    Load,
    Number,
    Operation,
    Registers,
    Shared,
    Shuffle,
    Stmt,
    Store,
    TensorProduct,
    Value,
    walk,
    walk_value,
)

OnExpr: TypeAlias = Callable[[Expr], Expr]
OnValue: TypeAlias = Callable[[Value], Value]


def values_of(stmt: Stmt) -> Iterator[Value]:
    """The values a statement reads (not those of statements inside it)."""
    match stmt:
        case Assign(_, value) | Store(_, _, value) | Shuffle(_, value):
            yield value
        case Load(_, _, _, _, otherwise) if otherwise is not None:
            yield otherwise
        case TensorProduct(target, a, b):
            yield from (target, a, b)
        case _:
            return


def target_of(stmt: Stmt) -> Cell | None:
    """The register a statement writes."""
    match stmt:
        case Assign(target) | Load(target) | Shuffle(target) | TensorProduct(target):
            return target
        case _:
            return None


def widest_access(kernel: Kernel, array: str) -> int:
    """The largest number of elements that one access to an array moves."""
    return max(
        (each.width for each in walk(kernel.body)
         if isinstance(each, Load | Store) and each.array == array),
        default=1,
    )  # fmt: skip


def own_exprs(stmt: Stmt) -> Iterator[Expr]:
    """The index expressions of a statement itself, those inside its values left out."""
    match stmt:
        case Let(_, expr) | If(expr):
            yield expr
        case For(_, start, stop):
            yield start
            yield stop
        case Load(_, _, index, predicate) | Store(_, index, _, predicate):
            yield index
            if predicate is not None:
                yield predicate
        case Shuffle(_, _, lane):
            yield lane
        case _:
            return


def exprs_of(stmt: Stmt) -> Iterator[Expr]:
    """Every index expression of a statement: its own, its target's and those in its values."""
    yield from own_exprs(stmt)
    target = target_of(stmt)
    if target is not None and target.index is not None:
        yield target.index
    for value in values_of(stmt):
        for part in walk_value(value):
            yield from exprs_in(part)


def exprs_in(part: Value) -> Iterator[Expr]:
    """The index expressions of one value node, its operands left out."""
    match part:
        case Cell(_, index) if index is not None:
            yield index
        case FromIndex(expr):
            yield expr
        case Choose(condition) if not isinstance(condition, Compare):
            yield condition
        case _:
            return


def map_value(value: Value, on_expr: OnExpr, on_value: OnValue) -> Value:
    """The value with its expressions replaced, then each value node, innermost first."""
    match value:
        case Number():
            new: Value = value
        case Cell(_, index):
            new = value if index is None else replace(value, index=on_expr(index))
        case FromIndex(expr, dtype):
            new = FromIndex(on_expr(expr), dtype)
        case Operation(op, operands):
            new = Operation(op, tuple(map_value(each, on_expr, on_value) for each in operands))
        case Choose(condition, then, otherwise):
            new = Choose(
                _map_condition(condition, on_expr, on_value),
                map_value(then, on_expr, on_value),
                map_value(otherwise, on_expr, on_value),
            )
        case Cast(dtype, inner):
            new = Cast(dtype, map_value(inner, on_expr, on_value))
        case _:
            assert_never(value)
    return on_value(new)


def _map_condition(condition: Condition, on_expr: OnExpr, on_value: OnValue) -> Condition:
    if not isinstance(condition, Compare):
        return on_expr(condition)
    left, right = (map_value(each, on_expr, on_value) for each in (condition.left, condition.right))
    return Compare(condition.op, left, right)


def map_stmt(stmt: Stmt, on_expr: OnExpr, on_value: OnValue = lambda value: value) -> Stmt:
    """The statement with all its expressions and values replaced, those inside bodies too."""

    def value_of(value: Value) -> Value:
        return map_value(value, on_expr, on_value)

    def cell_of(cell: Cell) -> Cell:
        return cell if cell.index is None else replace(cell, index=on_expr(cell.index))

    def optional(expr: Expr | None) -> Expr | None:
        return None if expr is None else on_expr(expr)

    match stmt:
        case Let(name, expr):
            return Let(name, on_expr(expr))
        case Assign(target, value):
            return Assign(cell_of(target), value_of(value))
        case Load():
            return replace(
                stmt,
                target=cell_of(stmt.target),
                index=on_expr(stmt.index),
                predicate=optional(stmt.predicate),
                otherwise=None if stmt.otherwise is None else value_of(stmt.otherwise),
            )
        case Store():
            return replace(
                stmt,
                index=on_expr(stmt.index),
                value=value_of(stmt.value),
                predicate=optional(stmt.predicate),
            )
        case Shuffle() | TensorProduct():
            return _map_together(stmt, cell_of, value_of, on_expr)
        case For():
            # A constant bound is the shape of a loop, not arithmetic that may be rewritten.
            start, stop = (
                each if isinstance(each, Const) else on_expr(each)
                for each in (stmt.start, stmt.stop)
            )
            body = map_body(stmt.body, on_expr, on_value)
            return replace(stmt, start=start, stop=stop, body=body)
        case If(condition, then, otherwise):
            return If(
                on_expr(condition),
                map_body(then, on_expr, on_value),
                map_body(otherwise, on_expr, on_value),
            )
        case Registers() | Shared() | Barrier() | Comment():
            return stmt
        case _:
            assert_never(stmt)


def _map_together(
    stmt: Shuffle | TensorProduct,
    cell_of: Callable[[Cell], Cell],
    value_of: OnValue,
    on_expr: OnExpr,
) -> Stmt:
    """The shuffle or tensor product with its parts mapped."""
    if isinstance(stmt, Shuffle):
        return Shuffle(cell_of(stmt.target), value_of(stmt.value), on_expr(stmt.lane), stmt.mode)
    left, right = value_of(stmt.a), value_of(stmt.b)
    assert isinstance(left, Cell)
    assert isinstance(right, Cell)
    return TensorProduct(cell_of(stmt.target), left, right, stmt.kind)


def map_body(
    body: tuple[Stmt, ...], on_expr: OnExpr, on_value: OnValue = lambda value: value
) -> tuple[Stmt, ...]:
    return tuple(map_stmt(stmt, on_expr, on_value) for stmt in body)
