"""`warploom ptx shuffle` and `run`: shuffles into PTX; PTX without a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import typer

from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, complain, run
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.ptx_arguments import parse_arguments, parse_shape, parse_variables, save_arrays
from warploom.cli.ptx_input import (
    SECONDS,
    VARIABLE,
    finding,
    left,
    loaded,
    read_text,
    recorded,
    stopped,
)
from warploom.cli.ptx_report import REPORT, report
from warploom.errors import (
    KernelError,
    LimitError,
    ParseError,
    UnsupportedError,
)
from warploom.ptx.findings import race_fault, rounding_note
from warploom.ptx.launch import Report
from warploom.ptx.shuffle import FARTHEST, KernelReport, Rewrite, check, confirm, rewrite
from warploom.search.outcome import Verdict

SHUFFLE = """Replace loads by warp shuffles where proved right and, by default, where it pays.

Every other byte of the file stays as it is; the input is never overwritten. `warploom-ptxas` does
the same inside a build: it takes ptxas's arguments and calls the real one.

\b
Example:
  $ nvcc -ptx stencil.cu -o stencil.ptx
  $ warploom ptx shuffle stencil.ptx -o faster.ptx --check --why

Exit status: 0 done ("no gain, kept" is an answer), 1 --check found a difference, 2 bad input,
3 --check could not run some kernel, which shows nothing, 130 Ctrl-C."""

KIND = "ptx run"


class Volatile(StrEnum):
    """How volatile accesses race."""

    RELAXED = "relaxed"
    WEAK = "weak"


RUN = """Run a kernel without a GPU, every access checked.

An argument is TYPE=VALUE for a number or TYPE[COUNT]=START for an array, where START is zeros,
ones, range, random or a .npy file: f32[1024]=random, i32=1024, u8[64]=@bytes.npy. A structure is
an array of its bytes. --variable table=f32[8]=range gives a variable of the module its value.

\b
Example:
  $ warploom ptx run saxpy.ptx --grid 4 --block 256 \\
      --arg f32[1000]=range --arg f32[1000]=ones --arg f32=2 --arg i32=1000 --races

Launches of 65,536 threads and more, and those that turn out to be long work, are compiled to C,
where the kernel can be, with the same answers sooner. Races and counters cost time, so they are
looked for only if asked for. `engine` in the output says who ran.

CUDA text (.cu) is compiled first, by nvcc, NVRTC or clang. What is found is shown at the line of
the source where the PTX names one (-lineinfo), with block and thread; `--json` has it as
`findings`, whatever the exit status.

Exit status: 0 clean, 1 something found (a fault, a race, an assertion), 2 bad input, 3 stopped by
the time limit, or out of memory, 130 Ctrl-C."""


def add(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("shuffle", help=SHUFFLE)(shuffle)
    group.command("run", help=RUN)(run_kernel)
    group.command("report", help=REPORT)(report)
    app.add_typer(group, name="ptx", help="Shuffles into finished PTX; PTX run without a GPU.")


def shuffle(
    source: str = typer.Argument(..., metavar="IN.ptx", help="- is standard input."),
    output: Path = typer.Option(None, "-o", "--output", metavar="OUT.ptx", show_default=False),
    select: str = typer.Option("pays", help="pays, or all that can be proved."),
    variant: str = typer.Option(
        "corner", help="corner, predicated; for timing studies also no-corner, no-load."
    ),
    limit: int = typer.Option(FARTHEST, min=0, max=FARTHEST, help="Largest lane distance."),
    machine: str = typer.Option(
        "h200", metavar="NAME|FILE", help="Whose latencies decide what pays."
    ),
    check_it: bool = typer.Option(False, "--check", help="Run both on the emulator and compare."),
    why: bool = typer.Option(False, "--why", help="Say for each load what was decided."),
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        # What people read goes to standard error.
        records: list[dict[str, Any]] = []
        with kept_free(json_file, output or STDOUT, so_far=records):
            _check_apart(source, output)
            text = read_text(source)
            done = rewrite(
                text, source, select=select, variant=variant, limit=limit, machine=machine
            )
            records += [{**kernel.as_record(), "checked": None} for kernel in done.kernels]
            for kernel in done.kernels:
                _say(kernel, why)
        write(output or STDOUT, done.text)
        with kept_free(json_file, output or STDOUT, so_far=records):
            checked = _check(text, done) if check_it else None
        write_records(json_file, [{**record, "checked": checked} for record in records])
        if check_it and checked is None:
            return Status.UNDECIDED
        return Status.IMPOSSIBLE if checked is False else Status.FOUND

    run(action)


def _say(kernel: KernelReport, why: bool) -> None:
    if kernel.refusal:
        typer.echo(f"{kernel.name}: left alone: {kernel.refusal}", err=True)
        return
    lanes = ", ".join(f"{lanes:+d}: {count}" for lanes, count in kernel.deltas.items())
    gain = f" (lane distance {lanes})" if lanes else "; no gain, kept"
    typer.echo(
        f"{kernel.name}: {kernel.shuffles} shuffles for {kernel.loads} loads{gain}, "
        f"{kernel.seconds:.2f} s",
        err=True,
    )
    for one in kernel.candidates if why else ():
        mark = "+" if one.taken else "-"
        proof = f" [{one.proof}]" if one.proof else ""
        typer.echo(f"  {mark} line {one.line}: {one.load}: {one.why}{proof}", err=True)


def _check_apart(source: str, output: Path | None) -> None:
    if output is None or STDOUT in (output, Path(source)):
        return
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise ParseError("the input is not overwritten", advice="give -o another name")


def _check(text: str, done: Rewrite) -> bool | None:
    """True: agrees, False: differs, None: of some kernel nothing could be run.

    Z3 is asked where it is there.
    """
    report = check(text, done.text, schedules=1)
    if report.mismatch is not None:
        typer.echo(f"check: DIFFERENT: {report.mismatch}", err=True)
        return False
    ran = report.launches - report.skipped
    if ran:
        typer.echo(f"check: {ran} launches agree byte for byte", err=True)
    for name in report.unseen:
        what = "no launch of the original ran through; nothing is shown"
        typer.echo(f"check: {name}: {what}", err=True)
    refuted = _judge(done)
    if refuted:
        return False
    return True if report.agrees else None


def _judge(done: Rewrite) -> bool:
    """Whether Z3 refutes a shuffle."""
    try:
        verdicts = [verdict for each in confirm(done).values() for verdict in each]
    except UnsupportedError as error:
        typer.echo(f"check: Z3 was not asked: {error.message}", err=True)
        return False
    proved = sum(verdict is Verdict.PROVED for verdict in verdicts)
    typer.echo(f"check: Z3 proves {proved} of {len(verdicts)} shuffles", err=True)
    return any(verdict is Verdict.REFUTED for verdict in verdicts)


def run_kernel(
    source: str = typer.Argument(..., metavar="IN.ptx|IN.cu", help="- is standard input."),
    kernel: str = typer.Option(None, help="Needed if the file has several.", show_default=False),
    grid: str = typer.Option("1", help="Blocks: X or X,Y or X,Y,Z."),
    block: str = typer.Option("32", help="Threads of a block, likewise."),
    arg: list[str] = typer.Option([], "--arg", metavar="TYPE…", help="One for each parameter."),
    variable: list[str] = VARIABLE,
    shared: int = typer.Option(0, help="Bytes of dynamic shared memory."),
    heap: int = typer.Option(None, help="Bytes for device malloc; 8 MiB if not said."),
    seed: int = typer.Option(0, help="For random arrays."),
    races: bool = typer.Option(False, "--races", help="Also look for data races."),
    benign: bool = typer.Option(
        False, "--benign", help="Writes of one value and loads of no use are no races."
    ),
    volatile: Volatile = typer.Option(
        Volatile.RELAXED, help="How volatile accesses race: as atomics, or as plain ones."
    ),
    counters: bool = typer.Option(
        False, "--counters", help="Also count sectors, bank conflicts, divergence and the like."
    ),
    seconds: float = typer.Option(SECONDS, min=0, help="Wall time for the PTX: read and run."),
    arch: str = typer.Option("sm_90a", help="What CUDA text is compiled for."),
    save: Path = typer.Option(
        None, metavar="FILE", help="Write the arrays: all as .npz, the one that was stored as .npy."
    ),
    json_file: Path = JSON,
) -> None:
    def action(findings: list[dict[str, Any]]) -> Status:
        if save == STDOUT:
            raise ParseError("arrays do not go to standard output", advice="give --save a file")
        with kept_free(json_file, save):
            pass
        args, variables = parse_arguments(arg, seed), parse_variables(variable, seed)
        before = {f"arg{i}": a.copy() for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        record: dict[str, Any] = {}
        status = Status.FOUND
        try:
            chosen, deadline = loaded(source, arch, kernel, seconds, variables)
            report = chosen.launch(
                parse_shape(grid), parse_shape(block), args, shared_bytes=shared,
                races="all" if races else False, benign=benign, counters=counters,
                seconds=left(deadline), heap_bytes=heap,
                volatile="weak" if volatile is Volatile.WEAK else "relaxed",
            )  # fmt: skip
            record = _run_record(report, counters)
            with kept_free(json_file):
                _print_output(report.output)
            for race in report.races:
                error = race_fault(chosen.owner, race)
                findings.append(finding("race", error) | {"same_value": race.same_value})
                complain(error)
            for race in report.rounding:
                typer.echo(f"note: {rounding_note(chosen.owner, race)}", err=True)
            status = Status.IMPOSSIBLE if report.races else Status.FOUND
        except KernelError as error:
            with kept_free(json_file):
                _print_output(error.output)
            status = stopped(error, findings)
        except LimitError as error:
            status = stopped(error, findings)
        arrays = {f"arg{i}": a for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        with kept_free(json_file):
            _show_run(record, arrays)
        if save is not None:
            save_arrays(save, arrays, before)
        told = {"kind": KIND, "status": int(status), "findings": findings}
        write_records(json_file, [record | told])
        return status

    recorded(action, json_file, KIND)


def _print_output(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line, nl=False)


def _show_run(record: dict[str, Any], arrays: dict[str, Any]) -> None:
    for name, value in record.items():
        typer.echo(f"{name}: {value}")
    for name, array in arrays.items() if record else ():
        typer.echo(f"{name}: {np.array2string(array, threshold=16, edgeitems=4)}")


def _run_record(report: Report, counted: bool) -> dict[str, Any]:
    """What a launch did; figures that nobody asked for are left out, as they are not known."""
    return {
        "thread_instructions": report.thread_instructions,
        "seconds": round(report.seconds, 6),
        "engine": report.engine,
        "cores": report.cores,
        **(_counted(report) if counted else {}),
        "mix": dict(sorted(report.mix.items(), key=lambda item: -item[1])),
    }


def _counted(report: Report) -> dict[str, int]:
    seen = report.counters
    return {
        "global_load_requests": seen.global_loads.requests,
        "global_load_sectors": seen.global_loads.sectors,
        "global_store_requests": seen.global_stores.requests,
        "global_store_sectors": seen.global_stores.sectors,
        "bank_conflicts": seen.shared.conflicts,
        "shuffles": seen.shuffles,
        "divergent_branches": seen.divergent_branches,
        "barriers": seen.barriers,
        "atomics": seen.atomics,
    }
