"""`warploom bench`: the papers' tables, measured here, with their figures beside ours."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import typer

from warploom.bench import synth as table
from warploom.bench.families import published
from warploom.bench.measure import Request, apart
from warploom.cli.guard import Status, run
from warploom.errors import ParseError
from warploom.sketch.synth.record import Record

HELP = """Measure the tables of the papers on this machine, with the published figures beside ours.

\b
synth   the sketches of section 5 of the Swizzleflow paper. 'pub.' is what its tool gives or
        needs, 'factor' the states visited over those an oracle visits, 'times' how many times
        faster we are. Each sketch runs in a process of its own, gather sets included.

\b
Examples:
  $ warploom bench synth --quick
  $ warploom bench synth --match 'l3/trove-crc' --json table.json
  $ warploom bench synth --match '^$' --limits      # only what the published tool cannot do"""


class Table(StrEnum):
    synth = "synth"


def add(app: typer.Typer) -> None:
    app.command("bench", help=HELP)(bench)


def bench(
    name: Table = typer.Argument(Table.synth, metavar="[TABLE]", help="synth"),
    match: str = typer.Option("", metavar="RE", help="Only sketches whose name matches."),
    quick: bool = typer.Option(False, "--quick", help="One sketch of each kind."),
    limits: bool = typer.Option(False, "--limits", help="Also beyond the published limits."),
    ablation: bool = typer.Option(False, "--ablation", help="Also weaker pruning, and the phases."),
    seconds: float = typer.Option(20.0, min=0.1, help="Budget of each ablation run."),
    json_file: Path = typer.Option(None, "--json", metavar="FILE", help="Write a list of records."),
) -> None:
    del name  # there is one table so far

    def action() -> Status:
        try:
            re.compile(match)
        except re.error as error:
            raise ParseError(f"--match '{match}': {error}") from None
        records = _table(table.rows(match, quick))
        if limits:
            typer.echo("\nbeyond the published limits (full grammar, all fills)")
            # A pattern that selects among published names must not empty this part.
            records += _table(table.limits())
        if ablation:
            weaker = _ablation(match, seconds)
            typer.echo("")
            for line in table.phase_lines(records or weaker):
                typer.echo(line)
            records += weaker
        if json_file is not None:
            json_file.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
        return Status.BAD_INPUT if any("error" in r for r in records) else Status.FOUND

    run(action)


def _table(requests: Sequence[Request]) -> list[Record]:
    known = published()
    records = []
    for number, request in enumerate(requests):
        _say(f"{number + 1}/{len(requests)} {request.label}")
        records.append(apart(request))
    lines = [table.HEADER, *(table.cells(r, known.get(r["name"])) for r in records)]
    _say("")
    for line in [*table.laid_out(lines), *table.summary(records)] if records else ():
        typer.echo(line)
    return records


def _ablation(match: str, seconds: float) -> list[Record]:
    typer.echo("\nweaker pruning")
    records: list[Record] = []
    lines: list[tuple[str, ...]] = [table.ABLATION_HEADER]
    for way, request in table.ablations(seconds, match):
        _say(f"{request.label}: {way.label}")
        record = apart(request, seconds + 60)
        lines.append(table.ablation_cells(way, record))
        records.append({**record, "pruning": way.label})
    _say("")
    for line in table.laid_out(lines):
        typer.echo(line)
    return records


def _say(text: str) -> None:
    """What is being measured, on a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{text}", err=True, nl=False)
