"""Names of a kernel: which there are, new ones that collide with none, and renaming by scope.

A pass that invents a name before it can see the whole kernel writes it with a dot in it, which no
user can; `settled` then makes a name of it that nobody else has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from warploom.index.ir import Expr, Var, substitute, variables
from warploom.kernel import ir
from warploom.kernel.traverse import exprs_of, map_stmt

INVENTED = "."

# The new name of a declaration, given the old one.
Declare: TypeAlias = Callable[[str], str]


def names_of(kernel: ir.Kernel) -> set[str]:
    """Every name that a kernel declares or mentions, its own included."""
    found = {kernel.name, *ir.BUILT_IN, *(param.name for param in kernel.params)}
    found |= {each.name for each in kernel.maps}
    for stmt in ir.walk(kernel.body):
        match stmt:
            case (
                ir.Let(name) | ir.Named(name) | ir.Registers(name) | ir.Shared(name) | ir.For(name)
            ):
                found.add(name)
            case ir.Ring(var, _, stage):
                found |= {var, stage}
            case _:
                pass
        for expr in exprs_of(stmt):
            found |= variables(expr)
    return found


def plain_name(text: str, otherwise: str) -> str:
    """A title, or a file's name, as a kernel can be called: letters without accents, `_` for what
    is none."""
    apart = unicodedata.normalize("NFKD", text)
    letters = "".join(ch for ch in apart if not unicodedata.combining(ch))
    made = re.sub(r"\W+", "_", letters, flags=re.ASCII).strip("_") or otherwise
    made = made if made[0].isalpha() else f"k_{made}"
    return f"{made}_sketch" if made in ir.BUILT_IN else made


class Fresh:
    """Names that are not taken yet; each is given once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def is_free(self, name: str) -> bool:
        return name not in self._taken

    def name(self, like: str) -> str:
        """The name asked for, or that with a number behind it."""
        made, number = like, 0
        while made in self._taken:
            number += 1
            made = f"{like}_{number}"
        self._taken.add(made)
        return made


def settled(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with names that passes invented turned into names of its own."""
    names = names_of(kernel)
    invented = sorted(name for name in names if INVENTED in name)
    if not invented:
        return kernel
    fresh = Fresh(names)
    return renamed(kernel, {name: fresh.name(name.replace(INVENTED, "_")) for name in invented})


def renamed(kernel: ir.Kernel, names: Mapping[str, str]) -> ir.Kernel:
    """The kernel with other names for its parameters, registers, arrays and itself."""
    if not names:
        return kernel

    def new(name: str) -> str:
        return names.get(name, name)

    def expr(old: Expr) -> Expr:
        return _expr(old, names)

    def param(old: ir.Param) -> ir.Param:
        if isinstance(old, ir.ArrayParam):
            return replace(old, name=new(old.name), size=expr(old.size))
        return replace(old, name=new(old.name))

    def view(old: ir.MapParam) -> ir.MapParam:
        sizes, strides = tuple(map(expr, old.sizes)), tuple(map(expr, old.strides))
        return replace(old, name=new(old.name), array=new(old.array), sizes=sizes, strides=strides)

    x, y, z = (expr(size) for size in kernel.grid)
    return replace(
        kernel,
        maps=tuple(view(each) for each in kernel.maps),
        name=new(kernel.name),
        params=tuple(param(each) for each in kernel.params),
        grid=(x, y, z),
        requires=tuple(expr(each) for each in kernel.requires),
        body=_body(kernel.body, names, new),
    )


def distinct(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with a name of its own for every register and expression, in whatever scope.

    Loop counters keep their names, which only their loop knows.
    """
    declared = [
        each.name
        for each in ir.walk(kernel.body)
        if isinstance(each, ir.Let | ir.Named | ir.Registers)
    ]
    if len(set(declared)) == len(declared):
        return kernel
    fresh, seen = Fresh(names_of(kernel)), set[str]()

    def declare(name: str) -> str:
        if name in seen:
            return fresh.name(name)
        seen.add(name)
        return name

    return replace(kernel, body=_body(kernel.body, {}, declare, counters=False))


def _body(
    body: tuple[ir.Stmt, ...], outer: Mapping[str, str], declare: Declare, counters: bool = True
) -> tuple[ir.Stmt, ...]:
    names, result = dict(outer), list[ir.Stmt]()
    for stmt in body:
        match stmt:
            case ir.Let(name, expr):
                value = _expr(expr, names)
                names[name] = declare(name)
                result.append(ir.Let(names[name], value))
            case ir.Named(name, held):
                made = _cell(held, names)
                names[name] = declare(name)
                result.append(replace(stmt, name=names[name], value=made))
            case ir.Registers(name) | ir.Shared(name):
                names[name] = declare(name)
                result.append(replace(stmt, name=names[name]))
            case ir.For(var, start, stop, inner):
                inside = {**names, var: declare(var) if counters else var}
                result.append(
                    replace(
                        stmt,
                        var=inside[var],
                        start=_expr(start, names),
                        stop=_expr(stop, names),
                        body=_body(inner, inside, declare, counters),
                    )
                )
            case ir.Ring(var, count, stage, _, inner):
                own = {each: declare(each) if counters else each for each in (var, stage)}
                ring = replace(
                    stmt, var=own[var], stage=own[stage], count=_expr(count, names),
                    sums=tuple(names.get(each, each) for each in stmt.sums),
                    body=_body(inner, {**names, **own}, declare, counters),
                )  # fmt: skip
                result.append(ring)
            case ir.PingPong(inner):
                result.append(ir.PingPong(_body(inner, names, declare, counters)))
            case ir.If(condition, then, otherwise):
                branches = [_body(each, names, declare, counters) for each in (then, otherwise)]
                result.append(ir.If(_expr(condition, names), branches[0], branches[1]))
            case _:
                result.append(_simple(stmt, names))
    return tuple(result)


def _simple(stmt: ir.Stmt, names: Mapping[str, str]) -> ir.Stmt:
    """A statement that declares nothing, with the names that it uses replaced."""

    def on_value(value: ir.Value) -> ir.Value:
        return _cell(value, names) if isinstance(value, ir.Cell) else value

    made = map_stmt(stmt, lambda expr: _expr(expr, names), on_value)
    named = ir.Load | ir.Store | ir.LoadMatrix | ir.StoreMatrix | ir.ClusterSum | ir.SharedSum
    if isinstance(made, named):
        made = replace(made, array=names.get(made.array, made.array))
    if isinstance(made, ir.Fill | ir.BulkStore):
        array, view = (names.get(each, each) for each in (made.array, made.map))
        made = replace(made, array=array, map=view)
    if isinstance(made, ir.WarpgroupProduct):
        made = replace(made, a=_factor(made.a, names), b=_tile(made.b, names))
    if isinstance(
        made, ir.Assign | ir.Load | ir.Shuffle | ir.TensorProduct | ir.WarpgroupProduct
        | ir.LoadMatrix | ir.ClusterSum | ir.Unpack | ir.Interleave
    ):  # fmt: skip
        made = replace(made, target=_cell(made.target, names))
    return made


def _tile(tile: ir.Tile, names: Mapping[str, str]) -> ir.Tile:
    return replace(tile, array=names.get(tile.array, tile.array))


def _factor(factor: ir.Tile | ir.Cell, names: Mapping[str, str]) -> ir.Tile | ir.Cell:
    return _tile(factor, names) if isinstance(factor, ir.Tile) else _cell(factor, names)


def _cell(cell: ir.Cell, names: Mapping[str, str]) -> ir.Cell:
    return replace(cell, name=names[cell.name]) if cell.name in names else cell


def _expr(expr: Expr, names: Mapping[str, str]) -> Expr:
    used = variables(expr) & names.keys()
    return substitute(expr, {name: Var(names[name]) for name in used}) if used else expr
