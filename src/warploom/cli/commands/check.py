"""`warploom check`: a user's own index arithmetic, for all lanes, steps and warps it declares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import REQUIRED, Command, argument, option

HELP = """Check your own index arithmetic of shared memory, for every lane.

FILE.py::NAME is a SharedTile (from warploom.layout.own), a list of them, or a function that returns
either and takes sizes (--size). The check tries every lane, step and warp, and asks five questions.
Do all elements have different addresses? Are the addresses inside the memory? Do loads look where
stores put an element? Are vectors whole and aligned? Are wavefronts as stated? An error names the
lanes that show it.

\b
Example:
  $ warploom check kernels.py::tile --size columns=48

\b
Exit status:
  0    right
  1    something is wrong
  2    bad input"""


@dataclass(frozen=True, kw_only=True)
class Check:
    """The options of one call."""

    name: str = argument(REQUIRED, metavar="FILE.py::NAME")
    size: list[str] = option([], "--size", metavar="K=V", help="Set a size of the function.")
    json_file: Path | None = json_option()


COMMAND = Command("check", HELP, Check, "warploom.cli.check:check")
