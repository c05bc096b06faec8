"""A kernel of `f32` whose arrays hold codes: loads widen, stores round, and that is the only
rounding to sixteen bits.

    v = x[i];       →   code = x[i];  v = f32(code);
    y[i] = e;       →   y[i] = f16(e);
"""

from __future__ import annotations

from dataclasses import replace

from warploom.errors import CheckError
from warploom.index.ir import Const, Var
from warploom.index.laws import simplify
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    ArrayParam,
    Assign,
    Cast,
    Cell,
    Compare,
    For,
    FromIndex,
    If,
    Kernel,
    Load,
    Number,
    Operation,
    Param,
    Registers,
    Shared,
    Shuffle,
    Stmt,
    Store,
    TensorProduct,
    Value,
    loop,
    walk,
    walk_value,
)
from warploom.kernel.names import INVENTED, settled
from warploom.kernel.traverse import map_stmt, map_value, values_of

_CODE = f"code{INVENTED}"
_ELEMENT = f"e{INVENTED}"


def stored_as(kernel: Kernel, dtype: DType) -> Kernel:
    """The kernel with all arrays of `f32` held as codes; it computes as it did."""
    if not dtype.is_code:
        raise CheckError(f"{dtype!r} is no code", advice="use f16 or bf16")
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


def _param(param: Param, narrow: set[str], dtype: DType) -> Param:
    held = isinstance(param, ArrayParam) and param.name in narrow
    return replace(param, dtype=dtype) if held else param


def computes(kernel: Kernel) -> bool:
    """Whether numbers are computed, and not only moved: a zero may be put in their place."""
    return any(
        isinstance(part, Operation | FromIndex | Cast | Compare)
        or (isinstance(part, Number) and part.value != 0)
        or isinstance(stmt, TensorProduct)
        for stmt in walk(kernel.body)
        for value in values_of(stmt)
        for part in walk_value(value)
    )


def retyped(kernel: Kernel, old: DType, new: DType) -> Kernel:
    """A kernel that only moves numbers, with those of a type taken for another of that size."""
    if computes(kernel) or old.bytes != new.bytes:
        raise CheckError(f"'{kernel.name}' cannot have {new!r} for {old!r}")

    def on_value(value: Value) -> Value:
        if isinstance(value, Cell | Number) and value.dtype is old:
            return replace(value, dtype=new)
        return value

    def on_stmt(stmt: Stmt) -> Stmt:
        made = map_stmt(stmt, lambda expr: expr, on_value)
        match made:
            case For():
                return replace(made, body=tuple(map(on_stmt, made.body)))
            case If(condition, then, otherwise):
                return If(condition, tuple(map(on_stmt, then)), tuple(map(on_stmt, otherwise)))
            case Registers(dtype=dtype) | Shared(dtype=dtype) if dtype is old:
                return replace(made, dtype=new)
            case Assign(target) | Load(target) | Shuffle(target) if target.dtype is old:
                return replace(made, target=replace(target, dtype=new))
            case _:
                return made

    params = tuple(replace(p, dtype=new) if p.dtype is old else p for p in kernel.params)
    made = replace(kernel, params=params, body=tuple(map(on_stmt, kernel.body)))
    check(made)
    return made


class _Pass:
    def __init__(self, arrays: set[str], constants: set[str], dtype: DType) -> None:
        self.arrays, self.constants, self.dtype = arrays, constants, dtype
        self.count = 0

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(made for stmt in body for made in self.statement(stmt))

    def statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case For():
                return (replace(stmt, body=self.body(stmt.body)),)
            case If(condition, then, otherwise):
                return (If(condition, self.body(then), self.body(otherwise)),)
            case Load(array=array) if array in self.arrays:
                return self._load(stmt)
            case Store(array=array) if array in self.arrays:
                return self._store(stmt)
            case _:
                return (map_stmt(stmt, lambda expr: expr, self._widened),)

    def _widened(self, value: Value) -> Value:
        """A number of a constant array, which is read in place."""
        if isinstance(value, Cell) and value.name in self.constants:
            return Cast(DType.F32, replace(value, dtype=self.dtype))
        return value

    def _code(self, width: int) -> tuple[Registers, Cell]:
        self.count += 1
        name = f"{_CODE}{self.count}"
        if width == 1:
            return Registers(name, self.dtype), Cell(name, None, self.dtype)
        return Registers(name, self.dtype, width), Cell(name, Var(_ELEMENT), self.dtype)

    def _load(self, stmt: Load) -> tuple[Stmt, ...]:
        other = stmt.otherwise
        declared, code = self._code(stmt.width)
        first = code if stmt.width == 1 else replace(code, index=Const(0))
        wide = None if other is None else map_value(other, lambda expr: expr, self._widened)
        load = replace(
            stmt, target=first, otherwise=None if wide is None else Cast(self.dtype, wide)
        )
        if stmt.width == 1:
            return declared, load, Assign(stmt.target, Cast(DType.F32, code))
        target = _shifted(stmt.target)
        return declared, load, loop(_ELEMENT, stmt.width, Assign(target, Cast(DType.F32, code)))

    def _store(self, stmt: Store) -> tuple[Stmt, ...]:
        if stmt.width == 1:
            value = map_value(stmt.value, lambda expr: expr, self._widened)
            return (replace(stmt, value=Cast(self.dtype, value)),)
        assert isinstance(stmt.value, Cell)
        declared, code = self._code(stmt.width)
        fill = loop(_ELEMENT, stmt.width, Assign(code, Cast(self.dtype, _shifted(stmt.value))))
        return declared, fill, replace(stmt, value=replace(code, index=Const(0)))


def _shifted(cell: Cell) -> Cell:
    assert cell.index is not None
    return replace(cell, index=simplify(cell.index + Var(_ELEMENT)))
