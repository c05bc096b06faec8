"""`warploom bench`: the papers' tables, measured here, with their figures beside ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from warploom.bench import growth, inventor, transpositions
from warploom.bench import synth as table
from warploom.bench.measure import Request, apart
from warploom.bench.published import published
from warploom.bench.script import purpose, run_script, scripts
from warploom.cli.commands.bench import Bench, Table
from warploom.cli.declare import STDOUT, Context
from warploom.cli.guard import Status, check_meant, run
from warploom.cli.output import kept_free, write_records
from warploom.cli.say import echo
from warploom.errors import ParseError
from warploom.sketch.synth.result_json import Record

OWN = ("match", "quick", "limits", "ablation", "seconds", "json_file")  # options of tables alone


def bench(asked: Bench, context: Context) -> None:
    def action() -> Status:
        if asked.listed:
            return _listed()
        if asked.name not in list(Table):
            check_meant(context, OWN, "to a script")
            raise SystemExit(run_script(asked.name, asked.words, Table))
        if asked.words:
            raise ParseError(
                f"'{asked.words[0]}' is not an argument of a table", advice="leave it out"
            )
        try:
            re.compile(asked.match)
        except re.error as error:
            raise ParseError(f"--match '{asked.match}': {error}") from None
        records: list[Record] = []
        keeps = (
            asked.name == Table.transpositions and asked.json_file != STDOUT
        )  # its file by itself
        with kept_free(asked.json_file):  # said before; what is kept by itself is not written here
            pass
        with kept_free(None if keeps else asked.json_file, so_far=records):
            match asked.name:
                case Table.synth:
                    _synth(
                        records,
                        asked.match,
                        asked.quick,
                        asked.limits,
                        asked.ablation,
                        asked.seconds,
                    )
                case Table.inventor:
                    _inventor(records, asked.match, asked.ablation, asked.seconds)
                case Table.growth:
                    _growth(records, asked.match, asked.seconds)
                case Table.transpositions:
                    records += _transpositions(asked.json_file)
        if not keeps:
            write_records(asked.json_file, records)
        return Status.BAD_INPUT if any("error" in r for r in records) else Status.FOUND

    run(action)


def _listed() -> Status:
    for table_name in Table:
        echo(table_name)
    for script, file in scripts().items():
        echo(f"{script:32}{purpose(file)}")
    return Status.FOUND


def _synth(
    records: list[Record], match: str, quick: bool, limits: bool, ablation: bool, seconds: float
) -> None:
    _table(records, table.rows(match, quick))
    if limits:
        echo("\nbeyond the published limits (full grammar, all fills)")
        # A pattern that selects among published names must not empty this part.
        _table(records, table.limits())
    if ablation:
        measured = list(records)
        weaker = _ablation(records, match, seconds)
        echo("")
        for line in table.phase_lines(measured or weaker):
            echo(line)


@contextmanager
def _printed(lines: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Around measurements: what was measured is printed, also where Ctrl-C ends them."""
    try:
        yield
    finally:
        _say("")
        for line in lines():
            echo(line)


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
    echo("\nweaker pruning")
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
        echo("")
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
        echo(line)
    return [asdict(case) for case in cases]


def _growth(records: list[Record], match: str, seconds: float) -> None:
    with _printed(lambda: growth.table(records)):
        for request in growth.rows(match, seconds):
            _say(request.label)
            records.append(growth.figures(request, apart(request, 4 * seconds + 60)))


def _say(text: str) -> None:
    """What is being measured, on a terminal."""
    if sys.stderr.isatty():
        echo(f"\r\x1b[K{text}", err=True, nl=False)
