"""Loop nests written in Python so that they read like the computation.

>>> from warploom.loopnest.show import show
>>> nest = LoopNest("matmul")
>>> m, n, k = nest.axis("m", 64, 8, 4), nest.axis("n", 64, 8, 4), nest.axis("k", 32, 8)
>>> A, B, C = nest.array("A", m, k), nest.array("B", k, n), nest.array("C", m, n)
>>> C[m, n] = nest.sum(A[m, k] * B[k, n], over=k)
>>> print(show(nest.done()))
nest matmul
  axis m of 64: * × 2|4|8 × 2|4
  axis n of 64: * × 2|4|8 × 2|4
  axis k of 32: * × 2|4|8
  A_1[m, k] = load A[m, k]
  B_1[n, k] = load B[k, n]
  sum_1.start[m, n] = 0
  sum_1[m, n] = fma(A_1[m, k], B_1[n, k], running from sum_1.start[m, n]) over k
  store C[m, n] = sum_1[m, n]

Every load, every fold and every other expression has loops of its own; what is written in one
expression stays in one nest. A product that is added becomes one `fma`, which rounds once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TypeAlias

import numpy as np

from warploom.errors import CheckError, Span, calling_line, located
from warploom.kernel.dtype import DType, f32
from warploom.loopnest import ir, tiling
from warploom.loopnest.check import check, check_array, check_type
from warploom.loopnest.communicate import communications

Subscript: TypeAlias = "ir.Linear | int"
Number: TypeAlias = "Expression | float"

# What a fold starts with: it changes nothing. For integers: the least and greatest of the type.
NEUTRAL: dict[ir.Fold, float] = {"+": 0.0, "min": float("inf"), "max": -float("inf")}


# -- expressions -----------------------------------------------------------------------------------


class Expression:
    """A value under construction: a leaf, or an operator on others."""

    __slots__ = ()

    def __add__(self: Term, other: Number) -> Node:  # type: ignore[misc]
        return node("+", self, other)

    __radd__ = __add__

    def __mul__(self: Term, other: Number) -> Node:  # type: ignore[misc]
        return node("*", self, other)

    __rmul__ = __mul__

    def __sub__(self: Term, other: Number) -> Node:  # type: ignore[misc]
        return node("-", self, other)

    def __rsub__(self: Term, other: Number) -> Node:  # type: ignore[misc]
        return node("-", other, self)

    def __truediv__(self: Term, other: Number) -> Node:  # type: ignore[misc]
        return node("/", self, other)

    def __rtruediv__(self: Term, other: Number) -> Node:  # type: ignore[misc]
        return node("/", other, self)

    def __neg__(self: Term) -> Node:  # type: ignore[misc]
        return node("neg", self)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Expression):
    value: ir.Constant | ir.Parameter | ir.IndexOf | ir.Instruction
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Node(Expression):
    op: ir.Operation
    operands: tuple[Term, ...]
    dtype: DType


Term: TypeAlias = Leaf | Node


def lift(value: Number, dtype: DType) -> Term:
    """A number as a constant of the type; an expression as it is."""
    if isinstance(value, Leaf | Node):
        return value
    if isinstance(value, Expression) or not isinstance(value, int | float):
        raise CheckError(f"{value!r} is no value", calling_line(__file__))
    if not dtype.has(value):
        raise CheckError(f"{value} is no {dtype!r}", calling_line(__file__))
    return Leaf(ir.Constant(value), dtype)


def node(op: ir.Operation, *values: Number) -> Node:
    """Numbers are of the type of what is beside them."""
    first = next((each for each in values if isinstance(each, Leaf | Node)), None)
    if first is None:
        raise CheckError(f"'{op}' of numbers alone", calling_line(__file__), "compute it in Python")
    operands = tuple(lift(each, first.dtype) for each in values)
    for operand in operands:
        if operand.dtype is not first.dtype:
            raise CheckError(
                f"'{op}' mixes {first.dtype!r} and {operand.dtype!r}",
                calling_line(__file__),
                "cast one of the two",
            )
    return Node(op, operands, first.dtype)


def cast(value: Term, dtype: DType) -> Node:
    return Node("cast", (_term(value),), dtype)


def _term(value: object) -> Term:
    """What has a type of its own; a number has not."""
    if isinstance(value, Leaf | Node):
        return value
    raise CheckError(
        f"{value!r} is no value of a nest", calling_line(__file__), "compute it in Python"
    )


def _function(op: ir.Operation) -> Callable[[Term], Node]:
    return lambda value: node(op, value)


exp, sqrt, tanh = _function("exp"), _function("sqrt"), _function("tanh")


def maximum(left: Number, right: Number) -> Node:
    return node("max", left, right)


def minimum(left: Number, right: Number) -> Node:
    return node("min", left, right)


# -- the builder -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An array argument, as the builder hands it out."""

    nest: LoopNest
    array: ir.Array

    @located
    def __getitem__(self, subscripts: Subscript | tuple[Subscript, ...]) -> Leaf:
        """Loads an element, in loops of its own over the axes of the subscripts."""
        access = self._access(subscripts)
        name = self.nest.fresh(self.array.name)
        return self.nest.emit(name, self.array.dtype, _axes_of(access), ir.Load(access))

    @located
    def __setitem__(
        self, subscripts: Subscript | tuple[Subscript, ...], value: Number
    ) -> None:  # fmt: skip
        access = self._access(subscripts)
        self.nest.store(access, lift(value, self.array.dtype))

    def _access(self, subscripts: Subscript | tuple[Subscript, ...]) -> ir.Access:
        listed = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        if len(listed) != len(self.array.shape):
            raise CheckError(
                f"'{self.array}' has {len(self.array.shape)} dimensions, not {len(listed)}",
                calling_line(__file__),
            )
        return ir.Access(self.array, tuple(ir.affine(each) for each in listed))


def _axes_of(access: ir.Access) -> set[ir.Axis]:
    return set(access.place.factors)


@dataclass(slots=True, eq=False)
class LoopNest:
    """A computation as loops over axes, in which nothing is decided yet: `explore` decides.

    The tile sizes that an axis may have are said with it: `axis("n", 4096, (32, 64), (1, 2, 4))`
    has two levels of tiles. An axis without any is one loop, and is not divided.

    >>> from warploom import LoopNest, explore
    >>> nest = LoopNest("scaled")
    >>> i = nest.axis("n", 64, (32, 64))
    >>> x, y = nest.array("x", i), nest.array("y", i)
    >>> y[i] = 2.0 * x[i] + 1.0
    >>> explore(nest, evaluations=1, model=True, space="paper").trial.wrong
    ''
    """

    name: str
    _axes: list[ir.Axis] = field(default_factory=list)
    _tiles: dict[ir.Axis, tuple[ir.Tile, ...]] = field(default_factory=dict)
    _outer: dict[ir.Axis, ir.Dim] = field(default_factory=dict)
    _arrays: list[ir.Array] = field(default_factory=list)
    _parameters: list[ir.Parameter] = field(default_factory=list)
    _instructions: list[ir.Instruction] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _lines: dict[object, Span] = field(default_factory=dict)

    # -- what there is -----------------------------------------------------------------------------

    @located
    def axis(
        self,
        name: str,
        size: int,
        *tiles: int | Sequence[int],
        dynamic: bool = True,
        tail: bool = False,
        proper: bool = False,
    ) -> ir.Axis:
        """A loop of the computation; see `tiling.cut`."""
        made = tiling.cut(name, size, tiles, dynamic=dynamic, tail=tail, proper=proper)
        return self.add_axis(made)

    def add_axis(self, axis: ir.Axis) -> ir.Axis:
        self._axes.append(axis)
        self._note(axis)
        self._tiles[axis] = tuple(ir.Tile(axis, level) for level in range(len(axis.tiles)))
        if axis.dynamic:
            self._outer[axis] = ir.Dim(f"{axis}0", axis, None)
        return axis

    @located
    def array(
        self,
        name: str,
        *shape: ir.Axis | int,
        dtype: DType = f32,
        strides: Sequence[int] | None = None,
    ) -> Tensor:
        """An array argument; the last dimension is contiguous unless strides say otherwise."""
        sizes = tuple(each.size if isinstance(each, ir.Axis) else each for each in shape)
        for size in sizes:
            if not isinstance(size, Integral):
                raise CheckError(
                    f"'{name}' has a size of {size!r:.40}", advice="use axes, integers"
                )
        if strides is None:
            strides = _row_major(sizes)
        if len(strides) != len(sizes):
            raise CheckError(
                f"'{name}' has {len(sizes)} dimensions and {len(strides)} strides",
                calling_line(__file__),
            )
        check_type(dtype, name, calling_line(__file__))
        made = ir.Array(name, dtype, sizes, tuple(strides))
        check_array(made)
        self._arrays.append(made)
        self._note(made)
        return Tensor(self, made)

    def parameter(self, name: str, dtype: DType = f32) -> Leaf:
        """A number that is an argument of the kernel."""
        made = ir.Parameter(name, dtype)
        self._parameters.append(made)
        self._note(made)
        return Leaf(made, dtype)

    def index(self, axis: ir.Axis, dtype: DType = DType.I32) -> Leaf:
        """The index along an axis as a number."""
        return Leaf(ir.IndexOf(axis), dtype)

    # -- instructions ------------------------------------------------------------------------------

    def value(self, expression: Term, name: str = "value") -> Leaf:
        """The expression computed once, in loops of its own."""
        axes = set(self._axes_in(_term(expression)))
        name = self.fresh(name)
        return Leaf(self._nest(name, expression, self._loops(name, axes)), expression.dtype)

    def sum(
        self,
        expression: Term,
        over: ir.Axis | Iterable[ir.Axis],
        start: Number = 0,
        name: str = "sum",
    ) -> Leaf:
        return self.fold("+", expression, over, start, name)

    @located
    def fold(
        self,
        op: ir.Fold,
        expression: Term,
        over: ir.Axis | Iterable[ir.Axis],
        start: Number | None = None,
        name: str = "fold",
    ) -> Leaf:
        """The values of the expression along some axes put together by an operator."""
        axes = (over,) if isinstance(over, ir.Axis) else tuple(over)
        if op not in NEUTRAL:
            raise CheckError(
                f"there is no fold by {op!r}", calling_line(__file__), f"use {', '.join(NEUTRAL)}"
            )
        expression = _term(expression)
        kept = [axis for axis in self._axes_in(expression) if axis not in axes]
        name = self.fresh(name)
        dtype = expression.dtype
        first = lift(neutral(op, dtype) if start is None else start, dtype)
        outside = self._loops(f"{name}.start", kept)
        begun = self._nest(f"{name}.start", first, outside)
        dims = self._loops(name, {*kept, *axes})
        reduced = tuple(dim for dim in dims if dim.axis in axes)
        running = ir.Running(begun, _pairs(begun, dims), reduced)
        action = self._folding(op, name, expression, running, dims)
        return Leaf(self._add(name, dtype, dims, action), dtype)

    def _folding(
        self,
        op: ir.Fold,
        name: str,
        expression: Term,
        running: ir.Running,
        dims: tuple[ir.Dim, ...],
    ) -> ir.Compute:
        match expression:
            case Node("*", factors, dtype) if op == "+" and dtype.is_float:
                operands = self._operands(name, factors, dims, running.over)
                return ir.Compute("fma", (*operands, running))
            case _:
                operands = self._operands(name, (expression,), dims, running.over)
                return ir.Compute(op, (running, *operands))

    def emit(self, name: str, dtype: DType, axes: Iterable[ir.Axis], action: ir.Action) -> Leaf:
        return Leaf(self._add(name, dtype, self._loops(name, set(axes)), action), dtype)

    def store(self, access: ir.Access, value: Term) -> None:
        if value.dtype is not access.array.dtype:
            raise CheckError(
                f"'{access.array}' holds {access.array.dtype!r}, not {value.dtype!r}",
                calling_line(__file__),
                "cast the value",
            )
        if isinstance(value, Node):
            value = self.value(value)
        name = self.fresh(f"store_{access.array}")
        dims = self._loops(name, _axes_of(access))
        (operand,) = self._operands(name, (value,), dims)
        self._add(name, value.dtype, dims, ir.Store(access, operand))

    def fresh(self, name: str) -> str:
        self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}_{self._counts[name]}"

    def done(self) -> ir.Program:
        """The program, checked."""
        instructions = tuple(self._instructions)
        program = ir.Program(
            self.name,
            tuple(self._axes),
            tuple(tile for axis in self._axes for tile in self._tiles[axis]),
            tuple(self._arrays),
            tuple(self._parameters),
            instructions,
            communications(instructions),
        )
        check(program, self._lines)
        return program

    # -- inside ------------------------------------------------------------------------------------

    def _add(
        self, name: str, dtype: DType, dims: tuple[ir.Dim, ...], action: ir.Action
    ) -> ir.Instruction:  # fmt: skip
        made = ir.Instruction(name, dtype, dims, action)
        self._instructions.append(made)
        self._note(made)
        return made

    def _note(self, made: object) -> None:
        where = calling_line(__file__)
        if where is not None:
            self._lines[made] = where

    def _loops(self, name: str, axes: Iterable[ir.Axis]) -> tuple[ir.Dim, ...]:
        """Dimensions for some axes: of their own for tiles, shared outside of these."""
        wanted = set(axes)
        strangers = wanted - set(self._axes)
        if strangers:
            raise CheckError(
                f"'{strangers.pop()}' is an axis of another nest", calling_line(__file__)
            )
        found: list[ir.Dim] = []
        for axis in self._axes:
            if axis in wanted:
                found += [self._outer[axis]] if axis.dynamic else []
                found += [ir.Dim(f"{name}.{tile}", axis, tile) for tile in self._tiles[axis]]
        return tuple(found)

    def _axes_in(self, expression: Term) -> list[ir.Axis]:
        """The axes along which a value varies, in order of declaration."""
        match expression:
            case Leaf(ir.Instruction() as made):
                found = {dim.axis for dim in made.dims if dim not in made.over}
            case Leaf(ir.IndexOf(axis)):
                found = {axis}
            case Leaf():
                found = set()
            case Node(_, operands):
                found = {axis for each in operands for axis in self._axes_in(each)}
        return [axis for axis in self._axes if axis in found]

    def _nest(self, name: str, expression: Term, dims: tuple[ir.Dim, ...]) -> ir.Instruction:
        """Instructions for an expression, all in one nest; the last one has the given name."""
        match expression:
            case Leaf():
                operands = self._operands(name, (expression,), dims)
                return self._add(name, expression.dtype, dims, ir.Compute("move", operands))
            case Node("+", (Node("*", factors), other), dtype) if dtype.is_float:
                return self._fused(name, factors, other, dims)
            case Node("+", (other, Node("*", factors)), dtype) if dtype.is_float:
                return self._fused(name, factors, other, dims)
            case Node(op, parts, dtype):
                operands = self._operands(name, parts, dims)
                return self._add(name, dtype, dims, ir.Compute(op, operands))

    def _fused(
        self, name: str, factors: tuple[Term, ...], other: Term, dims: tuple[ir.Dim, ...]
    ) -> ir.Instruction:
        operands = self._operands(name, (*factors, other), dims)
        return self._add(name, other.dtype, dims, ir.Compute("fma", operands))

    def _operands(
        self,
        name: str,
        parts: tuple[Term, ...],
        dims: tuple[ir.Dim, ...],
        over: tuple[ir.Dim, ...] = (),
    ) -> tuple[ir.Operand, ...]:
        seen: dict[Term, ir.Operand] = {}
        for part in parts:
            if part not in seen:
                seen[part] = self._operand(name, part, dims, over)
        return tuple(seen[part] for part in parts)

    def _operand(
        self, name: str, part: Term, dims: tuple[ir.Dim, ...], over: tuple[ir.Dim, ...]
    ) -> ir.Operand:
        if isinstance(part, Node):
            root, _, _ = name.partition(".")  # names say where, not how deep
            inner = self._nest(self.fresh(f"{root}.{WORDS.get(part.op, part.op)}"), part, dims)
            return ir.Result(inner, (), ir.Scope.LOCAL)
        value = part.value
        if isinstance(value, ir.Instruction):
            return ir.Result(value, _pairs(value, dims), _scope(value, dims, over))
        return value


WORDS: Mapping[str, str] = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def neutral(op: ir.Fold, dtype: DType) -> float:
    """What a fold begins with where nothing is said."""
    if dtype.is_float or op == "+":
        return NEUTRAL[op] if dtype.is_float else 0
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if op == "min" else limits.min)


def _row_major(sizes: tuple[int, ...]) -> list[int]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides[: len(sizes)]


def _pairs(producer: ir.Instruction, dims: tuple[ir.Dim, ...]) -> tuple[tuple[ir.Dim, ir.Dim], ...]:
    """Which dimension of mine goes with each dimension along which a result varies."""
    mine = {dim.tile: dim for dim in dims if dim.tile is not None}
    found = []
    for dim in producer.dims:
        if dim in dims or dim in producer.over:
            continue
        if dim.tile not in mine:
            raise CheckError(
                f"'{producer}' varies along '{dim.axis}', but is used outside its loop",
                calling_line(__file__),
                "fold over that axis first",
            )
        found.append((dim, mine[dim.tile]))
    return tuple(found)


def _scope(
    producer: ir.Instruction, dims: tuple[ir.Dim, ...], over: tuple[ir.Dim, ...]
) -> ir.Scope:
    """What was loaded, is used along more axes than it has, or is folded over an axis of its own,
    may go through memory: only then can it be of use."""
    varies = {dim.axis for dim in producer.dims if dim not in producer.over}
    more = {dim.axis for dim in dims} - varies
    folded = varies & {dim.axis for dim in over}
    loaded = isinstance(producer.action, ir.Load)
    return ir.Scope.MEMORY if loaded or more or folded else ir.Scope.THREAD
