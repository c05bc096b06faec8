"""Where texts and records of a command go: a file, or standard output for `-`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from warploom.cli.declare import STDOUT
from warploom.cli.files import check_apart, check_writable, replacing
from warploom.cli.remembered import Answer
from warploom.cli.streams import was_closed
from warploom.errors import ParseError
from warploom.search.budget import STOPS, reason_of
from warploom.search.outcome import NothingFoundError
from warploom.search.outcome_json import outcome_record


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
            check_writable(file)
    check_apart(wanted)
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
