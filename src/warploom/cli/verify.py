"""`warploom verify`: checks a certificate without the search that wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warploom.cli.commands.verify import Verify
from warploom.cli.declare import Context
from warploom.cli.guard import Status, complain, run, worst
from warploom.cli.output import kept_free, write_records
from warploom.cli.say import echo
from warploom.errors import CheckError, ParseError
from warploom.trust.fill import check_fill
from warploom.trust.impossible import check_impossible
from warploom.trust.kernel import check_kernel
from warploom.trust.layout_text import check_layout_and_text
from warploom.trust.reading import read_certificates
from warploom.trust.schedule import check_schedule
from warploom.trust.tiles import check_tiles

MOST_BYTES = 256 << 20
CHECKERS = {
    "fill": check_fill,
    "impossible": check_impossible,
    "kernel": check_kernel,
    "layout": check_layout_and_text,
    "schedule": check_schedule,
    "tiles": check_tiles,
}


def verify(asked: Verify, _context: Context) -> None:
    def action() -> Status:
        told: list[dict[str, Any]] = []
        with kept_free(asked.json_file, so_far=told):
            statuses = [status for file in asked.files for status in _checked_file(file, told)]
        write_records(asked.json_file, told)
        return worst(statuses)

    run(action)


def _checked_file(file: Path, told: list[dict[str, Any]]) -> list[Status]:
    listed = records(file)
    statuses = [checked(file, each, told) for each in listed]
    if Status.IMPOSSIBLE not in statuses:
        say_missing(file, listed)
    return statuses


def records(file: Path) -> list[dict[str, Any]]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParseError(f"cannot read '{file}': {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ParseError(f"{file} is larger than {MOST_BYTES} bytes")
    return read_certificates(data, str(file))


def checked(file: Path, record: dict[str, Any], told: list[dict[str, Any]]) -> Status:
    """Whether one certificate holds; what is said of it is told as a record, too."""
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in CHECKERS:
        raise ParseError(f"{file}: no certificate is of the kind {str(kind)[:40]!r}")
    try:
        found = CHECKERS[kind](record)
    except CheckError as error:
        why = _plain(error.message)
        complain(CheckError(f"{_plain(str(file))}: {why}", error.span, error.advice))
        told.append({"file": str(file), "kind": kind, "verdict": "refuted", "why": why})
        return Status.IMPOSSIBLE
    shown, not_covered = ([*map(_plain, each)] for each in (found.shown, found.not_covered))
    uncovered = [f"not covered: {', '.join(not_covered)}"] if not_covered else []
    for line in (*shown, *uncovered):
        echo(f"{_plain(str(file))}: {line}")
    verdict = "unknown" if found.open else "proved"
    told.append({"file": str(file), "kind": kind, "verdict": verdict, "shown": shown})
    told[-1]["not_covered"] = not_covered
    if found.open:
        told[-1]["open"] = found.open
        echo(_plain(f"{file}: open: {found.open}"))
    return Status.UNDECIDED if found.open else Status.FOUND


def _plain(text: str) -> str:
    """As one line: a name in a certificate may hold anything, but no lines of its own, nor half of
    a character, which no file takes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def say_missing(file: Path, listed: list[dict[str, Any]]) -> None:
    """Prints which goals of sketches with several goals have no certificate in the file."""
    there: dict[tuple[str, str, int], set[int]] = {}
    for record in listed:
        of_goal = record["kind"] in ("fill", "impossible")
        goal = record["goal"] if of_goal else {"of": 1, "number": 1}
        key = str(record.get("name")), str(record.get("size")), goal["of"]
        there.setdefault(key, set()).add(goal["number"])
    for (name, _, count), found in there.items():
        missing = ", ".join(str(n) for n in range(1, min(count, 99) + 1) if n not in found)
        if missing:
            echo(_plain(f"{file}: no certificate here of goal {missing} of {name!r}"))
