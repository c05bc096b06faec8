"""`warploom synth`: fills the holes of sketches and proves the fills."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from textwrap import wrap

from warploom.choices import ALWAYS, FLATTENED, NOT_KNOWN, SKETCHES
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
KNOWN = f"T{ALWAYS[1:]}, with flatten {FLATTENED}; {NOT_KNOWN}"

HELP = f"""Fill the holes of sketches so that each computes its goal, and prove the fills.

SKETCH is a .swflow file, - (standard input, also without any argument; on a terminal that lists
the names), a name of the catalogue or of a row of 'warploom bench', or FILE.py::NAME: a Sketch, a
warp sketch, a Program, or a function of sizes that returns one. A kernel's name with its parameters
is the sketch that 'warploom kernel' fills.

With --emit the best fill becomes a kernel: proved, run on the simulator against the goal on several
tiles and on partial ones, and written to standard output or to the file after -o. 'warploom kernel
SKETCH --check' runs it on everything there is. With --as function it becomes a header with one
function of a warp, on registers, to include in a kernel of your own.

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

"Impossible": no fill is equal to the goal under the laws used. {KNOWN}.

Exit status: 0 found, 1 impossible or refuted, 2 bad input, 3 undecided (budget spent), 130 Ctrl-C,
which keeps what was found. With several inputs the worst counts.

A search of every fill, or of the best, that takes more than a few seconds is done in pieces, which
are kept: after Ctrl-C or a crash the same command goes on where it was. --processes and --cluster
share the pieces out; the fills are the same."""


class LawName(StrEnum):
    flatten = "flatten"
    none = "none"


class EngineName(StrEnum):
    default = "default"
    pairs = "pairs"
    smt = "smt"


@dataclass(frozen=True, kw_only=True)
class SynthOptions:
    """The options of one call."""

    sketches: list[str] = argument([], metavar="SKETCH")
    all_: bool = option(False, "--all", help="Every fill (the default).")
    first: bool = option(False, "--first", help="The first fill found.")
    best: bool = option(False, "--best", help="The fill with the fewest index operations.")
    engine: EngineName = option(
        EngineName.default, "--engine", help="pairs: the published pruner; smt: Z3."
    )
    seconds: float | None = option(
        None,
        "--seconds",
        min=0,
        metavar="S",
        help="Wall time for each sketch, its sets, all its goals and proofs included.",
    )
    memory: float | None = option(
        None,
        "--memory",
        min=1,
        metavar="MB",
        help="Megabytes of memory of the whole process; what was found is kept.",
    )
    goal: int | None = option(None, "--goal", min=1, help="Only the Nth goal of each sketch.")
    size: list[str] = option([], "--size", metavar="K=V", help="Build the sketch at this size.")
    transfer_to: list[str] = option(
        [],
        "--transfer",
        metavar="K=V,…",
        help="Carry a fill over to this size and prove it there; given twice, to two sizes.",
    )
    published: bool = option(
        False, "--published", help="Read every operator as 'fold', as the published tool does."
    )
    laws: LawName | None = option(
        None,
        "--laws",
        help="flatten: nested folds of one operator are one; none. Default: as the goal says.",
    )
    suggest: bool = option(
        False, "--suggest", help="If impossible: which other hole families would do."
    )
    limit: int = option(3, "--limit", min=0, help="Fills to print.")
    stats: bool = option(False, "--stats", help="Also what was visited and pruned.")
    text: Text | None = option(None, "--emit", help="Write the kernel of the best fill.")
    form: Form = option(Form.kernel, "--as", help=FORM)
    out: Path | None = option(None, "-o", metavar="FILE", help="Where to; - is standard output.")
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
        help="Write the proofs, for 'warploom verify': a list, one for each goal and size that has "
        "a proved fill. Those without are named; if none has one, an older FILE is removed.",
    )
    json_file: Path | None = json_option()


COMMAND = Command("synth", HELP, SynthOptions, "warploom.cli.synth:synth")
