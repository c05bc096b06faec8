"""`warploom bench`: the papers' tables, measured here, with their figures beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import Command, argument, option

HELP = """Measure the tables of the papers on this machine, beside the published figures.

\b
synth           the sketches of section 5 of the Swizzleflow paper, each in its own process.
                The column 'pub.' has the published figure, and 'times' how many times faster
                we are. The column 'factor' has the visited states over those of an oracle.
inventor        tables 1 and 2 of the Swizzle Inventor paper: SIMT sketches, solved for a small
                warp and proved for 32 lanes; --ablation adds table 2.
transpositions  a verified solution for every m x n up to 64 x 64; --json keeps and resumes.
growth          time and memory as sketches grow, for each kind of sketch.

In a checkout, NAME may also be a script of bench/, such as ptx.speed; --list names them all.
Arguments after -- go to the script. An installed package has only the tables.

\b
Examples:
  $ warploom bench synth --quick
  $ warploom bench synth --match 'l3/trove-crc' --json table.json
  $ warploom bench synth --match '^$' --limits      # only what the published tool cannot do
  $ warploom bench layout.accept -- --processes 2

After Ctrl-C, what was measured so far is printed and written to --json."""


class Table(StrEnum):
    synth = "synth"
    inventor = "inventor"
    transpositions = "transpositions"
    growth = "growth"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The options of one call."""

    name: str = argument("synth", metavar="NAME", help=f"{', '.join(Table)}, or a script.")
    words: list[str] = argument([], metavar="-- ARGS", help="Arguments of the script.")
    listed: bool = option(False, "--list", help="List the tables, and the scripts of a checkout.")
    match: str = option("", "--match", metavar="RE", help="Run only sketches whose name matches.")
    quick: bool = option(False, "--quick", help="Run one sketch of each kind.")
    limits: bool = option(False, "--limits", help="Also run sizes beyond the published limits.")
    ablation: bool = option(
        False, "--ablation", help="Also measure weaker pruning, and the phases of the search."
    )
    seconds: float = option(
        20.0,
        "--seconds",
        min=0.1,
        metavar="S",
        help="Time limit of each run of --ablation and growth.",
    )
    json_file: Path | None = json_option()


COMMAND = Command("bench", HELP, Bench, "warploom.cli.bench:bench")
