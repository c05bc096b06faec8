"""`warploom machines`: the machines we know, and the record of one of them, or of a user's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import Command, argument

HELP = """List the machines that are known, or show the whole record of one.

A record has limits that kernels are checked against, cycles that decide whether a shuffle pays
([latency]), rates that bound the time ([rates]) and how lanes are served by banks ([serving]). What
is shown for MACHINE is TOML, which can be changed and given to --machine FILE of map, explore,
layout solve, ptx report and ptx shuffle. A part that needs a field that is not there says which.

\b
Examples:
  $ warploom machines
  $ warploom machines h200 > mine.toml
  $ warploom machines mine.toml"""


@dataclass(frozen=True, kw_only=True)
class MachinesOptions:
    """The options of one call."""

    machine: str | None = argument(None, metavar="MACHINE", help="A name, or a FILE.toml.")
    json_file: Path | None = json_option()


COMMAND = Command("machines", HELP, MachinesOptions, "warploom.cli.machines:machines")
