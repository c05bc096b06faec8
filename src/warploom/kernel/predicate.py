"""Exchanges between threads, taken out of conditions that differ between the threads of a block.

    if (c) { r = e; s = shuffle(r); }   →   r = c ? e : r;  t = shuffle(r);  s = c ? t : s;

Texts in which an exchange is a meeting of the whole block (C, OpenCL without sub-groups) need
this; on a GPU a warp may branch by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from warploom.errors import UnsupportedError
from warploom.index.ir import Expr, substitute, variables
from warploom.kernel.ir import (
    THREAD_NAMES,
    Assign,
    Barrier,
    Cell,
    Choose,
    Comment,
    For,
    If,
    Kernel,
    Let,
    Load,
    Number,
    Registers,
    Shared,
    Shuffle,
    Stmt,
    Store,
)
from warploom.kernel.ir import walk as walk_stmts


def predicate_exchanges(kernel: Kernel) -> Kernel:
    """The kernel with all exchanges where the whole block meets; the meaning is the same."""
    return replace(kernel, body=tuple(_outside(kernel.body, {}, count())))


def _outside(
    body: tuple[Stmt, ...], lets: Mapping[str, Expr], fresh: Iterator[int]
) -> Iterator[Stmt]:
    known = dict(lets)
    for stmt in body:
        match stmt:
            case Let(name, expr):
                known[name] = substitute(expr, known)
                yield stmt
            case For():
                yield replace(stmt, body=tuple(_outside(stmt.body, known, fresh)))
            case If(condition, then, otherwise) if exchanges(stmt):
                branches = [tuple(_outside(each, known, fresh)) for each in (then, otherwise)]
                if variables(substitute(condition, known)).isdisjoint(THREAD_NAMES):
                    yield If(condition, branches[0], branches[1])
                else:
                    _check_names(branches)
                    yield from predicated(branches[0], condition, fresh)
                    yield from predicated(branches[1], condition.not_(), fresh)
            case _:
                yield stmt


def _check_names(branches: list[tuple[Stmt, ...]]) -> None:
    """Both branches come to stand in one scope."""
    then, otherwise = (
        {stmt.name for stmt in branch if isinstance(stmt, Let | Registers)} for branch in branches
    )
    for name in sorted(then & otherwise):
        raise UnsupportedError(
            f"'{name}' is declared in both branches of a condition under which lanes exchange",
            advice="rename one of the two, or declare it before the condition",
        )


def exchanges(stmt: Stmt) -> bool:
    """Whether threads meet inside a statement."""
    return any(isinstance(each, Barrier | Shuffle) for each in walk_stmts((stmt,)))


def predicated(body: tuple[Stmt, ...], guard: Expr, fresh: Iterator[int]) -> Iterator[Stmt]:
    """The statements run by all threads, taking effect only where the guard holds."""
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield Assign(target, Choose(guard, value, target))
            case Load():
                yield from _predicated_load(stmt, guard)
            case Store():
                yield replace(stmt, predicate=_both(guard, stmt.predicate))
            case Shuffle(target, value, lane, mode):
                kept = Cell(f"kept_{next(fresh)}", None, target.dtype)
                yield Registers(kept.name, kept.dtype)
                yield Shuffle(kept, value, lane, mode)
                yield Assign(target, Choose(guard, kept, target))
            case For():
                yield replace(stmt, body=tuple(predicated(stmt.body, guard, fresh)))
            case If(condition, then, otherwise) if exchanges(stmt):
                yield If(
                    condition,
                    tuple(predicated(then, guard, fresh)),
                    tuple(predicated(otherwise, guard, fresh)),
                )
            case If(condition, then, otherwise):
                yield If(guard, (If(condition, then, otherwise),))
            case Let() | Registers() | Shared() | Barrier() | Comment():
                yield stmt
            case _:
                assert_never(stmt)


def _predicated_load(stmt: Load, guard: Expr) -> Iterator[Stmt]:
    if stmt.width > 1:  # several registers are set at once, so nothing can be kept by a select
        yield If(guard, (stmt,))
        return
    zero = Number(0.0 if stmt.target.dtype.is_float else 0, stmt.target.dtype)
    other = Choose(guard, zero if stmt.otherwise is None else stmt.otherwise, stmt.target)
    yield replace(stmt, predicate=_both(guard, stmt.predicate), otherwise=other)


def _both(guard: Expr, predicate: Expr | None) -> Expr:
    return guard if predicate is None else guard.and_(predicate)
