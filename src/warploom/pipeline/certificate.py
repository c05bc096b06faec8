"""A proved fill as a certificate: plain data that `warploom verify` checks by itself.

It holds the sketch, step by step, as it was read together with its goal; what each gather reads, as
index expressions where these are short; the goal, cell by cell; up to which laws they are equal;
and what that does not cover. It is checked before it goes out. The same fill is the same bytes in
every process, so there is neither a date in it nor a folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from warploom.errors import CheckError, SearchError, located
from warploom.index.show import show
from warploom.pipeline.warp_record import warp_record
from warploom.search.outcome import Outcome
from warploom.sketch.holes import choice_to_json
from warploom.sketch.simt.lower import lower
from warploom.sketch.simt.solve import Filled, filled_of
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
from warploom.sketch.term.read import Reading, as_published, read
from warploom.sketch.term.verify import verify
from warploom.trust.checked import digest
from warploom.trust.fill import VERSION, check_fill, left_out

_LONGEST_INDEX = 4096  # characters; a table says it in less
LARGEST = 1 << 20  # parts of terms that are written
FOLDER = re.compile(r".*[/\\](?=[^/\\]+\.(?:swflow|py)(?:::|$))")  # the folder that a file is in

Sizes = Mapping[str, Any]


@located
def certificate(
    found: Result | Filled | Outcome[Filled], number: int = 0, sizes: Sizes | None = None
) -> dict[str, Any]:
    """The proof of what `synthesize`, `transfer`, `solve` or `reinstantiate` found, as plain data.

    Written as JSON, `warploom verify FILE` checks it. `number` is which fill of several, counted
    from 0; `sizes` is what the sketch was built at, for the reader. What is not proved, or has no
    fill, is an error that says so.

    >>> from warploom import Sketch, synthesize
    >>> text = "x: [4] = range(0, 4)\\ny: [2] = + identity{fold_len=2}(x)\\n"
    >>> proof = certificate(synthesize(Sketch.from_text(text + "goal: [2] = [+(0, 1), +(2, 3)]")))
    >>> proof["verdict"], proof["not_covered"]
    ('proved', ['rounding and overflow'])
    """
    if not isinstance(found, Result):
        filled = filled_of(found, "certificate")
        program, fill = closed(filled)
        caveats = filled.verification.not_covered
        about = warp_record(filled), {**filled.traced.sizes, **(sizes or {})}
        return _certificate(program, program.goals[0], fill, caveats, *about)
    if not len(found.fills):
        raise SearchError(f"'{found.program.name}' has no fill to certify: {found.outcome}")
    if number not in range(len(found.verdicts)) or not found.verdicts[number]:
        raise SearchError(f"fill {number + 1} of '{found.program.name}' is not proved")
    fill, caveats = found.fills.as_dict(number), found.verdicts[number].not_covered
    return _certificate(found.program, found.goal, fill, caveats, None, sizes or {})


def certificate_of(program: Program, goal: Goal, fill: Fill = ()) -> dict[str, Any]:
    """That of a program with its holes filled, which is verified first."""
    verdict = verify(program, goal, fill)
    if not verdict:
        raise CheckError(f"'{program.name}' is not proved: {verdict}")
    return _certificate(program, goal, fill, verdict.not_covered, None, {})


def _certificate(
    program: Program,
    goal: Goal,
    fill: Fill,
    not_covered: Iterable[str],
    warp: dict[str, Any] | None,
    sizes: Sizes,
) -> dict[str, Any]:
    found = record_of_fill(program, goal, fill, not_covered, warp, sizes)
    if unknown := check_fill(found).open:
        raise CheckError(f"'{program.name}' is too large to certify: it would leave open {unknown}")
    return found


def record_of_fill(
    program: Program,
    goal: Goal,
    fill: Fill = (),
    not_covered: Iterable[str] = (),
    warp: dict[str, Any] | None = None,
    sizes: Sizes | None = None,
) -> dict[str, Any]:
    """The record, whether it holds or not; where it does, it says all that it leaves out.

    Where a zero would have to be two numbers, by the operators that `fold` stands for, the claim is
    about `fold` alone, to which a zero is nothing.
    """
    reading = read(program, goal)
    bare = [_bare(program, goal)] if reading.words and not goal.laws else []
    listed = list(dict.fromkeys(not_covered))
    for each in (reading, *bare):
        found = _record(each, program, fill, goal)
        found |= {"size": dict(sizes or {}), "warp": warp, "not_covered": listed}
        found |= {"digest": digest(found)}
        try:
            found["not_covered"] = _joined(listed, left_out(found))
        except CheckError:
            continue
        break
    return found | {"digest": digest(found)}


def _joined(said: list[str], needed: Iterable[str]) -> list[str]:
    """What was said, and what has to be said, but once."""
    return said + [n for n in needed if not any(s == n or s.startswith(f"{n} (") for s in said)]


def _bare(program: Program, goal: Goal) -> Reading:
    """Both with every operator read as `fold`."""
    bare = as_published(replace(program, goals=(replace(goal, specification=None),)))
    return Reading(bare, bare.goals[0], ())


def _record(reading: Reading, program: Program, fill: Fill, goal: Goal) -> dict[str, Any]:
    taken = choices(program, fill)
    words = () if goal.laws else reading.words  # under laws no step that counts is written `fold`
    held = evaluate(reading.program, fill, words, goal.laws)
    terms = (*reading.goal.values, *(term for step in held for term in step))
    steps = zip(reading.program.steps, taken, strict=True)
    number = program.goals.index(goal) + 1 if goal in program.goals else 1
    return {
        "kind": "fill",
        "version": VERSION,
        "name": FOLDER.sub("", program.name),
        "size": {},
        "warp": None,
        "steps": [_step_record(*each) for each in steps],
        "words": list(words),
        "goal": {
            "number": number,
            "of": max(1, len(program.goals)),
            "text": goal.text,
            "shape": list(goal.shape),
            "values": plain_values(reading.goal.values),
        },
        "laws": list(goal.laws),
        "operators": sorted({fold.operator for fold in heights(terms)}),
        "verdict": "proved",
    }


def _step_record(step: Step, choice: int) -> dict[str, Any]:
    shape = list(step.shape)
    if isinstance(step, Literal):
        return {"name": step.name, "shape": shape, "values": plain_values(step.values)}
    gathers = step.gathers
    named = choice_to_json(gathers, choice) if gathers.is_hole else None
    return {
        "name": step.name,
        "shape": shape,
        "cells": list(gathers.out_shape),
        "args": list(step.args),
        "reads": reads_of(step, choice),
        "fold": step.fold,
        "operator": None if step.fold is None else step.operator,
        "fill": named and {part: named[part] for part in ("family", "parameters", "text")},
    }


def reads_of(step: Apply, choice: int) -> dict[str, Any]:
    """What each cell reads: as index expressions, or as a table if these are long."""
    gather = step.gathers.expression(choice)
    said = {"argument": show(gather.argument), "offset": show(gather.offset)}
    if max(map(len, said.values())) <= _LONGEST_INDEX:
        return said
    return {"table": step.gathers.table(choice).tolist()}


def plain_values(terms: tuple[Term, ...]) -> list[Any]:
    """Terms as a certificate has them."""
    count = [0]

    def plain(term: Term) -> Any:
        count[0] += 1
        if count[0] > LARGEST:
            raise CheckError(f"its terms have more than {LARGEST} parts: too large to write")
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
                # Items have another order in every process.
                return [operator, *sorted(map(plain, items), key=json.dumps)]

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
