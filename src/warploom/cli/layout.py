"""`warploom layout`: the best layout for how a tensor is used, or a proof that there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import typer
from typer.core import TyperGroup

from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, attempt, is_whole, run, status_of, worst
from warploom.cli.keeping import NO_STORE, STORE, store_of
from warploom.cli.layout_view import (
    answer_lines,
    check_lines,
    grid_lines,
    measured_lines,
    row_line,
    table_head,
    ways_lines,
)
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.remembered import answer_of
from warploom.cli.seconds import seconds_of
from warploom.emit.index_function import EXPORTS, exported
from warploom.emit.reserved import is_reserved_function
from warploom.errors import (
    CheckError,
    EmitError,
    InternalError,
    ParseError,
    UnsupportedError,
    WarploomError,
    one_of,
)
from warploom.layout.formats.export import OTHERS
from warploom.layout.formats.given import given_layout, row_major_addresses, sizes
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show as show_layout
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.named import FIFTY, TYPES, pattern
from warploom.layout.patterns.ways import DECISIONS
from warploom.layout.solver.certificate import certificate
from warploom.layout.solver.choose import Chosen, best_way
from warploom.layout.solver.front import Front, known_class, usual_class
from warploom.layout.solver.front_json import front_record, ways_record
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.picture import Compared, request_of
from warploom.pipeline.layouts import is_file, problem_of
from warploom.pipeline.pictures import picture as draw
from warploom.report.picture import check_name
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.engine import Watch
from warploom.search.outcome import Reason, Undecided
from warploom.search.outcome_json import outcome_record

SOLVE = """Find the layout of shared memory that serves all accesses in the fewest wavefronts.

What is minimised are all wavefronts of the tile: those of every request (step) of every access, an
access times its weight (`weight = 10` in its table; 1 unless said). With --worst it is the largest
access. Rows, swizzles and padding are tried first, then larger classes; what a budget (--seconds)
leaves out is told.

PATTERN is a TOML file (a tensor and its accesses, see docs/layouts.md) or a name, such as
transpose:32x32:f32, ldmatrix:64x96:f16, blocks:32x32, mfma:64x64:f16@gfx942. 'all' are the fifty
problems of the published table.

Classes: none (rows as they are), pad (unused places after each row), swizzle (one Swizzle<B,M,S>),
xor (every bijective matrix over F2), mixed (that, and exchanges, rotations, tiles and padding for
any size), any (every layout whatever), tma (what tensor copies can write: boxes in a mode of TMA).

--vary makes more of the accesses a decision: width (how many bytes a lane moves at once), matrices
(ldmatrix and stmatrix for ld and st), order (each lane begins at a step of its own).

\b
Example:
  $ warploom layout solve transpose:32x32:f32 --emit cuda
  $ warploom layout solve mine.toml --class any --certificate proof.json
  $ warploom layout solve transpose:32x32:f32 --vary width,matrices
  $ warploom verify proof.json

The same command again answers from the store.

Exit status: 0 a layout of the class meets the bound that holds for every layout, 1 proved that none
does (the best of the class is printed), 2 bad input, 3 undecided and 130 Ctrl-C (the best so
far is printed)."""

SHOW = """Show a layout: what is true of it and, with a pattern, which lanes collide in which banks.

LAYOUT is a text: (32,32):(33,1), S<3,3,3> o (64,64):(64,1), pad<48,8> o (128,48):(48,1), a CuTe
layout in any of its spellings or as a type, or swizzled(vec,perPhase,maxPhase) and bases as Triton
has them. --emit writes it as any of the others.

\b
Example:
  $ warploom layout show '(32,32):(32,1)' --pattern transpose:32x32:f32 --access 1 -o tile.html
  $ warploom layout show 'swizzled(8,1,8)' --shape 64x64 --element f16 --emit cute"""

CHECK = """Check a layout of your own against how a tensor is used.

Are all elements at different places, are vectors whole and aligned, how many wavefronts does each
access take, and is there anything to gain?

Exit status: 0 it is right and meets the bound, 1 something is wrong or could be better, 2 bad
input."""

CONVERT = "convert"
SPELLINGS = {"cute": "CuTe", "triton": "Triton"}  # languages that not every layout has words in
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
EMIT: Any = typer.Option(
    None, metavar="|".join(EXPORTS), help="Write the index function, the type, or the bases."
)
PATTERN: Any = typer.Argument(..., metavar="PATTERN", help="A TOML file, a name, or 'all'.")


class _Commands(TyperGroup):
    """`convert` is imported when it is asked for: it knows all kernels, and the others none."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return [*super().list_commands(ctx), CONVERT]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name == CONVERT:
            return import_module("warploom.cli.layout_convert").command()
        return super().get_command(ctx, cmd_name)


def add(app: typer.Typer) -> None:
    group = typer.Typer(cls=_Commands, no_args_is_help=True, rich_markup_mode=None)
    group.command("solve", help=SOLVE)(solve)
    group.command("show", help=SHOW)(show)
    group.command("check", help=CHECK)(check)
    app.add_typer(group, name="layout", help="Layouts of shared memory and registers.")


Reader = tuple[str, Callable[[], Problem]]  # a pattern's text, and what reads it


def readers(texts: list[str], machine: str | None) -> list[Reader]:
    """What the arguments stand for; reading a large pattern takes time, which its budget has."""
    found: list[Reader] = []
    for text in texts:
        if text == "all":
            found += [(name, partial(pattern, name)) for name in FIFTY]
        else:
            name = text if machine is None or is_file(text) else f"{text}@{machine}"
            found.append((name, partial(problem_of, text, machine)))
    return found


def solve(
    context: typer.Context,
    patterns: list[str] = typer.Argument(None, metavar="PATTERN…"),
    named: list[str] = typer.Option([], "--pattern", metavar="NAME", help="The same by name."),
    klass: str = typer.Option(
        None, "--class", metavar="CLASS", help="Of layouts: mixed, or tma for tensor copies."
    ),
    worst_: bool = typer.Option(
        False, "--worst", help="Fewest wavefronts of the largest access, not of the tile."
    ),
    no_waste: bool = typer.Option(False, "--no-waste", help="No place may stay unused."),
    vary: str = typer.Option(
        None, metavar=",".join(DECISIONS), help="What of the accesses is to be decided, too."
    ),
    machine: str = typer.Option(None, "--machine", metavar="NAME|FILE", help="By whom it is used."),
    seconds: float = typer.Option(None, min=0, help="Wall time for each problem."),
    memory: float = typer.Option(None, min=1, help="Megabytes of memory of the whole process."),
    emit: str = EMIT,
    name: str = typer.Option("place", help="The name of that function or type."),
    out: Path = typer.Option(STDOUT, "-o", metavar="FILE", help="Where it is written."),
    proof: Path = typer.Option(None, "--certificate", metavar="FILE", help="Write the proof."),
    store: Path = STORE,
    no_store: bool = NO_STORE,
    json_file: Path = JSON,
) -> None:
    answer = answer_of(context.obj)

    def action() -> Status:
        store_of(store, no_store)
        texts = [*(patterns or []), *named]
        if not texts:
            raise ParseError("no pattern was given", advice="try transpose:32x32:f32")
        known_class(klass)
        known_export(emit, name)
        free = kept_free(json_file, out if emit else None, proof, so_far=records)
        with free, pressed.interruptible():
            found = readers(texts, machine)
            if len(found) > 1 and (proof or emit):
                raise CheckError("a function or a proof is of one pattern")
            if len(found) > 1:
                typer.echo(table_head())
            answer.whole = True
            each_of = [partial(one, *each, len(found) > 1) for each in found]
            statuses = one_by_one(each_of, pressed, records)
            answer.whole &= not pressed.is_spent()
        write_records(json_file, records, answer=answer)
        for file, text in texts_out:
            write(file, text, answer)
        return worst(statuses)

    pressed = Budget()  # Ctrl-C is for all problems, time and memory for each
    records: list[dict[str, Any]] = []
    texts_out: list[tuple[Path, str]] = []  # written last: they may go to standard output

    def one(text: str, read: Callable[[], Problem], short: bool) -> Status:
        # The start of the command is part of the first problem's time, and of no other's.
        given = seconds if seconds is None or records else seconds_of(seconds)
        budget = pressed.watched(None) if given is None else pressed.up_to(given)
        budget.megabytes = memory
        what = tuple(vary.split(",")) if vary else ()
        try:
            with progress(text) as report, budget.governing():
                problem = read()
                chosen = best_way(
                    problem, what, klass or usual_class(problem), worst=worst_, waste=not no_waste,
                    budget=budget, on_progress=_on_progress(report),
                )  # fmt: skip
        except STOPS as stop:
            answer.whole = False
            typer.echo(f"{text}: undecided: {reason_of(stop).value}\n  nothing was tried")
            records.append(_nothing_tried(text, klass, reason_of(stop)))
            return status_of(Undecided(reason_of(stop)))
        front = chosen.best.front
        records.append(front_record(front) | (ways_record(chosen) if what else {}))
        lines = [row_line(front)] if short else answer_lines(front)
        for line in [*lines, *(ways_lines(chosen) if what else ())]:
            typer.echo(line)
        if emit is not None and front.best is not None:
            said, text = _emitted(front, emit, name)
            for line in said:
                typer.echo(line)
            texts_out.append((out, text))
        if proof is not None:
            texts_out.append((proof, _certified(front, budget)))
        answer.whole &= not budget.is_spent() and _is_whole(chosen)
        undecided = chosen.open or chosen.left
        return Status.UNDECIDED if undecided else status_of(front.asked.outcome)

    run(action)


def until_stopped(action: Callable[[], Status], records: list[dict[str, Any]]) -> Status:
    """A search keeps what it has found; what is stopped beside it leaves a record, too."""
    try:
        return action()
    except STOPS as stop:
        reason = reason_of(stop)
        typer.echo(f"undecided, {reason.value}")
        records.append({"outcome": "undecided", "stopped": reason.value})
        return status_of(Undecided(reason))


def _nothing_tried(text: str, klass: str | None, reason: Reason) -> dict[str, Any]:
    """The budget was spent before the accesses were read and counted."""
    found = {"name": text, **outcome_record(Undecided(reason))}
    return found | {"layout": None, "classes": {}, "not_tried": [klass] if klass else []}


def _certified(front: Front, budget: Budget) -> str:
    """The certificate of an answer, as a text."""
    with progress(front.task.problem.name) as report:
        record = certificate(front.task, front.solved, Watch(budget, _on_progress(report)))
    if "not written out" in record["proof"]["by"]:
        typer.echo(f"  no certificate: {record['proof']['by']}")
    return json.dumps([record]) + "\n"


def _emitted(front: Front, how: str, name: str) -> tuple[list[str], str]:
    """The best layout in another's words, or the best of what was found that has some; what is to
    be said of that, and the text."""
    task, first, refused = front.task, front.best, None
    for answer in front.answers:
        layout = task.layout(answer)
        try:
            text = exported(layout, how, name, task.problem.element_bytes)
        except WarploomError as error:
            refused = refused or error
            if how not in SPELLINGS:
                break
            continue
        if refused is None or first is None:
            return [], text
        said = [
            f"{SPELLINGS[how]} has no words for {show_layout(task.layout(first))[:80]}",
            f"the best of what was tried that it has words for: {show_layout(layout)[:80]}, cost "
            f"{float(answer.cost):g} instead of {float(first.cost):g}",
        ]
        return [f"  {line}" for line in said], _noted(how, said) + text
    raise refused or InternalError("there is nothing to write")


def _noted(how: str, said: list[str]) -> str:
    return "".join(f"// {line}\n" for line in said) if how == "cute" else ""


def one_by_one(
    actions: Sequence[Callable[[], Status]], pressed: Budget, records: list[dict[str, Any]]
) -> list[Status]:
    """What each of them gives; after Ctrl-C no further one is begun, and nothing is lost."""
    statuses: list[Status] = []
    for number, action in enumerate(actions):
        if pressed.is_spent():
            typer.echo(f"interrupted: {len(actions) - number} were not begun")
            if not records:
                records.append({"outcome": "undecided", "stopped": Reason.INTERRUPTED.value})
            break
        statuses.append(attempt(partial(until_stopped, action, records)))
        if statuses[-1] is Status.INTERRUPTED:
            break
    return [*statuses, *[Status.INTERRUPTED] * pressed.interrupted]


def _is_whole(chosen: Chosen) -> bool:
    """Whether every class of every way was decided."""
    fronts = [each.front for each in chosen.tried]
    solved = [each for front in fronts for each in (front.asked, *front.others)]
    return all(is_whole(each.outcome) for each in solved)


def known_export(how: str | None, name: str) -> None:
    """Refuses before the search what cannot be written after it."""
    if how is None or how == "triton":
        return
    if how not in EXPORTS:
        raise UnsupportedError(f"no layout is written as '{how[:20]}'", advice=one_of(how, EXPORTS))
    language = "cuda" if how in OTHERS else how
    if not NAME.fullmatch(name) or is_reserved_function(name, language):
        raise EmitError(f"'{name[:40]}' cannot be a name in {language}", advice="give --name")


def _on_progress(report: Any) -> Any:
    return None if report is None else lambda p: report(p.phase, p.states)


def show(
    layout: str = typer.Argument(..., metavar="LAYOUT"),
    pattern_text: str = typer.Option(None, "--pattern", metavar="PATTERN"),
    access: int = typer.Option(0, min=0, help="Which access of the pattern."),
    step: int = typer.Option(0, min=0, help="Which of its steps."),
    measured: str = typer.Option(
        None, metavar="4,32", help="Wavefronts per request that a profiler counted, to compare."
    ),
    picture: Path = typer.Option(
        None, "-o", metavar="FILE.svg|FILE.html", help="Draw it, beside rows as they are."
    ),
    shape: str = typer.Option(None, metavar="64x64", help="Of the tensor, if no pattern says it."),
    element: str = typer.Option(None, metavar="TYPE", help="Of an element, likewise."),
    emit: str = EMIT,
    name: str = typer.Option("place", help="The name of that function or type."),
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        drawn = None
        known_export(emit, name)
        if picture is not None:
            check_name(picture)
        with kept_free(json_file, picture, STDOUT if emit else None):
            if pattern_text is None and (measured is not None or picture is not None):
                raise ParseError("which accesses are meant?", advice="give --pattern")
            task = None if pattern_text is None else _task_of(pattern_text)
            found = _layout_for(task, layout, shape, element)
            lines, record = check_lines(found, None)
            if task is not None and pattern_text is not None:
                addresses = row_major_addresses(found, task.problem)
                lines += grid_lines(task, addresses, access, step)
                if measured is not None:
                    lines += measured_lines(task, addresses, measured)
                if picture is not None:
                    drawn = _compared(task, addresses, access, step, layout, pattern_text, lines)
            for line in lines:
                typer.echo(line)
            size = task.problem.element_bytes if task is not None else _bytes_of(element) or 4
            text = "" if emit is None else exported(found, emit, name, size)
        write_records(json_file, [record])
        if emit is not None:
            write(STDOUT, text)
        for file, content in draw(drawn).files(picture).items() if drawn is not None else ():
            write(file, content)
        return Status.FOUND

    run(action)


def _layout_for(
    task: Task | None, text: str, shape: str | None = None, element: str | None = None
) -> Layout:
    """A layout as somebody wrote it; a pattern says shape and element where it does not."""
    if task is None:
        return given_layout(text, None if shape is None else sizes(shape), _bytes_of(element))
    if shape is not None or element is not None:
        raise ParseError("the pattern says shape and element", advice="leave them out")
    return given_layout(text, task.problem.shape, task.problem.element_bytes)


def _task_of(text: str) -> Task:
    """The one problem that a text stands for."""
    found = readers([text], None)
    if len(found) > 1:
        raise ParseError(f"'{text}' stands for {len(found)} patterns", advice="name one of them")
    return Task(found[0][1]())


def _bytes_of(element: str | None) -> int | None:
    if element is not None and element not in TYPES:
        raise ParseError(f"no element type '{element[:20]}'", advice=one_of(element, TYPES))
    return None if element is None else TYPES[element]


def _compared(
    task: Task, addresses: Numbers, access: int, step: int, text: str, title: str, lines: list[str]
) -> Compared:
    """One request in rows as they are, and in the layout."""
    plain = np.arange(task.problem.size, dtype=np.int64)
    pairs = (("rows as they are", plain), (text[:40], addresses))
    requests = tuple(request_of(task, at, access, step, name) for name, at in pairs)
    return Compared(title, task, requests, tuple(lines))


def check(
    layout: str = typer.Argument(..., metavar="LAYOUT"),
    pattern_text: str = PATTERN,
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        with kept_free(json_file):
            task = _task_of(pattern_text)
            found = _layout_for(task, layout)
            lines, record = check_lines(found, task)
            for line in lines:
                typer.echo(line)
        write_records(json_file, [record])
        return Status.FOUND if record["clean"] else Status.IMPOSSIBLE

    run(action)
