"""`warploom machines`: the machines we know, and the record of one of them, or of a user's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import Command, argument

HELP = """List the known machines, or show the limits and rates of one.

The record of a machine has the limits that kernels are checked against. The table [rates] bounds
the time, [times] predicts it, and [serving] says how banks serve lanes. MACHINE
is shown as TOML. Change it, and give it to --machine FILE of map, explore, layout solve, ptx report
or ptx shuffle. A command that needs a missing field names the field.

\b
Examples:
  $ warploom machines
  $ warploom machines h200 > mine.toml
  $ warploom machines mine.toml"""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The options of one call."""

    machine: str | None = argument(None, metavar="MACHINE", help="A name, or a FILE.toml.")
    json_file: Path | None = json_option()


COMMAND = Command("machines", HELP, Machines, "warploom.cli.machines:machines")
