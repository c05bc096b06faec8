"""A kernel for several of what it is about: along the third axis of the grid, one after another.

x[i]  of size s, grid (a, b)   →   x[block_z·s + i]  of size count·s, grid (a, b, count)
"""

from __future__ import annotations

from dataclasses import replace

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.check_hopper import refuse_hopper


def batched(kernel: ir.Kernel, count: str) -> ir.Kernel:
    """The kernel with one more scalar: how many; what is passed by value is the same for all."""
    x, y, z = kernel.grid
    if z is not Const(1) or any(each.name == count for each in kernel.params):
        raise CheckError(f"'{kernel.name}' has a third axis already, or a '{count}'")
    number, sizes = Var(count), {a.name: a.size for a in kernel.arrays if a.space == "global"}
    refuse_hopper(kernel, "whose maps are of one matrix")
    made = replace(
        kernel,
        params=(ir.ScalarParam(count), *(_param(each, number) for each in kernel.params)),
        grid=(x, y, number),
        body=_body(kernel.body, sizes),
        requires=(*kernel.requires, number.ge(1)),
    )
    check(made)
    return made


def _param(param: ir.Param, count: Var) -> ir.Param:
    if isinstance(param, ir.ArrayParam) and param.space == "global":
        return replace(param, size=param.size * count)
    return param


def _body(body: tuple[ir.Stmt, ...], sizes: dict[str, Expr]) -> tuple[ir.Stmt, ...]:
    return tuple(_stmt(stmt, sizes) for stmt in body)


def _stmt(stmt: ir.Stmt, sizes: dict[str, Expr]) -> ir.Stmt:
    match stmt:
        case ir.For():
            return replace(stmt, body=_body(stmt.body, sizes))
        case ir.If(condition, then, otherwise):
            return ir.If(condition, _body(then, sizes), _body(otherwise, sizes))
        case ir.Load(array=array) | ir.Store(array=array) if array in sizes:
            return replace(stmt, index=Var("block_z") * sizes[array] + stmt.index)
        case _:
            return stmt
