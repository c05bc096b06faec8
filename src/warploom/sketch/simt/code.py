"""From a filled SIMT sketch to a kernel: every warp does one tile of arrays of any length.

Loops stay loops. Register arrays end up indexed by constants: a partition becomes selects, a
permutation that differs from lane to lane a rotation in ⌈log₂ n⌉ steps. Along each axis tile number
b of an array begins at b times its step; elements beyond the array are read as zero, not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var, substitute
from warploom.index.laws import simplify
from warploom.index.show import show
from warploom.kernel.build import Array as MemoryArray
from warploom.kernel.build import Builder, RegisterArray, ceil_div, fma
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import Cell, Kernel, Operation
from warploom.kernel.ir import Value as Number
from warploom.kernel.lower import Row, permute
from warploom.sketch.simt.ir import (
    NEUTRAL,
    Accumulate,
    Accumulator,
    Array,
    Exchange,
    Finish,
    Loop,
    Read,
    Stmt,
    Sync,
    Traced,
    Write,
    prune,
    walk,
)
from warploom.sketch.simt.solve import Filled
from warploom.sketch.term.gather import strides
from warploom.sketch.term.ir import Shape, size

Storage: TypeAlias = MemoryArray | RegisterArray

_TILES = ("tile_x", "tile_y", "tile_z")
_SIZES = ("columns", "rows", "planes")


def to_kernel(filled: Filled, dtype: DType = f32, warps: int = 4) -> Kernel:
    """The kernel of a filled sketch, `warps` tiles to a block.

    Its parameters are the lengths of each global array (`x_size`, or `x_rows` and `x_columns`),
    then the arrays in the order the sketch declares them.
    """
    return _Emitter(filled, dtype, warps).kernel()


@dataclass(slots=True, eq=False)
class _Emitter:
    filled: Filled
    dtype: DType
    warps: int
    out: Builder = field(init=False)
    traced: Traced = field(init=False)
    storage: dict[str, Storage] = field(default_factory=dict)
    values: dict[str, Cell] = field(default_factory=dict)
    totals: dict[str, Cell] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    def kernel(self) -> Kernel:
        self.traced = self.filled.traced
        lanes = size(tuple(n for _, n in self.traced.lanes))
        self.out = Builder(
            self.traced.name, block=lanes * self.warps, doc=self._doc(), warp_size=lanes
        )
        self.ranges = {name: (0, n - 1) for name, n in self.traced.extents.items()}
        self._parameters()
        self._tiles(lanes)
        for array in self.traced.arrays.values():
            if array.space == "shared":
                cells = size(array.shape) * self.warps
                self.storage[array.name] = self.out.shared(array.name, self.dtype, cells)
        body = prune(self.traced, self.filled.live)
        written = {stmt.array for stmt in walk(body) if isinstance(stmt, Write)}
        for array in self.traced.arrays.values():
            if array.space == "register" and array.name in written:
                self.storage[array.name] = self.out.registers(
                    array.name, self.dtype, size(array.shape)
                )
        self._body(body, ())
        return self.out.done()

    def _doc(self) -> str:
        fill = [f"{name} = {show(expr)}" for name, expr in self.filled.fill.items()]
        return "\n".join([self.traced.doc, *fill, f"verdict: {self.filled.verification}"])

    # -- parameters and tiles

    def _parameters(self) -> None:
        outer = [a for a in self.traced.arrays.values() if a.space in ("input", "output")]
        for array in outer:
            for name in _size_names(array):
                self.out.scalar(name)
        for array in self.traced.arrays.values():
            if array in outer:
                cells: Expr = Const(1)
                for name in _size_names(array):
                    cells = Var(name) if cells == Const(1) else cells * Var(name)
                const = array.space == "input"
                made = self.out.array(array.name, self.dtype, cells, const=const)
                self.storage[array.name] = made
            elif array.space == "constant":
                made_constant = self.out.constant(array.name, self.dtype, size(array.shape))
                self.storage[array.name] = made_constant

    def _tiles(self, lanes: int) -> None:
        """Which tile a warp does, and the coordinates of a lane in it."""
        first = self.traced.outputs[0]
        if len(first.shape) > 3:
            raise CheckError(f"a grid has three axes, '{first.name}' has {len(first.shape)}")
        names = _size_names(first)
        steps = dict(zip(names, first.step, strict=True))
        counts = [ceil_div(Var(name), steps[name]) for name in reversed(names)]
        self.out.grid(simplify(ceil_div(counts[0], self.warps)), *counts[1:])
        blocks = (self.out.block_x * self.warps + self.out.warp, self.out.block_y, self.out.block_z)
        for name, block in zip(_TILES, blocks[: len(first.shape)], strict=False):
            self.out.let(name, block)
        if len(self.traced.lanes) > 1:
            rest = lanes
            for name, length in self.traced.lanes:
                rest //= length
                self.out.let(
                    name, simplify(self.out.lane // rest % length, {"lane": (0, lanes - 1)})
                )

    # -- statements

    def _body(self, body: tuple[Stmt, ...], loops: tuple[str, ...]) -> None:
        for acc in self.traced.accumulators.values():
            if acc.loops == loops:
                start = NEUTRAL[acc.outer] if acc.init is None else acc.init
                self.totals[acc.name] = self.out.register(acc.name, self.dtype, start)
        for stmt in body:
            match stmt:
                case Loop(var, count, inner):
                    if not self._permutation(stmt):
                        with self.out.loop(var, count):
                            self._body(inner, (*loops, var))
                case Read(target, array, index):
                    self._read(target, array, index)
                case Exchange(target, value, lanes):
                    self._exchange(target, value, lanes)
                case Write(array, index, value):
                    self._write(array, index, self.values[value])
                case Accumulate():
                    self._accumulate(stmt)
                case Finish(target, accumulator):
                    acc = self.traced.accumulators[accumulator]
                    total: Number = self.totals[accumulator]
                    finished = total if acc.finish is None else acc.finish(total)
                    self.out.set(self._register(target), finished)
                case Sync():
                    self.out.barrier("warp")
                case _:
                    assert_never(stmt)

    def _exchange(self, target: str, value: str, lanes: tuple[Expr, ...]) -> None:
        own = tuple(Var(name) for name, _ in self.traced.lanes)
        if tuple(map(self._expr, lanes)) == own:  # every lane would receive what it has
            self.values[target] = self.values[value]
            return
        lane = self._flat(tuple(n for _, n in self.traced.lanes), lanes)
        offered = self.values[value]
        self.out.set(self._register(target), self.out.shuffle(offered, lane))

    def _permutation(self, loop: Loop) -> bool:
        """`t[i] = r[f(i, lane)]` for every register at once, if the loop says that."""
        match loop.body:
            case (Read(value, name, (index,)), Write(target, (Var(var),), written)) if (
                value == written and var == loop.var
            ):
                source, result = self.traced.arrays[name], self.traced.arrays[target]
            case _:
                return False
        if {source.space, result.space} != {"register"} or result.shape != (loop.count,):
            return False
        rows = [Row(a.name, self.dtype, a.shape[0]) for a in (source, result)]
        self.out.extend(permute(rows[0], rows[1], self._expr(index), loop.var))
        return True

    def _read(self, target: str, name: str, index: tuple[Expr, ...]) -> None:
        array, storage = self.traced.arrays[name], self.storage[name]
        cell = self._register(target)
        if isinstance(storage, RegisterArray):
            self.out.set(cell, storage[self._flat(array.shape, index)])
        elif array.space == "shared":
            self.out.set(cell, storage[self._shared(array, index)])
        else:
            place, inside = self._place(array, index)
            self.out.set(cell, storage.at(place, when=inside))

    def _write(self, name: str, index: tuple[Expr, ...], value: Cell) -> None:
        array, storage = self.traced.arrays[name], self.storage[name]
        if isinstance(storage, RegisterArray):
            storage[self._flat(array.shape, index)] = value
        elif array.space == "shared":
            storage[self._shared(array, index)] = value
        else:
            place, inside = self._place(array, index)
            storage.put(place, value, when=inside)

    def _accumulate(self, stmt: Accumulate) -> None:
        acc, total = self.traced.accumulators[stmt.accumulator], self.totals[stmt.accumulator]
        added = self._added(acc, total, [self.values[item] for item in stmt.items])
        predicate = self._expr(stmt.predicate)
        if isinstance(predicate, Const):
            if predicate.value:
                self.out.set(total, added)
            return
        with self.out.when(predicate):
            self.out.set(total, added)

    def _added(self, acc: Accumulator, total: Cell, items: list[Cell]) -> Number:
        if self.dtype.is_float and (acc.outer, acc.inner, len(items)) == ("+", "*", 2):
            return fma(items[0], items[1], total)
        value: Number = items[0]
        for item in items[1:]:
            value = Operation(acc.inner, (value, item))  # type: ignore[arg-type]
        return Operation(acc.outer, (total, value))  # type: ignore[arg-type]

    # -- places

    def _register(self, name: str) -> Cell:
        self.values[name] = self.out.register(name, self.dtype)
        return self.values[name]

    def _expr(self, expr: Expr) -> Expr:
        """The expression with its holes filled."""
        fill: Mapping[str, Expr] = {f"?{n}": e for n, e in self.filled.fill.items()}
        return simplify(substitute(expr, fill), self.ranges)

    def _flat(self, shape: Shape, index: tuple[Expr, ...]) -> Expr:
        total: Expr = Const(0)
        for expr, stride in zip(index, strides(shape), strict=True):
            total = total + self._expr(expr) * stride
        return simplify(total, self.ranges)

    def _shared(self, array: Array, index: tuple[Expr, ...]) -> Expr:
        """Every warp of a block has its own part."""
        flat = self._flat(array.shape, index)
        return flat if self.warps == 1 else flat + self.out.warp * size(array.shape)

    def _place(self, array: Array, index: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        """Where an element of a tile lies in the whole array, and whether it does."""
        place: Expr = Const(0)
        inside: Expr | None = None
        names = _size_names(array)
        tiles = _TILES[: len(names)][::-1]
        for expr, tile, step, name in zip(index, tiles, array.step, names, strict=True):
            along = simplify(Var(tile) * step + self._expr(expr), self.ranges)
            place = along if place == Const(0) else place * Var(name) + along
            within = along.lt(Var(name))
            inside = within if inside is None else inside.and_(within)
        assert inside is not None
        return place, inside


def _size_names(array: Array) -> tuple[str, ...]:
    """The parameters that hold an array's lengths, slowest axis first."""
    if len(array.shape) == 1:
        return (f"{array.name}_size",)
    return tuple(f"{array.name}_{name}" for name in _SIZES[: len(array.shape)][::-1])
