"""`warploom layout solve`: the best layout for how a tensor is used, or a proof."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from warploom.cli.command import command_words
from warploom.cli.commands.layout import Solve
from warploom.cli.declare import Context
from warploom.cli.guard import Status, attempt, is_whole, run, status_of, worst
from warploom.cli.keeping import store_of
from warploom.cli.layout_input import known_export, readers
from warploom.cli.layout_view import answer_lines, row_line, table_head, ways_lines
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.progress import progress
from warploom.cli.remembered import Answer, answer_of
from warploom.cli.say import echo
from warploom.cli.seconds import seconds_of
from warploom.errors import CheckError, InternalError, ParseError, WarploomError
from warploom.layout.formats.function_name import function_name
from warploom.layout.language.show import show as show_layout
from warploom.layout.patterns.access import Problem
from warploom.layout.solver.choose import Chosen, best_way
from warploom.layout.solver.front import Front, known_class, usual_class
from warploom.layout.solver.front_json import front_record, ways_record
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.engine import Watch
from warploom.search.outcome import Reason, Undecided
from warploom.search.outcome_json import outcome_record

SPELLINGS = {
    "cute": "CuTe",
    "triton": "Triton",
    "ttgir": "Triton's IR",
    "gluon": "Gluon",
    "tilelang": "TileLang",
}  # languages that not every layout has words in


@dataclass(frozen=True, slots=True)
class Solving:
    """One call, and what has come of it so far; texts are written last, as they may go to standard
    output. Ctrl-C (`pressed`) is for all problems, time and memory for each."""

    asked: Solve
    answer: Answer
    command: str
    pressed: Budget = field(default_factory=Budget)
    records: list[dict[str, Any]] = field(default_factory=list)
    texts: list[tuple[Path, str]] = field(default_factory=list)

    def all(self) -> Status:
        asked, answer = self.asked, self.answer
        store_of(asked.store, asked.no_store)
        named = [*asked.patterns, *asked.named]
        if not named:
            raise ParseError("no pattern was given", advice="try transpose:32x32:f32")
        known_class(asked.klass)
        known_export(asked.emit, asked.name)
        text_to = asked.out if asked.emit else None
        free = kept_free(asked.json_file, text_to, asked.proof, so_far=self.records)
        with free, self.pressed.interruptible():
            found = readers(named, asked.machine)
            several = len(found) > 1
            if several and (asked.proof or asked.emit):
                raise CheckError("--emit and --certificate take one pattern")
            if several:
                echo(table_head())
            answer.whole = True
            each_of = [partial(self.one, *each, several) for each in found]
            statuses = one_by_one(each_of, self.pressed, self.records)
            answer.whole &= not self.pressed.is_spent()
        write_records(asked.json_file, self.records, answer=answer)
        for file, text in self.texts:
            write(file, text, answer)
        return worst(statuses)

    def one(self, text: str, read: Callable[[], Problem], short: bool) -> Status:
        """One problem: solved, shown, noted."""
        budget, what = self._budget(), self._varied()
        try:
            with progress(text) as report, budget.governing():
                chosen = self._best(read(), budget, report)
        except STOPS as stop:
            self.answer.whole = False
            echo(f"{text}: undecided: {reason_of(stop).value}\n  nothing was tried")
            self.records.append(_nothing_tried(text, self.asked.klass, reason_of(stop)))
            return status_of(Undecided(reason_of(stop)))
        front = chosen.best.front
        self.records.append(front_record(front) | (ways_record(chosen) if what else {}))
        lines = [row_line(front)] if short else answer_lines(front)
        for line in [*lines, *(ways_lines(chosen) if what else ())]:
            echo(line)
        self._write(front, budget)
        self.answer.whole &= not budget.is_spent() and _is_whole(chosen)
        undecided = chosen.open or chosen.left
        return Status.UNDECIDED if undecided else status_of(front.asked.outcome)

    def _budget(self) -> Budget:
        """The start of the command is part of the first problem's time, and of no other's."""
        seconds = self.asked.seconds
        given = seconds if seconds is None or self.records else seconds_of(seconds)
        budget = self.pressed.watched(None) if given is None else self.pressed.up_to(given)
        budget.megabytes = self.asked.memory
        return budget

    def _varied(self) -> tuple[str, ...]:
        return tuple(self.asked.vary.split(",")) if self.asked.vary else ()

    def _best(self, problem: Problem, budget: Budget, report: Any) -> Chosen:
        asked = self.asked
        return best_way(
            problem,
            self._varied(),
            asked.klass or usual_class(problem),
            worst=asked.worst,
            waste=not asked.no_waste,
            budget=budget,
            on_progress=_on_progress(report),
        )

    def _write(self, front: Front, budget: Budget) -> None:
        """The texts that were asked for."""
        asked = self.asked
        if asked.emit is not None and front.best is not None:
            name = asked.name or function_name("place", front.task.problem.name)
            said, text = _emitted(front, asked.emit, name, self.command)
            for line in said:
                echo(line)
            self.texts.append((asked.out, _to_include(asked, name, text)))
        if asked.proof is not None:
            self.texts.append((asked.proof, _certified(front, budget)))


def solve(asked: Solve, context: Context) -> None:
    run(Solving(asked, answer_of(context.obj), command_words(asked, context, "layout")).all)


def until_stopped(action: Callable[[], Status], records: list[dict[str, Any]]) -> Status:
    """A search keeps what it has found; what is stopped beside it leaves a record, too."""
    try:
        return action()
    except STOPS as stop:
        reason = reason_of(stop)
        echo(f"undecided, {reason.value}")
        records.append({"outcome": "undecided", "stopped": reason.value})
        return status_of(Undecided(reason))


def _nothing_tried(text: str, klass: str | None, reason: Reason) -> dict[str, Any]:
    """The budget was spent before the accesses were read and counted."""
    found = {"name": text, **outcome_record(Undecided(reason))}
    return found | {"layout": None, "classes": {}, "not_tried": [klass] if klass else []}


def _certified(front: Front, budget: Budget) -> str:
    """The certificate of an answer, as a text."""
    # Here, not at the top: most answers are asked for without one.
    from warploom.layout.solver.certificate import certificate

    with progress(front.task.problem.name) as report:
        record = certificate(front.task, front.solved, Watch(budget, _on_progress(report)))
    if "not written out" in record["proof"]["by"]:
        echo(f"  no certificate: {record['proof']['by']}")
    return json.dumps([record]) + "\n"


def _emitted(front: Front, how: str, name: str, command: str) -> tuple[list[str], str]:
    """The best layout in another's words, or the best of what was found that has some; what is to
    be said of that, and the text."""
    # Here, not at the top: it knows all kernels, and a search needs none of them.
    from warploom.emit.index_function import exported
    from warploom.emit.parts import noted_text
    from warploom.pipeline.layouts import noted_layout

    task, first, refused = front.task, front.best, None
    for answer in front.answers:
        layout = task.layout(answer)
        try:
            text = exported(layout, how, name, task.problem.element_bytes, task.problem.packed)
        except WarploomError as error:
            refused = refused or error
            if how not in SPELLINGS:
                break
            continue
        if refused is None or first is None:
            return [], noted_layout(text, how, front, command)
        said = [
            f"{SPELLINGS[how]} has no words for {show_layout(task.layout(first))[:80]}",
            f"the best of what was tried that it has words for: {show_layout(layout)[:80]}, cost "
            f"{float(answer.cost):g} instead of {float(first.cost):g}",
        ]
        noted = noted_text(text, *said, command) if how == "cute" else text  # no comments in JSON
        return [f"  {line}" for line in said], noted
    raise refused or InternalError("there is nothing to write")


def _to_include(asked: Solve, name: str, text: str) -> str:
    """A header can be included twice; a type of CuTe can be said twice as it is."""
    from warploom.emit.helper import HEADER_ENDS, include_guard  # as above

    is_header = asked.out.suffix.lower() in HEADER_ENDS and asked.emit not in SPELLINGS
    return include_guard(name, text) if is_header else text


def one_by_one(
    actions: Sequence[Callable[[], Status]], pressed: Budget, records: list[dict[str, Any]]
) -> list[Status]:
    """What each of them gives; after Ctrl-C no further one is begun, and nothing is lost."""
    statuses: list[Status] = []
    for number, action in enumerate(actions):
        if pressed.is_spent():
            echo(f"interrupted: {len(actions) - number} were not begun")
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


def _on_progress(report: Any) -> Any:
    return None if report is None else lambda p: report(p.phase, p.states)
