"""`warploom show`: the picture of a result, as one page, as SVG figures, as a few lines of text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from warploom.array.code.program import compile_candidate
from warploom.array.joint.model import JointModel
from warploom.array.joint.promising import promising
from warploom.catalogue import entries, find
from warploom.cli import explore
from warploom.cli import map as mapping
from warploom.cli.commands.explore import Space
from warploom.cli.commands.show import Kind, Show
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run, status_of
from warploom.cli.inputs import find_input, parse_parameters
from warploom.cli.kernel import parse_settings
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.ptx_arguments import parse_argument, parse_shape
from warploom.cli.ptx_input import CUDA_ENDS, loaded
from warploom.cli.say import echo
from warploom.errors import CheckError, ParseError
from warploom.layout.patterns.tiles import load_tiles
from warploom.machine.record import machine_named
from warploom.pipeline.named_nest import target_for
from warploom.pipeline.nest import Nest
from warploom.pipeline.pictures import picture
from warploom.pipeline.tiles import tiles_solved
from warploom.ptx.patience import left
from warploom.report.fill import drawn, shown_fill
from warploom.report.kernel import simulated
from warploom.report.picture import Picture, check_name
from warploom.report.ptx import observed
from warploom.search.budget import Budget
from warploom.search.history import History, history_from
from warploom.search.outcome import Found, NothingFoundError
from warploom.sketch.code.proved import fill_from_json
from warploom.sketch.front import load_text
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import solve
from warploom.sketch.synth.solve import synthesize

_BETWEEN = re.compile(r",(?=\s*\w+\s*=)")
AMONG = 500  # candidates of a mapping to choose the most promising from
MOST_SAMPLES = 1 << 14  # of a search's history that is drawn; we write fewer than a thousand


def show(asked: Show, _context: Context) -> None:
    def action() -> Status:
        if asked.out is not None:
            check_name(asked.out)
        with kept_free(asked.json_file, asked.out, begun={"title": asked.subject}):
            made, status = DRAWN[asked.kind or _kind_of(asked.subject)](asked.subject, asked)
            for line in made.lines:
                echo(line)
        for file, text in made.files(asked.out).items() if asked.out is not None else ():
            write(file, text)
        write_records(asked.json_file, [_record(made)])
        return status

    run(action)


def _kind_of(subject: str) -> Kind:
    """By the end of a name; a name that is none of these is a sketch, or a kernel without one."""
    ends = {".ptx": Kind.ptx, ".json": Kind.result, ".toml": Kind.tiles} | dict.fromkeys(
        CUDA_ENDS, Kind.ptx
    )
    found = ends.get(Path(subject).suffix)
    if found is not None:
        return found
    kernel = entries().get(subject)
    return Kind.sketch if kernel is None or kernel.has_sketch else Kind.kernel


def _record(made: Picture) -> dict[str, Any]:
    facts = {fact.label: fact.value for fact in made.facts}
    return {"kind": made.kind, "title": made.title, "facts": facts, "text": list(made.lines)}


# -- the kinds -------------------------------------------------------------------------------------


def _sketch(subject: str, wanted: Show) -> tuple[Picture, Status]:
    program = find_input(subject).build(parse_parameters(wanted.size))
    if isinstance(program, Traced):
        outcome = solve(program, budget=Budget(wanted.seconds))
        if not isinstance(outcome, Found):
            raise NothingFoundError(f"'{subject}' has no fill to draw: {outcome}", outcome)
        return picture(outcome.answer, code=wanted.code), Status.FOUND
    mode = "best" if wanted.fill is None else "all"
    with progress(program.name) as report:
        result = synthesize(
            program, wanted.goal, mode=mode, budget=Budget(wanted.seconds), on_progress=report
        )
    number = wanted.fill or 0
    if isinstance(result.outcome, Found) and number >= len(result.fills):
        raise CheckError(
            f"there is no fill {number} of '{subject}'", advice=f"0 to {len(result.fills) - 1}"
        )
    return picture(result, number=number, code=wanted.code), status_of(result.outcome)


def _map(subject: str, wanted: Show) -> tuple[Picture, Status]:
    program = mapping.find_program(subject, plain=False)
    sizes = mapping.given_sizes(subject, None, wanted.size)
    model = JointModel(program, sizes, machine_named(wanted.machine or "cuda"))
    with progress(program.name):
        outcome = promising(model, 1, AMONG, budget=Budget(wanted.seconds))
    if not isinstance(outcome, Found):
        raise NothingFoundError(f"'{subject}' has no mapping to draw: {outcome}", outcome)
    return picture(compile_candidate(model.plan, outcome.answer[0])), Status.FOUND


def _nest(subject: str, wanted: Show) -> tuple[Picture, Status]:
    program = explore.find_program(subject, wanted.size, Space.default)
    machine = machine_named(wanted.machine or "h200")
    nest = Nest(program, machine.rates, target_for(machine, Space.default))
    budget = Budget(wanted.seconds)
    with progress(program.name), budget.interruptible():
        found = nest.search("tree", wanted.evaluations, budget=budget)
    return picture(found), status_of(found.outcome)


def _kernel(subject: str, wanted: Show) -> tuple[Picture, Status]:
    """A kernel of the catalogue, on the largest of its sizes, beside its specification."""
    entry = find(subject)
    # A comma ends a value where a name follows: an order of axes has commas of its own.
    settings = parse_settings(entry, [p for text in wanted.size for p in _BETWEEN.split(text)])
    kernel = entry.kernel(**settings)
    sizes = entry.sizes(**entry.settings(settings))
    largest = max(sizes, key=lambda size: sum(size.values()))
    case = entry.case(kernel, largest, 0, **settings)
    arguments = case.fresh()
    seen = simulated(kernel, arguments)
    right = entry.agrees(kernel, case, arguments)
    verdict = "as specified" if right else "not as specified"
    return picture(replace(seen, verdict=verdict)), Status.FOUND if right else Status.IMPOSSIBLE


def _ptx(subject: str, wanted: Show) -> tuple[Picture, Status]:
    random = np.random.default_rng(0)
    kernel, deadline = loaded(subject, "sm_90a", wanted.kernel, wanted.seconds)
    report = kernel.launch(
        parse_shape(wanted.grid), parse_shape(wanted.block),
        [parse_argument(text, random) for text in wanted.arg], shared_bytes=wanted.shared,
        races="all", counters=True, seconds=left(deadline),
    )  # fmt: skip
    status = Status.IMPOSSIBLE if report.races else Status.FOUND
    return picture(observed(kernel, report)), status


def _kept(subject: str, wanted: Show) -> tuple[Picture, Status]:
    """A record that was written: the history of a search, or fills with their sketch."""
    try:
        record = json.loads(Path(subject).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ParseError(f"cannot read '{subject}': {error}") from None
    match record:
        case [{"history": dict() as history, **rest}, *_] | {"history": dict() as history, **rest}:
            title = str(rest.get("name", Path(subject).stem))
            return picture(_kept_history(history), title=title), Status.FOUND
        case [{"sketch": str(text), "choices": [*fills], **rest}, *_] if fills:
            return _kept_fill(text, fills, rest, wanted)
    raise CheckError(
        f"'{subject}' has nothing in it to draw",
        advice="write it with 'warploom synth … --json FILE' or 'warploom explore … --json FILE'",
    )


def _kept_history(record: dict[str, Any]) -> History:
    """What can be drawn: every number has a place on an axis."""
    try:
        found = history_from(record)
        numbers = [0 if found.bound is None else found.bound]
        for each in found.samples[: MOST_SAMPLES + 1]:
            best = 0 if each.best is None else each.best
            numbers += [each.seconds, each.states, each.found, best, *each.pruned.values()]
        good = all(math.isfinite(each) and each >= 0 for each in numbers)
    except (ValueError, TypeError, OverflowError):
        good = False
    if not good or len(found.samples) > MOST_SAMPLES:
        raise CheckError("not the record of a search's history")
    return found


def _kept_fill(
    text: str, fills: list[Any], rest: Mapping[object, object], wanted: Show
) -> tuple[Picture, Status]:
    """A fill is read back, evaluated and verified: nothing that a record says is taken for it."""
    number, goal = wanted.fill or 0, rest.get("goal", 1)
    if number >= len(fills) or not isinstance(fills[number], dict):
        raise CheckError(f"there is no fill {number} in it", advice=f"0 to {len(fills) - 1}")
    name = str(rest.get("name", "sketch"))
    program = load_text(text, name)
    if type(goal) is not int or not 1 <= goal <= len(program.goals):
        raise CheckError(f"the sketch has no goal {goal!r:.40}")
    taken = fill_from_json(program, fills[number])
    made = shown_fill(program, program.goals[goal - 1], taken, wanted.code)
    status = Status.FOUND if made.verification else Status.IMPOSSIBLE
    return drawn(made, name), status


def _tiles(subject: str, wanted: Show) -> tuple[Picture, Status]:
    """Several tiles of a kernel, as 'warploom layout tiles' chooses for them."""
    tiles, budget = load_tiles(Path(subject), wanted.machine), Budget(wanted.seconds)
    with progress(tiles.name), budget.interruptible():
        found = tiles_solved(tiles, budget=budget)
    return picture(found), status_of(found.joint.outcome)


DRAWN: dict[Kind, Callable[[str, Show], tuple[Picture, Status]]] = {
    Kind.sketch: _sketch,
    Kind.map: _map,
    Kind.nest: _nest,
    Kind.kernel: _kernel,
    Kind.ptx: _ptx,
    Kind.result: _kept,
    Kind.tiles: _tiles,
}
