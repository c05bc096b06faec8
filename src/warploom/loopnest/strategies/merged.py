"""Sums that are added up later written as one sum: α·Σ A·x + β·Σ B·x is Σ (α·A + β·B)·x; and an
element that is written several times loaded once.

One sum is half the loops of two, and strategies know programs of one fold.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from warploom.kernel.ir import Number, Operation, Value, operands, walk_value
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Folded, Kept, Leaf, Loaded, Scanned


def with_one_sum(given: Computation) -> Computation:
    """The computation with its sums merged; as it is, where that is not the same."""
    folds = [each for each in given.leaves if isinstance(each, Folded)]
    if len(folds) < 2 or not _alike(given, folds):
        return given
    if any(isinstance(each, Scanned) for each in given.leaves) or decided_by_data(given):
        return given  # a sum may be scanned, or say what is loaded
    kept = [each for each in given.leaves if isinstance(each, Kept)]
    users = [each for each in kept if list(_sums_in(each.value, folds))]
    inner = any(part in folds for each in folds for part in walk_value(each.value))
    stored = any(part in folds for each in given.stores for part in walk_value(each.value))
    if len(users) != 1 or inner or stored or not _is_linear(users[0].value, folds):
        return given
    (user,) = users
    if set(_sums_in(user.value, folds)) != set(folds):
        return given
    one = _one(user, folds)
    made = replace(user, value=one)

    def found(each: Value) -> Value:
        return made if each is user else each

    leaves = [made if each is user else each for each in given.leaves if each not in folds]
    stores = [replace(each, value=map_value(each.value, lambda expr: expr, found))
              for each in given.stores]  # fmt: skip
    return replace(given, leaves=(one, *leaves), stores=tuple(stores))


def decided_by_data(given: Computation) -> bool:
    """Whether data say what is loaded."""
    return any(isinstance(each, Loaded) and bool(each.access.named) for each in given.leaves)


def with_one_load(given: Computation) -> Computation:
    """The computation in which equal loads are one."""
    first: dict[Hashable, Loaded] = {}
    instead: dict[Value, Value] = {}
    leaves: list[Leaf] = []

    def found(each: Value) -> Value:
        return instead.get(each, each) if isinstance(each, Leaf) else each

    def again(value: Value) -> Value:
        return map_value(value, lambda expr: expr, found)

    for leaf in given.leaves:
        match leaf:
            case Loaded():
                own = leaf
                if leaf.access.named:
                    own = replace(leaf, access=leaf.access.naming(again))
                made: Leaf = first.setdefault(_what(own.access), own)
            case Folded():
                made = replace(leaf, value=again(leaf.value), start=again(leaf.start))
            case Kept() | Scanned():
                made = replace(leaf, value=again(leaf.value))
        instead[leaf] = made
        leaves.append(made)
    if len(set(leaves)) == len(given.leaves):
        return given
    stores = tuple(replace(each, value=again(each.value)) for each in given.stores)
    return replace(given, leaves=tuple(dict.fromkeys(leaves)), stores=stores)


def _what(access: ir.Access) -> Hashable:
    """Equal for accesses that are the same element everywhere."""
    places = tuple(map(_where, access.subscripts))
    where = None if access.where is None else access.where.condition
    return access.array, places, where, access.other


def _where(subscript: ir.Subscript) -> Hashable:
    match subscript:
        case ir.Affine():
            return subscript.offset, frozenset(subscript.factors.items())
        case ir.Crooked(expr):
            return expr
        case ir.ByData(value):
            return value


def _alike(given: Computation, folds: list[Folded]) -> bool:
    """Whether all are sums of floats from zero over the same axes."""
    kinds = {(given.free(each), each.over) for each in folds}
    plain = all(
        each.op == "+" and each.dtype.is_float
        and isinstance(each.start, Number) and each.start.value == 0
        for each in folds
    )  # fmt: skip
    return len(kinds) == 1 and plain


def _one(user: Kept, folds: list[Folded]) -> Folded:
    """The sum of all; a factor that all have stands once."""
    factors = [
        list(each.value.operands)
        if isinstance(each.value, Operation) and each.value.op == "*" else []
        for each in folds
    ]  # fmt: skip
    common = next((f for f in factors[0] if all(f in own for own in factors)), None)

    def found(each: Value) -> Value:
        if each not in folds:
            return each
        assert isinstance(each, Folded)
        if common is None:
            return each.value
        return next(part for part in operands(each.value) if part != common)

    whole = map_value(user.value, lambda expr: expr, found)
    if common is not None:
        whole = Operation("*", (whole, common))
    return replace(folds[-1], value=whole)


def _sums_in(value: Value, folds: list[Folded]) -> Iterator[Value]:
    return (each for each in walk_value(value) if each in folds)


def _is_linear(value: Value, folds: list[Folded]) -> bool:
    """A sum of multiples of the sums, by numbers that are the same everywhere."""
    if value in folds:
        return True
    if not isinstance(value, Operation):
        return False
    if value.op in ("+", "-", "neg"):
        return all(_is_linear(each, folds) for each in value.operands)
    if value.op != "*":
        return False
    scales = [each for each in value.operands if not list(_sums_in(each, folds))]
    others = [each for each in value.operands if list(_sums_in(each, folds))]
    numbers = all(isinstance(each, Number | ir.Parameter) for each in scales)
    return numbers and len(others) == 1 and _is_linear(others[0], folds)
