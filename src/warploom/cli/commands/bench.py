"""`warploom bench`: the papers' tables, measured here, with their figures beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import Command, argument, option

HELP = """Measure the tables of the papers on this machine, with the published figures beside ours.

\b
synth   the sketches of section 5 of the Swizzleflow paper. 'pub.' is what its tool gives or
        needs, 'factor' the states visited over those an oracle visits, 'times' how many times
        faster we are. Each sketch runs in a process of its own, gather sets included.

\b
inventor        Tables 1 and 2 of the Swizzle Inventor paper: SIMT sketches, found at a small
                warp and proved at 32 lanes; --ablation adds Table 2.
transpositions  a fill for every m x n up to 64 x 64, each verified; --json keeps and resumes.
growth          time and memory against the size of the sketches, family by family.

In a checkout NAME may be a script of bench/, such as ptx.speed; --list has all of them. What stands
behind -- goes to the script; without a checkout there are only the tables.

\b
Examples:
  $ warploom bench synth --quick
  $ warploom bench synth --match 'l3/trove-crc' --json table.json
  $ warploom bench synth --match '^$' --limits      # only what the published tool cannot do
  $ warploom bench layout.accept -- --processes 2

Ctrl-C prints what was measured so far, and --json has it."""


class Table(StrEnum):
    synth = "synth"
    inventor = "inventor"
    transpositions = "transpositions"
    growth = "growth"


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of one call."""

    name: str = argument("synth", metavar="NAME", help=f"{', '.join(Table)}, or a script.")
    words: list[str] = argument([], metavar="-- ARGS", help="Of a script.")
    listed: bool = option(False, "--list", help="The tables, and the scripts of a checkout.")
    match: str = option("", "--match", metavar="RE", help="Only sketches whose name matches.")
    quick: bool = option(False, "--quick", help="One sketch of each kind.")
    limits: bool = option(False, "--limits", help="Also beyond the published limits.")
    ablation: bool = option(False, "--ablation", help="Also weaker pruning, and the phases.")
    seconds: float = option(
        20.0, "--seconds", min=0.1, metavar="S", help="Budget of each run: ablation, growth."
    )
    json_file: Path | None = json_option()


COMMAND = Command("bench", HELP, BenchOptions, "warploom.cli.bench:bench")
