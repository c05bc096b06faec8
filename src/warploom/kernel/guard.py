"""Conditions put around the accesses that are not shown to stay inside their array.

    v = x[i]      →   v = 0 <= i < size ? x[i] : 0
    y[i] = v      →   if (0 <= i < size) y[i] = v

Only what is missing is asked: an index that is never negative is not compared with zero.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.index.ir import Expr
from warploom.kernel.flow import ArrayAccess, Flow
from warploom.kernel.ir import (
    Cell,
    Choose,
    For,
    If,
    Kernel,
    Load,
    Number,
    PingPong,
    Ring,
    Stmt,
    Store,
    Value,
)
from warploom.kernel.scope import Site, scopes
from warploom.kernel.traverse import map_stmt


def predicate_accesses(kernel: Kernel) -> Kernel:
    """The kernel with all accesses inside their arrays: loads give zero or their `otherwise`
    where they would leave, and stores do nothing."""
    flow = Flow(scopes(kernel))
    body = [_guarded(site, flow) for site in flow.scopes.body]
    return replace(kernel, body=tuple(body))


def _guarded(site: Site, flow: Flow) -> Stmt:
    bodies = [tuple(_guarded(inner, flow) for inner in body) for body in site.bodies]
    match site.stmt:
        case For() | Ring() | PingPong() as stmt:
            return replace(stmt, body=bodies[0]) if bodies[0] else stmt
        case If(condition):
            return If(condition, bodies[0], bodies[1])
        case stmt:
            return _guarded_access(stmt, site, flow)


def _guarded_access(stmt: Stmt, site: Site, flow: Flow) -> Stmt:
    missing: dict[tuple[str, Expr], Expr] = {}
    for access in flow.accesses(site):
        asked = _missing(access, flow)
        if asked is not None:
            # One cell may be read twice, once under a condition that shows a part of this.
            before = missing.get((access.array, access.index), asked)
            missing[access.array, access.index] = asked if before is asked else before.and_(asked)
    if not missing:
        return stmt
    if isinstance(stmt, Load | Store) and (stmt.array, stmt.index) in missing:
        asked = missing[stmt.array, stmt.index]
        stmt = replace(
            stmt, predicate=asked if stmt.predicate is None else stmt.predicate.and_(asked)
        )

    def on_value(value: Value) -> Value:
        if not isinstance(value, Cell) or value.index is None:
            return value
        if value.name not in flow.constants or (value.name, value.index) not in missing:
            return value
        zero = Number(0.0 if value.dtype.is_float else 0, value.dtype)
        return Choose(missing[value.name, value.index], value, zero)

    return map_stmt(stmt, lambda expr: expr, on_value)


def _missing(access: ArrayAccess, flow: Flow) -> Expr | None:
    """The part of `0 <= index and index + width <= size` that is not shown, in kernel's words."""
    above, below = flow.is_inside(access)
    index = access.index
    if above and below:
        return None
    inside = (index + access.width).le(access.size) if access.width > 1 else index.lt(access.size)
    if above:
        return inside
    return index.ge(0) if below else index.ge(0).and_(inside)
