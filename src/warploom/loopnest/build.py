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

Values are those of kernels (`kernel/ir.py`), so they have its operators and comparisons. What is
written becomes instructions in `instructions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TypeAlias, TypeVar

from warploom.errors import CheckError, Span, calling_line, located
from warploom.index.ir import Expr, variables
from warploom.kernel.dtype import DType, f32
from warploom.kernel.given import type_of
from warploom.kernel.ir import (
    ARITY,
    Arithmetic,
    Cast,
    Cell,
    Choose,
    Compare,
    FromIndex,
    Number,
    Operation,
    Operator,
    Value,
    dtype_of,
    innermost_first,
    operands,
)
from warploom.loopnest import ir, tiling
from warploom.loopnest.check import check_array, check_computes
from warploom.loopnest.computation import Computation, Folded, Kept, Leaf, Loaded, Scanned, Stored
from warploom.loopnest.fold import NEUTRAL, Fold, neutral
from warploom.loopnest.instructions import program_of

MOST_DEEP = 200  # operators inside each other

Subscript: TypeAlias = "ir.Linear | ir.Crooked | Expr | Value | int"
Given: TypeAlias = "Value | float"
Term: TypeAlias = Value
LeafT = TypeVar("LeafT", Loaded, Folded, Scanned, Kept)


# -- expressions -----------------------------------------------------------------------------------


def lift(value: Given, dtype: DType) -> Value:
    """A number as a constant of the type; a value as it is."""
    if isinstance(value, Arithmetic):
        return value
    if not isinstance(value, int | float):
        raise CheckError(f"{value!r} is no value", calling_line(__file__))
    if not dtype.has(value):
        raise CheckError(f"{value} is no {dtype!r}", calling_line(__file__))
    return Number(value, dtype)


def node(op: Operator, *values: Given) -> Operation:
    """Numbers are of the type of what is beside them."""
    first = next((each for each in values if isinstance(each, Arithmetic)), None)
    if first is None:
        raise CheckError(f"'{op}' of numbers alone", calling_line(__file__), "compute it in Python")
    made = Operation(op, tuple(lift(each, dtype_of(first)) for each in values))
    _check_same([dtype_of(each) for each in made.operands], f"'{op}'")
    return made


def check_value(value: Value) -> None:
    """Operands have one type, and as many as their operator has."""
    known: dict[Value, DType] = {}
    deep: dict[Value, int] = {}
    for each in innermost_first(value):
        deep[each] = 1 + max((deep[part] for part in operands(each)), default=0)
        if deep[each] > MOST_DEEP:
            raise CheckError(
                f"a value is more than {MOST_DEEP} operators deep",
                calling_line(__file__),
                "compute a part of it once: nest.value(part)",
            )
        known[each] = _checked_type(each, known)


def _checked_type(value: Value, known: Mapping[Value, DType]) -> DType:
    """The type of a value; those of what it is of are known."""
    match value:
        case Operation(op, parts):
            if len(parts) != ARITY[op]:
                raise CheckError(
                    f"'{op}' takes {ARITY[op]} operands", calling_line(__file__)
                )  # fmt: skip
            check_computes(known[parts[0]], f"'{op}'", calling_line(__file__))
            return _check_same([known[part] for part in parts], f"'{op}'")
        case Choose(condition, then, otherwise):
            if isinstance(condition, Compare):
                sides = [known[condition.left], known[condition.right]]
                check_computes(sides[0], f"'{condition.op}'", calling_line(__file__))
                _check_same(sides, f"'{condition.op}'")
            return _check_same([known[then], known[otherwise]], "a choice")
        case Number(number, dtype) if not dtype.has(number):
            raise CheckError(f"{number} is no {dtype!r}", calling_line(__file__))
        case _:
            return dtype_of(value)


def _check_same(types: Sequence[DType], what: str) -> DType:
    for other in types[1:]:
        if other is not types[0]:
            raise CheckError(
                f"{what} mixes {types[0]!r} and {other!r}",
                calling_line(__file__),
                "cast one of the two",
            )
    return types[0]


def cast(value: Value, dtype: DType | str) -> Cast:
    return Cast(type_of(dtype), _term(value))


def choose(condition: Compare | Expr, then: Given, otherwise: Given) -> Choose:
    """`then` where a comparison of values, or a condition on indices, holds."""
    like = next((each for each in (then, otherwise) if isinstance(each, Arithmetic)), None)
    if like is None:
        raise CheckError("a choice of numbers alone", calling_line(__file__), "cast one of them")
    made = Choose(condition, *(lift(each, dtype_of(like)) for each in (then, otherwise)))
    check_value(made)
    return made


def _term(value: object) -> Value:
    """What has a type of its own; a number has not."""
    if isinstance(value, Arithmetic):
        check_value(value)  # type: ignore[arg-type]  # all values are arithmetic, and nothing else
        return value  # type: ignore[return-value]
    raise CheckError(
        f"{value!r} is no value of a nest", calling_line(__file__), "compute it in Python"
    )


def _function(op: Operator) -> Callable[[Value], Operation]:
    return lambda value: node(op, value)


exp, exp2, log, log2 = (_function(op) for op in ("exp", "exp2", "log", "log2"))
exp2_ftz = _function("exp2_ftz")  # 0 for what is below all normal numbers
sqrt, rsqrt, tanh = (_function(op) for op in ("sqrt", "rsqrt", "tanh"))
erf, sin, cos = (_function(op) for op in ("erf", "sin", "cos"))
tf32 = _function("tf32")  # of single precision, what tensor cores see: ten bits of the fraction


def maximum(left: Given, right: Given) -> Operation:
    return node("max", left, right)


def minimum(left: Given, right: Given) -> Operation:
    return node("min", left, right)


# -- the builder -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An array argument, as the builder hands it out."""

    nest: LoopNest
    array: ir.Array

    @located
    def __getitem__(self, subscripts: Subscript | tuple[Subscript, ...]) -> Loaded:
        """An element, loaded in loops over the axes of the subscripts. A subscript may be a value:
        where it lies outside the array, nothing is loaded, and the element is 0."""
        return self.nest.load(self._access(subscripts))

    @located
    def at(
        self,
        subscripts: Subscript | tuple[Subscript, ...],
        where: Expr | None = None,
        otherwise: float = 0,
    ) -> Loaded:
        """An element where a condition on indices holds and values as subscripts lie inside the
        array, and a number elsewhere: padding."""
        access = self._access(subscripts)
        condition = None if where is None else ir.Where(where, self.nest.axes_named(where))
        guarded = ir.Access(access.array, access.subscripts, condition, otherwise)
        return self.nest.load(guarded)

    @located
    def __setitem__(self, subscripts: Subscript | tuple[Subscript, ...], value: Given) -> None:
        access = self._access(subscripts)
        if access.named:
            raise CheckError(
                f"data decide where '{self.array}' is stored to: two may name one element",
                calling_line(__file__),
                "fold over all that name, and choose: "
                "y[row, j] = sum(choose(named[i].eq(index(row)), x[i, j], 0.0), over=i)",
            )
        self.nest.store(access, lift(value, self.array.dtype))

    def _access(self, subscripts: Subscript | tuple[Subscript, ...]) -> ir.Access:
        listed = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        if len(listed) != len(self.array.shape):
            raise CheckError(
                f"'{self.array}' has {len(self.array.shape)} dimensions, not {len(listed)}",
                calling_line(__file__),
            )
        return ir.Access(self.array, tuple(map(self.nest.subscript, listed)))


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
    _arrays: list[ir.Array] = field(default_factory=list)
    _parameters: list[ir.Parameter] = field(default_factory=list)
    _leaves: list[Leaf] = field(default_factory=list)
    _stores: list[Stored] = field(default_factory=list)
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
        self._axes.append(made)
        self._note(made)
        return made

    @located
    def array(
        self,
        name: str,
        *shape: ir.Axis | int,
        dtype: DType | str = f32,
        strides: Sequence[int] | None = None,
    ) -> Tensor:
        """An array argument; the last dimension is contiguous unless strides say otherwise. A type
        may be named: "i32"."""
        dtype = type_of(dtype)
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
        made = ir.Array(name, dtype, sizes, tuple(strides))
        check_array(made)
        self._arrays.append(made)
        self._note(made)
        return Tensor(self, made)

    def parameter(self, name: str, dtype: DType | str = f32) -> ir.Parameter:
        """A number that is an argument of the kernel."""
        made = ir.parameter(name, type_of(dtype))
        self._parameters.append(made)
        self._note(made)
        return made

    def index(
        self, axis: ir.Linear | ir.Crooked | Expr, dtype: DType | str = DType.I32
    ) -> FromIndex:
        """The index along an axis, or an expression of such indices, as a number."""
        expr = axis.expr if isinstance(axis, ir.Linear | ir.Crooked) else axis
        return FromIndex(expr, type_of(dtype))

    # -- values ------------------------------------------------------------------------------------

    def load(self, access: ir.Access) -> Loaded:
        name = self.fresh(access.array.name)
        number = len(self._leaves) + len(self._stores)
        return self._leaf(Loaded(name, None, access.array.dtype, number, access))

    def value(self, expression: Value, name: str = "value") -> Kept:
        """The expression computed once, in loops of its own."""
        expression = _term(expression)
        return self._keep(self.fresh(name), expression)

    def sum(
        self,
        expression: Value,
        over: ir.Axis | Iterable[ir.Axis],
        start: Given = 0,
        name: str = "sum",
    ) -> Folded:
        return self.fold("+", expression, over, start, name)

    @located
    def fold(
        self,
        op: Fold,
        expression: Value,
        over: ir.Axis | Iterable[ir.Axis],
        start: Given | None = None,
        name: str = "fold",
    ) -> Folded:
        """The values of the expression along some axes put together by an operator."""
        axes = (over,) if isinstance(over, ir.Axis) else tuple(over)
        expression = _term(expression)
        dtype = dtype_of(expression)
        _check_folds(op, dtype, "fold")
        self._check_own(axes)
        first = lift(neutral(op, dtype) if start is None else start, dtype)
        check_value(first)
        name, number = self.fresh(name), len(self._leaves) + len(self._stores)
        return self._leaf(Folded(name, None, dtype, number, op, expression, axes, first))

    @located
    def scan(
        self,
        op: Fold,
        expression: Value,
        over: ir.Axis,
        exclusive: bool = False,
        name: str = "scan",
    ) -> Scanned:
        """At each place along an axis the values of the expression as far as there, put together by
        an operator: `y[i, j] = nest.scan("+", x[i, j], over=j)`. With `exclusive` those before it,
        so that the first is what a fold begins with."""
        expression = _term(expression)
        dtype = dtype_of(expression)
        _check_folds(op, dtype, "scan")
        if not isinstance(over, ir.Axis):
            raise CheckError(
                f"a scan over {over!r:.40}",
                calling_line(__file__),
                "scan along one axis; a scan of a scan goes along another one",
            )
        self._check_own((over,))
        name, number = self.fresh(name), len(self._leaves) + len(self._stores)
        return self._leaf(Scanned(name, None, dtype, number, op, expression, over, exclusive))

    def store(self, access: ir.Access, value: Value) -> None:
        value = _term(value)
        if dtype_of(value) is not access.array.dtype:
            raise CheckError(
                f"'{access.array}' holds {access.array.dtype!r}, not {dtype_of(value)!r}",
                calling_line(__file__),
                "cast the value",
            )
        if not isinstance(value, Cell | Number | FromIndex):
            value = self._keep(self.fresh("value"), value, stored=True)
        name, number = self.fresh(f"store_{access.array}"), len(self._leaves) + len(self._stores)
        made = Stored(name, number, access, value)
        self._stores.append(made)
        self._note(made)

    def fresh(self, name: str) -> str:
        self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}_{self._counts[name]}"

    def axes_of(self, value: Value) -> list[ir.Axis]:
        """The axes along which a value varies, in order of declaration."""
        made = self.computation()
        return made.in_order(made.axes_of(value))

    def computation(self) -> Computation:
        """What was written so far."""
        return Computation(
            self.name,
            tuple(self._axes),
            tuple(self._arrays),
            tuple(self._parameters),
            tuple(self._leaves),
            tuple(self._stores),
        )

    def done(self) -> ir.Program:
        """The program, checked."""
        return program_of(self.computation(), lines=self._lines)

    # -- inside ------------------------------------------------------------------------------------

    def _keep(self, name: str, value: Value, stored: bool = False) -> Kept:
        number = len(self._leaves) + len(self._stores)
        return self._leaf(Kept(name, None, dtype_of(value), number, value, stored))

    def _leaf(self, made: LeafT) -> LeafT:
        self._leaves.append(made)
        self._note(made)
        return made

    def _note(self, made: object) -> None:
        where = calling_line(__file__)
        if where is not None:
            self._lines[made] = where

    def _check_own(self, axes: Iterable[ir.Axis]) -> None:
        for axis in axes:
            if axis not in self._axes:
                raise CheckError(f"'{axis}' is an axis of another nest", calling_line(__file__))

    def axes_named(self, expr: Expr) -> tuple[ir.Axis, ...]:
        """The axes that an expression over their names is of."""
        known = {axis.name: axis for axis in self._axes}
        strange = sorted(variables(expr) - known.keys())
        if strange:
            raise CheckError(f"there is no axis '{strange[0]}'", calling_line(__file__))
        return tuple(axis for name, axis in known.items() if name in variables(expr))

    def subscript(self, given: Subscript) -> ir.Subscript:
        match given:
            case ir.Crooked(_, axes):
                self._check_own(axes)
                return given
            case ir.Linear() | int():
                made = ir.affine(given)
                self._check_own(made.factors)
                return made
            case _ if isinstance(given, Expr):
                return ir.Crooked(given, self.axes_named(given))
        if isinstance(given, Arithmetic):
            return self._by_data(given)
        return ir.affine(given)  # which refuses it

    def _by_data(self, value: Value) -> ir.ByData:
        check_value(value)
        if dtype_of(value).is_real:
            raise CheckError(
                f"a subscript of {dtype_of(value)!r}",
                calling_line(__file__),
                "subscripts are integers: cast(value, i32)",
            )
        return ir.ByData(value, tuple(self.axes_of(value)))


def _check_folds(op: Fold, dtype: DType, what: str) -> None:
    check_computes(dtype, f"a {what} by '{op}'", calling_line(__file__))
    if op not in NEUTRAL or (dtype.is_float and op in ("&", "|", "^")):
        bits = ("&", "|", "^") if dtype.is_float else ()
        known = [each for each in NEUTRAL if each not in bits]
        raise CheckError(
            f"there is no {what} of {dtype!r} by {op!r}",
            calling_line(__file__),
            f"use {', '.join(known)}",
        )


def _row_major(sizes: tuple[int, ...]) -> list[int]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides[: len(sizes)]
