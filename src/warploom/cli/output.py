"""Where texts and records go: a file, or standard output for `-`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from warploom.errors import ParseError

STDOUT = Path("-")

# The one option that every command has.
JSON: Any = typer.Option(
    None, "--json", metavar="FILE", help="Write a list of records; - is standard output."
)


def write(file: Path, text: str) -> None:
    if file == STDOUT:
        sys.stdout.write(text)
        return
    try:
        # Texts of others may hold bytes that are no UTF-8; they go out as they came.
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ParseError(f"cannot write '{file}': {error.strerror or error}") from None


def write_records(
    file: Path | None, records: Sequence[dict[str, Any]], indent: int | None = 1
) -> None:
    if file is not None:
        write(file, records_text(records, indent))


def records_text(records: Sequence[dict[str, Any]], indent: int | None = 1) -> str:
    return json.dumps(records, indent=indent, ensure_ascii=False) + "\n"


@contextmanager
def kept_free(*files: Path | None) -> Iterator[None]:
    """If one of the files is standard output, what people read goes to standard error."""
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
