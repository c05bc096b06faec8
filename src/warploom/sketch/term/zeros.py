"""Refuses a zero that would have to be two numbers: what each fold that consumes it takes it for.

A zero is the neutral element of the fold that consumes it, so a cell that a sum and a product may
both read must not be zero; nor may a product of nothing but zeros, which is 1, be added up. Where
no fold consumes a zero, it is 0. Any choice of any hole is followed. A step that is written `fold`
takes a zero for nothing at all, whatever its operator: that is how published sketches read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.sketch.term.ir import ZERO, Apply, Goal, Literal, Program, Step, Table, Zero, size
from warploom.sketch.term.operator import OPERATORS, is_function, neutral

Flags: TypeAlias = npt.NDArray[np.bool_]
Sets: TypeAlias = npt.NDArray[np.uint8]  # of consumers, as bits
Steps: TypeAlias = dict[int, Step]

NUMBER = "0"  # consumes a zero as the number 0: the goal, or a function
_CONSUMERS = (NUMBER, *OPERATORS)
_TAIL = np.array([False, True])  # undefined and zero, behind the arguments
_AT_ONCE = 1 << 22


def check_zeros(program: Program, goal: Goal, live: frozenset[int]) -> None:
    """`program` as it was written: the word `fold` consumes nothing."""
    steps = {position: program.steps[position] for position in sorted(live)}
    consumers = {_consumer(step) for step in steps.values()} - {""}
    if any(isinstance(value, Zero) for value in goal.values):
        consumers.add(NUMBER)
    several = any(_differ(*pair) for pair in combinations(consumers, 2))
    if several and _may_clash(steps, NUMBER in consumers):
        _follow(steps, goal)


def _consumer(step: Step) -> str:
    """The operator for which a step takes zeros; empty if it takes none, or for nothing."""
    if isinstance(step, Literal) or step.fold is None:
        return ""
    if is_function(step.operator):
        return NUMBER
    return step.operator if step.operator in OPERATORS else ""


def _differ(one: str, other: str) -> bool:
    """Whether a zero cannot be what both take it for."""
    if NUMBER in (one, other):
        return neutral(one) != neutral(other)
    return one != other


def _may_clash(steps: Steps, number: bool) -> bool:
    """A first look, step by step instead of cell by cell: tables are only searched for zeros."""
    zero: dict[int, bool] = {}
    for position, step in steps.items():
        if isinstance(step, Literal):
            zero[position] = any(isinstance(value, Zero) for value in step.values)
        else:
            zero[position] = any(zero[arg] for arg in step.args) or _makes_zeros(step)
    taken = dict.fromkeys(steps, 0)
    taken[max(steps)] = _bit(NUMBER) if number else 0
    for position in reversed(steps):
        step = steps[position]
        if isinstance(step, Apply):
            consumer = _consumer(step)
            inner = taken[position] | (_bit(consumer) if consumer else 0)
            for arg in step.args:
                taken[arg] |= inner
            if zero[position] and _clash(inner):
                return True
    return any(zero[position] and _clash(taken[position]) for position in steps)


def _makes_zeros(step: Apply) -> bool:
    return any(bool((part == ZERO).any()) for part in _parts(step.gathers.spanning))


def _parts(tables: Table) -> Iterator[Table]:
    rows = max(1, _AT_ONCE // tables.shape[1])
    return (tables[start : start + rows] for start in range(0, len(tables), rows))


def _clash(consumers: int) -> tuple[str, str] | None:
    """Two of these consumers that take a zero for different numbers."""
    found = [name for n, name in enumerate(_CONSUMERS) if consumers >> n & 1]
    return next((pair for pair in combinations(found, 2) if _differ(*pair)), None)


# -- which cells may be zero ---------------------------------------------------------------------


def _zeros(steps: Steps) -> dict[int, Flags]:
    """The cells of each step that some choice makes zero."""
    zero: dict[int, Flags] = {}
    for position, step in steps.items():
        if isinstance(step, Literal):
            zero[position] = np.array([isinstance(value, Zero) for value in step.values])
        else:
            source = np.concatenate([*(zero[arg] for arg in step.args), _TAIL])
            zero[position] = _zero_cells(step, source)
    return zero


def may_be_lone(steps: Steps) -> frozenset[int]:
    """The folds of which some run may hold a single item, the rest being zero."""
    zero, found = _zeros(steps), set()
    for position, step in steps.items():
        if isinstance(step, Apply) and step.fold is not None:
            source = np.concatenate([*(zero[arg] for arg in step.args), _TAIL])
            never = ~_zero_cells(replace(step, fold=None), source)
            if (never.reshape(-1, step.fold).sum(axis=1) <= 1).any():
                found.add(position)
    return frozenset(found)


def _zero_cells(step: Apply, source: Flags) -> Flags:
    gathers, run = step.gathers, step.fold or 1
    found = np.zeros(size(gathers.out_shape) // run, np.bool_)
    if is_function(step.operator) and step.fold is not None:
        return found
    for tables in gathers.blocks() if run > 1 else _parts(gathers.spanning):
        part = source[tables]
        found |= part.reshape(len(part), -1, run).all(axis=2).any(axis=0)
    return found


# -- what may consume them -----------------------------------------------------------------------


def _follow(steps: Steps, goal: Goal) -> None:
    zero = _zeros(steps)
    taken = {position: np.zeros(len(cells), np.uint8) for position, cells in zero.items()}
    last = max(steps)
    wanted = np.array([isinstance(value, Zero) for value in goal.values])
    taken[last][wanted] = _bit(NUMBER)
    for position in reversed(steps):
        step = steps[position]
        if isinstance(step, Literal):
            continue
        inner = _inner(step, taken[position], zero[position])
        made = (step.gathers.spanning == ZERO).any(axis=0)
        _check(steps, position, inner[made])
        source = _of_source(step, inner, sum(len(zero[arg]) for arg in step.args))
        start = 0
        for arg in step.args:
            taken[arg] |= source[start : start + len(zero[arg])]
            _check(steps, arg, taken[arg][zero[arg]])
            start += len(zero[arg])


def _bit(consumer: str) -> int:
    return 1 << _CONSUMERS.index(consumer)


def _inner(step: Apply, taken: Sets, zero: Flags) -> Sets:
    """What may consume a zero that the step has gathered, before its fold."""
    if step.fold is None:
        return taken
    consumer = _consumer(step)
    here = np.uint8(_bit(consumer) if consumer else 0)
    return np.repeat(np.where(zero, taken, np.uint8(0)) | here, step.fold)


def _of_source(step: Apply, inner: Sets, places: int) -> Sets:
    """What may consume a zero, for the places that the step may read."""
    source = np.zeros(places + len(_TAIL), np.uint8)
    for consumers in np.unique(inner):
        read = np.zeros(len(source), np.bool_)
        read[step.gathers.spanning[:, inner == consumers]] = True
        source[read] |= consumers
    return source


def _check(steps: Steps, position: int, consumed: Sets) -> None:
    for consumers in np.unique(consumed).tolist():
        clash = _clash(consumers)
        if clash is not None:
            raise _refused(steps, position, *clash)


def _refused(steps: Steps, position: int, one: str, other: str) -> CheckError:
    step = steps[position]
    after = _after(steps, position)
    return CheckError(
        f"a zero of '{step.name}' would be {_taken(one, after)} and {_taken(other, after)}",
        step.span,
        "let each zero reach folds of one operator only, or make an input of it",
    )


def _after(steps: Steps, position: int) -> list[Apply]:
    """The step itself and all that read it."""
    found = {position}
    for later, step in steps.items():
        if isinstance(step, Apply) and not found.isdisjoint(step.args):
            found.add(later)
    return [s for p in sorted(found) if isinstance(s := steps[p], Apply)]


def _taken(consumer: str, after: list[Apply]) -> str:
    step = next((step for step in after if _consumer(step) == consumer), None)
    if step is None:
        return "0 in the goal"
    return f"{neutral(consumer)} to '{step.name}' ({step.operator})"
