"""`warploom sanitize`: launches with the checks of the chosen tools, and what they found."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from warploom.choices import TOOLS
from warploom.cli.commands.ptx import Launched
from warploom.cli.commands.sanitize import PrintedForm, Sanitize
from warploom.cli.declare import Context
from warploom.cli.guard import Status, check_meant, complain
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.ptx_arguments import parse_variables
from warploom.cli.ptx_input import finding, loaded, recorded
from warploom.cli.ptx_launch import launch_of
from warploom.cli.sanitize_forms import Sanitized, junit, printed, sarif
from warploom.cli.say import echo
from warploom.errors import (
    DeadlockError,
    KernelError,
    LimitError,
    ParseError,
    Span,
    WarploomError,
    one_of,
    raising_line,
)
from warploom.machine.report import number_of
from warploom.ptx.patience import left
from warploom.without_gpu.watching import Finding, Watch, watched

KIND = "sanitize"


def sanitize(asked: Sanitize, context: Context) -> None:
    watch = Watch()

    def action(findings: list[dict[str, Any]]) -> Status:
        with kept_free(asked.json_file, asked.sarif, asked.junit):
            pass
        watch.tools, watch.strict = _tools(asked.tool), asked.strict
        watch.model = asked.model.value
        with kept_free(asked.json_file, asked.sarif, asked.junit):
            failed: WarploomError | None = None
            if asked.source.endswith(".py"):
                failed = _script(asked, context, watch)
            else:
                _kernel(asked, context, watch)
            findings += [_record(each) for each in watch.findings]
            findings += [finding("stopped", each) for each in watch.unseen]
            _say(asked, watch, findings)
        if failed is not None:
            complain(failed)
            findings.append(finding("script", failed))
        status = _status(watch, failed)
        record = {
            "kind": KIND, "status": int(status), "source": asked.source,
            "tools": list(watch.tools), "launches": watch.launches, "findings": findings,
            "fidelity": list(dict.fromkeys(each.fidelity for each in watch.reports)),
        }  # fmt: skip
        write_records(asked.json_file, [record])
        return status

    def also(status: Status, findings: list[dict[str, Any]]) -> None:
        answer = Sanitized(asked.source, tuple(watch.tools), int(status), findings)
        if asked.sarif is not None:
            write(asked.sarif, sarif(answer))
        if asked.junit is not None:
            write(asked.junit, junit(answer))

    recorded(action, asked.json_file, KIND, also)


def _tools(text: str) -> tuple[str, ...]:
    """The chosen tools, in the order of the list."""
    words = [each.strip() for each in text.split(",")]
    for word in words:
        if word not in TOOLS:
            raise ParseError(f"'{word[:40]}' is no tool", advice=one_of(word, TOOLS))
    return tuple(each for each in TOOLS if each in words)


def _status(watch: Watch, failed: WarploomError | None) -> Status:
    if watch.findings:
        return Status.IMPOSSIBLE
    if failed is not None:
        return Status.BAD_INPUT
    return Status.UNDECIDED if watch.unseen else Status.FOUND


def _record(found: Finding) -> dict[str, Any]:
    """A finding for a program that reads it."""
    error = found.error
    kind = "deadlock" if isinstance(error, DeadlockError) else "fault"
    record = finding("race" if found.tool == "racecheck" else kind, error)
    record |= {"tool": found.tool, "kernel": found.kernel, "pairs": found.pairs}
    if error.culprit is not None:
        who = error.culprit
        record |= {"by": who.where, "space": who.space, "writes": who.writes, "bytes": who.size}
    if found.tool == "racecheck":
        span, writes = found.other, {"writes": found.other_writes}
        place = {} if span is None else {"file": span.source.name, "line": span.line}
        record["other"] = place | writes
    return record


def _say(asked: Sanitize, watch: Watch, findings: list[dict[str, Any]]) -> None:
    for line in watch.output:
        echo(line, nl=False)
    if asked.form is PrintedForm.SANITIZER:
        echo(printed(Sanitized(asked.source, tuple(watch.tools), 0, findings)), nl=False)
        return
    for each in watch.findings:
        complain(each.error)
    for stop in watch.unseen:
        complain(stop)
        echo("  the launch ended here, so the chosen tools did not see the rest of it", err=True)
    count = len(watch.findings)
    told = number_of(count, "finding") if count else "nothing found"
    for line in dict.fromkeys(each.fidelity for each in watch.reports):
        echo(f"fidelity: {line}")
    echo(f"{', '.join(watch.tools)}: {told} in {number_of(watch.launches, 'launch', 'es')}")


# -- a kernel of a file ----------------------------------------------------------------------------


def _kernel(asked: Sanitize, context: Context, watch: Watch) -> None:
    """One launch; what ends it is noted in the watch."""
    if asked.run:
        raise ParseError("--run is for a .py script", advice="leave it out")
    launch = launch_of(asked, asked.seed, context)
    variables = parse_variables(asked.variable, asked.seed)
    name = asked.kernel or launch.kernel
    kernel, deadline = loaded(asked.source, asked.arch, name, asked.seconds, variables)
    with suppress(KernelError, LimitError):
        watch.launch(
            kernel,
            lambda: kernel.launch(
                launch.grid, launch.block, launch.args, shared_bytes=launch.shared,
                seconds=left(deadline), cluster=launch.cluster, **watch.options,
            ),
        )  # fmt: skip


# -- a script --------------------------------------------------------------------------------------

_BY_SCRIPT = "for a script, which launches its kernels itself"


def _script(asked: Sanitize, context: Context, watch: Watch) -> WarploomError | None:
    """Runs a script as its user would; gives what is wrong with the script itself."""
    if not asked.run:
        raise ParseError(
            f"'{asked.source}' is a Python script, which is not run unless you say so",
            advice="add --run; the script runs with your rights, as 'python FILE.py' does",
        )
    names = {each.name for each in fields(Launched)} | {"seed", "seconds", "arch"}
    check_meant(context, names - {"source"}, _BY_SCRIPT)
    path = Path(asked.source)
    if not path.is_file():
        raise ParseError(f"cannot read '{path}': there is no such file")
    with watched(watch), _as_main(path):
        failed = _run(path, watch)
    if failed is None and not watch.launches:
        advice = "launch kernels with warploom.emulate(kernel)[grid](…)"
        return ParseError(f"'{path}' launched no kernel on the emulator", advice=advice)
    return failed


def _run(path: Path, watch: Watch) -> WarploomError | None:
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as left_:
        if left_.code in (None, 0):
            return None
        return WarploomError(f"the script ended with exit status {left_.code}")
    except Exception as error:  # noqa: BLE001  # whatever somebody's script raises
        noted = [*(each.error for each in watch.findings), *watch.unseen]
        if any(error is each for each in noted):
            return None
        return WarploomError(
            f"the script ended with {type(error).__name__}: {str(error)[:400]}",
            _line_of(error, path),
        )
    return None


def _line_of(error: Exception, path: Path) -> Span | None:
    return raising_line(error, str(path))


@contextmanager
def _as_main(path: Path) -> Iterator[None]:
    """What a script finds: its own name among the words, and its folder first among modules."""
    words, folders = sys.argv, list(sys.path)
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = words, folders
