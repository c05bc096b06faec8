"""What may fill a hole of a SIMT sketch, in the three spaces of the Swizzle Inventor paper.

    swizzle    of the form in `holes/swizzle.py`, wrapped as a whole. Spaces 1 and 2: one group, no
               wrap, no step, no slow turn.
    condition  true, false, or x ⋈ c ± y. Space 1: c = 0; else also ±1 and ± the hole's constants.
    partition  part 0 if a condition holds, else part 1 if another does, …, else the last part
    bits       a bit operation of the form in `holes/bits.py`, the same in every space

A choice is a row of parameters; `HoleChoices` holds the distinct functions that rows give at one
size, `counterparts` those that a choice at one size may be at another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.ir import Expr, Var
from warploom.index.laws import simplify
from warploom.sketch.holes.bits import BitForms
from warploom.sketch.holes.common import distinct, grid, product
from warploom.sketch.holes.condition import (
    ALWAYS,
    NEVER,
    WIDTH,
    Conditions,
    Partitions,
)
from warploom.sketch.holes.function import IndexFunctions
from warploom.sketch.holes.swizzle import (
    FAN,
    GROUP,
    MODULUS,
    NO_WRAP,
    RATE,
    SHIFT,
    SLOW,
    STEP,
    WRAP,
    WRAP_BOTH,
    Swizzles,
    divisors,
    near,
)
from warploom.sketch.simt.ir import Hole
from warploom.sketch.term.gather import Sense, Setting, Settings

Values: TypeAlias = npt.NDArray[Any]  # [rows, points of the grid of the hole's variables]

SPACES = (1, 2, 3)
# < >= > <= == !=, the order in which conditions are listed: the first that fits stands for others.
_COMPARISONS = (2, 5, 4, 3, 0, 1)
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class HoleChoices:
    """The distinct functions a hole may be: row i of `rows` gives `values[i]` over the grid."""

    hole: Hole
    rows: Settings
    values: Values

    def __len__(self) -> int:
        return len(self.rows)

    def expression(self, choice: int) -> Expr:
        """The function over the hole's variables, as short as we can write it."""
        return expression(self.hole, self.rows[choice])

    def to_json(self, choice: int) -> dict[str, Any]:
        return functions_of(self.hole).to_json(self.rows[choice])


def functions_of(hole: Hole) -> IndexFunctions:
    """The form of a hole's functions, at its size."""
    second = 1 if len(hole.extents) > 1 else None
    match hole.kind:
        case "swizzle":
            return Swizzles(hole.size, hole.extents, 0, second)
        case "bits":
            return BitForms(hole.size, hole.extents, 0, second)
        case "condition":
            return _conditions_of(hole)
        case "partition":
            return Partitions(_conditions_of(hole), hole.size)
        case _:
            assert_never(hole.kind)


def _conditions_of(hole: Hole) -> Conditions:
    constants = (0, 1, -1, *(sign * c for c in hole.constants for sign in (1, -1)))
    over = tuple(range(len(hole.variables)))
    return Conditions(hole.extents, constants, over, _COMPARISONS)


def candidates(hole: Hole, space: int) -> HoleChoices:
    """All distinct functions of a hole in a space, the simplest row standing for each."""
    if space not in SPACES:
        raise CheckError(f"there is no space {space}", advice="spaces are 1, 2 and 3")
    match functions_of(hole):
        case Swizzles() as swizzles:
            return reduced(hole, _swizzle_rows(hole, swizzles, grouped=space == 3))
        case BitForms() as bits:
            _afford(hole, bits.count)
            return reduced(hole, bits.rows())
        case Conditions() as conditions:
            return reduced(hole, _condition_rows(conditions, constants=space > 1))
        case Partitions(conditions, _):
            rows = _condition_rows(conditions, constants=space > 1)
            return reduced(hole, _partition_rows(hole, conditions, rows))
        case other:
            raise AssertionError(other)


def reduced(hole: Hole, rows: Settings) -> HoleChoices:
    """The distinct functions of these rows, in order of first occurrence."""
    _afford(hole, len(rows))
    functions = functions_of(hole)
    values = functions.values(rows, grid(hole.extents, range(len(hole.extents))))
    first, _ = distinct(values)
    return HoleChoices(hole, rows[first], values[first])


def counterparts(small: Hole, row: Setting, large: Hole, reading: Sense) -> HoleChoices:
    """The functions at another size that a choice at one size may stand for."""
    rows = functions_of(small).counterparts(row[None], functions_of(large), reading)
    return reduced(large, rows)


def expression(hole: Hole, row: Setting) -> Expr:
    functions = functions_of(hole)
    variables = [Var(name) for name in hole.variables]
    if isinstance(functions, BitForms):
        return functions.expression(row, variables)
    if isinstance(functions, Swizzles):
        row = _plain(row)
    ranges = {v: (0, n - 1) for v, n in zip(hole.variables, hole.extents, strict=True)}
    return simplify(functions.expression(row, variables), ranges)


def _afford(hole: Hole, choices: int) -> None:
    if choices * (math.prod(hole.extents) + 16) * 8 > _MOST_BYTES:
        raise CheckError(
            f"hole '{hole.name}' has {choices} choices, too many for its size",
            advice="sketch a smaller warp and re-instantiate the fill, or search a smaller space",
        )


# -- swizzles ------------------------------------------------------------------------------------


def _swizzle_rows(hole: Hole, swizzles: Swizzles, grouped: bool) -> Settings:
    size, second = swizzles.size, swizzles.turns
    coprime = sum(math.gcd(n, size) == 1 for n in range(size))
    _afford(hole, (coprime + 1) * size * (size if second > 1 else 1))
    slow = [d for d in reversed(divisors(second)) if 1 < d < second] if grouped else []
    blocks = []
    for group in reversed(divisors(size)) if grouped else [size]:
        whole = [group], [group]
        for dr in (second, *slow):
            factors = np.arange(group)
            rates = factors if second > 1 else factors[:1]
            # A permutation (co-prime fanning) or a broadcast; anything else loses elements.
            fans = factors[(np.gcd(factors, group) == 1) | (factors == 0)]
            blocks.append(product(*whole, fans, [group], rates, [dr], factors, [NO_WRAP]))
            for common in reversed(divisors(group)[1:-1]) if grouped else []:
                fans = factors[np.gcd(factors, group) == common]
                step = [group // common]
                blocks.append(product(*whole, fans, step, rates, [dr], factors, [NO_WRAP]))
                inner = np.arange(common)
                few = inner if second > 1 else inner[:1]
                blocks.append(product(*whole, fans, step, few, [dr], inner, [WRAP_BOTH]))
    rows = np.concatenate([block for block in blocks if len(block)])
    return rows[np.argsort(_swizzle_cost(rows, size, second), kind="stable")]


def _swizzle_cost(rows: Settings, size: int, second: int) -> npt.NDArray[np.int64]:
    """Roughly the operations of a row's expression; constants near zero are simpler."""
    group, fan, rate, shift = (rows[:, column] for column in (GROUP, FAN, RATE, SHIFT))
    factors = rows[:, [FAN, RATE]]
    close = np.minimum(factors, group[:, None] - factors)
    parted = (group < size) | (rows[:, STEP] < group)
    cost = (
        40 * (parted.astype(np.int64) + (rows[:, WRAP] != NO_WRAP) + (rows[:, SLOW] < second))
        + 10 * ((fan != 0).astype(np.int64) + (rate != 0) + (shift != 0))
        + 10 * (close > 1).sum(axis=1)
    )
    return cost + close.sum(axis=1) + np.minimum(shift, group - shift)  # type: ignore[no-any-return]


def _plain(row: Setting) -> Setting:
    """The residues that are cheapest to compute with: modulo 2ⁿ a negative one is free."""
    plain = row.copy()
    modulus = int(row[MODULUS])
    limit = modulus // int(row[STEP]) if row[WRAP] else modulus
    for column, size in ((FAN, modulus), (RATE, limit), (SHIFT, limit)):
        if size & (size - 1) == 0:
            plain[column] = near(int(row[column]), size)
        else:
            plain[column] = row[column] % size
    return plain


# -- conditions ----------------------------------------------------------------------------------


def _condition_rows(conditions: Conditions, constants: bool) -> Settings:
    compared = conditions.rows(len(conditions.constants) if constants else 1)
    compared = compared[~((compared[:, 1] == compared[:, 2]) & (compared[:, 3] == 1))]
    always = np.zeros((2, WIDTH), np.int64)
    always[:, 0] = (ALWAYS, NEVER)
    return np.concatenate([always, compared])


def _partition_rows(hole: Hole, conditions: Conditions, rows: Settings) -> Settings:
    """All tuples of distinct conditions; a part that is never reached is not excluded."""
    kept = rows[distinct(conditions.masks(rows, grid(hole.extents, conditions.depends)))[0]]
    needed = hole.size - 1
    if needed == 0:
        return np.zeros((1, 0), np.int64)
    if len(kept) ** needed * (needed * 40 + math.prod(hole.extents)) > _MOST_BYTES:
        raise CheckError(f"partition '{hole.name}' into {hole.size} parts has too many choices")
    picks = np.indices([len(kept)] * needed).reshape(needed, -1).T
    return kept[picks].reshape(len(picks), -1)
