"""`warploom explore`: all implementations of a loop nest, bounded, counted, searched, written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.cli.commands.shared import (
    Text,
    cluster_option,
    json_option,
    no_store_option,
    processes_option,
    store_option,
)
from warploom.cli.declare import REQUIRED, STDOUT, Command, argument, option

HELP = """Explore the implementations of a loop nest: all orders, fusions, tiles, mappings to
threads, memories and caches as one space of decisions, with a lower bound on the time of everything
that is still possible.

KERNEL is axpy, matvec, gesummv, matmul (with splits=N in parts, which add-parts adds up),
batched-matmul, two-matmuls, doitgen, or FILE.py::NAME (a LoopNest, its program, or a function of
sizes that returns one; see docs/loopnests.md). On a machine with a GPU (and PyTorch or CuPy)
implementations are compiled, checked and timed; what was measured is kept in a store, so that no
code is measured twice. Without a GPU, or with --model, nothing is measured: what is minimised is
the bound, and the same command again answers from the store. What is found is lowered to a kernel,
checked, and run on the simulator on a few tiles of each axis. --processes and --cluster share the
search out (descents, walks of --estimate, texts and their compilation); what is found is the same,
and workers with the label GPU measure.

\b
--estimate   how many implementations there are, and how often a random descent is a dead end
--explain    the bound of what is still possible: by which resource, in which loop
--fix        a decision of yours, several times: 'size(m1)=16', 'dim_kind(sum_1.k1)=LOOP|UNROLL'

\b
Examples:
  $ warploom explore matmul --size m=1024,n=1024,k=1024 --explain
  $ warploom explore axpy --size n=1048576 --seconds 10 --emit cuda -o axpy.cu
  $ warploom explore matvec --size m=512,n=512 --fix 'dim_kind(n0)=LOOP' --keep found.json

Exit status: 0 found, 1 impossible, 2 bad input (contradictory decisions, sizes that are none),
3 undecided (nothing was found within the budget), 130 Ctrl-C, which keeps the best so far."""


class Engine(StrEnum):
    tree = "tree"
    random = "random"
    exact = "exact"


class Space(StrEnum):
    default = "default"
    paper = "paper"
    tensor = "tensor"
    bf16 = "tensor-bf16"


@dataclass(frozen=True, kw_only=True)
class ExploreOptions:
    """The options of one call."""

    kernel: str = argument(REQUIRED, metavar="KERNEL")
    size: list[str] = option([], "--size", metavar="K=V", help="Sizes and other parameters.")
    machine: str = option(
        "h200",
        "--machine",
        metavar="NAME|FILE",
        help="Whose rates bound the time (.toml, or .json).",
    )
    space: Space = option(
        Space.default,
        "--space",
        help="paper: as published, tiles divide; tensor, tensor-bf16: on tensor cores.",
    )
    fix: list[str] = option([], "--fix", metavar="CHOICE=VALUE", help="Decide something yourself.")
    estimate: bool = option(False, "--estimate", help="Estimate the size of the space.")
    walks: int = option(1000, "--walks", min=2, help="Random walks of --estimate.")
    cut: float | None = option(
        None, "--cut", min=0, metavar="MS", help="Milliseconds: --estimate without what is slower."
    )
    depth: int = option(10, "--depth", min=0, help="Down to this depth the cut applies.")
    explain: bool = option(False, "--explain", help="Show what bounds the time, and stop.")
    engine: Engine = option(Engine.tree, "--engine", help="How to search; exact: branch and bound.")
    evaluations: int = option(500, "--evaluations", min=1, help="Implementations to look at.")
    seconds: float | None = option(
        None,
        "--seconds",
        min=0,
        metavar="S",
        help="Wall time: the space, the search, the check.",
    )
    seed: int = option(0, "--seed", min=0, help="Another seed is another search.")
    model: bool = option(False, "--model", help="By the bound, though there is a GPU.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    keep: Path | None = option(
        None, "--keep", metavar="FILE", help="Go on from there, and keep it there."
    )
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    text: Text | None = option(None, "--emit", help="Print the kernel in this language.")
    out: Path = option(STDOUT, "-o", metavar="FILE", help="Write the text there instead.")
    json_file: Path | None = json_option()


COMMAND = Command("explore", HELP, ExploreOptions, "warploom.cli.explore:explore")
