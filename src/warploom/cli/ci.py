"""`warploom ci`: the checks of a project, each in a process of its own, and one answer for all."""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from warploom.agents.paths import Folder
from warploom.agents.tools import Call, call_of
from warploom.cli.commands.ci import Ci
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run, worst
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.sanitize_forms import location, result, results_of, sarif_of
from warploom.cli.say import echo
from warploom.errors import DeviceError, ParseError, WarploomError
from warploom.process import python_command, run_command

_TOOLS = ("sanitize", "judge")
_COMMAND = "from warploom.cli import main\nmain()"
_COMPILE_S = 120.0  # beside the time limit: compiling is not counted
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"
}  # fmt: skip
_STATUSES = {int(each) for each in Status}
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """One check of the list; `files` are patterns of what else it depends on."""

    call: Call
    source: str
    files: tuple[str, ...]

    def depends_on(self, changed: str) -> bool:
        return changed in self.call.files or any(fnmatchcase(changed, each) for each in self.files)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a check gave; `results` are SARIF's."""

    check: Listed
    status: Status
    results: list[Record]
    seconds: float

    @property
    def meaning(self) -> str:
        return self.check.call.tool.meanings.get(int(self.status), "internal error")


def ci(asked: Ci, _context: Context) -> None:
    def action() -> Status:
        with kept_free(asked.json_file, asked.sarif, asked.summary):
            checks = _listed(asked.checks, asked.seconds)
            changed = _changed(asked)
            if changed is not None and asked.checks.as_posix() not in changed:
                checks = [each for each in checks if any(map(each.depends_on, changed))]
            done = []
            for each in checks:
                done.append(_checked(each))
                echo(_line(done[-1]))
            if not checks:
                echo("no check has to run: none names a file that was changed")
        status = _status([each.status for each in done], asked.allow_undecided)
        _write(asked, done, status)
        return status

    run(action)


def _status(found: Sequence[Status], allow_undecided: bool) -> Status:
    status = worst(found)
    return Status.FOUND if allow_undecided and status is Status.UNDECIDED else status


# -- which checks ----------------------------------------------------------------------------------


def _listed(path: Path, seconds: float) -> list[Listed]:
    """The entries of the list, each with its number in what is wrong with it."""
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise ParseError(f"cannot read '{path}': {said}") from None
    entries = table.get("check")
    if not isinstance(entries, list) or not entries or set(table) != {"check"}:
        raise ParseError(f"'{path}' lists no checks", advice="begin each with [[check]]")
    folder = Folder(Path.cwd(), links=True)
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(_entry(entry, folder, seconds))
        except WarploomError as error:
            raise ParseError(
                f"check {number} of '{path}': {error.message}", advice=error.advice
            ) from None
    return found


def _entry(entry: Record, folder: Folder, seconds: float) -> Listed:
    given = dict(entry)
    tool, files = given.pop("tool", None), given.pop("files", [])
    if tool not in _TOOLS:
        raise ParseError("a check needs a tool", advice=f"tool = one of {', '.join(_TOOLS)}")
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        raise ParseError("'files' is to be a list of patterns", advice='["kernels/*.cuh"]')
    call = call_of(tool, {"seconds": seconds, **given}, folder, max(seconds, 3600.0))
    return Listed(call, str(given["kernel"]), tuple(files))


def _changed(asked: Ci) -> list[str] | None:
    """Files that were changed, as they are named from here; None if nobody says so."""
    listed = [Path(each).as_posix() for each in asked.files]
    if asked.changed is None:
        return listed or None
    try:
        text = asked.changed.read_bytes()
    except OSError as error:
        raise ParseError(f"cannot read '{asked.changed}': {error.strerror or error}") from None
    return listed + [Path(os.fsdecode(each)).as_posix() for each in _names(text)]


def _names(text: bytes) -> Iterator[bytes]:
    """Names of files as git lists them: each ends with a zero byte, or they are lines, of which odd
    ones are quoted."""
    if b"\0" in text:
        yield from (each for each in text.split(b"\0") if each)
        return
    for line in text.splitlines():
        name = line.strip()
        if len(name) > 1 and name.startswith(b'"') and name.endswith(b'"'):
            name = _ESCAPED.sub(_unescaped, name[1:-1])
        if name:
            yield name


def _unescaped(found: re.Match[bytes]) -> bytes:
    letter = found[1]
    return bytes([int(letter, 8)]) if letter[:1].isdigit() else _LETTERS.get(letter, letter)


# -- what they give --------------------------------------------------------------------------------


def _checked(check: Listed) -> Answered:
    began = time.monotonic()
    with TemporaryDirectory(prefix="warploom-") as folder:
        place = Path(folder, "found.sarif")
        command = python_command(_COMMAND, *check.call.words, f"--sarif={place}")
        try:
            ran = run_command(command, "the check", check.call.seconds * 2 + _COMPILE_S)
            status = Status(ran.returncode) if ran.returncode in _STATUSES else Status.INTERNAL
            said = ran.stderr
        except DeviceError as error:
            status, said = Status.UNDECIDED, str(error)
        results = results_of(place.read_text()) if place.exists() else []
    if status and not results:
        lines = said.strip().splitlines() or ["it ended, and said nothing"]
        results = [result({"message": lines[0], "advice": ""})]
    placed = [_placed(each, check.source) for each in results]
    return Answered(check, status, placed, time.monotonic() - began)


def _placed(found: Record, source: str) -> Record:
    """A result with a place, which code scanning needs, relative to the working folder."""
    if not found["locations"]:
        return {**found, "locations": [location({"file": source, "line": 1})]}
    physical = found["locations"][0]["physicalLocation"]
    file, here = Path(unquote(physical["artifactLocation"]["uri"])), Path.cwd()
    if file.is_absolute() and file.is_relative_to(here):
        near = location({"file": str(file.relative_to(here)), "line": 1})["physicalLocation"]
        physical = {**physical, "artifactLocation": near["artifactLocation"]}
    return {**found, "locations": [{"physicalLocation": physical}]}


def _write(asked: Ci, done: list[Answered], status: Status) -> None:
    if asked.sarif is not None:
        write(asked.sarif, sarif_of([each for d in done for each in d.results], int(status)))
    if asked.summary is not None:
        write(asked.summary, "\n".join(_table(done)) + "\n")
    write_records(asked.json_file, [_record(each) for each in done])


def _record(done: Answered) -> Record:
    return {
        "kind": "ci", "tool": done.check.call.tool.name, "source": done.check.source,
        "status": int(done.status), "meaning": done.meaning, "seconds": round(done.seconds, 2),
        "findings": [each["message"]["text"] for each in done.results],
    }  # fmt: skip


def _line(done: Answered) -> str:
    """In one line, whatever names and messages hold."""
    first = f": {_first(done.results)}" if done.results else ""
    return _plain(f"{done.check.source}: {done.check.call.tool.name}: {done.meaning}{first}")


def _table(done: Iterable[Answered]) -> Iterator[str]:
    yield from ("| kernel | check | answer | first finding | seconds |", "|---|---|---|---|---|")
    for each in done:
        first = _code(_first(each.results)) if each.results else ""
        source, tool = _code(each.check.source), each.check.call.tool.name
        yield f"| {source} | {tool} | {each.meaning} | {first} | {each.seconds:.1f} |"


def _plain(text: str) -> str:
    """Without what a terminal or a reader of logs takes for more than text."""
    return "".join(each if each.isprintable() else " " for each in text)


def _code(text: str) -> str:
    """A text in a cell of a table of Markdown, where nothing of it is Markdown."""
    inner = _plain(text).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", inner)), default=0) + 1)
    space = " " if inner[:1] in ("`", "") or inner[-1:] == "`" else ""
    return f"{fence}{space}{inner}{space}{fence}"


def _first(results: list[Record]) -> str:
    return str(results[0]["message"]["text"]).split("\n")[0][:160]
