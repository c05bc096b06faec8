"""The one exception family: every error says what is wrong, where, and what to do about it.

Library code raises; only the command line prints and exits.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, wraps
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    """Asked for again and again, as a report shows many lines of one text."""
    return tuple(text.split("\n"))


@dataclass(frozen=True, slots=True)
class Source:
    """A named text, so that a place in it can be shown."""

    name: str
    text: str = field(repr=False)

    def has_line(self, number: int) -> bool:
        return 1 <= number <= len(_lines(self.text))

    def line(self, number: int) -> str:
        lines = _lines(self.text)
        return lines[number - 1] if 1 <= number <= len(lines) else ""

    def at(self, start: int, length: int = 1) -> Span:
        """The place of a letter, by its number in the text."""
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        return Span(self, line, column, max(1, length))


@dataclass(frozen=True, slots=True)
class Span:
    """A run of characters on one line of a source; lines and columns count from 1."""

    source: Source
    line: int
    column: int
    length: int = 1


class WarploomError(Exception):
    """Base of all errors. `span` is the place, `advice` one sentence on what to do.

    >>> import warploom
    >>> try:
    ...     warploom.Sketch.from_text("x: [4] = range(0, 4)\\ny: [4] = rotz(x)", "a.swflow")
    ... except warploom.WarploomError as error:
    ...     print(error)
    a.swflow:2:10: unknown function 'rotz'
        2 | y: [4] = rotz(x)
          |          ^^^^
      did you mean 'rots'?
    """

    def __init__(self, message: str, span: Span | None = None, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.advice = advice

    def __str__(self) -> str:
        return render(self)


class ParseError(WarploomError):
    """The text is not in the language."""


class CheckError(WarploomError):
    """The text is in the language, but the program is not well formed."""


class OptionError(CheckError):
    """One option of a call is wrong; `option` is its name, by which its place is found."""

    def __init__(
        self, message: str, span: Span | None = None, advice: str = "", option: str = ""
    ) -> None:
        super().__init__(message, span, advice)
        self.option = option


class OperandError(CheckError):
    """An operator that is not for every number, and nothing shows that it gets no other."""


class UnsupportedError(WarploomError):
    """A construct, target or extra that is not there; the advice names the nearest that is."""


class NoKernelError(UnsupportedError, AttributeError):
    """A result that has no kernel; `hasattr(result, "kernel")` is false then."""


class AbsentError(UnsupportedError):
    """A device, compiler or library that this machine does not have: nothing is said of a kernel
    that was to run there. Checks leave it out and name it."""


class SearchError(WarploomError):
    """A search cannot be run as asked."""


class EmitError(WarploomError):
    """A kernel cannot be written in the asked language."""


class DeviceError(WarploomError):
    """Compiling, launching or running failed, or the arguments of a launch do not fit."""


class GoneError(DeviceError):
    """Whoever did the work is gone, which says nothing of the work."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """Who did something wrong: `where` in words; of a memory access also what it touches."""

    where: str  # block (1,0,0), thread (3,0,0)
    space: str = ""  # global, shared, local, …
    writes: bool = False
    size: int = 0  # bytes


class KernelError(DeviceError):
    """A kernel did something wrong while it ran; `output` is what it had printed by then."""

    output: tuple[str, ...] = ()
    culprit: Culprit | None = None
    cause: str = ""  # what is missing, where that is known: proxy, scope, wait, …
    manual: str = ""  # the section of the PTX manual about it
    breaks: bool = True  # false of what the manual forbids, and all GPUs do right


class RaceError(KernelError):
    """Two threads touch one place, one of them writes, and nothing orders them."""


class UninitialisedError(KernelError):
    """A value that nobody wrote decides something, or is stored."""


class SynchronisationError(KernelError):
    """A barrier, an mbarrier or a collective of a warp is used in a way that cannot work."""


class DeadlockError(SynchronisationError):
    """No thread of a launch can ever go on; the message says who waits where, and for what."""


class MalformedError(DeviceError):
    """An instruction that no thread could execute, found as the first one comes to it."""


class LimitError(DeviceError):
    """A kernel was stopped because it did not end in the time it was given."""


class InternalError(WarploomError):
    """A promise of ours is broken; please report it."""


def ensure(holds: object, promise: str) -> None:
    """What an answer rests on: `assert` would be left out by `python -O`."""
    if not holds:
        raise InternalError(f"a promise is broken: {promise}")


def render(error: WarploomError) -> str:
    """The error as a person reads it: place, message, the line with a caret, advice.

    >>> source = Source("a.swflow", "x: [4] = rangee(0, 4)")
    >>> print(render(CheckError("unknown function 'rangee'", Span(source, 1, 10, 6), "try range")))
    a.swflow:1:10: unknown function 'rangee'
        1 | x: [4] = rangee(0, 4)
          |          ^^^^^^
      try range
    """
    if error.span is None:
        return error.message + (f"\n  {error.advice}" if error.advice else "")
    span = error.span
    parts = [f"{span.source.name}:{span.line}:{span.column}: {error.message}"]
    parts += _excerpt(span)
    if error.advice:
        parts.append(f"  {error.advice}")
    return "\n".join(parts)


def _excerpt(span: Span, width: int = 120) -> list[str]:
    text = span.source.line(span.line).replace("\t", " ")
    # A line may be huge (binary junk, minified text): show a window around the place.
    start = max(0, span.column - 1 - width // 2) if len(text) > width else 0
    window = "".join(ch if ch.isprintable() else "?" for ch in text[start : start + width])
    caret = span.column - 1 - start
    length = max(1, min(span.length, width - caret))
    gutter = f"{span.line:>5} | "
    return [gutter + window, " " * (len(gutter) - 2) + "| " + " " * caret + "^" * length]


def calling_line(*inside: str) -> Span | None:
    """The line that called into these files: where a user's Python says what is wrong."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (__file__, *inside):
        frame = frame.f_back
    return None if frame is None else _line(frame.f_code.co_filename, frame.f_lineno)


def located(function: Callable[P, T]) -> Callable[P, T]:
    """A public function whose errors are at the line of the user that called it, unless they have
    a place of their own. Where we call it ourselves, whoever calls us knows the place."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except WarploomError as error:
            place(error)
            raise
        except TypeError:
            wrong = _misfit(function, args, kwargs)
            if wrong is None:
                raise
            place(wrong)
            raise wrong from None

    return called


def place(error: WarploomError) -> None:
    """Gives an error that was raised inside of the calling function the line of whoever called
    that, if it has no place of its own and the call is not ours."""
    if error.span is None and not _is_ours(sys._getframe(2)):
        error.span = users_line()


def _misfit(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> WarploomError | None:
    """What is wrong with the arguments of a call, if something is."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        taken = ", ".join(each for each in signature.parameters if each != "self")
        return CheckError(f"the call does not fit: {error}", advice=f"it takes {taken}")
    return None


def users_line() -> Span | None:
    """The line that called into this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return None if frame is None else _line(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame is this package's, or NumPy's, which calls back what it is given."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("warploom", "numpy")


def raising_line(error: BaseException, file: str) -> Span | None:
    """The line of a file that was being run when an error was raised: the innermost."""
    wanted = Path(file).resolve()
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file or Path(frame.f_code.co_filename).resolve() == wanted
    ]
    return _line(file, lines[-1]) if lines else None


def defining_line(function: object) -> Span | None:
    """The line on which a function begins."""
    code = getattr(function, "__code__", None)
    return None if code is None else _line(code.co_filename, code.co_firstlineno)


def _line(name: str, number: int) -> Span:
    text = linecache.getline(name, number).rstrip()
    indent = len(text) - len(text.lstrip())
    return Span(_file(name), number, indent + 1, max(1, len(text) - indent))


@lru_cache(maxsize=8)
def _file(name: str) -> Source:
    return Source(name, "".join(linecache.getlines(name)))


@contextmanager
def within(source: Source) -> Iterator[None]:
    """What is wrong within it is wrong with this text: an error that has no place of its own gets
    the text's first line that says something."""
    try:
        yield
    except WarploomError as error:
        if error.span is None:
            start = len(source.text) - len(source.text.lstrip())
            line = source.text[start:].partition("\n")[0].rstrip()
            error.span = source.at(start, len(line))
        raise


def one_of(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Advice where a word is none of those that are known: the nearest, if one is near, and all.

    >>> one_of("zero", ("zeros", "ones"))
    'did you mean zeros? Known are zeros, ones'
    """
    listed = list(known)
    near = get_close_matches(word[:80], listed, n=1, cutoff=cutoff)
    meant = f"did you mean {near[0]}? K" if near else "k"
    return f"{meant}nown are {', '.join(listed)}"


def nearest(word: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """Advice where a word is none of those that are known: the nearest if one is near, else this.

    >>> nearest("zero", ("zeros", "ones"), "see the list")
    'did you mean zeros?'
    """
    near = get_close_matches(word[:80], list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else otherwise


_commands: list[None] = []  # one for each command that is being run in this process


@contextmanager
def by_command() -> Iterator[None]:
    """Within it, what is wrong is said to somebody at a command line."""
    _commands.append(None)
    try:
        yield
    finally:
        _commands.pop()


def spelled(command: str, python: str) -> str:
    """An argument as it is written where it was given: options of the command line have dashes.

    >>> spelled("--shape 32x32", "shape=(32, 32)")
    'shape=(32, 32)'
    >>> with by_command():
    ...     spelled("--shape 32x32", "shape=(32, 32)")
    '--shape 32x32'
    """
    return command if _commands else python


def missing_extra(module: str, extra: str) -> AbsentError:
    """The error for an optional dependency that is not installed."""
    return AbsentError(
        f"this needs the Python package '{module}', which is not installed",
        advice=f"in the source folder: pip install '.[{extra}]'",
    )
