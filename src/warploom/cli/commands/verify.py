"""`warploom verify`: checks a certificate without the search that wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import REQUIRED, Command, argument

HELP = """Check certificates, which are proofs that synth, layout, ptx run and explore write.

'warploom synth --certificate FILE' proves the solution of a sketch, and 'warploom layout solve
--certificate FILE' proves a layout. Layouts of several tiles are proved by 'warploom layout tiles
--certificate FILE'. That one run of a kernel stands for all schedules is proved by 'warploom ptx
run --prove --certificate FILE'. Products and attention by warp groups are proved by 'warploom
explore --certificate FILE'.

Each kind has a short checker (in warploom/trust) that shares nothing with the search. One runs the
filled sketch on symbols, and compares every cell with the goal. One tries every choice of a sketch
that is said to have no solution. One counts the wavefronts of a layout, or of all tiles, and checks
why no layout has fewer. One checks the events of a run: their order, phases and conditions. One
runs the PTX of a kernel on the emulator, with inputs of its own, and compares results and events.

A certificate that was changed is refused. So is one that does not say what it leaves out; the
checker prints that as "not covered". A sketch with several goals has a certificate for each of
them. Goals without one are named.

\b
Exit status:
  0    all certificates hold
  1    one does not hold
  2    bad input
  3    one leaves something open"""


@dataclass(frozen=True, kw_only=True)
class Verify:
    """The options of one call."""

    files: list[Path] = argument(REQUIRED, metavar="CERTIFICATE")
    json_file: Path | None = json_option()


COMMAND = Command("verify", HELP, Verify, "warploom.cli.verify:verify")
