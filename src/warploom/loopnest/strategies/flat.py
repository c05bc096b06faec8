"""Several axes of a product written as one: a convolution is a product of its windows with its
kernels, in which nothing is copied.

    y[h, w, k] = Σ x[h + r, w + s, c]·g[k, r, s, c] over r, s, c
    →   y[p, k] = Σ x[p // W + t // (S·C), p % W + t // C % S, t % C]·g[k, t] over t

Axes of the sum become one, and axes that one factor alone has. An array that is only looked at
along whole rows of these is seen as a longer row; otherwise subscripts are quotients and
remainders.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from warploom.errors import InternalError
from warploom.index.ir import Expr, Var, substitute
from warploom.index.laws import simplify
from warploom.kernel.ir import Choose, Compare, FromIndex, Operation, Value, walk_value
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Folded, Kept, Leaf, Loaded, Scanned
from warploom.loopnest.strategies.merged import decided_by_data


@dataclass(frozen=True, eq=False)
class Merged:
    """Axes as one, the innermost last."""

    parts: tuple[ir.Axis, ...]

    @cached_property
    def axis(self) -> ir.Axis:
        name = "_".join(each.name for each in self.parts)
        return ir.Axis(name, math.prod(each.size for each in self.parts), tail=True)

    @cached_property
    def digits(self) -> Mapping[str, Expr]:
        """What each of the axes is."""
        found: dict[str, Expr] = {}
        below, index = 1, Var(self.axis.name)
        for at, each in reversed(list(enumerate(self.parts))):
            digit = index // below if below > 1 else index
            found[each.name] = digit % each.size if at else digit
            below *= each.size
        return found

    def factor(self, factors: Mapping[ir.Axis, int]) -> int | None:
        """By how much a place moves along the whole, if always by the same."""
        step = own = factors.get(self.parts[-1], 0)
        for each in reversed(self.parts):
            if factors.get(each, 0) != step:
                return None
            step *= each.size
        return own


def flattened(given: Computation, free: bool) -> Computation:
    """The computation with fewer axes; as it is, if it is no product, or all its axes are needed.
    Unless they are `free`, axes with tiles stay."""
    folds = [each for each in given.leaves if isinstance(each, Folded)]
    if len(folds) != 1 or len(given.stores) != 1 or given.updates or given.held:
        return given
    if any(isinstance(each, Scanned) for each in given.leaves) or decided_by_data(given):
        return given
    (fold,), (store,) = folds, given.stores
    factors = _factors(fold)
    if factors is None or _outside(given, fold) & set(fold.over):
        return given
    a, b = (given.free(each) for each in factors)
    near = _steps(store.access)
    groups = [_chain(sorted(side, key=lambda axis: near.get(axis, 0)), near)
              for side in (a - b, b - a)]  # fmt: skip
    groups.append(_summed(fold, factors))
    merged = [
        Merged(tuple(group)) for group in groups
        if len(group) > 1 and (free or not any(each.tiles for each in group))
    ]  # fmt: skip
    return _Flat(given, merged).computation() if merged else given


def _factors(fold: Folded) -> tuple[Loaded, Loaded] | None:
    match fold.value:
        case Operation("*", (Loaded() as a, Loaded() as b)) if a is not b and fold.op == "+":
            return a, b
    return None


def _outside(given: Computation, fold: Folded) -> set[ir.Axis]:
    """The axes of all that the sum is not of."""
    inside = set(walk_value(fold.value))
    found = {axis for each in given.stores for axis in each.access.axes}
    for leaf in given.leaves:
        if leaf is not fold and leaf not in inside:
            found |= given.free(leaf)
    return found


def _steps(access: ir.Access) -> Mapping[ir.Axis, int]:
    return {axis: abs(step) for axis, step in access.steps.items() if step}


def _chain(axes: Sequence[ir.Axis], steps: Mapping[ir.Axis, int]) -> list[ir.Axis]:
    """The axes that are whole rows of each other in what is stored, from the innermost on."""
    found: list[ir.Axis] = []
    for axis in axes:
        if axis not in steps or (found and steps[axis] != steps[found[0]] * found[0].size):
            break
        found.insert(0, axis)
    return found


def _summed(fold: Folded, factors: tuple[Loaded, Loaded]) -> list[ir.Axis]:
    """The axes of a sum as they lie in a factor in which they are whole rows of each other."""
    for each in factors:
        steps = _steps(each.access)
        found = _chain(sorted(fold.over, key=lambda axis: steps.get(axis, 0)), steps)
        if each.access.is_linear and len(found) == len(fold.over):
            return found
    return list(fold.over)


class _Flat:
    """A computation written again."""

    def __init__(self, given: Computation, merged: Sequence[Merged]) -> None:
        self.given, self.merged = given, merged
        self.inside = {axis: each for each in merged for axis in each.parts}
        self.digits = {name: expr for each in merged for name, expr in each.digits.items()}
        self.instead: dict[Value, Value] = {}
        self.arrays = {array: self._array(array) for array in given.arrays}

    def computation(self) -> Computation:
        given = self.given
        leaves = []
        for leaf in given.leaves:
            self.instead[leaf] = made = self._leaf(leaf)
            leaves.append(made)
        stores = tuple(
            replace(each, access=self._access(each.access), value=self._value(each.value))
            for each in given.stores
        )
        return replace(
            given, axes=self._axes(given.axes), arrays=tuple(self.arrays.values()),
            leaves=tuple(leaves), stores=stores,
        )  # fmt: skip

    def _leaf(self, leaf: Leaf) -> Leaf:
        match leaf:
            case Loaded():
                return replace(leaf, access=self._access(leaf.access))
            case Folded():
                value, start = self._value(leaf.value), self._value(leaf.start)
                return replace(leaf, value=value, start=start, over=self._axes(leaf.over))
            case Kept():
                return replace(leaf, value=self._value(leaf.value))
            case Scanned():
                raise InternalError("a computation with scans is not written with fewer axes")

    def _axes(self, axes: Sequence[ir.Axis]) -> tuple[ir.Axis, ...]:
        instead = (self.inside[a].axis if a in self.inside else a for a in axes)
        return tuple(dict.fromkeys(instead))

    def _expr(self, expr: Expr) -> Expr:
        return simplify(substitute(expr, self.digits))

    def _value(self, value: Value) -> Value:
        def found(each: Value) -> Value:
            match each:
                case Loaded() | Folded() | Kept():
                    return self.instead[each]
                case FromIndex(expr, dtype):
                    return FromIndex(self._expr(expr), dtype)
                case Choose(condition, then, otherwise) if not isinstance(condition, Compare):
                    return Choose(self._expr(condition), then, otherwise)
            return each

        return map_value(value, lambda expr: expr, found)

    # -- memory ------------------------------------------------------------------------------------

    def _array(self, array: ir.Array) -> ir.Array:
        """The array as one row, where all that is loaded or stored of it is linear in it."""
        if all(self._linear(each.place) for each in self._accesses(array) if each.is_linear) and (
            all(each.is_linear for each in self._accesses(array))
        ):
            return replace(array, shape=(array.elements,), strides=(1,))
        return array

    def _accesses(self, array: ir.Array) -> Iterator[ir.Access]:
        loads = (each.access for each in self.given.leaves if isinstance(each, Loaded))
        every = (*loads, *(each.access for each in self.given.stores))
        return (each for each in every if each.array is array)

    def _linear(self, place: ir.Affine) -> ir.Affine | None:
        """The same place along the new axes."""
        terms = [(a, f) for a, f in place.factors.items() if a not in self.inside]
        for each in self.merged:
            factor = each.factor(place.factors)
            if factor is None:
                return None
            terms += [(each.axis, factor)] if factor else []
        return ir.Affine(place.offset, tuple(terms))

    def _access(self, access: ir.Access) -> ir.Access:
        array = self.arrays[access.array]
        if array is not access.array:
            place = self._linear(access.place)
            assert place is not None
            subscripts: tuple[ir.Subscript, ...] = (place,)
        else:
            subscripts = tuple(map(self._subscript, access.subscripts))
        where = access.where
        if where is not None:
            where = ir.Where(self._expr(where.condition), self._axes(where.axes))
        return ir.Access(array, subscripts, where, access.other)

    def _subscript(self, subscript: ir.Subscript) -> ir.Subscript:
        assert not isinstance(subscript, ir.ByData)
        if isinstance(subscript, ir.Affine):
            linear = self._linear(subscript)
            if linear is not None:
                return linear
        axes = tuple(subscript.factors) if isinstance(subscript, ir.Affine) else subscript.axes
        return ir.Crooked(self._expr(subscript.expr), self._axes(axes))
