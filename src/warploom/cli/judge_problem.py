"""`warploom judge --problem`: candidates beside a problem that a benchmark states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warploom.cli.commands.judge import Judge
from warploom.cli.declare import Context
from warploom.cli.guard import Status, attempt, check_meant, complain, worst
from warploom.cli.judge import KIND, STATUS, findings_of, parse_shape_sizes
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.ptx_input import finding, recorded
from warploom.cli.sanitize_forms import Sanitized, junit, sarif
from warploom.cli.say import echo
from warploom.errors import ParseError, WarploomError
from warploom.problems.flashinfer import asked_of_definition
from warploom.problems.kernelbench import asked as asked_of_problem
from warploom.verdict.answer import Judgement
from warploom.verdict.precision import Limits

_ENDS = {".py": (".py",), ".json": (".cu", ".ptx")}  # of candidates, by the problem's own


def judge_problem(asked: Judge, problem: Path, context: Context) -> None:
    def action(findings: list[dict[str, Any]]) -> Status:
        given = ("reference", "arg", "launch", "variable", "counterexample", "cluster", "pattern")
        check_meant(context, given, "beside --problem")
        if problem.suffix == ".py":
            own = ("grid", "block", "shared", "kernel")
            check_meant(context, own, "where candidates launch themselves")
            check_meant(context, ("others", "general"), "for a problem, which has one shape")
        if problem.suffix not in _ENDS:
            advice = "give KernelBench's FILE.py or a definition, FILE.json"
            raise ParseError(f"'{problem}' is no problem", advice=advice)
        rows: list[tuple[Path, Status, str]] = []
        records: list[dict[str, Any]] = []
        with kept_free(asked.json_file, asked.sarif, asked.junit, so_far=records):
            several = Path(asked.source).is_dir()
            for candidate in _candidates(Path(asked.source), problem):
                status, said = _tried(asked, problem, candidate, findings, records)
                rows.append((candidate, status, said))
                if not several:
                    echo(said)
            if several:
                echo("\n".join(_table(rows)))
        write_records(asked.json_file, records)
        return worst([status for _, status, _ in rows])

    def also(status: Status, findings: list[dict[str, Any]]) -> None:
        answer = Sanitized(asked.source, (KIND,), int(status), findings, "warploom judge")
        if asked.sarif is not None:
            write(asked.sarif, sarif(answer))
        if asked.junit is not None:
            write(asked.junit, junit(answer))

    recorded(action, asked.json_file, KIND, also)


def _tried(
    asked: Judge, problem: Path, candidate: Path, findings: list[dict[str, Any]],
    records: list[dict[str, Any]],
) -> tuple[Status, str]:  # fmt: skip
    """One candidate; what is wrong with it does not end the others."""
    said: list[str] = []

    def work() -> Status:
        found = _judged(asked, problem, candidate)
        status = STATUS[found.verdict]
        said.append(str(found))
        findings.extend(findings_of(found))
        records.append({**found.record(), "status": int(status), "candidate": str(candidate)})
        return status

    def tell(error: WarploomError, status: Status) -> None:
        complain(error)
        said.append(error.message)
        told = finding("input", error)
        findings.append(told)
        records.append(
            {"kind": KIND, "status": int(status), "findings": [told], "candidate": str(candidate)}
        )

    return attempt(work, tell), said[0]


def _judged(asked: Judge, problem: Path, candidate: Path) -> Judgement:
    sizes = parse_shape_sizes(asked.shape)
    limits = Limits.of(asked.precision, asked.accumulate, asked.ulps)
    if problem.suffix == ".json":
        question = asked_of_definition(
            problem, candidate, sizes, (asked.grid, asked.block, asked.shared), asked.kernel,
            asked.arch, asked.seconds,
        )  # fmt: skip
        return question.judged(
            asked.seconds, asked.seed, limits, asked.others, asked.general, asked.performance
        )
    single = {name: values[0] for name, values in sizes.items() if len(values) == 1}
    if len(single) < len(sizes):
        raise ParseError(
            "a problem is judged at one shape", advice="give one value of each --shape"
        )
    question = asked_of_problem(problem, candidate, single, asked.arch, asked.seconds)
    return question.judged(asked.seconds, asked.seed, limits, performance=asked.performance)


def _candidates(source: Path, problem: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    ends = _ENDS[problem.suffix]
    found = sorted(each for each in source.iterdir() if each.suffix in ends and each != problem)
    if not found:
        raise ParseError(f"'{source}' has no candidates", advice=f"files with {', '.join(ends)}")
    return found


def _table(rows: list[tuple[Path, Status, str]]) -> Iterator[str]:
    """A line for each candidate: its verdict, and the first reason."""
    names = {status: verdict for verdict, status in STATUS.items()}
    wide = max(len(each.name) for each, _, _ in rows)
    for each, status, said in rows:
        lines = said.splitlines()
        reason = "" if status is Status.FOUND else next((x.strip() for x in lines[2:]), lines[0])
        verdict = names.get(status, "not judged")
        yield f"{each.name:<{wide}}  {verdict:<10}  {reason}".rstrip()
