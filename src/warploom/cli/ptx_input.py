"""PTX for the commands that run it: read from a file, or compiled from CUDA text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from warploom.cli.guard import Status, complain, run
from warploom.cli.output import write_records
from warploom.cli.seconds import seconds_of
from warploom.errors import DeadlockError, KernelError, LimitError, ParseError, WarploomError
from warploom.process import find_program
from warploom.ptx import Kernel, load
from warploom.ptx.patience import deadline_of, within
from warploom.runtime.compile import Compiler
from warploom.without_gpu.cuda_kernel import compiled_text

MOST_BYTES = 256 << 20
CUDA_ENDS = (".cu", ".cuh", ".cpp")


def read_text(path: str) -> str:
    """PTX from a file or, for -, from standard input."""
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise ParseError(f"cannot read '{path}': {said}") from None
    if len(data) > MOST_BYTES:
        raise ParseError(f"'{path}' is larger than {MOST_BYTES >> 20} MiB")
    # Bytes that are no UTF-8 survive the round trip unchanged.
    return data.decode("utf-8", "surrogateescape")


def ptx_of(source: str, arch: str) -> str:
    """PTX from a file; CUDA text is compiled, with its lines kept."""
    text = read_text(source)
    if not source.endswith(CUDA_ENDS):
        return text
    # nvcc knows the headers of the host, which CUDA text for a whole program may include.
    compiler: Compiler = "nvcc" if find_program("nvcc") else "auto"
    return compiled_text(text, str(Path(source).resolve()), arch, compiler=compiler)


def loaded(
    source: str, arch: str, kernel: str | None, seconds: float | None,
    variables: Mapping[str, Any] | None = None,
) -> tuple[Kernel, float | None]:  # fmt: skip
    """A kernel of a file, and when the time for it is over; compiling CUDA text is not counted.

    PTX that was made of CUDA text is called after it.
    """
    name = f"{source}, as PTX" if source.endswith(CUDA_ENDS) else source
    text = ptx_of(source, arch)
    deadline = deadline_of(None if seconds is None else seconds_of(seconds))
    with within(deadline, "reading the PTX"):
        chosen = load(text, name, named=[str(Path(source).resolve())]).kernel(kernel)
    for each, value in (variables or {}).items():
        chosen.owner.set_variable(each, value)
    return chosen, deadline


def finding(kind: str, error: WarploomError) -> dict[str, Any]:
    """What was found, for a program that reads it."""
    span = error.span
    place = {} if span is None else {"file": span.source.name, "line": span.line,
                                     "column": span.column}  # fmt: skip
    told: dict[str, Any] = {"kind": kind, "message": error.message, **place}
    told["advice"] = error.advice
    if isinstance(error, KernelError) and error.cause:
        told |= {"cause": error.cause, "manual": error.manual, "breaks": error.breaks}
    return told


def recorded(
    action: Callable[[list[dict[str, Any]]], Status], json_file: Path | None, kind: str,
    also: Callable[[Status, list[dict[str, Any]]], None] = lambda _status, _findings: None,
) -> None:  # fmt: skip
    """Runs a command, which is given the list of its findings; bad input leaves a record, too, and
    so does Ctrl-C. `also` writes the findings in other forms, however the command ends."""
    findings: list[dict[str, Any]] = []

    def record(status: Status) -> None:
        # What went wrong may be this very file, which has been said.
        with suppress(ParseError):
            told = {"kind": kind, "status": int(status), "findings": findings}
            write_records(json_file, [told])
            also(status, findings)

    def tell(error: WarploomError, status: Status) -> None:
        complain(error)
        findings.append(finding(_KINDS.get(status, "input"), error))
        record(status)

    def watched() -> Status:
        try:
            status = action(findings)
            also(status, findings)
            return status
        except KeyboardInterrupt:
            findings.append(finding("interrupted", WarploomError("interrupted")))
            record(Status.INTERRUPTED)
            raise

    run(watched, tell)


_KINDS = {Status.UNDECIDED: "limit", Status.INTERNAL: "internal"}


def stopped(error: KernelError | LimitError, findings: list[dict[str, Any]]) -> Status:
    """A launch that did not come to its end: said, noted, and the exit status for it."""
    complain(error)
    limit = isinstance(error, LimitError)
    stuck = "deadlock" if isinstance(error, DeadlockError) else "fault"
    findings.append(finding("limit" if limit else stuck, error))
    return Status.UNDECIDED if limit else Status.IMPOSSIBLE
