"""Where texts and records go: a file, or standard output for `-`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from warploom.cli.remembered import Answer
from warploom.errors import ParseError

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
    try:
        # Texts of others may hold bytes that are no UTF-8; they go out as they came.
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ParseError(f"cannot write '{file}': {error.strerror or error}") from None


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


def _check_writable(file: Path) -> None:
    folder = file.parent
    if file.is_dir():
        raise ParseError(f"cannot write '{file}': it is a folder")
    if not folder.is_dir():
        raise ParseError(f"cannot write '{file}': there is no folder '{folder}'")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise ParseError(f"cannot write '{file}': no permission")


@contextmanager
def kept_free(*files: Path | None) -> Iterator[None]:
    """If one of the files is standard output, what people read goes to standard error; a file that
    cannot be written is said before the work, not after it."""
    for file in files:
        if file is not None and file != STDOUT:
            _check_writable(file)
    taken = sum(file == STDOUT for file in files)
    if taken > 1:
        raise ParseError(
            "the text and the records both go to standard output",
            advice="give one of them a file",
        )
    if not taken:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield
