"""What commands take, declared: a frozen dataclass for the options of a call, and a table of it.

    @dataclass(frozen=True, kw_only=True)
    class Holes:
        name: str | None = argument(None, metavar="NAME")
        limit: int = option(8, "--limit", min=0, help="Choices to print.")

`parse.py` makes a `Holes` of the words of a command line, `usage.py` writes the help. A module that
declares imports nothing large: the one that does the work is imported when the command is called.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

REQUIRED: Any = ...  # as a default: it has to be given


@dataclass(frozen=True, slots=True)
class Declared:
    """What is written of one field; `flags` is empty for an argument."""

    default: Any
    flags: tuple[str, ...]
    metavar: str
    help: str
    least: float | None
    most: float | None


def option(
    default: Any,
    *flags: str,
    metavar: str = "",
    help: str = "",  # noqa: A002  # what all call it
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
) -> Any:
    """A field that `--flag VALUE` gives; of a bool, `--flag` alone, or `--flag/--no-flag`."""
    return _field(Declared(default, flags, metavar, help, min, max))


def argument(default: Any, *, metavar: str, help: str = "") -> Any:  # noqa: A002
    """A field that a word without an option gives."""
    return _field(Declared(default, (), metavar, help, None, None))


def _field(declared: Declared) -> Any:
    metadata = {"declared": declared}
    if declared.default is REQUIRED:
        return field(metadata=metadata)
    if isinstance(declared.default, list):
        return field(default_factory=list, metadata=metadata)
    return field(default=declared.default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option or argument: `name` is the field, `kind` the type of a value, `many` if it may be
    given several times; a flag has `off` where it can be said that it is not so."""

    name: str
    kind: type
    many: bool
    flags: tuple[str, ...]
    off: str
    declared: Declared

    @property
    def is_flag(self) -> bool:
        return self.kind is bool

    @property
    def is_required(self) -> bool:
        return self.declared.default is REQUIRED

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.kind) if issubclass(self.kind, StrEnum) else ()

    @property
    def label(self) -> str:
        """What errors call it."""
        return self.flags[0] if self.flags else self.declared.metavar


def parameters(takes: type) -> tuple[Parameter, ...]:
    """The declared fields of a dataclass, in their order."""
    hints = get_type_hints(takes)
    return tuple(
        _parameter(each.name, hints[each.name], each.metadata["declared"]) for each in fields(takes)
    )


def _parameter(name: str, hint: Any, declared: Declared) -> Parameter:
    kinds = [each for each in _united(hint) if each is not type(None)]
    many = get_origin(kinds[0]) is list
    kind = get_args(kinds[0])[0] if many else kinds[0]
    on, _, off = declared.flags[0].partition("/") if declared.flags else ("", "", "")
    flags = (on, *declared.flags[1:]) if on else ()
    return Parameter(name, kind, many, flags, off, declared)


def _united(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is UnionType else (hint,)


@dataclass(frozen=True)
class Command:
    """`takes` declares the options, `work` is MODULE:FUNCTION of (options, context)."""

    name: str
    help: str
    takes: type
    work: str

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters(self.takes)

    def run(self, asked: Any, context: Context) -> None:
        """Imports what does the work, and does it."""
        from warploom.options import one_blas_thread  # here: help needs none of it

        module, _, function = self.work.partition(":")
        with one_blas_thread():
            work = getattr(import_module(module), function)
        work(asked, context)


@dataclass(frozen=True)
class Group:
    """Commands that are named by two words."""

    name: str
    help: str
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """Beside the options of a call: what it is a call of, which fields the words have given, and
    what was handed to it (an answer that may be kept)."""

    command: Command
    given: frozenset[str]
    obj: object = None


STDOUT = Path("-")
