"""Answers that are kept: the same command of the same thing, the same answer.

It is looked for before anything large is imported, so that a repeated command answers at once. Only
whole answers are kept: nothing that a budget or Ctrl-C cut short, and nothing that was measured,
of which the tuner keeps its samples. What a Python file makes is not known by its text, as it may
import others: it is run, and the answer is looked for by what it made. What will come from standard
input is not known either. Whatever is wrong with the store or with a row of it is a warning, and
the command is run. Which files are written is said by the command of now, never by a row.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from warploom.cli.files import check_apart, check_writable, replacing
from warploom.errors import ParseError, WarploomError
from warploom.options import CUDA_LIBRARIES, from_environment
from warploom.search.storage.row import RowError, entries, text, whole
from warploom.search.storage.store import Forgiving, Json, Key, Store, users_store

# The commands, with the options whose answers are not kept: checks, what is measured, and what goes
# on from a file that it also writes.
KEPT = {
    "synth": (),
    "explore": ("--keep",),
    "map": ("--tune",),
    "layout solve": (),
    "layout convert": ("--check", "--tune"),
}
# Options whose values say where something goes, and nothing of what is computed.
_OUTPUTS = ("-o", "--json", "--certificate")
_PLACES = (*_OUTPUTS, "--store")
# Options that are no part of the question: who does it, and where it is kept.
_ASIDE = ("--processes", "--cluster", "--store")
_ONLY_BOUND = ("--model", "--explain", "--estimate", "--engine=exact")  # of explore


@dataclass(frozen=True, slots=True)
class Question:
    """All that an answer depends on, beside our sources; `is_open` until a file of the user's has
    said what it makes."""

    name: str
    content: Json
    label: str
    is_open: bool = False

    @property
    def key(self) -> Key:
        return Key(self.name.split()[0], {"name": self.name, **self.content}, "", self.label)

    def about(self, made: str) -> Question:
        """The question with what the user's file made as a part of it, no longer open."""
        return replace(self, content={**self.content, "made": made}, is_open=False)


@dataclass(slots=True)
class Answer:
    """What a command says of itself while it runs: may it be kept, and which files did it write?
    It may keep what it has so far in `store`."""

    store: Store | None = None
    whole: bool = False
    files: dict[str, str] = field(default_factory=dict)  # texts by path
    question: Question | None = None
    outputs: dict[str, Path] = field(default_factory=dict)  # options that name files to write
    kept: Again | None = None  # the answer of another time
    heard: tuple[Heard, ...] = ()

    def note(self, file: Path, text: str) -> None:
        """A file that was written; what went to standard output is heard there."""
        if str(file) != "-":
            self.files[str(file)] = text

    def made(self, value: object) -> None:
        """What the command is about, as a file of the user's made it. Ends the command if its
        answer is kept; so nothing may have been printed yet but by that file."""
        if self.store is None or self.question is None or not self.question.is_open:
            return
        # Here, not at the top: an answer that is known by its words needs none of it.
        from warploom.search.storage.content import content_digest

        found = content_digest(value)
        if found is None:
            return
        self.question = self.question.about(found)
        self.kept = self.store.get(self.question.key, partial(read_again, outputs=self.outputs))
        if self.kept is not None:
            raise SystemExit(0)
        for stream in self.heard:
            stream.parts.clear()  # the file itself says it again


@dataclass(frozen=True, slots=True)
class Again:
    """An answer that was kept: what is printed, and the text for each option that names a file."""

    status: int
    out: str
    err: str
    files: dict[str, str]


def read_again(kept: Json, outputs: Mapping[str, Path]) -> Again:
    """RowError for what is no answer, or has a text for a file that this command does not name."""
    status, out, err, files = entries(kept, "status", "out", "err", "files")
    if not isinstance(files, dict) or not set(files) <= set(outputs):
        raise RowError("is an answer with other files than are asked for")
    texts = {option: text(each) for option, each in files.items()}
    return Again(whole(status, 0, 1), text(out), text(err), texts)


def answer_of(given: object) -> Answer:
    """The one that was handed to a command; one of its own, if it was called in another way."""
    return given if isinstance(given, Answer) else Answer()


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


def kept_command(words: Sequence[str]) -> str | None:
    """The name of a command whose answers are kept, if these words begin with one."""
    names = (name for name in KEPT if list(words[: len(name.split())]) == name.split())
    return next(names, None)


def remembering(name: str, words: Sequence[str], command: Callable[[Answer], None]) -> None:
    """Gives the kept answer again, or runs the command, which exits, and keeps its answer."""
    named = _store_of(words)
    if named is None:
        command(Answer())
        return
    _check_not_output(named.path, outputs_of(words))
    store = Forgiving(named.path, warn)
    question = question_of(name, words)
    if question is None:
        command(Answer(store))
        return
    outputs = outputs_of(words)
    if not question.is_open:
        _give_again(store.get(question.key, partial(read_again, outputs=outputs)), outputs, store)
    with _heard() as heard:
        answer = Answer(store, question=question, outputs=outputs, heard=heard)
        try:
            command(answer)
            status: Any = 0
        except SystemExit as left:
            status = left.code
    if answer.kept is not None:
        _give_again(answer.kept, outputs, store)
        command(Answer(store))
    # Of a file that was changed meanwhile nobody knows which text was read.
    if status in (0, 1) and question_of(name, words) == question:
        _keep(answer, int(status or 0), store)
    raise SystemExit(status)


def _check_not_output(store: Path, outputs: Mapping[str, Path]) -> None:
    """Whoever writes an output there loses all that was kept."""
    for option, file in outputs.items():
        if os.path.realpath(file) == os.path.realpath(store):
            said = ParseError(f"{option} would write over the store '{store}'")
            sys.stderr.write(f"{said}\n")
            raise SystemExit(2)


def _keep(answer: Answer, status: int, store: Store) -> None:
    """Keeps an answer that is whole, to a question that is known."""
    out, err = answer.heard
    files = _by_option(answer.files, answer.outputs)
    if answer.whole and answer.question and not answer.question.is_open and files is not None:
        value = {"status": status, "out": out.text, "err": err.text, "files": files}
        store.put(answer.question.key, value)


def question_of(name: str, words: Sequence[str]) -> Question | None:
    """The words of the command, the bytes of the files that it names, and how it prints; None where
    these do not say what it computes."""
    glued = ["=".join(pair) for pair in pairwise(words)]
    said = {each.partition("=")[0] for each in words}
    if said & set(KEPT[name]) or (name == "explore" and _may_measure({*words, *glued}, said)):
        return None
    wanted = [word for word, option in _with_options(words, _PLACES) if option is None]
    if "-" in wanted:
        return None
    files: dict[str, str] = {}
    parts = [word.partition(mark)[2] for mark in "=@" for word in wanted]
    for name_of in [*wanted, *parts]:
        try:
            if Path(name_of).is_file():
                files[name_of] = hashlib.sha256(Path(name_of).read_bytes()).hexdigest()
            elif Path(name_of).exists() and not Path(name_of).is_dir():
                return None  # a pipe or a device: what will come is not known
        except (OSError, ValueError):  # too long for a name, or not to be read: no answer to keep
            return None
    terminal = [from_environment().color, sys.stdout.isatty(), sys.stderr.isatty()]
    told = _with_options(words, _ASIDE)
    asked = [word for word, option in told if option is None and word not in _ASIDE]
    content = {"words": asked, "files": files, "terminal": terminal, "solvers": _solvers()}
    is_open = not name.startswith("layout") and any("::" in word for word in wanted)
    label = " ".join([name, *words]).encode("utf-8", "backslashreplace").decode()
    return Question(name, content, label, is_open)


def _solvers() -> list[str]:
    """The extras that are there: with one more, more is decided."""
    return [name for name in ("ortools", "z3") if find_spec(name) is not None]


def _may_measure(words: set[str], options: set[str]) -> bool:
    """Whether `explore` may time what it finds, here or on a cluster."""
    if words & set(_ONLY_BOUND):
        return False
    return "--cluster" in options or _has_driver()


def _has_driver() -> bool:
    import ctypes  # here: nobody else needs it

    for name in CUDA_LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def _with_options(words: Sequence[str], options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each word, and which of these options it is the value of; `--json=FILE` and `-oFILE` are."""
    option: str | None = None
    for word in words:
        if option is not None:
            yield word, option
            option = None
            continue
        option = word if word in options else None
        yield (
            word,
            None
            if option is not None
            else next((each for each in options if word.startswith(_glue(each))), None),
        )


def _glue(option: str) -> str:
    """How a word begins that is an option with its value."""
    return f"{option}=" if option.startswith("--") else option


def _value(word: str, option: str) -> str:
    return word.removeprefix(_glue(option))


def outputs_of(words: Sequence[str]) -> dict[str, Path]:
    """The files that a command is to write, by the options that name them; the last one counts."""
    named = _with_options(words, _OUTPUTS)
    places = {option: _value(word, option) for word, option in named if option is not None}
    return {option: Path(place) for option, place in places.items() if place != "-"}


def _by_option(files: Mapping[str, str], outputs: Mapping[str, Path]) -> dict[str, str] | None:
    """The texts of files by the options that named them; None if one has no such option."""
    options = {str(place): option for option, place in outputs.items()}
    if not set(files) <= set(options):
        return None
    return {options[file]: text for file, text in files.items()}


def _store_of(words: Sequence[str]) -> Store | None:
    """The store that the command names, or the user's; none if it says so, or is only read."""
    if {"--no-store", "-h", "--help"} & set(words):
        return None
    named = [_value(word, each) for word, each in _with_options(words, ("--store",)) if each]
    return Store(named[-1]) if named else users_store()


def _give_again(kept: Again | None, outputs: Mapping[str, Path], store: Store) -> None:
    """Ends with the kept answer; if there is none, or a file cannot be written, or is that of
    another output, which the command will say, it is not given."""
    if kept is None:
        return
    try:
        for file in outputs.values():
            check_writable(file)
        check_apart([*outputs.values()])
        for option, said in kept.files.items():
            with replacing(outputs[option]) as opened:
                opened.write(said.encode("utf-8", "surrogateescape"))
    except (ParseError, ValueError):
        return
    sys.stdout.write(kept.out)
    sys.stderr.write(kept.err)
    sys.stderr.write(f"(from the store '{store.path}'; --no-store searches again)\n")
    raise SystemExit(kept.status)


@contextmanager
def _heard() -> Iterator[tuple[Heard, Heard]]:
    before = sys.stdout, sys.stderr
    out, err = Heard(sys.stdout), Heard(sys.stderr)
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr = before


def warn(error: WarploomError) -> None:
    """What is wrong with a store, or with a row of it."""
    sys.stderr.write(f"warning: {error}\n")
