"""`warploom layout convert`: from one register layout to another, every way side by side."""

from __future__ import annotations

from typing import Any

from warploom.catalogue.conversion import wrong_results
from warploom.catalogue.conversion_tuning import GpuWayBench, best_way, tune_way, with_way
from warploom.catalogue.tuning import Tuner
from warploom.cli.command import command_words
from warploom.cli.commands.layout import Convert
from warploom.cli.declare import Context
from warploom.cli.guard import Status, check_meant, run
from warploom.cli.keeping import store_of
from warploom.cli.layout_input import known_name
from warploom.cli.measured import lines, record_of, tuner_for
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.remembered import answer_of
from warploom.cli.say import echo
from warploom.errors import AbsentError, DeviceError, ParseError
from warploom.layout.conversion.convert import Conversion
from warploom.layout.formats.given import sizes
from warploom.machine.record import CUDA
from warploom.pipeline.converted import (
    check_asked,
    conversion_lines,
    conversion_record,
    converted,
    noted_conversion,
    taken,
)
from warploom.runtime.driver import open_driver
from warploom.runtime.measure import gpu_library
from warploom.search.budget import Budget


def convert_command(asked: Convert, context: Context) -> None:
    def action() -> Status:
        check_asked(asked.element, asked.way)
        known_name(asked.emit, asked.name)
        if asked.emit is None:
            check_meant(context, ("name",), "without --emit")
        if asked.way is not None and asked.tune:
            raise ParseError("--way and --tune exclude each other", advice="give one of them")
        answer, kept_in = answer_of(context.obj), store_of(asked.store, asked.no_store)
        tuner = tuner_for(asked.seconds, kept_in) if asked.tune else None
        if tuner is not None:
            check_gpu()  # before anything is searched for
        begun = {"from": asked.source, "to": asked.target}
        with kept_free(asked.json_file, asked.out if asked.emit else None, begun=begun):
            size = None if asked.shape is None else sizes(asked.shape)
            budget = Budget(asked.seconds, None)
            with progress("convert"), budget.interruptible():
                found = converted(
                    asked.source, asked.target, size, asked.element, budget, asked.machine
                )
            for line in conversion_lines(found):
                echo(line)
            stopped = found.renames is None and budget.is_spent()
            if stopped:
                echo("  stopped: a layout of shared memory may take fewer wavefronts")
            used, tuned = taken(found, asked.way), dict[str, Any]()
            if used != found.chosen:
                echo(f"  taken, as was asked: {used}")
            if tuner is not None and found.renames is None:
                used, found, tuned = measured_way(found, tuner)
            checked = tried(found, used) if asked.check else {}
            status = told(found, checked) if asked.check else _status(found)
        if stopped and status == Status.FOUND:
            status = Status.UNDECIDED
        if budget.interrupted:
            status = Status.INTERRUPTED
        answer.whole = not asked.tune and not asked.check and not stopped
        said = _text(asked, context, found, used, checked)
        record = (
            conversion_record(found, used) | tuned | ({"check": checked} if asked.check else {})
        )
        write_records(asked.json_file, [record], answer=answer)
        if said:
            write(asked.out, said, answer)
        return status

    run(action)


def _text(
    asked: Convert, context: Context, found: Conversion, way: str, checked: dict[str, Any]
) -> str:
    """The kernel with its command; nothing where none was asked for."""
    if asked.emit is None:
        return ""
    ran = ", ".join(f"{device}: {each['wrong'] or 'right'}" for device, each in checked.items()
                    if "wrong" in each)  # fmt: skip
    command = command_words(asked, context, "layout")
    return noted_conversion(
        found, way, asked.emit, asked.name, command, ran=ran and f"run on {ran}"
    )


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
        echo(line)
    best = best_way(outcome, found)
    echo(f"  chosen on {bench.device}: {best}")
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
        echo(f"  {device}: {said}")
    wrong = [outcome["wrong"] for outcome in checked.values() if "wrong" in outcome]
    if not wrong:
        echo("  not run: the simulator has no instructions for matrices")
        return Status.UNDECIDED
    return Status.IMPOSSIBLE if any(wrong) else _status(found)


def tried(found: Conversion, way: str) -> dict[str, dict[str, str]]:
    """What each device has to say against the kernel, or why it is left out."""
    devices = [] if way == "matrices" else ["simulator"]  # kernels have no statement for these
    checked: dict[str, dict[str, str]] = {}
    for device in [*devices, "ptx"]:
        if device == "ptx" and found.source.lanes != CUDA.lanes:
            checked[device] = {"left_out": f"CUDA has warps of {CUDA.lanes} lanes"}
            continue
        try:
            checked[device] = {"wrong": wrong_results(found, way, device)}
        except AbsentError as error:
            checked[device] = {"left_out": error.message}
    return checked
