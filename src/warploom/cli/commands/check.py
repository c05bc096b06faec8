"""`warploom check`: a user's own index arithmetic, for all lanes, steps and warps it declares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import REQUIRED, Command, argument, option

HELP = """Check your own index arithmetic of shared memory: stores, loads, swizzles.

FILE.py::NAME is a SharedTile (from warploom.layout.own), a list of them, or a function that returns
either and takes sizes (--size). Of each: are all elements at different places, inside, at the same
place for everybody who uses them, vectors whole and aligned, wavefronts as stated? What is wrong
comes with the lanes that show it; what is right was tried on every lane, step and warp.

\b
Example:
  $ warploom check kernels.py::tile --size columns=48

Exit status: 0 right, 1 something is wrong, 2 bad input."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of one call."""

    name: str = argument(REQUIRED, metavar="FILE.py::NAME")
    size: list[str] = option([], "--size", metavar="K=V", help="Sizes of a function.")
    json_file: Path | None = json_option()


COMMAND = Command("check", HELP, CheckOptions, "warploom.cli.check:check")
