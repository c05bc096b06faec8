"""What one role of a kernel with rings has to do: the statements of those who fill them.

let m = …; for t { ring k { fill a; … } ; store … }   →   let m = …; for t { ring k { fill a } }
"""

from __future__ import annotations

from dataclasses import replace

from warploom.index.ir import variables
from warploom.kernel import ir
from warploom.kernel.traverse import exprs_of
from warploom.kernel.warpgroup import Fill


def filling(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Fills, the loops and conditions around them, and the names that these use."""
    body = _sliced(body)
    while True:
        used = {name for each in ir.walk(body) for expr in exprs_of(each)
                for name in variables(expr)}  # fmt: skip
        kept = _named(body, used)
        if kept == body:
            return body
        body = kept


def _sliced(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    kept: list[ir.Stmt] = []
    for stmt in body:
        fills = any(isinstance(each, Fill) for each in ir.walk((stmt,)))
        match stmt:
            case ir.Let() | Fill():
                kept.append(stmt)
            case ir.For() | ir.Ring() | ir.PingPong() if fills:
                kept.append(replace(stmt, body=_sliced(stmt.body)))
            case ir.If(condition, then, otherwise) if fills:
                kept.append(ir.If(condition, _sliced(then), _sliced(otherwise)))
            case _:
                pass
    return tuple(kept)


def _named(body: tuple[ir.Stmt, ...], used: set[str]) -> tuple[ir.Stmt, ...]:
    """Without names for what nothing mentions, which compilers warn of."""
    kept: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Let(name) if name not in used:
                pass
            case ir.For() | ir.Ring() | ir.PingPong():
                kept.append(replace(stmt, body=_named(stmt.body, used)))
            case ir.If(condition, then, otherwise):
                kept.append(ir.If(condition, _named(then, used), _named(otherwise, used)))
            case _:
                kept.append(stmt)
    return tuple(kept)
