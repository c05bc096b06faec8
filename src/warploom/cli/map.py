"""`warploom map`: an array expression spread over groups and threads, every candidate a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from warploom import emit
from warploom.array import workload
from warploom.array.code.program import Candidate, Compiled, compile_candidate
from warploom.array.ir import Program
from warploom.array.joint.model import JointModel
from warploom.array.mapping.constraint import BY_THREAD
from warploom.array.recipe import convolution, matmul, stencil
from warploom.cli.guard import Status, check_meant, run
from warploom.cli.inputs import parse_sizes, python_value
from warploom.cli.output import STDOUT, kept_free, write, write_records
from warploom.cli.own import Text
from warploom.cli.progress import progress
from warploom.errors import CheckError, ParseError
from warploom.kernel.ir import Registers, Shared, walk
from warploom.kernel.pool import pool_bytes
from warploom.machine.record import machine_named
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome

HELP = """Map an array expression: which loop runs on groups, threads or vector lanes, with which
tile sizes, memories and barriers. Every candidate that comes out compiles, synchronises and fits.

EXPR is total, dot, matvec, matmul, stencil-1d, stencil-2d, conv, or FILE.py::NAME (a program of
docs/arrays.md, or a function that returns one). matmul, stencil-2d and conv are first rewritten to
tiles; --plain leaves them as they are. Sizes of inputs are given, tile sizes are found, unless they
are given too.

\b
--count      how many mappings and tilings there are, with the fusion rule of docs/arrays.md
--sample N   N candidates, all equally likely
--best       the most promising of many, by a model: nothing is measured (the default)

\b
Examples:
  $ warploom map matmul --size m=64,n=64,k=32 --emit cuda
  $ warploom map dot --size n=100 --count
  $ warploom map conv --layer conv4_2 --machine mali --sample 3

Exit status: 0 found, 1 impossible (no mapping, or no room on the machine), 2 bad input,
3 undecided (the budget was spent first)."""

NAMES: Mapping[str, Callable[[], Program]] = {
    "total": workload.total,
    "dot": workload.dot,
    "matvec": workload.matvec,
    "matmul": workload.matmul,
    "stencil-1d": workload.stencil_1d,
    "stencil-2d": workload.stencil_2d,
    "conv": workload.convolution,
}
RECIPES: Mapping[str, Callable[[Program], Program]] = {
    "matmul": matmul.mid_level,
    "stencil-2d": stencil.mid_level,
    "conv": convolution.mid_level,
}


def add(app: typer.Typer) -> None:
    app.command("map", help=HELP)(map_)


def map_(
    context: typer.Context,
    expr: str = typer.Argument(..., metavar="EXPR"),
    size: list[str] = typer.Option([], metavar="K=V", help="Sizes of inputs, and of tiles."),
    layer: str = typer.Option(None, metavar="NAME", help="A layer of VGG-16, for conv."),
    plain: bool = typer.Option(False, "--plain", help="Do not rewrite to tiles first."),
    machine: str = typer.Option("cuda", metavar="NAME", help="Whose limits hold."),
    count: bool = typer.Option(False, "--count", help="Count mappings and tilings, and stop."),
    sample: int = typer.Option(None, min=1, metavar="N", help="So many candidates."),
    best: bool = typer.Option(False, "--best", help="The most promising candidate."),
    among: int = typer.Option(2000, min=1, help="Candidates that --best looks at."),
    seconds: float = typer.Option(None, min=0, help="Wall time of the search."),
    seed: int = typer.Option(0, min=0, help="Another seed draws others."),
    text: Text = typer.Option(None, "--emit", help="Print the kernels of the first one."),
    out: Path = typer.Option(STDOUT, "-o", metavar="FILE", help="Write the text there instead."),
    json_file: Path = typer.Option(
        None, "--json", metavar="FILE", help="Write a list of records; - is standard output."
    ),
) -> None:
    def action() -> Status:
        if count + best + (sample is not None) > 1:
            raise ParseError("--count, --sample and --best are three questions", advice="ask one")
        if count:
            check_meant(context, ("among", "seed", "text", "out"), "with --count")
        elif sample is not None:
            check_meant(context, ("among",), "with --sample")
        with kept_free(json_file, out if text is not None else None):
            sizes = given_sizes(expr, layer, size)
            program = find_program(expr, plain)
            model = JointModel(program, sizes, machine_named(machine))
            budget = Budget(seconds)
            with progress(program.name) as report, budget.interruptible():
                if report is not None:
                    report("mappings", 0)
                outcome = (
                    _counted(model, budget) if count
                    else model.sample(sample, seed, budget) if sample is not None
                    else model.best(1, among, seed, budget)
                )  # fmt: skip
            records, made = _shown(model, outcome, count)
        if text is not None and made:
            write(out, "\n".join(emit.emit(kernel, text.value) for kernel in made[0].kernels))
        write_records(json_file, records)
        return _status(outcome)

    run(action)


def find_program(text: str, plain: bool) -> Program:
    """One of the known expressions, in tiles unless it is to be left alone, or a user's own."""
    if "::" in text:
        found = python_value(text, {})
        if isinstance(found, Program):
            return found
        raise CheckError(
            f"{text} is a {type(found).__name__}",
            advice="it should be a program of warploom.array.build, or a function that returns one",
        )
    if text not in NAMES:
        raise ParseError(f"no expression is called '{text[:80]}'", advice=f"known are {_known()}")
    program = NAMES[text]()
    return program if plain or text not in RECIPES else RECIPES[text](program)


def _known() -> str:
    return ", ".join(NAMES)


def given_sizes(expr: str, layer: str | None, size: list[str]) -> dict[str, int]:
    given = parse_sizes(size)
    for name, value in given.items():
        if not 1 <= value < 1 << 31:
            raise CheckError(f"the size {name} is {value}", advice="sizes are from 1 to 2**31 - 1")
    if layer is None:
        return given
    if expr != "conv":
        raise CheckError(f"{expr} has no layers", advice="--layer is for conv")
    if layer not in workload.VGG_16:
        known = ", ".join(workload.VGG_16)
        raise ParseError(f"no layer is called '{layer[:80]}'", advice=f"known are {known}")
    return {**workload.VGG_16[layer].sizes(), **given}


def _counted(model: JointModel, budget: Budget) -> Outcome[int]:
    return model.mappings(budget)


# -- what is shown ---------------------------------------------------------------------------------


def _shown(
    model: JointModel, outcome: Outcome[Any], count: bool
) -> tuple[list[dict[str, Any]], list[Compiled]]:
    head = {"name": model.program.name, "machine": model.machine.name}
    if not isinstance(outcome, Found):
        word = "impossible" if isinstance(outcome, Impossible) else "undecided"
        typer.echo(f"{word}: no candidate of '{model.program.name}' on {model.machine.name}")
        return [{**head, "outcome": word}], []
    if count:
        typer.echo(
            f"{outcome.answer} mappings, {model.tilings} tilings that have room by themselves"
        )
        return [{**head, "mappings": outcome.answer, "tilings": model.tilings}], []
    records, made = [], []
    for candidate in outcome.answer:
        compiled = compile_candidate(model.plan, candidate)
        record = {**head, **_record(model, candidate, compiled)}
        _print(record)
        records.append(record)
        made.append(compiled)
    return records, made


def _record(model: JointModel, candidate: Candidate, compiled: Compiled) -> dict[str, Any]:
    kernels = []
    for spread, kernel in zip(candidate.spreads, compiled.kernels, strict=True):
        shared = [each for each in kernel.body if isinstance(each, Shared)]
        words = [each.size or 1 for each in walk(kernel.body) if isinstance(each, Registers)]
        kernels.append({
            "name": kernel.name,
            "runs": {str(each): run_ for each, run_ in spread.runs.items()},
            "group": list(kernel.block),
            "registers": sum(words),
            "shared_bytes": pool_bytes(shared),
        })  # fmt: skip
    open_ = {name for axis in model.axes for name in axis.names}
    return {
        "sizes": dict(candidate.sizes),
        "tiles": {name: candidate.sizes[name] for name in sorted(open_)},
        "kernels": kernels,
        "temporary_bytes": compiled.temporary_bytes,
    }


def _print(record: Mapping[str, Any]) -> None:
    tiles = " ".join(f"{name}={value}" for name, value in record["tiles"].items())
    typer.echo(f"tiles: {tiles or 'none'}")
    for kernel in record["kernels"]:
        parallel = {k: v for k, v in kernel["runs"].items() if v not in BY_THREAD}
        runs = " ".join(f"{number}:{run_}" for number, run_ in parallel.items())
        typer.echo(
            f"  {kernel['name']}: {runs or 'no map runs in parallel'}; "
            f"{'x'.join(map(str, kernel['group']))} threads, {kernel['registers']} registers, "
            f"{kernel['shared_bytes']} bytes shared"
        )
    if record["temporary_bytes"]:
        typer.echo(f"  {record['temporary_bytes']} bytes between kernels")


def _status(outcome: Outcome[Any]) -> Status:
    if isinstance(outcome, Found):
        return Status.FOUND
    return Status.IMPOSSIBLE if isinstance(outcome, Impossible) else Status.UNDECIDED
