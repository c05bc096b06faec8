"""Numbers for each lane, or each thread, as index expressions: the cheapest of a few forms.

>>> from warploom.index.show import show
>>> lane, lanes = Var("lane"), np.arange(32)
>>> show(lane_expression(lanes ^ 5, lane)), show(lane_expression(lanes * 5 % 32, lane))
('lane ^ 5', 'lane * 5 % 32')
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warploom.index.bits import BitMap
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var, lift, operations, select
from warploom.index.laws import simplify
from warploom.layout.cost import Mask
from warploom.layout.evaluate import Numbers
from warploom.layout.facts import as_matrix
from warploom.layout.fragment import LANES


def lane_expression(table: Numbers, lane: Var) -> Expr:
    """What gives `table[lane]`; every table of numbers that are not negative has a form."""
    return _cheapest(table, lane, [*_regular(table, lane), _by_masks(table, lane)])


def lane_condition(truths: Mask, lane: Var) -> Expr:
    """What is true in these lanes."""
    numbers = truths.astype(np.int64)
    forms: list[Expr] = [form.ne(0) for form in _regular(numbers, lane)]
    edges = np.nonzero(np.diff(numbers))[0] + 1
    if len(edges) == 1:
        edge = int(edges[0])
        forms.append(lane.lt(edge) if truths[0] else lane.ge(edge))
    forms.append(_bit(truths, lane).ne(0))
    if truths.all():
        forms.append(lift(1))
    return _cheapest(numbers, lane, forms)


def thread_expression(table: Numbers, thread: Var, lane: Var, warp: Var) -> Expr:
    """What gives `table[warp, lane]`, as a form of the thread, or of lane and warp."""
    warps = len(table)
    if warps == 1:
        return lane_expression(table[0], lane)
    flat = table.ravel()
    forms = list(_regular(flat, thread))
    if forms:
        return _cheapest(flat, thread, forms)
    first = lane_expression(table[0], lane)
    for added, op in ((table[:, :1] - table[0, 0], "+"), (table[:, :1] ^ table[0, 0], "^")):
        whole = table[0] + added if op == "+" else table[0] ^ added
        if (whole == table).all() and added.min() >= 0:
            rest = _of_warps(added[:, 0], warp)
            return simplify(first + rest if op == "+" else first ^ rest)
    result = first
    for number in range(1, warps):
        result = select(warp.eq(number), lane_expression(table[number], lane), result)
    return result


def _of_warps(table: Numbers, warp: Var) -> Expr:
    forms = list(_regular(table, warp))
    if forms:
        return _cheapest(table, warp, forms)
    result: Expr = Const(int(table[0]))
    for number in range(1, len(table)):
        result = select(warp.eq(number), int(table[number]), result)
    return result


def _cheapest(table: Numbers, var: Var, forms: list[Expr]) -> Expr:
    """Of the forms that are right everywhere the one with the fewest operations."""
    bounds = {var.name: (0, len(table) - 1)}
    numbers = np.arange(len(table), dtype=np.int64)
    right = []
    for form in (simplify(form, bounds) for form in forms):
        found = np.asarray(evaluate(form, {var.name: numbers}), dtype=np.int64)
        if (np.broadcast_to(found, table.shape) == table).all():
            right.append(form)
    return min(right, key=operations)


def _regular(table: Numbers, var: Var) -> Iterator[Expr]:
    """Constant, a · n + b, that modulo the size, or linear over F2."""
    size, start = len(table), int(table[0])
    if (table == start).all():
        yield Const(start)
        return
    numbers, step = np.arange(size), int(table[1] - table[0]) if size > 1 else 0
    if (numbers * step + start == table).all():
        yield var * step + start
    for modulus in {size, LANES, int(table.max()) + 1}:
        if ((numbers * step + start) % modulus == table).all():
            yield (var * (step % modulus) + start) % modulus
    if size & (size - 1) == 0 and table.min() >= 0:
        matrix = as_matrix(table)
        if matrix is not None:
            bits = max(c.bit_length() for c in (*matrix.columns, matrix.offset, 1))
            yield BitMap(matrix.columns, matrix.offset, bits, (len(matrix.columns),)).expression(
                var
            )


def _by_masks(table: Numbers, lane: Var) -> Expr:
    """Bit by bit: a mask has, for each lane, that bit of its number."""
    result: Expr = Const(0)
    for bit in range(int(table.max()).bit_length()):
        truths = (table >> bit & 1).astype(np.bool_)
        if truths.any():
            result = result + (_bit(truths, lane) << bit if bit else _bit(truths, lane))
    return result


def _bit(truths: Mask, lane: Var) -> Expr:
    """1 in these lanes, else 0, by a mask; one whose highest bit is set would not be an int, so
    that of the other lanes is taken instead."""
    upside_down = bool(truths[-1]) and len(truths) == LANES
    mask = sum(1 << place for place, each in enumerate(truths.tolist()) if each != upside_down)
    taken = Const(mask) >> lane & 1
    return 1 - taken if upside_down else taken
