"""A fold in two computations, one after the other: parts of it, then these put together.

    C[i, j] = f(Σ A[i, k]·B[k, j] over k)   →   P[z, i, j] = Σ A[i, z·l + k]·B[z·l + k, j] over k
                                               C[i, j] = f(Σ P[z, i, j] over z)

Each block of the first has a part, and the end of that kernel stands between the two: no block
waits for another. Parts are put together in one order, so the same numbers give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.index.ir import Expr, substitute
from warploom.kernel.ir import Number, Value, walk_value
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir, tiling
from warploom.loopnest.computation import Computation, Folded, Kept, Leaf, Loaded, Stored
from warploom.loopnest.fold import neutral


class NotPartedError(Exception):
    """A computation has no such two; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """`parts` stores what `after` loads, in the array `between`, which no user sees."""

    parts: Computation
    after: Computation
    between: ir.Array


def parted(given: Computation, count: int) -> Parted:
    """Its only fold in so many parts of one length."""
    fold, over = _fold_of(given)
    if over.size % count:
        raise NotPartedError(f"'{over}' of {over.size} has no {count} parts of one length")
    name = _fresh("share", {axis.name for axis in given.axes})
    part, unrolled = tiling.cut(name, count, ()), tiling.cut(name, count, (), dynamic=False)
    inner = replace(over, size=over.size // count, tiles=(), tail=True)
    rest = _along(given, fold)
    arrays = {each.name for each in given.arrays} | {each.name for each in given.parameters}
    between = _rows(_fresh("shares", arrays), fold, (part, *rest))
    put, got = (
        ir.Access(between, tuple(map(ir.affine, (axis, *rest)))) for axis in (part, unrolled)
    )
    first = _first(given, fold, _Cut(over, part, inner), put)
    return Parted(first, _second(given, fold, unrolled, got), between)


def _fold_of(given: Computation) -> tuple[Folded, ir.Axis]:
    folds = [each for each in given.leaves if isinstance(each, Folded)]
    if len(folds) != 1 or len(folds[0].over) != 1:
        raise NotPartedError("it is no single fold over one axis")
    (fold,), (over,) = folds, folds[0].over
    leaves = [each for each in walk_value(fold.value) if isinstance(each, Loaded | Folded | Kept)]
    plain = all(isinstance(each, Loaded) for each in leaves)
    if any(isinstance(each, Loaded) and each.access.named for each in given.leaves):
        raise NotPartedError("data decide what is loaded")
    if not plain or given.axes_of(fold.value) - {over} != given.free(fold):
        raise NotPartedError("what is folded is more than loads")
    again = any(over in store.access.axes for store in given.stores)
    if again or given.updates or over in given.held:
        raise NotPartedError(f"what is folded over '{over}' is used along it, or stored in place")
    return fold, over


def _along(given: Computation, fold: Folded) -> list[ir.Axis]:
    """The axes of the result, that of neighbours in what is stored last."""
    factors = given.stores[0].access.place.factors
    own = given.in_order(given.free(fold))
    return sorted(own, key=lambda axis: -abs(factors.get(axis, 1 << 62)))


def _rows(name: str, fold: Folded, axes: tuple[ir.Axis, ...]) -> ir.Array:
    shape = tuple(axis.size for axis in axes)
    strides = tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
    return ir.Array(name, fold.dtype, shape, strides)


def _fresh(name: str, taken: set[str]) -> str:
    return name if name not in taken else _fresh(f"{name}_", taken)


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """An axis as parts of a length: `over` = `part`·length + `inner`."""

    over: ir.Axis
    part: ir.Axis
    inner: ir.Axis

    @property
    def at(self) -> ir.Affine:
        return self.part * self.inner.size + self.inner

    def access(self, access: ir.Access) -> ir.Access:
        """The same element."""
        where = access.where
        if where is not None:
            where = ir.Where(*self._expr(where.condition, where.axes))
        return replace(access, subscripts=tuple(map(self._subscript, access.subscripts)),
                       where=where)  # fmt: skip

    def _subscript(self, given: ir.Subscript) -> ir.Subscript:
        if isinstance(given, ir.Crooked):
            return ir.Crooked(*self._expr(given.expr, given.axes))
        assert isinstance(given, ir.Affine)  # what data decide has no parts
        factor = given.factors.get(self.over, 0)
        others = tuple((axis, f) for axis, f in given.terms if axis is not self.over)
        return ir.Affine(given.offset, others) + self.at * factor

    def _expr(self, expr: Expr, axes: tuple[ir.Axis, ...]) -> tuple[Expr, tuple[ir.Axis, ...]]:
        """An expression over the names of axes; the inner axis has the name of the whole."""
        if self.over not in axes:
            return expr, axes
        others = (axis for axis in axes if axis is not self.over)
        return substitute(expr, {self.over.name: self.at.expr}), (self.part, self.inner, *others)


def _first(given: Computation, fold: Folded, cut: _Cut, there: ir.Access) -> Computation:
    """Every part of the fold."""
    loads = [each for each in walk_value(fold.value) if isinstance(each, Loaded)]
    known: dict[Value, Value] = {}
    leaves: list[Leaf] = []
    for each in dict.fromkeys(loads):
        known[each] = made = replace(each, access=cut.access(each.access))
        leaves.append(made)
    start = Number(neutral(fold.op, fold.dtype), fold.dtype)
    value = _with(fold.value, known)
    parts = replace(fold, value=value, over=(cut.inner,), start=start)
    axes = [each for each in given.axes if each in given.free(fold) or each is cut.over]
    new = [part for axis in axes for part in ((cut.inner,) if axis is cut.over else (axis,))]
    read = {each.access.array for each in loads}
    arrays = (*(each for each in given.arrays if each in read), there.array)
    numbers = tuple(each for each in given.parameters if each in set(walk_value(value)))
    store = Stored(f"store_{there.array}", fold.number + 1, there, parts)
    return Computation(
        f"{given.name}_parts", (cut.part, *new), arrays, numbers, (*leaves, parts), (store,)
    )


def _second(given: Computation, fold: Folded, part: ir.Axis, there: ir.Access) -> Computation:
    """All else, with the parts put together for the fold."""
    # Leaves become instructions in the order of their numbers.
    loaded = Loaded(f"{there.array}_1", None, fold.dtype, fold.number - 1, there)
    made = replace(fold, value=loaded, over=(part,))
    inner = {each for each in walk_value(fold.value) if isinstance(each, Loaded)}
    known: dict[Value, Value] = {fold: made}
    leaves: list[Leaf] = []
    for leaf in given.leaves:
        if leaf is fold:
            leaves += [loaded, made]
        elif leaf not in inner or _is_used(given, leaf, fold):
            again = (
                replace(leaf, value=_with(leaf.value, known)) if isinstance(leaf, Kept) else leaf
            )
            known[leaf] = again
            leaves.append(again)
    stores = tuple(replace(each, value=_with(each.value, known)) for each in given.stores)
    whole = [each.value for each in stores] + [e.value for e in leaves if isinstance(e, Kept)]
    named = {each for value in (*whole, made.start) for each in walk_value(value)}
    read = {each.access.array for each in leaves if isinstance(each, Loaded)}
    written = {each.access.array for each in stores}
    free = tuple(each for each in given.axes if each not in fold.over)
    return replace(
        given,
        name=f"{given.name}_after",
        axes=(part, *free),
        arrays=(there.array, *(each for each in given.arrays if each in read | written)),
        parameters=tuple(each for each in given.parameters if each in named),
        leaves=tuple(leaves),
        stores=stores,
    )


def _is_used(given: Computation, leaf: Leaf, fold: Folded) -> bool:
    """Whether somebody beside the fold uses a leaf."""
    return any(leaf in set(walk_value(value)) for value in _others(given, fold))


def _others(given: Computation, fold: Folded) -> Iterator[Value]:
    yield from (each.value for each in given.stores)
    yield from (each.value for each in given.leaves if isinstance(each, Kept))
    yield fold.start


def _with(value: Value, known: Mapping[Value, Value]) -> Value:
    return map_value(value, lambda expr: expr, lambda each: known.get(each, each))
