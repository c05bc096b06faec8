"""`warploom synth`: fills the holes of sketches and proves the fills."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from textwrap import wrap

from warploom.choices import NOT_KNOWN, SKETCHES
from warploom.cli.commands.shared import (
    FORM,
    Form,
    Text,
    cluster_option,
    dtype_option,
    index_bits_option,
    json_option,
    lanes_option,
    no_store_option,
    processes_option,
    step_option,
    store_option,
)
from warploom.cli.declare import Command, argument, option

_NAMES = "\n       ".join(wrap(", ".join(SKETCHES), 88, break_on_hyphens=False))
_UNUSED = f"Not used: {NOT_KNOWN.removesuffix(' are not among them')}."

HELP = f"""Find index arithmetic: fill the holes of a sketch, and prove the solutions (fills).

\b
SKETCH is one of:
  FILE.swflow     a sketch as text
  -               the same from standard input, as without an argument (a terminal: lists names)
  NAME            a sketch of the catalogue, listed below, or a row of 'warploom bench'
  FILE.py::NAME   a Sketch, a warp sketch, a Program, or a function of sizes that returns one

With --emit the best solution becomes a kernel. It is proved, and run on the simulator on whole and
partial tiles. 'warploom kernel SKETCH --check' also runs it as C, OpenCL and PTX. With --as
function the output is a header with one warp-level function to include in your own kernel.

\b
Names: {_NAMES}

\b
Example:
  $ cat sums.swflow
  x: [12] = range(0, 12)            # twelve symbols, 0 to 11
  regs: [4,3] = load_rep(x)         # four lanes with three registers each
  s: [4,3] = ?row_xforms(regs)      # a hole: move data within each lane
  t: [4,3] = ?col_xforms(s)         # a hole: exchange data between lanes
  sum: [4] = + identity{{fold_len=3}}(t)
  goal: [4] trove_sum{{n=3}}          # lane i holds x[3i] + x[3i+1] + x[3i+2]
  $ warploom synth sums.swflow --stats
  $ warploom synth sums.swflow --emit cuda -o sums.cu
  $ warploom synth gaussian --transfer lanes=128    # found on 8 lanes, proved on 128
  $ warploom synth sums.swflow --certificate sums.json && warploom verify sums.json

"Impossible" is a proof that no solution equals the goal under the laws used. Folds (sums, products,
minima) are equal up to the order of items. With --laws flatten, nested folds of one operator are
one fold, and a fold of one item is that item. {_UNUSED}

A search for all solutions, or for the best, is kept in pieces if it takes more than a few seconds.
The same command goes on where it was after Ctrl-C or a crash. --processes and --cluster share the
pieces among workers, and find the same solutions.

\b
Exit status:
  0    found
  1    impossible or refuted
  2    bad input
  3    undecided: the time or memory limit was reached
  130  Ctrl-C: what was found so far is printed and kept
With several inputs the worst counts."""


class LawName(StrEnum):
    flatten = "flatten"
    none = "none"


class EngineName(StrEnum):
    default = "default"
    pairs = "pairs"
    smt = "smt"


@dataclass(frozen=True, kw_only=True)
class Synth:
    """The options of one call."""

    sketches: list[str] = argument([], metavar="SKETCH")
    all_: bool = option(False, "--all", help="Find every solution (the default).")
    first: bool = option(False, "--first", help="Stop at the first solution.")
    best: bool = option(False, "--best", help="Find the solution with the fewest index operations.")
    engine: EngineName = option(
        EngineName.default,
        "--engine",
        help="Search with the default engine, the published pruning (pairs), or Z3 (smt).",
    )
    seconds: float | None = option(
        None,
        "--seconds",
        min=0,
        metavar="S",
        help="Time limit for each sketch, including all goals and proofs.",
    )
    memory: float | None = option(
        None,
        "--memory",
        min=1,
        metavar="MB",
        help="Memory limit of the process, in megabytes; what was found is kept.",
    )
    goal: int | None = option(
        None, "--goal", min=1, help="Search only the Nth goal of each sketch."
    )
    size: list[str] = option([], "--size", metavar="K=V", help="Set a size of the sketch.")
    transfer_to: list[str] = option(
        [],
        "--transfer",
        metavar="K=V,…",
        help="Also prove the solution at this larger size; given twice, at two sizes.",
    )
    published: bool = option(
        False, "--published", help="Ignore which operator a fold has, as the published tool does."
    )
    laws: LawName | None = option(
        None,
        "--laws",
        help="Which laws a proof may use (default: those of the goal); flatten is described above.",
    )
    suggest: bool = option(
        False, "--suggest", help="If impossible, say which other functions would work in the holes."
    )
    limit: int = option(3, "--limit", min=0, help="How many solutions to print.")
    stats: bool = option(False, "--stats", help="Also print how much was visited and pruned.")
    text: Text | None = option(
        None, "--emit", help="Write the kernel of the best solution in this language."
    )
    form: Form = option(Form.kernel, "--as", help=FORM)
    out: Path | None = option(
        None, "-o", metavar="FILE", help="Write the text to FILE; - is standard output."
    )
    lanes: int | None = lanes_option()
    step: list[str] = step_option()
    dtype: str | None = dtype_option()
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    index_bits: int = index_bits_option()
    proof: Path | None = option(
        None,
        "--certificate",
        metavar="FILE",
        help="Write proofs for 'warploom verify', one for each goal and size with a solution, and "
        "for goals that have none. Without any proof an older FILE is removed.",
    )
    json_file: Path | None = json_option()


COMMAND = Command("synth", HELP, Synth, "warploom.cli.synth:synth")
