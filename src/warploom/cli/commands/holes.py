"""`warploom holes`: what may fill a hole, and what else a sketch may call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import Command, argument, option

HELP = """List what may fill a hole of a sketch: built-in functions and their options.

Without NAME, all functions are listed: fixed gathers first, then holes. With NAME, one function is
explained: its options, how to read the names of its choices, and its choices at a small shape.

\b
Examples:
  $ warploom holes
  $ warploom holes row_xforms
  $ warploom holes col_linear --limit 20"""


@dataclass(frozen=True, kw_only=True)
class Holes:
    """The options of one call."""

    name: str | None = argument(None, metavar="NAME")
    limit: int = option(8, "--limit", min=0, help="How many choices to print.")
    json_file: Path | None = json_option()


COMMAND = Command("holes", HELP, Holes, "warploom.cli.holes:holes")
