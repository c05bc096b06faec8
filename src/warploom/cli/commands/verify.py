"""`warploom verify`: checks a certificate without the search that wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import REQUIRED, Command, argument

HELP = """Check certificates: proofs that were written beside an answer, by a checker of their own.

Those of fills are written by 'warploom synth --certificate FILE', those of layouts by 'warploom
layout solve --certificate FILE'. Each kind has a short checker (in warploom/trust) that
shares nothing with the search: it runs the filled sketch on symbols and compares cell by cell, or
counts what a layout takes and why none takes less. What was changed since is refused, and so is a
proof that does not say what it leaves out: "not covered" is printed. A sketch of several goals has
a certificate for each; goals without one are named.

Exit status: 0 all hold, 1 one does not, 2 bad input, 3 one leaves something open."""


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """The options of one call."""

    files: list[Path] = argument(REQUIRED, metavar="CERTIFICATE")
    json_file: Path | None = json_option()


COMMAND = Command("verify", HELP, VerifyOptions, "warploom.cli.verify:verify")
