"""`warploom layout convert`: from one register layout to another, every way side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from warploom.catalogue.conversion import conversion_text, wrong_results
from warploom.catalogue.conversion_tuning import GpuWayBench, best_way, tune_way, with_way
from warploom.catalogue.tuning import Tuner
from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, run
from warploom.cli.keeping import NO_STORE, STORE, store_of
from warploom.cli.measured import lines, record_of, tuner_for
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.remembered import answer_of
from warploom.emit import BACKENDS
from warploom.errors import AbsentError, DeviceError, ParseError
from warploom.layout.conversion.convert import WAYS, Conversion, convert
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.given import sizes
from warploom.layout.patterns.named import TYPES
from warploom.pipeline.converted import check_asked, conversion_lines, conversion_record, taken
from warploom.runtime.driver import open_driver
from warploom.runtime.measure import gpu_library
from warploom.search.budget import Budget

CONVERT = """Convert registers from one layout to another: which threads send what to whom?

A layout of registers is Triton's bases ({"register": [[0, 1]], "lane": …, "warp": …}) or layout
objects (BlockedLayout(…), DotOperandLayout(…)), blocked(…), mma_a(k), mma_b(k), mma_c() by name,
or CuTe's layout of threads and values, (32,4):(4,1). Those that do not say it need --shape.

All ways are shown: renames alone, the fewest rounds of shuffles straight from who holds an element
to who wants it (with what proves it; parts of words are not packed again on their way), shared
memory with the solved layout, ldmatrix and stmatrix. The one chosen is chosen by rule; --way takes
another, and --tune measures them all on a GPU, for 30 seconds unless --seconds says otherwise, and
takes the fastest; the store keeps it, and --tune alone reads it there. Without --tune and --check
the same command again answers from the store.

\b
Example:
  $ warploom layout convert --from '(32,5):(1,32)' --to '(32,5):(5,1)' --emit cuda
  $ warploom layout convert --from 'mma_c()' --to 'mma_a(4)' --shape 16x32 --element i8 --check
  $ warploom layout convert --from '(32,4):(4,1)' --to '(32,4):(1,32)' --tune --emit cuda

Exit status: 0 the fewest rounds are proved or none are needed, 1 a check failed, 2 bad input, 3
fewer rounds than found are not ruled out, the search for layouts of shared memory was stopped, or
there is nothing to run a check on, 130 Ctrl-C (the best so far is printed)."""


def command() -> Any:
    """The command, for the group that it belongs to."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("convert", help=CONVERT)(convert_command)
    return typer.main.get_command(app)


def convert_command(
    context: typer.Context,
    source: str = typer.Option(..., "--from", metavar="LAYOUT", help="What threads hold."),
    target: str = typer.Option(..., "--to", metavar="LAYOUT", help="What they should hold."),
    shape: str = typer.Option(None, metavar="32x32", help="The tensor, if they do not say it."),
    element: str = typer.Option("f32", metavar="TYPE", help="The type of an element."),
    way: str = typer.Option(None, metavar="WAY", help=f"One of {', '.join(WAYS)}."),
    check: bool = typer.Option(
        False, "--check", help="Run it: simulator, and PTX on the emulator."
    ),
    tune: bool = typer.Option(False, "--tune", help="Measure all ways on a GPU; keep the fastest."),
    store: Path = STORE,
    no_store: bool = NO_STORE,
    seconds: float = typer.Option(None, min=0, help="Wall time of the search, and of --tune."),
    emit: str = typer.Option(None, metavar="|".join(BACKENDS), help="Write the kernel."),
    out: Path = typer.Option(STDOUT, "-o", metavar="FILE", help="Where it is written."),
    json_file: Path = typer.Option(None, "--json", metavar="FILE", help="Write a record."),
) -> None:
    def action() -> Status:
        check_asked(element, way)
        if way is not None and tune:
            raise ParseError("--way says what --tune is to find", advice="give one of them")
        answer, kept_in = answer_of(context.obj), store_of(store, no_store)
        tuner = tuner_for(seconds, kept_in) if tune else None
        if tuner is not None:
            check_gpu()  # before anything is searched for
        begun = {"from": source, "to": target}
        with kept_free(json_file, out if emit else None, begun=begun):
            size = None if shape is None else sizes(shape)
            budget = Budget(seconds, None)
            with progress("convert"), budget.interruptible():
                found = convert(
                    read_fragment(source, size), read_fragment(target, size), TYPES[element], budget
                )
            for line in conversion_lines(found):
                typer.echo(line)
            stopped = found.renames is None and budget.is_spent()
            if stopped:
                typer.echo("  stopped: a layout of shared memory may take fewer wavefronts")
            used, tuned = taken(found, way), dict[str, Any]()
            if used != found.chosen:
                typer.echo(f"  taken, as was asked: {used}")
            if tuner is not None and found.renames is None:
                used, found, tuned = measured_way(found, tuner)
            checked = tried(found, used) if check else {}
            status = told(found, checked) if check else _status(found)
        if stopped and status == Status.FOUND:
            status = Status.UNDECIDED
        if budget.interrupted:
            status = Status.INTERRUPTED
        answer.whole = not tune and not check and not stopped
        record = conversion_record(found, used) | tuned | ({"check": checked} if check else {})
        write_records(json_file, [record], answer=answer)
        if emit is not None:
            write(out, conversion_text(found, used, emit), answer)
        return status

    run(action)


def check_gpu() -> None:
    """Refuses to measure where there is nothing to measure on, or with."""
    try:
        open_driver()
    except DeviceError:
        raise DeviceError(
            "there is no GPU to measure on", advice="without --tune the way is chosen by rule"
        ) from None
    gpu_library()


def measured_way(found: Conversion, tuner: Tuner) -> tuple[str, Conversion, dict[str, Any]]:
    """The fastest way, after all were shown; the rule's where nothing was measured in time."""
    bench = GpuWayBench(found)
    with progress("convert") as report:
        outcome = tune_way(
            found,
            bench,
            budget=Budget(tuner.seconds),
            store=tuner.store,
            on_trial=report and (lambda what, done, of: report(f"{what}, {done} of {of}", done)),
        )
    for line in lines(outcome, tuner.store, "ways"):
        typer.echo(line)
    best = best_way(outcome, found)
    typer.echo(f"  chosen on {bench.device}: {best}")
    used, found = with_way(found, best)
    return used, found, {"tune": {"device": bench.device, **record_of(outcome)}}


def _status(found: Conversion) -> Status:
    if found.shuffles is not None and not found.shuffles.proved:
        return Status.UNDECIDED
    return Status.FOUND


def told(found: Conversion, checked: dict[str, dict[str, str]]) -> Status:
    """What came out of a check."""
    for device, outcome in checked.items():
        left = outcome.get("left_out")
        said = f"left out: {left}" if left else outcome["wrong"] or "right"
        typer.echo(f"  {device}: {said}")
    wrong = [outcome["wrong"] for outcome in checked.values() if "wrong" in outcome]
    if not wrong:
        typer.echo("  not run: the simulator has no instructions for matrices")
        return Status.UNDECIDED
    return Status.IMPOSSIBLE if any(wrong) else _status(found)


def tried(found: Conversion, way: str) -> dict[str, dict[str, str]]:
    """What each device has to say against the kernel, or why it is left out."""
    devices = [] if way == "matrices" else ["simulator"]  # kernels have no statement for these
    checked = {}
    for device in [*devices, "ptx"]:
        try:
            checked[device] = {"wrong": wrong_results(found, way, device)}
        except AbsentError as error:
            checked[device] = {"left_out": error.message}
    return checked
