"""Tables of numbers as index expressions: the cheapest of a few forms that is right everywhere.

Axis n of a table is the nth variable, which counts from 0. Tables are small, so that a form equals
one is decided by evaluating it in every cell; what comes back is never merely similar.

    >>> from warploom.index.show import show
    >>> lane, lanes = Var("lane"), np.arange(32)
    >>> show(lane_expression(lanes ^ 5, lane)), show(lane_expression(lanes * 5 % 32, lane))
    ('lane ^ 5', 'lane * 5 % 32')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.index.bits import from_table
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, BinaryOp, Const, Expr, Var, lift, operations, select
from warploom.index.laws import simplify

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_INT_BITS = 32  # of a mask that is written down


def tabulated(
    expr: Expr, sizes: Mapping[str, int], looked_up: Mapping[str, tuple[str, Ints]] | None = None
) -> Ints:
    """The expression everywhere. `looked_up` are variables that stand for what a table has at
    another variable."""
    grid: dict[str, Ints] = dict(zip(sizes, np.ogrid[*map(slice, sizes.values())], strict=True))
    grid |= {name: table[grid[at]] for name, (at, table) in (looked_up or {}).items()}
    return np.broadcast_to(np.asarray(evaluate(expr, grid), np.int64), tuple(sizes.values()))


def fitting(
    forms: Iterable[Expr], sizes: Mapping[str, int], fits: Callable[[Ints], bool]
) -> Iterator[Expr]:
    """The forms whose tables are as they should be."""
    return (form for form in forms if fits(tabulated(form, sizes)))


def cheapest(
    forms: Iterable[Expr], sizes: Mapping[str, int], fits: Callable[[Ints], bool]
) -> Expr | None:
    """The form with the fewest operations among those with the right table."""
    return min(fitting(forms, sizes, fits), key=operations, default=None)


# -- what a table is -------------------------------------------------------------------------------


def affine(table: Ints, matters: Mask | None = None) -> tuple[list[int], int] | None:
    """By how much a table grows along each axis, and its constant, if it is a sum of multiples on
    the cells that matter; along an axis without two neighbours it does not grow.

    >>> affine(np.array([[1, 3], [11, 13]]))
    ([10, 2], 1)
    """
    where = np.ones(table.shape, np.bool_) if matters is None else matters
    if not where.any():
        return None
    factors = [_step(np.moveaxis(table, n, 0), np.moveaxis(where, n, 0)) for n in range(table.ndim)]
    axes = np.ogrid[*map(slice, table.shape)]
    rest = (table - sum(f * axis for f, axis in zip(factors, axes, strict=True)))[where]
    return (factors, int(rest[0])) if (rest == rest[0]).all() else None


def _step(table: Ints, where: Mask) -> int:
    near = where[1:] & where[:-1]
    return int(np.diff(table, axis=0)[near][0]) if near.any() else 0


def compared(values: Ints, mask: Mask) -> tuple[BinaryOp, int] | None:
    """`values ⋈ c` that holds exactly where the mask does."""
    inside, outside = values[mask], values[~mask]
    if not len(inside) or not len(outside):
        return None
    if inside.max() < outside.min():
        return "<", int(outside.min())
    if inside.min() > outside.max():
        return ">=", int(inside.min())
    if (inside == inside[0]).all() and not (outside == inside[0]).any():
        return "==", int(inside[0])
    if (outside == outside[0]).all() and not (inside == outside[0]).any():
        return "!=", int(outside[0])
    return None


# -- numbers of lanes and threads ------------------------------------------------------------------


def lane_expression(table: Ints, lane: Var) -> Expr:
    """What gives `table[lane]`; every table of numbers that are not negative has a form."""
    return _cheapest(table, lane, [*_regular(table, lane, len(table)), _by_masks(table, lane)])


def lane_condition(truths: Mask, lane: Var) -> Expr:
    """What is true in these lanes."""
    numbers = truths.astype(np.int64)
    forms: list[Expr] = [form.ne(0) for form in _regular(numbers, lane, len(numbers))]
    found = compared(np.arange(len(truths)), truths)
    if found is not None and found[0] in ("<", ">="):
        forms.append(Binary(found[0], lane, Const(found[1])))
    forms.append(_bit(truths, lane).ne(0))
    if truths.all():
        forms.append(lift(1))
    return _cheapest(numbers, lane, forms)


def thread_expression(table: Ints, thread: Var, lane: Var, warp: Var) -> Expr:
    """What gives `table[warp, lane]`, as a form of the thread, or of lane and warp."""
    warps, lanes = table.shape
    if warps == 1:
        return lane_expression(table[0], lane)
    flat = table.ravel()
    forms = list(_regular(flat, thread, lanes))
    if forms:
        return _cheapest(flat, thread, forms)
    first = lane_expression(table[0], lane)
    for added, op in ((table[:, :1] - table[0, 0], "+"), (table[:, :1] ^ table[0, 0], "^")):
        whole = table[0] + added if op == "+" else table[0] ^ added
        if (whole == table).all() and added.min() >= 0:
            rest = _of_warps(added[:, 0], warp, lanes)
            return simplify(first + rest if op == "+" else first ^ rest)
    return _by_number(warp, [first, *(lane_expression(each, lane) for each in table[1:])])


def _of_warps(table: Ints, warp: Var, lanes: int) -> Expr:
    forms = list(_regular(table, warp, lanes))
    return _cheapest(table, warp, forms) if forms else _by_number(warp, table.tolist())


def _by_number(var: Var, cases: list[Expr | int]) -> Expr:
    """One of the cases, by the number of it."""
    result = lift(cases[0])
    for number, case in enumerate(cases[1:], 1):
        result = select(var.eq(number), case, result)
    return result


def _cheapest(table: Ints, var: Var, forms: list[Expr]) -> Expr:
    simple = (simplify(form, {var.name: (0, len(table) - 1)}) for form in forms)
    found = cheapest(simple, {var.name: len(table)}, partial(np.array_equal, table))
    assert found is not None, "one of the forms is right by construction"
    return found


def _regular(table: Ints, var: Var, lanes: int) -> Iterator[Expr]:
    """Constant, a · n + b, that modulo the size, or linear over F2."""
    size, start = len(table), int(table[0])
    if (table == start).all():
        yield Const(start)
        return
    numbers, step = np.arange(size), int(table[1] - table[0]) if size > 1 else 0
    if affine(table) is not None:
        yield var * step + start
    for modulus in {size, lanes, int(table.max()) + 1}:
        if ((numbers * step + start) % modulus == table).all():
            yield (var * (step % modulus) + start) % modulus
    found = from_table(table, (size.bit_length() - 1,))
    if found is not None:
        yield found.expression(var)


def _by_masks(table: Ints, lane: Var) -> Expr:
    """Bit by bit: a mask has, for each lane, that bit of its number."""
    result: Expr = Const(0)
    for bit in range(int(table.max()).bit_length()):
        truths = (table >> bit & 1).astype(np.bool_)
        if truths.any():
            result = result + (_bit(truths, lane) << bit if bit else _bit(truths, lane))
    return result


def _bit(truths: Mask, lane: Expr) -> Expr:
    """1 in these lanes, else 0, by a mask; one whose highest bit is set would not be an int, so
    that of the other lanes is taken instead. Of more lanes than an int has bits, each half has a
    mask of its own."""
    if len(truths) > _INT_BITS:
        place = lane % _INT_BITS
        low, high = _bit(truths[:_INT_BITS], place), _bit(truths[_INT_BITS:], place)
        return select(lane.ge(_INT_BITS), high, low)
    upside_down = bool(truths[-1]) and len(truths) == _INT_BITS
    mask = sum(1 << place for place, each in enumerate(truths.tolist()) if each != upside_down)
    taken = Const(mask) >> lane & 1
    return 1 - taken if upside_down else taken
