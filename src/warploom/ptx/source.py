"""From PTX back to what was compiled: the `.loc` that an instruction stands under, and its file.

A place in inlined code knows where it was inlined, outwards to the function of the kernel. Texts
are read only when something is to be shown.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from warploom.errors import (
    DeviceError,
    KernelError,
    LimitError,
    MalformedError,
    Source,
    Span,
    UnsupportedError,
    WarploomError,
)
from warploom.ptx.ir import Directive, Function, Module

Numbers = tuple[int, int, int]  # of a file, a line, a column
_HEADERS = ("cuda", "nvidia", "clang", "cccl")  # folders above an `include` of theirs
MOST_BYTES = 64 << 20  # of a text to show a line of


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A line of the text that was compiled; `inlined_at` is where the code around it was put."""

    file: str
    line: int
    column: int
    inlined_at: SourcePlace | None = None
    text: Source | None = None  # where it is no file
    is_named: bool = False  # the file is one that the user named

    @property
    def frames(self) -> tuple[SourcePlace, ...]:
        """From the innermost to the one in the kernel itself."""
        out: list[SourcePlace] = []
        place: SourcePlace | None = self
        while place is not None:
            out.append(place)
            place = place.inlined_at
        return tuple(out)

    @property
    def own(self) -> SourcePlace:
        """The innermost place that is the user's: not in a header or a module of a library.

        The file of the kernel itself is the user's, wherever it lies.
        """
        frames = self.frames
        return next(p for p in frames if p.file == frames[-1].file or not _is_library(p.file))

    @property
    def inner(self) -> tuple[SourcePlace, ...]:
        """What lies within the user's own place: code of libraries, the innermost first."""
        return self.frames[: self.frames.index(self.own)]

    @property
    def inner_words(self) -> str:
        return _chain(self.inner)

    @property
    def words(self) -> str:
        """The user's own place, outwards; what of a library it is in, in brackets."""
        return _chain(self.own.frames) + (f" (in {self.inner_words})" if self.inner else "")

    def span(self) -> Span | None:
        """The user's own place, outwards to the first file that can be read and has the line."""
        for place in self.own.frames:
            source = place.text or _read(place.file, place.is_named, _working_folder())
            if source is not None and source.has_line(place.line):
                line = source.line(place.line)
                column = min(max(1, place.column), len(line) + 1)
                word = re.match(r"\w*", line[column - 1 :])
                return Span(source, place.line, column, max(1, len(word[0]) if word else 1))
        return None


def _chain(places: Sequence[SourcePlace]) -> str:
    return ", inlined at ".join(f"{Path(p.file).name}:{p.line}" for p in places)


def _is_library(file: str) -> bool:
    """Installed packages of Python, and headers of CUDA and of compilers."""
    parts = PurePath(file).parts
    if not parts or parts[-1].startswith("__nv_nvrtc_builtin"):
        return True
    if {"site-packages", "dist-packages"} & set(parts):
        return True
    return "include" in parts and any(part.startswith(_HEADERS) for part in parts)


@lru_cache(maxsize=32)
def _read(file: str, is_named: bool, folder: str | None) -> Source | None:
    """A file that PTX names, if it may be shown and can be a source: no device, and not without
    end."""
    try:
        real = os.path.realpath(file)
        if not is_named and not _lies_in(real, folder):
            return None
        # It is looked at when it is open: a pipe that stands there now is not waited for.
        number = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(number, encoding="utf-8", errors="replace") as opened:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                return None
            return Source(file, opened.read())
    except (OSError, ValueError):
        return None


def _lies_in(real: str, folder: str | None) -> bool:
    """Whether a file is one of a folder, and of nothing hidden there. PTX may come from anywhere,
    and a report may go anywhere: no text may choose what of this machine is shown."""
    if folder is None or folder == os.path.dirname(folder):  # all of the machine
        return False
    try:
        inside = Path(real).relative_to(folder).parts
    except ValueError:
        return False
    return not any(part.startswith(".") for part in inside)


def _working_folder() -> str | None:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        return None


class SourceMap:
    """The places of a module's instructions; none where it was compiled without them."""

    def __init__(
        self, module: Module, texts: Mapping[str, str] | None = None, named: Collection[str] = ()
    ) -> None:
        """`texts` are those of files that are on no disk, by the names that the PTX gives them.
        Files that the user `named`, as whole paths, may be shown, and those under the working
        folder."""
        self._text = module.text
        self._sources = {name: Source(name, text) for name, text in (texts or {}).items()}
        self._files = {
            int(item.words[0]): item.words[1].strip('"')
            for item in module.directives
            if item.name == "file" and len(item.words) > 1 and item.words[0].isdigit()
        }
        self._named = {
            each for each in self._files.values() if each in named or _real(each) in named
        }
        self._functions = [f for f in module.functions if f.body is not None]  # as they stand
        self._begins = [f.body_start for f in self._functions]
        self._starts: dict[str, tuple[list[int], list[SourcePlace]]] = {}

    @contextmanager
    def shown(self, output: list[str]) -> Iterator[None]:
        """What a kernel does wrong is told in the words of its source, where that can be read."""
        try:
            yield
        except (LimitError, MalformedError, UnsupportedError) as error:
            raise self._told(error, type(error)) from None
        except DeviceError as error:
            known = error if isinstance(error, KernelError) else None
            told = self._told(error, KernelError if known is None else type(known))
            assert isinstance(told, KernelError)
            told.output = tuple(output)
            if known is not None:
                told.culprit, told.cause = known.culprit, known.cause
                told.manual, told.breaks = known.manual, known.breaks
            raise told from None

    def _told(self, error: WarploomError, kind: type[WarploomError]) -> WarploomError:
        place = None if error.span is None else self.at(error.span)
        if place is None or error.span is None:
            return kind(error.message, error.span, error.advice)
        span = place.span()
        if span is None:
            return kind(f"{error.message} (from {place.words})", error.span, error.advice)
        text = error.span.source.line(error.span.line).strip().rstrip(";")
        frames = place.frames
        outer = "" if len(frames) == 1 else f"; {place.words}"
        compiled = f"in {error.span.source.name}, line {error.span.line}: {text}{outer}"
        return kind(
            error.message, span, f"{error.advice}; {compiled}" if error.advice else compiled
        )

    def words(self, span: Span) -> str:
        """A place of the PTX as one says it: in lines of the source, where they are known."""
        place = self.at(span)
        return place.words if place else f"line {span.line}"

    def at(self, span: Span) -> SourcePlace | None:
        """Where the instruction at a place of the PTX comes from."""
        if span.source is not self._text.source or not self._files:
            return None
        offset = self._text.line_starts[span.line - 1] + span.column - 1
        at = bisect_right(self._begins, offset) - 1
        if at < 0 or offset >= self._functions[at].body_end:
            return None
        starts, places = self._places(self._functions[at])
        number = bisect_right(starts, offset)
        return places[number - 1] if number else None

    def _places(self, function: Function) -> tuple[list[int], list[SourcePlace]]:
        found = self._starts.get(function.name)
        if found is None:
            marks = [s for s in function.flat() if isinstance(s, Directive) and s.name == "loc"]
            read = [(mark.start, *_numbers(mark)) for mark in marks]
            # One function may be inlined in many places: what stands before tells in which of them.
            outer = {inner: place for _, inner, place in reversed(read) if place is not None}
            known = []
            for start, inner, place in read:
                if place is not None:
                    outer[inner] = place
                known.append((start, self._place(inner, place, outer)))
            kept = [(start, place) for start, place in known if place is not None]
            found = ([start for start, _ in kept], [place for _, place in kept])
            self._starts[function.name] = found
        return found

    def _place(
        self, at: Numbers, inlined: Numbers | None, outer: dict[Numbers, Numbers]
    ) -> SourcePlace | None:
        chain = [at]
        while inlined is not None and inlined not in chain:
            chain.append(inlined)
            inlined = outer.get(inlined)
        place: SourcePlace | None = None
        for file, line, column in reversed(chain):
            if file in self._files and line > 0:  # compilers say 0 where there is none
                name = self._files[file]
                text, is_named = self._sources.get(name), name in self._named
                place = SourcePlace(name, line, column, place, text, is_named)
        return place


def _real(file: str) -> str | None:
    try:
        return os.path.realpath(file)
    except (OSError, ValueError):  # no name of a file
        return None


def _numbers(mark: Directive) -> tuple[Numbers, Numbers | None]:
    """`.loc 2 107 3, function_name $name, inlined_at 1 38 5`"""
    words = [word for word in mark.words if word != ","]
    at = (int(words[0]), int(words[1]), int(words[2]))
    if "inlined_at" not in words:
        return at, None
    where = words[words.index("inlined_at") + 1 :][:3]
    return at, (int(where[0]), int(where[1]), int(where[2]))
