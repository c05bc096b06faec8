"""`warploom map`: an array expression spread over groups and threads, every candidate a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from warploom import emit
from warploom.array.code.program import Compiled
from warploom.array.joint.model import MOST_TEMPORARY, JointModel
from warploom.array.language.ir import Program
from warploom.array.language.show import show_program
from warploom.choices import TIMED
from warploom.cli.command import command_words
from warploom.cli.commands.map import Map, On
from warploom.cli.crew import crew_of
from warploom.cli.declare import Context
from warploom.cli.guard import Status, check_meant, is_whole, run, status_of
from warploom.cli.inputs import parse_sizes, python_value
from warploom.cli.keeping import store_of
from warploom.cli.layout_input import known_name
from warploom.cli.map_view import print_candidate, show_tuned, word_of
from warploom.cli.names import other_command, other_kind
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import OnStates, progress
from warploom.cli.remembered import Answer, answer_of
from warploom.cli.say import echo
from warploom.cli.seconds import budget_of
from warploom.emit.parts import with_names, with_notes
from warploom.errors import CheckError, ParseError
from warploom.machine.record import Machine, machine_named
from warploom.pipeline.mapped import (
    Choice,
    FarRig,
    Rig,
    described,
    make,
    tune_choices,
)
from warploom.pipeline.mapping import candidate_record, choices_for
from warploom.pipeline.named_program import named_program, sizes_of_layer
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Outcome
from warploom.search.outcome_json import outcome_record
from warploom.search.storage.store import Store
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm


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


def map_(asked: Map, context: Context) -> None:
    run(partial(_mapped, asked, context))


def _mapped(asked: Map, context: Context) -> Status:
    _check_asked(asked, context)
    answer, kept = answer_of(context.obj), store_of(asked.store, asked.no_store)
    known_name(asked.text and asked.text.value, asked.name)
    made = Made({"name": asked.expr, "machine": asked.machine})
    text_to = asked.out if asked.text is not None else None
    with (
        kept_free(asked.json_file, text_to, so_far=made.records, begun=made.head),
        crew_of(asked.processes, asked.cluster) as crew,
    ):
        status = _worked(asked, answer, made, kept, crew)
        texts = []
        if asked.text is not None and made.compiled:
            command = command_words(asked, context)
            texts = [
                emit.emit(with_notes(each, command), asked.text.value)
                for each in with_names(described(made.compiled[0], asked.tune), asked.name)
            ]
    if texts:
        write(asked.out, "\n".join(texts), answer)
    write_records(asked.json_file, made.records or [made.head], answer=answer)
    return status


def _worked(
    asked: Map,
    answer: Answer,
    made: Made,
    store: Store | None,
    crew: Farm | Cluster | None,
) -> Status:
    budget = budget_of(asked.seconds)
    with progress(asked.expr) as report, budget.interruptible():
        if report is not None:
            report("mappings", 0)
        sizes, model = _model(asked, answer, budget)
        if asked.count:
            outcome, record = _counted(model, budget)
            answer.whole = is_whole(outcome)
            made.records.append(record)
            return status_of(outcome)
        given = {"program": show_program(model.program), "sizes": sizes,
                 "plain": asked.plain, "fusion": asked.fusion.value}  # fmt: skip
        found = choices_for(
            model, budget, asked.seed, asked.first, asked.sample, _wanted(asked), asked.among
        )
        answer.whole = not asked.tune and is_whole(found)
        if not isinstance(found, Found):
            echo(f"{word_of(found)}: no candidate of '{asked.expr}' on {asked.machine}")
            made.head.update(outcome_record(found))
            return status_of(found)
        choices, status = found.answer, status_of(found)
        if asked.tune:
            helped = Helped(crew, store, report, budget)
            choices, status = _tuned(asked, given, choices, helped, made.head)
    _show_all(made, choices, crew, budget, machine_named(asked.machine))
    answer.whole = answer.whole and len(made.compiled) == len(choices)
    return status


def _wanted(asked: Map) -> int:
    """How many candidates."""
    return asked.sample or (asked.candidates if asked.tune else 1)


def _model(asked: Map, answer: Answer, budget: Budget) -> tuple[dict[str, int], JointModel]:
    with budget.governing():  # rewriting to tiles takes a while, too
        sizes = given_sizes(asked.expr, asked.layer, asked.size)
        program = find_program(asked.expr, asked.plain)
    answer.made(program)
    memory = MOST_TEMPORARY if asked.memory is None else asked.memory
    with budget.governing():
        own = machine_named(asked.machine)
        return sizes, JointModel(program, sizes, own, asked.fusion.value, memory=memory)


def _tuned(
    asked: Map,
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


def _check_asked(asked: Map, context: Context) -> None:
    """One question, and nothing beside it that is of another."""
    if asked.text is None:
        check_meant(context, ("name",), "without --emit")
    sample = asked.sample is not None
    if asked.count + sample + asked.best + asked.tune + asked.first > 1:
        raise ParseError(
            "--count, --first, --sample, --best and --tune exclude each other",
            advice="give one of them",
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
    if "::" not in text:
        return named_program(text, plain, other_command)
    if plain:
        raise ParseError("your own program is never rewritten", advice="leave --plain out")
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
    made: Made,
    choices: list[Choice],
    crew: Farm | Cluster | None,
    budget: Budget,
    machine: Machine,
) -> None:
    """The kernels of as many as there is time for, one at least."""
    all_made = map(make, choices) if crew is None else crew.map(make, choices)
    for choice, compiled in zip(choices, all_made, strict=True):
        record = {**made.head, **candidate_record(choice, compiled, machine)}
        print_candidate(record)
        made.records.append(record)
        made.compiled.append(compiled)
        done = len(made.compiled)
        if done < len(choices) and budget.is_spent():
            echo(f"{len(choices) - done} more were found; there was no time to make them")
            break
