"""`warploom explore`: all implementations of a loop nest, bounded, counted, searched, written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.choices import STRATEGIES
from warploom.cli.commands.shared import (
    Text,
    cluster_option,
    json_option,
    no_store_option,
    processes_option,
    store_option,
)
from warploom.cli.declare import REQUIRED, STDOUT, Command, argument, option

HELP = """Search all implementations of a loop nest, such as a GEMM, and bound their time.

The implementations differ in the order, fusion and tiling of loops, in the mapping to threads, and
in the use of memories and caches. The lower bound covers everything that is still possible.

KERNEL is axpy, matvec, gesummv, matmul, batched-matmul, two-matmuls, doitgen, convolution, or
FILE.py::NAME (a LoopNest, its program, or a function of sizes that returns one; see
docs/loopnests.md). With splits=N, matmul is split along k, and add-parts adds up the parts. With
--type, factors are converted where they are multiplied, and sums are f32 (of i8: i32). Results have
the type of the factors; bf16 for e4m3 and e5m2, i32 for i8. Of tf32 they are f32, of which the
leading bits count. matmul also has weights=int4 or int8 in groups: group=128.

On a machine with a GPU (and PyTorch or CuPy) all cores draw and compile implementations. The GPU
checks and times them. Strategies come first; later the nest as it is has its share. The store keeps
what was measured, with its decisions, and the same command goes on from there. Without a GPU, or
with --model, the search minimises the bound, and the same command answers from the store the second
time. The best implementation becomes a kernel, which is checked and run on the simulator on a few
tiles.

--processes and --cluster share the work, and find the same. Workers with the label GPU measure.

\b
Strategies, each for the programs that it is meant for (--explain says why not):
STRATEGIES

\b
--certificate  run the best one on the emulator, and prove its pipeline and its layouts
--estimate   estimate how many implementations there are, and how many random descents fail
--explain    show the terms of the lower bound: which resource, in which loop
--fix        decide something yourself; repeatable: 'size(m1)=16', 'dim_kind(sum_1.k1)=LOOP|UNROLL';
             rows=128 or stages=4 with --strategy warp-group-tile, which has its own decisions

\b
Examples:
  $ warploom explore matmul --size m=1024,n=1024,k=1024 --explain
  $ warploom explore matmul --type bf16 --size m=4096,n=4096,k=4096 --seconds 30
  $ warploom explore matmul --type bf16 --size m=16,n=4096,k=4096,weights=int4,group=128
  $ warploom explore axpy --size n=1048576 --seconds 10 --emit cuda -o axpy.cu
  $ warploom explore matvec --size m=512,n=512 --fix 'dim_kind(n0)=LOOP' --keep found.json

\b
Exit status:
  0    found
  1    impossible
  2    bad input, such as decisions that contradict each other
  3    undecided: nothing was found within the time limit
  130  Ctrl-C: the best so far is printed and kept"""


HELP = HELP.replace(
    "STRATEGIES", "\n".join(f"  {name:19} {what}" for name, what in STRATEGIES.items())
)


class Engine(StrEnum):
    tree = "tree"
    random = "random"
    exact = "exact"


class Space(StrEnum):
    default = "default"
    paper = "paper"
    tensor = "tensor"
    bf16 = "tensor-bf16"


class Type(StrEnum):
    f32 = "f32"
    f16 = "f16"
    bf16 = "bf16"
    e4m3 = "e4m3"
    e5m2 = "e5m2"
    i8 = "i8"
    tf32 = "tf32"


@dataclass(frozen=True, kw_only=True)
class Explore:
    """The options of one call."""

    kernel: str = argument(REQUIRED, metavar="KERNEL")
    size: list[str] = option([], "--size", metavar="K=V", help="Set a size or another parameter.")
    type: Type | None = option(
        None,
        "--type",
        metavar="T",
        help="Type of the factors of matmul and batched-matmul: f32, tf32, f16, bf16, e4m3, e5m2, "
        "i8.",
    )
    machine: str = option(
        "h200",
        "--machine",
        metavar="NAME|FILE",
        help="Machine whose rates bound the time: a name, a .toml or a .json.",
    )
    space: Space = option(
        Space.default,
        "--space",
        help="Which implementations: as published (paper), or on tensor cores (tensor: tf32).",
    )
    strategy: str | None = option(
        None,
        "--strategy",
        metavar="NAME|none",
        help="Only this one of those below; none: the nest as it is.",
    )
    fix: list[str] = option([], "--fix", metavar="CHOICE=VALUE", help="Decide something yourself.")
    memory: int | None = option(
        None,
        "--memory",
        min=0,
        metavar="B",
        help="Limit on bytes of global memory beside inputs and output.",
    )
    estimate: bool = option(False, "--estimate", help="Estimate the size of the space.")
    walks: int = option(1000, "--walks", min=2, help="How many random walks --estimate makes.")
    cut: float | None = option(
        None,
        "--cut",
        min=0,
        metavar="MS",
        help="Leave out of --estimate what the bound says takes more than MS milliseconds.",
    )
    depth: int = option(
        10, "--depth", min=0, help="Depth of the search tree down to which --cut applies."
    )
    explain: bool = option(False, "--explain", help="Show what bounds the time, and stop.")
    engine: Engine = option(
        Engine.tree, "--engine", help="Search a tree, at random, or by branch and bound (exact)."
    )
    evaluations: int | None = option(
        None,
        "--evaluations",
        min=1,
        help="The most implementations to look at (500; measured: 1000, or as --seconds allow).",
    )
    seconds: float | None = option(
        None,
        "--seconds",
        min=0,
        metavar="S",
        help="Time limit for everything.",
    )
    seed: int = option(0, "--seed", min=0, help="Seed of the search.")
    model: bool = option(False, "--model", help="Use the bound alone, even if there is a GPU.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    keep: Path | None = option(
        None,
        "--keep",
        metavar="FILE",
        help="Continue the search that FILE holds, and write it back.",
    )
    certificate: Path | None = option(
        None,
        "--certificate",
        metavar="FILE",
        help="Prove the best one, of warp groups, and write the proof.",
    )
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    text: Text | None = option(None, "--emit", help="Print the kernel in this language.")
    name: str | None = option(
        None, "--name", metavar="NAME", help="Name of the kernel in the text."
    )
    out: Path = option(STDOUT, "-o", metavar="FILE", help="Write the text to FILE instead.")
    json_file: Path | None = json_option()


COMMAND = Command("explore", HELP, Explore, "warploom.cli.explore:explore")
