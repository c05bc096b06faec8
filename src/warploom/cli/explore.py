"""`warploom explore`: all implementations of a loop nest, bounded, counted, searched, written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from warploom import emit
from warploom.cli.crew import CLUSTER, PROCESSES, crew_of
from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, check_meant, is_whole, run, status_of
from warploom.cli.inputs import parse_parameters, python_value
from warploom.cli.keeping import NO_STORE, STORE, store_of
from warploom.cli.names import other_command, other_kind
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.own import Text
from warploom.cli.progress import progress
from warploom.cli.remembered import answer_of
from warploom.cli.seconds import budget_of
from warploom.errors import ParseError
from warploom.loopnest.build import LoopNest
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower
from warploom.loopnest.show import show
from warploom.machine.record import machine_named
from warploom.pipeline.exploring import bench_for
from warploom.pipeline.helped import HelpedNest
from warploom.pipeline.named_nest import check_number, named_nest, own_nest, target_for
from warploom.pipeline.nest import Explored, Kept, Nest
from warploom.pipeline.timed_nest import Timer
from warploom.report.nest import time_words
from warploom.runtime.rig import Bench, Built
from warploom.search.branching.estimate import Estimate
from warploom.search.budget import Budget
from warploom.search.engine import Progress
from warploom.search.outcome import Impossible
from warploom.search.storage.store import Store
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm

HELP = """Explore the implementations of a loop nest: all orders, fusions, tiles, mappings to
threads, memories and caches as one space of decisions, with a lower bound on the time of everything
that is still possible.

KERNEL is axpy, matvec, gesummv, matmul (with splits=N in parts, which add-parts adds up),
batched-matmul, two-matmuls, doitgen, or FILE.py::NAME (a LoopNest, its program, or a function of
sizes that returns one; see docs/loopnests.md). On a machine with a GPU (and PyTorch or CuPy)
implementations are compiled, checked and timed; what was measured is kept in a store, so that no
code is measured twice. Without a GPU, or with --model, nothing is measured: what is minimised is
the bound, and the same command again answers from the store. What is found is lowered to a kernel,
checked, and run on the simulator on a few tiles of each axis. --processes and --cluster share the
search out (descents, walks of --estimate, texts and their compilation); what is found is the same,
and workers with the label GPU measure.

\b
--estimate   how many implementations there are, and how often a random descent is a dead end
--explain    the bound of what is still possible: by which resource, in which loop
--fix        a decision of yours, several times: 'size(m1)=16', 'dim_kind(sum_1.k1)=LOOP|UNROLL'

\b
Examples:
  $ warploom explore matmul --size m=1024,n=1024,k=1024 --explain
  $ warploom explore axpy --size n=1048576 --seconds 10 --emit cuda -o axpy.cu
  $ warploom explore matvec --size m=512,n=512 --fix 'dim_kind(n0)=LOOP' --keep found.json

Exit status: 0 found, 1 impossible, 2 bad input (contradictory decisions, sizes that are none),
3 undecided (nothing was found within the budget), 130 Ctrl-C, which keeps the best so far."""


class Engine(StrEnum):
    tree = "tree"
    random = "random"
    exact = "exact"


class Space(StrEnum):
    default = "default"
    paper = "paper"
    tensor = "tensor"
    bf16 = "tensor-bf16"


def add(app: typer.Typer) -> None:
    app.command("explore", help=HELP)(explore)


def explore(
    context: typer.Context,
    kernel: str = typer.Argument(..., metavar="KERNEL"),
    size: list[str] = typer.Option([], metavar="K=V", help="Sizes and other parameters."),
    machine: str = typer.Option(
        "h200",
        metavar="NAME|FILE",
        help="Whose rates bound the time (.toml, or .json).",
    ),
    space: Space = typer.Option(
        Space.default,
        help="paper: as published, tiles divide; tensor, tensor-bf16: on tensor cores.",
    ),
    fix: list[str] = typer.Option([], metavar="CHOICE=VALUE", help="Decide something yourself."),
    estimate: bool = typer.Option(False, "--estimate", help="Estimate the size of the space."),
    walks: int = typer.Option(1000, min=2, help="Random walks of --estimate."),
    cut: float = typer.Option(None, min=0, help="Milliseconds: --estimate without what is slower."),
    depth: int = typer.Option(10, min=0, help="Down to this depth the cut applies."),
    explain: bool = typer.Option(False, "--explain", help="Show what bounds the time, and stop."),
    engine: Engine = typer.Option(Engine.tree, help="How to search; exact: branch and bound."),
    evaluations: int = typer.Option(500, min=1, help="Implementations to look at."),
    seconds: float = typer.Option(None, min=0, help="Wall time: the space, the search, the check."),
    seed: int = typer.Option(0, min=0, help="Another seed is another search."),
    model: bool = typer.Option(False, "--model", help="By the bound, though there is a GPU."),
    store: Path = STORE,
    no_store: bool = NO_STORE,
    keep: Path = typer.Option(None, metavar="FILE", help="Go on from there, and keep it there."),
    processes: int = PROCESSES,
    cluster: str = CLUSTER,
    text: Text = typer.Option(None, "--emit", help="Print the kernel in this language."),
    out: Path = typer.Option(STDOUT, "-o", metavar="FILE", help="Write the text there instead."),
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        answer, kept_in = answer_of(context.obj), store_of(store, no_store)
        if not estimate:
            check_meant(context, ("walks", "cut", "depth"), "without --estimate")
        if explain or estimate:
            unused = ("engine", "evaluations", "seconds", "keep", "text", "out")
            check_meant(context, unused, "with --explain or --estimate: nothing is searched")
        if engine is Engine.exact:
            check_meant(context, ("evaluations", "seed"), "to branch and bound, which leaves out "
                        "nothing")  # fmt: skip
            check_meant(context, ("processes", "cluster"), "to branch and bound, which one process "
                        "does")  # fmt: skip
        if explain and not estimate:
            check_meant(context, ("processes", "cluster"), "with --explain: nothing takes long")
        record: dict[str, Any] = {"name": kernel, "machine": machine}
        with (
            kept_free(json_file, out if text is not None else None, keep, begun=record),
            crew_of(processes, cluster) as crew,
        ):
            budget = budget_of(seconds)
            program = find_program(kernel, size, space)
            answer.made(program)
            typer.echo(show(program))
            with budget.interruptible(), budget.governing():  # the space takes a while to be built
                own = machine_named(machine)
                nest = Nest(program, own.rates, target_for(own, space), fix)
            record |= _bounded(nest)
            status, best = Status.FOUND, None
            answer.whole = True
            if not nest.is_possible:
                status = Status.IMPOSSIBLE
            elif explain or estimate:
                record |= {"reasons": _explain(nest)} if explain else {}
                limit = math.inf if cut is None else cut * 1e6
                helpers = None if crew is None else HelpedNest(nest, crew)
                record |= _estimate(nest, walks, seed, limit, depth, helpers) if estimate else {}
            else:
                wanted = Search(engine, evaluations, budget, seed, keep)
                where = bench_for(nest, model, engine.value, crew)
                explored, made = _searched(nest, wanted, where, kept_in, crew)
                status, best = _status(explored), explored.candidate
                answer.whole = where is None and is_whole(explored.outcome)
                record |= made
            said = None
            if text is not None and best is not None:
                said = emit.emit(lower(nest.implementation(best)), text.value)
        if said is not None:
            write(out, said, answer)
        write_records(json_file, [record], answer=answer)
        return status

    run(action)


@dataclass(frozen=True, slots=True)
class Search:
    """How to search, for how long, and where to go on from."""

    engine: Engine
    evaluations: int
    budget: Budget
    seed: int
    keep: Path | None


def _bounded(nest: Nest) -> dict[str, Any]:
    if not nest.is_possible:
        typer.echo("impossible: no implementation fulfils all constraints")
        return {"outcome": "impossible"}
    typer.echo(f"no implementation takes less than {time_words(nest.least())}")
    return {"bound": nest.least()}


def _searched(
    nest: Nest,
    wanted: Search,
    bench: Bench[Built] | None,
    store: Store | None,
    crew: Farm | Cluster | None,
) -> tuple[Explored, dict[str, Any]]:
    device = None if bench is None else bench.device
    kept, budget = _kept(nest, wanted.keep, device), wanted.budget
    helpers = None if crew is None else HelpedNest(nest, crew, budget.check)
    writers = None if helpers is None else helpers.written
    timer = None if bench is None else Timer(nest, bench, budget, store, crew, writers)
    with progress(nest.program.name) as report, budget.interruptible():
        explored = nest.search(
            wanted.engine.value,
            wanted.evaluations,
            measure=timer,
            budget=budget,
            seed=wanted.seed,
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


# -- what is asked ---------------------------------------------------------------------------------


def find_program(text: str, sizes: list[str], space: str) -> Program:
    """One of the known kernels, or a program of the user's own."""
    for part in (part for each in sizes for part in each.split(",")):
        if re.fullmatch(r"\s*\w+\s*=\s*-?\d+\s*", part):
            check_number(int(part.partition("=")[2]))
    given = parse_parameters(sizes, digits=10)
    if "::" in text:
        found = python_value(text, given, (Program, LoopNest))
        return own_nest(found, text, other_kind(found))
    return named_nest(text, given, space, other_command)


def _kept(nest: Nest, file: Path | None, device: str | None) -> Kept:
    if file is None or not file.exists():
        return Kept()
    try:
        record = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ParseError(f"cannot read '{file}': {error}") from None
    if not isinstance(record, dict):
        raise ParseError(f"'{file}' is no record of an exploration")
    return nest.kept_from(record, device)


# -- what is shown ---------------------------------------------------------------------------------


def _explain(nest: Nest) -> list[dict[str, Any]]:
    reasons = [each for each in nest.reasons() if each.nanoseconds > 0]
    for each in reasons:
        typer.echo(f"  {time_words(each.nanoseconds):>10}  {each.resource}: {each.why}")
    return [
        {"nanoseconds": each.nanoseconds, "resource": each.resource, "why": each.why}
        for each in reasons
    ]


def _estimate(
    nest: Nest, walks: int, seed: int, cut: float, depth: int, helpers: HelpedNest | None
) -> dict[str, Any]:
    first, second = nest.estimates(walks, seed, cut, depth, helpers)
    for name, each in (("Knuth", first), ("Chen", second)):
        typer.echo(f"{name}: {each.leaves} implementations, {each.walks} walks")
    dead = first.dead_ends
    typer.echo(f"dead ends: {100 * dead.value:.2f} % ± {100 * dead.error:.2f} of random descents")
    at = min(depth, len(first.nodes) - 1)
    if at >= 0:
        typer.echo(f"nodes at depth {at}: {first.nodes[at]}")
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
    typer.echo(
        f"{explored.evaluated} implementations looked at; pruned: "
        f"{pruned.get('bound', 0)} by the bound, {pruned.get('propagation', 0)} by constraints"
    )
    if explored.candidate is None:
        word = "impossible" if isinstance(explored.outcome, Impossible) else "undecided"
        typer.echo(f"{word}: nothing was found")
        return
    best = time_words(explored.nanoseconds)
    if timer is None:
        typer.echo(f"best: {best} by the bound, which is a model: not measured")
    else:
        typer.echo(f"best: {best} measured on {timer.bench.device}, {timer.taken} samples just now")
        if timer.violations:
            typer.echo(f"{timer.violations} were faster than their bound: the rates are not right")
    typer.echo(f"it {explored.trial}")


def _status(explored: Explored) -> Status:
    """That of the answer; something that was found before a budget was spent is an answer."""
    status = status_of(explored.outcome)
    has_some = explored.candidate is not None and status is not Status.INTERRUPTED
    return Status.FOUND if has_some else status
