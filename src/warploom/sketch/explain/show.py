"""An explanation as lines for a person, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from warploom.errors import InternalError, Span
from warploom.search.budget import Budget
from warploom.sketch.explain.numbers import has_operators
from warploom.sketch.explain.reason import SECONDS, CellReason, Explanation, Space, explain
from warploom.sketch.term.ir import Program, Shape, Term, size
from warploom.sketch.term.laws import laws_said
from warploom.sketch.term.limits import show_shape
from warploom.sketch.term.show import show_term

CellName = Callable[[int, tuple[int, ...]], str]

_VALUES = 6  # listed; the others are counted
_CELLS = 4  # shown; the others are counted
_WIDEST = 60  # characters of a term


def goal_cell(_number: int, cell: tuple[int, ...]) -> str:
    return f"goal cell ({', '.join(map(str, cell))})"


def lines(why: Explanation, name: CellName = goal_cell) -> Iterator[str]:
    """Each says one thing: what was ruled out, which cells, what reaches them, which hole."""
    yield f"ruled out: {_ruled_out(why)}"
    if len(why.cells) > 1:
        yield _together(why, name)
    for reason in why.cells[: _CELLS if len(why.cells) <= 2 * _CELLS else 1]:
        yield _cell(why, reason, name)
    if why.holes:
        yield _blame(why)
    yield from _laws(why)


def _laws(why: Explanation) -> Iterator[str]:
    """Up to what it is impossible, where there is something that laws could change."""
    goal = why.cut.goals[0]
    if why.agrees:
        fill = ", ".join(f"'{hole}' {choice}" for hole, choice in why.agrees.items())
        yield f"a fill that differs from the goal as a term is equal on the numbers tried: {fill}"
    if has_operators(why.cut, goal):
        yield f"the laws used: {laws_said(goal.laws)}"


def output_cell(outputs: Sequence[tuple[str, Shape]]) -> CellName:
    """The elements of arrays that lie end to end in the goal: `y[3]`."""

    def name(number: int, _cell: tuple[int, ...]) -> str:
        start = 0
        for array, shape in outputs:
            if number < start + size(shape):
                at = np.unravel_index(number - start, shape)
                return f"{array}[{', '.join(str(int(i)) for i in at)}]"
            start += size(shape)
        raise InternalError(f"the outputs have no element {number}")

    return name


def warp_reason(
    program: Program, outputs: Sequence[tuple[str, Shape]], spaces: Sequence[int], budget: Budget
) -> str:
    """Why a warp sketch, lowered to this program, is impossible; in names of its own."""
    why = explain(program, budget=budget.up_to(SECONDS))
    searched = f"spaces {', '.join(map(str, spaces))}; of the largest, all statements kept:"
    return "\n".join([searched, *lines(why, output_cell(outputs))])


def place(span: Span | None) -> str:
    return "" if span is None else f"{span.source.name}:{span.line}:{span.column}"


def _ruled_out(why: Explanation) -> str:
    if not why.holes:
        if why.agrees is None:
            return "the sketch has no holes, and what it computes differs from its goal"
        return (
            "the sketch has no holes, and what it computes differs from its goal as a term "
            "(equal on the numbers tried)"
        )
    count = why.space
    many = f"all {count} fills" if count < 10**9 else f"all fills, about 1e{len(str(count)) - 1}"
    return f"{many} of {'; '.join(map(_hole, why.holes))}"


def _hole(hole: Space) -> str:
    return f"'{hole.name}' ({hole.function}, {hole.choices} choices on {show_shape(hole.shape)})"


def _together(why: Explanation, name: CellName) -> str:
    if why.is_whole:
        return f"no single fill gets all {len(why.cells)} goal cells right"
    named = [name(reason.number, reason.cell) for reason in why.cells]
    if len(named) > _CELLS:
        named = [*named[:_CELLS], f"{len(named) - _CELLS} more"]
    word = "both" if len(why.cells) == 2 else "all"
    text = f"no single fill gets {', '.join(named[:-1])} and {named[-1]} {word} right"
    return text + ("; without any one of them, some fill does" if why.minimal else "")


def _cell(why: Explanation, reason: CellReason, name: CellName) -> str:
    text = (
        f"{name(reason.number, reason.cell)} should hold {_term(reason.wanted)}; {_listed(reason)}"
    )
    missing = reason.reached.missing(reason.wanted)
    if missing:
        text += f"; {_terms(missing)} cannot become part of that fold"
    elif len(why.cells) == 1 and not reason.is_unreachable:
        text += ", but no fill puts it there"
    return text


def _listed(reason: CellReason) -> str:
    """Nothing else can get there."""
    reached = reason.reached
    parts = [_terms(reached.values)] if reached.values else []
    parts += ["values that are nowhere in the goal"] if reached.others else []
    return f"only {' and '.join(parts)} can reach it" if parts else "nothing can reach it"


def _terms(terms: Sequence[Term]) -> str:
    shown = ", ".join(map(_term, terms[:_VALUES]))
    return shown if len(terms) <= _VALUES else f"{shown}, … ({len(terms)} values)"


def _term(term: Term) -> str:
    return show_term(term, _WIDEST)


def _blame(why: Explanation) -> str:
    those = "it" if len(why.cells) == 1 else "them"
    named = [
        f"'{hole.name}'" + (f" ({place(hole.span)})" if hole.span else "") for hole in why.blamed
    ]
    match why.blame.kind:
        case "one" if len(named) == 1:
            only = "; no other hole would" if why.blame.every and len(why.holes) > 1 else ""
            return (
                f"blocked by {named[0]}: a gather of any kind in its place could fill {those}{only}"
            )
        case "one":
            return (
                f"blocked by {' or '.join(named)}: a gather of any kind in place of one of them "
                f"could fill {those}"
            )
        case "several":
            return (
                f"blocked by {' and '.join(named)} together: no hole on its own would do, whatever "
                f"gather it were; gathers of any kind in place of these could fill {those}"
            )
        case "none":
            return f"no hole blocks {those}: whatever gathers the holes were, it would not do"
        case "unknown":
            return why.blame.note or "which hole blocks it was not found"


# -- data ------------------------------------------------------------------------------------------


def record(why: Explanation, name: CellName = goal_cell) -> dict[str, Any]:
    return {
        "text": list(lines(why, name)),
        "space": why.space,
        "holes": [_hole_record(hole) for hole in why.holes],
        "cells": [_cell_record(reason) for reason in why.cells],
        "minimal": why.minimal,
        "equal_on_numbers": why.agrees,
        "blocked_by": {
            "kind": why.blame.kind,
            "holes": [_hole_record(hole) for hole in why.blamed],
        },
    }


def _hole_record(hole: Space) -> dict[str, Any]:
    return {
        "name": hole.name,
        "function": hole.function,
        "choices": hole.choices,
        "shape": list(hole.shape),
        "place": place(hole.span),
    }


def _cell_record(reason: CellReason) -> dict[str, Any]:
    reached = reason.reached
    return {
        "cell": list(reason.cell),
        "should_hold": show_term(reason.wanted),
        "reached_by": [show_term(value) for value in reached.values],
        "others": reached.others,
        "unreachable": reason.is_unreachable,
        "missing": [show_term(value) for value in reached.missing(reason.wanted)],
    }
