"""`warploom ptx shuffle` and `run`: shuffles into PTX; PTX without a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from warploom.cli.commands.ptx import Run, Shuffle, Volatile
from warploom.cli.declare import STDOUT, Context
from warploom.cli.guard import Status, complain, run
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.ptx_arguments import parse_variables, save_arrays
from warploom.cli.ptx_input import (
    finding,
    loaded,
    read_text,
    recorded,
    stopped,
)
from warploom.cli.ptx_launch import arrays_of, launch_of
from warploom.cli.say import echo
from warploom.errors import (
    KernelError,
    LimitError,
    OptionError,
    ParseError,
    UnsupportedError,
)
from warploom.machine.proof import Proof, Reach
from warploom.ptx.findings import proof_lines, proof_record, race_findings, rounding_note
from warploom.ptx.launch import Kernel, Report
from warploom.ptx.patience import left
from warploom.ptx.prove.certificate import certificate
from warploom.ptx.shuffle import KernelReport, Rewrite, check, confirm, rewrite
from warploom.search.outcome import Verdict

KIND = "ptx run"


def shuffle(asked: Shuffle, _context: Context) -> None:
    def action() -> Status:
        # What people read goes to standard error.
        records: list[dict[str, Any]] = []
        with kept_free(asked.json_file, asked.output or STDOUT, so_far=records):
            _check_apart(asked.source, asked.output)
            text = read_text(asked.source)
            done = rewrite(
                text,
                asked.source,
                select=asked.select,
                variant=asked.variant,
                limit=asked.limit,
                machine=asked.machine,
            )
            records += [{**kernel.as_record(), "checked": None} for kernel in done.kernels]
            for kernel in done.kernels:
                _say(kernel, asked.why)
        write(asked.output or STDOUT, done.text)
        with kept_free(asked.json_file, asked.output or STDOUT, so_far=records):
            checked = _check(text, done) if asked.check else None
        write_records(asked.json_file, [{**record, "checked": checked} for record in records])
        if asked.check and checked is None:
            return Status.UNDECIDED
        return Status.IMPOSSIBLE if checked is False else Status.FOUND

    run(action)


def _say(kernel: KernelReport, why: bool) -> None:
    if kernel.refusal:
        echo(f"{kernel.name}: left alone: {kernel.refusal}", err=True)
        return
    lanes = ", ".join(f"{lanes:+d}: {count}" for lanes, count in kernel.deltas.items())
    gain = f" (lane distance {lanes})" if lanes else "; no gain, kept"
    echo(
        f"{kernel.name}: {kernel.shuffles} shuffles for {kernel.loads} loads{gain}, "
        f"{kernel.seconds:.2f} s",
        err=True,
    )
    for one in kernel.candidates if why else ():
        mark = "+" if one.taken else "-"
        proof = f" [{one.proof}]" if one.proof else ""
        echo(f"  {mark} line {one.line}: {one.load}: {one.why}{proof}", err=True)


def _check_apart(source: str, output: Path | None) -> None:
    if output is None or STDOUT in (output, Path(source)):
        return
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise ParseError("the input is not overwritten", advice="give -o another name")


def _check(text: str, done: Rewrite) -> bool | None:
    """True: agrees, False: differs, None: of some kernel nothing could be run.

    Z3 is asked where it is there.
    """
    report = check(text, done.text, schedules=1)
    if report.mismatch is not None:
        echo(f"check: DIFFERENT: {report.mismatch}", err=True)
        return False
    ran = report.launches - report.skipped
    if ran:
        echo(f"check: {ran} launches agree byte for byte", err=True)
    for name in report.unseen:
        what = "no launch of the original ran through; nothing is shown"
        echo(f"check: {name}: {what}", err=True)
    refuted = _judge(done)
    if refuted:
        return False
    return True if report.agrees else None


def _judge(done: Rewrite) -> bool:
    """Whether Z3 refutes a shuffle."""
    try:
        verdicts = [verdict for each in confirm(done).values() for verdict in each]
    except UnsupportedError as error:
        echo(f"check: Z3 was not asked: {error.message}", err=True)
        return False
    proved = sum(verdict is Verdict.PROVED for verdict in verdicts)
    echo(f"check: Z3 proves {proved} of {len(verdicts)} shuffles", err=True)
    return any(verdict is Verdict.REFUTED for verdict in verdicts)


def run_kernel(asked: Run, context: Context) -> None:
    def action(findings: list[dict[str, Any]]) -> Status:
        if asked.save == STDOUT:
            raise ParseError("arrays do not go to standard output", advice="give --save a file")
        if asked.certificate is not None and not asked.prove:
            raise OptionError("--certificate is of a proof", advice="give --prove, too")
        with kept_free(asked.json_file, asked.save, asked.certificate):
            pass
        launch, variables = (
            launch_of(asked, asked.seed, context),
            parse_variables(asked.variable, asked.seed),
        )
        arrays = arrays_of(launch)
        before = {name: array.copy() for name, array in arrays.items()}
        record: dict[str, Any] = {}
        told: dict[str, Any] = {}
        lines: list[str] = []
        status = Status.FOUND
        try:
            name = asked.kernel or launch.kernel
            chosen, deadline = loaded(asked.source, asked.arch, name, asked.seconds, variables)
            report = chosen.launch(
                launch.grid, launch.block, launch.args, shared_bytes=launch.shared,
                races="all" if asked.races or asked.prove else False, benign=asked.benign,
                counters=asked.counters, prove=asked.prove,
                seconds=left(deadline), heap_bytes=asked.heap, cluster=launch.cluster,
                volatile="weak" if asked.volatile is Volatile.WEAK else "relaxed",
                model=asked.model.value, schedule=asked.schedule, explore=asked.explore,
            )  # fmt: skip
            record = _run_record(report, asked.counters)
            with kept_free(asked.json_file):
                _print_output(report.output)
            for each in race_findings(chosen.owner, report.races):
                counts = {"same_value": each.same_value, "pairs": each.pairs}
                findings.append(finding("race", each.error) | counts)
                complain(each.error)
            for race in report.rounding:
                echo(f"note: {rounding_note(chosen.owner, race)}", err=True)
            status = Status.IMPOSSIBLE if report.races else Status.FOUND
            if report.proof is not None:
                told |= {"proof": proof_record(chosen.owner, report.proof)}
                lines = proof_lines(chosen.owner, report.proof)
                _write_certificate(asked, (launch.grid, launch.block), chosen, report.proof)
                if not report.races and report.proof.reach is Reach.THIS_SCHEDULE:
                    status = Status.UNDECIDED
            if report.explored is not None:
                told |= {"explored": asdict(report.explored)}
                lines.append(report.explored.text)
        except KernelError as error:
            with kept_free(asked.json_file):
                _print_output(error.output)
            status = stopped(error, findings)
        except LimitError as error:
            status = stopped(error, findings)
        with kept_free(asked.json_file):
            _show_run(record, arrays)
            _print_output(f"{line}\n" for line in lines)
        if asked.save is not None:
            save_arrays(asked.save, arrays, before)
        told |= {"kind": KIND, "status": int(status), "findings": findings}
        write_records(asked.json_file, [record | told])
        return status

    recorded(action, asked.json_file, KIND)


def _write_certificate(
    asked: Run, shapes: tuple[Sequence[int], Sequence[int]], chosen: Kernel, proof: Proof
) -> None:
    """What was not proved leaves none."""
    if asked.certificate is None or proof.reach is Reach.THIS_SCHEDULE:
        return
    grid, block = ((*each, 1, 1)[:3] for each in shapes)
    record = certificate(chosen.name, grid, block, proof, chosen.registers(prod(block)))
    write_records(asked.certificate, [record], indent=None)


def _print_output(lines: Iterable[str]) -> None:
    for line in lines:
        echo(line, nl=False)


def _show_run(record: dict[str, Any], arrays: dict[str, Any]) -> None:
    for name, value in record.items():
        echo(f"{name}: {value}")
    for name, array in arrays.items() if record else ():
        echo(f"{name}: {np.array2string(array, threshold=16, edgeitems=4)}")


def _run_record(report: Report, counted: bool) -> dict[str, Any]:
    """What a launch did; figures that nobody asked for are left out, as they are not known."""
    return {
        "thread_instructions": report.thread_instructions,
        "seconds": round(report.seconds, 6),
        "engine": report.engine,
        "cores": report.cores,
        "fidelity": report.fidelity,
        **(_counted(report) if counted else {}),
        "mix": dict(sorted(report.mix.items(), key=lambda item: -item[1])),
    }


def _counted(report: Report) -> dict[str, int]:
    seen = report.counters
    return {
        "global_load_requests": seen.global_loads.requests,
        "global_load_sectors": seen.global_loads.sectors,
        "global_store_requests": seen.global_stores.requests,
        "global_store_sectors": seen.global_stores.sectors,
        "bank_conflicts": seen.shared.conflicts,
        "shuffles": seen.shuffles,
        "divergent_branches": seen.divergent_branches,
        "barriers": seen.barriers,
        "atomics": seen.atomics,
    }
