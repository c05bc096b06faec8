"""Puts a program together step by step; the text checker and the Python builder both stand on it.

Functions are resolved here: a user's definition of exactly these shapes first, then the built-in
sets, which come in as `Functions` because they live in a later folder.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import numpy as np

from warploom.errors import CheckError, OptionError, Span, WarploomError
from warploom.sketch.term import ir
from warploom.sketch.term.goals import Options
from warploom.sketch.term.limits import (
    MAX_NESTING,
    MAX_TOTAL,
    check_run,
    check_shape,
    height,
    show_shape,
)
from warploom.sketch.term.operator import WORD

Key = tuple[str, tuple[ir.Shape, ...], ir.Shape]


class Functions(Protocol):
    """What `warploom.sketch.holes` offers: built-in sets by name, and sets given as tables."""

    def build(
        self, function: str, options: Options, arg_shapes: tuple[ir.Shape, ...], out_shape: ir.Shape
    ) -> ir.GatherSet: ...

    def custom(
        self,
        name: str,
        arg_shapes: tuple[ir.Shape, ...],
        out_shape: ir.Shape,
        choices: Sequence[str],
        tables: ir.Table,
    ) -> ir.GatherSet: ...

    def known(self) -> Collection[str]: ...


@contextmanager
def at(span: Span | None, options: Mapping[str, Span] | None = None) -> Iterator[None]:
    """Gives an error that passes through its place, if it has none yet: that of an option, if one
    is what is wrong."""
    try:
        yield
    except WarploomError as error:
        if error.span is None:
            wrong = error.option if isinstance(error, OptionError) else ""
            error.span = (options or {}).get(wrong, span)
        raise


def nearest(name: str, names: Collection[str], otherwise: str = "") -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean '{near[0]}'?" if near else otherwise


class Assembly:
    """A program under construction."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.steps: list[ir.Step] = []
        self.goals: list[ir.Goal] = []
        self.definitions: list[ir.Definition] = []
        self._active: dict[Key, ir.GatherSet] = {}
        self._built: dict[tuple[object, ...], ir.GatherSet] = {}
        self._names: dict[str, int] = {}  # how often each was asked for
        self._heights: list[int] = []
        self._cells = 0

    def shape(self, position: int) -> ir.Shape:
        return self.steps[position].shape

    def unique(self, name: str) -> str:
        """The name itself the first time, then name.2, name.3, …"""
        candidate, count = name, self._names.get(name, 0)
        while candidate in self._names:
            count += 1
            candidate = f"{name}.{count}"
        self._names[name] = max(count, 1)
        self._names.setdefault(candidate, 1)
        return candidate

    def _add(self, step: ir.Step, nesting: int, cells: int) -> int:
        self._cells += cells
        if self._cells > MAX_TOTAL:
            raise CheckError(f"the arrays of the sketch have more than {MAX_TOTAL} cells together")
        if nesting > MAX_NESTING:
            raise CheckError(f"folds nest at most {MAX_NESTING} deep")
        self.steps.append(step)
        self._heights.append(nesting)
        return len(self.steps) - 1

    def literal(
        self, name: str, shape: ir.Shape, values: tuple[ir.Term, ...], span: Span | None = None
    ) -> int:
        """Adds an input; the position of its step comes out."""
        step = ir.Literal(self.unique(name), shape, values, span)
        return self._add(step, height(values), len(values))

    def call(
        self,
        name: str,
        gathers: ir.GatherSet,
        args: tuple[int, ...],
        operator: str | None = None,
        span: Span | None = None,
    ) -> int:
        """Adds `name = gathers(args)`; with an operator, the last axis is packed."""
        shape, fold = gathers.out_shape, None
        if operator is not None:
            shape, fold = shape[:-1], shape[-1]
            check_run(operator, fold)
        step = ir.Apply(self.unique(name), shape, args, gathers, fold, operator or WORD, span)
        nesting = max((self._heights[arg] for arg in args), default=0)
        return self._add(step, nesting + (fold is not None), ir.size(gathers.out_shape))

    def mark(self, position: int, marks: ir.Marks) -> None:
        """Says of a step where its array lies."""
        step = self.steps[position]
        self.steps[position] = replace(step, marks=(*step.marks, *marks))

    def define(self, definition: ir.Definition) -> None:
        """Makes a user's own gathers known: equal ones once; it replaces an earlier definition."""
        rows = np.unique(definition.tables, axis=0, return_index=True)[1]
        rows.sort()
        kept = ir.Definition(
            definition.name,
            definition.arg_shapes,
            definition.out_shape,
            tuple(definition.choices[row] for row in rows),
            np.ascontiguousarray(definition.tables[rows], np.int32),
        )
        key = (kept.name, kept.arg_shapes, kept.out_shape)
        self._active[key] = self.functions.custom(*key, kept.choices, kept.tables)
        self.definitions.append(kept)

    def resolve(
        self, function: str, options: Options, args: tuple[int, ...], out_shape: ir.Shape
    ) -> ir.GatherSet:
        """What the function may be for these shapes."""
        check_shape(out_shape)
        arg_shapes = tuple(self.shape(arg) for arg in args)
        own = self._active.get((function, arg_shapes, out_shape))
        if own is not None:
            if options:
                raise CheckError(f"'{function}' is a definition and takes no options")
            return own
        if function in self.functions.known():
            return self._build(function, options, arg_shapes, out_shape)
        others = self._definitions_of(function)
        if others:
            wanted = _signature((function, arg_shapes, out_shape))
            raise CheckError(f"no definition {wanted}", advice=_existing(others))
        names = {*self.functions.known(), *(key[0] for key in self._active)}
        raise CheckError(
            f"unknown function '{function}'",
            advice=nearest(function, names, "functions: " + ", ".join(sorted(names))),
        )

    def _build(
        self, function: str, options: Options, arg_shapes: tuple[ir.Shape, ...], out_shape: ir.Shape
    ) -> ir.GatherSet:
        """A built-in set; the same call gives the same set, which is costly to make."""
        key = (function, tuple(sorted(options.items())), arg_shapes, out_shape)
        if key not in self._built:
            try:
                gathers = self.functions.build(function, options, arg_shapes, out_shape)
            except WarploomError as error:
                error.advice = _existing(self._definitions_of(function)) or error.advice
                raise
            self._built[key] = gathers
        return self._built[key]

    def _definitions_of(self, function: str) -> list[Key]:
        return [key for key in self._active if key[0] == function]

    def goal(self, goal: ir.Goal) -> None:
        height(goal.values)
        if any(isinstance(value, ir.Undefined) for value in goal.values):
            raise CheckError("a goal cannot ask for undefined cells", advice="write () for zero")
        self.goals.append(goal)

    def program(self, name: str, end: Span | None = None) -> ir.Program:
        """The finished program; `end` is where missing parts are reported."""
        if not self.steps:
            what = "the sketch has a goal but no statement" if self.goals else "the sketch is empty"
            raise CheckError(what, end, "begin with an input, such as x: [32] = range(0, 32)")
        if not self.goals:
            raise CheckError("the sketch has no goal", end, "add one, such as goal: [32] id")
        last = self.steps[-1]
        for goal in self.goals:
            if goal.shape != last.shape:
                raise CheckError(
                    f"the goal has shape {show_shape(goal.shape)}, "
                    f"but the last statement '{last.name}' has {show_shape(last.shape)}",
                    goal.span,
                    "the last statement must hold exactly the cells of the goal",
                )
        return ir.Program(name, tuple(self.steps), tuple(self.goals), tuple(self.definitions))


def _signature(key: Key) -> str:
    name, args, out = key
    return f"{name}({', '.join(map(show_shape, args))}) -> {show_shape(out)}"


def _existing(keys: list[Key], most: int = 4) -> str:
    """Advice that lists definitions of the same name, or nothing."""
    if not keys:
        return ""
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return "there is " + ", ".join(map(_signature, keys[:most])) + more
