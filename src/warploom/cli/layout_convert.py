"""`warploom layout convert`: from one register layout to another, every way side by side."""

from __future__ import annotations

from typing import Any

from warploom.catalogue.conversion import conversion_text, wrong_results
from warploom.catalogue.conversion_tuning import GpuWayBench, best_way, tune_way, with_way
from warploom.catalogue.tuning import Tuner
from warploom.choices import CONVERSIONS
from warploom.cli.commands.layout import ConvertOptions
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.cli.keeping import store_of
from warploom.cli.layout_input import sizes
from warploom.cli.measured import lines, record_of, tuner_for
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.remembered import answer_of
from warploom.cli.say import echo
from warploom.errors import (
    AbsentError,
    DeviceError,
    ParseError,
    UnsupportedError,
    one_of,
)
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.conversion.staging import Staging
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.language.show import show
from warploom.layout.patterns.named import TYPES
from warploom.runtime.driver import open_driver
from warploom.runtime.measure import gpu_library
from warploom.search.budget import Budget


def convert_command(asked: ConvertOptions, context: Context) -> None:
    def action() -> Status:
        if asked.element not in TYPES:
            raise ParseError(
                f"no element type '{asked.element[:20]}'", advice=one_of(asked.element, TYPES)
            )
        if asked.way is not None and asked.way not in CONVERSIONS:
            raise ParseError(
                f"no way is called '{asked.way[:20]}'", advice=one_of(asked.way, CONVERSIONS)
            )
        if asked.way is not None and asked.tune:
            raise ParseError("--way says what --tune is to find", advice="give one of them")
        answer, kept_in = answer_of(context.obj), store_of(asked.store, asked.no_store)
        tuner = tuner_for(asked.seconds, kept_in) if asked.tune else None
        if tuner is not None:
            check_gpu()  # before anything is searched for
        begun = {"from": asked.source, "to": asked.target}
        with kept_free(asked.json_file, asked.out if asked.emit else None, begun=begun):
            size = None if asked.shape is None else sizes(asked.shape)
            budget = Budget(asked.seconds, None)
            with progress("convert"), budget.interruptible():
                found = convert(
                    read_fragment(asked.source, size),
                    read_fragment(asked.target, size),
                    TYPES[asked.element],
                    budget,
                )
            for line in conversion_lines(found):
                echo(line)
            stopped = found.renames is None and budget.is_spent()
            if stopped:
                echo("  stopped: a layout of shared memory may take fewer wavefronts")
            used, tuned = taken(found, asked.way), dict[str, Any]()
            if tuner is not None and found.renames is None:
                used, found, tuned = measured_way(found, tuner)
            checked = tried(found, used) if asked.check else {}
            status = told(found, checked) if asked.check else _status(found)
        if stopped and status == Status.FOUND:
            status = Status.UNDECIDED
        if budget.interrupted:
            status = Status.INTERRUPTED
        answer.whole = not asked.tune and not asked.check and not stopped
        record = (
            conversion_record(found, used) | tuned | ({"check": checked} if asked.check else {})
        )
        write_records(asked.json_file, [record], answer=answer)
        if asked.emit is not None:
            write(asked.out, conversion_text(found, used, asked.emit), answer)
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
        echo(line)
    best = best_way(outcome, found)
    echo(f"  chosen on {bench.device}: {best}")
    used, found = with_way(found, best)
    return used, found, {"tune": {"device": bench.device, **record_of(outcome)}}


def taken(found: Conversion, way: str | None) -> str:
    """The way that was asked for, or the rule's, if it can be done so."""
    used = way or found.chosen
    if refused := found.refusal(used):
        raise UnsupportedError(f"it cannot be done by '{used}': {refused}")
    if used != found.chosen:
        echo(f"  taken, as was asked: {used}")
    return used


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
    checked = {}
    for device in [*devices, "ptx"]:
        try:
            checked[device] = {"wrong": wrong_results(found, way, device)}
        except AbsentError as error:
            checked[device] = {"left_out": error.message}
    return checked


def conversion_lines(found: Conversion) -> list[str]:
    source, target = found.source, found.target
    size = "×".join(map(str, source.shape))
    what = "element" if found.unit_bytes == found.element_bytes else "word"
    lines = [
        f"{source.name} → {target.name}",
        f"  {size} elements, {source.warps} warps of 32 lanes, {source.registers} → "
        f"{target.registers} registers of a thread, {found.unit_bytes} bytes each ({what}s)",
        "",
    ]
    if found.renames is not None:
        return [*lines, f"  {found.chosen}: every thread holds what it wants{_renamed(found)}"]
    for way in CONVERSIONS[2:]:
        text = _way_text(found, way)
        cost = found.costs.get(way)
        lines.append(f"  {way:10}{text}" + ("" if cost is None else f"; estimate {cost:g}"))
    return [*lines, "", f"  chosen by rule: {found.chosen}"]


def _renamed(found: Conversion) -> str:
    if found.chosen == "nothing":
        return ""
    assert found.renames is not None
    return f", as register {', '.join(map(str, found.renames))}"


def _way_text(found: Conversion, way: str) -> str:
    if way == "shuffles" and found.shuffles is not None:
        plan = found.shuffles
        rounds = f"{plan.rounds} round{'s' * (plan.rounds != 1)}, {plan.selects} selects"
        if plan.rounds == plan.bound.rounds:
            return f"{rounds}; fewer are impossible: {plan.bound.why}"
        if plan.proved:
            return f"{rounds}; fewer are impossible: every schedule of straight ways was tried"
        return f"{rounds}; at least {plan.bound.rounds}: {plan.bound.why}"
    staging = _staging(found, way)
    if staging is None:
        return f"not possible: {found.refusal(way)}"
    score, refused = staging.answer.score, found.refusal(way)
    return (
        f"{staging.store.name} + {staging.load.name}, {score} wavefronts each, "
        f"{staging.wavefronts} in all, {staging.instructions} instructions: {show(staging.layout)}"
        + f"; not possible: {refused}"
        * bool(refused)
    )


def _staging(found: Conversion, way: str) -> Staging | None:
    return {"shared": found.shared, "matrices": found.matrices}.get(way)


def conversion_record(found: Conversion, way: str) -> dict[str, Any]:
    """One conversion as plain data."""
    record: dict[str, Any] = {
        "from": found.source.name,
        "to": found.target.name,
        "shape": list(found.source.shape),
        "element_bytes": found.element_bytes,
        "unit_bytes": found.unit_bytes,
        "chosen": found.chosen,
        "way": way,
        "estimates": found.costs,
        "why": found.why,
        "renames": None if found.renames is None else list(found.renames),
    }
    if found.shuffles is not None:
        plan = found.shuffles
        record["shuffles"] = {
            "rounds": plan.rounds,
            "bound": plan.bound.rounds,
            "bound_why": plan.bound.why,
            "proved": plan.proved,
            "selects": plan.selects,
            "offers": plan.offers.tolist(),
            "sources": plan.sources.tolist(),
            "placed": plan.placed.tolist(),
        }
    for name in ("shared", "matrices"):
        staging = _staging(found, name)
        if staging is not None:
            record[name] = {
                "store": staging.store.name,
                "load": staging.load.name,
                "wavefronts": list(staging.answer.score.wavefronts),
                "least": list(staging.task.bound.wavefronts),
                "instructions": staging.instructions,
                "layout": show(staging.layout),
            }
    return record
