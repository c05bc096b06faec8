"""What may fill a hole of a SIMT sketch, in the three spaces of the Swizzle Inventor paper.

    swizzle    g·⌊i/g⌋ + (cf·j + (⌊j/df⌋ + cr·k + ⌊k/dr⌋ + c) [mod g/df if wrap]) mod g, where
               j = i mod g. Spaces 1 and 2: one group, no wrap, no ⌊j/df⌋, no ⌊k/dr⌋.
    condition  true, false, or x ⋈ c ± y. Space 1: c = 0; else also ±1 and ± the hole's constants.
    partition  part 0 if a condition holds, else part 1 if another does, …, else the last part

A choice is a row of parameters that means something at every size; `Candidates` holds the distinct
functions they give at one size, `lifted` the rows that a choice at one size may be at another.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.ir import Binary, BinaryOp, Const, Expr, Var, select
from warploom.index.laws import simplify
from warploom.sketch.holes.common import distinct
from warploom.sketch.simt.ir import Hole

Rows: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[Any]  # [rows, points of the grid of the hole's variables]

SPACES = (1, 2, 3)
_OPERATORS: tuple[BinaryOp, ...] = ("<", ">=", ">", "<=", "==", "!=")
_TRUE, _FALSE = 6, 7
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The distinct functions a hole may be: row i of `rows` gives `values[i]` over the grid."""

    hole: Hole
    rows: Rows
    values: Values

    def __len__(self) -> int:
        return len(self.rows)

    def expression(self, choice: int) -> Expr:
        """The function over the hole's variables, as short as we can write it."""
        return expression(self.hole, self.rows[choice])


def candidates(hole: Hole, space: int) -> Candidates:
    """All distinct functions of a hole in a space, the simplest row standing for each."""
    if space not in SPACES:
        raise CheckError(f"there is no space {space}", advice="spaces are 1, 2 and 3")
    if hole.kind == "swizzle":
        rows = _swizzle_rows(hole, grouped=space == 3)
    else:
        rows = _condition_rows(hole, constants=space > 1)
        if hole.kind == "partition":
            rows = _partition_rows(hole, rows)
    return reduced(hole, rows)


def reduced(hole: Hole, rows: Rows) -> Candidates:
    """The distinct functions of these rows, in order of first occurrence."""
    values = values_of(hole, rows)
    first, _ = distinct(values)
    return Candidates(hole, rows[first], values[first])


def values_of(hole: Hole, rows: Rows) -> Values:
    """What each row gives over the grid of the hole's variables."""
    _afford(hole, len(rows))
    if hole.kind == "swizzle":
        return _swizzle_values(hole, rows)
    if hole.kind == "condition":
        return _masks(hole, rows).astype(np.uint8)
    return _part_values(hole, rows)


def _afford(hole: Hole, choices: int) -> None:
    if choices * (math.prod(hole.extents) + 16) * 8 > _MOST_BYTES:
        raise CheckError(
            f"hole '{hole.name}' has {choices} choices, too many for its size",
            advice="sketch a smaller warp and re-instantiate the fill, or search a smaller space",
        )


def expression(hole: Hole, row: Rows) -> Expr:
    ranges = {v: (0, n - 1) for v, n in zip(hole.variables, hole.extents, strict=True)}
    if hole.kind == "swizzle":
        return simplify(_swizzle_expression(hole, row), ranges)
    if hole.kind == "condition":
        return simplify(_condition_expression(hole, row), ranges)
    result: Expr = Const(hole.size - 1)
    parts = row.reshape(-1, 5)
    for part in reversed(range(hole.size - 1)):
        condition = simplify(_condition_expression(hole, parts[part]), ranges)
        result = simplify(select(condition, part, result), ranges)
    return result


def lifted(small: Hole, row: Rows, large: Hole) -> Candidates:
    """The functions at the larger size that a choice at the smaller size may stand for."""
    if small.kind == "swizzle":
        return reduced(large, _swizzle_lifts(small, row, large))
    rows = _condition_rows(small, constants=True)
    rows = rows[rows[:, 4] < len(_constants(large))]
    if large.size > small.size:
        return Candidates(large, rows[:0], np.zeros((0, math.prod(large.extents)), np.uint8))
    masks = _masks(small, rows)
    reached = np.ones(masks.shape[1], bool)
    options = []
    for part in row.reshape(-1, 5)[: large.size - 1]:
        mask = _masks(small, part[None])[0]
        # What a condition says matters only where no earlier one holds.
        options.append(rows[((masks == mask) | ~reached).all(axis=1)])
        reached &= ~mask
    kept = [each[reduced_rows(large, each)] for each in options]
    joined = [np.concatenate([*each, row[:0]]) for each in itertools.product(*kept)]
    return reduced(large, np.array(joined))


def reduced_rows(hole: Hole, rows: Rows) -> npt.NDArray[np.intp]:
    """The first row for each distinct condition."""
    return distinct(_masks(hole, rows))[0]


# -- swizzles: columns group, df, wrap, cf, cr, dr, c


def _second(hole: Hole) -> int:
    return hole.extents[1] if len(hole.extents) > 1 else 1


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _swizzle_rows(hole: Hole, grouped: bool) -> Rows:
    size, second = hole.size, _second(hole)
    coprime = sum(math.gcd(n, size) == 1 for n in range(size))
    _afford(hole, (coprime + 1) * size * (size if second > 1 else 1))
    slow = [d for d in _divisors(second) if 1 < d < second] if grouped else []
    blocks = []
    for group in _divisors(size) if grouped else [size]:
        for dr in (second, *slow):
            factors = np.arange(group)
            rates = factors if second > 1 else factors[:1]
            # A permutation (co-prime fanning) or a broadcast; anything else loses elements.
            fans = factors[(np.gcd(factors, group) == 1) | (factors == 0)]
            blocks.append(_product([group], [group], [0], fans, rates, [dr], factors))
            for common in _divisors(group)[1:-1] if grouped else []:
                fans = factors[np.gcd(factors, group) == common]
                df = group // common
                blocks.append(_product([group], [df], [0], fans, rates, [dr], factors))
                inner = np.arange(common)
                few = inner if second > 1 else inner[:1]
                blocks.append(_product([group], [df], [1], fans, few, [dr], inner))
    rows = np.concatenate([block for block in blocks if len(block)])
    return rows[np.argsort(_swizzle_cost(rows, size, second), kind="stable")]


def _product(*columns: Any) -> Rows:
    return np.stack([g.ravel() for g in np.meshgrid(*columns, indexing="ij")], axis=1)


def _swizzle_cost(rows: Rows, size: int, second: int) -> npt.NDArray[np.int64]:
    """Roughly the operations of a row's expression; constants near zero are simpler."""
    group, df, wrap, cf, cr, dr, c = rows.T
    near = np.minimum(rows[:, 3:5], group[:, None] - rows[:, 3:5])
    cost = 40 * ((group < size) + (df < group) + wrap + (dr < second))
    cost = (
        cost
        + 10 * ((cf != 0).astype(np.int64) + (cr != 0) + (c != 0))
        + 10 * (near > 1).sum(axis=1)
    )
    return cost + near.sum(axis=1) + np.minimum(c, group - c)  # type: ignore[no-any-return]


def _swizzle_values(hole: Hole, rows: Rows) -> Values:
    second = _second(hole)
    bound = hole.size * (hole.size + second + 2)
    kind: Any = np.int16 if bound < 1 << 15 else np.int32
    grid = np.indices((hole.extents[0], second)).reshape(2, -1).astype(kind)
    i: Values = grid[0]
    k: Values = grid[1]
    out = np.empty((len(rows), len(i)), kind)
    shapes, which = np.unique(rows[:, [0, 1, 2, 5]], axis=0, return_inverse=True)
    for number, (group, df, wrap, dr) in enumerate(shapes.astype(kind)):
        mine = np.flatnonzero(which.reshape(-1) == number)
        cf, cr, c = (rows[mine, column, None].astype(kind) for column in (3, 4, 6))
        inner = i % group
        turn = cr * k
        turn += c
        if dr < second:
            turn += k // dr
        if df < group:
            turn += inner // df
        if wrap:
            turn %= group // df
        turn += cf * inner
        turn %= group
        turn += i // group * group
        out[mine] = turn
    return out.astype(np.min_scalar_type(hole.size)) if hole.size < 256 else out


def _swizzle_expression(hole: Hole, row: Rows) -> Expr:
    group, df, wrap, cf, cr, dr, c = (int(n) for n in row)
    i = Var(hole.variables[0])
    k: Expr = Var(hole.variables[1]) if len(hole.variables) > 1 else Const(0)
    inner = i % group if group < hole.extents[0] else i
    turns = group // df if wrap else group
    turn = _plain(cr, turns) * k + _plain(c, turns)
    if dr < _second(hole):
        turn = turn + k // dr
    if df < group:
        turn = turn + inner // df
    if wrap:
        turn = turn % turns
    body = (_plain(cf, group) * inner + turn) % group
    return body if group >= hole.extents[0] else body + i // group * group


def _near(factor: int, modulus: int) -> int:
    """The residue of least size: 31 modulo 32 is −1."""
    factor %= modulus
    return factor - modulus if 2 * factor > modulus else factor


def _plain(factor: int, modulus: int) -> int:
    """The residue that is cheapest to compute with: modulo 2ⁿ a negative one is free."""
    return _near(factor, modulus) if modulus & (modulus - 1) == 0 else factor % modulus


def _swizzle_lifts(small: Hole, row: Rows, large: Hole) -> Rows:
    """Constants keep their distance from zero or from the group; groups their size or share."""
    group, df, wrap, cf, cr, dr, c = (int(n) for n in row)
    m, n = _second(small), _second(large)
    rows = set()
    for wide in {group, group * large.size // small.size}:
        if wide < 1 or large.size % wide:
            continue
        for fan, rate, shift in itertools.product(
            *(_readings(v, group, wide) for v in (cf, cr, c))
        ):
            new = fan % wide
            common = math.gcd(new, wide)
            fine = wide // common if df < group else wide
            turns = wide // fine if wrap else wide
            for slow in {n} if dr == m else {d for d in (dr, dr * n // m) if 1 <= d < n}:
                rows.add((wide, fine, wrap, new, rate % turns, slow, shift % turns))
    return np.array(sorted(rows), np.int64)


def _readings(value: int, group: int, wide: int) -> set[int]:
    """A constant as it is, as far from the end, or as the same share."""
    return {value, value - group + wide, value * wide // group}


def natural(small: Hole, row: Rows, large: Hole, *, share: bool) -> Rows | None:
    """The likeliest reading of a choice at another size, if it can be read there at all.

    Conditions name sizes by position, so they stay as they are; so do small constants of a swizzle,
    below or above zero. With `share`, larger ones keep their share of the size.
    """
    if small.kind != "swizzle":
        wanted = 5 * (large.size - 1)
        kept = row[:wanted]
        named = kept[4::5].max(initial=0) < len(_constants(large))
        return kept if named and len(kept) == wanted else None
    group, df, wrap, cf, cr, dr, c = (int(n) for n in row)
    scale = large.size / small.size
    wide = large.size if group == small.size else group
    near = [_near(value, group) for value in (cf, cr, c)]
    if share:
        near = [int(v * scale) if abs(v) > 1 else v for v in near]
    fan, rate, shift = near
    fine = wide // math.gcd(fan % wide, wide) if df < group else wide
    turns = wide // fine if wrap else wide
    slow = _second(large) if dr == _second(small) else dr
    return np.array([wide, fine, wrap, fan % wide, rate % turns, slow, shift % turns], np.int64)


# -- conditions: columns operator, left, right, sign, constant


def _constants(hole: Hole) -> list[int]:
    return [0, 1, -1, *(sign * c for c in hole.constants for sign in (1, -1))]


def _condition_rows(hole: Hole, constants: bool) -> Rows:
    axes = np.arange(len(hole.variables))
    which = np.arange(len(_constants(hole)) if constants else 1)
    compared = _product(which, [1, -1], axes, axes, np.arange(6))[:, [4, 2, 3, 1, 0]]
    compared = compared[~((compared[:, 1] == compared[:, 2]) & (compared[:, 3] == 1))]
    always = np.zeros((2, 5), np.int64)
    always[:, 0] = (_TRUE, _FALSE)
    return np.concatenate([always, compared])


def _masks(hole: Hole, rows: Rows) -> npt.NDArray[np.bool_]:
    """What each condition says over the grid of the hole's variables."""
    x = np.indices(hole.extents).reshape(len(hole.extents), -1)
    operator, left, right, sign, constant = rows.T
    difference = x[left] - np.array(_constants(hole))[constant][:, None] - sign[:, None] * x[right]
    less, equal = difference < 0, difference == 0
    answers = (less, ~less, ~(less | equal), less | equal, equal, ~equal)
    always = np.broadcast_to(np.array([[True], [False]])[:, :, None], (2, 1, x.shape[1]))
    masks = np.empty(difference.shape, bool)
    for number, answer in enumerate((*answers, *always)):
        mine = operator == number
        masks[mine] = answer[mine] if number < _TRUE else answer
    return masks


def _condition_expression(hole: Hole, row: Rows) -> Expr:
    operator, left, right, sign, constant = (int(n) for n in row)
    if operator >= _TRUE:
        return Const(int(operator == _TRUE))
    value, other = Const(_constants(hole)[constant]), Var(hole.variables[right])
    limit = value + other if sign > 0 else value - other
    return Binary(_OPERATORS[operator], Var(hole.variables[left]), limit)


def _partition_rows(hole: Hole, conditions: Rows) -> Rows:
    """All tuples of distinct conditions; a part that is never reached is not excluded."""
    kept = conditions[distinct(_masks(hole, conditions))[0]]
    needed = hole.size - 1
    if needed == 0:
        return np.zeros((1, 0), np.int64)
    if len(kept) ** needed * (needed * 40 + math.prod(hole.extents)) > _MOST_BYTES:
        raise CheckError(f"partition '{hole.name}' into {hole.size} parts has too many choices")
    picks = np.indices([len(kept)] * needed).reshape(needed, -1).T
    return kept[picks].reshape(len(picks), -1)


def _part_values(hole: Hole, rows: Rows) -> Values:
    needed = hole.size - 1
    points = math.prod(hole.extents)
    values = np.full((len(rows), points), needed, np.uint8)
    for part in reversed(range(needed)):
        values[_masks(hole, rows[:, 5 * part : 5 * part + 5])] = part
    return values
