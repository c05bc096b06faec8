"""A proved fill as a certificate: plain data that `warploom verify` checks by itself.

It holds the sketch, step by step, as it was read together with its goal; what each gather reads, as
index expressions where these are short; the goal, cell by cell; and up to which laws they are
equal. It is checked before it goes out.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from typing import Any

from warploom.errors import CheckError, SearchError
from warploom.index.show import show
from warploom.search.sources import sources_digest
from warploom.sketch.holes import choice_to_json
from warploom.sketch.simt.lower import lower
from warploom.sketch.simt.solve import Filled
from warploom.sketch.simt.space import counterparts
from warploom.sketch.synth.result import Result
from warploom.sketch.term.evaluate import Fill, choices, evaluate
from warploom.sketch.term.gather import Sense
from warploom.sketch.term.ir import (
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
)
from warploom.sketch.term.limits import heights
from warploom.sketch.term.read import read
from warploom.sketch.term.verify import verify
from warploom.trust.checked import digest
from warploom.trust.fill import UNSIGNED, check_fill

VERSION = 1
_LONGEST_INDEX = 4096  # characters; a table says it in less
_LARGEST = 1 << 20  # parts of terms that are written


def certificate(
    found: Result | Filled, number: int = 0, sizes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """That of a fill which was found; `sizes` is what the sketch was built at, for the reader."""
    if isinstance(found, Filled):
        program, fill = closed(found)
        return certificate_of(program, program.goals[0], fill, sizes)
    if not len(found.fills):
        raise SearchError(f"'{found.program.name}' has no fill to certify: {found.outcome}")
    if not found.verdicts[number : number + 1] or not found.verdicts[number]:
        raise SearchError(f"fill {number + 1} of '{found.program.name}' is not proved")
    return certificate_of(found.program, found.goal, found.fills.as_dict(number), sizes)


def certificate_of(
    program: Program, goal: Goal, fill: Fill = (), sizes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """That of a program with its holes filled, which is verified first."""
    verdict = verify(program, goal, fill)
    if not verdict:
        raise CheckError(f"'{program.name}' is not proved: {verdict}")
    found = record_of_fill(program, goal, fill, sizes)
    check_fill(found)
    return found


def record_of_fill(
    program: Program, goal: Goal, fill: Fill = (), sizes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The record, whether it holds or not."""
    reading = read(program, goal)
    taken = choices(program, fill)
    held = evaluate(reading.program, fill, reading.words, goal.laws)
    terms = (*reading.goal.values, *(term for step in held for term in step))
    written = [step.operator if isinstance(step, Apply) else "" for step in program.steps]
    steps = zip(reading.program.steps, taken, written, strict=True)
    found: dict[str, Any] = {
        "kind": "fill",
        "version": VERSION,
        "name": program.name,
        "size": dict(sizes or {}),
        "steps": [_step_record(*each) for each in steps],
        "words": list(reading.words),
        "goal": {
            "text": goal.text,
            "shape": list(goal.shape),
            "values": _values(reading.goal.values),
        },
        "laws": list(goal.laws),
        "operators": sorted({fold.operator for fold in heights(terms)}),
        "verdict": "proved",
        "made": {
            "date": time.strftime("%Y-%m-%d"), "host": platform.machine(),
            "version": sources_digest()[:16],
        },
    }  # fmt: skip
    return found | {"digest": digest(found, UNSIGNED)}


def _step_record(step: Step, choice: int, written: str) -> dict[str, Any]:
    shape = list(step.shape)
    if isinstance(step, Literal):
        return {"name": step.name, "shape": shape, "values": _values(step.values)}
    gathers = step.gathers
    named = choice_to_json(gathers, choice) if gathers.is_hole else None
    return {
        "name": step.name,
        "shape": shape,
        "cells": list(gathers.out_shape),
        "args": list(step.args),
        "reads": _reads(step, choice),
        "fold": step.fold,
        "operator": step.operator,
        "written": written,
        "fill": named and {part: named[part] for part in ("family", "parameters", "text")},
    }


def _reads(step: Apply, choice: int) -> dict[str, Any]:
    gather = step.gathers.expression(choice)
    said = {"argument": show(gather.argument), "offset": show(gather.offset)}
    if max(map(len, said.values())) <= _LONGEST_INDEX:
        return said
    return {"table": step.gathers.table(choice).tolist()}


def _values(terms: tuple[Term, ...]) -> list[Any]:
    count = [0]

    def plain(term: Term) -> Any:
        count[0] += 1
        if count[0] > _LARGEST:
            raise CheckError(f"its terms have more than {_LARGEST} parts: too large to write")
        match term:
            case Zero():
                return None
            case Undefined():
                return "?"
            case Symbol(number):
                return number
            case Constant(value):
                return {"number": value}
            case Fold(operator, items):
                return [operator, *map(plain, items)]

    return [plain(term) for term in terms]


def closed(found: Filled) -> tuple[Program, Fill]:
    """The program of a warp sketch with the choices of its fill, and nothing else, to choose."""
    holes = found.traced.holes
    offered = {
        name: counterparts(holes[name], row, holes[name], Sense.NATURAL)
        for name, row in found.rows[0].items()
    }
    lowered = lower(found.traced, offered, found.live)
    return lowered.program, lowered.fill(dict.fromkeys(offered, 0))
