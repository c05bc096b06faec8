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

HELP = """Map an array expression onto blocks, threads and vectors, and write the kernel.

A candidate decides how each loop runs, and all tile sizes, memories and barriers. Every candidate
that is printed compiles, synchronises and fits the machine.

EXPR is total, dot, matvec, matmul, stencil-1d, stencil-2d, conv, or FILE.py::NAME (a program of
docs/arrays.md, or a function that returns one). The expressions matmul, stencil-2d and conv are
first rewritten to tiles, unless you say --plain. You give the sizes of inputs; the search finds
those tile sizes that you do not give. Each reduction stays in one thread; `warploom explore`
spreads it over threads, and finds faster convolutions.

\b
--count      count the mappings and tile sizes that the fusion rule of docs/arrays.md leaves
--first      give one candidate soon, without listing all mappings
--sample N   draw N candidates, all equally likely
--best       give the most promising of many candidates by a model, without measuring (the default)
--tune       measure the most promising --candidates N, and keep the times in the store;
             Ctrl-C or --seconds ends it with the best so far
--fusion F   which loops must be fused; intended: by the paper's rule; coded: by the rule that its
             code implements; private: only around registers; or none
--memory B   use at most B bytes of global memory beside inputs and output

\b
Examples:
  $ warploom map matmul --size m=64,n=64,k=32 --emit cuda
  $ warploom map dot --size n=100 --count
  $ warploom map conv --layer conv4_2 --machine mali --sample 3
  $ warploom map matvec --size m=256,n=64 --tune --on opencl --seconds 20

With --processes or --cluster other processes build the kernels. Workers with the label GPU measure.
The same command answers from the store the second time.

\b
Exit status:
  0    found
  1    impossible: no mapping is valid, or none fits the machine
  2    bad input
  3    undecided: the time limit was reached
  130  Ctrl-C: what was found so far is printed and kept"""


class Fused(StrEnum):
    intended = "intended"
    coded = "coded"
    private = "private"
    none = "none"


On = StrEnum("On", list(TIMED))  # type: ignore[misc]  # the one list of devices


@dataclass(frozen=True, kw_only=True)
class Map:
    """The options of one call."""

    expr: str = argument(REQUIRED, metavar="EXPR")
    size: list[str] = option(
        [], "--size", metavar="K=V", help="Set the size of an input or of a tile."
    )
    layer: str | None = option(
        None, "--layer", metavar="NAME", help="Take the sizes of this VGG-16 layer, for conv."
    )
    plain: bool = option(False, "--plain", help="Do not rewrite to tiles first.")
    machine: str = option(
        "cuda", "--machine", metavar="NAME|FILE", help="Machine whose limits hold."
    )
    memory: int | None = option(
        None,
        "--memory",
        min=0,
        metavar="B",
        help="Limit on bytes of global memory beside inputs and output.",
    )
    fusion: Fused = option(
        Fused.intended, "--fusion", metavar="F", help="Which loops must be fused."
    )
    count: bool = option(False, "--count", help="Count mappings and tilings, and stop.")
    first: bool = option(False, "--first", help="Give one candidate soon.")
    sample: int | None = option(
        None, "--sample", min=1, metavar="N", help="Draw N candidates at random."
    )
    best: bool = option(False, "--best", help="Give the most promising candidate.")
    among: int = option(
        2000, "--among", min=1, help="How many candidates --best and --tune draw, at least."
    )
    tune: bool = option(False, "--tune", help="Measure the most promising candidates.")
    on: On = option(On("cuda"), "--on", help="Device on which --tune measures.")
    candidates: int = option(24, "--candidates", min=1, help="How many candidates --tune measures.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Time limit for rewriting and the search."
    )
    seed: int = option(0, "--seed", min=0, help="Seed of random draws.")
    text: Text | None = option(None, "--emit", help="Print the kernels of the first candidate.")
    name: str | None = option(
        None, "--name", metavar="NAME", help="Name of the kernels in the text."
    )
    out: Path = option(STDOUT, "-o", metavar="FILE", help="Write the text to FILE instead.")
    json_file: Path | None = json_option()


COMMAND = Command("map", HELP, Map, "warploom.cli.map:map_")
