"""Where texts and records go: a file, or standard output for `-`."""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any, BinaryIO

import typer

from warploom.cli.remembered import Answer
from warploom.cli.streams import was_closed
from warploom.errors import ParseError
from warploom.search.budget import STOPS, reason_of
from warploom.search.outcome import NothingFoundError
from warploom.search.record import outcome_record

STDOUT = Path("-")

# The one option that every command has.
JSON: Any = typer.Option(
    None, "--json", metavar="FILE", help="Write a list of records; - is standard output."
)


def write(file: Path, text: str, answer: Answer | None = None) -> None:
    """The text goes to the file, and is noted in the answer that it is part of."""
    if answer is not None:
        answer.note(file, text)
    if file == STDOUT:
        sys.stdout.write(text)
        return
    with replacing(file) as opened:
        # Texts of others may hold bytes that are no UTF-8; they go out as they came.
        opened.write(text.encode("utf-8", "surrogateescape"))


def write_records(
    file: Path | None,
    records: Sequence[dict[str, Any]],
    indent: int | None = 1,
    answer: Answer | None = None,
) -> None:
    if file is not None:
        write(file, records_text(records, indent), answer)


def records_text(records: Sequence[dict[str, Any]], indent: int | None = 1) -> str:
    return json.dumps(records, indent=indent, ensure_ascii=False) + "\n"


# -- files -----------------------------------------------------------------------------------------


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of what was there when all of it is written. Pipes
    and devices, and files in folders that take no other, are written as they are."""
    try:
        if not _is_replaced(file):
            with file.open("wb") as opened:
                yield opened
            return
        target = Path(os.path.realpath(file))  # a link stays one
        beside = target.with_name(f".warploom-{secrets.token_hex(8)}")
        try:
            with beside.open("xb") as opened:
                _as_before(target, opened)
                yield opened
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise ParseError(f"cannot write '{file}': {error.strerror or error}") from None


def _is_replaced(file: Path) -> bool:
    """Whether another file may take its place: not that of a device, or of a descriptor that a
    shell opened (`/dev/stdout`)."""
    if not file.exists():
        return True
    target = Path(os.path.realpath(file))
    opened = {"/dev", "/proc"} & {str(each) for each in (*file.absolute().parents, *target.parents)}
    regular = stat.S_ISREG(file.stat().st_mode)
    return regular and not opened and os.access(target.parent, os.W_OK)


def _as_before(file: Path, opened: BinaryIO) -> None:
    """The mode, and if we may give it away the owner, of the file that is replaced."""
    with suppress(FileNotFoundError, PermissionError):
        before = file.stat()
        os.fchmod(opened.fileno(), stat.S_IMODE(before.st_mode))
        os.fchown(opened.fileno(), before.st_uid, before.st_gid)


def _check_writable(file: Path) -> None:
    """By trying: a folder may be on a file system that is only read, or that makes no files."""
    try:
        if file.is_dir():
            raise ParseError(f"cannot write '{file}': it is a folder")
        target = Path(os.path.realpath(file))
        if not file.exists() and not target.parent.is_dir():
            raise ParseError(f"cannot write '{file}': there is no folder '{target.parent}'")
        if file.exists() and not os.access(file, os.W_OK):
            raise ParseError(f"cannot write '{file}': no permission")
        if _is_replaced(file):
            with tempfile.TemporaryFile(dir=target.parent):
                pass
    except OSError as error:
        raise ParseError(f"cannot write '{file}': {error.strerror or error}") from None


def _check_apart(files: Sequence[Path]) -> None:
    taken: dict[str, Path] = {}
    for file in files:
        place = "-" if file == STDOUT else os.path.realpath(file)
        if place in taken and place == "-":
            raise ParseError(
                "the text and the records both go to standard output",
                advice="give one of them a file",
            )
        if place in taken and _is_replaced(file):
            raise ParseError(f"two outputs go to '{file}'", advice="give one of them another name")
        taken[place] = file


@contextmanager
def kept_free(
    json_file: Path | None,
    *files: Path | None,
    so_far: Sequence[dict[str, Any]] = (),
    begun: dict[str, Any] | None = None,
) -> Iterator[None]:
    """Around the work of a command. If one of the files is standard output, what people read goes
    to standard error. A file that cannot be written is said before the work, not after it. Where
    Ctrl-C or a lack of memory ends the work, the records `so_far` are written, and what is known
    of the one that was `begun`."""
    wanted = [file for file in (json_file, *files) if file is not None]
    for file in wanted:
        if file != STDOUT:
            _check_writable(file)
    _check_apart(wanted)
    free = STDOUT in wanted
    if free and was_closed(1):
        raise ParseError("cannot write to standard output: it is closed", advice="name a file")
    try:
        with redirect_stdout(sys.stderr) if free else nullcontext():
            yield
    except (*STOPS, NothingFoundError) as stop:
        last = {**(begun or {}), **_stopped(stop)}
        with suppress(ParseError):  # the stop is what is said
            write_records(json_file, [*so_far, last])
        raise


def _stopped(stop: BaseException) -> dict[str, Any]:
    """What a record says of work that came to no end, or to nothing."""
    if isinstance(stop, NothingFoundError):
        return outcome_record(stop.outcome)
    return {"outcome": "undecided", "stopped": reason_of(stop).value}
