"""What a sketch means: a program and a fill come in, the terms that every step holds come out.

    gather   cell c of `gathers(args)` is cell `table[c]` of the arguments laid end to end
    fold     each run of `fold` cells becomes a multiset; zeros vanish, an undefined item spoils it

This file defines the language on symbols; `numeric.py` says the same of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.sketch.term.ir import (
    Apply,
    Fold,
    Literal,
    Program,
    Step,
    Symbol,
    Term,
    Undefined,
    Zero,
    fold_of,
)

# The choice for each hole: by position of the step, or in the order of `program.holes`.
Fill: TypeAlias = Mapping[int, int] | Sequence[int]
Ids: TypeAlias = npt.NDArray[np.int32]

UNDEFINED_ID = 0
ZERO_ID = 1
# What the table entries UNDEFINED (-2) and ZERO (-1) read, behind the arguments.
_TAIL: Ids = np.array([UNDEFINED_ID, ZERO_ID], np.int32)


def evaluate(program: Program, fill: Fill = ()) -> list[tuple[Term, ...]]:
    """The terms of every step, in row-major order; closed programs need no fill."""
    store = TermStore()
    arrays: list[Ids] = []
    for step, choice in zip(program.steps, choices(program, fill), strict=True):
        arrays.append(evaluate_step(store, step, arrays, choice))
    return [store.terms(ids) for ids in arrays]


def choices(program: Program, fill: Fill) -> tuple[int, ...]:
    """Which gather each step takes: 0 where there is only one."""
    holes = program.holes
    if not isinstance(fill, Mapping):
        if len(fill) != len(holes):
            raise CheckError(f"the sketch has {len(holes)} holes, the fill has {len(fill)} choices")
        fill = dict(zip(holes, fill, strict=True))
    taken = [0] * len(program.steps)
    for position in holes:
        step = program.steps[position]
        assert isinstance(step, Apply)
        choice = fill.get(position)
        if choice is None:
            raise CheckError(f"the fill has no choice for hole '{step.name}' (step {position})")
        if not 0 <= choice < len(step.gathers):
            raise CheckError(
                f"hole '{step.name}' has choices 0 to {len(step.gathers) - 1}, not {choice}"
            )
        taken[position] = int(choice)
    return tuple(taken)


def evaluate_step(store: TermStore, step: Step, arrays: Sequence[Ids], choice: int) -> Ids:
    """One step on term numbers; `arrays` holds the steps before it."""
    match step:
        case Literal():
            return store.numbers(step.values)
        case Apply():
            source = np.concatenate([*(arrays[arg] for arg in step.args), _TAIL])
            cells = source[step.gathers.table(choice)]
            return cells if step.fold is None else store.fold(cells.reshape(-1, step.fold))
        case _:
            assert_never(step)


class TermStore:
    """Gives every distinct term a small number, so that arrays of terms are arrays of integers."""

    def __init__(self) -> None:
        self._terms: list[Term | None] = [Undefined(), Zero()]  # folds are made when asked for
        self._items: list[tuple[int, ...]] = [(), ()]
        self._symbols: dict[int, int] = {}
        self._folds: dict[tuple[int, ...], int] = {}
        self._known: dict[Term, int] = {Undefined(): UNDEFINED_ID, Zero(): ZERO_ID}
        self._rows: dict[bytes, int] = {}

    def _new(self, term: Term | None, items: tuple[int, ...]) -> int:
        self._terms.append(term)
        self._items.append(items)
        return len(self._terms) - 1

    def _packed(self, items: tuple[int, ...]) -> int:
        """The fold of these items, which are sorted and neither zero nor undefined."""
        if not items:
            return ZERO_ID
        number = self._folds.get(items)
        if number is None:
            number = self._folds[items] = self._new(None, items)
        return number

    def number(self, term: Term) -> int:
        known = self._known.get(term)
        if known is not None:
            return known
        match term:
            case Symbol():
                number = self._new(term, ())
            case Fold(items):
                number = self._packed(tuple(sorted(self.number(item) for item in items)))
            case _:
                raise AssertionError("zero and undefined are known from the start")
        self._known[term] = number
        return number

    def numbers(self, terms: Sequence[Term]) -> Ids:
        return np.array([self.number(term) for term in terms], np.int32)

    def fold(self, rows: Ids) -> Ids:
        """Packs each row into one term. Python runs once per cell, and thinks once per new row."""
        rows = np.sort(rows, axis=1)
        data, width = rows.tobytes(), rows.itemsize * rows.shape[1]
        memo = self._rows
        packed = []
        for start in range(0, len(data), width):
            key = data[start : start + width]
            number = memo.get(key)
            if number is None:
                number = memo[key] = self._fold_row(rows[start // width].tolist())
            packed.append(number)
        return np.array(packed, np.int32)

    def _fold_row(self, row: list[int]) -> int:
        if row[0] == UNDEFINED_ID:
            return UNDEFINED_ID
        return self._packed(tuple(item for item in row if item != ZERO_ID))

    def term(self, number: int) -> Term:
        term = self._terms[number]
        if term is None:
            term = fold_of([self.term(item) for item in self._items[number]])
            self._terms[number] = term
            self._known[term] = number
        return term

    def terms(self, ids: Ids) -> tuple[Term, ...]:
        return tuple(map(self.term, ids.tolist()))
