"""`warploom show`: the picture of a result, as one page, as SVG figures, as a few lines of text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from warploom.cli.guard import Status, run
from warploom.cli.inputs import find_input, parse_parameters
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.errors import UnsupportedError
from warploom.report.picture import Picture
from warploom.report.registry import picture
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible
from warploom.sketch.simt.ir import Traced
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize

HELP = """Draw a result: what every lane holds after each step, and where each value comes from.

SUBJECT is a sketch, as for 'warploom synth' (a .swflow file, a name of the catalogue, or
FILE.py::NAME); its best fill is searched, proved and drawn. Without -o a few lines say the same in
the terminal. A name after -o that ends in .html is one page that needs nothing else: point at a
value to follow it from memory to the output. A name that ends in .svg is the figures alone, for
papers.

\b
Examples:
  $ warploom show transposition --size m=32,n=5 -o transposition.html
  $ warploom show examples/sketches/sums.swflow
  $ warploom show examples/sketches/sums.swflow -o sums.svg

Exit status: 0 found, 1 impossible or refuted, 2 bad input, 3 undecided (budget spent)."""


def add(app: typer.Typer) -> None:
    app.command("show", help=HELP)(show)


def show(
    subject: str = typer.Argument(..., metavar="SUBJECT"),
    out: Path = typer.Option(
        None, "-o", metavar="FILE.html|FILE.svg", help="Draw it there; - is standard output."
    ),
    size: list[str] = typer.Option([], "--size", metavar="K=V", help="Sizes and parameters."),
    goal: int = typer.Option(0, min=0, help="Which goal of a sketch."),
    fill: int = typer.Option(None, min=0, metavar="N", help="Which fill, instead of the best."),
    code: bool = typer.Option(
        None, "--code/--no-code", help="With the kernel, or without; by default where it is short."
    ),
    seconds: float = typer.Option(None, min=0, help="Wall time of the search."),
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        with kept_free(json_file, out):
            drawn, status = _sketch(subject, size, goal, fill, code, Budget(seconds))
            for line in drawn.lines:
                typer.echo(line)
        if out is not None:
            _write(out, drawn)
        write_records(json_file, [_record(drawn)])
        return status

    run(action)


def _write(out: Path, drawn: Picture) -> None:
    for file, text in drawn.files(out).items():
        write(file, text)


def _record(drawn: Picture) -> dict[str, Any]:
    facts = {fact.label: fact.value for fact in drawn.facts}
    return {"kind": drawn.kind, "title": drawn.title, "facts": facts, "text": list(drawn.lines)}


def _sketch(
    subject: str, size: list[str], goal: int, fill: int | None, code: bool | None, budget: Budget
) -> tuple[Picture, Status]:
    program = find_input(subject).build(parse_parameters(size))
    if isinstance(program, Traced):
        raise UnsupportedError(
            f"there is no picture of the warp sketch '{subject}' yet",
            advice="warploom synth shows its fill",
        )
    mode = "best" if fill is None else "all"
    with progress(program.name) as report:
        result = synthesize(program, goal, mode=mode, budget=budget, on_progress=report)
    return picture(result, number=fill or 0, code=code), _status(result)


def _status(result: Result) -> Status:
    if isinstance(result.outcome, Found):
        return Status.FOUND
    return Status.IMPOSSIBLE if isinstance(result.outcome, Impossible) else Status.UNDECIDED
