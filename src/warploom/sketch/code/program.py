"""A whole program with a proved fill, as a kernel: arrays [lanes, …] in registers, tiles in memory.

Inputs are read as literals and the fixed gathers of them say, up to the first hole or fold; from
then on an array lies in the registers of a group of lanes, its first axis across lanes. What the
last step holds is stored in its row-major order. A group of lanes does one tile; tile b of an input
begins at b times its step, and of the output at b times its size. What is not handled is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from warploom.errors import Span, UnsupportedError, calling_line
from warploom.index.ir import Expr, Var, substitute
from warploom.index.laws import simplify
from warploom.index.table import Ints, Mask, cheapest, fitting
from warploom.kernel.build import Array as MemoryArray
from warploom.kernel.build import Builder, ceil_div, choose
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import BUILT_IN, Cell, Kernel, Value
from warploom.kernel.names import plain_name
from warploom.kernel.wide import with_index
from warploom.sketch.code.accumulate import joined, neutral_number
from warploom.sketch.code.callee import CALL, Callee
from warploom.sketch.code.codes import with_codes
from warploom.sketch.code.exchange import Tiles, add_move, count
from warploom.sketch.code.form import ALWAYS, LANE, bounds_of, sizes_of, written
from warploom.sketch.code.function import Function, on_register
from warploom.sketch.code.memory import (
    Input,
    View,
    gathered,
    inputs_of,
    view_of_literal,
)
from warploom.sketch.code.move import at_place, by_cases, move_of, spread_index
from warploom.sketch.code.need import needs_of
from warploom.sketch.code.origin import Origin, placing
from warploom.sketch.code.proved import Proved, prove
from warploom.sketch.code.tiling import Array, Layout, Space, Tiled, Tiling, check_launch
from warploom.sketch.code.trial import tried
from warploom.sketch.code.where import (
    WARP,
    check_in_lanes,
    check_read,
    check_steps,
    lanes_of,
    stays_in_memory,
    stored,
)
from warploom.sketch.term.evaluate import Fill, evaluate
from warploom.sketch.term.gather import size
from warploom.sketch.term.ir import (
    Apply,
    Goal,
    Literal,
    Program,
    Term,
    Undefined,
    Zero,
)
from warploom.sketch.term.operator import WORD, is_function
from warploom.sketch.term.read import live_steps

_PARTS = _ALL, _TOTAL = "_all", "_total"  # what a step reads, and what its fold makes


def lower_program(
    program: Program,
    fill: Fill = (),
    goal: int = 0,
    *,
    lanes: int | None = None,
    steps: Mapping[str, int] | None = None,
    dtype: DType = f32,
    warps: int = 4,
) -> Kernel:
    """The kernel of a program whose fill is right, which is verified first.

    `lanes` is the length of the axis across lanes, by default the first one of most holes and
    folds. `steps` says by input how far apart its tiles begin; by default they follow one another,
    and 0 means that all tiles read the same. The parameters are the lengths of inputs (`x_size`)
    and output, then the arrays. It has been run on the simulator: several tiles, and last ones that
    are not whole, gave what the goal gives on numbers.
    """
    check_launch(dtype, warps, calling_line(__file__))
    layout = Layout(lanes, dict(steps or {}), dtype, warps)
    return tiled_program(program, fill, goal, layout).kernel


def tiled_program(program: Program, fill: Fill, goal: int, layout: Layout) -> Tiled:
    """The kernel of `lower_program`, with how it tiles large arrays."""
    check_launch(layout.dtype, layout.warps)
    proved = prove(program, fill, goal)
    lanes = lanes_of(proved.program, layout.lanes)
    wanted = program.goals[goal]
    with placing(program.name, _origins(program), wanted.span):

        def make(kind: DType) -> Tiled:
            made = _Lowering(proved, wanted, lanes, replace(layout, dtype=kind)).tiled()
            indexed = replace(made, kernel=with_index(made.kernel, layout.index))
            return tried(indexed, on_arrays=not layout.function)

        return with_codes(make, layout.dtype)


def _origins(program: Program) -> dict[str, Origin]:
    """The registers of a kernel are named by the number of the step that they hold."""
    found: dict[str, Origin] = {}
    for position, step in enumerate(program.steps):
        names = step.name, *(f"v{position}{part}" for part in ("", *_PARTS))
        found |= dict.fromkeys(names, Origin(f"'{step.name}'", step.span))
    return found


@dataclass(slots=True, eq=False)
class _Lowering:
    proved: Proved
    goal: Goal
    lanes: int
    layout: Layout
    k: Builder = field(init=False)
    terms: list[tuple[Term, ...]] = field(init=False)
    inputs: tuple[Input, ...] = field(init=False)
    tiling: Tiling = field(init=False)
    arrays: list[MemoryArray] = field(default_factory=list)
    places: dict[int, View | Tiles] = field(default_factory=dict)
    tile: Expr = ALWAYS
    own: Expr = LANE
    callee: Callee | None = None
    root: int = 0  # the step whose registers are stored

    @property
    def dtype(self) -> DType:
        return self.layout.dtype

    @property
    def program(self) -> Program:
        return self.proved.program

    def tiled(self) -> Tiled:
        kernel = self._kernel()
        group = self.layout.warps * (WARP // self.lanes)
        return Tiled(kernel, self.tiling, self.proved.verification, self.dtype, group)

    def _kernel(self) -> Kernel:
        program, live = self.program, live_steps(self.program)
        self.terms = evaluate(program, self._fill(), laws=())
        self.inputs = inputs_of(program, live)
        root, table = self._stored()
        out = self._start(program.steps[-1].name, len(table))
        positions = [position for position in sorted(live) if position <= root]
        if self.layout.function:
            return self._with_function(out, positions, root, table)
        for position in positions:
            self._place(position)
        self._store(out, root, table)
        return self.k.done()

    def _with_function(
        self, out: MemoryArray, positions: list[int], root: int, table: Ints
    ) -> Kernel:
        """Loads first, then the function, on registers alone, then stores."""
        outside = self.own
        self.callee = Callee(self.k, outside)
        with self.callee.inside():
            if self.lanes < WARP:
                self.own = self.k.let("own_lane", self.k.lane % self.lanes)
            for position in positions:
                self._place(position)
            held = self._held(root, self.program.steps[root].span)
        self.own = outside
        self.callee.add(held.name, self.program.steps[root])
        self.root = root
        self._store(out, root, table)
        names = {
            f"v{position}{part}": self.program.steps[position].name
            for position in self.places
            for part in ("", *_PARTS)
        }
        return self.callee.named(self.k.done(), names)

    def _fill(self) -> dict[int, int]:
        return {hole: self.proved.choices[hole] for hole in self.program.holes}

    # -- parameters, tiles

    def _start(self, last: str, cells: int) -> MemoryArray:
        names = list(_names([*(each.name for each in self.inputs), last]))
        what = f"Every {self.lanes} lanes make {cells} elements of '{last}'."
        what += " All lanes of a warp call it together." if self.layout.function else ""
        last_word = re.split(r"[/\\]", self.program.name)[-1].removesuffix(".swflow")
        name = plain_name(last_word, "program")
        self.k = k = Builder(
            f"{CALL}{name}" if self.layout.function else name,
            block=WARP * self.layout.warps,
            doc=f"{what}\n{self.proved.doc}",
        )
        check_steps(self.inputs, self.layout.steps)
        self.tiling = self._tiling(names, cells)
        length = k.scalar(f"{names[-1]}_size")
        sizes = [
            len(each.symbols) if self._step_of(each) == 0 else k.scalar(f"{name}_size")
            for each, name in zip(self.inputs, names, strict=False)
        ]
        for need in needs_of(self.tiling):
            k.require(simplify(need.condition))
        self.arrays = [
            k.array(name, self.dtype, cells_of, const=True)
            for name, cells_of in zip(names, sizes, strict=False)
        ]
        out = k.array(names[-1], self.dtype, length)
        beside = WARP // self.lanes
        k.grid(ceil_div(length, cells * beside * self.layout.warps))
        first = (k.block_x * self.layout.warps + k.warp) * beside
        side = simplify(k.lane // self.lanes, {"lane": (0, WARP - 1)})
        self.tile = k.let("tile_number", simplify(first + side) if beside > 1 else first)
        self.own = k.lane
        if self.lanes < WARP:
            self.own = k.let("own", k.lane % self.lanes)
        return out

    def _step_of(self, each: Input) -> int:
        own = len(each.symbols) if each.step is None else each.step
        return self.layout.steps.get(each.name, own)

    def _tiling(self, names: list[str], cells: int) -> Tiling:
        arrays, symbols = [], {}
        for each, name in zip(self.inputs, names, strict=False):
            step, own = self._step_of(each), (len(each.symbols),)
            space: Space = "input" if step else "constant"
            arrays.append(Array(name, space, own, (step,), each.shape))
            symbols[name] = each.symbols
        functions = {
            step.operator: function
            for step in self.program.steps
            if isinstance(step, Apply) and (function := _function(step)) is not None
        }
        output = Array(names[-1], "output", (cells,), (cells,), self.program.steps[-1].shape)
        name = self.program.name
        return Tiling(name, tuple(arrays), (output,), self.goal, symbols, functions)

    # -- steps

    def _place(self, position: int) -> None:
        step = self.program.steps[position]
        if isinstance(step, Literal):
            self.places[position] = view_of_literal(step, self.inputs)
            return
        choice = self.proved.choices[position]
        gather, shape = step.gathers.expression(choice), step.gathers.out_shape
        views = [place for arg in step.args if isinstance(place := self.places[arg], View)]
        if len(views) == len(step.args) and stays_in_memory(step, self.lanes):
            table = step.gathers.table(choice)
            self.places[position] = gathered(gather, table, shape, views)
            return
        check_in_lanes(step, self.lanes, self.dtype)
        if step.fold is not None:
            self._check_fold(position, step)
        source = self._together(position, step)
        move = move_of(gather, step.gathers.arg_shapes, shape, step.span)
        target = self._registers(f"v{position}", move.registers)
        add_move(self.k, source, target, move, self.own, self._first(), self._zero(position))
        self.places[position] = (
            target if step.fold is None else self._folded(position, step, target)
        )

    def _registers(self, name: str, registers: int) -> Tiles:
        return Tiles(self.k, name, self.dtype, registers).declare()

    def _first(self) -> Expr | int:
        if self.lanes == WARP:
            return 0
        return (
            simplify(self.k.lane - self.own) if WARP % self.lanes == 0 else self.k.lane - self.own
        )

    def _together(self, position: int, step: Apply) -> Tiles:
        """The registers of all arguments, one after another."""
        held = [self._held(arg, step.span) for arg in step.args]
        if len(held) == 1:
            return held[0]
        both = self._registers(f"v{position}{_ALL}", sum(each.columns for each in held))
        before = 0
        for each in held:
            with count(self.k, "j", each.columns) as j:
                self.k.set(both.at(0, simplify(j + before)), each.at(0, j))
            before += each.columns
        return both

    def _held(self, position: int, span: Span | None) -> Tiles:
        place = self.places[position]
        if isinstance(place, View):
            check_read(self.program.steps[position], self.lanes, span)
            place = self.places[position] = self._loaded(position, place)
        return place

    def _loaded(self, position: int, view: View) -> Tiles:
        if self.callee is None:
            return self._load(position, view)
        inside, self.own = self.own, self.callee.own
        with self.callee.loading():
            made = self._load(position, view)
        self.own = inside
        return made

    # -- folds

    def _folded(self, position: int, step: Apply, items: Tiles) -> Tiles:
        run, k = step.fold or 1, self.k
        totals = self._registers(f"v{position}{_TOTAL}", items.columns // run)
        with count(k, "r", totals.columns) as r:
            total, first = totals.at(0, r), items.at(0, simplify(r * run))
            k.set(total, self._called(step, first) if is_function(step.operator) else first)
            if run > 1:
                with k.loop("n", 1, run) as n:
                    k.set(total, joined(step.operator, total, items.at(0, simplify(r * run + n))))
        return totals

    def _called(self, step: Apply, item: Cell) -> Value | float:
        function = _function(step)
        if function is None:
            raise UnsupportedError(
                f"'{step.name}' computes {step.operator}, whose function is not given",
                step.span,
                "give it a function of one number",
            )
        return on_register(function, item)

    def _check_fold(self, position: int, step: Apply) -> None:
        """An empty fold is zero, which must be what the fold's neutral element is to its reader."""
        if step.operator == WORD:
            raise UnsupportedError(
                f"'{step.name}' is written 'fold', and nothing says which operator it has",
                step.span,
                "write the operator",
            )
        empty = any(isinstance(term, Zero) for term in self.terms[position])
        if empty and not is_function(step.operator):
            neutral = neutral_number(step.operator, self.dtype)
            if neutral != self._consumed(position, step.span):
                raise UnsupportedError(
                    f"a cell of '{step.name}' folds nothing", step.span, "let it have an item"
                )

    def _zero(self, position: int) -> float:
        """What a zero that a step makes is to the fold that consumes it."""
        step = self.program.steps[position]
        if isinstance(step, Apply) and step.fold is not None:
            return 0 if is_function(step.operator) else neutral_number(step.operator, self.dtype)
        if not any(isinstance(term, Zero) for term in self.terms[position]):
            return 0
        return self._consumed(position, step.span)

    def _consumed(self, position: int, span: Span | None) -> float:
        """The one number that all readers of a step take a zero for."""
        meant: set[float] = set()
        for reader in sorted(live_steps(self.program)):
            step = self.program.steps[reader]
            if isinstance(step, Apply) and position in step.args:
                folds = step.fold is not None and not is_function(step.operator)
                if folds and step.operator != WORD:
                    meant.add(neutral_number(step.operator, self.dtype))
                else:
                    meant.add(0 if step.fold is not None else self._consumed(reader, span))
        if len(meant) > 1:
            raise UnsupportedError("a zero is read by folds of two operators", span)
        return meant.pop() if meant else 0

    # -- memory

    def _load(self, position: int, view: View) -> Tiles:
        registers = size(view.shape[1:])
        into = self._registers(f"v{position}", registers)
        held, elements = (each.reshape(self.lanes, -1) for each in (view.inputs, view.elements))
        place = self._place_of(view, held, elements)
        if place is not None and (held >= 0).all():
            with count(self.k, "j", registers) as j:
                self._read(into.at(0, j), int(held[0, 0]), at_place(place, self.own, j))
            if self.callee is not None:
                of = self.arrays[int(held[0, 0])].name
                self.callee.says(self.program.steps[position].name, "holds", of, place)
            return into
        zero = self._zero(position)
        self.k.register(f"v{position}_got", self.dtype)
        for at in range(registers):
            column = held[:, at : at + 1], elements[:, at : at + 1]
            self._load_one(into.at(0, at), *column, zero)
        return into

    def _place_of(self, view: View, held: Ints, elements: Ints) -> Expr | None:
        """The element as arithmetic over lane and register, if one input is all there is."""
        if (held != held[0, 0]).any() or view.element is None:
            return next(written(elements, held >= 0), None) if (held == held[0, 0]).all() else None
        bounds = bounds_of(self.lanes, elements.shape[1])
        whole = simplify(substitute(view.element, spread_index(view.shape)), bounds)
        forms = [whole, *written(elements, held >= 0)]
        return cheapest(forms, sizes_of(*elements.shape), partial(np.array_equal, elements))

    def _load_one(self, cell: Cell, held: Ints, elements: Ints, zero: float) -> None:
        """One register: from each of the inputs that some lane reads, else zero."""
        k = self.k
        k.set(cell, zero)
        for number in sorted(set(held[held >= 0].tolist())):
            here = held == number
            place = next(self._forms(elements, here), None)
            place = by_cases(elements, here) if place is None else place
            got = Cell(f"{cell.name}_got", None, self.dtype)
            self._read(got, number, at_place(place, self.own, 0))
            k.set(cell, got if here.all() else choose(self._where(here), got, cell))

    def _forms(self, elements: Ints, here: Mask) -> Iterator[Expr]:
        sizes = sizes_of(*elements.shape)
        return fitting(written(elements, here), sizes, lambda found: bool((found >= 0).all()))

    def _where(self, mask: Mask) -> Expr:
        everywhere = np.ones(mask.shape, np.bool_)
        return at_place(by_cases(mask.astype(np.int64), everywhere), self.own, 0)

    def _read(self, into: Cell, number: int, place: Expr) -> None:
        each, array = self.inputs[number], self.arrays[number]
        step = self._step_of(each)
        if step == 0:
            inside = place.lt(len(each.symbols))
            self.k.set(into, array.at(place, when=inside))
            return
        at = simplify(self.tile * step + place)
        self.k.set(into, array.at(at, when=at.lt(Var(f"{array.name}_size"))))

    def _stored(self) -> tuple[int, Ints]:
        """The step whose registers are stored, and which of its cells each element is."""
        position, table = stored(self.program, self.lanes)
        if any(isinstance(term, Undefined) for term in self.terms[-1]):
            span = self.program.steps[position].span
            raise UnsupportedError("the last step is undefined somewhere", span)
        return position, table

    def _store(self, out: MemoryArray, root: int, table: Ints) -> None:
        """Element e of a tile is cell table[e] of the root; a cell may be stored several times."""
        step = self.program.steps[root]
        held = self._held(root, step.span)
        left = np.arange(len(table))
        while len(left):
            _, first = np.unique(table[left], return_index=True)
            places = np.full(self.lanes * held.columns, -1, np.int64)
            places[table[left[first]]] = left[first]
            self._store_once(out, held, places.reshape(self.lanes, -1), len(table))
            left = np.delete(left, first)

    def _store_once(self, out: MemoryArray, held: Tiles, places: Ints, cells: int) -> None:
        whole = next(written(places, places >= 0), None)
        if whole is not None and (places >= 0).all():
            if self.callee is not None:
                self.callee.says(self.program.steps[self.root].name, "becomes", out.name, whole)
            with count(self.k, "j", held.columns) as j:
                self._write(out, at_place(whole, self.own, j), held.at(0, j), cells, ALWAYS)
            return
        for at in range(held.columns):
            column = places[:, at : at + 1]
            if (column >= 0).any():
                form = next(self._forms(column, column >= 0), None)
                form = by_cases(column, column >= 0) if form is None else form
                where = ALWAYS if (column >= 0).all() else self._where(column >= 0)
                self._write(out, at_place(form, self.own, 0), held.at(0, at), cells, where)

    def _write(self, out: MemoryArray, place: Expr, cell: Cell, cells: int, where: Expr) -> None:
        at = simplify(self.tile * cells + place)
        inside = at.lt(Var(f"{out.name}_size"))
        if WARP % self.lanes:  # some lanes are left over
            inside = inside.and_(self.k.lane.lt(WARP // self.lanes * self.lanes))
        out.put(at, cell, when=inside if where is ALWAYS else inside.and_(where))


def _function(step: Apply) -> Function | None:
    if step.function is None:
        return None
    return Function(f"the function of '{step.name}'", step.function, step.span)


def _names(given: list[str]) -> Iterator[str]:
    """Names for arrays: what is no name, is built in, or was there before, gets a tail."""
    seen: set[str] = set(BUILT_IN) | {"tile_number", "own"}
    for name in given:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = (
            plain
            if plain[:1].isalpha() and not re.fullmatch(r"v\d+\w*|[jrn]", plain)
            else f"a_{plain}"
        )
        while plain in seen or f"{plain}_size" in seen:
            plain += "_"
        seen |= {plain, f"{plain}_size"}
        yield plain
