"""`warploom show`: the picture of a result, as one page, as SVG figures, as a few lines of text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.cli.commands.shared import (
    arg_option,
    block_option,
    grid_option,
    json_option,
    kernel_option,
)
from warploom.cli.declare import REQUIRED, Command, argument, option

HELP = """Draw a result as an HTML page, as SVG figures or as text.

\b
SUBJECT is one of:
  a sketch, as for 'warploom synth'   its best solution, or why there is none
  FILE.ptx, FILE.cu                   a launch, as by 'warploom ptx run': traffic, races, shuffles
  NAME with --as kernel               sectors and banks of a catalogue kernel, on the simulator
  EXPR with --as map                  the mapping that 'warploom map' finds
  KERNEL with --as nest               the loop nest that 'warploom explore' finds
  FILE.json                           what --json of synth or explore wrote
  FILE.toml                           tiles of a kernel, as 'warploom layout tiles' chooses

Without -o the result is a few lines in the terminal. -o FILE.html writes one page that needs no
other file. Point at a value of a solution to follow it from memory to the output. -o FILE.svg
writes the figures alone, for papers.

\b
Examples:
  $ warploom show transposition --size m=32,n=5 -o transposition.html
  $ warploom show examples/sketches/sums.swflow
  $ warploom show examples/ptx/stencil.ptx --grid 4 --block 256 --arg f32[1024]=range \\
      --arg f32[1024]=zeros --arg i32=1024 -o stencil.html
  $ warploom show matmul --as map --size m=64,n=64,k=32 -o mapping.html

\b
Exit status:
  0    found or clean
  1    impossible, refuted, or a race
  2    bad input
  3    undecided: the time limit was reached
  130  Ctrl-C"""


class Kind(StrEnum):
    sketch = "sketch"
    map = "map"
    nest = "nest"
    kernel = "kernel"
    ptx = "ptx"
    result = "result"
    tiles = "tiles"


@dataclass(frozen=True, kw_only=True)
class Show:
    """The options of one call."""

    subject: str = argument(REQUIRED, metavar="SUBJECT")
    out: Path | None = option(
        None, "-o", metavar="FILE.html|FILE.svg", help="Draw to this file; - is standard output."
    )
    kind: Kind | None = option(
        None, "--as", help="What SUBJECT is, if its name could be two things."
    )
    size: list[str] = option([], "--size", metavar="K=V", help="Set a size or another parameter.")
    goal: int = option(0, "--goal", min=0, help="Number of the goal of a sketch.")
    fill: int | None = option(
        None, "--fill", min=0, metavar="N", help="Number of the solution (default: the best)."
    )
    code: bool | None = option(
        None,
        "--code/--no-code",
        help="Show the kernel, or leave it out (default: show it if it is short).",
    )
    machine: str | None = option(
        None, "--machine", metavar="NAME|FILE", help="Machine of a mapping, a loop nest or tiles."
    )
    evaluations: int = option(
        100, "--evaluations", min=1, help="How many implementations of a loop nest to look at."
    )
    kernel: str | None = kernel_option("Which kernel, if the PTX has several.")
    grid: str = grid_option("Number of blocks of a PTX launch: X or X,Y or X,Y,Z.")
    block: str = block_option()
    arg: list[str] = arg_option()
    shared: int = option(
        0, "--shared", min=0, metavar="BYTES", help="Bytes of dynamic shared memory."
    )
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Time limit of the search or the launch."
    )
    json_file: Path | None = json_option()


COMMAND = Command("show", HELP, Show, "warploom.cli.show:show")
