"""`warploom map`: an array expression spread over groups and threads, every candidate a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from warploom import emit
from warploom.array import workload
from warploom.array.code.program import Compiled
from warploom.array.joint.model import MOST_TEMPORARY, JointModel
from warploom.array.language.ir import Program
from warploom.array.language.show import show_program
from warploom.array.recipe import convolution, matmul, stencil
from warploom.choices import TIMED
from warploom.cli.commands.map import MapOptions, On
from warploom.cli.crew import crew_of
from warploom.cli.declare import Context
from warploom.cli.guard import Status, check_meant, is_whole, run, status_of
from warploom.cli.inputs import parse_sizes, python_value
from warploom.cli.keeping import store_of
from warploom.cli.map_view import candidate_record, print_candidate, show_tuned, word_of
from warploom.cli.names import other_command, other_kind
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import OnStates, progress
from warploom.cli.remembered import Answer, answer_of
from warploom.cli.say import echo
from warploom.cli.seconds import budget_of
from warploom.errors import CheckError, ParseError, one_of
from warploom.machine.record import machine_named
from warploom.pipeline.mapped import (
    Choice,
    FarRig,
    Rig,
    blocked_choices,
    choice_of,
    make,
    tune_choices,
)
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Outcome
from warploom.search.outcome_json import outcome_record
from warploom.search.storage.store import Store
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm

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


@dataclass(slots=True)
class Made:
    """What comes of one call: `head` is known of every candidate, and is the record of none."""

    head: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    compiled: list[Compiled] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Helped:
    """Who measures, and where that is kept."""

    crew: Farm | Cluster | None
    store: Store | None
    report: OnStates | None
    budget: Budget


def map_(asked: MapOptions, context: Context) -> None:
    run(partial(_mapped, asked, context))


def _mapped(asked: MapOptions, context: Context) -> Status:
    _check_asked(asked, context)
    answer, kept = answer_of(context.obj), store_of(asked.store, asked.no_store)
    made = Made({"name": asked.expr, "machine": asked.machine})
    text_to = asked.out if asked.text is not None else None
    with (
        kept_free(asked.json_file, text_to, so_far=made.records, begun=made.head),
        crew_of(asked.processes, asked.cluster) as crew,
    ):
        status = _worked(asked, context, answer, made, kept, crew)
        texts = []
        if asked.text is not None and made.compiled:
            texts = [emit.emit(each, asked.text.value) for each in made.compiled[0].kernels]
    if texts:
        write(asked.out, "\n".join(texts), answer)
    write_records(asked.json_file, made.records or [made.head], answer=answer)
    return status


def _worked(
    asked: MapOptions,
    context: Context,
    answer: Answer,
    made: Made,
    store: Store | None,
    crew: Farm | Cluster | None,
) -> Status:
    budget = budget_of(asked.seconds)
    with progress(asked.expr) as report, budget.interruptible():
        if report is not None:
            report("mappings", 0)
        if asked.blocked:
            given, found = _blocked(asked, context)
        else:
            sizes, model = _model(asked, answer, budget)
            if asked.count:
                outcome, record = _counted(model, budget)
                answer.whole = is_whole(outcome)
                made.records.append(record)
                return status_of(outcome)
            given = {"program": show_program(model.program), "sizes": sizes,
                     "plain": asked.plain, "fusion": asked.fusion.value}  # fmt: skip
            found = _choices(model, budget, asked)
        answer.whole = not asked.tune and is_whole(found)
        if not isinstance(found, Found):
            echo(f"{word_of(found)}: no candidate of '{asked.expr}' on {asked.machine}")
            made.head.update(outcome_record(found))
            return status_of(found)
        choices, status = found.answer, status_of(found)
        if asked.tune:
            helped = Helped(crew, store, report, budget)
            choices, status = _tuned(asked, given, choices, helped, made.head)
    _show_all(made, choices, crew, budget)
    answer.whole = answer.whole and len(made.compiled) == len(choices)
    return status


def _blocked(asked: MapOptions, context: Context) -> tuple[dict[str, Any], Outcome[list[Choice]]]:
    """A layer in products of blocks, and what names the question."""
    check_meant(context, ("fusion",), "with --blocked")
    layer = _blocked_layer(asked)
    found = blocked_choices(workload.VGG_16[layer], asked.machine, asked.memory, _wanted(asked))
    return {"layer": layer, "blocked": True}, found


def _wanted(asked: MapOptions) -> int:
    """How many candidates."""
    return asked.sample or (asked.candidates if asked.tune else 1)


def _model(asked: MapOptions, answer: Answer, budget: Budget) -> tuple[dict[str, int], JointModel]:
    with budget.governing():  # rewriting to tiles takes a while, too
        sizes = given_sizes(asked.expr, asked.layer, asked.size)
        program = find_program(asked.expr, asked.plain)
    answer.made(program)
    memory = MOST_TEMPORARY if asked.memory is None else asked.memory
    with budget.governing():
        own = machine_named(asked.machine)
        return sizes, JointModel(program, sizes, own, asked.fusion.value, memory=memory)


def _tuned(
    asked: MapOptions,
    given: Mapping[str, Any],
    choices: list[Choice],
    helped: Helped,
    head: dict[str, Any],
) -> tuple[list[Choice], Status]:
    """The fastest, if one was measured in time."""
    make(choices[0])  # what no candidate can do is an error, and no search
    content = {**given, "machine": asked.machine}
    report = helped.report
    outcome = tune_choices(
        asked.expr, content, choices, _rig(asked.on, helped.crew, content),
        budget=helped.budget, store=helped.store, pool=helped.crew,
        on_trial=report and (lambda what, done, of: report(f"{what}, {of}", done)),
    )  # fmt: skip
    head["tune"] = show_tuned(outcome, helped.store)
    best = [outcome.answer.best.candidate] if isinstance(outcome, Found) else []
    return best, status_of(outcome)


def _choices(model: JointModel, budget: Budget, asked: MapOptions) -> Outcome[list[Choice]]:
    if asked.first:
        soon = model.first(asked.seed, budget)
        return Found([choice_of(model, soon.answer)], True) if isinstance(soon, Found) else soon
    wanted = _wanted(asked)
    outcome = (
        model.sample(wanted, asked.seed, budget) if asked.sample is not None
        else model.best(wanted, max(asked.among, wanted), asked.seed, budget)
    )  # fmt: skip
    if not isinstance(outcome, Found):
        return outcome
    return Found([choice_of(model, each) for each in outcome.answer], outcome.complete,
                 outcome.stopped)  # fmt: skip


def _blocked_layer(asked: MapOptions) -> str:
    """The layer, if nothing beside it is asked for that goes another way."""
    if asked.expr != "conv" or asked.layer is None or asked.size:
        raise CheckError("--blocked is for a layer", advice="conv --layer conv4_2, and no --size")
    if asked.count or asked.plain or asked.first or asked.sample is not None:
        raise ParseError("--blocked goes with --best and --tune alone")
    given_sizes(asked.expr, asked.layer, [])
    return asked.layer


def _check_asked(asked: MapOptions, context: Context) -> None:
    """One question, and nothing beside it that is of another."""
    sample = asked.sample is not None
    if asked.count + sample + asked.best + asked.tune + asked.first > 1:
        raise ParseError(
            "--count, --first, --sample, --best and --tune are five questions", advice="ask one"
        )
    if asked.count:
        unused = ("among", "seed", "text", "out", "processes", "cluster")
        check_meant(context, unused, "with --count")
    if sample or asked.first:
        check_meant(context, ("among",), f"with {'--first' if asked.first else '--sample'}")
    if not asked.tune:
        check_meant(context, ("on", "candidates"), "without --tune")


def find_program(text: str, plain: bool) -> Program:
    """One of the known expressions, in tiles unless it is to be left alone, or a user's own."""
    if "::" in text:
        if plain:
            raise ParseError("what is your own is not rewritten", advice="leave --plain out")
        found = python_value(text, {}, (Program,))
        if isinstance(found, Program):
            return found
        raise CheckError(
            f"{text} is a {type(found).__name__}",
            advice=other_kind(found)
            or "it should be a program of warploom.array.build, or a function that returns one",
        )
    if text not in NAMES:
        raise ParseError(
            f"no expression is called '{text[:80]}'",
            advice=other_command(text) or one_of(text, [*NAMES, "FILE.py::NAME"]),
        )
    program = NAMES[text]()
    if plain and text not in RECIPES:
        raise ParseError(f"'{text}' is not rewritten", advice="leave --plain out")
    return program if plain or text not in RECIPES else RECIPES[text](program)


def given_sizes(expr: str, layer: str | None, size: list[str]) -> dict[str, int]:
    given = parse_sizes(size, digits=10)
    for name, value in given.items():
        if not 1 <= value < 1 << 31:
            raise CheckError(f"the size {name} is {value}", advice="sizes are from 1 to 2**31 - 1")
    if layer is None:
        return given
    if expr != "conv":
        raise CheckError(f"{expr} has no layers", advice="--layer is for conv")
    if layer not in workload.VGG_16:
        raise ParseError(
            f"no layer is called '{layer[:80]}'", advice=one_of(layer, workload.VGG_16)
        )
    return {**workload.VGG_16[layer].sizes(), **given}


def _counted(model: JointModel, budget: Budget) -> tuple[Outcome[Any], dict[str, Any]]:
    outcome = model.mappings(budget)
    record: dict[str, Any] = {"name": model.program.name, "machine": model.machine.name}
    if isinstance(outcome, Found):
        echo(f"{outcome.answer} mappings, {model.tilings} tilings that have room by themselves")
        record |= {"mappings": outcome.answer, "tilings": model.tilings}
    else:
        echo(f"{word_of(outcome)}: no mapping of '{model.program.name}'")
        record |= outcome_record(outcome)
    return outcome, record


def _rig(on: On, crew: Farm | Cluster | None, content: Any) -> Rig | FarRig:
    if on.value == "cuda" and isinstance(crew, Cluster) and crew.measures:
        return FarRig(crew, content)
    return Rig(next(each for each in TIMED if each == on.value))


def _show_all(
    made: Made, choices: list[Choice], crew: Farm | Cluster | None, budget: Budget
) -> None:
    """The kernels of as many as there is time for, one at least."""
    all_made = map(make, choices) if crew is None else crew.map(make, choices)
    for choice, compiled in zip(choices, all_made, strict=True):
        record = {**made.head, **candidate_record(choice, compiled)}
        print_candidate(record)
        made.records.append(record)
        made.compiled.append(compiled)
        done = len(made.compiled)
        if done < len(choices) and budget.is_spent():
            echo(f"{len(choices) - done} more were found; there was no time to make them")
            break
