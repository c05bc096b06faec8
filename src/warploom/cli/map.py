"""`warploom map`: an array expression spread over groups and threads, every candidate a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from warploom import emit
from warploom.array import workload
from warploom.array.code.program import Compiled
from warploom.array.joint.model import MOST_TEMPORARY, JointModel
from warploom.array.language.ir import Program
from warploom.array.language.show import show_program
from warploom.cli.crew import CLUSTER, PROCESSES, crew_of
from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, check_meant, is_whole, run, status_of
from warploom.cli.inputs import parse_sizes, python_value
from warploom.cli.keeping import NO_STORE, STORE, store_of
from warploom.cli.map_view import print_candidate, show_tuned, word_of
from warploom.cli.names import other_command, other_kind
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.own import Text
from warploom.cli.progress import progress
from warploom.cli.remembered import Answer, answer_of
from warploom.cli.seconds import budget_of
from warploom.errors import CheckError, ParseError
from warploom.machine.record import machine_named
from warploom.pipeline.mapped import (
    Choice,
    FarRig,
    Rig,
    blocked_choices,
    make,
    tune_choices,
)
from warploom.pipeline.mapping import candidate_record, check_blocked, choices_for
from warploom.pipeline.named_program import named_program, sizes_of_layer
from warploom.runtime.callable import TIMED
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Outcome
from warploom.search.outcome_json import outcome_record
from warploom.search.storage.store import Store
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm

HELP = """Map an array expression: which loop runs on groups, threads or vector lanes, with which
tile sizes, memories and barriers. Every candidate that comes out compiles, synchronises and fits.

EXPR is total, dot, matvec, matmul, stencil-1d, stencil-2d, conv, or FILE.py::NAME (a program of
docs/arrays.md, or a function that returns one). matmul, stencil-2d and conv are first rewritten to
tiles; --plain leaves them as they are, and --blocked (conv with --layer) takes products in blocks,
as a GPU is good at them. Sizes of inputs are given, tile sizes are found, unless they are given.

\b
--count      how many mappings and tilings there are, with the fusion rule of docs/arrays.md
--first      some candidate, soon: mappings are not all listed for it
--sample N   N candidates, all equally likely
--best       the most promising of many, by a model: nothing is measured (the default)
--tune       the most promising --candidates N are measured, kept in a store and read from there;
             Ctrl-C or --seconds ends it with what was found so far; --processes and --cluster
             make the kernels, and workers with the label GPU measure them
--fusion F   loops that can be one are one: as meant (intended, the default), as the published
             code has it (coded), for what is in registers (private), or as it comes (none)
--memory B   at most B bytes of global memory beside inputs and output, so that with --blocked
             and 0 no sum is split over groups

\b
Examples:
  $ warploom map matmul --size m=64,n=64,k=32 --emit cuda
  $ warploom map dot --size n=100 --count
  $ warploom map conv --layer conv4_2 --machine mali --sample 3
  $ warploom map conv --layer conv5_1 --blocked --machine h200 --memory 1000000
  $ warploom map matvec --size m=256,n=64 --tune --on opencl --seconds 20

The same command again answers from the store.

Exit status: 0 found, 1 impossible (no mapping, or no room on the machine), 2 bad input,
3 undecided (the budget was spent first), 130 Ctrl-C, which keeps what was found."""


class Fused(StrEnum):
    intended = "intended"
    coded = "coded"
    private = "private"
    none = "none"


On = StrEnum("On", list(TIMED))  # type: ignore[misc]  # the one list of devices


def add(app: typer.Typer) -> None:
    app.command("map", help=HELP)(map_)


def map_(
    context: typer.Context,
    expr: str = typer.Argument(..., metavar="EXPR"),
    size: list[str] = typer.Option([], metavar="K=V", help="Sizes of inputs, and of tiles."),
    layer: str = typer.Option(None, metavar="NAME", help="A layer of VGG-16, for conv."),
    plain: bool = typer.Option(False, "--plain", help="Do not rewrite to tiles first."),
    blocked: bool = typer.Option(
        False, "--blocked", help="conv as products in blocks, mapped by hand."
    ),
    machine: str = typer.Option("cuda", metavar="NAME|FILE", help="Whose limits hold."),
    memory: int = typer.Option(
        None, min=0, metavar="B", help="Global memory beside inputs and output."
    ),
    fusion: Fused = typer.Option(Fused.intended, help="Which loops have to be one.", metavar="F"),
    count: bool = typer.Option(False, "--count", help="Count mappings and tilings, and stop."),
    first: bool = typer.Option(False, "--first", help="Some candidate, soon."),
    sample: int = typer.Option(None, min=1, metavar="N", help="So many candidates."),
    best: bool = typer.Option(False, "--best", help="The most promising candidate."),
    among: int = typer.Option(
        2000, min=1, help="Candidates that --best and --tune look at, at least."
    ),
    tune: bool = typer.Option(False, "--tune", help="Measure the most promising candidates."),
    on: On = typer.Option("cuda", help="Where --tune runs them."),
    candidates: int = typer.Option(24, min=1, help="How many --tune measures."),
    store: Path = STORE,
    no_store: bool = NO_STORE,
    processes: int = PROCESSES,
    cluster: str = CLUSTER,
    seconds: float = typer.Option(None, min=0, help="Wall time: rewriting, and the search."),
    seed: int = typer.Option(0, min=0, help="Another seed draws others."),
    text: Text = typer.Option(None, "--emit", help="Print the kernels of the first one."),
    out: Path = typer.Option(STDOUT, "-o", metavar="FILE", help="Write the text there instead."),
    json_file: Path = JSON,
) -> None:
    head: dict[str, Any] = {"name": expr, "machine": machine}
    records: list[dict[str, Any]] = []
    made: list[Compiled] = []

    def action() -> Status:
        _check_asked(context, count, sample is not None, best, tune, first)
        answer, kept = answer_of(context.obj), store_of(store, no_store)
        with (
            kept_free(json_file, out if text is not None else None, so_far=records, begun=head),
            crew_of(processes, cluster) as crew,
        ):
            status = worked(answer, kept, crew)
            wanted = made[0].kernels if text is not None and made else ()
            texts = [emit.emit(kernel, text.value) for kernel in wanted if text is not None]
        if texts:
            write(out, "\n".join(texts), answer)
        write_records(json_file, records or [head], answer=answer)
        return status

    def worked(answer: Answer, kept: Store | None, crew: Farm | Cluster | None) -> Status:
        budget = budget_of(seconds)
        wanted = sample or (candidates if tune else 1)
        with progress(expr) as report, budget.interruptible():
            if report is not None:
                report("mappings", 0)
            if blocked:
                check_meant(context, ("fusion",), "with --blocked")
                given = {"layer": layer, "blocked": True}
                other = count or plain or first or sample is not None
                check_blocked(expr, layer, bool(size), other)
                found = blocked_choices(workload.VGG_16[layer], machine, memory, wanted)
            else:
                with budget.governing():  # rewriting to tiles takes a while, too
                    sizes, program = given_sizes(expr, layer, size), find_program(expr, plain)
                answer.made(program)
                with budget.governing():
                    model = JointModel(
                        program, sizes, machine_named(machine), fusion.value,
                        memory=MOST_TEMPORARY if memory is None else memory,
                    )  # fmt: skip
                if count:
                    outcome, record = _counted(model, budget)
                    answer.whole = is_whole(outcome)
                    records.append(record)
                    return status_of(outcome)
                given = {"program": show_program(model.program), "sizes": sizes,
                         "plain": plain, "fusion": fusion.value}  # fmt: skip
                found = choices_for(model, budget, seed, first, sample, wanted, among)
            answer.whole = not tune and is_whole(found)
            if not isinstance(found, Found):
                typer.echo(f"{word_of(found)}: no candidate of '{expr}' on {machine}")
                head.update(outcome_record(found))
                return status_of(found)
            choices = found.answer
            outcome = found
            if tune:
                make(choices[0])  # what no candidate can do is an error, and no search
                content = {**given, "machine": machine}
                outcome = tune_choices(
                    expr, content, choices, _rig(on, crew, content),
                    budget=budget, store=kept, pool=crew,
                    on_trial=report and (lambda what, done, of: report(f"{what}, {of}", done)),
                )  # fmt: skip
                head["tune"] = show_tuned(outcome, kept)
                choices = [outcome.answer.best.candidate] if isinstance(outcome, Found) else []
        _show_all(head, choices, crew, records, made, budget)
        answer.whole = answer.whole and len(made) == len(choices)
        return status_of(outcome)

    run(action)


def _check_asked(
    context: typer.Context, count: bool, sample: bool, best: bool, tune: bool, first: bool
) -> None:
    """One question, and nothing beside it that is of another."""
    if count + sample + best + tune + first > 1:
        raise ParseError(
            "--count, --first, --sample, --best and --tune are five questions", advice="ask one"
        )
    if count:
        unused = ("among", "seed", "text", "out", "processes", "cluster")
        check_meant(context, unused, "with --count")
    if sample or first:
        check_meant(context, ("among",), f"with {'--first' if first else '--sample'}")
    if not tune:
        check_meant(context, ("on", "candidates"), "without --tune")


def find_program(text: str, plain: bool) -> Program:
    """One of the known expressions, in tiles unless it is to be left alone, or a user's own."""
    if "::" not in text:
        return named_program(text, plain, other_command)
    if plain:
        raise ParseError("what is your own is not rewritten", advice="leave --plain out")
    found = python_value(text, {}, (Program,))
    if isinstance(found, Program):
        return found
    raise CheckError(
        f"{text} is a {type(found).__name__}",
        advice=other_kind(found)
        or "it should be a program of warploom.arrays, or a function that returns one",
    )


def given_sizes(expr: str, layer: str | None, size: list[str]) -> dict[str, int]:
    return sizes_of_layer(expr, layer, parse_sizes(size, digits=10))


def _counted(model: JointModel, budget: Budget) -> tuple[Outcome[Any], dict[str, Any]]:
    outcome = model.mappings(budget)
    record: dict[str, Any] = {"name": model.program.name, "machine": model.machine.name}
    if isinstance(outcome, Found):
        typer.echo(
            f"{outcome.answer} mappings, {model.tilings} tilings that have room by themselves"
        )
        record |= {"mappings": outcome.answer, "tilings": model.tilings}
    else:
        typer.echo(f"{word_of(outcome)}: no mapping of '{model.program.name}'")
        record |= outcome_record(outcome)
    return outcome, record


def _rig(on: On, crew: Farm | Cluster | None, content: Any) -> Rig | FarRig:
    if on.value == "cuda" and isinstance(crew, Cluster) and crew.measures:
        return FarRig(crew, content)
    return Rig(next(each for each in TIMED if each == on.value))


def _show_all(
    head: Mapping[str, Any],
    choices: list[Choice],
    crew: Farm | Cluster | None,
    records: list[dict[str, Any]],
    made: list[Compiled],
    budget: Budget,
) -> None:
    """The kernels of as many as there is time for, one at least."""
    all_made = map(make, choices) if crew is None else crew.map(make, choices)
    for choice, compiled in zip(choices, all_made, strict=True):
        record = {**head, **candidate_record(choice, compiled)}
        print_candidate(record)
        records.append(record)
        made.append(compiled)
        if len(made) < len(choices) and budget.is_spent():
            typer.echo(
                f"{len(choices) - len(made)} more were found; there was no time to make them"
            )
            break
