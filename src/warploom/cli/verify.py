"""`warploom verify`: checks a certificate without the search that wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from warploom.cli.guard import Status, complain, run, worst
from warploom.cli.output import JSON, kept_free, write_records
from warploom.errors import CheckError, ParseError
from warploom.trust.fill import check_fill
from warploom.trust.layout_text import check_layout_and_text

HELP = """Check certificates: proofs that were written beside an answer, by a checker of their own.

Those of fills are written by 'warploom synth --certificate FILE', those of layouts by 'warploom
layout solve --certificate FILE'. Each kind has a short checker (in warploom/trust) that
shares nothing with the search: it runs the filled sketch on symbols and compares cell by cell, or
counts what a layout takes and why none takes less. What was changed since is refused.

Exit status: 0 all hold, 1 one does not, 2 bad input, 3 one leaves something open."""

MOST_BYTES = 256 << 20
CHECKERS = {"fill": check_fill, "layout": check_layout_and_text}


def add(app: typer.Typer) -> None:
    app.command("verify", help=HELP)(verify)


def verify(
    files: list[Path] = typer.Argument(..., metavar="CERTIFICATE…"),
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        told: list[dict[str, Any]] = []
        with kept_free(json_file, so_far=told):
            statuses = [checked(file, each, told) for file in files for each in records(file)]
        write_records(json_file, told)
        return worst(statuses)

    run(action)


def records(file: Path) -> list[dict[str, Any]]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParseError(f"cannot read '{file}': {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ParseError(f"{file} is larger than {MOST_BYTES} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ParseError(f"{file} is not JSON", advice="a certificate is written by us") from None
    listed = found if isinstance(found, list) else [found]
    if not listed or not all(isinstance(each, dict) for each in listed):
        raise ParseError(f"{file} holds no certificate")
    return listed


def checked(file: Path, record: dict[str, Any], told: list[dict[str, Any]]) -> Status:
    """Whether one certificate holds; what is said of it is told as a record, too."""
    kind = record.get("kind")
    if kind not in CHECKERS:
        raise ParseError(f"{file}: no certificate is of the kind {str(kind)[:40]!r}")
    try:
        found = CHECKERS[kind](record)
    except CheckError as error:
        complain(error)
        told.append({"file": str(file), "kind": kind, "verdict": "refuted", "why": error.message})
        return Status.IMPOSSIBLE
    for line in found.shown:
        typer.echo(f"{file}: {line}")
    verdict = "unknown" if found.open else "proved"
    told.append({"file": str(file), "kind": kind, "verdict": verdict, "shown": list(found.shown)})
    if found.open:
        told[-1]["open"] = found.open
        typer.echo(f"{file}: open: {found.open}")
    return Status.UNDECIDED if found.open else Status.FOUND
