"""Answers of `warploom synth` that are kept: the same command and sketch, the same answer.

It is looked for before anything large is imported, so that a repeated command answers at once. Only
whole answers are kept: nothing that a budget or Ctrl-C cut short. What a Python file does is not
known by its text, nor what will come from standard input: those are searched every time. Whatever
is wrong with the store is a warning, and the command is run.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warploom.errors import WarploomError
from warploom.options import from_environment
from warploom.search.store import Forgiving, Key, Store, users_store

KIND = "synth"
# Options whose values say where something goes, and nothing of what is computed.
_PLACES = ("-o", "--json", "--store", "--certificate")
_WHO = ("--processes", "--cluster")  # does it; the answer is the same


@dataclass(slots=True)
class Answer:
    """What a command says of itself while it runs: may it be kept, and which files did it write?
    It may keep what it has so far in `store`."""

    store: Store | None = None
    whole: bool = False
    files: dict[str, str] = field(default_factory=dict)

    def note(self, file: Path, text: str) -> None:
        """A file that was written; what went to standard output is heard there."""
        if str(file) != "-":
            self.files[str(file)] = text


class Heard(io.TextIOBase):
    """Standard output or error, which is written on and remembered."""

    def __init__(self, behind: Any) -> None:
        self.behind = behind
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.behind.write(text)
        self.parts.append(text)
        return len(text)

    def flush(self) -> None:
        self.behind.flush()

    def isatty(self) -> bool:
        return bool(self.behind.isatty())

    def fileno(self) -> int:
        return int(self.behind.fileno())

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self.behind.encoding)

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return str(self.behind.errors)

    @property
    def text(self) -> str:
        return "".join(self.parts)


def remembering(words: Sequence[str], command: Callable[[Answer], None]) -> None:
    """Gives the kept answer again, or runs the command, which exits, and keeps its answer."""
    named = _store_of(words)
    if named is None:
        command(Answer())
        return
    store = Forgiving(named.path, _warn)
    key = key_of(words)
    answer = Answer(store)
    if key is None:
        command(answer)
        return
    kept = store.get(key)
    if kept is not None and _repeat(kept, store):
        raise SystemExit(int(kept["status"]))
    with _heard() as (out, err):
        try:
            command(answer)
            status: Any = 0
        except SystemExit as left:
            status = left.code
    if answer.whole and status in (0, 1):
        value = {"status": status, "out": out.text, "err": err.text, "files": answer.files}
        store.put(key, value)
    raise SystemExit(status)


def key_of(words: Sequence[str]) -> Key | None:
    """By the words of the command, the bytes of the files that it names, and how it prints; None
    where these do not say what it computes."""
    wanted = [word for word, is_place in _with_options(words, _PLACES) if not is_place]
    if any("::" in word or word == "-" for word in wanted):
        return None
    files: dict[str, str] = {}
    for word in wanted:
        try:
            if Path(word).is_file():
                files[word] = hashlib.sha256(Path(word).read_bytes()).hexdigest()
        except (OSError, ValueError):  # too long for a name, or not to be read: no answer to keep
            return None
    manner = [from_environment().color, sys.stdout.isatty(), sys.stderr.isatty()]
    asked = [word for word, is_who in _with_options(words, _WHO) if not is_who and word not in _WHO]
    content = {"words": asked, "files": files, "manner": manner}
    return Key(KIND, content, "", " ".join(["synth", *words]))


def _with_options(words: Sequence[str], options: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each word, and whether it is the value of one of these options."""
    before = ""
    for word in words:
        glued = word.startswith(tuple(f"{each}=" for each in options))
        yield word, before in options or glued
        before = word


def _store_of(words: Sequence[str]) -> Store | None:
    """The store that the command names, or the user's; none if it says so, or is only read."""
    if {"--no-store", "-h", "--help"} & set(words):
        return None
    for before, word in zip(["", *words], words, strict=False):
        if before == "--store":
            return Store(word)
        if word.startswith("--store="):
            return Store(word.removeprefix("--store="))
    return users_store()


def _repeat(kept: dict[str, Any], store: Store) -> bool:
    """Whether the answer could be given; if a file cannot be written, the command says it."""
    try:
        for name, text in kept["files"].items():
            Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError:
        return False
    sys.stdout.write(kept["out"])
    sys.stderr.write(kept["err"])
    sys.stderr.write(f"(from the store '{store.path}'; --no-store searches again)\n")
    return True


@contextmanager
def _heard() -> Iterator[tuple[Heard, Heard]]:
    before = sys.stdout, sys.stderr
    out, err = Heard(sys.stdout), Heard(sys.stderr)
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr = before


def _warn(error: WarploomError) -> None:
    advice = f"\n  {error.advice}" if error.advice else ""
    sys.stderr.write(f"warning: {error.message}; the answer is not kept{advice}\n")
