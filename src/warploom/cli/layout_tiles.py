"""`warploom layout tiles`: several tiles of one kernel, with one answer for all of them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from warploom.cli.command import command_words
from warploom.cli.commands.layout import SolveTiles
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run, status_of
from warploom.cli.layout_input import known_export
from warploom.cli.layout_view import assumptions
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.say import echo
from warploom.errors import ParseError
from warploom.layout.patterns.tiles import load_tiles
from warploom.layout.solver.front import known_class
from warploom.pipeline.tiles import TilesResult, tiles_lines, tiles_record, tiles_solved
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.engine import Watch
from warploom.search.outcome import Undecided
from warploom.search.outcome_json import outcome_record


def tiles_command(asked: SolveTiles, context: Context) -> None:
    run(partial(_solved, asked, command_words(asked, context, "layout")))


def _solved(asked: SolveTiles, command: str) -> Status:
    known_class(asked.klass)
    if asked.klass == "any":
        raise ParseError("the class any is not for several tiles", advice="leave --class out")
    known_export(asked.emit, None)
    records: list[dict[str, Any]] = []
    texts: list[tuple[Path, str]] = []
    with kept_free(asked.json_file, asked.out if asked.emit else None, asked.proof):
        tiles = load_tiles(Path(asked.file), asked.machine)
        budget = Budget(asked.seconds)
        try:
            with progress(tiles.name) as report, budget.interruptible():
                told = None if report is None else lambda p: report(p.phase, p.states)
                found = tiles_solved(tiles, asked.klass, budget, told)
        except STOPS as stop:
            outcome = Undecided(reason_of(stop))
            echo(f"{tiles.name}: {outcome}\n  nothing was tried")
            records.append({"name": tiles.name, "tiles": [], **outcome_record(outcome)})
            write_records(asked.json_file, records)
            return status_of(outcome)
        joint = found.joint
        for line in [*tiles_lines(joint), *_assumed(found)]:
            echo(line)
        records.append(tiles_record(joint))
        if joint.best is not None and asked.emit is not None:
            texts.append((asked.out, found.text(asked.emit, command)))
        if joint.best is not None and asked.proof is not None:
            proof = found.certificate(Watch(budget))
            texts.append((asked.proof, json.dumps([proof]) + "\n"))
    write_records(asked.json_file, records)
    for file, text in texts:
        write(file, text)
    return Status.INTERRUPTED if budget.interrupted else status_of(joint.outcome)


def _assumed(found: TilesResult) -> list[str]:
    """What the figures rest on, where that was not measured here."""
    if found.joint.best is None:
        return []
    lines = [line for point in found.joint.best.points for line in assumptions(point.task)]
    return list(dict.fromkeys(lines))
