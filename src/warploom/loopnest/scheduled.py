"""A decided implementation as a schedule: the tree of its loops, with indices and conditions.

In come the decisions; out go loops, buffers and writes for `schedule/lower.py`. Registers are
spread along unrolled dimensions, and those of a fold are its start's, too. Where a level of threads
has no part in a store, its first thread stores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from warploom.index.digits import separated
from warploom.index.ir import Const, Expr, Var, substitute
from warploom.index.laws import simplify, total
from warploom.kernel.bounds import index_type
from warploom.kernel.ir import (
    ArrayParam,
    Cell,
    Choose,
    FromIndex,
    Number,
    Param,
    ScalarParam,
    Value,
    walk_value,
)
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir
from warploom.loopnest.decided import Implementation, Loop, Node
from warploom.loopnest.evaluate import elements, rows_of
from warploom.loopnest.fold import neutral
from warploom.loopnest.held import RegisterRow
from warploom.loopnest.neutral import folded_by, unchanged_outside
from warploom.loopnest.tile import Product, products
from warploom.schedule import ir as made_of
from warploom.schedule.context import all_of
from warploom.schedule.lanes import strictest

BLOCKS = ("block_x", "block_y", "block_z")
KINDS: Mapping[str, made_of.Kind] = {
    "LOOP": "loop", "UNROLL": "unrolled", "VECTOR": "vector", "DEAL": "copy",
}  # fmt: skip


def schedule_of(implementation: Implementation) -> made_of.Schedule:
    """The schedule of an implementation."""
    return _Scheduling(implementation).schedule()


class _Scheduling:
    def __init__(self, implementation: Implementation) -> None:
        self.made, self.program = implementation, implementation.program
        self.temporaries = {t.put: t for t in self.made.lowered}
        self.temporaries |= {t.get: t for t in self.made.lowered}
        self.names: dict[str, str] = {}
        self.counter = self._counters()
        self.index: dict[ir.Dim, Expr] = {d: Var(name) for d, name in self.counter.items()}
        self.bounds = {name: (0, self.made.size_of(d) - 1) for d, name in self.counter.items()}
        self.grid: list[int] = []
        self.begun: set[ir.Instruction] = set()
        self.open: set[ir.Dim] = set()
        self.whole: set[ir.Axis] = set()  # of which all iterations here are inside
        self.outside = {dim.axis: dim for dim in implementation.dims
                        if dim.tile is None and implementation.kind[dim] == "BLOCK"}  # fmt: skip
        self.scans = [each for each in self.made.instructions if each.scanned]
        self.products = {p.fold: p for p in self._products()}
        self.rows = self._rows()
        self.sent = {
            (each.producer, each.consumer): (each.pairs, each.temporary)
            for each in self.program.communications
            if each.temporary is not None and each.temporary in self.made.lowered
        }

    # -- names -------------------------------------------------------------------------------------

    def name(self, name: str) -> str:
        """An identifier for each name."""
        if name not in self.names:
            self.names[name] = self._unique(_plain(name))
        return self.names[name]

    def _unique(self, plain: str) -> str:
        taken, made, number = set(self.names.values()), plain, 1
        while made in taken:
            number += 1
            made = f"{plain}_{number}"
        return made

    def _counters(self) -> dict[ir.Dim, str]:
        """One for each loop, with the part of a dimension's name that says which tile it is."""
        found: dict[ir.Dim, str] = {}
        for dim, merged in self.made.merged.items():
            if dim is merged[0]:
                plain, number = _plain(str(dim).split(".")[-1]), 1
                counter = plain
                while counter in found.values():
                    number += 1
                    counter = f"{plain}_{number}"
                found |= dict.fromkeys(merged, counter)
        return found

    # -- the whole ---------------------------------------------------------------------------------

    def schedule(self) -> made_of.Schedule:
        name = self.name(self.program.name)
        body = self._bodies(self.made.nests)
        sizes = elements(self.program, self.made.sizes)
        x, y, z = (*self.grid, 1, 1, 1)[:3]
        return made_of.Schedule(
            name,
            tuple(self._params()),
            tuple(self._buffers()),
            (math.prod(self.made.levels), 1, 1),
            (x, y, z),
            body,
            tuple(self._levels()),
            self.made.levels,
            index_type(sizes.values()),
            shared_most=self.made.target.shared_bytes,
        )

    def _params(self) -> Iterator[Param]:
        stored = {i.action.access.array for i in self.program.instructions
                  if isinstance(i.action, ir.Store)}  # fmt: skip
        sizes = elements(self.program, self.made.sizes)
        for array in self.program.arrays:
            yield ArrayParam(array.name, array.dtype, Const(sizes[array]), array not in stored)
        for number in self.program.parameters:
            yield ScalarParam(number.name, number.dtype)

    def _buffers(self) -> Iterator[made_of.Buffer]:
        sizes = elements(self.program, self.made.sizes)
        for array in self.program.arrays:
            yield made_of.Buffer(array.name, array.dtype, "global", sizes[array])
        for number in self.program.parameters:
            yield made_of.Buffer(number.name, number.dtype, "number")
        for row in {row.name: row for row in self.rows.values()}.values():
            yield made_of.Buffer(row.name, row.dtype, "registers", row.size)
        for scan in self.scans:
            yield made_of.Buffer(self.name(f"{scan}.carry"), scan.dtype, "registers")
        for each in self.made.lowered:
            yield made_of.Buffer(
                self.name(each.name),
                each.dtype,
                "shared",
                math.prod(self.made.lengths(each)),
                self.made.swizzle_of(each),
                self.made.stages[each],
                "copy" if self.made.fill[each] == "COPY" else "registers",
            )

    def _levels(self) -> Iterator[tuple[str, int, Expr]]:
        """The index on each level of threads, the innermost counting fastest."""
        below, levels = 1, self.made.levels
        for number, size in enumerate(levels):
            index: Expr = Var("thread") // below if below > 1 else Var("thread")
            if number < len(levels) - 1:
                index = index % size
            yield f"level_{number}", size, index
            below *= size

    # -- loops -------------------------------------------------------------------------------------

    def _bodies(self, nodes: tuple[Node, ...]) -> tuple[made_of.Node, ...]:
        return tuple(made for node in nodes for made in self._whole(node))

    def _whole(self, node: Node) -> Iterator[made_of.Node]:
        """A node, and after the outermost loop of a fold over threads what puts theirs together."""
        if isinstance(node, ir.Instruction):
            yield from self._instruction(node)
            return
        begun = [each for each in self.made.shared_folds
                 if each not in self.begun and set(node.dims) & set(each.over)]  # fmt: skip
        own = {each: [dim for dim in node.dims if dim in each.scanned] for each in self.scans}
        scans = [each for each in self.scans
                 if each not in self.begun and any(dim.tile for dim in own[each])]  # fmt: skip
        self.begun |= {*begun, *scans}
        for each in self.scans:
            if any(dim.tile is None for dim in own[each]):
                yield made_of.Write(self._carry(each), self._nothing(each))
        around = set(self.open)
        self.open |= set(node.dims)
        yield from self._node(node)
        self.open = around
        for each in begun:
            yield self._combined(each)
        for each in scans:
            yield self._prefix(each)

    # -- scans -------------------------------------------------------------------------------------

    def _carry(self, scan: ir.Instruction) -> Cell:
        return Cell(self.name(f"{scan}.carry"), None, scan.dtype)

    def _nothing(self, scan: ir.Instruction) -> Number:
        assert isinstance(scan.action, ir.Scan)
        return Number(neutral(scan.action.op, scan.dtype), scan.dtype)

    def _prefix(self, scan: ir.Instruction) -> made_of.Prefix:
        """In the order of the axis, whatever the order of loops."""
        assert isinstance(scan.action, ir.Scan)
        tiles = [dim for dim in scan.scanned if dim.tile is not None]
        threads = [dim for dim in tiles if self.made.kind[dim] == "THREAD"]
        first = tiles.index(threads[0]) if threads else 0
        counters = [(self.counter[dim], self.made.size_of(dim)) for dim in tiles]
        return made_of.Prefix(
            self._target(scan),
            tuple(counters[:first]),
            tuple(counters[first + len(threads) :]),
            scan.action.op,
            self._nothing(scan),
            self.made.level[threads[0]] if threads else None,
            scan.action.exclusive,
            self._carry(scan) if any(dim.tile is None for dim in scan.scanned) else None,
        )

    def _combined(self, fold: ir.Instruction) -> made_of.Combine:
        row = self.rows[fold]
        along = [(self.counter[d], self.made.size_of(d)) for d in row.strides if d not in self.open]
        levels = {self.made.level[d] for d in fold.over if self.made.kind[d] == "THREAD"}
        target, op = self._target(fold), folded_by(fold)
        assert op is not None
        return made_of.Combine(target, tuple(along), op, tuple(sorted(levels)))

    def _node(self, node: Loop) -> Iterator[made_of.Node]:
        counter, size = self.counter[node.dims[0]], node.size
        match node.kind:
            case "BLOCK":
                self.grid.append(size)
                index: Expr = Var(BLOCKS[len(self.grid) - 1])
                yield made_of.Indexed(counter, size, index, self._bodies(node.body))
            case "THREAD":
                index = Var(f"level_{self.made.level[node.dims[0]]}")
                yield made_of.Indexed(counter, size, index, self._bodies(node.body))
            case "TENSOR":
                yield self._product(node)
            case "VECTOR" if node.dims[0].axis.skew is not None:
                yield self._ragged(node, "vector")
            case "UNROLL" if self._is_ragged(node):
                yield self._ragged(node, "unrolled")
            case "DEAL":
                yield made_of.Loop(counter, size, tuple(self._copied(node)), "copy")
            case _:
                yield made_of.Loop(counter, size, self._bodies(node.body), KINDS[node.kind])

    def _ragged(self, loop: Loop, kind: made_of.Kind) -> made_of.Node:
        """All iterations at once where all are inside, else one after the other: rows begin and end
        anywhere."""
        counter, dim = self.counter[loop.dims[0]], loop.dims[0]
        inst = next(each for each in loop.body if isinstance(each, ir.Instruction))
        found = [self._inside(inst)]
        if isinstance(inst.action, ir.Load | ir.Store) and (where := inst.action.access.where):
            along = {axis.name: self._along(inst, axis) for axis in where.axes}
            found.append(self._by_loops(where.condition, along))
        inside = all_of(each for each in found if each is not None)
        single = made_of.Loop(counter, loop.size, self._bodies(loop.body), "unrolled")
        self.whole.add(dim.axis)
        whole = made_of.Loop(counter, loop.size, self._bodies(loop.body), kind)
        self.whole.remove(dim.axis)
        if inside is None:
            return whole
        both = substitute(strictest(inside, counter, loop.size), {counter: Const(0)})
        return made_of.Either(simplify(both), (whole,), (single,))

    def _is_ragged(self, loop: Loop) -> bool:
        """Whether neighbours of rows that begin anywhere are computed of: some may be outside."""
        dim = loop.dims[0]
        near = dim.tile is not None and dim.tile.level == len(dim.axis.tiles) - 1
        return near and dim.axis.skew is not None and all(
            isinstance(each, ir.Instruction) and isinstance(each.action, ir.Compute)
            for each in loop.body
        )  # fmt: skip

    def _copied(self, loop: Loop) -> Iterator[made_of.Node]:
        """What is loaded goes straight to where it is put."""
        if isinstance(loop.body[0], Loop):
            yield from self._node(loop.body[0])
            return
        insts = [each for each in loop.body if isinstance(each, ir.Instruction)]
        load = next(each for each in insts if isinstance(each.action, ir.Load))
        assert isinstance(load.action, ir.Load)
        value = self._loaded(load, load.action.access)
        streaming = self.made.cache[load] == "NO_CACHE"
        for each in insts:
            if isinstance(each.action, ir.Put):
                yield made_of.Write(self._cell(each), value, None, streaming)

    # -- registers ---------------------------------------------------------------------------------

    def _rows(self) -> dict[ir.Instruction, RegisterRow]:
        """A start is in the registers of its fold, by the dimensions that go with that one's."""
        found: dict[ir.Instruction, RegisterRow] = {}
        for inst in self.made.instructions:
            if not isinstance(inst.action, ir.Store | ir.Put):
                found[inst] = self._row(inst)
        for inst in self.made.instructions:
            if (running := inst.running) is not None:
                first = {own: start for start, own in running.pairs}
                row = found[inst]
                strides = {first.get(dim, dim): stride for dim, stride in row.strides.items()}
                pairs = tuple(first.get(dim, dim) for dim in row.pairs)
                found[running.start] = replace(row, strides=strides, pairs=pairs)
        return found

    def _row(self, inst: ir.Instruction) -> RegisterRow:
        kind = self.made.kind
        spread = [d for d in inst.dims if d in self.made.spread or kind[d] == "VECTOR"]
        spread.sort(key=lambda dim: kind[dim] == "VECTOR")  # neighbours along a vector
        pairs = self._pairs(inst)
        strides, size = dict[ir.Dim, int](), 4 if pairs else 1
        for dim in reversed(spread):
            strides[dim] = size
            size *= self.made.size_of(dim) // (2 if dim in pairs else 1)
        name = self.name(inst.name)
        return RegisterRow(name, inst.dtype, strides, size if spread else None, pairs)

    def _target(self, inst: ir.Instruction) -> Cell:
        return self.rows[inst].cell(self.index)

    # -- places ------------------------------------------------------------------------------------

    def _along(self, inst: ir.Instruction, axis: ir.Axis) -> Expr:
        """The index along an axis."""
        own = [dim for dim in inst.dims if dim.axis is axis]
        found = total(self.index[dim] * self.made.stride_of(dim) for dim in own)
        return found if axis.skew is None else found - self._skew(inst, axis.skew)

    def _skew(self, inst: ir.Instruction, skew: ir.Skew) -> Expr:
        """How many iterations come before the first index, where an instruction stands: in a row
        that its own loops say, or that blocks are."""
        along: dict[str, Expr] = {}
        for axis in self.program.axes:
            if axis in inst.axes:
                along[axis.name] = self._along(inst, axis) if axis.skew is None else Const(0)
            elif axis in self.outside:
                along.setdefault(axis.name, self.index[self.outside[axis]])
        return substitute(skew.expr, along)

    def _names(self, inst: ir.Instruction, access: ir.Access) -> list[made_of.Name]:
        """What data decide of an access."""
        rows = rows_of(access, bool(self.made.sizes))
        found = []
        for subscript, size in zip(access.subscripts, rows, strict=True):
            if isinstance(subscript, ir.ByData):
                value = self._value(inst, subscript.value)
                found.append(made_of.Name(self.name(f"{access.array}.row"), value, size))
        return found

    def _gathered(
        self, inst: ir.Instruction, access: ir.Access, names: Sequence[made_of.Name]
    ) -> Cell:
        """An element whose place data decide."""
        array, terms, given = access.array, list[Expr](), iter(names)
        along = {axis.name: self._along(inst, axis) for axis in inst.axes}
        for subscript, stride in zip(access.subscripts, array.strides, strict=True):
            if isinstance(subscript, ir.ByData):
                terms.append(Var(next(given).counter) * stride)
            else:
                terms.append(substitute(subscript.expr, along) * stride)
        return made_of.Gathered(array.name, total(terms), array.dtype, tuple(names))

    def _element(self, inst: ir.Instruction, access: ir.Access) -> Cell:
        place, array = access.place, access.array
        if access.is_linear:
            if self._is_read_again(inst, array):
                # What loops in the text change stands last, beside the offset: compilers add up
                # both, and see that two places are one.
                dims = sorted(inst.dims, key=lambda dim: self.made.kind[dim] == "UNROLL")
                terms = [self.index[dim] * (self.made.stride_of(dim) * place.factors[dim.axis])
                         for dim in dims if dim.axis in place.factors]  # fmt: skip
                terms += [self._skew(inst, axis.skew) * -factor
                          for axis, factor in place.factors.items() if axis.skew]  # fmt: skip
            else:
                terms = [self._along(inst, axis) * f for axis, f in place.factors.items()]
            return Cell(array.name, total([*terms, Const(place.offset)]), array.dtype)
        along = {axis.name: self._along(inst, axis) for axis in access.axes}
        strides = zip(access.subscripts, array.strides, strict=True)
        index = total(self._by_loops(each.expr, along) * stride for each, stride in strides
                      if not isinstance(each, ir.ByData))  # fmt: skip
        return Cell(array.name, index, array.dtype)

    def _by_loops(self, expr: Expr, along: Mapping[str, Expr]) -> Expr:
        """An expression over the names of axes by the counters of loops. What a counter of
        neighbours leaves as it is does not mention it: neighbours are then seen to be such."""
        return simplify(separated(substitute(expr, along), self.bounds))

    def _is_read_again(self, inst: ir.Instruction, array: ir.Array) -> bool:
        """Whether an instruction itself loads from an array at several places."""
        if not isinstance(inst.action, ir.Compute | ir.Store):
            return False
        found = {each for each in walk_value(inst.action.value)
                 if isinstance(each, ir.Element) and each.access.array is array}  # fmt: skip
        return len(found) > 1

    def _inside(self, inst: ir.Instruction, axes: tuple[ir.Axis, ...] | None = None) -> Expr | None:
        """That the index is not beyond the end of an axis whose last tile is partial."""
        found = []
        for axis in inst.axes if axes is None else axes:
            if axis in self.whole or not axis.guarded:
                continue
            outer = [self.made.size_of(dim) for dim in inst.dims if dim.axis is axis]
            size, along = self.made.length(axis), self._along(inst, axis)
            if axis.skew is not None:
                found.append(along.ge(0))
            if math.prod(outer) > size:
                found.append(along.le(size - 1))
        return all_of(found)

    def _first_threads(self, inst: ir.Instruction) -> Iterator[Expr]:
        """On levels of threads along which nothing differs, one thread stores for all."""
        own = {self.made.level[dim] for dim in inst.dims if self.made.kind[dim] == "THREAD"}
        for level in range(len(self.made.levels)):
            if level not in own:
                yield Var(f"level_{level}").eq(0)

    def _cell(self, inst: ir.Instruction) -> Cell:
        """Where in its array a temporary's store or load is."""
        temporary = self.temporaries[inst]
        dims, stride, terms = self.made.array_dims(temporary), 1, list[Expr]()
        for (put, get), length in zip(dims, self.made.lengths(temporary), strict=True):
            own = put if inst is temporary.put else get
            terms.append(self.index[own] * stride)
            stride *= length
        return Cell(self.name(temporary.name), total(terms), temporary.dtype)

    # -- instructions ------------------------------------------------------------------------------

    def _loaded(self, inst: ir.Instruction, access: ir.Access) -> Value:
        """An element of an array, and zero beyond its end."""
        names = self._names(inst, access)
        if names:
            there = all_of(Var(each.counter).ge(0) for each in names)
            assert there is not None
            element = self._gathered(inst, access, names)
            value: Value = Choose(there, element, Number(access.other, access.array.dtype))
        else:
            value = self._element(inst, access)
        if access.where is not None and not self.whole.intersection(access.where.axes):
            along = {axis.name: self._along(inst, axis) for axis in access.where.axes}
            where = self._by_loops(access.where.condition, along)
            value = Choose(where, value, Number(access.other, access.array.dtype))
        inside = self._inside(inst, tuple(a for a in inst.axes if a in access.axes))
        return value if inside is None else Choose(inside, value, Number(0, access.array.dtype))

    def _instruction(self, inst: ir.Instruction) -> Iterator[made_of.Node]:
        match inst.action:
            case ir.Scan(_, value):
                inside = self._inside(inst, (inst.action.axis,))
                own = self._value(inst, value)
                if inside is not None:
                    own = Choose(inside, own, self._nothing(inst))
                yield made_of.Write(self._target(inst), own)
                if all(dim.tile is None for dim in inst.scanned):
                    yield self._prefix(inst)
            case ir.Compute():
                computed = self._computed(inst, inst.action.value)
                yield made_of.Write(self._target(inst), computed)
            case ir.Load(access):
                streaming = self.made.cache[inst] == "NO_CACHE"
                value = self._loaded(inst, access)
                yield made_of.Write(self._target(inst), value, None, streaming)
            case ir.Store(access, value):
                streaming = self.made.cache[inst] == "NO_CACHE"
                inside = self._inside(inst)
                where = [*self._first_threads(inst), *([] if inside is None else [inside])]
                target, given = self._element(inst, access), self._value(inst, value)
                yield made_of.Write(target, given, all_of(where), streaming)
            case ir.Put(value):
                where = [*self._first_threads(inst)]
                yield made_of.Write(self._cell(inst), self._value(inst, value), all_of(where))
            case ir.Get():
                yield made_of.Write(self._target(inst), self._cell(inst))
            case _:
                assert_never(inst.action)

    def _computed(self, inst: ir.Instruction, value: Value) -> Value:
        made = self._begun(inst, self._value(inst, value))
        folded = dict.fromkeys(dim.axis for dim in inst.over)
        partial = tuple(axis for axis in folded if not unchanged_outside(inst, axis))
        inside = self._inside(inst, partial)
        return made if inside is None else Choose(inside, made, self._target(inst))

    def _begun(self, inst: ir.Instruction, value: Value) -> Value:
        """A fold over threads starts with its start in the first of them, and with nothing in the
        others."""
        for fold in self.made.shared_folds:
            running, op = fold.running, folded_by(fold)
            if running is None or running.start is not inst or op is None:
                continue
            nothing = Number(neutral(op, inst.dtype), inst.dtype)
            if value == nothing:
                continue
            levels = {self.made.level[d] for d in fold.over if self.made.kind[d] == "THREAD"}
            first = all_of(Var(f"level_{level}").eq(0) for level in sorted(levels))
            assert first is not None
            value = Choose(first, value, nothing)
        return value

    def _value(self, inst: ir.Instruction, value: Value) -> Value:
        """A value with registers, elements of memory and indices for its leaves."""

        def expr(each: Expr) -> Expr:
            along = {axis.name: self._along(inst, axis) for axis in inst.axes}
            return simplify(substitute(each, along))

        def found(each: Value) -> Value:
            match each:
                case ir.Running():
                    return self._target(inst)
                case ir.Result(producer, pairs):
                    return self._read(inst, producer, dict(pairs))
                case ir.Element(access):
                    return self._loaded(inst, access)
                case ir.IndexOf():
                    return FromIndex(each.expr, each.dtype)
                case ir.Parameter(name, dtype):
                    return Cell(name, None, dtype)
            return each

        return map_value(value, expr, found)

    def _read(
        self, inst: ir.Instruction, producer: ir.Instruction, mine: Mapping[ir.Dim, ir.Dim]
    ) -> Cell:
        """What an instruction has from another, from its temporary array if there is one."""
        sent = self.sent.get((producer, inst))
        if sent is not None:
            pairs, temporary = sent
            both = zip(pairs, temporary.pairs, strict=True)
            mine = {get: own for (_, own), (_, get) in both}
            producer = temporary.get
        row = self.rows[producer]
        return row.cell({dim: self.index[mine.get(dim, dim)] for dim in row.strides})

    # -- products by tensor cores ------------------------------------------------------------------

    def _products(self) -> list[Product]:
        if not self.made.target.tensor:
            return []
        return [each for each in products(self.program)
                if any(self.made.kind[dim] == "TENSOR" for dim in each.deep)]  # fmt: skip

    def _pairs(self, fold: ir.Instruction) -> tuple[ir.Dim, ...]:
        """The two dimensions whose pairs of sums are neighbouring registers."""
        made = self.products.get(fold)
        return () if made is None else tuple(self._sides(made, which)[-1] for which in (0, 1))

    def _sides(self, product: Product, which: int) -> list[ir.Dim]:
        """The unrolled dimensions along the rows or columns, that of pairs last: of neighbours, if
        there are some, which lie beside each other in memory."""
        dims = [dim for dim in product.across(which) if self.made.kind[dim] == "UNROLL"]
        even = next(dim for dim in reversed(dims) if self.made.size_of(dim) % 2 == 0)
        return [*(dim for dim in dims if dim is not even), even]

    def _side(self, product: Product, which: int) -> made_of.Side:
        dims = self._sides(product, which)
        return made_of.Side(tuple((self.counter[dim], self.made.size_of(dim)) for dim in dims))

    def _product(self, loop: Loop) -> made_of.Product:
        """Loops around may be of what is neither a row nor a column, such as a batch."""
        product = next(p for p in self.products.values() if set(loop.dims) & set(p.deep))
        thread = next(
            dim for dim in product.across(1)
            if self.made.kind[dim] == "THREAD" and self.made.level[dim] == 0
        )  # fmt: skip
        before = dict(self.index)
        self.index |= dict.fromkeys(loop.dims, Var(self.counter[loop.dims[0]]))
        for dim in product.fold.dims:
            for get in product.gets(dim):
                if dim not in loop.dims:
                    self.index[get] = self.index[dim]
        left, right = (self._cell(each.get) for each in product.temporaries)
        sums = self.rows[product.fold].cell(self.index)
        self.index = before
        return made_of.Product(
            self.made.target.tensor or "tf32",
            self.counter[loop.dims[0]],
            self._side(product, 0),
            self._side(product, 1),
            self.counter[thread],
            sums,
            left,
            right,
        )


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
