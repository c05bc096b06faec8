"""`warploom ptx report`: what a launch asks of memory, in lines of the source, and how long it
would take, without a GPU."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

from warploom.cli.commands.ptx import Reported
from warploom.cli.declare import Context
from warploom.cli.guard import Status
from warploom.cli.output import kept_free, write_records
from warploom.cli.ptx_arguments import parse_variables
from warploom.cli.ptx_input import loaded, recorded, stopped
from warploom.cli.ptx_launch import launch_of
from warploom.cli.say import echo
from warploom.errors import DeviceError, KernelError, LimitError
from warploom.machine.record import machine_named
from warploom.options import from_environment
from warploom.ptx.launch import Kernel, Report
from warploom.ptx.patience import left, within
from warploom.ptx.ptxas import find_ptxas
from warploom.ptx.traffic import TrafficRow, live_registers, traffic_rows
from warploom.ptx.work import Foretold
from warploom.runtime.compile import Usage, ptx_usage

KIND = "ptx report"
COUNTED = 20.0  # seconds, in which a launch is counted for the time model, or is not


def report(asked: Reported, context: Context) -> None:
    def action(findings: list[dict[str, Any]]) -> Status:
        with kept_free(asked.json_file):
            pass
        served_by = machine_named(asked.machine)
        launch, variables = (
            launch_of(asked, asked.seed, context),
            parse_variables(asked.variable, asked.seed),
        )
        try:
            name = asked.kernel or launch.kernel
            chosen, deadline = loaded(asked.source, asked.arch, name, asked.seconds, variables)
            foretold = Foretold(chosen, launch.args)
            done = chosen.launch(
                launch.grid, launch.block, launch.args, shared_bytes=launch.shared, counters=True,
                seconds=left(deadline), machine=served_by, cluster=launch.cluster,
            )  # fmt: skip
            with within(deadline, "counting what the launch did"):
                rows = traffic_rows(chosen, done)
                live = live_registers(chosen)
            usage = _usage(chosen, left(deadline))
            time = foretold.time(
                served_by, done, rows, min(COUNTED, left(deadline) or COUNTED), grid=launch.grid,
                block=launch.block, shared_bytes=launch.shared, cluster=launch.cluster,
            )  # fmt: skip
        except (KernelError, LimitError) as error:
            status = stopped(error, findings)
            record = {"kind": KIND, "status": int(status), "findings": findings}
            write_records(asked.json_file, [record])
            return status
        with kept_free(asked.json_file):
            _show(chosen, done, rows, usage, live, chosen.static_shared + launch.shared)
            echo(f"no time is predicted: {time}" if isinstance(time, str) else str(time))
        record = _record(chosen, done, rows, usage, live, launch.shared)
        record["predicted"] = None if isinstance(time, str) else time.record()
        record["not_predicted"] = time if isinstance(time, str) else None
        write_records(asked.json_file, [record])
        return Status.FOUND

    recorded(action, asked.json_file, KIND)


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
    echo(f"{kernel.name}: {blocks} blocks of {done.threads} threads, {used}, "
               f"{shared} bytes of shared memory")  # fmt: skip
    seen = [row for row in rows if row.requests]
    echo(f"{'':38}{'requests':>10}{'lanes':>7}{'sectors each':>17}{'wavefronts each':>18}")
    for place, group in groupby(seen, key=lambda row: (row.file, row.line, row.text)):
        echo(f"{place[0]}:{place[1]}: {place[2]}")
        # One line of the source may become many instructions that ask for the same.
        for line, count in Counter(map(_line, group)).items():
            echo(f"  {count} × {line}" if count > 1 else f"  {line}")
    idle = sum(not row.requests for row in rows)
    if idle:
        echo(f"{idle} instructions that no thread came to are left out")
    _show_worst(seen)


def _line(row: TrafficRow) -> str:
    name = row.instruction
    if row.what == "branches":
        return f"{name:36}{row.requests:10}   warps, {row.divergent} of them diverge"
    text = (
        f"{name:36}{row.requests:10}{row.lanes_each:7.1f}"
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
        echo("no request takes more than its bytes need")
        return
    what = "wavefronts" if worst.space == "shared" else "sectors"
    echo(
        f"the most is lost at {worst.file}:{worst.line}: {worst.waste} {what} more than its "
        f"{worst.requests} requests need"
    )
