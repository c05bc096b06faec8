"""Loads sketches: `.swflow` text or a file comes in, a program with its gather sets comes out."""

from __future__ import annotations

from pathlib import Path

from warploom.errors import CheckError, ParseError, Source, Span, located
from warploom.sketch import holes
from warploom.sketch.term.check import load
from warploom.sketch.term.ir import Program
from warploom.sketch.term.limits import MAX_TEXT


@located
def load_text(text: str, name: str = "<text>") -> Program:
    """The program that a text means, or one located error. `name` is what errors call the text."""
    if not isinstance(text, str):
        raise CheckError(
            f"a sketch is a text, not {type(text).__name__}", advice="Sketch.from_file takes a path"
        )
    return load(text, name, holes)


@located
def load_file(path: str | Path) -> Program:
    """The program in a file; anything unreadable is a ParseError, too."""
    if not isinstance(path, str | Path):
        raise CheckError(
            f"a file is named by a text or a path, not by a {type(path).__name__}",
            advice="Sketch.from_text takes the sketch itself",
        )
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(4 * MAX_TEXT + 1)  # a character takes at most four bytes
    except OSError as error:
        raise ParseError(
            f"cannot read '{path}': {error.strerror or error}",
            advice="paths are relative to where the program runs",
        ) from None
    return load_bytes(data, str(path))


def load_bytes(data: bytes, name: str = "<stdin>") -> Program:
    """The program in the bytes of a file or a stream."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        source = Source(name, data[: error.start + 80].decode("utf-8", "replace"))
        raise ParseError(
            f"byte 0x{data[error.start]:02X} is not UTF-8",
            Span(source, line, column),
            "a sketch is plain UTF-8 text",
        ) from None
    return load_text(text, name)
