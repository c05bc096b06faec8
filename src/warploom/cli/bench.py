"""`warploom bench`: the papers' tables, measured here, with their figures beside ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

import typer

from warploom.bench import growth, inventor, transpositions
from warploom.bench import synth as table
from warploom.bench.measure import Request, apart
from warploom.bench.published import published
from warploom.bench.script import purpose, run_script, scripts
from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, check_meant, run
from warploom.cli.output import JSON, kept_free, write_records
from warploom.errors import ParseError
from warploom.sketch.synth.result_json import Record

HELP = """Measure the tables of the papers on this machine, with the published figures beside ours.

\b
synth   the sketches of section 5 of the Swizzleflow paper. 'pub.' is what its tool gives or
        needs, 'factor' the states visited over those an oracle visits, 'times' how many times
        faster we are. Each sketch runs in a process of its own, gather sets included.

\b
inventor        Tables 1 and 2 of the Swizzle Inventor paper: SIMT sketches, found at a small
                warp and proved at 32 lanes; --ablation adds Table 2.
transpositions  a fill for every m x n up to 64 x 64, each verified; --json keeps and resumes.
growth          time and memory against the size of the sketches, family by family.

In a checkout NAME may be a script of bench/, such as ptx.speed; --list has all of them. What stands
behind -- goes to the script; without a checkout there are only the tables.

\b
Examples:
  $ warploom bench synth --quick
  $ warploom bench synth --match 'l3/trove-crc' --json table.json
  $ warploom bench synth --match '^$' --limits      # only what the published tool cannot do
  $ warploom bench layout.accept -- --processes 2

Ctrl-C prints what was measured so far, and --json has it."""


class Table(StrEnum):
    synth = "synth"
    inventor = "inventor"
    transpositions = "transpositions"
    growth = "growth"


OWN = ("match", "quick", "limits", "ablation", "seconds", "json_file")  # options of tables alone


def add(app: typer.Typer) -> None:
    app.command("bench", help=HELP)(bench)


def bench(
    context: typer.Context,
    name: str = typer.Argument("synth", metavar="[NAME]", help=f"{', '.join(Table)}, or a script."),
    words: list[str] = typer.Argument(None, metavar="[-- ARGS…]", help="Of a script."),
    listed: bool = typer.Option(False, "--list", help="The tables, and the scripts of a checkout."),
    match: str = typer.Option("", metavar="RE", help="Only sketches whose name matches."),
    quick: bool = typer.Option(False, "--quick", help="One sketch of each kind."),
    limits: bool = typer.Option(False, "--limits", help="Also beyond the published limits."),
    ablation: bool = typer.Option(False, "--ablation", help="Also weaker pruning, and the phases."),
    seconds: float = typer.Option(20.0, min=0.1, help="Budget of each run: ablation, growth."),
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        if listed:
            return _listed()
        if name not in list(Table):
            check_meant(context, OWN, "to a script")
            raise typer.Exit(run_script(name, words or (), Table))
        if words:
            raise ParseError(f"'{words[0]}' means nothing to a table", advice="leave it out")
        try:
            re.compile(match)
        except re.error as error:
            raise ParseError(f"--match '{match}': {error}") from None
        records: list[Record] = []
        keeps = name == Table.transpositions and json_file != STDOUT  # its file by itself
        with kept_free(json_file):  # said before; what is kept by itself is not written here
            pass
        with kept_free(None if keeps else json_file, so_far=records):
            match name:
                case Table.synth:
                    _synth(records, match, quick, limits, ablation, seconds)
                case Table.inventor:
                    _inventor(records, match, ablation, seconds)
                case Table.growth:
                    _growth(records, match, seconds)
                case Table.transpositions:
                    records += _transpositions(json_file)
        if not keeps:
            write_records(json_file, records)
        return Status.BAD_INPUT if any("error" in r for r in records) else Status.FOUND

    run(action)


def _listed() -> Status:
    for table_name in Table:
        typer.echo(table_name)
    for script, file in scripts().items():
        typer.echo(f"{script:32}{purpose(file)}")
    return Status.FOUND


def _synth(
    records: list[Record], match: str, quick: bool, limits: bool, ablation: bool, seconds: float
) -> None:
    _table(records, table.rows(match, quick))
    if limits:
        typer.echo("\nbeyond the published limits (full grammar, all fills)")
        # A pattern that selects among published names must not empty this part.
        _table(records, table.limits())
    if ablation:
        measured = list(records)
        weaker = _ablation(records, match, seconds)
        typer.echo("")
        for line in table.phase_lines(measured or weaker):
            typer.echo(line)


@contextmanager
def _printed(lines: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Around measurements: what was measured is printed, also where Ctrl-C ends them."""
    try:
        yield
    finally:
        _say("")
        for line in lines():
            typer.echo(line)


def _table(records: list[Record], requests: Sequence[Request]) -> None:
    known, own = published(), list[Record]()

    def lines() -> list[str]:
        rows = [table.HEADER, *(table.cells(r, known.get(r["name"])) for r in own)]
        return [*table.laid_out(rows), *table.summary(own)] if own else []

    with _printed(lines):
        for number, request in enumerate(requests):
            _say(f"{number + 1}/{len(requests)} {request.label}")
            own.append(apart(request))
            records.append(own[-1])


def _ablation(records: list[Record], match: str, seconds: float) -> list[Record]:
    typer.echo("\nweaker pruning")
    own: list[Record] = []
    rows: list[tuple[str, ...]] = [table.ABLATION_HEADER]
    with _printed(lambda: table.laid_out(rows)):
        for way, request in table.ablations(seconds, match):
            _say(f"{request.label}: {way.label}")
            record = apart(request, seconds + 60)
            rows.append(table.ablation_cells(way, record))
            own.append({**record, "pruning": way.label})
            records.append(own[-1])
    return own


def _inventor(records: list[Record], match: str, ablation: bool, seconds: float) -> None:
    own: list[Record] = []
    with _printed(lambda: inventor.table(own)):
        for row in inventor.rows(match):
            _say(row.name)
            own.append(inventor.measure(row))
            records.append(own[-1])
    if ablation:
        weaker: list[Record] = []
        typer.echo("")
        with _printed(lambda: inventor.ablation_table(weaker)):
            for each in inventor.ablations(match):
                weaker.append(inventor.measure_ablation(each, seconds))
                records.append(weaker[-1])


def _transpositions(json_file: Path | None) -> list[Record]:
    """A file is kept up to date while the cases run, and says what need not be run again."""

    def all_cases(
        done: Collection[transpositions.Key] = (),
    ) -> Iterator[transpositions.Transposition]:
        for case in transpositions.run(done=done):
            _say(f"{case.m} x {case.n}")
            yield case

    if json_file is None or json_file == STDOUT:
        cases = list(all_cases())
    else:
        cases = transpositions.update(json_file, all_cases)
    _say("")
    for line in transpositions.summary(cases):
        typer.echo(line)
    return [asdict(case) for case in cases]


def _growth(records: list[Record], match: str, seconds: float) -> None:
    with _printed(lambda: growth.table(records)):
        for request in growth.rows(match, seconds):
            _say(request.label)
            records.append(growth.figures(request, apart(request, 4 * seconds + 60)))


def _say(text: str) -> None:
    """What is being measured, on a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{text}", err=True, nl=False)
