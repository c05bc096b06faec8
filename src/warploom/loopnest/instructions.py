"""A computation becomes a program: instructions with loops of their own.

    y[i, j] = exp(x[i, j] - top[i])  →  x_1 = load x; top = fold(x_1) over j; x_1b = load x, along
                                       another axis jb of that size, whose loops come after j's

Each fold has loops of its own, and each load and each other value that a fold uses; in the
published form every operator is an instruction and every load has loops, otherwise what is stored
is one instruction with its loads. An axis may stand for others: other tiles, or parts that a fold
goes over one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from warploom.errors import CheckError, Span, UnsupportedError
from warploom.index.ir import Expr, substitute, variables
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    Choose,
    Compare,
    FromIndex,
    Number,
    Operation,
    Value,
    added,
    dtype_of,
)  # fmt: skip
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir, tiling
from warploom.loopnest.check import check
from warploom.loopnest.communicate import communications
from warploom.loopnest.computation import (
    Computation,
    Folded,
    Kept,
    Leaf,
    Loaded,
    Scanned,
    Stored,
)
from warploom.loopnest.fold import Fold, neutral
from warploom.loopnest.pieces import pieces

# How often loops along each axis come after others of it: none is the first.
Ages = tuple[tuple[ir.Axis, int], ...]
Key = tuple[Leaf, Ages]


@dataclass(frozen=True, slots=True, eq=False)
class Instead:
    """What an axis becomes: `at` is its index by the new `axes`. A fold over it goes over
    `iterations` first, and then over each of `parts`, one after the other."""

    at: ir.Affine
    axes: tuple[ir.Axis, ...]
    iterations: tuple[ir.Axis, ...]
    parts: tuple[ir.Axis, ...] = ()


# What is made of an axis, given the word that its names end in.
Remake = Callable[[ir.Axis, str], Instead]


def unchanged(axis: ir.Axis, end: str = "") -> Instead:
    made = replace(axis, name=f"{axis.name}{end}") if end else axis
    return Instead(ir.affine(made), (made,), (made,))


def same_with_tiles(tiles: tiling.Tiles, tail: bool) -> Remake:
    """The axis cut into other tiles."""

    def remake(axis: ir.Axis, end: str) -> Instead:
        made = tiling.cut(f"{axis.name}{end}", axis.size, tiles, tail=tail)
        return Instead(ir.affine(made), (made,), (made,))

    return remake


def in_parts(parts: Iterable[tuple[str, int]], tiles: tiling.Tiles) -> Remake:
    """The axis as iterations of neighbours side by side, whose numbers the parts are, the outermost
    first: a fold leaves one result for each of them, and these are folded, the innermost first."""
    listed = list(parts)

    def remake(axis: ir.Axis, end: str) -> Instead:
        total = 1
        for _, size in listed:
            total *= size
        if axis.size % total:
            raise UnsupportedError(f"{total} parts of '{axis}' of {axis.size} are not equally long")
        outer = tiling.cut(f"{axis.name}{end}", axis.size // total, tiles, tail=True)
        at = outer * total
        found = []
        for name, size in listed:
            total //= size
            each = tiling.cut(f"{name}{end}", size, (), dynamic=False)
            at = at + each * total
            found.append(each)
        return Instead(at, (outer, *found), (outer,), tuple(reversed(found)))

    return remake


def program_of(
    computation: Computation,
    remade: Mapping[ir.Axis, Remake] | None = None,
    published: bool = True,
    lines: Mapping[object, Span] | None = None,
) -> ir.Program:
    """The program of a computation, with some axes remade; `lines` are where things were
    written."""
    return _Emission(computation, remade or {}, published, lines or {}).program()


class _Emission:
    def __init__(
        self,
        computation: Computation,
        remade: Mapping[ir.Axis, Remake],
        published: bool,
        lines: Mapping[object, Span],
    ) -> None:
        self.source, self.remade = computation, remade
        self.published = published and not computation.updates
        self.axes: list[ir.Axis] = []
        self.instead: dict[tuple[ir.Axis, int], Instead] = {}
        self.tiles: dict[ir.Axis, tuple[ir.Tile, ...]] = {}
        self.outer: dict[ir.Axis, ir.Dim] = {}
        self.counts: dict[str, int] = {}
        self.made: list[ir.Instruction] = []
        self.values: dict[Key, ir.Instruction] = {}
        self.lines: dict[object, Span] = dict(lines)
        self.where: Span | None = None
        self.users: Mapping[Key, list[Leaf | Stored]] = {}
        for axis in computation.axes:
            self.become(axis, 0)

    def program(self) -> ir.Program:
        wanted: dict[Key, list[Leaf | Stored]] = {}
        for store in self.source.stores:
            self._want(store, store.value, self._ages(store.value, store.access.axes), wanted)
        self._check_used(wanted)
        self.users = wanted
        order: list[tuple[int, Key | Stored]] = [(key[0].number, key) for key in wanted]
        order += [(each.number, each) for each in self.source.stores]
        for _, each in sorted(order, key=lambda pair: pair[0]):
            if isinstance(each, Stored):
                self._store(each)
            elif not self._is_inside(each):
                self._leaf(each)
        instructions = tuple(self.made)
        program = ir.Program(
            self.source.name,
            tuple(self.axes),
            tuple(tile for axis in self.axes for tile in self.tiles[axis]),
            self.source.arrays,
            self.source.parameters,
            instructions,
            communications(instructions),
            self.source,
        )
        check(program, self.lines)
        return program

    # -- axes --------------------------------------------------------------------------------------

    def become(self, axis: ir.Axis, age: int) -> Instead:
        """What an axis is in loops that come after so many others of it."""
        if (axis, age) not in self.instead:
            taken, end = {each.name for each in self.axes}, ""
            if age:
                end = chr(ord("a") + age)
                while f"{axis.name}{end}" in taken:
                    end += end[0]
            made = self.remade.get(axis, unchanged)(axis, end)
            self.instead[axis, age] = made
            for each in made.axes:
                self.axes.append(each)
                self.tiles[each] = tuple(ir.Tile(each, level) for level in range(len(each.tiles)))
                if each.dynamic:
                    self.outer[each] = ir.Dim(f"{each}0", each, None)
        return self.instead[axis, age]

    def _ages(self, value: Value, axes: Iterable[ir.Axis] = ()) -> dict[ir.Axis, int]:
        """How old the loops have to be in which a value is computed."""
        ended = self.source.ended(value)
        every = {*self.source.axes_of(value), *axes}
        return {axis: ended[axis] for axis in every if ended.get(axis)}

    def _key(self, leaf: Leaf, ages: Mapping[ir.Axis, int]) -> Key:
        free = self.source.free(leaf)
        return leaf, tuple((axis, ages[axis]) for axis in self.source.axes
                           if axis in free and ages.get(axis))  # fmt: skip

    def _inner(self, leaf: Leaf, ages: Ages) -> dict[ir.Axis, int]:
        """How old the loops of a leaf are, those that it folds over among them. What is folded
        again in later loops has loops of its own: otherwise these would be around both."""
        own, again = dict(ages), max((age for _, age in ages), default=0)
        if isinstance(leaf, Folded):
            ended = {**self.source.ended(leaf.start)}
            for axis, count in self.source.ended(leaf.value).items():
                ended[axis] = max(ended.get(axis, 0), count)
            for axis in leaf.over:
                age = max(ended.get(axis, 0), again if self.source.is_counted(axis) else 0)
                own |= {axis: age} if age else {}
        return own

    # -- what is needed ----------------------------------------------------------------------------

    def _want(
        self,
        user: Leaf | Stored,
        value: Value,
        ages: Mapping[ir.Axis, int],
        wanted: dict[Key, list[Leaf | Stored]],
    ) -> None:
        for leaf in _leaves(value):
            key = self._key(leaf, ages)
            first = key not in wanted
            wanted.setdefault(key, []).append(user)
            if not first:
                continue
            inner = self._inner(leaf, key[1])
            match leaf:
                case Folded():
                    self._want(leaf, leaf.value, inner, wanted)
                    self._want(leaf, leaf.start, inner, wanted)
                case Kept() | Scanned():
                    self._want(leaf, leaf.value, inner, wanted)
                case Loaded():
                    for named in leaf.access.named:
                        self._want(leaf, named.value, inner, wanted)

    def _check_used(self, wanted: Mapping[Key, object]) -> None:
        used = {leaf for leaf, _ in wanted}
        for leaf in self.source.leaves:
            if leaf not in used:
                raise CheckError(
                    f"'{leaf.name}' is used nowhere",
                    self.lines.get(leaf),
                    "leave it out, or store it",
                )

    def _is_inside(self, key: Key) -> bool:
        """Whether a leaf is part of who uses it: what is stored, and loads that no fold needs."""
        leaf = key[0]
        if self.published:
            return False
        if isinstance(leaf, Kept):
            return leaf.stored
        return isinstance(leaf, Loaded) and not any(
            isinstance(user, Folded | Scanned) for user in self.users[key]
        )

    # -- instructions ------------------------------------------------------------------------------

    def _leaf(self, key: Key) -> None:
        leaf, ages = key
        inner = self._inner(leaf, ages)
        name = leaf.name if not ages else self._fresh(leaf.name)
        self.where = self.lines.get(leaf)
        match leaf:
            case Loaded():
                access = self._access(leaf.access, inner)
                dims = self._loops(name, access.axes)
                access = access.naming(lambda value: self._value(value, dims, inner))
                made = self._add(name, leaf.dtype, dims, ir.Load(access))
            case Kept():
                dims = self._loops(name, self._along(self.source.axes_of(leaf.value), inner))
                made = self._computed(name, leaf.value, dims, inner)
            case Folded():
                made = self._folded(name, leaf, inner)
            case Scanned():
                made = self._scanned(name, leaf, inner)
        self.values[key] = made

    def _store(self, store: Stored) -> None:
        ages = self._ages(store.value, store.access.axes)
        self.where = self.lines.get(store)
        access = self._access(store.access, ages)
        dims = self._loops(store.name, access.axes)
        value = fused(self._value(store.value, dims, ages))
        self._add(store.name, store.access.array.dtype, dims, ir.Store(access, value))

    def _computed(
        self, name: str, value: Value, dims: tuple[ir.Dim, ...], ages: Mapping[ir.Axis, int]
    ) -> ir.Instruction:
        made = fused(self._value(value, dims, ages))
        return self._add(name, dtype_of(value), dims, ir.Compute(made))

    def _scanned(self, name: str, leaf: Scanned, ages: Mapping[ir.Axis, int]) -> ir.Instruction:
        along = self.become(leaf.over, ages.get(leaf.over, 0)).axes
        if len(along) > 1:
            raise UnsupportedError(f"'{leaf.over}' is scanned along, and not cut into parts")
        dims = self._loops(name, self._along(self.source.free(leaf), ages))
        over = tuple(dim for dim in dims if dim.axis is along[0])
        value = fused(self._value(leaf.value, dims, ages))
        return self._add(name, leaf.dtype, dims, ir.Scan(leaf.op, value, over, leaf.exclusive))

    def _folded(self, name: str, leaf: Folded, ages: Mapping[ir.Axis, int]) -> ir.Instruction:
        """One fold; where its axis has parts, the first of several."""
        over = [self.become(axis, ages.get(axis, 0)) for axis in leaf.over]
        first = [axis for one in over for axis in one.iterations]
        rest = [axis for one in over for axis in one.parts]
        inside = self.source.axes_of(leaf.value) | set(leaf.over)
        start = leaf.start if not rest else Number(neutral(leaf.op, leaf.dtype), leaf.dtype)
        every = self._along(inside, ages)

        def summand(dims: tuple[ir.Dim, ...], reduced: tuple[ir.Dim, ...]) -> Value:
            return self._value(leaf.value, dims, ages, reduced)

        made = self._fold(name, leaf, (start, ages), (every, first), summand)
        for at, axis in enumerate(rest):
            before, last = made, at == len(rest) - 1
            begin = leaf.start if last else start

            def result(dims: tuple[ir.Dim, ...], reduced: tuple[ir.Dim, ...],
                       before: ir.Instruction = before) -> Value:  # fmt: skip
                return self._result(before, dims, reduced)

            kept = [each for each in made.axes if each not in {dim.axis for dim in made.over}]
            made = self._fold(self._fresh(_stem(name)), leaf, (begin, ages), (kept, [axis]), result)
        return made

    def _fold(
        self,
        name: str,
        leaf: Folded,
        start: tuple[Value, Mapping[ir.Axis, int]],
        axes: tuple[Iterable[ir.Axis], Iterable[ir.Axis]],
        summand: Callable[[tuple[ir.Dim, ...], tuple[ir.Dim, ...]], Value],
    ) -> ir.Instruction:
        every, over = set(axes[0]), set(axes[1])
        outside = self._loops(f"{name}.start", every - over)
        begun = self._computed(f"{name}.start", start[0], outside, start[1])
        dims = self._loops(name, every | over)
        reduced = tuple(dim for dim in dims if dim.axis in over)
        running = ir.running(begun, _pairs(begun, dims, self.where), reduced)
        value = fused(summand(dims, reduced))
        return self._add(name, leaf.dtype, dims, ir.Compute(folding(leaf.op, value, running)))

    def _add(
        self, name: str, dtype: DType, dims: tuple[ir.Dim, ...], action: ir.Action
    ) -> ir.Instruction:
        whole = ir.Instruction(name, dtype, dims, action)
        made = pieces(whole, self._fresh) if self.published else (whole,)
        self.made += made
        if self.where is not None:
            self.lines |= dict.fromkeys(made, self.where)
        return made[-1]

    def _fresh(self, name: str) -> str:
        """A name that no leaf has."""
        taken = {leaf.name for leaf in self.source.leaves} | {each.name for each in self.made}
        self.counts[name] = self.counts.get(name, 0) + 1
        while f"{name}_{self.counts[name]}" in taken:
            self.counts[name] += 1
        return f"{name}_{self.counts[name]}"

    def _loops(self, name: str, axes: Iterable[ir.Axis]) -> tuple[ir.Dim, ...]:
        """Dimensions for some axes: of their own for tiles, shared outside of these."""
        wanted, found = set(axes), list[ir.Dim]()
        for axis in self.axes:
            if axis in wanted:
                found += [self.outer[axis]] if axis.dynamic else []
                found += [ir.Dim(f"{name}.{tile}", axis, tile) for tile in self.tiles[axis]]
        return tuple(found)

    # -- values ------------------------------------------------------------------------------------

    def _along(
        self, axes: Iterable[ir.Axis], ages: Mapping[ir.Axis, int]
    ) -> list[ir.Axis]:  # fmt: skip
        """The axes that some axes have become."""
        return [each for axis in axes for each in self.become(axis, ages.get(axis, 0)).axes]

    def _linear(self, value: ir.Affine, ages: Mapping[ir.Axis, int]) -> ir.Affine:
        found = ir.Affine(value.offset)
        for axis, factor in value.terms:
            found = found + self.become(axis, ages.get(axis, 0)).at * factor
        return found

    def _expr(self, expr: Expr, ages: Mapping[ir.Axis, int]) -> tuple[Expr, tuple[ir.Axis, ...]]:
        """An expression over the names of axes, and those axes."""
        known = self.source.by_name
        axes = [known[name] for name in sorted(variables(expr)) if name in known]
        instead = {axis: self.become(axis, ages.get(axis, 0)) for axis in axes}
        made = substitute(expr, {axis.name: one.at.expr for axis, one in instead.items()})
        every = (each for one in instead.values() for each in one.axes)
        return made, tuple(dict.fromkeys(every))

    def _subscript(self, given: ir.Subscript, ages: Mapping[ir.Axis, int]) -> ir.Subscript:
        match given:
            case ir.Affine():
                return self._linear(given, ages)
            case ir.Crooked(expr):
                return ir.Crooked(*self._expr(expr, ages))
            case ir.ByData(value, axes):
                return ir.ByData(value, tuple(dict.fromkeys(self._along(axes, ages))))

    def _access(self, access: ir.Access, ages: Mapping[ir.Axis, int]) -> ir.Access:
        """With the axes that its own have become; values as subscripts stay as they are."""
        subscripts = tuple(self._subscript(each, ages) for each in access.subscripts)
        where = access.where
        if where is not None:
            where = ir.Where(*self._expr(where.condition, ages))
        return ir.Access(access.array, subscripts, where, access.other)

    def _value(
        self,
        value: Value,
        dims: tuple[ir.Dim, ...],
        ages: Mapping[ir.Axis, int],
        over: tuple[ir.Dim, ...] = (),
    ) -> Value:
        """A value with instructions, elements and indices for its leaves."""

        def found(each: Value) -> Value:
            match each:
                case Loaded() | Folded() | Scanned() | Kept():
                    key = self._key(each, ages)
                    if key in self.values:
                        return self._result(self.values[key], dims, over)
                    if isinstance(each, Kept):
                        return self._value(each.value, dims, ages, over)
                    assert isinstance(each, Loaded)
                    access = self._access(each.access, ages)
                    access = access.naming(lambda value: self._value(value, dims, ages, over))
                    return ir.Element(each.name, None, each.dtype, access)
                case FromIndex(expr, dtype):
                    made, axes = self._expr(expr, ages)
                    return ir.IndexOf(made, dtype, axes)
                case Choose(condition, then, otherwise) if not isinstance(condition, Compare):
                    return Choose(self._expr(condition, ages)[0], then, otherwise)
            return each

        return map_value(value, lambda expr: expr, found)

    def _result(
        self, made: ir.Instruction, dims: tuple[ir.Dim, ...], over: tuple[ir.Dim, ...]
    ) -> Value:
        return ir.result(made, _pairs(made, dims, self.where), _scope(made, dims, over))


def folding(op: Fold, value: Value, running: ir.Running) -> Value:
    """One step of a fold."""
    return added(running, value) if op == "+" else Operation(op, (running, value))


def fused(value: Value) -> Value:
    """Products that are added become one `fma`, which rounds once."""

    def found(each: Value) -> Value:
        match each:
            case Operation("+", (left, right)):
                return added(left, right)
        return each

    return map_value(value, lambda expr: expr, found)


def _stem(name: str) -> str:
    match = re.fullmatch(r"(.*)_\d+", name)
    return match[1] if match else name


def _pairs(
    producer: ir.Instruction, dims: tuple[ir.Dim, ...], where: Span | None
) -> tuple[tuple[ir.Dim, ir.Dim], ...]:
    """Which dimension of mine goes with each dimension along which a result varies."""
    mine = {dim.tile: dim for dim in dims if dim.tile is not None}
    found = []
    for dim in producer.dims:
        if dim in dims or dim in producer.over:
            continue
        if dim.tile not in mine:
            raise CheckError(
                f"'{producer}' varies along '{dim.axis}', but is used outside its loop",
                where,
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


def _leaves(value: Value) -> list[Leaf]:
    found = (each for each in ir.leaves(value) if isinstance(each, Leaf))
    return list(dict.fromkeys(found))
