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

HELP = """Draw a result: one page that opens anywhere, SVG figures, or a few lines of text.

SUBJECT is a sketch, as for 'warploom synth' (its best fill is searched, proved and drawn, or why
there is none); a .ptx or .cu file, which is launched as by 'warploom ptx run' (memory by line of
the source, races, shuffles); with --as kernel a kernel of the catalogue, run on the simulator
(sectors and banks, request by request); with --as map an array expression of 'warploom map'; with
--as nest a loop nest of 'warploom explore'; or a .json file that 'warploom synth --json' wrote (its
fills) or 'warploom explore --json' (how its search went).

Without -o a few lines say the same in the terminal. A name after -o that ends in .html is one page
that needs nothing else; of a fill, point at a value to follow it from memory to the output. A name
that ends in .svg is the figures alone, for papers.

\b
Examples:
  $ warploom show transposition --size m=32,n=5 -o transposition.html
  $ warploom show examples/sketches/sums.swflow
  $ warploom show examples/ptx/stencil.ptx --grid 4 --block 256 --arg f32[1024]=range \\
      --arg f32[1024]=zeros --arg i32=1024 -o stencil.html
  $ warploom show matmul --as map --size m=64,n=64,k=32 -o mapping.html

Exit status: 0 found or clean, 1 impossible, refuted or a race, 2 bad input, 3 undecided (budget
spent), 130 Ctrl-C."""


class Kind(StrEnum):
    sketch = "sketch"
    map = "map"
    nest = "nest"
    kernel = "kernel"
    ptx = "ptx"
    result = "result"


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """The options of one call."""

    subject: str = argument(REQUIRED, metavar="SUBJECT")
    out: Path | None = option(
        None, "-o", metavar="FILE.html|FILE.svg", help="Draw it there; - is standard output."
    )
    kind: Kind | None = option(None, "--as", help="What the subject is, where its name is two.")
    size: list[str] = option([], "--size", metavar="K=V", help="Sizes and parameters.")
    goal: int = option(0, "--goal", min=0, help="Which goal of a sketch.")
    fill: int | None = option(
        None, "--fill", min=0, metavar="N", help="Which fill, instead of the best."
    )
    code: bool | None = option(
        None,
        "--code/--no-code",
        help="With the kernel, or without; by default where it is short.",
    )
    machine: str | None = option(
        None, "--machine", metavar="NAME|FILE", help="Of a mapping or a loop nest."
    )
    evaluations: int = option(
        100, "--evaluations", min=1, help="Implementations of a nest to look at."
    )
    kernel: str | None = kernel_option("Of PTX with several.")
    grid: str = grid_option("Blocks of a launch of PTX: X or X,Y or X,Y,Z.")
    block: str = block_option()
    arg: list[str] = arg_option()
    shared: int = option(
        0, "--shared", min=0, metavar="BYTES", help="Bytes of dynamic shared memory."
    )
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Wall time of the search, or launch."
    )
    json_file: Path | None = json_option()


COMMAND = Command("show", HELP, ShowOptions, "warploom.cli.show:show")
