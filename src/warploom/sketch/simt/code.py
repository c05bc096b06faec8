"""From a filled SIMT sketch to a kernel: every warp does one tile of arrays of any length.

Loops stay loops. Register arrays end up indexed by constants: a partition becomes selects, a
permutation that differs from lane to lane a rotation in ⌈log₂ n⌉ steps. Along each axis tile number
b of an array begins at b times its step. What lies outside its tile is not written; what lies
outside the array is not read. Every kernel is run against its specification before it goes out.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from warploom.errors import CheckError, located
from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.index.show import show
from warploom.kernel.build import Array as MemoryArray
from warploom.kernel.build import Builder, RegisterArray, ceil_div
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import Cell, Kernel
from warploom.kernel.lower import Row
from warploom.kernel.names import INVENTED, plain_name
from warploom.kernel.wide import with_index
from warploom.search.outcome import Outcome
from warploom.sketch.code.accumulate import accumulate, added
from warploom.sketch.code.callee import CALL
from warploom.sketch.code.codes import with_codes
from warploom.sketch.code.exchange import permuted_by
from warploom.sketch.code.function import on_register
from warploom.sketch.code.need import needs_of
from warploom.sketch.code.origin import placing
from warploom.sketch.code.tiling import Tiled, check_launch, size_names
from warploom.sketch.code.trial import tried
from warploom.sketch.simt import ir
from warploom.sketch.simt.accumulator import start_of
from warploom.sketch.simt.origins import check_arrays, origins
from warploom.sketch.simt.reach import partly_set, reach
from warploom.sketch.simt.solve import Filled, filled_of
from warploom.sketch.term.gather import strides
from warploom.sketch.term.ir import Shape, size

Storage: TypeAlias = MemoryArray | RegisterArray

_TILES = ("tile_x", "tile_y", "tile_z")


@located
def to_kernel(filled: Filled | Outcome[Filled], dtype: DType = f32, warps: int = 4) -> Kernel:
    """The kernel of a filled sketch, `warps` tiles to a block.

    Its parameters are the lengths of each global array (`x_size`, or `x_rows` and `x_columns`),
    then the arrays in the order the sketch declares them. It has been run on the simulator: several
    tiles, and last ones that are not whole, gave what the specification gives on numbers.
    """
    check_launch(dtype, warps)
    return tiled_sketch(filled, dtype, warps).kernel


def tiled_sketch(
    given: Filled | Outcome[Filled],
    dtype: DType = f32,
    warps: int = 4,
    *,
    function: bool = False,
    index: DType = DType.I32,
) -> Tiled:
    """The kernel of `to_kernel`, with how it tiles large arrays; a `function` is given its tile."""
    filled = filled_of(given)
    traced = filled.traced
    if not filled.verification:
        raise CheckError(f"the fill of '{traced.name}' is {filled.verification}", traced.span)
    check_launch(dtype, warps)
    check_arrays(traced)
    with placing(traced.name, origins(traced), traced.span):

        def make(kind: DType) -> Tiled:
            made = with_index(_Emitter(filled, kind, warps, function).kernel(), index)
            return tried(Tiled(made, traced.tiling, filled.verification, kind, warps))

        return with_codes(make, dtype)


@dataclass(slots=True, eq=False)
class _Emitter:
    filled: Filled
    dtype: DType
    warps: int
    function: bool = False
    out: Builder = field(init=False)
    traced: ir.Traced = field(init=False)
    storage: dict[str, Storage] = field(default_factory=dict)
    values: dict[str, Cell] = field(default_factory=dict)
    totals: dict[str, Cell] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # names that the user gave

    def kernel(self) -> Kernel:
        self.traced = self.filled.traced
        lanes = size(tuple(n for _, n in self.traced.lanes))
        name = plain_name(self.traced.name, "program")
        called = f"{CALL}{name}" if self.function else name
        self.out = Builder(called, block=lanes * self.warps, doc=self._doc(), warp_size=lanes)
        self.ranges = {name: (0, n - 1) for name, n in self.traced.extents.items()}
        lengths = itertools.chain(*map(size_names, (*self.traced.inputs, *self.traced.outputs)))
        self.taken = frozenset((*self.traced.arrays, *self.traced.extents, *lengths))
        self._parameters()
        self._tiles()
        for array in self.traced.arrays.values():
            if array.space == "shared":
                cells = size(array.shape) * self.warps
                self.storage[array.name] = self.out.shared(array.name, self.dtype, cells)
        with self.out.function(name) if self.function else nullcontext():
            self._all_of_it(lanes)
        return self.out.done()

    def _all_of_it(self, lanes: int) -> None:
        """What a warp does once it knows its tile."""
        self._lanes(lanes)
        body = ir.closed(ir.prune(self.traced, self.filled.live), self.filled.fill)
        written = {stmt.array for stmt in ir.walk(body) if isinstance(stmt, ir.Write)}
        partly = partly_set(self.traced, body)
        for array in self.traced.arrays.values():
            if array.space == "register" and array.name in written:
                # Nobody relies on what was never set, but it may be read, and left out afterwards.
                initial = 0 if array.name in partly else None
                self.storage[array.name] = self.out.registers(
                    array.name, self.dtype, size(array.shape), initial
                )
        self._body(body, ())

    def _doc(self) -> str:
        fill = [f"{name} = {show(expr)}" for name, expr in self.filled.fill.items()]
        verdict = f"verdict: {self.filled.verification}"
        return "\n".join(filter(None, [self.traced.doc, *fill, verdict]))

    def _conditions(self) -> list[Expr]:
        """What launches must meet: every element needed exists, all outputs have as many tiles."""
        found = [simplify(need.condition) for need in needs_of(self.traced.tiling)]
        first, *others = self.traced.outputs
        for output in others:
            for axis, names in enumerate(zip(size_names(first), size_names(output), strict=True)):
                lengths = first.shape[axis], output.shape[axis]
                counts = [ceil_div(Var(n), t) for n, t in zip(names, lengths, strict=True)]
                found.append(simplify(counts[0].eq(counts[1])))
        return list(dict.fromkeys(found))

    # -- parameters and tiles

    def _parameters(self) -> None:
        outer = [a for a in self.traced.arrays.values() if a.space in ("input", "output")]
        for array in outer:
            for name in size_names(array):
                self.out.scalar(name)
        for condition in self._conditions():
            self.out.require(condition)
        for array in self.traced.arrays.values():
            if array in outer:
                cells: Expr = Const(1)
                for name in size_names(array):
                    cells = Var(name) if cells == Const(1) else cells * Var(name)
                const = array.space == "input"
                made = self.out.array(array.name, self.dtype, cells, const=const)
                self.storage[array.name] = made
            elif array.space == "constant":
                made_constant = self.out.constant(array.name, self.dtype, size(array.shape))
                self.storage[array.name] = made_constant

    def _tiles(self) -> None:
        """Which tile a warp does."""
        first = self.traced.outputs[0]
        names = size_names(first)
        steps = dict(zip(names, first.step, strict=True))
        counts = [ceil_div(Var(name), steps[name]) for name in reversed(names)]
        self.out.grid(simplify(ceil_div(counts[0], self.warps)), *counts[1:])
        blocks = (self.out.block_x * self.warps + self.out.warp, self.out.block_y, self.out.block_z)
        for name, block in zip(_TILES, blocks[: len(first.shape)], strict=False):
            self.out.let(self._own(name), block)

    def _lanes(self, lanes: int) -> None:
        """The coordinates of a lane in its tile."""
        if len(self.traced.lanes) > 1:
            rest = lanes
            for name, length in self.traced.lanes:
                rest //= length
                self.out.let(
                    name, simplify(self.out.lane // rest % length, {"lane": (0, lanes - 1)})
                )

    # -- statements

    def _body(self, body: tuple[ir.Stmt, ...], loops: tuple[str, ...]) -> None:
        for acc in self.traced.accumulators.values():
            if acc.loops == loops:
                start = start_of(acc, self.dtype)
                self.totals[acc.name] = self.out.register(acc.name, self.dtype, start)
        for stmt in body:
            match stmt:
                case ir.Loop(var, count, inner):
                    if not self._permutation(stmt):
                        with self.out.loop(var, count):
                            self._body(inner, (*loops, var))
                case ir.Read(target, array, index):
                    self._read(target, array, index)
                case ir.Exchange(target, value, lanes):
                    self._exchange(target, value, lanes)
                case ir.Write(array, index, value):
                    self._write(array, index, self.values[value])
                case ir.Accumulate():
                    self._accumulate(stmt)
                case ir.Finish(target, accumulator):
                    acc = self.traced.accumulators[accumulator]
                    total = self.totals[accumulator]
                    finished = total if acc.function is None else on_register(acc.function, total)
                    self.out.set(self._register(target), finished)
                case ir.Sync():
                    self.out.barrier("warp")
                case _:
                    assert_never(stmt)

    def _exchange(self, target: str, value: str, lanes: tuple[Expr, ...]) -> None:
        own = tuple(Var(name) for name, _ in self.traced.lanes)
        if tuple(map(self._expr, lanes)) == own:  # every lane would receive what it has
            self.values[target] = self.values[value]
            return
        shape = tuple(n for _, n in self.traced.lanes)
        lane = self._flat(shape, self._wrapped(shape, lanes))
        offered = self.values[value]
        self.out.set(self._register(target), self.out.shuffle(offered, lane))

    def _permutation(self, loop: ir.Loop) -> bool:
        """`t[i] = r[f(i, lane)]` for every register at once, if the loop says that."""
        match loop.body:
            case (ir.Read(value, name, (index,)), ir.Write(target, (Var(var),), written)) if (
                value == written and var == loop.var
            ):
                source, result = self.traced.arrays[name], self.traced.arrays[target]
            case _:
                return False
        if {source.space, result.space} != {"register"} or result.shape != (loop.count,):
            return False
        rows = [Row(a.name, self.dtype, a.shape[0]) for a in (source, result)]
        (place,) = self._wrapped(source.shape, (index,))
        lanes = size(tuple(n for _, n in self.traced.lanes))
        self.out.extend(permuted_by(rows[0], rows[1], self._expr(place), loop.var, lanes))
        return True

    def _read(self, target: str, name: str, index: tuple[Expr, ...]) -> None:
        array, storage = self.traced.arrays[name], self.storage[name]
        cell = self._register(target)
        if isinstance(storage, RegisterArray):
            self.out.set(cell, storage[self._flat(array.shape, self._wrapped(array.shape, index))])
        elif array.space == "shared":
            inside = _all(self._within(array, index))
            self.out.set(cell, storage.at(self._shared(array, index), when=inside))
        else:
            place, conditions = self._place(array, index)
            self.out.set(cell, storage.at(place, when=_all(conditions)))

    def _write(self, name: str, index: tuple[Expr, ...], value: Cell) -> None:
        array, storage = self.traced.arrays[name], self.storage[name]
        if isinstance(storage, RegisterArray):
            storage[self._flat(array.shape, index)] = value
        elif array.space == "shared":
            inside = _all(self._within(array, index))
            storage.put(self._shared(array, index), value, when=inside)
        else:
            place, conditions = self._place(array, index)
            storage.put(place, value, when=_all([*self._within(array, index), *conditions]))

    def _accumulate(self, stmt: ir.Accumulate) -> None:
        acc, total = self.traced.accumulators[stmt.accumulator], self.totals[stmt.accumulator]
        more = added(acc.outer, acc.inner, total, [self.values[item] for item in stmt.items])
        accumulate(self.out, total, more, self._expr(stmt.predicate))

    # -- places

    def _register(self, name: str) -> Cell:
        self.values[name] = self.out.register(self._own(name), self.dtype)
        return self.values[name]

    def _own(self, name: str) -> str:
        """A name that is ours: another one where the user has it."""
        return name + INVENTED if name in self.taken else name

    def _expr(self, expr: Expr) -> Expr:
        return simplify(expr, self.ranges)

    def _flat(self, shape: Shape, index: tuple[Expr, ...]) -> Expr:
        total: Expr = Const(0)
        for expr, stride in zip(index, strides(shape), strict=True):
            total = total + self._expr(expr) * stride
        return simplify(total, self.ranges)

    def _shared(self, array: ir.Array, index: tuple[Expr, ...]) -> Expr:
        """Every warp of a block has its own part."""
        flat = self._flat(array.shape, index)
        return flat if self.warps == 1 else flat + self.out.warp * size(array.shape)

    def _within(self, array: ir.Array, index: tuple[Expr, ...]) -> list[Expr]:
        """When an index is inside the tile; nothing is asked that holds in every lane."""
        conditions: list[Expr] = []
        for expr, length in zip(index, array.shape, strict=True):
            low, high = reach(expr, self.traced.extents)
            if low < 0:
                conditions.append(self._expr(expr.ge(0)))
            if high >= length:
                conditions.append(self._expr(expr.lt(length)))
        return conditions

    def _wrapped(self, shape: Shape, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """An index of registers that stays inside: nobody relies on what is read outside."""
        wrapped: list[Expr] = []
        for expr, length in zip(index, shape, strict=True):
            low, high = reach(expr, self.traced.extents)
            wrapped.append(expr if low >= 0 and high < length else expr % length)
        return tuple(wrapped)

    def _place(self, array: ir.Array, index: tuple[Expr, ...]) -> tuple[Expr, list[Expr]]:
        """Where an element of a tile lies in the whole array, and when it does."""
        place: Expr = Const(0)
        conditions: list[Expr] = []
        names = size_names(array)
        for axis, (expr, step, name) in enumerate(zip(index, array.step, names, strict=True)):
            begin = self._tile(len(names) - 1 - axis) * step
            along = simplify(begin + self._expr(expr), self.ranges)
            place = along if axis == 0 else place * Var(name) + along
            if reach(expr, self.traced.extents)[0] < 0:
                conditions.append(along.ge(0))
            conditions.append(along.lt(Var(name)))
        return place, conditions

    def _tile(self, axis: int) -> Expr:
        """Which tile a warp does along an axis, the fastest first; outputs say how many there are.

        Along further axes an input has one tile.
        """
        return (
            Var(self._own(_TILES[axis])) if axis < len(self.traced.outputs[0].shape) else Const(0)
        )


def _all(conditions: list[Expr]) -> Expr | None:
    result: Expr | None = None
    for condition in dict.fromkeys(conditions):
        result = condition if result is None else result.and_(condition)
    return result
