"""Random kernels of everything the language has, inputs for them, and many packed into one.

Every access is in bounds, every value defined, every cell written by one thread. `exp` and its like
go straight to an output of their own (named `approximate…`), since targets may differ there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.index.ir import Binary, Const, Expr, Unary, Var, select, substitute
from warploom.kernel.build import Array, Builder, RegisterArray, cast, choose, fma, from_index
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    ArrayParam,
    Cell,
    If,
    Kernel,
    Number,
    Operation,
    Operator,
    ScalarParam,
    Shared,
    Stmt,
    Value,
)
from warploom.kernel.names import Fresh, renamed
from warploom.kernel.traverse import map_body

THREADS, WARP, BLOCKS = 32, 16, 2
SIZE = 64  # elements of the inputs
EVERYONE = THREADS * BLOCKS
COMPUTED = [each for each in DType if not each.is_code]  # codes: test_stored.py
INTEGERS = [each for each in COMPUTED if not each.is_float]
APPROXIMATE: tuple[Operator, ...] = (
    "exp", "exp2", "log", "log2", "rsqrt", "tanh", "erf", "sin", "cos",
)  # fmt: skip

HOSTILE = re.findall(
    r"\w+",
    """
    asm not INFINITY NAN float int double register kernel global local exchange_f32 kept kept_1
    part other inside fault pool r v x i j thread_local class template union auto min max fma
    fmaf exp log sqrt signbit half uint long char2 float4 make_float4 typeof restrict inline
    unix linux threadIdx blockIdx warpSize get_local_id barrier main printf floor_div floor_mod
    shift_left min_f32 divide_i32 i32_from_f32 true false NULL _hidden a__b M_PI CL_FLT_MAX
    INT_MAX as_float convert_int constant this new delete operator and or xor bitand while
""",
)
COMMENTS = (
    "plain", "ends in a backslash \\", "trigraph ??/", "*/ closes /* opens", "// again",
    "two\nlines \\\nof it", "tab\tand\x00null", "line\u2028separator\u0085next", "#define if while",
    'quote " and \'', "??/\\ ??/", "}", "%s {}", "\r carriage",
)  # fmt: skip


@dataclass(slots=True)
class Writer:
    """Writes one kernel; `scope` are the names in sight, `cells` registers that hold something."""

    random: Random
    k: Builder
    inputs: list[Array]
    weights: list[RegisterArray]
    scalars: list[Value]
    indices: list[Expr]
    tile: Array | None
    scope: list[str] = field(default_factory=list)
    cells: list[Value] = field(default_factory=list)
    outputs: dict[tuple[DType, bool], int] = field(default_factory=dict)
    stores: dict[tuple[DType, bool], Array] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    fresh: int = 0
    room: int = 12

    # -- names and scopes

    def name(self) -> str:
        """A name that is not in sight: one that a closed scope had, a hostile one, or a new one."""
        again = sorted(self.used - set(self.scope))
        kind = self.random.random()
        if again and kind < 0.4:
            made = self.random.choice(again)
        elif kind < 0.85:
            made = self.random.choice([each for each in HOSTILE if each not in self.scope])
        else:
            self.fresh += 1
            made = f"name{self.fresh}"
        self.scope.append(made)
        self.used.add(made)
        return made

    @contextmanager
    def inside(self) -> Iterator[None]:
        scope, cells, indices = len(self.scope), len(self.cells), len(self.indices)
        yield
        del self.scope[scope:], self.cells[cells:], self.indices[indices:]

    # -- expressions

    def index(self, depth: int) -> Expr:
        """Divisors are not zero and shifts small, so that every value is defined."""
        random = self.random
        if depth == 0 or random.random() < 0.15:
            return random.choice([*self.indices, Const(random.randint(-9, 9))])
        left = self.index(depth - 1) % 1000
        match random.randrange(7):
            case 0:
                return Unary(random.choice(["-", "not"]), left)
            case 1:
                return select(left, self.index(depth - 1), self.index(depth - 1))
            case 2:
                by = random.choice([Const(random.randint(0, 3)), self.index(depth - 1) % 4])
                return Binary(random.choice(["<<", ">>"]), left, by)  # type: ignore[arg-type]
            case 3:
                by = Const(random.choice([-7, -4, -1, 1, 2, 3, 8, 32]))
                positive = self.index(depth - 1) % 5 + 1
                return Binary(random.choice(["//", "%"]), left, random.choice([by, positive]))  # type: ignore[arg-type]
        op = random.choice(
            ["+", "-", "*", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "and", "or"]
        )
        return Binary(op, left, self.index(depth - 1) % 1000)  # type: ignore[arg-type]

    def number(self, dtype: DType) -> Number:
        random = self.random
        if dtype.is_float:
            special = (0.0, -0.0, 1.0, -2.5, 1e30, 1e-40, float("inf"), float("nan"), 0.1)
            return Number(random.choice(special), dtype)
        limits = np.iinfo(dtype.numpy)
        numbers = (0, 1, 2, 7, int(limits.min), int(limits.max), random.randint(0, 100))
        return Number(random.choice(numbers), dtype)

    def leaf(self, dtype: DType) -> Value:
        known = [each for each in (*self.cells, *self.scalars) if each.dtype is dtype]  # type: ignore[union-attr]
        if known and self.random.random() < 0.75:
            return self.random.choice(known)
        if self.cells and self.random.random() < 0.6:
            return cast(dtype, self.random.choice(self.cells))
        if self.random.random() < 0.4:
            return from_index(self.index(2), dtype)
        return self.number(dtype)

    def value(self, dtype: DType, depth: int) -> Value:
        random = self.random
        if depth == 0:
            return self.leaf(dtype)
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        match random.randrange(10):
            case 0:
                return choose(self.index(2), a, b)
            case 1:
                other = random.choice(COMPUTED)
                left, right = self.value(other, depth - 1), self.leaf(other)
                op = random.choice(["lt", "le", "gt", "ge", "eq", "ne"])
                return choose(getattr(left, op)(right), a, b)
            case 2:
                return fma(a, b, self.leaf(dtype))
            case 3:
                return random.choice([-a, abs(a)])
            case 4:
                return cast(dtype, self.value(random.choice(COMPUTED), depth - 1))
            case 5:
                if dtype.is_float:
                    return random.choice([a / b, Operation("sqrt", (abs(a),))])
                quotients: list[Value] = [a / ((b & 15) + 1), choose(b.ne(0), a / b, a), a / 3]
                return random.choice(quotients)
            case 6 if not dtype.is_float:
                return random.choice([a << (b & 7), a >> (b & 7), ~a])
        ops = ["+", "-", "*", "min", "max"] + ([] if dtype.is_float else ["&", "|", "^"])
        return Operation(random.choice(ops), (a, b))  # type: ignore[arg-type]

    # -- statements

    def statements(self, depth: int, level: int) -> None:
        """`level`: 0 if the whole block is here, 1 if whole warps are, 2 if some lanes may be."""
        for _ in range(self.random.randint(2, 4)):
            if self.room <= 0:
                return
            self.room -= 1
            self.statement(depth, level)

    def statement(self, depth: int, level: int) -> None:
        kinds: list[Any] = [self.declare, self.declare, self.assign, self.load, self.wide_load,
                            self.store, self.store, self.comment, self.let]  # fmt: skip
        if level < 2 and self.cells:
            kinds += [self.shuffle, self.shuffle]
        if level == 0 and self.tile is not None:
            kinds += [self.exchange]
        if depth:
            kinds += [lambda: self.branch(depth - 1, level), lambda: self.loop(depth - 1, level),
                      lambda: self.rows(level)]  # fmt: skip
        self.random.choice(kinds)()

    def declare(self) -> None:
        dtype = self.random.choice(COMPUTED)
        value = self.value(dtype, 2)
        cell = self.k.register(self.name(), dtype)
        self.k.set(cell, value)
        self.cells.append(cell)

    def assign(self) -> None:
        mine = [each for each in self.cells if isinstance(each, Cell) and each.index is None]
        if not mine:
            return self.declare()
        cell = self.random.choice(mine)
        return self.k.set(cell, self.value(cell.dtype, 3))

    def let(self) -> None:
        expr = self.index(3)
        self.indices.append(self.k.let(self.name(), expr))

    def comment(self) -> None:
        self.k.comment(self.random.choice(COMMENTS))

    def load(self) -> None:
        array = self.random.choice(self.inputs)
        at = self.index(2)
        cell = self.k.register(self.name(), array.dtype)
        if self.random.random() < 0.5:
            self.k.set(cell, array[at % SIZE])
        else:
            inside = at.ge(0).and_(at.lt(SIZE))
            other = self.value(array.dtype, 1) if self.random.random() < 0.5 else None
            self.k.set(cell, array.at(at, when=inside, otherwise=other))
        self.cells.append(cell)
        if self.weights and self.random.random() < 0.5:
            weight = self.random.choice(self.weights)
            cell = self.k.register(self.name(), weight.dtype)
            self.k.set(cell, weight[self.index(2) % len(weight)])
            self.cells.append(cell)

    def wide_load(self) -> None:
        """A load of several elements; what it gives otherwise may read what it sets."""
        array = self.random.choice(self.inputs)
        width = self.random.choice([w for w in (2, 4) if w * array.dtype.bytes <= 16])
        row = self.k.registers(self.name(), array.dtype, width, 1)
        at = self.index(2) % (SIZE // width) * width
        when = self.index(2).ne(0) if self.random.random() < 0.5 else None
        other = row[0] + self.value(array.dtype, 1) if when is not None else None
        row[0] = array.at(at, when=when, otherwise=other, width=width,
                          streaming=self.random.random() < 0.3)  # fmt: skip
        self.cells += [row[i] for i in range(width)]

    def rows(self, level: int) -> None:
        """A register array, in an unrolled loop."""
        dtype, size = self.random.choice(COMPUTED), self.random.randint(2, 4)
        row = self.k.registers(self.name(), dtype, size)
        with self.inside(), self.k.loop(self.name(), size) as i:
            self.indices.append(i)
            row[i] = self.value(dtype, 2)
            if level < 2 and self.random.random() < 0.3:
                row[i] = self.k.shuffle(row[i], self.index(2))
        self.cells += [row[i] for i in range(size)]

    def shuffle(self) -> None:
        offered = self.random.choice(self.cells)
        dtype = offered.dtype  # type: ignore[union-attr]
        mode = self.random.choice(["idx", "idx", "up", "down", "xor"])
        by = self.index(2) if mode == "idx" else self.index(1) % WARP
        cell = self.k.register(self.name(), dtype)
        self.k.set(cell, self.k.shuffle(self.value(dtype, 1), by, mode))  # type: ignore[arg-type]
        self.cells.append(cell)

    def exchange(self) -> None:
        """Through shared memory; all threads of the block are here."""
        assert self.tile is not None
        dtype = self.tile.dtype
        self.k.barrier()
        self.tile[self.k.thread ^ self.random.randrange(THREADS)] = self.value(dtype, 1)
        self.k.barrier()
        cell = self.k.register(self.name(), dtype)
        self.k.set(cell, self.tile[(self.index(1) + self.k.thread) % THREADS])
        self.cells.append(cell)

    def branch(self, depth: int, level: int) -> None:
        kind = self.random.randrange(3)
        if kind == 0 or level == 2:
            condition, inner = self.index(2), 2
        elif kind == 1:
            condition, inner = (self.k.warp + Var("n")).lt(self.random.randint(1, 6)), max(level, 1)
        else:
            condition, inner = (self.k.block_x + Var("n")).gt(self.random.randint(1, 4)), level
        with self.inside(), self.k.when(condition):
            self.statements(depth, inner)
        if self.random.random() < 0.6:
            with self.inside(), self.k.otherwise():
                self.statements(depth, inner)

    def loop(self, depth: int, level: int) -> None:
        """Constant, or as far as scalars, blocks or warps say."""
        random, k = self.random, self.k
        kind = random.randrange(4)
        step = random.choice((1, 1, 2, 3))
        if kind == 0:
            bounds: tuple[Any, Any] = (random.randint(-2, 1), random.randint(1, 4))
        elif kind == 1:
            bounds = (0, Var("n"))
        elif kind == 2:
            bounds = (k.block_x, Var("n") + random.randint(0, 2))
        else:
            bounds, level = (k.warp, Var("n") + k.warp), max(level, 1)
        with self.inside(), k.loop(self.name(), *bounds, step, unroll=False) as i:
            self.indices.append(i)
            self.statements(depth, level)

    def store(self) -> None:
        """To a cell of the thread's own, on a condition or not; `exp` and its like apart."""
        random, k = self.random, self.k
        if random.random() < 0.25:
            dtype = random.choice([DType.F32, DType.F64])
            value: Value = Operation(random.choice(APPROXIMATE), (self.value(dtype, 1),))
            self._put(dtype, True, value)
            return
        dtype = random.choice(self.inputs).dtype if random.random() < 0.5 else (
            random.choice(COMPUTED))  # fmt: skip
        if random.random() < 0.2:
            width = random.choice([w for w in (2, 4) if w * dtype.bytes <= 16])
            row = k.registers(self.name(), dtype, width)
            for i in range(width):
                row[i] = self.value(dtype, 1)
            self._put(dtype, False, row[0], width)
        else:
            self._put(dtype, False, self.value(dtype, 3))

    def _put(self, dtype: DType, approximate: bool, value: Value, width: int = 1) -> None:
        first = self.outputs.get((dtype, approximate), 0)
        self.outputs[dtype, approximate] = first + width
        me = self.k.block_x * THREADS + self.k.thread
        when = self.index(2).ne(0) if self.random.random() < 0.3 else None
        place = first * EVERYONE + me * width
        # How large the outputs are is only known at the end, so they are made then.
        name = f"{'approximate' if approximate else 'y'}_{dtype!r}"
        array = self.stores.setdefault((dtype, approximate), Array(self.k, name, dtype))
        if width > 1 and first * EVERYONE % width:
            raise AssertionError("rows of outputs are aligned")
        array.put(place, value, when=when, width=width,
                  streaming=self.random.random() < 0.2)  # fmt: skip


def random_kernel(seed: int) -> Kernel:
    """A kernel of its own for every seed; not checked."""
    random = Random(seed)
    name = random.choice(HOSTILE) if random.random() < 0.3 else f"random_{seed}"
    k = Builder(name, block=THREADS, warp_size=WARP, doc=random.choice(COMMENTS))
    k.grid(BLOCKS)
    types = random.sample(COMPUTED, 2)
    scope = ["x0", "x1", "n", "m", "w", "tile", "number", name]
    n, m = k.scalar("n"), k.scalar("m")
    k.require(n.ge(1).and_(n.le(5)))
    k.require(m.ge(-100).and_(m.le(100)))
    inputs = [k.array(f"x{i}", dtype, SIZE, const=True) for i, dtype in enumerate(types)]
    kind = random.choice(COMPUTED)
    scalars: list[Value] = [k.number("number", kind)]
    weights = [k.constant("w", random.choice(COMPUTED), 5)] if random.random() < 0.5 else []
    tile = k.shared("tile", random.choice(COMPUTED), THREADS) if random.random() < 0.5 else None
    indices: list[Expr] = [k.thread, k.lane, k.warp, k.block_x, n, m]
    writer = Writer(random, k, inputs, weights, scalars, indices, tile, scope)
    writer.scope += [f"y_{dtype!r}" for dtype in COMPUTED]
    writer.scope += [f"approximate_{dtype!r}" for dtype in COMPUTED]
    writer.load()
    writer.statements(2, 0)
    while writer.room > 4:
        writer.statements(2, 0)
    writer.store()
    for (dtype, approximate), count in writer.outputs.items():
        k.array(writer.stores[dtype, approximate].name, dtype, count * EVERYONE)
    return k.raw()


def arguments(kernel: Kernel, seed: int) -> list[Any]:
    """Inputs with all the numbers that are easily forgotten; outputs poisoned."""
    random = np.random.default_rng(seed)
    given: list[Any] = []
    for param in kernel.params:
        if isinstance(param, ArrayParam):
            assert isinstance(param.size, Const)
            values = numbers(param.dtype, param.size.value, random)
            given.append(values if param.const else np.full_like(values, 77))
        elif param.name.partition("__")[0] == "n":
            given.append(int(random.integers(1, 6)))
        elif param.name.partition("__")[0] == "m":
            given.append(int(random.integers(-100, 101)))
        else:
            given.append(numbers(param.dtype, 1, random)[0].item())
    return given


def numbers(dtype: DType, size: int, random: np.random.Generator) -> npt.NDArray[Any]:
    if not dtype.is_float:
        limits = np.iinfo(dtype.numpy)
        drawn = random.integers(limits.min, limits.max, size, dtype.numpy, endpoint=True)
        special = np.array([0, 1, limits.min, limits.max, 2, 100], dtype.numpy)
    else:
        small = np.finfo(dtype.numpy).smallest_subnormal
        drawn = (random.standard_normal(size) * 10.0 ** random.integers(-6, 12, size)).astype(
            dtype.numpy
        )
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, small, 1.0, -3.5, 2.0**31, 300.0,
                            -129.0, 1e20, 0.99999994], dtype.numpy)  # fmt: skip
    where = random.random(size) < 0.4
    return np.where(where, random.choice(special, size), drawn).astype(dtype.numpy)


# -- many kernels as one --------------------------------------------------------------------------


def packed(kernels: list[Kernel], name: str = "packed") -> Kernel:
    """One kernel that does the work of many: each has its own blocks, parameters and arrays."""
    fresh = Fresh([name])
    params, requires, shared = list[ArrayParam | ScalarParam](), list[Expr](), list[Stmt]()
    body: list[Stmt] = []
    for number, kernel in enumerate(kernels):
        outer = [param.name for param in kernel.params]
        outer += [each.name for each in kernel.body if isinstance(each, Shared)]
        kernel = renamed(kernel, {each: fresh.name(f"{each}__{number}") for each in outer})
        params += kernel.params
        requires += kernel.requires
        shared += [each for each in kernel.body if isinstance(each, Shared)]
        rest = tuple(each for each in kernel.body if not isinstance(each, Shared))
        mine = {"block_x": Var("block_x") - number * BLOCKS}
        moved = map_body(rest, lambda expr, mine=mine: substitute(expr, mine))  # type: ignore[misc]
        body.append(If((Var("block_x") // BLOCKS).eq(number), moved))
    first = kernels[0]
    return replace(
        first,
        name=name,
        params=tuple(params),
        requires=tuple(requires),
        grid=(Const(BLOCKS * len(kernels)), Const(1), Const(1)),
        body=(*shared, *body),
        doc="",
    )


def equal(param: str, dtype: DType, given: npt.NDArray[Any], wanted: npt.NDArray[Any],
          ulps: int) -> bool:  # fmt: skip
    """Equal bits but for which NaN it is; `approximate` outputs within so many units in the last
    place."""
    if not dtype.is_float:
        return bool(np.array_equal(given, wanted))
    nan = np.isnan(wanted)
    if not np.array_equal(np.isnan(given), nan):
        return False
    a, b = given[~nan], wanted[~nan]
    if "approximate" not in param:
        return bool(np.array_equal(a.view(_bits(a)), b.view(_bits(b))))
    return bool(np.all(np.abs(ordered(a) - ordered(b)) <= ulps))


def ordered(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Floats as integers in the same order, one apart for neighbours."""
    bits = values.view(_bits(values)).astype(np.int64)
    top = np.int64(1) << np.int64(8 * values.itemsize - 1) if values.itemsize < 8 else None
    if top is not None:
        bits = np.where(bits >= top, bits - 2 * top, bits)
        return np.where(bits < 0, -top - bits, bits).astype(object)
    low = np.iinfo(np.int64).min
    return np.where(bits < 0, low - bits, bits).astype(object)


def _bits(values: npt.NDArray[Any]) -> Any:
    return np.uint32 if values.itemsize == 4 else np.uint64
