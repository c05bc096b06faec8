"""Sizes that are to be chosen → tables of those that go together, one for each axis.

In come a program and numbers for the sizes that are given; an *axis* is a set of open sizes that
conditions link, such as kcs | sk | kgs | K, with every row of numbers that meets them. So nothing
that is made of these sizes has to be divided, or checked for dividing, again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.array.language.bind import variables_of
from warploom.array.language.check import conditions
from warploom.array.language.ir import Apply, Program, Term, place_of, walk
from warploom.array.language.op import sizes_of
from warploom.array.types import Tuple, Type, base, shape
from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, Const, Expr, substitute, variables
from warploom.index.ir import walk as walk_index
from warploom.index.laws import simplify
from warploom.index.show import show

Ints = npt.NDArray[np.int64]
MOST_ROWS = 1 << 20
MOST_VALUES = 1 << 12  # that a single size is tried with


@dataclass(frozen=True, slots=True)
class Axis:
    """One column for each name, one row for each choice."""

    names: tuple[str, ...]
    rows: Ints

    def column(self, name: str) -> Ints:
        found: Ints = self.rows[:, self.names.index(name)]
        return found


def axes_of(program: Program, given: Mapping[str, int]) -> tuple[Axis, ...]:
    """The axes of all sizes that are not given; raises CheckError where one has no row."""
    open_ = sorted(variables_of(program) - given.keys())
    wanted: list[Expr] = []
    for each, asked, part in _conditions(program, given):
        if isinstance(each, Const):
            raise CheckError(
                f"'{program.name}': the sizes that are given do not go together",
                span=next(filter(None, map(place_of, walk(part))), None),
                advice=f"{show(asked)} should hold",
            )
        wanted.append(each)
    linked = _linked(open_, [each for each in wanted if len(variables(each)) <= 2])
    while True:
        made = [_axis(program, names, wanted) for names in linked]
        crossing = next((each for each in wanted if not _holds_across(each, made)), None)
        if crossing is None:
            return tuple(made)
        linked = _linked_by(linked, crossing)


def _conditions(program: Program, given: Mapping[str, int]) -> Iterator[tuple[Expr, Expr, Term]]:
    """Every condition on the open sizes, how it was asked, and the expression that has it:
    quotients are exact, pieces not larger than the whole. One without open sizes is not met."""
    seen: set[Expr] = set()
    told: set[Expr] = set()
    types: set[Type] = set()
    for part in walk(program.body):
        own = [] if part.type in types else list(_sizes_in(part.type))
        types.add(part.type)
        sizes = [*own, *(sizes_of(part.op) if isinstance(part, Apply) else ())]
        found = [*_exact(sizes), *(each.ge(1) for each in own)]
        if isinstance(part, Apply) and part.arguments:
            found += [each for each, _ in conditions(part.op, part.arguments[0].type)]
        for each in dict.fromkeys(found):
            if each in seen:
                continue
            seen.add(each)
            known = simplify(substitute(each, dict(given)))
            if known not in told and known is not Const(1):
                told.add(known)
                yield known, each, part


def _sizes_in(type_: Type) -> Iterator[Expr]:
    yield from shape(type_)
    inner = base(type_)
    if isinstance(inner, Tuple):
        for part in inner.parts:
            yield from _sizes_in(part)


def _exact(sizes: Sequence[Expr]) -> Iterator[Expr]:
    for size in sizes:
        for part in walk_index(size):
            if isinstance(part, Binary) and part.op == "//":
                yield (part.left % part.right).eq(0)


def _linked(names: list[str], conditions_: list[Expr]) -> list[tuple[str, ...]]:
    groups: list[tuple[str, ...]] = [(name,) for name in names]
    for each in conditions_:
        groups = _linked_by(groups, each)
    return groups


def _linked_by(groups: list[tuple[str, ...]], condition: Expr) -> list[tuple[str, ...]]:
    touched = [each for each in groups if variables(condition) & set(each)]
    rest = [each for each in groups if each not in touched]
    return [*rest, tuple(name for each in touched for name in each)] if touched else rest


def _axis(program: Program, names: tuple[str, ...], wanted: list[Expr]) -> Axis:
    """Sizes one after another, each with all rows so far: first one that a number bounds, then
    those that are bounded by what is there."""
    own = [each for each in wanted if variables(each) <= set(names)]
    order: list[str] = []
    rows: Ints = np.zeros((1, 0), np.int64)
    while len(order) < len(names):
        left = [name for name in names if name not in order]
        name = min(left, key=lambda each: (_rank(each, order, own), each))
        column = _values(name, {each: rows[:, k] for k, each in enumerate(order)}, own)
        if len(rows) * len(column) > MOST_ROWS:
            raise CheckError(f"'{program.name}': '{name}' has too many values", advice="give it")
        rows = np.concatenate(
            [np.repeat(rows, len(column), 0), np.tile(column, len(rows))[:, None]], 1
        )
        order.append(name)
        for each in own:
            if name in variables(each) and variables(each) <= set(order):
                env = {known: rows[:, k] for k, known in enumerate(order)}
                rows = rows[_true(each, env, len(rows))]
    if not len(rows):
        text = ", ".join(names)
        raise CheckError(f"'{program.name}': no numbers for {text} meet its conditions")
    return Axis(tuple(order), rows)


def _rank(name: str, order: list[str], own: list[Expr]) -> int:
    """What is bounded by numbers and sizes that are there comes before what is not."""
    bounding = [each for each in own if name in variables(each) and _bounds(each)]
    if any(variables(each) <= {name, *order} for each in bounding):
        return 0
    return 1


def _bounds(condition: Expr) -> bool:
    return any(
        isinstance(each, Binary) and each.op in ("<=", "%") for each in walk_index(condition)
    )


def _values(name: str, known: Mapping[str, Ints], own: list[Expr]) -> Ints:
    """What a size may be, by itself and beside each single size that is there."""
    tried: Ints = np.arange(1, MOST_VALUES + 1, dtype=np.int64)
    for each in own:
        others = variables(each) - {name}
        if name not in variables(each) or len(others) > 1 or not others <= known.keys():
            continue
        if not others:
            tried = tried[_true(each, {name: tried}, len(tried))]
            continue
        (other,) = others
        beside = np.unique(known[other])
        env = {name: np.repeat(tried, len(beside)), other: np.tile(beside, len(tried))}
        keep = _true(each, env, len(tried) * len(beside)).reshape(len(tried), -1).any(1)
        tried = tried[keep]
    return tried


def _true(condition: Expr, env: Mapping[str, Any], count: int) -> npt.NDArray[np.bool_]:
    found = np.asarray(evaluate(condition, env)) != 0
    return np.broadcast_to(found, (count,)).copy()


def _holds_across(condition: Expr, made: list[Axis]) -> bool:
    """Whether a condition that is over several axes holds for all of their rows."""
    names = variables(condition)
    touched = [axis for axis in made if names & set(axis.names)]
    if len(touched) < 2:
        return True
    parts = []
    for axis in touched:
        columns = [axis.names.index(name) for name in axis.names if name in names]
        parts.append((columns, np.unique(axis.rows[:, columns], axis=0)))
    sizes = [len(rows) for _, rows in parts]
    if np.prod([float(each) for each in sizes]) > MOST_ROWS:
        return False
    at = np.indices(sizes).reshape(len(sizes), -1)
    env = {
        axis.names[column]: rows[index, k]
        for axis, (columns, rows), index in zip(touched, parts, at, strict=True)
        for k, column in enumerate(columns)
    }
    return bool(_true(condition, env, at.shape[1]).all())
