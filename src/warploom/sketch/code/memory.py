"""Which element of which input a cell is: literals and fixed gathers of them come in, views go out.

Literals that share symbols are one input; its elements are its symbols in ascending order. A view
says of every cell which input it is of and which element, by table and, where that is known, as
arithmetic over the cell's coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warploom.errors import CheckError, UnsupportedError
from warploom.index.ir import Const, Expr, fold_up, substitute
from warploom.index.laws import simplify
from warploom.index.table import Ints
from warploom.sketch.holes.expressions import flat, own_coordinates
from warploom.sketch.term.gather import GatherExpr, Shape, size, strides
from warploom.sketch.term.ir import (
    STEP,
    UNDEFINED,
    ZERO,
    Constant,
    Literal,
    Program,
    Symbol,
    Table,
    Undefined,
    Zero,
)

_LONG = 16  # parts for each cell, written out; one table of numbers has fewer


@dataclass(frozen=True, slots=True)
class Input:
    """An array in memory; element n of a tile is symbol `symbols[n]`."""

    name: str
    symbols: tuple[int, ...]
    shape: Shape  # of a tile, as the sketch writes it
    step: int | None = None  # how far apart its tiles begin, if the sketch says so


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Cell c is element `elements[c]` of input `inputs[c]`, which is ZERO or UNDEFINED where it is
    neither; `element` is the same over coordinates x0, x1, …, where one input is all there is."""

    shape: Shape
    inputs: Ints
    elements: Ints
    element: Expr | None


def inputs_of(program: Program, live: frozenset[int]) -> tuple[Input, ...]:
    """The arrays that the literals of a program stand for, in order."""
    groups: list[tuple[str, set[int]]] = []
    for position in sorted(live):
        step = program.steps[position]
        if isinstance(step, Literal):
            mine = {value.number for value in step.values if isinstance(value, Symbol)}
            name = next((name for name, known in groups if known & mine), step.name)
            for _, known in (group for group in groups if group[1] & mine):
                mine |= known
            groups = [group for group in groups if not group[1] & mine]
            groups += [(name, mine)] if mine else []
    found = []
    for name, symbols in groups:
        steps = _steps(program, symbols)
        elements = tuple(sorted(symbols))
        shape = _shape(program, elements)
        found.append(Input(name, elements, shape, steps[0] if steps else None))
    return tuple(found)


def _shape(program: Program, elements: tuple[int, ...]) -> Shape:
    """That of the literal that holds all elements in order; one axis if there is none such."""
    whole = tuple(Symbol(number) for number in elements)
    literals = (step for step in program.steps if isinstance(step, Literal))
    return next((step.shape for step in literals if step.values == whole), (len(elements),))


def _steps(program: Program, symbols: set[int]) -> list[int]:
    """The step that literals of some symbols are marked with; two different ones are refused."""
    found: list[int] = []
    for step in program.steps:
        if isinstance(step, Literal):
            mine = any(isinstance(v, Symbol) and v.number in symbols for v in step.values)
            found += [n for name, n in step.marks if name == STEP and n is not None and mine]
            if len(set(found)) > 1:
                raise CheckError(
                    f"'{step.name}' has @step={found[-1]}, but shares elements with another of"
                    f" @step={found[0]}",
                    step.span,
                )
    return found


def view_of_literal(step: Literal, inputs: Sequence[Input]) -> View:
    owner = {symbol: n for n, each in enumerate(inputs) for symbol in each.symbols}
    place = {symbol: at for each in inputs for at, symbol in enumerate(each.symbols)}
    held, elements = np.zeros(len(step.values), np.int64), np.zeros(len(step.values), np.int64)
    for cell, value in enumerate(step.values):
        match value:
            case Symbol(number):
                held[cell], elements[cell] = owner[number], place[number]
            case Zero():
                held[cell] = ZERO
            case Undefined():
                held[cell] = UNDEFINED
            case Constant(number):
                raise UnsupportedError(
                    f"'{step.name}' holds the number {number}",
                    step.span,
                    "kernels of term sketches read their inputs from memory: make it an input",
                )
            case _:
                raise UnsupportedError(
                    f"'{step.name}' holds folds", step.span, "fold in a step of the sketch"
                )
    return View(step.shape, held, elements, _element(step.shape, held, elements))


def _element(shape: Shape, held: Ints, elements: Ints) -> Expr | None:
    """Elements that grow evenly, of one input."""
    pace = int(elements[1] - elements[0]) if len(elements) > 1 else 1
    even = (elements == elements[0] + pace * np.arange(len(elements))).all()
    if not even or (held != held[0]).any() or held[0] < 0:
        return None
    return simplify(flat(shape, own_coordinates(shape)) * pace + int(elements[0]))


def gathered(gather: GatherExpr, table: Table, shape: Shape, arguments: Sequence[View]) -> View:
    """The view that a gather makes of views."""
    tail = np.array([UNDEFINED, ZERO], np.int64)
    inputs = np.concatenate([*(view.inputs for view in arguments), tail])[table]
    elements = np.concatenate([*(view.elements for view in arguments), tail * 0])[table]
    element = None
    if len(arguments) == 1 and gather.argument is Const(0) and arguments[0].element is not None:
        element = _through(arguments[0].element, arguments[0].shape, gather.offset, shape)
    return View(shape, inputs, elements, element)


def _through(element: Expr, between: Shape, offset: Expr, shape: Shape) -> Expr | None:
    """An element at the place that an offset names, unless that is longer than a table of it: two
    tables, one read through the other, grow as the product of both."""
    bounds = {f"x{axis}": (0, length - 1) for axis, length in enumerate(shape)}
    places: dict[str, Expr | int] = {}
    for axis, (length, stride) in enumerate(zip(between, strides(between), strict=True)):
        whole = offset // stride
        places[f"x{axis}"] = simplify(whole if axis == 0 else whole % length, bounds)
    made = simplify(substitute(element, places), bounds)
    parts = fold_up(made, lambda _, each: 1 + sum(each))
    return made if parts <= _LONG * size(shape) else None
