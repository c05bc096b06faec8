"""`warploom machines`: the machines we have figures for."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from warploom.cli.guard import Status, run
from warploom.machine.latency import LATENCIES

HELP = """List the machines whose latencies decide whether a shuffle pays (cycles, issue to use)."""


def add(app: typer.Typer) -> None:
    app.command("machines", help=HELP)(machines)


def machines(
    json_file: Path = typer.Option(None, "--json", metavar="FILE", help="Write a list of records."),
) -> None:
    def action() -> Status:
        names = ("shuffle", "shared", "L1", "corner", "L2")
        typer.echo(f"{'machine':10}" + "".join(f"{name:>9}" for name in names) + "  from")
        for entry in LATENCIES.values():
            l2 = f"{entry.l2:9g}" if entry.l2 is not None else f"{'-':>9}"
            typer.echo(
                f"{entry.name:10}{entry.shuffle:9g}{entry.shared:9g}{entry.l1:9g}"
                f"{entry.corner:9g}{l2}  {entry.source}"
            )
        if json_file is not None:
            records = [asdict(entry) for entry in LATENCIES.values()]
            json_file.write_text(json.dumps(records, indent=1) + "\n")
        return Status.FOUND

    run(action)
