"""One place that knows where expressions and values sit in a statement: visiting and replacing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias, assert_never

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr
from warploom.kernel import ir
from warploom.kernel.warpgroup import Hopper

OnExpr: TypeAlias = Callable[[Expr], Expr]
OnValue: TypeAlias = Callable[[ir.Value], ir.Value]


def values_of(stmt: ir.Stmt) -> Iterator[ir.Value]:
    """The values a statement reads (not those of statements inside it)."""
    match stmt:
        case ir.Assign(_, value) | ir.Store(_, _, value) | ir.Shuffle(_, value):
            yield value
        case ir.Named(_, value):
            yield value
        case ir.Load(_, _, _, _, otherwise) if otherwise is not None:
            yield otherwise
        case ir.TensorProduct(target, a, b):
            yield from (target, a, b)
        case ir.WarpgroupProduct(target, a):
            yield target
            if isinstance(a, ir.Cell):
                yield a
        case (
            ir.StoreMatrix(value=value) | ir.ClusterSum(value=value)
            | ir.Unpack(_, value) | ir.Interleave(_, value)
        ):  # fmt: skip
            yield value
        case _:
            return


def target_of(stmt: ir.Stmt) -> ir.Cell | None:
    """The register a statement writes."""
    match stmt:
        case (
            ir.Assign(target) | ir.Load(target) | ir.Shuffle(target) | ir.TensorProduct(target)
            | ir.WarpgroupProduct(target) | ir.LoadMatrix(target) | ir.ClusterSum(target)
            | ir.Unpack(target) | ir.Interleave(target)
        ):  # fmt: skip
            return target
        case _:
            return None


def widest_access(kernel: ir.Kernel, array: str) -> int:
    """The largest number of elements that one access to an array moves."""
    return max(
        (each.width for each in ir.walk(kernel.body)
         if isinstance(each, ir.Load | ir.Store) and each.array == array),
        default=1,
    )  # fmt: skip


def own_exprs(stmt: ir.Stmt) -> Iterator[Expr]:
    """The index expressions of a statement itself, those inside its values left out."""
    match stmt:
        case ir.Let(_, expr) | ir.If(expr):
            yield expr
        case ir.For(_, start, stop):
            yield start
            yield stop
        case ir.Load(_, _, index, predicate) | ir.Store(_, index, _, predicate):
            yield index
            if predicate is not None:
                yield predicate
        case ir.Shuffle(_, _, lane):
            yield lane
        case ir.Ring(count=count):
            yield count
        case ir.Fill(at=at, index=index) | ir.BulkStore(at=at, index=index):
            yield from (*at, index)
        case ir.WarpgroupProduct():
            yield from (each.index for each in stmt.tiles)
        case ir.LoadMatrix(index=index) | ir.StoreMatrix(index=index):
            yield index
        case _:
            return


def exprs_of(stmt: ir.Stmt) -> Iterator[Expr]:
    """Every index expression of a statement: its own, its target's and those in its values."""
    yield from own_exprs(stmt)
    target = target_of(stmt)
    if target is not None and target.index is not None:
        yield target.index
    for value in values_of(stmt):
        for part in ir.walk_value(value):
            yield from exprs_in(part)


def exprs_in(part: ir.Value) -> Iterator[Expr]:
    """The index expressions of one value node, its operands left out."""
    match part:
        case ir.Cell(_, index) if index is not None:
            yield index
        case ir.FromIndex(expr):
            yield expr
        case ir.Choose(condition) if not isinstance(condition, ir.Compare):
            yield condition
        case _:
            return


def map_value(value: ir.Value, on_expr: OnExpr, on_value: OnValue) -> ir.Value:
    """The value with its expressions replaced, then each value node, innermost first; what several
    parts share is replaced once."""
    return _Mapped(on_expr, on_value).value(value)


class _Mapped:
    def __init__(self, on_expr: OnExpr, on_value: OnValue) -> None:
        self.on_expr, self.on_value = on_expr, on_value
        self.done: dict[int, ir.Value] = {}

    def value(self, value: ir.Value) -> ir.Value:
        if id(value) not in self.done:
            self.done[id(value)] = self.on_value(self._inner(value))
        return self.done[id(value)]

    def _inner(self, value: ir.Value) -> ir.Value:
        match value:
            case ir.Number():
                return value
            case ir.Cell(_, index):
                return value if index is None else replace(value, index=self.on_expr(index))
            case ir.FromIndex(expr):
                return replace(value, expr=self.on_expr(expr))
            case ir.Operation(op, operands):
                return ir.Operation(op, tuple(map(self.value, operands)))
            case ir.Choose(condition, then, otherwise):
                asked = self._condition(condition)
                return ir.Choose(asked, self.value(then), self.value(otherwise))
            case ir.Cast(dtype, inner):
                return ir.Cast(dtype, self.value(inner))
            case _:
                assert_never(value)

    def _condition(self, condition: ir.Condition) -> ir.Condition:
        if not isinstance(condition, ir.Compare):
            return self.on_expr(condition)
        sides = self.value(condition.left), self.value(condition.right)
        return ir.Compare(condition.op, *sides)


def map_stmt(stmt: ir.Stmt, on_expr: OnExpr, on_value: OnValue = lambda value: value) -> ir.Stmt:
    """The statement with all its expressions and values replaced, those inside bodies too."""

    def value_of(value: ir.Value) -> ir.Value:
        return map_value(value, on_expr, on_value)

    def cell_of(cell: ir.Cell) -> ir.Cell:
        return cell if cell.index is None else replace(cell, index=on_expr(cell.index))

    def optional(expr: Expr | None) -> Expr | None:
        return None if expr is None else on_expr(expr)

    match stmt:
        case ir.Let(name, expr):
            return ir.Let(name, on_expr(expr))
        case ir.Assign(target, value):
            return ir.Assign(cell_of(target), value_of(value))
        case ir.Load():
            return replace(
                stmt,
                target=cell_of(stmt.target),
                index=on_expr(stmt.index),
                predicate=optional(stmt.predicate),
                otherwise=None if stmt.otherwise is None else value_of(stmt.otherwise),
            )
        case ir.Store():
            return replace(
                stmt,
                index=on_expr(stmt.index),
                value=value_of(stmt.value),
                predicate=optional(stmt.predicate),
            )
        case ir.Shuffle() | ir.TensorProduct() | ir.Named():
            return _map_together(stmt, cell_of, value_of, on_expr)
        case ir.For():
            # A constant bound is the shape of a loop, not arithmetic that may be rewritten.
            start, stop = (
                each if isinstance(each, Const) else on_expr(each)
                for each in (stmt.start, stmt.stop)
            )
            body = map_body(stmt.body, on_expr, on_value)
            return replace(stmt, start=start, stop=stop, body=body)
        case ir.If(condition, then, otherwise):
            return ir.If(
                on_expr(condition),
                map_body(then, on_expr, on_value),
                map_body(otherwise, on_expr, on_value),
            )
        case ir.Registers() | ir.Shared() | ir.Barrier() | ir.Comment():
            return stmt
        case _:
            return _map_hopper(stmt, cell_of, value_of, on_expr, on_value)


def _map_hopper(
    stmt: Hopper,
    cell_of: Callable[[ir.Cell], ir.Cell],
    value_of: OnValue,
    on_expr: OnExpr,
    on_value: OnValue,
) -> ir.Stmt:
    """A ring, or what moves boxes, and moves or multiplies matrices, with its parts mapped."""

    def cell(given: ir.Cell) -> ir.Cell:
        made = value_of(given)
        assert isinstance(made, ir.Cell)
        return made

    def tile(given: ir.Tile) -> ir.Tile:
        return replace(given, index=on_expr(given.index))

    match stmt:
        case ir.Ring():
            count = stmt.count if isinstance(stmt.count, Const) else on_expr(stmt.count)
            return replace(stmt, count=count, body=map_body(stmt.body, on_expr, on_value))
        case ir.PingPong():
            return ir.PingPong(map_body(stmt.body, on_expr, on_value))
        case ir.OrderedBarrier() | ir.SharedSum():
            return stmt
        case ir.Unpack(target, source) | ir.Interleave(target, source):
            return replace(stmt, target=cell_of(target), source=cell(source))
        case ir.Fill() | ir.BulkStore():
            return replace(stmt, at=tuple(map(on_expr, stmt.at)), index=on_expr(stmt.index))
        case ir.LoadMatrix(target):
            return replace(stmt, target=cell_of(target), index=on_expr(stmt.index))
        case ir.StoreMatrix():
            return replace(stmt, value=cell(stmt.value), index=on_expr(stmt.index))
        case ir.ClusterSum(target):
            return replace(stmt, target=cell_of(target), value=cell(stmt.value))
        case ir.WarpgroupProduct(target, a, b):
            left = tile(a) if isinstance(a, ir.Tile) else cell(a)
            return replace(stmt, target=cell_of(target), a=left, b=tile(b))


def _map_together(
    stmt: ir.Shuffle | ir.TensorProduct | ir.Named,
    cell_of: Callable[[ir.Cell], ir.Cell],
    value_of: OnValue,
    on_expr: OnExpr,
) -> ir.Stmt:
    """The shuffle, tensor product or name with its parts mapped."""
    if isinstance(stmt, ir.Named):
        named = value_of(stmt.value)
        if not isinstance(named, ir.Cell):  # what a pass makes of a varying index
            raise CheckError(f"'{stmt.name}' names what is no register any more")
        return replace(stmt, value=named)
    if isinstance(stmt, ir.Shuffle):
        return ir.Shuffle(cell_of(stmt.target), value_of(stmt.value), on_expr(stmt.lane), stmt.mode)
    left, right = value_of(stmt.a), value_of(stmt.b)
    assert isinstance(left, ir.Cell)
    assert isinstance(right, ir.Cell)
    return ir.TensorProduct(cell_of(stmt.target), left, right, stmt.kind)


def map_body(
    body: tuple[ir.Stmt, ...], on_expr: OnExpr, on_value: OnValue = lambda value: value
) -> tuple[ir.Stmt, ...]:
    return tuple(map_stmt(stmt, on_expr, on_value) for stmt in body)
