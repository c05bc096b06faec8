"""Random small sketches in which folds nest, and every fill of a sketch up to the laws.

The fills are found by trying them all in plain Python, with nothing shared with the search: a fold
is ("f", operator, items in order); items of its operator are taken apart, one item is itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench.common.sketch.brute import Cells, Plain
from bench.common.sketch.generate import Pick, _add, _gathers, _options, _row, distinct

from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import (
    ZERO,
    Apply,
    Constant,
    Fold,
    Goal,
    Literal,
    Program,
    Step,
    Symbol,
    Term,
    Undefined,
    Zero,
    fold_of,
    size,
)

LAWFUL = ("+", "*", "min", "max", "&", "|", "^")
FLATTEN = ("flatten",)


def nested_sketch(pick: Pick, operators: tuple[str, ...], laws: tuple[str, ...]) -> Program:
    """Folds of what was folded before, masked, moved about and used twice, and one goal."""
    steps: list[Step] = [_input(pick, n, operators) for n in range(1 + pick(2))]
    for _ in range(2 + pick(4)):
        newest = len(steps) - 1
        args = tuple(newest if pick(3) else pick(len(steps)) for _ in range(1 + pick(2)))
        places = sum(size(steps[arg].shape) for arg in args)
        fold = 1 + pick(3) if pick(3) else None
        cells = (1 + pick(5)) * (fold or 1)
        style, several = pick(6), _options(pick, steps, 7 if pick(2) else 1)
        rows = [_reads(pick, style, places, cells, fold or 1) for _ in range(several)]
        _add(steps, args, distinct(rows), fold)
        if fold is not None:
            last = steps[-1]
            assert isinstance(last, Apply)
            steps[-1] = replace(last, operator=_operator(pick, operators, fold))
    closed = Program("nested", tuple(steps), ())
    return replace(closed, goals=(_goal(pick, closed, laws),))


def _operator(pick: Pick, operators: tuple[str, ...], items: int) -> str:
    """One of them; functions, such as `mean()`, only for one item."""
    fitting = [o for o in operators if items == 1 or not o.endswith("()")]
    return fitting[pick(len(fitting))]


def _input(pick: Pick, number: int, operators: tuple[str, ...]) -> Literal:
    values: list[Term] = [Symbol(8 * number + n) for n in range(1 + pick(5))]
    if pick(4) == 0:  # a fold that later ones may take apart
        values[0] = fold_of([values[0], Symbol(pick(16))], _operator(pick, operators, 2))
    return Literal(f"x{number}", (len(values),), tuple(values))


def _reads(pick: Pick, style: int, places: int, cells: int, fold: int) -> list[int]:
    if style < 5:
        return _row(pick, style, places, cells)
    # Masked, but never all of a run: what is left alone passes through.
    return [c % places if c % fold == 0 or pick(2) else ZERO for c in range(cells)]


def _goal(pick: Pick, program: Program, laws: tuple[str, ...]) -> Goal:
    """What some fill gives, or nearly that."""
    fill = [pick(len(_gathers(program, hole))) for hole in program.holes]
    values = evaluate(program, fill, (), laws)
    cells = list(values[-1])
    terms = [t for step in values for t in step if not isinstance(t, Undefined)] or [Zero()]
    if pick(4) == 0:
        cells[pick(len(cells))] = terms[pick(len(terms))]
    wanted = [terms[pick(len(terms))] if isinstance(c, Undefined) else c for c in cells]
    return Goal(program.steps[-1].shape, tuple(wanted), laws=laws)


# -- all fills -------------------------------------------------------------------------------------


def plain(term: Term, flatten: bool) -> Plain:
    match term:
        case Zero():
            return 0
        case Symbol(number):
            return ("s", number)
        case Constant(value):
            return ("c", value)
        case Fold(operator, items):
            return packed([plain(item, flatten) for item in items], operator, flatten)
        case _:
            return None


def packed(items: list[Plain], operator: str, flatten: bool) -> Plain:
    if None in items:
        return None
    kept = [item for item in items if item != 0 or operator.endswith("()")]
    if flatten and operator in LAWFUL:
        same = ("f", operator)
        kept = [part for item in kept for part in (item[2:] if item[:2] == same else (item,))]
        if len(kept) == 1:
            return kept[0]
    return ("f", operator, *sorted(kept, key=repr)) if kept else 0


def all_values(program: Program, flatten: bool) -> Iterator[tuple[tuple[int, ...], list[Cells]]]:
    """Every fill, in lexicographic order, with the values of all steps."""

    def go(values: list[Cells], fill: tuple[int, ...]) -> Iterator[Any]:
        if len(values) == len(program.steps):
            yield fill, values
            return
        step = program.steps[len(values)]
        if isinstance(step, Literal):
            yield from go([*values, tuple(plain(t, flatten) for t in step.values)], fill)
            return
        source = [cell for arg in step.args for cell in values[arg]]
        for choice in range(len(step.gathers)):
            more = (choice,) if len(step.gathers) > 1 else ()
            yield from go([*values, _read(step, choice, source, flatten)], (*fill, *more))

    return go([], ())


def _read(step: Apply, choice: int, source: list[Plain], flatten: bool) -> Cells:
    cells = [
        source[place] if place >= 0 else (0 if place == ZERO else None)
        for place in step.gathers.tables[choice].tolist()
    ]
    if step.fold is None:
        return tuple(cells)
    n = step.fold
    runs = (cells[at : at + n] for at in range(0, len(cells), n))
    return tuple(packed(run, step.operator, flatten) for run in runs)


def all_fills(program: Program, goal: Goal) -> list[tuple[int, ...]]:
    flatten = goal.laws == FLATTEN
    wanted = tuple(plain(term, flatten) for term in goal.values)
    return [fill for fill, values in all_values(program, flatten) if values[-1] == wanted]
