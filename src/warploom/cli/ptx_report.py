"""`warploom ptx report`: what a launch asks of memory, in lines of the source, without a GPU."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from warploom.cli.guard import Status
from warploom.cli.output import JSON, kept_free, write_records
from warploom.cli.ptx_arguments import parse_arguments, parse_shape, parse_variables
from warploom.cli.ptx_input import SECONDS, VARIABLE, left, loaded, recorded, stopped
from warploom.errors import DeviceError, KernelError, LimitError
from warploom.machine.record import machine_named
from warploom.options import from_environment
from warploom.ptx.launch import Kernel, Report
from warploom.ptx.patience import within
from warploom.ptx.ptxas import find_ptxas
from warploom.ptx.traffic import TrafficRow, live_registers, traffic_rows
from warploom.runtime.compile import Usage, ptx_usage

KIND = "ptx report"
REPORT = """What a launch asks of memory, for each instruction, in lines of the source.

Requests are those of warps. Sectors (32 bytes of global or local memory) and wavefronts (passes
through the banks of shared memory) stand for each request, with what the same bytes would need at
best in brackets. Branches say how many warps parted. Arguments are those of `warploom ptx run`.

\b
Example:
  $ warploom ptx report examples/ptx/saxpy.ptx --grid 4 --block 256 \\
      --arg f32[1000]=range --arg f32[1000]=ones --arg f32=2 --arg i32=1000

Registers come from ptxas, where one is on PATH. `--json` has the figures, one record with its
`rows`, or with its `findings` where the launch came to no end.

Exit status: 0 done, 1 the kernel does something wrong, 2 bad input, 3 stopped by the time limit,
or out of memory, 130 Ctrl-C."""


def report(
    source: str = typer.Argument(..., metavar="IN.ptx|IN.cu", help="- is standard input."),
    kernel: str = typer.Option(None, help="Needed if the file has several.", show_default=False),
    grid: str = typer.Option("1", help="Blocks: X or X,Y or X,Y,Z."),
    block: str = typer.Option("32", help="Threads of a block, likewise."),
    arg: list[str] = typer.Option([], "--arg", metavar="TYPE…", help="One for each parameter."),
    variable: list[str] = VARIABLE,
    shared: int = typer.Option(0, help="Bytes of dynamic shared memory."),
    machine: str = typer.Option(
        "h200", metavar="NAME|FILE", help="Whose limits hold and whose banks serve."
    ),
    seed: int = typer.Option(0, help="For random arrays."),
    seconds: float = typer.Option(SECONDS, min=0, help="Wall time for the PTX: read and run."),
    arch: str = typer.Option("sm_90a", help="What CUDA text is compiled for."),
    json_file: Path = JSON,
) -> None:
    def action(findings: list[dict[str, Any]]) -> Status:
        with kept_free(json_file):
            pass
        served_by = machine_named(machine)
        args, variables = parse_arguments(arg, seed), parse_variables(variable, seed)
        try:
            chosen, deadline = loaded(source, arch, kernel, seconds, variables)
            done = chosen.launch(
                parse_shape(grid), parse_shape(block), args, shared_bytes=shared, counters=True,
                seconds=left(deadline), machine=served_by,
            )  # fmt: skip
            with within(deadline, "counting what the launch did"):
                rows = traffic_rows(chosen, done)
                live = live_registers(chosen)
            usage = _usage(chosen, left(deadline))
        except (KernelError, LimitError) as error:
            status = stopped(error, findings)
            record = {"kind": KIND, "status": int(status), "findings": findings}
            write_records(json_file, [record])
            return status
        with kept_free(json_file):
            _show(chosen, done, rows, usage, live, chosen.static_shared + shared)
        write_records(json_file, [_record(chosen, done, rows, usage, live, shared)])
        return Status.FOUND

    recorded(action, json_file, KIND)


def _usage(kernel: Kernel, seconds: float | None) -> Usage | None:
    """What an assembler says, if there is one and it says so in time."""
    options = from_environment()
    ptxas = find_ptxas(options.real_ptxas, options.path)
    if ptxas is None:
        return None
    text = kernel.owner.module.text.source.text
    try:
        return ptx_usage(text, ptxas, seconds).get(kernel.name)
    except DeviceError:  # it cannot be run, or takes too long
        return None


def _record(
    kernel: Kernel,
    done: Report,
    rows: list[TrafficRow],
    usage: Usage | None,
    live: int,
    dynamic: int,
) -> dict[str, Any]:
    return {
        "kind": KIND,
        "status": int(Status.FOUND),
        "findings": [],
        "kernel": kernel.name,
        "grid": done.grid,
        "threads": done.threads,
        "shared_bytes": kernel.static_shared + dynamic,
        "registers": None if usage is None else usage.registers,
        "spills": None if usage is None else usage.spill_loads + usage.spill_stores,
        "live_registers": live,
        "thread_instructions": done.thread_instructions,
        "global_sectors": done.sectors,
        "bank_conflicts": done.bank_conflicts,
        "divergent_branches": done.divergent_branches,
        "rows": [row.as_record() for row in rows],
    }


def _show(
    kernel: Kernel,
    done: Report,
    rows: list[TrafficRow],
    usage: Usage | None,
    live: int,
    shared: int,
) -> None:
    blocks = " × ".join(map(str, done.grid)).removesuffix(" × 1").removesuffix(" × 1")
    used = f"{live} registers hold values at once (no ptxas told more)"
    if usage is not None:
        spills = usage.spill_loads + usage.spill_stores
        used = f"{usage.registers} registers" + (f", {spills} bytes spilled" if spills else "")
    typer.echo(f"{kernel.name}: {blocks} blocks of {done.threads} threads, {used}, "
               f"{shared} bytes of shared memory")  # fmt: skip
    seen = [row for row in rows if row.requests]
    typer.echo(f"{'':38}{'requests':>10}{'lanes':>7}{'sectors each':>17}{'wavefronts each':>18}")
    for place, group in groupby(seen, key=lambda row: (row.file, row.line, row.text)):
        typer.echo(f"{place[0]}:{place[1]}: {place[2]}")
        for row in group:
            typer.echo(_line(row))
    idle = sum(not row.requests for row in rows)
    if idle:
        typer.echo(f"{idle} instructions that no thread came to are left out")
    _show_worst(seen)


def _line(row: TrafficRow) -> str:
    name = f"  {row.instruction}"
    if row.what == "branches":
        return f"{name:38}{row.requests:10}   warps, {row.divergent} of them part"
    text = (
        f"{name:38}{row.requests:10}{row.lanes_each:7.1f}"
        f"{_each(row.sectors, row.least_sectors, row.requests):>17}"
        f"{_each(row.wavefronts, row.least_wavefronts, row.requests):>18}"
    ).rstrip()
    return text + (f"  {row.space}: {row.note}" if row.note else "")


def _each(seen: int | None, least: int | None, requests: int) -> str:
    if seen is None or least is None:
        return ""
    return f"{seen / requests:.2f} ({least / requests:.2f})"


def _show_worst(rows: list[TrafficRow]) -> None:
    worst = max(rows, key=lambda row: row.waste, default=None)
    if worst is None or not worst.waste:
        typer.echo("no request takes more than its bytes need")
        return
    what = "wavefronts" if worst.space == "shared" else "sectors"
    typer.echo(
        f"the most is lost at {worst.file}:{worst.line}: {worst.waste} {what} more than its "
        f"{worst.requests} requests need"
    )
