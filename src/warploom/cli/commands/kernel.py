"""`warploom kernel`: the kernels of the catalogue, as text, checked, timed or mutated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import (
    FORM,
    Form,
    Text,
    cluster_option,
    dtype_option,
    index_bits_option,
    json_option,
    lanes_option,
    processes_option,
    step_option,
)
from warploom.cli.declare import Command, argument, option

HELP = """Write, check, time and mutate kernels: those of the catalogue, and of your own sketches.

Without NAME, the catalogue. With NAME alone, the kernel as CUDA C++: how lanes exchange data comes
from a sketch that is filled and verified when the kernel is built, as the header says, unless it
says that there is no fill. Settings that are 0 or auto are chosen by rule, for --size if it is
given: structures go through registers, through shared memory or directly, as it suits. NAME may
also be a sketch of your own, a .swflow file or FILE.py::NAME (a Sketch, a warp sketch, or a
function of sizes, set by --set), whose best fill becomes a kernel; its specification is the goal,
run on numbers, on parts of a tile, whole tiles and several. A device function (by name, or of a
sketch with --as function) is a header to include in a kernel of your own.

\b
--check   specification = simulator = C = OpenCL = compiled PTX on the emulator, on all its sizes;
          what this machine does not have is left out and named
--time    on this machine's GPU, beside a copy of as many bytes
--tune    measure the settings that are left open instead of choosing them by rule, for --size;
          --seconds S at most (30); kept in the store, from which --tune alone reads
--mutate  change index expressions, one at a time; the check must catch all that matter

\b
Examples:
  $ warploom kernel
  $ warploom kernel aos-to-soa --set fields=5 --check
  $ warploom kernel transposition --set m=12 --set n=8 --emit opencl
  $ warploom kernel aos-to-soa --set fields=24 --size n=10000001
  $ warploom kernel aos-sum --time --size n=10000000
  $ warploom kernel aos-to-soa --set fields=7 --size n=10000001 --tune --seconds 20
  $ warploom kernel sums.swflow --check --mutate
  $ warploom kernel load-structures --set fields=5 -o load_structures_5.cuh

Exit status: 0 right, 1 something is wrong (a refuted kernel, a surviving mutant), 2 bad input, 130
Ctrl-C (with --json: what was done so far)."""


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """The options of one call."""

    names: list[str] = argument([], metavar="NAME")
    setting: list[str] = option([], "--set", metavar="K=V", help="Set a parameter.")
    text: Text | None = option(None, "--emit", help="Print the kernel in this language.")
    form: Form | None = option(None, "--as", help=FORM)
    out: Path | None = option(None, "-o", metavar="FILE", help="Write the text there instead.")
    check: bool = option(False, "--check", help="Compare with the specification.")
    time: bool = option(False, "--time", help="Measure on a GPU.")
    size: list[str] = option(
        [], "--size", metavar="K=V", help="Size to decide open settings for, and to measure."
    )
    mutate: bool = option(False, "--mutate", help="Are wrong kernels noticed?")
    most: int | None = option(
        None, "--most", min=1, help="At most so many mutants, drawn at random."
    )
    lanes: int | None = lanes_option()
    step: list[str] = step_option()
    dtype: str | None = dtype_option()
    index_bits: int = index_bits_option()
    seconds: float | None = option(
        None,
        "--seconds",
        min=0,
        metavar="S",
        help="Wall time for --tune, or for the search of own sketches.",
    )
    tune: bool = option(False, "--tune", help="Measure open settings on a GPU; keep them.")
    store: Path | None = option(
        None, "--store", metavar="FILE", help="Where (default: the user's own)."
    )
    no_store: bool = option(False, "--no-store", help="Keep nothing, and read nothing.")
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    json_file: Path | None = json_option()


COMMAND = Command("kernel", HELP, KernelOptions, "warploom.cli.kernel:kernel")
