"""`warploom store`: what is kept, listed, shown, written out, thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import REQUIRED, STDOUT, Command, Group, argument, option

HELP = """List, export or remove the results that are kept on disk.

The store keeps whole answers of synth, explore, map, layout solve and layout convert, pieces of
stopped searches, and what --tune measured. It is one SQLite file in your data folder, or the one
after --store.

A result is found again by its content (sketch, options, sizes), its device, and a digest of the
sources of Warploom. After an update of Warploom old results are outdated, and are computed again.
Every row has a digest. A damaged row is named in a warning, and is computed again. Checks, tests
and benchmarks never read the store.

\b
list     list all results, the latest first: number, age, kind, subject
show     show the answer with this number
export   write all results as JSON
prune    remove outdated and damaged results; --days N: older ones; --all: everything

\b
Examples:
  $ warploom store list
  $ warploom store export -o results.json
  $ warploom store prune --days 30

\b
Exit status:
  0    done
  2    there is no such result, or the file is not a store of Warploom"""


def _place() -> Any:
    return option(
        None, "--store", metavar="FILE", help="The store (default: the one in your data folder)."
    )


@dataclass(frozen=True, kw_only=True)
class List:
    """The options of one call."""

    place: Path | None = _place()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ShowKept:
    """The options of one call."""

    number: str = argument(REQUIRED, metavar="NUMBER")
    place: Path | None = _place()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class Export:
    """The options of one call."""

    out: Path = option(
        STDOUT, "-o", metavar="FILE", help="Write the JSON to FILE; - is standard output."
    )
    place: Path | None = _place()


@dataclass(frozen=True, kw_only=True)
class Prune:
    """The options of one call."""

    days: float | None = option(
        None, "--days", min=0, metavar="N", help="Remove results that are older than N days."
    )
    all_: bool = option(False, "--all", help="Remove all results.")
    place: Path | None = _place()
    json_file: Path | None = json_option()


_LIST = "List all results, the latest first."
_SHOW = "Show the result with this number; 'warploom store list' has the numbers."
_PRUNE = "Remove results that are outdated or damaged, older ones, or all."

COMMAND = Group(
    "store",
    HELP,
    (
        Command("list", _LIST, List, "warploom.cli.store:list_"),
        Command("show", _SHOW, ShowKept, "warploom.cli.store:show"),
        Command("export", "Write all results as JSON.", Export, "warploom.cli.store:export"),
        Command("prune", _PRUNE, Prune, "warploom.cli.store:prune"),
    ),
)
