"""A light way to write kernels in Python: calls and subscripts append statements.

>>> from warploom.kernel.dtype import f32
>>> k = Builder("twice", block=128, doc="y[i] = 2 x[i]")
>>> n = k.scalar("n")
>>> x, y = k.array("x", f32, n, const=True), k.array("y", f32, n)
>>> k.grid(ceil_div(n, 128))
>>> i = k.let("i", k.block_x * 128 + k.thread)
>>> v = k.register("v", f32)
>>> k.set(v, x.at(i, when=i.lt(n)))
>>> y.put(i, v * 2, when=i.lt(n))
>>> k.done().name
'twice'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, get_args

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.extent import check_extent
from warploom.kernel.function import begins, ends
from warploom.kernel.given import (
    index_of,
    initial_of,
    name_of,
    register_of,
    sides_of,
    type_of,
    whole,
)
from warploom.kernel.guard import predicate_accesses
from warploom.kernel.laws import distribute
from warploom.kernel.names import settled
from warploom.machine.record import CUDA

Index: TypeAlias = Expr | int


@dataclass(frozen=True, slots=True)
class Pending:
    """A load or shuffle whose target is not known yet: assign it to a register."""

    stmt: ir.Load | ir.Shuffle


@dataclass(frozen=True, slots=True)
class Array:
    """A global or shared array, as the builder hands it out."""

    builder: Builder
    name: str
    dtype: DType

    def __getitem__(self, index: Index) -> Pending:
        return self.at(index)

    def __setitem__(self, index: Index, value: ir.Value | float) -> None:
        self.put(index, value)

    def at(
        self,
        index: Index,
        *,
        when: Expr | None = None,
        otherwise: ir.Value | float | None = None,
        width: int = 1,
        streaming: bool = False,
    ) -> Pending:
        """Reads; where `when` is false the result is `otherwise`, by default zero."""
        target = ir.Cell("", None, self.dtype)
        other = None if otherwise is None else ir.number_like(otherwise, target)
        asked = None if when is None else _of_indices(when)
        return Pending(ir.Load(target, self.name, index_of(index), asked, other, width, streaming))

    def put(
        self,
        index: Index,
        value: ir.Value | float,
        *,
        when: Expr | None = None,
        width: int = 1,
        streaming: bool = False,
    ) -> None:
        stored = ir.number_like(value, ir.Cell("", None, self.dtype))
        asked = None if when is None else _of_indices(when)
        self.builder.add(ir.Store(self.name, index_of(index), stored, asked, width, streaming))


@dataclass(frozen=True, slots=True)
class RegisterArray:
    """A register array (or constant array) whose elements are read and written by subscript."""

    builder: Builder
    name: str
    dtype: DType
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Index) -> ir.Cell:
        return ir.Cell(self.name, index_of(index), self.dtype)

    def __setitem__(self, index: Index, value: ir.Value | Pending | float) -> None:
        self.builder.set(self[index], value)


class Builder:
    """Collects parameters and statements; `done` gives the checked kernel."""

    def __init__(
        self,
        name: str,
        *,
        block: int | tuple[int, ...],
        doc: str = "",
        warp_size: int = CUDA.lanes,
        min_blocks: int = 0,
    ) -> None:
        sides, once = sides_of(block), (Const(1), Const(1), Const(1))
        self._head = ir.Kernel(name_of(name), (), sides, once, (), doc, (), min_blocks, warp_size)
        self._params: list[ir.Param] = []
        self._requires: list[Expr] = []
        self._open: list[list[ir.Stmt]] = [[]]

    @property
    def name(self) -> str:
        return self._head.name

    def __getattr__(self, name: str) -> Var:
        """The built-in index variables: `k.thread`, `k.lane`, `k.block_x` …"""
        if name in ir.BUILT_IN:
            return Var(name)
        raise AttributeError(f"a kernel builder has no {name!r}")

    # -- parameters

    def scalar(self, name: str) -> Var:
        """An integer parameter, usable in index expressions."""
        self._params.append(ir.ScalarParam(name_of(name)))
        return Var(name)

    def number(self, name: str, dtype: DType) -> ir.Cell:
        """A scalar parameter that is a value."""
        self._params.append(ir.ScalarParam(name_of(name), type_of(dtype)))
        return ir.Cell(name, None, dtype)

    def array(
        self, name: str, dtype: DType, size: Index, *, const: bool = False, restrict: bool = True
    ) -> Array:
        self._params.append(
            ir.ArrayParam(name_of(name), type_of(dtype), index_of(size), const, restrict)
        )
        return Array(self, name, dtype)

    def constant(self, name: str, dtype: DType, size: int) -> RegisterArray:
        """A small array passed by value, which threads read through the constant bank."""
        space: ir.Space = "constant"
        self._params.append(
            ir.ArrayParam(name_of(name), type_of(dtype), index_of(size), True, True, space)
        )
        return RegisterArray(self, name, dtype, size)

    def grid(self, x: Index, y: Index = 1, z: Index = 1) -> None:
        self._head = replace(self._head, grid=(index_of(x), index_of(y), index_of(z)))

    def require(self, condition: Expr) -> None:
        """A condition on scalar parameters that every launch must meet."""
        self._requires.append(_of_indices(condition))

    # -- what Hopper has

    def tensor_map(
        self, name: str, array: Array, sizes: Sequence[Index], box: Sequence[int],
        swizzle: int = 0, strides: Sequence[Index] | None = None,
    ) -> str:  # fmt: skip
        """A map of a dense array of these sizes, or of one whose axes but the last have strides."""
        sides = tuple(map(index_of, sizes))
        steps = _dense(sides) if strides is None else tuple(map(index_of, strides))
        made = ir.MapParam(name_of(name), array.name, sides, steps, tuple(box), swizzle)
        self._head = replace(self._head, maps=(*self._head.maps, made))
        return name

    def roles(self, producer_registers: int = 40, consumer_registers: int = 232) -> None:
        """A warp group beside the block's threads fills its rings."""
        self._head = replace(self._head, roles=ir.Roles(producer_registers, consumer_registers))

    def cluster(self, blocks: int) -> None:
        self._head = replace(self._head, cluster=whole(blocks, "the blocks of a cluster"))

    def most_shared(self, count: int) -> None:
        """The bytes of shared memory that a block may take."""
        self._head = replace(self._head, shared_most=whole(count, "the bytes of shared memory"))

    @contextmanager
    def ring(
        self, var: str, count: Index, stages: int, *, stage: str = "", sums: Sequence[str] = ()
    ) -> Iterator[tuple[Var, Var]]:
        """`with k.ring("t", count, 4) as (t, stage):`, whose body begins with its fills."""
        name = stage or f"{var}_stage"
        with self._body() as body:
            yield Var(var), Var(name)
        self.add(
            ir.Ring(name_of(var), index_of(count), name_of(name), stages, tuple(body), tuple(sums))
        )

    @contextmanager
    def ping_pong(self) -> Iterator[None]:
        """What is added inside is for one warp group, each time for the next."""
        with self._body() as body:
            yield
        self.add(ir.PingPong(tuple(body)))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """What is added inside is begun by one warp group after another."""
        self.add(ir.OrderedBarrier())
        yield
        self.add(ir.OrderedBarrier(ends=True))

    # -- statements

    def add(self, stmt: ir.Stmt) -> None:
        self._open[-1].append(stmt)

    def extend(self, stmts: tuple[ir.Stmt, ...]) -> None:
        self._open[-1].extend(stmts)

    def let(self, name: str, expr: Index) -> Var:
        self.add(ir.Let(name_of(name), index_of(expr)))
        return Var(name)

    def named(self, name: str, value: ir.Cell, size: int) -> Var:
        """What a register holds as an index: -1 where that is not from 0 to before the size."""
        count = whole(size, f"what '{name}' is below")
        self.add(ir.Named(name_of(name), value, count))
        return Var(name)

    def register(self, name: str, dtype: DType, initial: float | None = None) -> ir.Cell:
        self.add(ir.Registers(name_of(name), type_of(dtype), None, initial_of(initial)))
        return ir.Cell(name, None, dtype)

    def registers(
        self, name: str, dtype: DType, size: int, initial: float | None = None
    ) -> RegisterArray:
        count = whole(size, f"the number of registers in '{name}'")
        self.add(ir.Registers(name_of(name), type_of(dtype), count, initial_of(initial)))
        return RegisterArray(self, name, dtype, count)

    def shared(self, name: str, dtype: DType, size: int, *, align: int | None = None) -> Array:
        count = whole(size, f"the size of the shared array '{name}'")
        made = ir.Shared(name_of(name), type_of(dtype), count)
        self.add(made if align is None else replace(made, align=align))
        return Array(self, name, dtype)

    def set(self, target: ir.Cell, value: ir.Value | Pending | float) -> None:
        """Assigns a value, a number, or the result of a load or shuffle."""
        if isinstance(value, Pending):
            self.add(replace(value.stmt, target=register_of(target)))
        else:
            self.add(ir.Assign(register_of(target), ir.number_like(value, target)))

    def shuffle(self, value: ir.Value, lane: Index, mode: ir.ShuffleMode = "idx") -> Pending:
        if not isinstance(value, ir.Arithmetic):
            raise CheckError("a shuffle offers a register's value", advice="load it first")
        return Pending(ir.Shuffle(ir.Cell("", None, DType.F32), value, index_of(lane), mode))

    def barrier(self, scope: ir.Scope = "block") -> None:
        if scope not in get_args(ir.Scope):
            raise CheckError(
                f"no barrier has the scope {scope!r:.40}", advice='use "block", "warp" or "group"'
            )
        self.add(ir.Barrier(scope))

    def comment(self, text: str) -> None:
        self.add(ir.Comment(str(text)))

    @contextmanager
    def loop(
        self,
        var: str,
        start: Index,
        stop: Index | None = None,
        step: int = 1,
        *,
        unroll: bool | None = None,
    ) -> Iterator[Var]:
        """`with k.loop("i", 3) as i:`; bounds as in `range`, unrolled if they are constants.

        Bounds may be expressions on which all lanes of a warp agree, and all threads of a block if
        there is a block barrier inside.
        """
        bounds = (0, start) if stop is None else (start, stop)
        first, last = map(index_of, bounds)
        by = whole(step, "the step of a loop")
        if unroll is None:
            unroll = isinstance(first, Const) and isinstance(last, Const)
        with self._body() as body:
            yield Var(var)
        self.add(ir.For(name_of(var), first, last, tuple(body), by, unroll))

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        asked = _of_indices(condition)
        with self._body() as body:
            yield
        self.add(ir.If(asked, tuple(body)))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The other branch of the `when` just closed."""
        if not self._open[-1] or not isinstance(self._open[-1][-1], ir.If):
            raise CheckError("`otherwise` must follow a `when`")
        branch = self._open[-1].pop()
        with self._body() as body:
            yield
        assert isinstance(branch, ir.If)
        self.add(replace(branch, otherwise=tuple(body)))

    @contextmanager
    def collected(self) -> Iterator[list[ir.Stmt]]:
        """What is added inside goes to a list, for the caller to add where it belongs."""
        with self._body() as body:
            yield body

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """What is added inside can be taken out of the kernel, as a function (`function.py`)."""
        self.add(begins(name))
        yield
        self.add(ends(name))

    @contextmanager
    def _body(self) -> Iterator[list[ir.Stmt]]:
        self._open.append([])
        yield self._open[-1]
        self._open.pop()

    def raw(self) -> ir.Kernel:
        """The kernel as it was written, not checked but for its extent; invented names are made
        different."""
        if len(self._open) != 1:
            raise CheckError("a loop or condition is still open")
        kernel = replace(
            self._head,
            params=tuple(self._params),
            requires=tuple(self._requires),
            body=tuple(self._open[0]),
        )
        check_extent(kernel)  # what follows walks and recurses
        return settled(kernel)

    def done(self, *, predicate: bool = False) -> ir.Kernel:
        """The kernel with register arrays indexed by constants only, checked.

        With `predicate`, accesses that are not shown to stay in their array get a condition: where
        it is false, loads give zero (or their `otherwise`) and stores do nothing.
        """
        kernel = distribute(self.raw())
        if predicate:
            kernel = predicate_accesses(kernel)
        check(kernel)
        return kernel


def _of_indices(condition: Expr) -> Expr:
    if not isinstance(condition, Expr):
        raise CheckError(
            f"{condition!r:.40} is no condition on threads, iterations and parameters",
            advice="values decide by choose(a.lt(b), then, otherwise) alone",
        )
    return condition


def _dense(sizes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The strides of all axes but the last."""
    strides: list[Expr] = []
    for size in reversed(sizes[1:]):
        strides.append(size if not strides else strides[-1] * size)
    return tuple(reversed(strides))


def ceil_div(value: Index, by: int) -> Expr:
    return (index_of(value) + (by - 1)) // by


def fma(a: ir.Value, b: ir.Value | float, c: ir.Value | float) -> ir.Operation:
    """`a·b + c`, rounded once."""
    return ir.Operation("fma", (_value(a), ir.number_like(b, a), ir.number_like(c, a)))


def pick_bytes(low: ir.Value, high: ir.Value, chosen: ir.Value | int) -> ir.Operation:
    """Byte i of the result is byte (chosen >> 4i) & 7 of the eight of low and high, low first."""
    return ir.Operation("bytes", (_value(low), _value(high), ir.number_like(chosen, low)))


def choose(condition: ir.Condition, then: ir.Value, otherwise: ir.Value | float) -> ir.Choose:
    """A select by an index expression, or by a comparison of values: `choose(a.lt(b), a, b)`."""
    if not isinstance(condition, Expr | ir.Compare):
        raise CheckError(
            f"{condition!r:.40} is no condition", advice="compare: a.lt(b), thread.eq(0), …"
        )
    return ir.Choose(condition, _value(then), ir.number_like(otherwise, then))


def _function(op: ir.Operator) -> Callable[[ir.Value], ir.Operation]:
    return lambda value: ir.Operation(op, (_value(value),))


sqrt, rsqrt, tanh = _function("sqrt"), _function("rsqrt"), _function("tanh")
erf, sin, cos = _function("erf"), _function("sin"), _function("cos")
exp, exp2, log, log2 = (_function("exp"), _function("exp2"), _function("log"), _function("log2"))
# One instruction each, without branches; below all normal numbers is 0.
exp2_ftz, log2_ftz = _function("exp2_ftz"), _function("log2_ftz")
tf32 = _function("tf32")  # what tensor cores see of single precision


def cast(dtype: DType, value: ir.Value) -> ir.Cast:
    if not isinstance(dtype, DType):
        raise CheckError(f"cast takes a type and a value, not {dtype!r:.40}")
    return ir.Cast(dtype, _value(value))


def _value(given: ir.Value) -> ir.Value:
    if not isinstance(given, ir.Arithmetic):
        raise CheckError(
            f"{given!r:.40} is no value of a kernel",
            advice="it is computed from registers; a number takes the type of one beside it",
        )
    return given


def from_index(expr: Index, dtype: DType = DType.I32) -> ir.FromIndex:
    return ir.FromIndex(index_of(expr), dtype)
