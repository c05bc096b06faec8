"""That a sketch has no fill, as a certificate: plain data that `warploom verify` checks by itself.

It holds the sketch as it was read together with its goal, with the choices of each hole: a family
by its parameters where the checker makes its members itself, else all choices as a list. It names
the goal cells that no fill gets right together, and the holes in the way. It is checked before it
goes out, by a checker that tries every choice: where these are too many, there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from warploom.errors import CheckError, SearchError
from warploom.pipeline.certificate import FOLDER, plain_values, reads_of
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Impossible
from warploom.sketch.explain.reason import Explanation, explain
from warploom.sketch.explain.witness import witness
from warploom.sketch.holes.custom import Defined
from warploom.sketch.holes.xform import Rotations, Xforms
from warploom.sketch.synth.result import Result
from warploom.sketch.term.ir import Apply, Goal, Literal, Program, Step
from warploom.sketch.term.read import read
from warploom.trust.checked import TooMuchError, Work, digest, distinct_rows
from warploom.trust.choices import MOST_HELD, tables_of
from warploom.trust.impossible import VERSION, check_impossible, left_out

SECONDS = 1.0  # to find the gathers that would do in place of the holes in the way
_MOST_LISTED = 1 << 20  # cells of all choices that are listed
_MOST_MADE = MOST_HELD

Sizes = Mapping[str, Any]


def certificate_of_impossible(
    found: Result, why: Explanation | None = None, sizes: Sizes | None = None
) -> dict[str, Any]:
    """The proof that a sketch has no fill for its goal. `why` is what `explain` said of it.

    An error says where there is none: the sketch has a fill, or there are too many to try.

    >>> from warploom import Sketch, synthesize
    >>> text = "x: [3] = range(0, 3)\\ny: [3] = ?rots{main=0,second=0,out=0}(x)\\n"
    >>> none = synthesize(Sketch.from_text(text + "goal: [3] = [1, 0, 2]"))
    >>> proof = certificate_of_impossible(none)
    >>> proof["verdict"], proof["goal"]["cells"]
    ('impossible', [0, 1])
    >>> proof["not_covered"]
    ['fills that are right on numbers alone, as where a zero is 0']
    """
    name = found.program.name
    if not isinstance(found.outcome, Impossible) or found.outcome.why:
        raise SearchError(f"'{name}' is not impossible as terms: {found.outcome}")
    number = found.program.goals.index(found.goal)
    if why is None:
        why = explain(found.program, number)
    record = record_of_impossible(found.program, found.goal, why, sizes)
    if unknown := check_impossible(record).open:
        raise CheckError(
            f"'{name}' has too many fills to try one by one: it would leave open {unknown}"
        )
    return record


def record_of_impossible(
    program: Program, goal: Goal, why: Explanation, sizes: Sizes | None = None
) -> dict[str, Any]:
    """The record, whether it holds or not."""
    cells = [each.number for each in why.cells]
    blocked = list(_blocked(why)) if why.blame.kind == "one" else []
    return plain_record(program, goal, cells, blocked, sizes)


def plain_record(
    program: Program,
    goal: Goal,
    cells: Iterable[int],
    blocked: list[dict[str, Any]],
    sizes: Sizes | None = None,
) -> dict[str, Any]:
    """The claim that no fill gives these goal cells."""
    reading = read(program, goal)
    cells = list(cells)
    number = program.goals.index(goal) + 1 if goal in program.goals else 1
    room = [_MOST_LISTED]
    found: dict[str, Any] = {
        "kind": "impossible",
        "version": VERSION,
        "name": FOLDER.sub("", program.name),
        "size": dict(sizes or {}),
        "steps": [_step(step, reading.program, room) for step in reading.program.steps],
        "words": [] if goal.laws else list(reading.words),
        "goal": {
            "number": number,
            "of": max(1, len(program.goals)),
            "text": goal.text,
            "shape": list(goal.shape),
            "cells": cells,
            "values": plain_values(tuple(reading.goal.values[cell] for cell in cells)),
        },
        "laws": list(goal.laws),
        "blocked": blocked,
        "verdict": "impossible",
    }
    found["not_covered"] = left_out(found)
    return found | {"digest": digest(found)}


def _blocked(why: Explanation) -> Iterable[dict[str, Any]]:
    """The holes in the way for which a gather that would do is soon found."""
    budget = Budget(SECONDS)
    for hole in why.blame.holes:
        try:
            tables = witness(why.cut, hole, budget)
        except BudgetSpentError:
            return
        if tables is not None:
            said = {f"{position}": table.tolist() for position, table in sorted(tables.items())}
            yield {"step": hole, "tables": said}


def _step(step: Step, program: Program, room: list[int]) -> dict[str, Any]:
    shape = list(step.shape)
    if isinstance(step, Literal):
        return {"name": step.name, "shape": shape, "values": plain_values(step.values)}
    gathers = step.gathers
    own = isinstance(gathers.family, Defined) or not gathers.is_hole
    return {
        "name": step.name,
        "shape": shape,
        "cells": list(gathers.out_shape),
        "args": list(step.args),
        "function": None if own else gathers.function,
        "choices": _family(step) or _listed(step, program, room),
        "fold": step.fold,
        "operator": None if step.fold is None else step.operator,
    }


def _listed(step: Apply, program: Program, room: list[int]) -> list[dict[str, Any]]:
    room[0] -= len(step.gathers) * math.prod(step.gathers.out_shape)
    if room[0] < 0:
        raise CheckError(
            f"'{program.name}' has too many choices to list: more than {_MOST_LISTED} cells"
        )
    if not step.gathers.is_hole:
        return [reads_of(step, 0)]
    return [{"table": step.gathers.table(n).tolist()} for n in range(len(step.gathers))]


def _family(step: Apply) -> dict[str, Any] | None:
    """The family that a hole may be filled from, if the checker makes all its members."""
    gathers = step.gathers
    family = gathers.family
    if not isinstance(family, Xforms | Rotations) or not gathers.is_hole:
        return None
    if len(gathers) * math.prod(gathers.out_shape) > _MOST_MADE:
        raise CheckError(f"'{step.name}' has too many choices to try them one by one")
    functions = family.functions
    second = functions.main if functions.second is None else functions.second
    said = {
        "family": "xforms" if isinstance(family, Xforms) else "rots",
        "axes": [functions.main, second, family.axis],
        "whole": gathers.function.endswith("_no_group"),
        "argument": 0,
    }
    room, shapes = Work(MOST_HELD), (gathers.out_shape, gathers.arg_shapes)
    try:
        made = tables_of(said, step.name, *shapes, Work(1 << 40), room)
    except TooMuchError:
        raise CheckError(f"'{step.name}' has too many choices to try them one by one") from None
    ours = distinct_rows(gathers.tables.astype(np.int64))
    return said if np.array_equal(made, ours) else None
