"""`warploom map`: an array expression spread over groups and threads, every candidate a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.choices import TIMED
from warploom.cli.commands.shared import (
    Text,
    cluster_option,
    json_option,
    no_store_option,
    processes_option,
    store_option,
)
from warploom.cli.declare import REQUIRED, STDOUT, Command, argument, option

HELP = """Map an array expression: which loop runs on groups, threads or vector lanes, with which
tile sizes, memories and barriers. Every candidate that comes out compiles, synchronises and fits.

EXPR is total, dot, matvec, matmul, stencil-1d, stencil-2d, conv, or FILE.py::NAME (a program of
docs/arrays.md, or a function that returns one). matmul, stencil-2d and conv are first rewritten to
tiles; --plain leaves them as they are, and --blocked (conv with --layer) takes products in blocks,
as a GPU is good at them. Sizes of inputs are given, tile sizes are found, unless they are given.

\b
--count      how many mappings and tilings there are, with the fusion rule of docs/arrays.md
--first      some candidate, soon: mappings are not all listed for it
--sample N   N candidates, all equally likely
--best       the most promising of many, by a model: nothing is measured (the default)
--tune       the most promising --candidates N are measured, kept in a store and read from there;
             Ctrl-C or --seconds ends it with what was found so far; --processes and --cluster
             make the kernels, and workers with the label GPU measure them
--fusion F   loops that can be one are one: as meant (intended, the default), as the published
             code has it (coded), for what is in registers (private), or as it comes (none)
--memory B   at most B bytes of global memory beside inputs and output, so that with --blocked
             and 0 no sum is split over groups

\b
Examples:
  $ warploom map matmul --size m=64,n=64,k=32 --emit cuda
  $ warploom map dot --size n=100 --count
  $ warploom map conv --layer conv4_2 --machine mali --sample 3
  $ warploom map conv --layer conv5_1 --blocked --machine h200 --memory 1000000
  $ warploom map matvec --size m=256,n=64 --tune --on opencl --seconds 20

The same command again answers from the store.

Exit status: 0 found, 1 impossible (no mapping, or no room on the machine), 2 bad input,
3 undecided (the budget was spent first), 130 Ctrl-C, which keeps what was found."""


class Fused(StrEnum):
    intended = "intended"
    coded = "coded"
    private = "private"
    none = "none"


On = StrEnum("On", list(TIMED))  # type: ignore[misc]  # the one list of devices


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """The options of one call."""

    expr: str = argument(REQUIRED, metavar="EXPR")
    size: list[str] = option([], "--size", metavar="K=V", help="Sizes of inputs, and of tiles.")
    layer: str | None = option(None, "--layer", metavar="NAME", help="A layer of VGG-16, for conv.")
    plain: bool = option(False, "--plain", help="Do not rewrite to tiles first.")
    blocked: bool = option(False, "--blocked", help="conv as products in blocks, mapped by hand.")
    machine: str = option("cuda", "--machine", metavar="NAME|FILE", help="Whose limits hold.")
    memory: int | None = option(
        None, "--memory", min=0, metavar="B", help="Global memory beside inputs and output."
    )
    fusion: Fused = option(
        Fused.intended, "--fusion", metavar="F", help="Which loops have to be one."
    )
    count: bool = option(False, "--count", help="Count mappings and tilings, and stop.")
    first: bool = option(False, "--first", help="Some candidate, soon.")
    sample: int | None = option(None, "--sample", min=1, metavar="N", help="So many candidates.")
    best: bool = option(False, "--best", help="The most promising candidate.")
    among: int = option(
        2000, "--among", min=1, help="Candidates that --best and --tune look at, at least."
    )
    tune: bool = option(False, "--tune", help="Measure the most promising candidates.")
    on: On = option(On("cuda"), "--on", help="Where --tune runs them.")
    candidates: int = option(24, "--candidates", min=1, help="How many --tune measures.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Wall time: rewriting, and the search."
    )
    seed: int = option(0, "--seed", min=0, help="Another seed draws others.")
    text: Text | None = option(None, "--emit", help="Print the kernels of the first one.")
    out: Path = option(STDOUT, "-o", metavar="FILE", help="Write the text there instead.")
    json_file: Path | None = json_option()


COMMAND = Command("map", HELP, MapOptions, "warploom.cli.map:map_")
