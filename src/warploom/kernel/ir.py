"""What a SIMT kernel is: parameters, a block and grid shape, and statements run by every thread.

Two kinds of arithmetic are kept apart. *Index expressions* (`warploom.index`) say where: they are
exact integers over threads, blocks, loop counters and integer parameters, and never read memory.
*Values* (here) say what: machine numbers computed from registers. Statements move values between
registers, shared and global memory. `evaluate.py` is the meaning, `build.py` the way to write one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias, assert_never, get_args

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, lift
from warploom.kernel.dtype import DType
from warploom.kernel.warpgroup import (
    GROUP,
    BulkStore,
    ClusterSum,
    Fill,
    Hopper,
    Interleave,
    LoadMatrix,
    MapParam,
    OrderedBarrier,
    PingPong,
    Ring,
    Roles,
    SharedSum,
    StoreMatrix,
    Tile,
    Unpack,
    WarpgroupProduct,
)
from warploom.machine.record import CUDA
from warploom.node import Interned, node

__all__ = [
    "BulkStore", "ClusterSum", "Fill", "Interleave", "LoadMatrix", "MapParam", "OrderedBarrier",
    "PingPong", "Ring", "Roles", "SharedSum", "StoreMatrix", "Tile", "Unpack", "WarpgroupProduct",
]  # fmt: skip

# Functions of one floating-point number.
Function: TypeAlias = Literal[
    "sqrt", "rsqrt", "exp", "exp2", "exp2_ftz", "log", "log2", "log2_ftz", "tanh", "erf", "sin",
    "cos", "tf32",
]  # fmt: skip
Operator: TypeAlias = (
    Literal["+", "-", "*", "/", "min", "max", "&", "|", "^", "<<", ">>", "fma", "neg", "~", "abs"]
    | Literal["bytes"]
    | Function
)
Comparison: TypeAlias = Literal["<", "<=", ">", ">=", "==", "!="]
ShuffleMode: TypeAlias = Literal["idx", "up", "down", "xor"]
Scope: TypeAlias = Literal["block", "warp", "group"]
Space: TypeAlias = Literal["global", "constant"]

ARITY: dict[Operator, int] = {
    "+": 2, "-": 2, "*": 2, "/": 2, "min": 2, "max": 2, "&": 2, "|": 2, "^": 2, "<<": 2, ">>": 2,
    "fma": 3, "neg": 1, "~": 1, "abs": 1, "bytes": 3, **dict.fromkeys(get_args(Function), 1),
}  # fmt: skip
INTEGER_ONLY = frozenset({"&", "|", "^", "<<", ">>", "~", "bytes"})
FLOAT_ONLY = frozenset(get_args(Function))

# Index variables every kernel has. `thread` counts x fastest; `lane` and `warp` come from it.
THREAD_NAMES = ("thread", "thread_x", "thread_y", "thread_z", "lane", "warp")
BLOCK_NAMES = ("block_x", "block_y", "block_z")
BUILT_IN = frozenset(THREAD_NAMES + BLOCK_NAMES)


# --- values ---------------------------------------------------------------------------------


def _infix(op: Operator) -> tuple[_Method, _Method]:
    def method(self: Value, other: Value | float) -> Operation:
        return Operation(op, (self, number_like(other, self)))

    def reflected(self: Value, other: Value | float) -> Operation:
        return Operation(op, (number_like(other, self), self))

    return method, reflected


def _comparison(op: Comparison) -> _Comparing:
    return lambda self, other: Compare(op, self, number_like(other, self))


def _no_truth() -> CheckError:
    return CheckError(
        "a kernel's values are known when it runs: Python cannot decide by one",
        advice="use choose(condition, then, otherwise)",
    )


class Arithmetic:
    """The operators every value has; a Python number takes the type of the other operand.

    Equal values are equal objects, so a comparison *of values* is a method, as in `index`.
    """

    __slots__ = ()

    __add__, __radd__ = _infix("+")
    __sub__, __rsub__ = _infix("-")
    __mul__, __rmul__ = _infix("*")
    __truediv__, __rtruediv__ = _infix("/")
    __and__, __rand__ = _infix("&")
    __or__, __ror__ = _infix("|")
    __xor__, __rxor__ = _infix("^")
    __lshift__, __rlshift__ = _infix("<<")
    __rshift__, __rrshift__ = _infix(">>")
    min = _infix("min")[0]
    max = _infix("max")[0]
    lt = _comparison("<")
    le = _comparison("<=")
    gt = _comparison(">")
    ge = _comparison(">=")
    eq = _comparison("==")
    ne = _comparison("!=")

    def __bool__(self) -> bool:
        raise _no_truth()

    def __neg__(self: Value) -> Operation:  # type: ignore[misc]
        return Operation("neg", (self,))

    def __invert__(self: Value) -> Operation:  # type: ignore[misc]
        return Operation("~", (self,))

    def __abs__(self: Value) -> Operation:  # type: ignore[misc]
        return Operation("abs", (self,))


@node
class Number(Arithmetic, metaclass=Interned):
    """A constant. Zeros of both signs are two."""

    value: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class Cell(Arithmetic):
    """A register, an element of a register array or constant array, or a scalar parameter."""

    name: str
    index: Expr | None
    dtype: DType


@dataclass(frozen=True, slots=True)
class FromIndex(Arithmetic):
    """An index expression as a machine number."""

    expr: Expr
    dtype: DType


@node
class Operation(Arithmetic, metaclass=Interned):
    """An operator on values of one type."""

    op: Operator
    operands: tuple[Value, ...]


@node
class Compare(metaclass=Interned):
    """A truth about two values of one type. Of a NaN only `!=` is true."""

    op: Comparison
    left: Value
    right: Value

    def __bool__(self) -> bool:
        raise _no_truth()


@node
class Choose(Arithmetic, metaclass=Interned):
    """`then` in threads where the condition holds, else `otherwise`; a select, not a branch.

    The condition guards: what is undefined on the side that is not chosen does no harm.
    """

    condition: Condition
    then: Value
    otherwise: Value


@node
class Cast(Arithmetic, metaclass=Interned):
    """The value converted: to an integer by truncation, to the nearest it has; NaN is 0."""

    dtype: DType
    value: Value


Value: TypeAlias = Number | Cell | FromIndex | Operation | Choose | Cast
Condition: TypeAlias = Expr | Compare
_Method: TypeAlias = "Callable[[Value, Value | float], Operation]"
_Comparing: TypeAlias = "Callable[[Value, Value | float], Compare]"


def dtype_of(value: Value) -> DType:
    while True:
        match value:
            case Number(_, dtype) | Cell(_, _, dtype) | FromIndex(_, dtype) | Cast(dtype, _):
                return dtype
            case Operation(_, operands):
                value = operands[0]
            case Choose(_, then, _):
                value = then
            case _:
                assert_never(value)


def added(left: Value, right: Value) -> Operation:
    """A sum. A product of floats that is added rounds once, together with it."""
    for product, other in ((left, right), (right, left)):
        match product:
            case Operation("*", factors) if dtype_of(product).is_float:
                return Operation("fma", (*factors, other))
    return Operation("+", (left, right))


def number_like(value: Value | float, other: Value) -> Value:
    """A Python number as a constant of the other value's type; a value as it is."""
    if isinstance(value, Arithmetic):
        return value
    if not isinstance(value, Real):
        raise CheckError(
            f"{value!r:.40} is no value of a kernel", advice="give a number, or what registers hold"
        )
    dtype = dtype_of(other)
    try:
        number = float(value) if dtype.is_float else int(value)
        exact = dtype.is_float or number == value
    except (OverflowError, ValueError):  # too large, infinite or NaN
        exact = False
    if not exact:
        raise CheckError(f"{value} is no {dtype!r}", advice="cast the other operand, or round it")
    return Number(number, dtype)


def operands(value: Value) -> tuple[Value, ...]:
    match value:
        case Number() | Cell() | FromIndex():
            return ()
        case Operation(_, parts):
            return parts
        case Choose(Compare(_, left, right), then, otherwise):
            return (left, right, then, otherwise)
        case Choose(_, then, otherwise):
            return (then, otherwise)
        case Cast(_, inner):
            return (inner,)
        case _:
            assert_never(value)


def walk_value(value: Value) -> Iterator[Value]:
    """The value and everything inside it, outermost first: what several parts share once, and a
    leaf as often as these use it."""
    stack, seen = [value], set[int]()
    while stack:
        part = stack.pop()
        inner = operands(part)
        if inner:
            if id(part) in seen:
                continue
            seen.add(id(part))
        yield part
        stack.extend(reversed(inner))


def repeated_parts(value: Value) -> frozenset[Value]:
    """What is computed, and used by more than one operator or more than once by one."""
    uses = Counter(inner for part in walk_value(value) for inner in operands(part))
    return frozenset(part for part, count in uses.items() if count > 1 and operands(part))


def innermost_first(value: Value) -> list[Value]:
    """Every part once, after those that it is of."""
    found: dict[Value, None] = {}
    pending = [(value, False)]
    while pending:
        part, opened = pending.pop()
        if opened:
            found[part] = None
        elif part not in found:
            pending.append((part, True))
            pending += [(each, False) for each in operands(part)]
    return list(found)


def tree_size(value: Value) -> int:
    """The parts of a value, those that are shared as often as they are used."""
    sizes: dict[Value, int] = {}
    for part in innermost_first(value):
        sizes[part] = 1 + sum(sizes[each] for each in operands(part))
    return sizes[value]


# --- statements -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    """Names an index expression."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Named:
    """Names a number that data decide, so that indices may use it: what an integer register holds
    where that is from 0 to before `size`, and -1 elsewhere."""

    name: str
    value: Cell
    size: int

    @property
    def bounds(self) -> tuple[int, int]:
        return -1, self.size - 1

    @property
    def chosen(self) -> Value:
        """The number as a value of 32 bits; what the type cannot hold is not asked."""
        value, outside = self.value, Number(-1, DType.I32)
        made: Value = Cast(DType.I32, value) if value.dtype is not DType.I32 else value
        if value.dtype.has(self.size):
            made = Choose(Compare("<", value, Number(self.size, value.dtype)), made, outside)
        if value.dtype.is_signed:
            made = Choose(Compare(">=", value, Number(0, value.dtype)), made, outside)
        return made


@dataclass(frozen=True, slots=True)
class Registers:
    """Declares a register (size None) or a register array, private to each thread."""

    name: str
    dtype: DType
    size: int | None = None
    initial: float | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """Declares an array shared by the block; contents undefined. Only at the top of a body.

    An `offset` (in bytes) places it in the block's shared memory; arrays that are never needed at
    the same time may lie in the same bytes (`allocate.py`). Without one it lies apart from others,
    at a multiple of `align` bytes.
    """

    name: str
    dtype: DType
    size: int
    offset: int | None = None
    align: int = CUDA.access_bytes

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Assign:
    target: Cell
    value: Value


@dataclass(frozen=True, slots=True)
class Load:
    """`target = array[index]`; where the predicate is false, `otherwise` (default zero).

    With `width` w > 1, w neighbouring elements go to w neighbouring registers in one access; the
    index must then be a multiple of w. `streaming` says that global memory is not used again soon.
    """

    target: Cell
    array: str
    index: Expr
    predicate: Expr | None = None
    otherwise: Value | None = None
    width: int = 1
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """`array[index] = value`, only where the predicate holds.

    With `width` w > 1 the value is an element of a register array, and w neighbours are stored. A
    store `ahead`, to shared memory, may take effect at any time until a barrier that waits for it;
    nobody reads the cells before that. What was just loaded for it alone is then an
    asynchronous copy where the machine can do so.
    """

    array: str
    index: Expr
    value: Value
    predicate: Expr | None = None
    width: int = 1
    streaming: bool = False
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """A loop from `start` to before `stop`, bounds on which all lanes of a warp agree.

    It stays a loop in the text; one with constant bounds is unrolled by pragma if asked.
    """

    var: str
    start: Expr
    stop: Expr
    body: tuple[Stmt, ...]
    step: int = 1
    unroll: bool = True

    @property
    def counts(self) -> range | None:
        """The values of the counter, where they are the same in every launch."""
        if isinstance(self.start, Const) and isinstance(self.stop, Const):
            return range(self.start.value, self.stop.value, self.step)
        return None


def loop(var: str, count: Expr | int, *body: Stmt) -> For:
    """The loop that counts from 0, unrolled if it is known how far."""
    stop = lift(count)
    return For(var, Const(0), stop, body, unroll=isinstance(stop, Const))


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of the block (or warp, or warp group) arrive before any goes on; memory is then
    agreed upon.

    One that `waits` closes a group, which are the stores ahead since the last such barrier, and has
    each thread wait until at most so many of its last groups have yet to take effect.
    """

    scope: Scope = "block"
    waits: int | None = None


@dataclass(frozen=True, slots=True)
class Shuffle:
    """`target` = the value that another lane of the warp offers.

    `idx` reads lane `lane mod W`; `up` and `down` read `lane` lanes below or above and `xor` the
    lane whose number differs in the bits of `lane`; beyond the warp a thread gets its own value.
    """

    target: Cell
    value: Value
    lane: Expr
    mode: ShuffleMode = "idx"


# What a tensor core takes factors for.
TensorKind: TypeAlias = Literal["tf32", "bf16", "f16", "e4m3", "e5m2", "i8", "u8"]


@dataclass(frozen=True, slots=True)
class TensorProduct:
    """`target` += a·b, matrices that the lanes of a warp hold together (`tensor.py`), as its tensor
    core does it: 16 × k by k × 8, where k is 8 (tf32), 16 (numbers of sixteen bits) or 32 (of
    eight). Factors are of the kind, or of single precision: then only their leading bits count
    (tf32), or they are rounded first (bf16). Sums are `f32`, of integers `i32`. Each cell is the
    first of neighbouring registers: 4 of the target, k / 2 of a, k / 4 of b."""

    target: Cell
    a: Cell
    b: Cell
    kind: TensorKind = "tf32"


@dataclass(frozen=True, slots=True)
class Comment:
    text: str


Stmt: TypeAlias = (
    Let | Named | Registers | Shared | Assign | Load | Store | For | If | Barrier | Shuffle
    | TensorProduct | Comment | Hopper
)  # fmt: skip


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists inside a statement."""
    match stmt:
        case For(body=body) | Ring(body=body) | PingPong(body=body):
            return (body,)
        case If(_, then, otherwise):
            return (then, otherwise)
        case _:
            return ()


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, in program order, each before what is inside it."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from walk(inner)


# --- kernels --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayParam:
    """An array argument. `size` is over the integer scalar parameters; `const` means never stored.

    An array that is written shares its memory with another argument only if both are declared
    without `restrict` and are the same array. A `constant` array has a constant size and is passed
    by value: it sits in the constant bank.
    """

    name: str
    dtype: DType
    size: Expr
    const: bool = False
    restrict: bool = True
    space: Space = "global"


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A number argument; an `i32` one may be used as an index variable of the same name."""

    name: str
    dtype: DType = DType.I32


Param: TypeAlias = ArrayParam | ScalarParam


@dataclass(frozen=True, slots=True)
class Kernel:
    """`requires` are conditions on the scalar parameters, checked before every launch. Index
    expressions are computed in `index`, i32 or i64; scalars of that type may stand in them.
    `shared_most` are the bytes of shared memory that a block may take; a launch asks for those that
    no kernel may declare. `maps` are made of arrays by a launch; so many neighbours along the first
    axis of the grid are a `cluster`; with `roles`, threads beside the block's fill rings."""

    name: str
    params: tuple[Param, ...]
    block: tuple[int, int, int]
    grid: tuple[Expr, Expr, Expr]
    body: tuple[Stmt, ...]
    doc: str = ""
    requires: tuple[Expr, ...] = ()
    min_blocks: int = 0
    warp_size: int = CUDA.lanes
    index: DType = DType.I32
    shared_most: int = CUDA.shared_bytes
    maps: tuple[MapParam, ...] = ()
    cluster: int = 1
    roles: Roles | None = None

    @property
    def threads(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def launched(self) -> tuple[int, int, int]:
        """The block that a launch asks for: a warp group more where one fills rings."""
        x, y, z = self.block
        return (x if self.roles is None else x + GROUP, y, z)

    @property
    def arrays(self) -> tuple[ArrayParam, ...]:
        return tuple(param for param in self.params if isinstance(param, ArrayParam))

    @property
    def scalars(self) -> tuple[ScalarParam, ...]:
        return tuple(param for param in self.params if isinstance(param, ScalarParam))
