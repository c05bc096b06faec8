"""A kernel of `f32` whose arrays hold codes: loads widen, stores round, and that is the only
rounding to fewer bits.

    v = x[i];       →   code = x[i];  v = f32(code);
    y[i] = e;       →   y[i] = f16(e);
"""

from __future__ import annotations

from dataclasses import replace

from warploom.errors import CheckError
from warploom.index.ir import Const, Var
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.check_hopper import refuse_hopper
from warploom.kernel.dtype import DType
from warploom.kernel.names import INVENTED, settled
from warploom.kernel.traverse import map_stmt, map_value, values_of

_CODE = f"code{INVENTED}"
_ELEMENT = f"e{INVENTED}"


def stored_as(kernel: ir.Kernel, dtype: DType) -> ir.Kernel:
    """The kernel with all arrays of `f32` held as codes; it computes as it did."""
    if not dtype.is_code:
        raise CheckError(f"{dtype!r} is no code", advice="use f16, bf16, e4m3 or e5m2")
    refuse_hopper(kernel, "whose factors have types of their own")
    narrow = {each.name for each in kernel.arrays if each.dtype is DType.F32}
    constants = {each.name for each in kernel.arrays if each.space == "constant"}
    passed = _Pass(narrow - constants, narrow & constants, dtype)
    made = replace(
        kernel,
        params=tuple(_param(each, narrow, dtype) for each in kernel.params),
        body=passed.body(kernel.body),
        doc=f"{kernel.doc}\nArrays hold {dtype.value}: computed in float32, rounded when stored.",
    )
    made = settled(made)
    check(made)
    return made


def _param(param: ir.Param, narrow: set[str], dtype: DType) -> ir.Param:
    held = isinstance(param, ir.ArrayParam) and param.name in narrow
    return replace(param, dtype=dtype) if held else param


def computes(kernel: ir.Kernel) -> bool:
    """Whether numbers are computed, and not only moved: a zero may be put in their place."""
    return any(
        isinstance(part, ir.Operation | ir.FromIndex | ir.Cast | ir.Compare)
        or (isinstance(part, ir.Number) and part.value != 0)
        or isinstance(stmt, ir.TensorProduct)
        for stmt in ir.walk(kernel.body)
        for value in values_of(stmt)
        for part in ir.walk_value(value)
    )


def retyped(kernel: ir.Kernel, old: DType, new: DType) -> ir.Kernel:
    """A kernel that only moves numbers, with those of a type taken for another of that size."""
    if computes(kernel) or old.bytes != new.bytes:
        raise CheckError(f"'{kernel.name}' cannot have {new!r} for {old!r}")

    def on_value(value: ir.Value) -> ir.Value:
        match value:
            case ir.Number(number, dtype) if dtype is old:
                return ir.Number(number, new)
            case ir.Cell() if value.dtype is old:
                return replace(value, dtype=new)
        return value

    def on_stmt(stmt: ir.Stmt) -> ir.Stmt:
        made = map_stmt(stmt, lambda expr: expr, on_value)
        match made:
            case ir.For():
                return replace(made, body=tuple(map(on_stmt, made.body)))
            case ir.If(condition, then, otherwise):
                return ir.If(condition, tuple(map(on_stmt, then)), tuple(map(on_stmt, otherwise)))
            case ir.Registers(dtype=dtype) | ir.Shared(dtype=dtype) if dtype is old:
                return replace(made, dtype=new)
            case ir.Assign(target) | ir.Load(target) | ir.Shuffle(target) if target.dtype is old:
                return replace(made, target=replace(target, dtype=new))
            case _:
                return made

    refuse_hopper(kernel, "whose factors have types of their own")
    params = tuple(replace(p, dtype=new) if p.dtype is old else p for p in kernel.params)
    made = replace(kernel, params=params, body=tuple(map(on_stmt, kernel.body)))
    check(made)
    return made


class _Pass:
    def __init__(self, arrays: set[str], constants: set[str], dtype: DType) -> None:
        self.arrays, self.constants, self.dtype = arrays, constants, dtype
        self.count = 0

    def body(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(made for stmt in body for made in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
        match stmt:
            case ir.For():
                return (replace(stmt, body=self.body(stmt.body)),)
            case ir.If(condition, then, otherwise):
                return (ir.If(condition, self.body(then), self.body(otherwise)),)
            case ir.Load(array=array) if array in self.arrays:
                return self._load(stmt)
            case ir.Store(array=array) if array in self.arrays:
                return self._store(stmt)
            case _:
                return (map_stmt(stmt, lambda expr: expr, self._widened),)

    def _widened(self, value: ir.Value) -> ir.Value:
        """A number of a constant array, which is read in place."""
        if isinstance(value, ir.Cell) and value.name in self.constants:
            return ir.Cast(DType.F32, replace(value, dtype=self.dtype))
        return value

    def _code(self, width: int) -> tuple[ir.Registers, ir.Cell]:
        self.count += 1
        name = f"{_CODE}{self.count}"
        if width == 1:
            return ir.Registers(name, self.dtype), ir.Cell(name, None, self.dtype)
        return ir.Registers(name, self.dtype, width), ir.Cell(name, Var(_ELEMENT), self.dtype)

    def _load(self, stmt: ir.Load) -> tuple[ir.Stmt, ...]:
        other = stmt.otherwise
        declared, code = self._code(stmt.width)
        first = code if stmt.width == 1 else replace(code, index=Const(0))
        wide = None if other is None else map_value(other, lambda expr: expr, self._widened)
        load = replace(
            stmt, target=first, otherwise=None if wide is None else ir.Cast(self.dtype, wide)
        )
        if stmt.width == 1:
            return declared, load, ir.Assign(stmt.target, ir.Cast(DType.F32, code))
        target = _shifted(stmt.target)
        return (
            declared,
            load,
            ir.loop(_ELEMENT, stmt.width, ir.Assign(target, ir.Cast(DType.F32, code))),
        )

    def _store(self, stmt: ir.Store) -> tuple[ir.Stmt, ...]:
        if stmt.width == 1:
            value = map_value(stmt.value, lambda expr: expr, self._widened)
            return (replace(stmt, value=ir.Cast(self.dtype, value)),)
        assert isinstance(stmt.value, ir.Cell)
        declared, code = self._code(stmt.width)
        fill = ir.loop(
            _ELEMENT, stmt.width, ir.Assign(code, ir.Cast(self.dtype, _shifted(stmt.value)))
        )
        return declared, fill, replace(stmt, value=replace(code, index=Const(0)))


def _shifted(cell: ir.Cell) -> ir.Cell:
    assert cell.index is not None
    return replace(cell, index=simplify(cell.index + Var(_ELEMENT)))
