"""`warploom store`: what is kept, listed, shown, written out, thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import REQUIRED, STDOUT, Command, Group, argument, option

HELP = """What is kept: whole answers of synth, explore, map, layout solve and layout
convert, pieces of searches that were stopped, and what --tune measured.

One SQLite file in the data folder of the user, or the one after --store. A result is found again by
its content (sketch, options, sizes), the device it was measured on and a digest of our sources:
after a change of Warploom it is outdated, and is computed again. Every row carries a digest over
all of it: one that does not match is damaged, a warning names it, and it is computed again. Checks,
tests and benchmarks never read the store.

\b
list     every result, the latest first: number, age, kind, what it is of
show     one of them, by its number: what it answered
export   all of them as JSON
prune    remove outdated and damaged ones; --days N: those older; --all: everything

\b
Examples:
  $ warploom store list
  $ warploom store export -o results.json
  $ warploom store prune --days 30

Exit status: 0, or 2 if there is no such result, or the file is no store of ours."""


def _place() -> Any:
    return option(None, "--store", metavar="FILE", help="Default: the user's own.")


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """The options of one call."""

    place: Path | None = _place()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ShowResultOptions:
    """The options of one call."""

    number: str = argument(REQUIRED, metavar="NUMBER")
    place: Path | None = _place()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of one call."""

    out: Path = option(STDOUT, "-o", metavar="FILE", help="Where to; - is standard output.")
    place: Path | None = _place()


@dataclass(frozen=True, kw_only=True)
class PruneOptions:
    """The options of one call."""

    days: float | None = option(
        None, "--days", min=0, metavar="N", help="Those that are older than so many days."
    )
    all_: bool = option(False, "--all", help="All of them.")
    place: Path | None = _place()
    json_file: Path | None = json_option()


_LIST = "Every result, the latest first."
_SHOW = "One result, by the number that list gives it."
_PRUNE = "Remove results that are outdated, or old, or all."

COMMAND = Group(
    "store",
    HELP,
    (
        Command("list", _LIST, ListOptions, "warploom.cli.store:list_"),
        Command("show", _SHOW, ShowResultOptions, "warploom.cli.store:show"),
        Command("export", "All results as JSON.", ExportOptions, "warploom.cli.store:export"),
        Command("prune", _PRUNE, PruneOptions, "warploom.cli.store:prune"),
    ),
)
