"""Records a SIMT sketch: what the function calls on `k`, and on what it gets back, as statements.

Everything is checked when it is recorded, so that an error points at the line that causes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import CheckError, Span, calling_line
from warploom.index.ir import Expr, Var, lift, variables
from warploom.kernel.check import check_name
from warploom.sketch.simt import ir
from warploom.sketch.simt.accumulator import check_accumulator, started
from warploom.sketch.simt.array import check_outputs, check_registers, declared
from warploom.sketch.simt.reach import check_width
from warploom.sketch.simt.spec import goal_of
from warploom.sketch.simt.tile import TILE_FILE, Index, LaneShuffle, Tile, as_tuple, per_axis
from warploom.sketch.term.ir import Shape
from warploom.sketch.term.limits import check_shape
from warploom.sketch.term.opaque import Opaque

MAX_LOOPS = 16  # inside each other; an array of values has an axis for each


@dataclass(frozen=True, slots=True, eq=False)
class Value(Opaque):
    """What each lane holds in a register; `loops` are the loops it changes in."""

    name: str
    loops: tuple[str, ...]
    owner: Tracer

    _ADVICE = "use k.accumulator('+', inner='*') and its add(a, b, when=…)"


@dataclass(frozen=True, slots=True, eq=False)
class ArrayHandle:
    """An array of the sketch; reading and writing by subscript is recorded."""

    array: ir.Array
    owner: Tracer

    @property
    def shape(self) -> Shape:
        return self.array.shape

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Value:
        return self.owner.read(self, as_tuple(index))

    def __setitem__(self, index: Index | tuple[Index, ...], value: Value) -> None:
        self.owner.write(self, as_tuple(index), value)

    def __iter__(self) -> Iterator[Value]:
        raise CheckError(
            f"'{self.array.name}' is read by index", advice="use k.loop and a subscript"
        )


@dataclass(frozen=True, slots=True, eq=False)
class AccumulatorHandle:
    accumulator: ir.Accumulator
    owner: Tracer

    def add(self, *items: Value, when: Expr | bool = True) -> None:
        """`acc ⊕= item ⊙ item …` where the predicate holds."""
        self.owner.accumulate(self, items, when)

    def value(self) -> Value:
        """The accumulated value, finalised."""
        return self.owner.finished(self)


class Tracer:
    """`k`: what a sketch function calls."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lanes: tuple[tuple[str, int], ...] = ()
        self._arrays: dict[str, ir.Array] = {}
        self._accumulators: dict[str, ir.Accumulator] = {}
        self._done: set[str] = set()
        self._holes: dict[str, ir.Hole] = {}
        self._used_holes: set[str] = set()
        self._extents: dict[str, int] = {}
        self._open: list[list[ir.Stmt]] = [[]]
        self._loops: list[str] = []
        self._written: set[str] = set()  # arrays written in the loop that is open
        self._seen: set[str] = set()  # arrays read in it
        self._filled: set[str] = set()  # arrays with any contents
        self._values = 0
        self._spans: dict[str, Span | None] = {}  # where what has a name was made
        self._closed = self._broken = False

    # -- lanes, arrays, loops

    def warp(self, *sizes: int) -> Any:
        """The lanes: one index for each axis of the warp, slowest first."""
        self._check_open()
        if self._lanes or not sizes:
            raise CheckError("a sketch has one warp, of at least one axis")
        check_shape(sizes)
        names = ("lane",) if len(sizes) == 1 else tuple(f"lane{a}" for a in range(len(sizes)))
        self._lanes = tuple(zip(names, map(int, sizes), strict=True))
        self._spans |= dict.fromkeys(names, self._line())
        self._extents.update(self._lanes)
        lanes = tuple(Var(name) for name in names)
        return lanes[0] if len(lanes) == 1 else lanes

    def input(self, name: str, shape: int | Shape, step: int | Shape | None = None) -> ArrayHandle:
        """A tile of global memory; the next warp's begins `step` further (default: its shape)."""
        return self._declare(name, "input", shape, step)

    def output(self, name: str, shape: int | Shape, step: int | Shape | None = None) -> ArrayHandle:
        """A tile of global memory to write; tiles lie side by side, so its step is its shape."""
        return self._declare(name, "output", shape, step)

    def constant(self, name: str, shape: int | Shape) -> ArrayHandle:
        """Constant memory, the same for all warps: weights."""
        return self._declare(name, "constant", shape, 0)

    def shared(self, name: str, shape: int | Shape) -> ArrayHandle:
        """Shared memory, one array for the lanes of a tile."""
        return self._declare(name, "shared", shape, None)

    def registers(self, shape: int | Shape, name: str | None = None) -> ArrayHandle:
        """A register array, one in each lane."""
        return self._declare(name or self._fresh("r"), "register", shape, None)

    def loop(self, count: int, name: str = "i") -> Iterator[Var]:
        """`for i in k.loop(3):` runs the body once, with i standing for every iteration."""
        self._check_open()
        if isinstance(count, (Expr, bool)) or not isinstance(count, (int, np.integer)):
            raise CheckError(
                f"the bound of a loop is a constant, not {_kind(count)}",
                advice="use a size of the sketch, or a condition inside the loop",
            )
        if count < 1:
            raise CheckError(f"a loop runs at least once, not {count} times")
        if len(self._loops) == MAX_LOOPS:
            raise CheckError(f"more than {MAX_LOOPS} loops stand inside each other")
        check_name(name)
        return self._loop(int(count), name)

    def _loop(self, count: int, name: str) -> Iterator[Var]:
        self._require_warp()
        var = self._fresh(name)
        self._extents[var] = count
        self._spans[var] = self._line()
        self._loops.append(var)
        self._open.append([])
        self._broken = True
        yield Var(var)
        self._broken = False
        body = self._open.pop()
        self._loops.pop()
        self._open[-1].append(ir.Loop(var, count, tuple(body)))
        if not self._loops:
            self._written.clear()
            self._seen.clear()

    # -- holes

    def swizzle(
        self, index: Expr, size: int, second: Expr | None = None, name: str | None = None
    ) -> Expr:
        """A hole: `index` below `size`, fanned, rotated by `second` and grouped."""
        wanted = (index,) if second is None else (index, second)
        return self._hole("swizzle", size, wanted, (), name)

    def bits(
        self, index: Expr, size: int, second: Expr | None = None, name: str | None = None
    ) -> Expr:
        """A hole: `index` below a power of two, its bits turned, reversed and flipped, also by
        `second`: butterflies such as `lane ^ (1 << i)`."""
        wanted = (index,) if second is None else (index, second)
        return self._hole("bits", size, wanted, (), name)

    def partition(
        self, parts: int, *over: Expr, constants: tuple[int, ...] = (), name: str | None = None
    ) -> Expr:
        """A hole: which of `parts`, by conditions over these variables."""
        return self._hole("partition", parts, over, constants, name)

    def condition(
        self, *over: Expr, constants: tuple[int, ...] = (), name: str | None = None
    ) -> Expr:
        """A hole: a comparison of these variables."""
        return self._hole("condition", 2, over, constants, name)

    def _hole(
        self,
        kind: ir.HoleKind,
        size: int,
        over: tuple[Expr, ...],
        constants: tuple[int, ...],
        name: str | None,
    ) -> Expr:
        self._check_open()
        self._require_warp()
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise CheckError(
                f"a {kind} needs a constant size of at least 1", advice="give a whole number"
            )
        if not over:
            raise CheckError(f"a {kind} needs a variable to depend on", advice="give it the lane")
        if kind == "bits" and size & (size - 1):
            raise CheckError(
                f"bit operations need a power of two, not {size}", advice="use a swizzle"
            )
        if kind in ("swizzle", "bits") and isinstance(over[0], Var):
            extent = self._extents.get(over[0].name, 0)
            if extent > size:
                word = "swizzle" if kind == "swizzle" else "bit operation"
                raise CheckError(f"a {word} of {size} elements has an index below {extent}")
        for var in over:
            if not isinstance(var, Var) or var.name not in self._scope():
                raise CheckError(
                    f"a {kind} depends on lanes and loop counters in scope, not on {var!r:.60}"
                )
        if not isinstance(constants, tuple | list) or not all(
            isinstance(each, int | np.integer) for each in constants
        ):
            raise CheckError(
                f"constants are whole numbers, not {constants!r:.60}", advice="constants=(3, 8)"
            )
        names = tuple(dict.fromkeys(v.name for v in over if isinstance(v, Var)))
        lanes = dict(self._lanes)
        constants = tuple(map(int, constants)) or tuple(
            dict.fromkeys(lanes[n] for n in names if n in lanes)
        )
        hole_name = self._fresh(name or kind)
        extents = tuple(self._extents[n] for n in names)
        hole = ir.Hole(hole_name, kind, int(size), names, extents, constants)
        self._holes[hole_name] = hole
        return hole.var

    # -- moving values

    def read(self, handle: ArrayHandle, index: tuple[Index, ...]) -> Value:
        """What `x[i]` means: the element that each lane reads."""
        array = self._array(handle)
        where = self._index(array, index)
        if array.space == "output":
            raise CheckError(f"output '{array.name}' cannot be read")
        if array.space in ("register", "shared") and array.name not in self._filled:
            raise CheckError(f"'{array.name}' is read before anything is written to it")
        if array.name in self._written:
            raise CheckError(
                f"'{array.name}' is read in the loop that writes it",
                advice="end the loop first, then read in another",
            )
        if self._loops:
            self._seen.add(array.name)
        target = self._value()
        self._add(ir.Read(target.name, array.name, where, self._line()))
        return target

    def write(self, handle: ArrayHandle, index: tuple[Index, ...], value: Value) -> None:
        """What `y[i] = value` means: each lane stores its own."""
        array = self._array(handle)
        self._check_value(value)
        where = self._index(array, index)
        if array.space in ("input", "constant"):
            raise CheckError(f"{array.space} '{array.name}' cannot be written")
        if array.space == "register":
            free = set().union(*map(variables, where)) - set(self._loops)
            if free:
                raise CheckError(
                    f"registers of '{array.name}' are written at indices known after unrolling",
                    advice="put the hole, or the lane, where the registers are read",
                )
            check_registers(array, where, self._extents)
        if array.name in self._written and array.space != "output":
            raise CheckError(f"'{array.name}' is written twice in one loop")
        if array.name in self._seen:
            raise CheckError(
                f"'{array.name}' is written in the loop that reads it",
                advice="write to another array, and go on with that",
            )
        if self._loops:
            self._written.add(array.name)
        self._filled.add(array.name)
        self._add(ir.Write(array.name, where, value.name, self._line()))

    def shuffle(self, value: Value, lane: Index | tuple[Index, ...]) -> Value:
        """What another lane holds in `value`."""
        self._check_value(value)
        lanes = tuple(map(self._expr, as_tuple(lane)))
        if len(lanes) != len(self._lanes):
            raise CheckError(f"a lane of this warp has {len(self._lanes)} coordinates")
        target = self._value()
        self._add(ir.Exchange(target.name, value.name, lanes, self._line()))
        return target

    def permute(self, registers: ArrayHandle, place: Callable[[Expr], Index]) -> ArrayHandle:
        """A new register array: register i holds what `registers` holds at `place(i)`."""
        if len(registers.shape) != 1:
            raise CheckError("only register arrays of one dimension are permuted")
        result = self.registers(registers.shape)
        for i in self.loop(registers.shape[0], "p"):
            result[i] = registers[place(i)]
        return result

    def barrier(self) -> None:
        """All lanes come here before any goes on: between writes and reads of shared memory."""
        self._add(ir.Sync())

    # -- accumulators

    def accumulator(
        self,
        outer: str = "",
        inner: str | None = None,
        *,
        init: float | None = None,
        finalize: str = "",
        finish: Callable[[Any], Any] | None = None,
    ) -> AccumulatorHandle:
        """`init ⊕ items`, each item `a ⊙ b …`; at the end `finish`, which `finalize` names.

        By default it starts at the operator's neutral element, as the element type has it. The
        limits of an integer type, such as −2³¹ under `max`, are taken for that, too, unless the
        specification has the number: the kernel is then for that type alone.
        """
        self._check_open()
        self._require_warp()
        name, span = self._fresh("acc"), self._line()
        loops = tuple(self._loops)
        made = ir.Accumulator(name, outer, inner, init, finalize, finish, loops, span)
        check_accumulator(made, self._accumulators.values())
        self._accumulators[name], self._spans[name] = made, span
        return AccumulatorHandle(made, self)

    def accumulate(
        self, handle: AccumulatorHandle, items: tuple[Value, ...], when: Expr | bool
    ) -> None:
        """What `total.add(a, b, when=…)` means: one item more, in lanes where that holds."""
        acc = handle.accumulator
        self._check_owner(handle.owner)
        if acc.name in self._done:
            raise CheckError(f"'{acc.name}' was finished already")
        if tuple(self._loops[: len(acc.loops)]) != acc.loops:
            raise CheckError(f"'{acc.name}' is used outside the loop it was made in")
        if not items or (len(items) > 1 and acc.inner is None):
            raise CheckError(
                f"'{acc.name}' takes one value" + (" or more" if acc.inner else ""),
                advice="several values need an inner operator: k.accumulator('+', '*')",
            )
        for item in items:
            self._check_value(item)
        if when is False:
            raise CheckError(
                f"'{acc.name}' never takes this: the condition is False",
                advice="Python's == and != cannot compare lanes: write lane.eq(2), lane.ne(2)",
            )
        number = sum(isinstance(s, ir.Accumulate) for s in self._all())
        predicate = self._expr(when)
        names = tuple(item.name for item in items)
        self._add(ir.Accumulate(number, acc.name, names, predicate, self._line()))

    def finished(self, handle: AccumulatorHandle) -> Value:
        """What `total.value()` means: the accumulator after all its items."""
        acc = handle.accumulator
        self._check_owner(handle.owner)
        if tuple(self._loops) != acc.loops:
            raise CheckError(
                f"'{acc.name}' is finished in the loop it was made in, after the others"
            )
        if not any(isinstance(s, ir.Accumulate) and s.accumulator == acc.name for s in self._all()):
            raise CheckError(f"nothing was added to '{acc.name}'")
        self._done.add(acc.name)
        target = self._value()
        self._add(ir.Finish(target.name, acc.name))
        return target

    # -- load and store utilities

    def load(
        self,
        source: ArrayHandle,
        rounds: int | Shape,
        stride: int | Shape = 1,
        offset: int | Shape = 0,
        shuffle: LaneShuffle | None = None,
    ) -> ArrayHandle:
        """The warp copies a tile to registers: in each round each lane takes `stride` elements.

        `shuffle(lane…, round…)` says which lane's elements a lane takes instead of its own. Along
        each axis, element `offset + (round·W + lane)·stride + s` goes to register round·stride + s.
        """
        axes = self._tile(source.shape, rounds, stride, offset)
        result = self.registers(axes.register_shape)
        for place, register in axes.walk(shuffle):
            result[register] = source[place]
        return result

    def store(
        self,
        target: ArrayHandle,
        registers: ArrayHandle,
        stride: int | Shape = 1,
        offset: int | Shape = 0,
        shuffle: LaneShuffle | None = None,
    ) -> None:
        """The warp copies registers to a tile; as in `load`."""
        strides = per_axis(stride, len(self._lanes))
        rounds = tuple(-(-n // s) for n, s in zip(registers.shape, strides, strict=True))
        axes = self._tile(target.shape, rounds, stride, offset)
        for place, register in axes.walk(shuffle):
            target[place] = registers[register]

    def copy(
        self,
        source: ArrayHandle,
        target: ArrayHandle,
        rounds: int | Shape,
        stride: int | Shape = 1,
        offset: int | Shape = 0,
        shuffle: LaneShuffle | None = None,
    ) -> None:
        """Between global and shared memory: element `offset + e` of the source goes to e, or, if
        the target is global, e of the source to `offset + e`; a barrier follows."""
        outwards = target.array.space == "output"
        shape = source.shape if outwards else target.shape
        axes = self._tile(shape, rounds, stride, 0)
        shift = per_axis(offset, len(self._lanes))
        for place, _ in axes.walk(shuffle):
            moved = tuple(p + o if o else p for p, o in zip(place, shift, strict=True))
            if outwards:
                target[moved] = source[place]
            else:
                target[place] = source[moved]
        self.barrier()

    def _tile(
        self, shape: Shape, rounds: int | Shape, stride: int | Shape, offset: int | Shape
    ) -> Tile:
        self._check_open()
        self._require_warp()
        return Tile(self._lanes, self.loop, shape, rounds, stride, offset)

    # -- the end

    def finish(
        self,
        doc: str,
        sizes: dict[str, int],
        specification: Callable[..., Any],
        span: Span | None = None,
    ) -> ir.Traced:
        """The sketch that was traced, with its goal; called once, by `SketchFunction.at`."""
        if self._broken or len(self._open) != 1:
            raise CheckError(
                "a loop of the sketch was left early", advice="no break or return in it"
            )
        self._closed = True
        outputs = [a for a in self._arrays.values() if a.space == "output"]
        check_outputs(outputs, self._filled)
        unused = set(self._holes) - self._used_holes
        if unused:
            raise CheckError(f"hole '{min(unused)}' is never used")
        inputs = [a for a in self._arrays.values() if a.space in ("input", "constant")]
        goal = goal_of(specification, inputs, outputs, sizes)
        return ir.Traced(
            self._name,
            doc,
            dict(sizes),
            self._lanes,
            self._arrays,
            {name: started(each, goal) for name, each in self._accumulators.items()},
            self._holes,
            tuple(self._open[0]),
            goal,
            span,
            self._spans,
        )

    # -- inside

    def _scope(self) -> set[str]:
        return {*dict(self._lanes), *self._loops}

    def _all(self) -> Iterator[ir.Stmt]:
        stack: list[ir.Stmt] = [stmt for body in self._open for stmt in body]
        while stack:
            stmt = stack.pop()
            yield stmt
            if isinstance(stmt, ir.Loop):
                stack.extend(stmt.body)

    def _fresh(self, name: str) -> str:
        taken = {*self._arrays, *self._accumulators, *self._holes, *self._extents}
        if name not in taken:
            return name
        return next(f"{name}{n}" for n in range(2, 1 << 30) if f"{name}{n}" not in taken)

    def _check_open(self) -> None:
        if self._closed:
            raise CheckError("a sketch is used after its function has ended")

    def _check_owner(self, owner: Tracer) -> None:
        self._check_open()
        if owner is not self:
            raise CheckError("a value or array of another sketch is used")

    def _require_warp(self) -> None:
        if not self._lanes:
            raise CheckError("say how many lanes there are first", advice="lane = k.warp(32)")

    def _declare(
        self, name: str, space: ir.Space, shape: int | Shape, step: int | Shape | None
    ) -> ArrayHandle:
        self._check_open()
        check_name(name)
        if name != self._fresh(name):
            raise CheckError(f"'{name}' is no name, or is taken")
        array = declared(name, space, shape, step)
        self._arrays[name] = array
        self._spans[name] = self._line()
        return ArrayHandle(array, self)

    def _line(self) -> Span | None:
        """The line of the sketch that is being recorded."""
        return calling_line(__file__, TILE_FILE)

    def _array(self, handle: ArrayHandle) -> ir.Array:
        self._check_owner(handle.owner)
        self._require_warp()
        return handle.array

    def _index(self, array: ir.Array, index: tuple[Index, ...]) -> tuple[Expr, ...]:
        if len(index) != len(array.shape):
            raise CheckError(
                f"'{array.name}' has {len(array.shape)} axes, but {len(index)} indices are given"
            )
        if any(isinstance(each, bool) for each in index):
            raise CheckError(
                f"'{array.name}' is indexed by a Boolean",
                advice="Python's == and != cannot compare lanes: write lane.eq(2), lane.ne(2)",
            )
        return tuple(map(self._expr, index))

    def _expr(self, index: Index | bool) -> Expr:
        """An index of this sketch: its variables are in scope, its holes not used before."""
        if not isinstance(index, (Expr, int, np.integer)):
            raise CheckError(
                f"an index is an integer, a lane, a loop counter or a hole, not {_kind(index)}"
            )
        expr = lift(index)
        for name in ir.holes_in(expr):
            if name not in self._holes:
                raise CheckError(f"hole '{name}' belongs to another sketch, or is used outside it")
            if not set(self._holes[name].variables) <= self._scope():
                raise CheckError(f"hole '{name}' is used outside the loop it depends on")
        free = {name for name in variables(expr) if not name.startswith("?")}
        if not free <= self._scope():
            name = min(free - self._scope())
            raise CheckError(f"'{name}' is used outside its loop")
        check_width(expr, self._extents | {h.var.name: h.size for h in self._holes.values()})
        return expr

    def _check_value(self, value: Value) -> None:
        if not isinstance(value, Value):
            raise CheckError(
                f"a value of the sketch is wanted, not {_kind(value)}",
                advice="read it from an array, shuffle it, or finish an accumulator",
            )
        self._check_owner(value.owner)
        if tuple(self._loops[: len(value.loops)]) != value.loops:
            raise CheckError("a value is used outside the loop that computes it")

    def _value(self) -> Value:
        self._values += 1
        name = f"v{self._values}"
        self._spans[name] = self._line()
        return Value(name, tuple(self._loops), self)

    def _add(self, stmt: ir.Stmt) -> None:
        self._check_open()
        self._require_warp()
        self._note_holes(stmt)
        self._open[-1].append(stmt)

    def _note_holes(self, stmt: ir.Stmt) -> None:
        from_here = set(ir.holes_in(*ir.exprs(stmt)))
        again = from_here & self._used_holes
        if again:
            raise CheckError(
                f"hole '{min(again)}' is used in two places", advice="make a hole for each"
            )
        self._used_holes |= from_here


def _kind(value: object) -> str:
    return "an expression" if isinstance(value, Expr) else f"{value!r:.60}"
