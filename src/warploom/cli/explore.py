"""`warploom explore`: all implementations of a loop nest, bounded, counted, searched, written."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from warploom import emit
from warploom.cli.command import command_words
from warploom.cli.commands.explore import Engine, Explore
from warploom.cli.crew import crew_of
from warploom.cli.declare import Context
from warploom.cli.guard import Status, check_meant, is_whole, run, status_of
from warploom.cli.inputs import parse_parameters, python_value
from warploom.cli.keeping import store_of
from warploom.cli.layout_input import known_name
from warploom.cli.names import other_command, other_kind
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.remembered import Answer, answer_of
from warploom.cli.say import echo
from warploom.cli.seconds import budget_of
from warploom.emit.parts import with_names, with_notes
from warploom.errors import ParseError
from warploom.loopnest.build import LoopNest
from warploom.loopnest.ir import Program
from warploom.loopnest.schedule import bound_words, resource_words
from warploom.loopnest.show import show
from warploom.machine.record import machine_named
from warploom.machine.times import time_words
from warploom.pipeline.drawn import packed
from warploom.pipeline.exploring import EVALUATIONS, bench_for, quick_for
from warploom.pipeline.helped import HelpedNest
from warploom.pipeline.kept import Kept
from warploom.pipeline.modelled import modelled
from warploom.pipeline.named_nest import check_number, named_nest, own_nest, target_for
from warploom.pipeline.nest import FREE, Explored, Nest, recipe_of
from warploom.pipeline.raced import WHOLE, Wanted, raced
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import First, check_alone, nest_for, spaces_asked, strategies_of
from warploom.pipeline.timed_nest import Timer
from warploom.pipeline.winners import winner_of
from warploom.runtime.quick import Quick
from warploom.runtime.rig import Bench, Built
from warploom.search.branching.estimate import Estimate
from warploom.search.budget import Budget
from warploom.search.engine import Progress
from warploom.search.outcome import Impossible
from warploom.search.outcome_json import Record
from warploom.search.storage.store import Store
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm


def explore(asked: Explore, context: Context) -> None:
    run(partial(_explored, asked, context))


def _explored(asked: Explore, context: Context) -> Status:
    answer, kept_in = answer_of(context.obj), store_of(asked.store, asked.no_store)
    _check_asked(asked, context)
    known_name(asked.text and asked.text.value, asked.name)
    record: dict[str, Any] = {"name": asked.kernel, "machine": asked.machine}
    text_to = asked.out if asked.text is not None else None
    with (
        kept_free(asked.json_file, text_to, asked.keep, asked.certificate, begun=record),
        crew_of(asked.processes, asked.cluster) as crew,
    ):
        nest, budget = _nest(asked, answer)
        named = "::" not in asked.kernel
        first = strategies_of(nest, asked.strategy, asked.space.value, free=named)
        record |= _bounded(nest, first)
        status, best = Status.FOUND, None
        answer.whole = True
        _check_alone(nest, asked, crew)
        if (winner := winner_of(nest.program)) is not None:
            echo(f"the fastest that is known, and comes with the package: {winner}")
        if not nest.is_possible:
            status = Status.IMPOSSIBLE
        elif asked.explain or asked.estimate:
            record |= {"reasons": _explain(nest, first)} if asked.explain else {}
            record |= _estimate(nest, asked, crew) if asked.estimate else {}
        else:
            where = bench_for(nest, asked.model, asked.engine.value, crew)
            quick = None if where else quick_for(nest, asked.model, asked.engine.value)
            if quick is not None:
                explored, made = _raced(nest, first, asked, budget, quick, kept_in)
            else:
                explored, made = _searched(nest, first, asked, budget, where, kept_in, crew)
            status, best = _status(explored), explored.candidate
            measured = where is not None or quick is not None
            answer.whole = not measured and is_whole(explored.outcome)
            record |= made
        said = None
        if asked.text is not None and best is not None:
            words = command_words(asked, context)
            noted = [with_notes(each, words) for each in explored.kernels]
            texts = [emit.emit(each, asked.text.value) for each in with_names(noted, asked.name)]
            said = "\n".join(texts)
    if said is not None:
        write(asked.out, said, answer)
    write_records(asked.json_file, [record], answer=answer)
    if asked.certificate is not None and best is not None:
        _certify(explored, asked.certificate, answer)
    return status


def _certify(explored: Explored, file: Path, answer: Answer) -> None:
    # Here, not at the top: it knows the emulator and layouts, and a search needs neither.
    from warploom.pipeline.kernel_certificate import certified_words, kernel_certificate

    proof = kernel_certificate(explored)
    write_records(file, [proof], indent=None, answer=answer)
    for line in certified_words(proof):
        echo(line)


def _nest(asked: Explore, answer: Answer) -> tuple[Nest, Budget]:
    """The space, after its program was shown, and what is left of the time."""
    budget = budget_of(asked.seconds)
    program = find_program(asked.kernel, asked.size, asked.space, asked.type)
    answer.made(program)
    echo(show(program))
    with budget.interruptible(), budget.governing():  # the space takes a while to be built
        own = machine_named(asked.machine)
        target = replace(target_for(own, asked.space), between=asked.memory)
        free = "::" not in asked.kernel
        return nest_for(program, own.rates, target, asked.fix, asked.strategy, free), budget


def _check_asked(asked: Explore, context: Context) -> None:
    """Nothing beside a question that is of another."""
    if asked.text is None:
        check_meant(context, ("name",), "without --emit")
    if not asked.estimate:
        check_meant(context, ("walks", "cut", "depth"), "without --estimate")
    if asked.explain or asked.estimate:
        unused = ("engine", "evaluations", "seconds", "keep", "certificate", "text", "out")
        check_meant(context, unused, "with --explain or --estimate: nothing is searched")
    if asked.engine is Engine.exact:
        whole = "to branch and bound, which leaves out nothing"
        check_meant(context, ("evaluations", "seed"), whole)
        alone = "to branch and bound, which one process does"
        check_meant(context, ("processes", "cluster"), alone)
    if asked.explain and not asked.estimate:
        check_meant(context, ("processes", "cluster"), "with --explain: nothing takes long")


def _check_alone(nest: Nest, asked: Explore, crew: Farm | Cluster | None) -> None:
    """Nothing that knows loops alone beside decisions of a strategy's own space."""
    for meant, what in (
        (asked.estimate, "--estimate"),
        (asked.engine is Engine.exact, "--engine exact"),
        (isinstance(crew, Cluster) and crew.measures, "a cluster that measures"),
    ):
        if meant:
            check_alone(nest, what)


def _bounded(nest: Nest, first: First) -> dict[str, Any]:
    """The bound; where a strategy has all of attention, the least of its spaces, too: loops are
    bounded by what they compute again and again."""
    if not nest.is_possible:
        echo("impossible: no implementation fulfils all constraints")
        return {"outcome": "impossible"}
    own = [nest_by(recipe_of(each, nest)) for each in first.variants if each.space in WHOLE]
    least = min((nest.least(), *(each.least() for each in own if each.is_possible)))
    echo(bound_words(nest.program, least, bool(nest.decisions), bool(first.variants)))
    return {"bound": least}


def _searched(
    nest: Nest,
    first: First,
    wanted: Explore,
    budget: Budget,
    bench: Bench[Built] | None,
    store: Store | None,
    crew: Farm | Cluster | None,
) -> tuple[Explored, dict[str, Any]]:
    device = None if bench is None else bench.device
    kept = _kept(nest, wanted.keep, device)
    helpers = None if crew is None else HelpedNest(nest, crew, budget.check)
    writers = None if helpers is None else helpers.written
    timer = None if bench is None else Timer(nest, bench, budget, store, crew, writers)
    with progress(nest.program.name) as report, budget.interruptible():
        explored = modelled(
            nest,
            () if timer is not None or wanted.engine is Engine.exact else first.variants,
            wanted.engine.value,
            wanted.evaluations or EVALUATIONS,
            budget,
            wanted.seed,
            wanted.strategy in (None, FREE),
            measure=timer,
            kept=kept,
            on_progress=_on_progress(report, nest.least(), crew),
            helpers=helpers,
        )
    record = nest.record(explored, kept, device)
    if wanted.keep is not None:
        write(wanted.keep, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    _show(explored, timer)
    if timer is not None:
        record |= {"samples": timer.taken, "violations": timer.violations}
    return explored, record


def _raced(
    nest: Nest,
    first: First,
    asked: Explore,
    budget: Budget,
    quick: Quick,
    store: Store | None,
) -> tuple[Explored, dict[str, Any]]:
    kept = _kept(nest, asked.keep, quick.device)
    before = _before(kept.best)
    wanted = Wanted(asked.seed + kept.runs, asked.evaluations, asked.processes,
                    free=asked.strategy in (None, FREE), before=before)  # fmt: skip
    with progress(nest.program.name) as report, budget.interruptible():
        on_progress = _on_progress(report, nest.least(), None)
        explored = raced(nest, first.variants, quick, budget, wanted, store, on_progress)
    record = nest.record(explored, kept, quick.device)
    if explored.candidate is not None:
        record["best"]["leaf"] = packed(explored.candidate, 0).hex()
    if asked.keep is not None:
        write(asked.keep, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    _show_raced(explored)
    samples = sum(each.is_sure for each in explored.race.measured.values())
    return explored, record | {"samples": samples, "violations": explored.race.violations}


def _before(best: Record | None) -> tuple[tuple[str, bytes], ...]:
    """The best of a kept record, to be measured again."""
    match best:
        case {"strategy": str(name), "leaf": str(leaf)}:
            return ((name, bytes.fromhex(leaf)),)
    return ()


# -- what is asked ---------------------------------------------------------------------------------


def find_program(text: str, sizes: list[str], space: str, of_type: str | None = None) -> Program:
    """One of the known kernels, or a program of the user's own."""
    for part in (part for each in sizes for part in each.split(",")):
        if re.fullmatch(r"\s*\w+\s*=\s*-?\d+\s*", part):
            check_number(int(part.partition("=")[2]))
    given = parse_parameters(sizes, digits=10)
    if "::" in text:
        found = python_value(text, given, (Program, LoopNest))
        return own_nest(found, text, space, other_kind(found), of_type)
    return named_nest(text, given, space, other_command, of_type)


def _kept(nest: Nest, file: Path | None, device: str | None) -> Kept:
    if file is None or not file.exists():
        return Kept()
    try:
        record = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ParseError(f"cannot read '{file}': {error}") from None
    if not isinstance(record, dict):
        raise ParseError(f"'{file}' is not a file that explore --keep wrote")
    return nest.kept_from(record, device)


# -- what is shown ---------------------------------------------------------------------------------


def _show_raced(explored: Explored) -> None:
    """What a race met on the GPU."""
    race = explored.race
    echo(
        f"{race.fresh} implementations measured just now, {len(race.measured)} in all; "
        f"{race.drawn} drawn, {race.wrong} wrong, {race.failed} without a kernel"
    )
    if race.wrong or (explored.candidate is None and race.complaint):
        echo(f"the first that failed: {race.complaint}")
    if race.violations:
        echo(f"{race.violations} were faster than their bound: the rates are not right")
    if explored.candidate is None:
        echo("undecided: nothing was found")
        return
    best = time_words(explored.nanoseconds)
    echo(f"best: {best} measured on {explored.device}{_by(explored)}")
    assert explored.nest is not None
    echo(f"schedule: {explored.nest.schedule(explored.candidate)}")
    echo(f"it {explored.trial}")


def _strategies_said(first: First) -> None:
    """Which apply, and why others do not."""
    counts = Counter(each.strategy for each in first.variants)
    for name, count in counts.items():
        echo(f"strategy {name}: applies, with {count} ways to tile")
    for name, why in first.refused.items():
        if name not in counts:
            echo(f"strategy {name}: does not apply: {why}")


def _explain(nest: Nest, first: First) -> list[dict[str, Any]]:
    _strategies_said(first)
    own = min(spaces_asked(first.variants, nest), key=Nest.least) if nest.asked else nest
    reasons = [each for each in own.reasons() if each.nanoseconds > 0]
    for each in reasons:
        echo(f"  {time_words(each.nanoseconds):>10}  {resource_words(each)}: {each.why}")
    return [
        {"nanoseconds": each.nanoseconds, "resource": each.resource, "why": each.why}
        for each in reasons
    ]


def _estimate(nest: Nest, asked: Explore, crew: Farm | Cluster | None) -> dict[str, Any]:
    cut = math.inf if asked.cut is None else asked.cut * 1e6
    helpers = None if crew is None else HelpedNest(nest, crew)
    first, second = nest.estimates(asked.walks, asked.seed, cut, asked.depth, helpers)
    for name, each in (("Knuth", first), ("Chen", second)):
        echo(f"{name}: {each.leaves} implementations, {each.walks} walks")
    dead = first.dead_ends
    echo(f"dead ends: {100 * dead.value:.2f} % ± {100 * dead.error:.2f} of random descents")
    at = min(asked.depth, len(first.nodes) - 1)
    if at >= 0:
        echo(f"nodes at depth {at}: {first.nodes[at]}")
    best = min((first, second), key=_relative_error)
    return {
        "space": best.leaves.value,
        "space_error": best.leaves.error,
        "dead_ends": dead.value,
        "nodes": [[each.value, each.error] for each in first.nodes],
        "cut": cut if math.isfinite(cut) else None,
    }


def _relative_error(estimate: Estimate) -> float:
    return estimate.leaves.error / max(estimate.leaves.value, 1e-300)


def _on_progress(
    report: Any, bound: float, crew: Farm | Cluster | None
) -> Callable[[Progress], None] | None:
    if report is None:
        return None
    at_work = "" if crew is None else f", {crew.workers} at work"

    def shown(at: Progress) -> None:
        best = "nothing yet" if at.best is None else time_words(at.best)
        report(
            f"{at.phase}, best {best} (bound {time_words(bound)}), {at.found} reached{at_work}",
            at.states,
        )

    return shown


def _show(explored: Explored, timer: Timer | None) -> None:
    pruned = explored.statistics.pruned
    echo(
        f"{explored.looked_at}; pruned: "
        f"{pruned.get('bound', 0)} by the bound, {pruned.get('propagation', 0)} by constraints"
    )
    if explored.candidate is None:
        word = "impossible" if isinstance(explored.outcome, Impossible) else "undecided"
        echo(f"{word}: nothing was found")
        return
    best = time_words(explored.nanoseconds)
    if timer is None:
        echo(f"best: {best} {explored.how}{_by(explored)}")
    else:
        echo(f"best: {best} measured on {timer.bench.device}, {timer.taken} samples just now")
        if timer.violations:
            echo(f"{timer.violations} were faster than their bound: the rates are not right")
    assert explored.nest is not None
    echo(f"schedule: {explored.nest.schedule(explored.candidate)}")
    echo(f"it {explored.trial}")


def _by(explored: Explored) -> str:
    """By which strategy it was found."""
    name = explored.strategy.rstrip("0123456789 ")
    return f", by the strategy {name}" if name not in ("", FREE) else ""


def _status(explored: Explored) -> Status:
    """That of the answer; something that was found before a budget was spent is an answer."""
    status = status_of(explored.outcome)
    has_some = explored.candidate is not None and status is not Status.INTERRUPTED
    return Status.FOUND if has_some else status
