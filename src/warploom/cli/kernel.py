"""`warploom kernel`: the kernels of the catalogue, as text, checked, timed or mutated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from warploom import emit
from warploom.catalogue import Entry, find, find_function, function_entries
from warploom.catalogue.entry import Parameter
from warploom.catalogue.timing import named_size, scalars_of, time_on_gpu, timed_size
from warploom.catalogue.tuning import Tuner
from warploom.catalogue.verify import Checked, mutation, verify
from warploom.cli.command import command_words
from warploom.cli.commands.kernel import KernelOptions
from warploom.cli.commands.shared import Form, Text
from warploom.cli.crew import crew_of
from warploom.cli.declare import STDOUT, Context
from warploom.cli.guard import Status, run, worst
from warploom.cli.inputs import find_input, parse_sizes
from warploom.cli.measured import check_tuned, tune_settings, tuner_of
from warploom.cli.names import list_names
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.own import check_fits, check_form, layout_of
from warploom.cli.say import echo
from warploom.emit.language import calling_text
from warploom.emit.parts import with_notes
from warploom.emit.spell import function_name
from warploom.errors import ParseError, UnsupportedError, WarploomError
from warploom.kernel.ir import Kernel
from warploom.kernel.largest import with_largest
from warploom.kernel.wide import index_named
from warploom.kernel.work import prediction
from warploom.machine.record import H200
from warploom.pipeline.entry import entry_of
from warploom.pipeline.header import Header, named_header, sketch_header
from warploom.pipeline.subject import tiled
from warploom.runtime.callable import WITHOUT_GPU, Device
from warploom.runtime.compile import usage
from warploom.runtime.measure import gpu_library
from warploom.search.budget import Budget


def kernel(asked: KernelOptions, context: Context) -> None:
    run(partial(_all_of, asked, context))


def _all_of(asked: KernelOptions, context: Context) -> Status:
    if not asked.names:
        with kept_free(asked.json_file):
            records = list_names()
        write_records(asked.json_file, records)
        return Status.FOUND
    if asked.out is not None and len(asked.names) > 1:
        raise ParseError("-o is for one kernel", advice="give one at a time")
    tuner, command = _tuner(asked), command_words(asked, context)
    statuses, records = list[Status](), list[dict[str, Any]]()
    for name in asked.names:
        record: dict[str, Any] = {"name": name}
        statuses += _one(name, asked, tuner, records, record, command)
        records.append(record)
    write_records(asked.json_file, records)
    return worst(statuses)


def _tuner(asked: KernelOptions) -> Tuner | None:
    crewed = asked.processes is not None or asked.cluster is not None
    examined = asked.check or asked.mutate
    return tuner_of(
        asked.tune, asked.store, asked.no_store, asked.seconds, checked=examined, crewed=crewed
    )


def _target(asked: KernelOptions) -> Path | None:
    """Where the text goes; none if only what it does is asked for."""
    examined = asked.check or asked.time or asked.model or asked.mutate
    wanted = asked.text is not None or asked.out is not None or not examined
    return (asked.out or STDOUT) if wanted else None


def _one(
    name: str,
    asked: KernelOptions,
    tuner: Tuner | None,
    so_far: list[dict[str, Any]],
    record: dict[str, Any],
    command: str,
) -> list[Status]:
    """One kernel, or device function: written, and examined as asked."""
    target = _target(asked)
    free = partial(kept_free, asked.json_file, target, so_far=so_far, begun=record)
    own = Own(asked.lanes, asked.step, asked.dtype, None if tuner else asked.seconds)
    if asked.form is Form.function or (asked.form is None and name in function_entries()):
        check_form(Form.function, asked.index_bits)
        check_tuned(tuner, name)
        return _function(name, asked, own, target, record, free, command)
    with free():
        entry, given = _entry(name, asked.setting, own, asked.index_bits)
        if asked.time or (tuner and asked.cluster is None):
            gpu_library()  # without one nothing else needs to be done first
        sizes = named_size(entry, given, parse_sizes(asked.size)) if asked.size else None
        if tuner:
            with crew_of(asked.processes, asked.cluster) as crew:
                given = tune_settings(entry, given, sizes, tuner, record, crew)
        decided = entry.settings(given, sizes)
        built = entry.kernel(**decided)
        record |= {"settings": decided, "doc": built.doc}
        written = built if _is_file(name) else with_largest(built)
        noted = with_notes(written, command)
        said = "" if target is None else emit.emit(noted, _language(asked.text))
    if target is not None:
        write(target, said)
    statuses = []
    with free():
        if asked.check:
            run_on = partial(verify, entry, decided, kernel=built)
            statuses.append(_check(run_on, built, record))
        if asked.mutate:
            statuses.append(_mutate(entry, decided, asked.most, record))
        if asked.model:
            _model(entry, decided, sizes, built, record)
        if asked.time:
            _time(entry, given, sizes, record)
    return statuses


@dataclass(frozen=True, slots=True)
class Own:
    """Options that only a sketch of the user's own has."""

    lanes: int | None
    step: list[str]
    dtype: str | None
    seconds: float | None


def _entry(
    name: str, setting: list[str], own: Own, index_bits: int
) -> tuple[Entry, dict[str, Parameter]]:
    """The entry of the catalogue with its settings, or one made of a sketch, which has none."""
    if not _is_file(name):
        _check_named(name, own)
        entry = find(name).with_index(index_named(index_bits))
        return entry, parse_settings(entry, setting)
    layout = layout_of(own.lanes, own.step, own.dtype, index_bits)
    given = find_input(name).build(parse_sizes(setting))
    check_fits(given, layout)
    return entry_of(name, tiled(given, layout, budget=Budget(own.seconds))), {}


def _language(text: Text | None) -> str:
    return "cuda" if text is None else text.value


def _is_file(name: str) -> bool:
    return name == "-" or "::" in name or Path(name).is_file()


def _check_named(name: str, own: Own) -> None:
    if own != Own(None, [], None, None):
        raise ParseError(
            f"--lanes, --step, --dtype and --seconds are for sketches; '{name}' is none",
            advice="parameters of the catalogue are set by --set",
        )


def parse_settings(entry: Entry, texts: list[str]) -> dict[str, Parameter]:
    """`fields=5` by the kind of the parameter's default."""
    found: dict[str, Parameter] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ParseError(f"'{text[:80]}' is not of the form K=V", advice="write fields=5")
        if isinstance(entry.parameters.get(entry.own_name(key)), int):
            try:
                found[key] = int(value)
            except ValueError:
                raise ParseError(f"'{key}' is a whole number, not '{value[:80]}'") from None
        else:
            found[key] = value
    entry.settings(found)
    return found


def _header(name: str, setting: list[str], own: Own) -> Header:
    """The function with a name, or of a sketch."""
    if _is_file(name):
        layout = layout_of(own.lanes, own.step, own.dtype, 32)
        given = find_input(name).build(parse_sizes(setting))
        check_fits(given, layout)
        return sketch_header(given, layout, budget=Budget(own.seconds))
    entry = find_function(name)
    _check_named(name, own)
    return named_header(entry, parse_settings(entry, setting))


def _function(
    name: str,
    asked: KernelOptions,
    own: Own,
    target: Path | None,
    record: dict[str, Any],
    free: Callable[[], AbstractContextManager[None]],
    command: str,
) -> list[Status]:
    """A device function, written and examined."""
    if asked.time or asked.model:
        raise ParseError("a function is not measured", advice="time your own kernel")
    with free():
        header = _header(name, asked.setting, own)
    if target is not None:
        write(target, header.text(_language(asked.text), command))
    called, found = header.called, []
    record |= {"settings": dict(called.settings), "doc": called.kernel.doc}
    with free():
        if asked.check:
            found.append(_check(header.verify, header.template.kernel, record, calls=True))
        if asked.mutate:
            found.append(_mutate(called.entry, dict(called.settings), asked.most, record))
    return found


def _check(
    run_on: Callable[[Device], list[Checked]],
    built: Kernel,
    record: dict[str, Any],
    calls: bool = False,
) -> Status:
    status = Status.FOUND
    record["check"] = {}
    for device in WITHOUT_GPU:
        try:
            outcomes = run_on(device)
        except UnsupportedError as error:
            echo(f"{device:<10} left out: {_first_line(error)}")
            record["check"][device] = {"left_out": error.message}
            continue
        wrong = [each for each in outcomes if each.wrong]
        word = "wrong" if wrong else "agrees"
        echo(f"{device:<10} {word} on {len(outcomes)} sizes")
        for each in wrong[:3]:
            echo(f"  {dict(each.size)}: {each.wrong}")
        record["check"][device] = {"sizes": len(outcomes), "wrong": len(wrong)}
        status = Status.IMPOSSIBLE if wrong else status
    _check_registers(built, record, calls)
    return status


def _check_registers(built: Kernel, record: dict[str, Any], calls: bool) -> None:
    try:
        text = calling_text(built, "cuda") if calls else emit.cuda(built)
        used = usage(text).get(function_name(built, "cuda"))
    except WarploomError as error:
        echo(f"registers  left out: {_first_line(error)}")
        return
    if used is None:
        echo("registers  left out: the compiler does not report them")
        return
    echo(f"registers  {used.registers}, {used.spill_stores + used.stack_bytes} bytes spilled")
    record["registers"] = used.registers
    record["spilled_bytes"] = used.spill_stores + used.stack_bytes


def _first_line(error: WarploomError) -> str:
    """Compilers may say much."""
    return error.message.partition("\n")[0].rstrip(":")


def _mutate(
    entry: Entry, given: dict[str, Parameter], most: int | None, record: dict[str, Any]
) -> Status:
    report = mutation(entry, given, most=most)
    found = report.as_dict()
    record["mutation"] = found
    echo(
        f"{found['mutants']} mutants, {found['function_changing']} compute something else:"
        f" {found['caught']} caught, {len(report.survivors)} not"
    )
    for each in report.survivors:
        echo(f"  not caught: {each.mutant} ({each.reason})")
    return Status.IMPOSSIBLE if report.survivors else Status.FOUND


def _model(
    entry: Entry,
    decided: dict[str, Parameter],
    size: dict[str, int] | None,
    built: Kernel,
    record: dict[str, Any],
) -> None:
    chosen = size or timed_size(entry, decided)
    took = prediction(built, H200, scalars_of(entry, decided, chosen, built))
    echo(f"{took}, for {', '.join(f'{key}={value}' for key, value in chosen.items())}")
    record["predicted"] = {"size": chosen, **took.record()}


def _time(
    entry: Entry, given: dict[str, Parameter], size: dict[str, int] | None, record: dict[str, Any]
) -> None:
    timed = time_on_gpu(entry, given, size)
    settings = " ".join(f"{key}={value}" for key, value in timed.settings.items())
    echo(f"settings   {settings}" if settings else "settings   none")
    echo(
        f"{timed.seconds * 1e6:.1f} µs (± {timed.spread:.1%}) for"
        f" {', '.join(f'{key}={value}' for key, value in timed.size.items())}:"
        f" {timed.bytes / timed.seconds / 1e12:.2f} TB/s,"
        f" {timed.fraction:.2f} of a copy ({timed.ceiling / 1e12:.2f} TB/s)"
    )
    record["time"] = {
        "size": timed.size,
        "settings": timed.settings,
        "seconds": timed.seconds,
        "bytes": timed.bytes,
        "copy_bytes_per_second": timed.ceiling,
        "fraction_of_copy": timed.fraction,
    }
