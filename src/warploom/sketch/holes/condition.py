"""The one form of conditions, `x[a] ⋈ (c ± x[b])`, and choices by the first condition that holds.

A row (comparison, left, right, sign, constant) names two variables and a constant by position, so
it means the same at every size; the comparisons ALWAYS and NEVER ask nothing. The published sets
are enumerations of such rows: Swizzleflow's in `selection.py`, Swizzle Inventor's in
`simt/space.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.ir import Binary, BinaryOp, Const, Expr, select
from warploom.sketch.holes.common import (
    CHUNK_BYTES,
    Integers,
    Positions,
    distinct,
    grid,
    kinds_of,
    product,
)
from warploom.sketch.holes.expressions import total
from warploom.sketch.holes.function import IndexFunctions, check_names, none_of, whole_number
from warploom.sketch.term.gather import Sense, Setting, Settings

Masks = npt.NDArray[np.bool_]

COLUMNS = ("comparison", "left", "right", "sign", "constant")
WIDTH = len(COLUMNS)
COMPARISONS: tuple[BinaryOp, ...] = ("==", "!=", "<", "<=", ">", ">=")
ALWAYS, NEVER = 6, 7
_WORDS = (*COMPARISONS, "always", "never")
_MOST_COUNTERPARTS = 1 << 12


@dataclass(frozen=True, slots=True)
class Conditions(IndexFunctions):
    """Conditions on variables of these extents, with one of these constants; 1 where it holds."""

    extents: tuple[int, ...]
    constants: tuple[int, ...]
    over: tuple[int, ...]  # the variables that a condition may name, in the order of enumeration
    comparisons: tuple[int, ...] = tuple(range(ALWAYS))  # likewise

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    @property
    def depends(self) -> tuple[int, ...]:
        return tuple(sorted(self.over))

    @property
    def _numbers(self) -> Integers:
        return np.array(self.constants or (0,))

    def rows(self, constants: int) -> Settings:
        """All that compare with one of the first so many constants: constant, sign, left, right and
        comparison, the last the fastest."""
        every = product(range(constants), (1, -1), self.over, self.over, self.comparisons)
        rows: Settings = every[:, [4, 2, 3, 1, 0]]
        return rows

    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        return self.masks(rows, at).astype(np.uint8)

    def masks(self, rows: Settings, at: Mapping[int, Integers]) -> Masks:
        """Where each condition holds."""
        out = np.empty((len(rows), points_of(at)), np.bool_)
        step = max(1, CHUNK_BYTES // (16 * points_of(at)))
        for start in range(0, len(rows), step):
            self._compare(rows[start : start + step], at, out[start : start + step])
        return out

    def _compare(self, rows: Settings, at: Mapping[int, Integers], out: Masks) -> None:
        comparison, left, right, sign, constant = rows.T.astype(np.int64)
        asked = comparison < ALWAYS
        if not asked.all():
            out[~asked] = (comparison[~asked] == ALWAYS)[:, None]
        if not at or not asked.any():
            return
        # Each difference serves six comparisons.
        first, kind = kinds_of(left, right, sign, constant)
        place = np.zeros(len(self.extents), np.intp)
        place[list(at)] = np.arange(len(at))
        furthest = 2 * max(self.extents) + max(map(abs, self.constants), default=0)
        x = np.stack(list(at.values())).astype(np.min_scalar_type(-furthest))
        limit = sign[first, None].astype(x.dtype) * x[place[right[first]]]
        limit += self._numbers[constant[first], None].astype(x.dtype)
        value = x[place[left[first]]]
        answers = np.empty((ALWAYS, *limit.shape), np.bool_)
        for yes, no, test in ((0, 1, np.equal), (2, 5, np.less), (4, 3, np.greater)):
            test(value, limit, out=answers[yes])
            np.logical_not(answers[yes], out=answers[no])
        if asked.all():
            out[:] = answers[comparison, kind]
        else:
            out[asked] = answers[comparison[asked], kind[asked]]

    def constancy(self, row: Setting) -> bool | None:
        """Whether the condition always or never holds; None if that depends."""
        if row[0] >= ALWAYS:
            return bool(row[0] == ALWAYS)
        both = sorted({int(row[1]), int(row[2])})
        holds = self.masks(row[None], grid(self.extents, both))[0]
        return bool(holds[0]) if holds.all() or not holds.any() else None

    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        comparison, left, right, sign, position = (int(n) for n in row)
        if comparison >= ALWAYS:
            return Const(int(comparison == ALWAYS))
        operator, constant = COMPARISONS[comparison], self.constants[position]
        if left == right and sign < 0:
            if operator in ("==", "!=") and constant % 2:
                return Const(int(operator == "!="))  # 2x is never odd
            # x < c − x says 2x < c: compare with half of c, rounded so that nothing changes.
            half = -(-constant // 2) if operator in ("<", ">=") else constant // 2
            return Binary(operator, variables[left], Const(half))
        return Binary(operator, variables[left], total([(sign, variables[right])], constant))

    def costs(self, rows: Settings) -> Settings:
        """A number that orders conditions by operations, then distinct constants, as written.

        The constant 0, which names the argument that is read, comes for free.
        """
        comparison, left, right, sign, position = rows.T.astype(np.int64)
        constant = self._numbers[position]
        halved = (left == right) & (sign < 0)
        up = np.isin(comparison, [2, 5])
        half = np.where(up, -(-constant // 2), constant // 2)
        operations = 1 + (~halved & ((constant != 0) | (sign < 0)))
        numbers = np.where(halved, half, constant) != 0
        return np.where(comparison >= ALWAYS, 0, 2 * operations + numbers)

    def text(self, row: Setting) -> str:
        comparison, left, right, sign, position = (int(n) for n in row)
        if comparison >= ALWAYS:
            return "true" if comparison == ALWAYS else "false"
        constant = self.constants[position]
        plus = "+" if sign > 0 else "-"
        value = f"{constant} {plus} d{right}" if constant else f"{plus}d{right}"
        operator = COMPARISONS[comparison]
        return f"d{left} {'=' if operator == '==' else operator} {value}"

    def counterparts(self, rows: Settings, large: IndexFunctions, reading: Sense) -> Settings:
        """Sizes are named by position: a row stays as it is, or it is one that means the same."""
        if not isinstance(large, Conditions):
            return none_of(self)
        if reading is Sense.ANY:
            rows = np.concatenate([rows, self.equal_to(rows[0])])
        known = (rows[:, 4] < len(large.constants)) & np.isin(rows[:, 1:3], large.over).all(axis=1)
        return rows[known | (rows[:, 0] >= ALWAYS)]

    def equal_to(self, row: Setting, reached: Masks | None = None) -> Settings:
        """Every row that holds where this one does, as far as it is `reached`."""
        at = grid(self.extents, self.depends)
        always = np.zeros((2, WIDTH), np.int64)
        always[:, 0] = (ALWAYS, NEVER)
        rows = np.concatenate([always, self.rows(len(self.constants))])
        same: Masks = self.masks(rows, at) == self.masks(row[None], at)
        equal: Settings = rows[(same if reached is None else same | ~reached).all(axis=1)]
        return equal

    def forms(self, rows: Settings) -> Settings:
        forms = rows.astype(np.int64)
        forms[:, 4] = self._numbers[forms[:, 4]] != 0
        return forms

    def to_json(self, row: Setting) -> dict[str, Any]:
        comparison, left, right, sign, position = (int(n) for n in row)
        if comparison >= ALWAYS:
            return {"comparison": _WORDS[comparison]}
        numbers = (_WORDS[comparison], left, right, sign, self.constants[position])
        return dict(zip(COLUMNS, numbers, strict=True))

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        word = parameters.get("comparison")
        check_names(parameters, COLUMNS[:1] if word in _WORDS[ALWAYS:] else COLUMNS)
        if word not in _WORDS:
            raise CheckError(
                f"there is no comparison {word!r:.80}", advice=f"they are {', '.join(_WORDS)}"
            )
        row = np.zeros(WIDTH, np.int64)
        row[0] = _WORDS.index(str(word))
        if row[0] >= ALWAYS:
            return row
        left, right, sign, constant = (whole_number(n, parameters[n]) for n in COLUMNS[1:])
        if not {left, right} <= set(self.over) or sign not in (1, -1):
            raise CheckError("a condition compares two coordinates, the second with sign 1 or -1")
        if constant not in self.constants:
            raise CheckError(f"{constant} is none of the constants {list(self.constants)}")
        row[1:] = left, right, sign, self.constants.index(constant)
        return row


@dataclass(frozen=True, slots=True)
class Partitions(IndexFunctions):
    """The number of the first condition that holds, of `parts` − 1; else the last number."""

    conditions: Conditions
    parts: int

    @property
    def extents(self) -> tuple[int, ...]:
        return self.conditions.extents

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{name}{n}" for n in range(self.parts - 1) for name in COLUMNS)

    @property
    def depends(self) -> tuple[int, ...]:
        return self.conditions.depends

    def split(self, row: Setting) -> Settings:
        """The conditions, one a row."""
        conditions: Settings = row.reshape(-1, WIDTH)
        return conditions

    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        asked = []
        for part in range(self.parts - 1):
            # Few different conditions make many rows.
            some = np.ascontiguousarray(rows[:, WIDTH * part : WIDTH * (part + 1)])
            first, kind = distinct(some)
            asked.append((self.conditions.masks(some[first], at), kind))
        return first_true(asked, (len(rows), points_of(at)))

    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        asked = [self.asked(each, variables) for each in self.split(row)]
        return first_of(asked, [Const(n) for n in range(self.parts)])

    def asked(self, condition: Setting, variables: Sequence[Expr]) -> Expr:
        """A condition, or a constant where it never or always holds."""
        known = self.conditions.constancy(condition)
        if known is not None:
            return Const(int(known))
        return self.conditions.expression(condition, variables)

    def counterparts(self, rows: Settings, large: IndexFunctions, reading: Sense) -> Settings:
        if not isinstance(large, Partitions) or large.parts > self.parts:
            return np.zeros((0, WIDTH * (self.parts - 1)), np.int64)
        wanted = WIDTH * (large.parts - 1)
        if reading is not Sense.ANY:
            small, there = self.conditions, large.conditions
            known = [
                len(small.counterparts(self.split(row[:wanted]), there, reading)) * WIDTH == wanted
                for row in rows
            ]
            return rows[np.array(known, bool), :wanted]
        found = [self._any_reading(row[:wanted], large) for row in rows]
        return np.concatenate(found)[:_MOST_COUNTERPARTS]

    def _any_reading(self, row: Setting, large: Partitions) -> Settings:
        """What a condition says matters only where no earlier one holds."""
        at, there = (
            grid(each.extents, each.depends) for each in (self.conditions, large.conditions)
        )
        reached = np.ones(points_of(at), np.bool_)
        options = []
        for part in self.split(row):
            rows = self.conditions.equal_to(part, reached)
            rows = self.conditions.counterparts(rows, large.conditions, Sense.NATURAL)
            options.append(rows[distinct(large.conditions.masks(rows, there))[0]])
            reached &= ~self.conditions.masks(part[None], at)[0]
        every = itertools.islice(itertools.product(*options), _MOST_COUNTERPARTS)
        found: Settings = np.array([np.concatenate([*each, row[:0]]) for each in every])
        return found if len(found) else row[None][:0]

    def forms(self, rows: Settings) -> Settings:
        return self.conditions.forms(rows.reshape(-1, WIDTH)).reshape(len(rows), -1)

    def to_json(self, row: Setting) -> dict[str, Any]:
        return {"conditions": [self.conditions.to_json(each) for each in self.split(row)]}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        check_names(parameters, ("conditions",))
        asked = parameters["conditions"]
        if not isinstance(asked, list) or len(asked) != self.parts - 1:
            raise CheckError(f"{self.parts} parts need a list of {self.parts - 1} conditions")
        if not all(isinstance(each, Mapping) for each in asked):
            raise CheckError("a condition is an object of parameters")
        rows = [self.conditions.from_json(each) for each in asked]
        return np.concatenate([*rows, np.zeros(0, np.int64)])


def points_of(at: Mapping[int, Integers]) -> int:
    """How many points these coordinates are of; without any there is one."""
    return next((len(each) for each in at.values()), 1)


def first_true(asked: Sequence[tuple[Masks, Positions]], shape: tuple[int, int]) -> Integers:
    """The number of the first condition that holds, [rows, points]: the least of those that hold.

    Condition n of row r is `masks[kind[r]]`, with the nth pair (masks, kind).
    """
    last = len(asked)
    values = np.full(shape, last, np.min_scalar_type(last + 1))
    for part, (masks, kind) in enumerate(asked):
        numbers = np.where(masks, part, last).astype(values.dtype)
        np.minimum(values, numbers[kind], out=values)
    return values


def first_of(asked: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    """The value of the first condition that holds, else the last."""
    result = values[-1]
    for condition, value in reversed(list(zip(asked, values[:-1], strict=True))):
        if not isinstance(condition, Const):
            result = select(condition, value, result)
        elif condition.value:
            result = value
    return result
