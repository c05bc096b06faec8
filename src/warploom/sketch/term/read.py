"""How a program and a goal are read together: every fold gets its operator, or an error its place.

The word `fold` reads any operator, one for all folds of a depth: a fold in which folds nest d deep
has the operator that the goal's folds of depth d have, or, where those are written `fold` too, that
of the program's. Where nobody says, `fold` is an operator of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from warploom.errors import CheckError, Span
from warploom.sketch.term import ir
from warploom.sketch.term.laws import FLATTEN, laws_named, normal_forms, obeys
from warploom.sketch.term.limits import heights
from warploom.sketch.term.nesting import depths_of
from warploom.sketch.term.operator import OPERATORS, WORD, is_function, says
from warploom.sketch.term.zeros import check_zeros

Depths = dict[int, frozenset[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """`program` and `goal` with their operators, the goal and all inputs in normal form.

    A step that is still written `fold` forms folds of several depths: `words[d]` is what they are
    at depth d. `zeros` says where zeros are taken for nothing, and would be refused if steps had
    the operators that they stand for; empty if nowhere.
    """

    program: ir.Program
    goal: ir.Goal
    words: tuple[str, ...]
    zeros: str = ""


def read(program: ir.Program, goal: ir.Goal) -> Reading:
    """Refuses, with both places, what can be seen to be wrong before anything is evaluated."""
    live, written = live_steps(program), program
    made, wanted = dict(_folds(program, live)), {f.operator for f in heights(goal.values)}
    if not made and not wanted:
        return Reading(program, goal, ())
    words: tuple[str, ...] = ()
    if WORD in made or WORD in wanted:
        depths = depths_of(program, live, goal.laws)
        words = _words(program, goal, depths)
        program = _resolved(program, depths, words, goal.laws)
        goal = replace(goal, values=_with_words(goal.values, words))
    program = _normal_inputs(program, goal.laws)
    goal = replace(goal, values=normal_forms(goal.values, goal.laws))
    _check_operators(program, goal, live)
    check_zeros(written, goal, live)
    zeros = _taken_for_nothing(program, goal, live) if words else ""
    return Reading(program, goal, words, zeros)


def _taken_for_nothing(program: ir.Program, goal: ir.Goal, live: frozenset[int]) -> str:
    """What would be wrong with zeros, were every operator written that `fold` stands for."""
    try:
        check_zeros(program, goal, live)
    except CheckError as error:
        return error.message
    return ""


def check_symbols(program: ir.Program, goal: ir.Goal) -> None:
    """Refuses a goal with a symbol that no input holds: nothing could ever meet it."""
    inputs = [step.values for step in program.steps if isinstance(step, ir.Literal)]
    lost = {leaf for leaf in ir.leaves_of(list(goal.values)) if isinstance(leaf, ir.Symbol)}
    lost -= set(ir.leaves_of([value for values in inputs for value in values]))
    for cell, value in enumerate(goal.values if lost else ()):
        for leaf in ir.leaves_of([value]):
            if isinstance(leaf, ir.Symbol) and leaf in lost:
                raise CheckError(
                    f"goal cell ({_cell(goal, cell)}) asks for symbol {leaf.number}, "
                    "which no input holds",
                    goal.span,
                    "the symbols of the inputs are those of their arrays, such as range(0, 12)",
                )


def live_steps(program: ir.Program) -> frozenset[int]:
    """The steps that the last one depends on."""
    live = {len(program.steps) - 1}
    for position in reversed(range(len(program.steps))):
        step = program.steps[position]
        if position in live and isinstance(step, ir.Apply):
            live.update(step.args)
    return frozenset(live)


def as_published(program: ir.Program) -> ir.Program:
    """The program with every operator read as the word `fold`; a Python goal keeps its own."""
    steps = [
        replace(step, values=_without_operators(step.values))
        if isinstance(step, ir.Literal)
        else replace(step, operator=WORD if step.operator in OPERATORS else step.operator)
        for step in program.steps
    ]
    goals = [
        goal if goal.specification else replace(goal, values=_without_operators(goal.values))
        for goal in program.goals
    ]
    return replace(program, steps=tuple(steps), goals=tuple(goals))


def with_laws(program: ir.Program, laws: str) -> ir.Program:
    """The program with goals that are to be met up to these laws: "flatten" or "none"."""
    named = laws_named(laws)
    return replace(program, goals=tuple(replace(goal, laws=named) for goal in program.goals))


def _normal_inputs(program: ir.Program, laws: tuple[str, ...]) -> ir.Program:
    if FLATTEN not in laws:
        return program
    steps = [
        replace(step, values=normal_forms(step.values, laws))
        if isinstance(step, ir.Literal)
        else step
        for step in program.steps
    ]
    return replace(program, steps=tuple(steps))


# -- words ---------------------------------------------------------------------------------------


def _words(program: ir.Program, goal: ir.Goal, depths: Depths) -> tuple[str, ...]:
    """What `fold` means at each depth."""
    wanted: dict[int, set[str]] = {}
    for fold, depth in heights(goal.values).items():
        wanted.setdefault(depth, set()).add(fold.operator)
    made = list(_formed(program, depths))
    tallest = max([*wanted, *(depth for _, _, depth in made), 0])
    words = [WORD]
    for depth in range(1, tallest + 1):
        here = [(operator, step) for operator, step, at in made if at == depth]
        words.append(_word(depth, wanted.get(depth, set()), here, goal))
    return tuple(words)


def _formed(program: ir.Program, depths: Depths) -> Iterator[tuple[str, ir.Step, int]]:
    """The folds that the live steps may form or hold: operator, step, depth."""
    for position, found in depths.items():
        step = program.steps[position]
        if isinstance(step, ir.Literal):
            for fold, depth in heights(step.values).items():
                yield fold.operator, step, depth
        elif step.fold is not None:
            yield from ((step.operator, step, depth) for depth in sorted(found))


def _word(depth: int, wanted: set[str], made: list[tuple[str, ir.Step]], goal: ir.Goal) -> str:
    asking = next((step for operator, step in made if operator == WORD), None)
    if WORD not in wanted and asking is None:
        return WORD
    said = sorted(wanted & set(OPERATORS))
    if len(said) > 1:
        who = f"'{asking.name}'" if asking else "the goal"
        raise CheckError(
            f"{who} has folds of depth {depth} written 'fold', and the goal's of that depth are "
            f"{' and '.join(said)}{place_text(goal.span if asking else None)}",
            asking.span if asking else goal.span,
            "write the operator instead of 'fold'",
        )
    if said or WORD not in wanted:
        return said[0] if said else WORD
    other = {operator: step for operator, step in made if operator in OPERATORS}
    if len(other) > 1:
        steps = " and ".join(f"'{s.name}' ({o}){place_text(s.span)}" for o, s in other.items())
        raise CheckError(
            f"the goal's folds of depth {depth} are written 'fold', but {steps} differ",
            goal.span,
            "write the operators of the goal",
        )
    return next(iter(other), WORD)


def _resolved(
    program: ir.Program, depths: Depths, words: tuple[str, ...], laws: tuple[str, ...]
) -> ir.Program:
    """The program with `fold` replaced wherever only one operator is possible."""
    steps = list(program.steps)
    for position, found in depths.items():
        step = steps[position]
        if isinstance(step, ir.Literal):
            steps[position] = replace(step, values=_with_words(step.values, words))
        elif step.fold is not None and step.operator == WORD:
            meant = {words[depth] for depth in found}
            if FLATTEN in laws and (len(meant) > 1 or WORD in meant):
                raise CheckError(
                    f"'{step.name}' is written 'fold', and nothing says which operator it has",
                    step.span,
                    "under laws every fold needs its operator: write it",
                )
            if len(meant) == 1:
                steps[position] = replace(step, operator=meant.pop())
    return replace(program, steps=tuple(steps))


def _with_words(values: tuple[ir.Term, ...], words: tuple[str, ...]) -> tuple[ir.Term, ...]:
    return _renamed(values, lambda said, depth: words[depth] if said == WORD else said)


def _without_operators(values: tuple[ir.Term, ...]) -> tuple[ir.Term, ...]:
    return _renamed(values, lambda said, _: WORD if said in OPERATORS else said)


def _renamed(
    values: tuple[ir.Term, ...], operator: Callable[[str, int], str]
) -> tuple[ir.Term, ...]:
    """The terms with other operators, by what they say and how deep they are."""
    made: dict[ir.Term, ir.Term] = {}
    for fold, depth in sorted(heights(values).items(), key=lambda pair: pair[1]):
        items = [made.get(item, item) for item in fold.items]
        made[fold] = ir.fold_of(items, operator(fold.operator, depth))
    return tuple(made.get(value, value) for value in values)


# -- operators that cannot agree -----------------------------------------------------------------


def _check_operators(program: ir.Program, goal: ir.Goal, live: frozenset[int]) -> None:
    """Refuses a goal whose operators no step has, where other operators stand in their place."""
    tops = _tops(program, goal.laws)
    for cell, value in enumerate(goal.values):
        if isinstance(value, ir.Fold) and tops and {value.operator, WORD}.isdisjoint(tops):
            raise _mismatch(goal, cell, value.operator, *next(iter(tops.items())))
    made, wanted = dict(_folds(program, live)), {f.operator for f in heights(goal.values)}
    foreign = [pair for pair in made.items() if pair[0] not in wanted]
    missing = sorted(wanted - set(made))
    if foreign and missing and WORD not in made:
        inside = (heights((value,)) for value in goal.values)
        cell = next(n for n, f in enumerate(inside) if missing[0] in {i.operator for i in f})
        raise _mismatch(goal, cell, missing[0], *foreign[0])


def _mismatch(goal: ir.Goal, cell: int, wanted: str, operator: str, step: ir.Step) -> CheckError:
    return CheckError(
        f"'{step.name}' {says(operator)}, but the goal{place_text(goal.span)} {says(wanted)} "
        f"in cell ({_cell(goal, cell)})",
        step.span,
        "let both say the same"
        + ("" if is_function(operator) else "; the word 'fold' reads any operator"),
    )


def _cell(goal: ir.Goal, number: int) -> str:
    return ", ".join(str(int(i)) for i in np.unravel_index(number, goal.shape))


def _folds(program: ir.Program, positions: Iterable[int]) -> Iterator[tuple[str, ir.Step]]:
    """The operators of these steps, and of what inputs hold."""
    for position in sorted(positions):
        step = program.steps[position]
        if isinstance(step, ir.Literal):
            yield from ((fold.operator, step) for fold in heights(step.values))
        elif step.fold is not None:
            yield step.operator, step


def _tops(program: ir.Program, laws: tuple[str, ...]) -> dict[str, ir.Step]:
    """The operators of the folds that the last step's cells may hold as they are."""
    tops: list[dict[str, ir.Step]] = []
    for step in program.steps:
        if isinstance(step, ir.Literal):
            tops.append({v.operator: step for v in step.values if isinstance(v, ir.Fold)})
            continue
        here: dict[str, ir.Step] = {}
        if step.fold is not None:
            here[step.operator] = step
        if step.fold is None or obeys(step.operator, laws):
            for arg in step.args:
                here = tops[arg] | here
        tops.append(here)
    return tops[-1]


def place_text(span: Span | None) -> str:
    """A second place, in brackets, for a message that has a first."""
    return f" ({span.source.name}:{span.line}:{span.column})" if span is not None else ""
