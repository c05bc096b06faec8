"""`warploom machines`: the machines we know, and the figures we have for them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from warploom.cli.guard import Status, run
from warploom.cli.output import JSON, kept_free, write_records
from warploom.machine.latency import LATENCIES, Latency
from warploom.machine.record import MACHINES, Machine

HELP = """List the machines whose limits kernels are checked against, and those whose latencies
(cycles, issue to use) decide whether a shuffle pays."""

_LIMITS = (
    ("lanes", "lanes"), ("block_threads", "threads"), ("shared_bytes", "shared"),
    ("shared_bytes_most", "at most"), ("thread_registers", "registers"), ("sector_bytes", "sector"),
    ("banks", "banks"),
)  # fmt: skip
_CYCLES = ("shuffle", "shared", "l1", "corner", "l2")


def add(app: typer.Typer) -> None:
    app.command("machines", help=HELP)(machines)


def machines(
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        with kept_free(json_file):
            _show()
        write_records(json_file, records())
        return Status.FOUND

    run(action)


def _show() -> None:
    typer.echo("limits    " + "".join(f"{title:>10}" for _, title in _LIMITS))
    for machine in MACHINES.values():
        typer.echo(f"{machine.name:10}" + _row(machine, [name for name, _ in _LIMITS]))
    typer.echo("\ncycles    " + "".join(f"{name:>10}" for name in _CYCLES) + "  from")
    for entry in LATENCIES.values():
        typer.echo(f"{entry.name:10}{_row(entry, _CYCLES)}  {entry.source}")


def _row(record: Machine | Latency, names: list[str] | tuple[str, ...]) -> str:
    values = [getattr(record, name) for name in names]
    return "".join(f"{'-' if value is None else format(value, 'g'):>10}" for value in values)


def records() -> list[dict[str, object]]:
    """One object per machine; of some only the latencies are known."""
    found: dict[str, dict[str, object]] = {name: asdict(m) for name, m in MACHINES.items()}
    for name, entry in LATENCIES.items():
        found.setdefault(name, {"name": name, "latency": asdict(entry)})
    return list(found.values())
