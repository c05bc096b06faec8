"""`warploom kernel`: the kernels of the catalogue, as text, checked, timed or mutated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from warploom import emit
from warploom.catalogue import Entry, find, find_function, function_entries
from warploom.catalogue.entry import Parameter
from warploom.catalogue.timing import named_size, time_on_gpu
from warploom.catalogue.verify import Checked, mutation, verify
from warploom.cli.command import command_words
from warploom.cli.crew import CLUSTER, PROCESSES, crew_of
from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, run, worst
from warploom.cli.inputs import find_input, parse_sizes
from warploom.cli.measured import check_tuned, tune_settings, tuner_of
from warploom.cli.names import list_names
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.own import (
    DTYPE,
    FORM,
    INDEX_BITS,
    LANES,
    STEP,
    Form,
    Text,
    check_fits,
    check_form,
    layout_of,
)
from warploom.emit.language import calling_text
from warploom.emit.parts import with_notes
from warploom.emit.spell import function_name
from warploom.errors import ParseError, UnsupportedError, WarploomError
from warploom.kernel.ir import Kernel
from warploom.kernel.largest import with_largest
from warploom.kernel.wide import index_named
from warploom.pipeline.entry import entry_of
from warploom.pipeline.header import Header, named_header, sketch_header
from warploom.pipeline.subject import tiled
from warploom.runtime.callable import WITHOUT_GPU, Device
from warploom.runtime.compile import usage
from warploom.runtime.measure import gpu_library
from warploom.search.budget import Budget

HELP = """Write, check, time and mutate kernels: those of the catalogue, and of your own sketches.

Without NAME, the catalogue. With NAME alone, the kernel as CUDA C++: how lanes exchange data comes
from a sketch that is filled and verified when the kernel is built, as the header says, unless it
says that there is no fill. Settings that are 0 or auto are chosen by rule, for --size if it is
given: structures go through registers, through shared memory or directly, as it suits. NAME may
also be a sketch of your own, a .swflow file or FILE.py::NAME (a Sketch, a warp sketch, or a
function of sizes, set by --set), whose best fill becomes a kernel; its specification is the goal,
run on numbers, on parts of a tile, whole tiles and several. A device function (by name, or of a
sketch with --as function) is a header to include in a kernel of your own.

\b
--check   specification = simulator = C = OpenCL = compiled PTX on the emulator, on all its sizes;
          what this machine does not have is left out and named
--time    on this machine's GPU, beside a copy of as many bytes
--tune    measure the settings that are left open instead of choosing them by rule, for --size;
          --seconds S at most (30); kept in the store, from which --tune alone reads
--mutate  change index expressions, one at a time; the check must catch all that matter

\b
Examples:
  $ warploom kernel
  $ warploom kernel aos-to-soa --set fields=5 --check
  $ warploom kernel transposition --set m=12 --set n=8 --emit opencl
  $ warploom kernel aos-to-soa --set fields=24 --size n=10000001
  $ warploom kernel aos-sum --time --size n=10000000
  $ warploom kernel aos-to-soa --set fields=7 --size n=10000001 --tune --seconds 20
  $ warploom kernel sums.swflow --check --mutate
  $ warploom kernel load-structures --set fields=5 -o load_structures_5.cuh

Exit status: 0 right, 1 something is wrong (a refuted kernel, a surviving mutant), 2 bad input, 130
Ctrl-C (with --json: what was done so far)."""


def add(app: typer.Typer) -> None:
    app.command("kernel", help=HELP)(kernel)


def kernel(
    context: typer.Context,
    names: list[str] = typer.Argument(None, metavar="[NAME]...", show_default=False),
    setting: list[str] = typer.Option([], "--set", metavar="K=V", help="Set a parameter."),
    text: Text = typer.Option(None, "--emit", help="Print the kernel in this language."),
    form: Form = typer.Option(None, "--as", show_default=False, help=FORM),
    out: Path = typer.Option(None, "-o", metavar="FILE", help="Write the text there instead."),
    check: bool = typer.Option(False, "--check", help="Compare with the specification."),
    time: bool = typer.Option(False, "--time", help="Measure on a GPU."),
    size: list[str] = typer.Option(
        [], metavar="K=V", help="Size to decide open settings for, and to measure."
    ),
    mutate: bool = typer.Option(False, "--mutate", help="Are wrong kernels noticed?"),
    most: int = typer.Option(None, min=1, help="At most so many mutants, drawn at random."),
    lanes: int = typer.Option(None, min=1, help=LANES),
    step: list[str] = typer.Option([], metavar="X=N", help=STEP),
    dtype: str = typer.Option(None, metavar="TYPE", help=DTYPE),
    index_bits: int = typer.Option(32, metavar="32|64", help=INDEX_BITS),
    seconds: float = typer.Option(
        None, min=0, help="Wall time for --tune, or for the search of own sketches."
    ),
    tune: bool = typer.Option(False, "--tune", help="Measure open settings on a GPU; keep them."),
    store: Path = typer.Option(None, metavar="FILE", help="Where (default: the user's own)."),
    no_store: bool = typer.Option(False, "--no-store", help="Keep nothing, and read nothing."),
    processes: int = PROCESSES,
    cluster: str = CLUSTER,
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        if not names:
            with kept_free(json_file):
                records = list_names()
            write_records(json_file, records)
            return Status.FOUND
        if out is not None and len(names) > 1:
            raise ParseError("-o is for one kernel", advice="give one at a time")
        crewed = processes is not None or cluster is not None
        tuner = tuner_of(tune, store, no_store, seconds, checked=check or mutate, crewed=crewed)
        wanted = text is not None or out is not None or not (check or time or mutate)
        target = (out or STDOUT) if wanted else None
        statuses, records = list[Status](), list[dict[str, Any]]()
        for name in names:
            record: dict[str, Any] = {"name": name}
            free = partial(kept_free, json_file, target, so_far=records, begun=record)
            own = Own(lanes, step, dtype, None if tuner else seconds)
            if form is Form.function or (form is None and name in function_entries()):
                check_form(Form.function, index_bits)
                check_tuned(tuner, name)
                asked = Examination(check, mutate, time, most)
                statuses += _function(
                    name, setting, own, asked, text, target, record, free, command_words(context)
                )
                records.append(record)
                continue
            with free():
                entry, given = _entry(name, setting, own, index_bits)
                if time or (tuner and cluster is None):
                    gpu_library()  # without one nothing else needs to be done first
                sizes = named_size(entry, given, parse_sizes(size)) if size else None
                if tuner:
                    with crew_of(processes, cluster) as crew:
                        given = tune_settings(entry, given, sizes, tuner, record, crew)
                decided = entry.settings(given, sizes)
                built = entry.kernel(**decided)
                record |= {"settings": decided, "doc": built.doc}
                written = built if _is_file(name) else with_largest(built)
                noted = with_notes(written, command_words(context))
                said = "" if target is None else emit.emit(noted, _language(text))
            if target is not None:
                write(target, said)
            with free():
                if check:
                    run_on = partial(verify, entry, decided, kernel=built)
                    statuses.append(_check(run_on, built, record))
                if mutate:
                    statuses.append(_mutate(entry, decided, most, record))
                if time:
                    _time(entry, given, sizes, record)
            records.append(record)
        write_records(json_file, records)
        return worst(statuses)

    run(action)


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
            raise ParseError(f"--set '{text[:80]}' is not of the form K=V")
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


@dataclass(frozen=True, slots=True)
class Examination:
    """What is to be done besides writing."""

    check: bool
    mutate: bool
    time: bool
    most: int | None


def _function(
    name: str,
    setting: list[str],
    own: Own,
    asked: Examination,
    text: Text | None,
    target: Path | None,
    record: dict[str, Any],
    free: Callable[[], AbstractContextManager[None]],
    command: str,
) -> list[Status]:
    """A device function, written and examined."""
    if asked.time:
        raise ParseError("a function is not measured", advice="time your own kernel")
    with free():
        header = _header(name, setting, own)
    if target is not None:
        write(target, header.text(_language(text), command))
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
            typer.echo(f"{device:<10} left out: {_first_line(error)}")
            record["check"][device] = {"left_out": error.message}
            continue
        wrong = [each for each in outcomes if each.wrong]
        word = "wrong" if wrong else "agrees"
        typer.echo(f"{device:<10} {word} on {len(outcomes)} sizes")
        for each in wrong[:3]:
            typer.echo(f"  {dict(each.size)}: {each.wrong}")
        record["check"][device] = {"sizes": len(outcomes), "wrong": len(wrong)}
        status = Status.IMPOSSIBLE if wrong else status
    _check_registers(built, record, calls)
    return status


def _check_registers(built: Kernel, record: dict[str, Any], calls: bool) -> None:
    try:
        text = calling_text(built, "cuda") if calls else emit.cuda(built)
        used = usage(text).get(function_name(built, "cuda"))
    except WarploomError as error:
        typer.echo(f"registers  left out: {_first_line(error)}")
        return
    if used is None:
        typer.echo("registers  left out: the compiler does not report them")
        return
    typer.echo(f"registers  {used.registers}, {used.spill_stores + used.stack_bytes} bytes spilled")
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
    typer.echo(
        f"{found['mutants']} mutants, {found['function_changing']} compute something else:"
        f" {found['caught']} caught, {len(report.survivors)} not"
    )
    for each in report.survivors:
        typer.echo(f"  not caught: {each.mutant} ({each.reason})")
    return Status.IMPOSSIBLE if report.survivors else Status.FOUND


def _time(
    entry: Entry, given: dict[str, Parameter], size: dict[str, int] | None, record: dict[str, Any]
) -> None:
    timed = time_on_gpu(entry, given, size)
    settings = " ".join(f"{key}={value}" for key, value in timed.settings.items())
    typer.echo(f"settings   {settings}" if settings else "settings   none")
    typer.echo(
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
