"""Every fill of a sketch by trying them all: plain Python, with nothing shared with the search.

A term is None (undefined), 0 (zero), an integer pair ("s", n) or a fold ("f", items in order).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warploom.sketch.term.ir import Apply, Fold, Goal, Literal, Program, Symbol, Term, Zero

Plain = Any
Cells = tuple[Plain, ...]


def plain(term: Term) -> Plain:
    if isinstance(term, Zero):
        return 0
    if isinstance(term, Symbol):
        return ("s", term.number)
    if isinstance(term, Fold):
        return packed([plain(item) for item in term.items])
    return None


def packed(items: list[Plain]) -> Plain:
    if None in items:
        return None
    kept = sorted((item for item in items if item != 0), key=repr)
    return ("f", *kept) if kept else 0


def read(step: Apply, choice: int, values: list[Cells]) -> Cells:
    source = [cell for arg in step.args for cell in values[arg]]
    cells = [
        source[place] if place >= 0 else (0 if place == -1 else None)
        for place in step.gathers.tables[choice].tolist()
    ]
    if step.fold is None:
        return tuple(cells)
    n = step.fold
    return tuple(packed(cells[at : at + n]) for at in range(0, len(cells), n))


def all_values(program: Program) -> Iterator[tuple[tuple[int, ...], list[Cells]]]:
    """Every fill, in lexicographic order, with the values of all steps."""

    def go(values: list[Cells], fill: tuple[int, ...]) -> Iterator[Any]:
        if len(values) == len(program.steps):
            yield fill, values
            return
        step = program.steps[len(values)]
        if isinstance(step, Literal):
            yield from go([*values, tuple(plain(term) for term in step.values)], fill)
            return
        for choice in range(len(step.gathers)):
            more = (choice,) if len(step.gathers) > 1 else ()
            yield from go([*values, read(step, choice, values)], (*fill, *more))

    return go([], ())


def all_fills(program: Program, goal: Goal) -> list[tuple[int, ...]]:
    wanted = tuple(plain(term) for term in goal.values)
    return [fill for fill, values in all_values(program) if values[-1] == wanted]
