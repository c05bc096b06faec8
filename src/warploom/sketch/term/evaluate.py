"""What a sketch means: a program and a fill come in, the terms that every step holds come out.

    gather   cell c of `gathers(args)` is cell `table[c]` of the arguments laid end to end
    fold     each run of `fold` cells becomes a multiset with the step's operator; zeros vanish, an
             undefined item spoils it. Under the laws, items of the same operator are taken apart
             first, and a fold of one item is that item. The word `fold` has the operator of its
             depth: `words[d]` for a term in which folds nest d deep.

This file defines the language on symbols; `numeric.py` says the same of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.sketch.term import ir
from warploom.sketch.term.laws import LONE, REASSOCIATED, Use, check_length, normal_forms, obeys
from warploom.sketch.term.operator import WORD, is_function

# The choice for each hole: by position of the step, or in the order of `program.holes`.
Fill: TypeAlias = Mapping[int, int] | Sequence[int]
Ids: TypeAlias = npt.NDArray[np.int32]

UNDEFINED_ID = 0
ZERO_ID = 1
# What the table entries UNDEFINED (-2) and ZERO (-1) read, behind the arguments.
_TAIL: Ids = np.array([UNDEFINED_ID, ZERO_ID], np.int32)


def evaluate(
    program: ir.Program, fill: Fill = (), words: Sequence[str] = (), laws: tuple[str, ...] = ()
) -> list[tuple[ir.Term, ...]]:
    """The terms of every step, in row-major order; closed programs need no fill."""
    store = TermStore(words, laws)
    arrays: list[Ids] = []
    for step, choice in zip(program.steps, choices(program, fill), strict=True):
        arrays.append(evaluate_step(store, step, arrays, choice))
    return [store.terms(ids) for ids in arrays]


def choices(program: ir.Program, fill: Fill) -> tuple[int, ...]:
    """Which gather each step takes: 0 where there is only one."""
    holes = program.holes
    if not isinstance(fill, Mapping):
        if len(fill) != len(holes):
            raise CheckError(f"the sketch has {len(holes)} holes, the fill has {len(fill)} choices")
        fill = dict(zip(holes, fill, strict=True))
    taken = [0] * len(program.steps)
    for position in holes:
        step = program.steps[position]
        assert isinstance(step, ir.Apply)
        choice = fill.get(position)
        if choice is None:
            raise CheckError(f"the fill has no choice for hole '{step.name}' (step {position})")
        if not 0 <= choice < len(step.gathers):
            raise CheckError(
                f"hole '{step.name}' has choices 0 to {len(step.gathers) - 1}, not {choice}"
            )
        taken[position] = int(choice)
    return tuple(taken)


def evaluate_step(store: TermStore, step: ir.Step, arrays: Sequence[Ids], choice: int) -> Ids:
    """One step on term numbers; `arrays` holds the steps before it."""
    match step:
        case ir.Literal():
            return store.numbers(step.values)
        case ir.Apply():
            source = np.concatenate([*(arrays[arg] for arg in step.args), _TAIL])
            cells = source[step.gathers.table(choice)]
            if step.fold is None:
                return cells
            return store.fold(cells.reshape(-1, step.fold), step.operator)
        case _:
            assert_never(step)


class TermStore:
    """Gives every distinct term a small number, so that arrays of terms are arrays of integers.

    Numbers stand for normal forms under `laws`: a term that comes in is brought into it.
    """

    def __init__(self, words: Sequence[str] = (), laws: tuple[str, ...] = ()) -> None:
        self._words = words
        self._laws = laws
        self._terms: list[ir.Term | None] = [
            ir.Undefined(),
            ir.Zero(),
        ]  # folds are made when asked for
        self._folds: list[tuple[str, tuple[int, ...]] | None] = [None, None]
        self._depths: list[int] = [0, 0]
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self._known: dict[ir.Term, int] = {ir.Undefined(): UNDEFINED_ID, ir.Zero(): ZERO_ID}
        self._rows: dict[str, dict[bytes, int]] = {}
        self.used: set[Use] = set()  # laws, when packing rows

    def _new(
        self, term: ir.Term | None, fold: tuple[str, tuple[int, ...]] | None, depth: int
    ) -> int:
        self._terms.append(term)
        self._folds.append(fold)
        self._depths.append(depth)
        return len(self._terms) - 1

    def _packed(self, operator: str, items: list[int]) -> int:
        """The fold of these items, which are not undefined, and zero only for a function."""
        if not items:
            return ZERO_ID
        depth = 1 + max(self._depths[item] for item in items)
        if operator == WORD and depth < len(self._words):
            operator = self._words[depth]
        if obeys(operator, self._laws):
            bags = [self._bag(operator, item) for item in items]
            check_length(sum(map(len, bags)))
            parts = [part for bag in bags for part in bag]
            if len(parts) > len(items):
                self.used.add((REASSOCIATED, operator))
            if len(parts) == 1:
                self.used.add((LONE, operator))
                return parts[0]
            items, depth = parts, 1 + max(self._depths[part] for part in parts)
        fold = operator, tuple(sorted(items))
        number = self._numbers.get(fold)
        if number is None:
            number = self._numbers[fold] = self._new(None, fold, depth)
        return number

    def _bag(self, operator: str, item: int) -> tuple[int, ...]:
        """What an item brings into a fold with this operator."""
        fold = self._folds[item]
        return fold[1] if fold is not None and fold[0] == operator else (item,)

    def number(self, term: ir.Term) -> int:
        known = self._known.get(term)
        if known is None:
            (normal,) = normal_forms((term,), self._laws)
            known = self._known[term] = self._number(normal)
        return known

    def _number(self, term: ir.Term) -> int:
        """The number of a term in normal form."""
        known = self._known.get(term)
        if known is not None:
            return known
        match term:
            case ir.Symbol() | ir.Constant():
                number = self._new(term, None, 0)
            case ir.Fold(operator, items):
                number = self._packed(operator, [self._number(item) for item in items])
            case _:
                raise AssertionError("zero and undefined are known from the start")
        self._known[term] = number
        return number

    def numbers(self, terms: Sequence[ir.Term]) -> Ids:
        return np.array([self.number(term) for term in terms], np.int32)

    def fold(self, rows: Ids, operator: str = WORD) -> Ids:
        """Packs each row into one term. Python runs once per cell, and thinks once per new row."""
        rows = np.sort(rows, axis=1)
        data, width = rows.tobytes(), rows.itemsize * rows.shape[1]
        memo = self._rows.setdefault(operator, {})
        packed = []
        for start in range(0, len(data), width):
            key = data[start : start + width]
            number = memo.get(key)
            if number is None:
                number = memo[key] = self._fold_row(operator, rows[start // width].tolist())
            packed.append(number)
        return np.array(packed, np.int32)

    def _fold_row(self, operator: str, row: list[int]) -> int:
        if row[0] == UNDEFINED_ID:
            return UNDEFINED_ID
        whole = is_function(operator)
        return self._packed(operator, [item for item in row if whole or item != ZERO_ID])

    def term(self, number: int) -> ir.Term:
        term = self._terms[number]
        if term is None:
            fold = self._folds[number]
            assert fold is not None
            term = ir.fold_of([self.term(item) for item in fold[1]], fold[0])
            self._terms[number] = term
            self._known[term] = number
        return term

    def terms(self, ids: Ids) -> tuple[ir.Term, ...]:
        return tuple(map(self.term, ids.tolist()))
