"""`warploom synth`: fills the holes of sketches and proves the fills."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from warploom.catalogue.entry import Parameter
from warploom.cli.command import command_words
from warploom.cli.commands.shared import Form
from warploom.cli.commands.synth import Synth
from warploom.cli.crew import crew_of
from warploom.cli.declare import STDOUT, Context
from warploom.cli.guard import Status, attempt, complain, run, status_of, worst
from warploom.cli.inputs import Input, find_input, parse_parameters
from warploom.cli.keeping import store_of
from warploom.cli.names import list_names
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.own import check_fits, check_form, layout_of
from warploom.cli.progress import progress
from warploom.cli.remembered import Answer, answer_of
from warploom.cli.say import echo
from warploom.cli.seconds import budget_of
from warploom.cli.view import fill_lines, headline, note_lines, stats_lines, verdict_text
from warploom.cli.warp import solve_warp
from warploom.cli.why import remarks
from warploom.emit import Language, emit
from warploom.emit.parts import with_notes
from warploom.errors import CheckError, ParseError, SearchError, WarploomError
from warploom.pipeline.certificate import certificate
from warploom.pipeline.impossibility import certificate_of_impossible
from warploom.pipeline.subject import Layout, Subject, tiled
from warploom.search.budget import STOPS, Budget, BudgetSpentError, peak_megabytes, reason_of
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided, Verdict
from warploom.search.outcome_json import outcome_word
from warploom.sketch.explain.reason import Explanation
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import Filled
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.result_json import Record, choices_of_fills, record_of
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting
from warploom.sketch.synth.transfer import transfer
from warploom.sketch.term.ir import Program
from warploom.sketch.term.read import as_published, with_laws
from warploom.sketch.term.show import to_swflow

FILLS_IN_LINES = 200
EMIT_SECONDS = 0.5  # at least, for the kernel of what was found and its trial


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of one call, read."""

    mode: str
    engine: str
    seconds: float | None
    memory: float | None
    goal: int | None
    limit: int
    stats: bool
    published: bool
    laws: str | None
    suggest: bool
    sizes: dict[str, Parameter]
    transfers: tuple[dict[str, Parameter], ...]
    layout: Layout
    text: str | None  # the language of the kernel that is asked for
    form: Form
    command: str
    parting: Parting | None = None

    def budget(self) -> Budget:
        """A fresh one: its clock starts now."""
        return budget_of(self.seconds, self.memory)


@dataclass(frozen=True, slots=True)
class Written:
    """What is written when all is done: kernels, and certificates if they are asked for."""

    kernels: list[str]
    proofs: list[Record] | None

    def certify(
        self,
        of: str,
        found: Result | Outcome[Filled] | None,
        sizes: dict[str, Parameter],
        reason: Explanation | None = None,
    ) -> Status:
        """Adds a certificate of the first fill if it is proved, or that there is none for the
        `reason` that was found; else says why there is no certificate."""
        if self.proofs is None:
            return Status.FOUND
        if isinstance(found, Result) and reason is not None:
            return self._refute(of, found, sizes, reason)
        why = _uncertified(found)
        try:
            if found is not None and not why:
                self.proofs.append(certificate(found, sizes=sizes))
                return Status.FOUND
        except WarploomError as error:
            complain(CheckError(f"no certificate of {of}: {error.message}", advice=error.advice))
            return Status.BAD_INPUT
        echo(f"  no certificate of {of}: {why}")
        return Status.FOUND  # what was found says how it ended

    def _refute(
        self, of: str, found: Result, sizes: dict[str, Parameter], reason: Explanation
    ) -> Status:
        """That there is no fill; where there are too many to try, one line says so."""
        assert self.proofs is not None
        try:
            self.proofs.append(certificate_of_impossible(found, reason, sizes))
        except (CheckError, SearchError) as error:
            echo(f"  no certificate of {of}: impossible, but {error.message}")
        return Status.FOUND

    def write(self, out: Path | None, proof: Path | None, answer: Answer) -> None:
        for kernel in self.kernels:
            write(out or STDOUT, kernel, answer)
        if self.proofs:
            write_records(proof, self.proofs, answer=answer)


def _uncertified(found: Result | Outcome[Filled] | None) -> str:
    """Why there is nothing to certify; empty if there is something."""
    match found:
        case None | Undecided():
            return "undecided"
        case Impossible():
            return "impossible"
        case Found():
            return ""
        case Result() if not len(found.fills):
            return outcome_word(found.outcome)
    return "" if found.verdicts and found.verdicts[0] else "its fill is not proved"


def _remove_older(proof: Path) -> None:
    """What lies where a certificate was asked for, and is none of this answer."""
    if proof != STDOUT and proof.is_file():
        proof.resolve().unlink()  # a link stays, and leads to the next certificate
        echo(f"removed the older '{proof}': this answer has no certificate", err=True)


def synth(asked: Synth, context: Context) -> None:
    run(partial(_synthesized, asked, context))


def _synthesized(given: Synth, context: Context) -> Status:
    store_of(given.store, given.no_store)
    if not given.sketches and _on_terminal():
        list_names()
        return Status.FOUND
    _check_asked(given)
    answer, asked = answer_of(context.obj), _asked(given, command_words(given, context))
    with crew_of(given.processes, given.cluster) as crew:
        if crew is not None or answer.store is not None:
            asked = replace(asked, parting=Parting(answer.store, crew))
        texts = given.sketches or ["-"]
        return synth_all(texts, asked, given.json_file, given.out, answer, given.proof)


def _check_asked(given: Synth) -> None:
    """Options that contradict each other, or mean nothing together."""
    of_text = given.out or given.form is not Form.kernel or given.index_bits != 32
    if given.text is None and (of_text or given.lanes or given.step or given.dtype):
        raise ParseError("-o, --as, --lanes, --step, --dtype and --index-bits go with --emit")
    check_form(given.form, given.index_bits)
    if given.text is not None and len(given.sketches) > 1:
        raise ParseError("--emit writes the kernel of one sketch", advice="give one at a time")
    if given.all_ + given.first + given.best > 1:
        raise ParseError("--all, --first and --best exclude each other")
    if given.memory is not None and not math.isfinite(given.memory):
        raise ParseError("--memory must be finite", advice="without it there is no limit")


def _asked(given: Synth, command: str) -> Asked:
    modes = {"all": given.all_, "first": given.first, "best": given.best}
    usual = "all" if given.text is None else "best"
    return Asked(
        mode=next((mode for mode, on in modes.items() if on), usual),
        engine=given.engine.value,
        seconds=given.seconds,
        memory=given.memory,
        goal=given.goal,
        limit=given.limit,
        stats=given.stats,
        published=given.published,
        laws=given.laws.value if given.laws else None,
        suggest=given.suggest,
        sizes=parse_parameters(given.size),
        transfers=tuple(parse_parameters([each]) for each in given.transfer_to),
        layout=layout_of(given.lanes, given.step, given.dtype, given.index_bits),
        text=given.text.value if given.text else None,
        form=given.form,
        command=command,
    )


def _on_terminal() -> bool:
    return sys.stdin.isatty()


def synth_all(
    texts: list[str],
    asked: Asked,
    json_file: Path | None,
    out: Path | None,
    answer: Answer,
    proof: Path | None = None,
) -> Status:
    """Each input in turn; one that fails does not stop the others, Ctrl-C does."""
    records: list[Record] = []
    statuses: list[Status] = []
    written = Written([], None if proof is None else [])
    target = None if asked.text is None else out or STDOUT
    with kept_free(json_file, target, proof):
        try:
            for text in texts:
                statuses.append(attempt(partial(_until_stopped, text, asked, records, written)))
                if Status.INTERRUPTED in statuses:
                    break
        finally:
            # After an error of ours there is no answer, and what was there before stays.
            if proof is not None and not written.proofs and Status.INTERNAL not in statuses:
                _remove_older(proof)
    written.write(out, proof, answer)
    # Without lines it is twenty times as fast, and nobody reads thousands of fills.
    lines = None if any(len(record["fills"]) > FILLS_IN_LINES for record in records) else 1
    write_records(json_file, records, lines, answer)
    # An answer that is given again writes files, and removes none.
    removes = proof is not None and not written.proofs
    answer.whole = "-" not in texts and all(map(_is_whole, records)) and not removes
    return worst(statuses)


def _is_whole(record: Record) -> bool:
    """Whether no budget has cut anything of an answer short."""
    sizes = [each["verdict"] for each in record.get("sizes", ())]
    return (
        record["stopped"] is None
        and record["outcome"] != "undecided"
        and Verdict.UNKNOWN.value not in sizes
        and _is_whole_reason(record.get("why", {}))
        and record.get("suggestions_complete", True)
    )


def _is_whole_reason(why: Record | None) -> bool:
    """Whether the time for reasons was enough: with more of it, the reason may be another."""
    return why is not None and why.get("minimal", True)


def _until_stopped(text: str, asked: Asked, records: list[Record], written: Written) -> Status:
    """A search keeps what it has found; what is stopped before or after it leaves a record, too."""
    before = len(records)
    try:
        return _synth_one(text, asked, records, written)
    except STOPS as stop:
        reason = reason_of(stop)
        echo(f"{text}: undecided, {reason.value}")
        if len(records) == before:
            records.append(_unbuilt(text, reason, asked))
        records[-1]["stopped"] = reason.value
        return status_of(Undecided(reason))


def _synth_one(text: str, asked: Asked, records: list[Record], written: Written) -> Status:
    given = find_input(text)
    budget = asked.budget()
    with budget.interruptible():  # from here on Ctrl-C is seen by whatever works
        return _synth_given(given, budget, asked, records, written)


def _synth_given(
    given: Input, budget: Budget, asked: Asked, records: list[Record], written: Written
) -> Status:
    started = time.process_time()
    try:
        with progress(given.name) as report:
            watched = budget.watched(report and partial(report, "its sets", 0))
            with watched.governing():
                program = _build(given, asked, asked.sizes)
                # Before the search, so that a size which does not exist is said at once; but the
                # larger half of the budget is for the search.
                larger = [
                    _larger(given, asked, sizes, watched.split(2 * len(asked.transfers)))
                    for sizes in asked.transfers
                ]
    except STOPS as stop:
        spent = reason_of(stop)
        echo(f"{given.name}: undecided, {_unbuilt_text(stop)}")
        records.append(_unbuilt(given.name, spent, asked))
        return status_of(Undecided(spent))
    last = larger[-1] if larger else program
    if asked.text is not None and not isinstance(last, Reason):
        check_fits(last, asked.layout)
    if isinstance(program, Traced):
        warps = [each for each in larger if isinstance(each, Traced)]
        return _synth_warp(given, program, warps, asked, records, written)
    programs = [each for each in larger if not isinstance(each, Traced)]
    spent_on_sets = time.process_time() - started
    return _synth_goals(given, program, programs, asked, budget, spent_on_sets, records, written)


def _larger(
    given: Input, asked: Asked, sizes: dict[str, Parameter], budget: Budget
) -> Program | Traced | Reason:
    """The sketch at another size, or why it could not be built; a size it lacks is an error."""
    try:
        with budget.governing():
            return _build(given, asked, {**asked.sizes, **sizes})
    except (BudgetSpentError, MemoryError) as stop:
        return reason_of(stop)
    except WarploomError as error:
        error.advice = "; ".join(filter(None, (error.advice, several_targets(asked.transfers))))
        raise


def _synth_warp(
    given: Input,
    traced: Traced,
    larger: list[Traced],
    asked: Asked,
    records: list[Record],
    written: Written,
) -> Status:
    plain = "all" if asked.text is None else "best"  # what nobody asked for
    if (
        asked.engine != "default"
        or asked.mode != plain
        or (asked.published or asked.suggest or asked.stats)
        or asked.goal not in (None, 1)
    ):
        raise ParseError(
            f"'{given.name}' is a warp sketch, for which the cheapest fill is found",
            advice="--all, --first, --best, --engine, --published, --suggest, --stats and --goal "
            "are for term sketches",
        )
    outcomes, record = solve_warp(given.name, traced, larger, asked.laws, asked.budget())
    if note := several_targets(asked.transfers):
        echo(f"  {note}")
    records.append(record)
    statuses = [
        written.certify(_at_size(given.name, each.sizes), found, dict(each.sizes))
        for each, found in zip([traced, *larger], outcomes, strict=False)
    ]
    outcome = outcomes[-1]
    if isinstance(outcome, Found) and asked.text is not None:
        written.kernels.append(_written(outcome, asked))
    return worst([*statuses, status_of(outcome)])


def _synth_goals(
    given: Input,
    program: Program,
    larger: list[Program | Reason],
    asked: Asked,
    budget: Budget,
    set_seconds: float,
    records: list[Record],
    written: Written,
) -> Status:
    statuses = []
    goals = _goals(program, asked.goal)
    if asked.text is not None and len(goals) > 1:
        raise ParseError("--emit writes one kernel", advice="choose a goal with --goal N")
    for done, number in enumerate(goals):
        share = budget.split(len(goals) - done)
        name = given.name if len(program.goals) == 1 else f"{given.name}, goal {number + 1}"
        with progress(name) as report:
            result = synthesize(
                program,
                number,
                mode=asked.mode,
                engine=asked.engine,
                budget=share,
                on_progress=report,
                set_seconds=set_seconds,
                parting=asked.parting,
            )
        _show(name, result, asked)
        record: Record = {"name": given.name, "goal": number + 1, "engine": asked.engine}
        little = math.inf if asked.seconds is None else max(0.2, asked.seconds / 20)
        writing = Budget(0.2 if budget.interrupted else little, asked.memory)
        record |= {"mode": asked.mode, **record_of(result, budget=writing)}
        record["sketch"] = to_swflow(result.program)
        said, reason = remarks(result, number, share, asked.suggest)
        record |= said
        records.append({**record, "sizes": [_size_record(asked.sizes, result)]})
        carried = _transfers(result, larger, asked, share)
        pairs = list(zip(asked.transfers, carried, strict=False))
        records[-1]["sizes"] += [_size_record(*pair) for pair in pairs]
        for sizes, each in (({}, result), *pairs):
            there = {**asked.sizes, **sizes}
            why = reason if each is result else None
            statuses.append(written.certify(_at_size(name, there), each, there, why))
        last = carried[-1] if carried else result
        if asked.text is not None and last is not None and len(last.fills):
            with share.at_least(EMIT_SECONDS).enforced():
                written.kernels.append(_written(last, asked))
        # A kernel was asked for at the last size: what is found at a smaller one is not enough.
        statuses.append(_status(result if asked.text is None else last))
    return Status.INTERRUPTED if budget.interrupted else worst(statuses)


def _at_size(name: str, sizes: Mapping[str, Parameter]) -> str:
    said = ", ".join(f"{key}={value}" for key, value in sizes.items())
    return f"{name} at {said}" if said else name


def _written(found: Subject, asked: Asked) -> str:
    """The text that was asked for, of what was found."""
    language = cast("Language", asked.text)
    if asked.form is Form.function:
        # Here, not at the top: it runs kernels, and a search needs nothing of that.
        from warploom.pipeline.header import sketch_header

        return sketch_header(found, asked.layout).text(language, asked.command)
    return emit(with_notes(tiled(found, asked.layout).kernel, asked.command), language)


def _build(given: Input, asked: Asked, sizes: dict[str, Parameter]) -> Program | Traced:
    """The program, read as asked for, or the warp sketch."""
    program = given.build(sizes)
    if isinstance(program, Traced):
        return program
    program = as_published(program) if asked.published else program
    return program if asked.laws is None else with_laws(program, asked.laws)


def _unbuilt_text(stop: BaseException) -> str:
    if isinstance(stop, BudgetSpentError) and stop.needed is not None:
        return f"its sets would not fit: needs about {stop.needed:.0f} MB of memory"
    return f"{reason_of(stop).value} while its sets were built"


def _unbuilt(name: str, reason: Reason, asked: Asked) -> Record:
    """The record of a sketch whose sets already spend the budget."""
    return {
        "name": name,
        "goal": asked.goal or 1,
        "engine": asked.engine,
        "mode": asked.mode,
        "outcome": "undecided",
        "complete": False,
        "solutions": 0,
        "fills": [],
        "choices": [],
        "verdict": Verdict.UNKNOWN.value,
        "stopped": reason.value,
        "seconds": asked.seconds or 0.0,
        "cpu_seconds": time.process_time(),
        "states": 0,
        "peak_mb": round(peak_megabytes(), 1),
        "sizes": [],
    }


def _goals(program: Program, asked: int | None) -> list[int]:
    if asked is None:
        return list(range(len(program.goals)))
    if asked > len(program.goals):
        raise CheckError(f"the sketch has {len(program.goals)} goals, there is no goal {asked}")
    return [asked - 1]


def _show(name: str, result: Result, asked: Asked) -> None:
    echo(headline(name, result))
    for line in (*note_lines(result), *fill_lines(result, asked.limit)):
        echo(line)
    for line in stats_lines(result) if asked.stats else ():
        echo(line)


def _transfers(
    small: Result, programs: list[Program | Reason], asked: Asked, budget: Budget
) -> list[Result | None]:
    """Each with an equal part of what the search left of its budget; None where that was spent."""
    found: list[Result | None] = []
    wanted = list(zip(asked.transfers, programs, strict=True)) if len(small.fills) else []
    if note := several_targets(asked.transfers):
        echo(f"  {note}")
    for done, (sizes, program) in enumerate(wanted):
        label = ", ".join(f"{key}={value}" for key, value in sizes.items())
        large = _carried(small, program, budget.split(len(wanted) - done))
        if isinstance(large, Reason):
            echo(f"  not carried over to {label}: {large.value}")
            found.append(None)
            continue
        if isinstance(large.outcome, Found):
            echo(f"  carried over to {label}: {verdict_text(large)}")
            for line in fill_lines(large, min(1, asked.limit), indent="    "):
                echo(line)
        else:
            why = large.stopped.value if large.stopped else "no answer"
            echo(f"  not carried over to {label}: {why}")
        found.append(large)
    return found


def several_targets(transfers: Sequence[Mapping[str, Parameter]]) -> str:
    """Two --transfer are two sizes, each with the other parameters as --size has them; who names
    different parameters in them may have meant one."""
    if len({frozenset(each) for each in transfers}) < 2:
        return ""
    texts = [",".join(f"{key}={value}" for key, value in each.items()) for each in transfers]
    return (
        f"each --transfer is a target of its own, so there are {len(texts)}: {'; '.join(texts)}. "
        f"One with all of them is --transfer {','.join(texts)}"
    )


def _carried(small: Result, program: Program | Reason, budget: Budget) -> Result | Reason:
    if isinstance(program, Reason):
        return program
    try:
        with budget.governing():
            return transfer(small, program, budget=budget)
    except (BudgetSpentError, MemoryError) as stop:
        return reason_of(stop)


def _size_record(sizes: dict[str, Parameter], result: Result | None) -> Record:
    if result is None:
        return {"size": sizes, "verdict": Verdict.UNKNOWN.value, "fills": [], "choices": []}
    fills = [result.described(0)] if len(result.fills) else []
    choices = choices_of_fills(result, len(fills))
    return {"size": sizes, "verdict": result.verdict.value, "fills": fills, "choices": choices}


def _status(result: Result | None) -> Status:
    if result is None:
        return Status.UNDECIDED
    if isinstance(result.outcome, Found) and result.verdict is Verdict.REFUTED:
        return Status.IMPOSSIBLE
    return status_of(result.outcome)
