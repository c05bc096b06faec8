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

HELP = """Write, check and time kernels of the catalogue or of your own sketches.

\b
NAME is one of:
  (nothing)       list the catalogue
  NAME            a kernel or a device function of the catalogue; CUDA C++ unless --emit says else
  FILE.swflow     your own sketch; its best solution becomes a kernel
  FILE.py::NAME   the same for a Sketch, a warp sketch, or a function of sizes (see --set)

How lanes exchange data comes from a sketch, which is solved and verified when the kernel is built.
The header of the kernel states the solution, or says that there is none. Parameters that are 0 or
auto are chosen by rule, for --size if you give it. A device function is a header to include in your
own kernel; --as function makes one of a sketch.

\b
--check   compares simulator, C, OpenCL and compiled PTX with the specification at many sizes;
          it names what this machine does not have, such as an OpenCL device
--time    measures on this machine's GPU, beside a copy of as many bytes
--model   predicts the time on an H200, for --size if you give it, and says what limits it
--tune    measures open parameters on the GPU for --size instead of choosing them by rule;
          it takes --seconds at most (30), and keeps the result for the next --tune
--mutate  changes index expressions, one at a time; --check must notice each change that matters

\b
Examples:
  $ warploom kernel
  $ warploom kernel aos-to-soa --set fields=5 --check
  $ warploom kernel transposition --set m=12 --set n=8 --emit opencl
  $ warploom kernel aos-to-soa --set fields=24 --size n=10000001
  $ warploom kernel aos-sum --time --size n=10000000
  $ warploom kernel aos-sum --model --size n=10000000
  $ warploom kernel aos-to-soa --set fields=7 --size n=10000001 --tune --seconds 20
  $ warploom kernel sums.swflow --check --mutate
  $ warploom kernel load-structures --set fields=5 -o load_structures_5.cuh

\b
Exit status:
  0    right
  1    wrong: a kernel differs from its specification, or a mutant was not noticed
  2    bad input
  130  Ctrl-C: --json has what was done so far"""


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """The options of one call."""

    names: list[str] = argument([], metavar="NAME")
    setting: list[str] = option(
        [], "--set", metavar="K=V", help="Set a parameter of the kernel, or a size of the sketch."
    )
    text: Text | None = option(None, "--emit", help="Print the kernel in this language.")
    form: Form | None = option(None, "--as", help=FORM)
    out: Path | None = option(None, "-o", metavar="FILE", help="Write the text to FILE instead.")
    check: bool = option(False, "--check", help="Compare the kernel with its specification.")
    time: bool = option(False, "--time", help="Measure the kernel on a GPU.")
    model: bool = option(
        False, "--model", help="Predict its time on an H200 by the time model, without a GPU."
    )
    size: list[str] = option(
        [],
        "--size",
        metavar="K=V",
        help="Size of the arrays, for choosing parameters and for measuring.",
    )
    mutate: bool = option(False, "--mutate", help="Test whether --check notices wrong kernels.")
    most: int | None = option(None, "--most", min=1, help="Try at most N mutants, drawn at random.")
    lanes: int | None = lanes_option()
    step: list[str] = step_option()
    dtype: str | None = dtype_option()
    index_bits: int = index_bits_option()
    seconds: float | None = option(
        None,
        "--seconds",
        min=0,
        metavar="S",
        help="Time limit for --tune, or for solving your own sketch.",
    )
    tune: bool = option(
        False, "--tune", help="Measure open parameters on a GPU, and keep the best."
    )
    store: Path | None = option(
        None,
        "--store",
        metavar="FILE",
        help="The file that keeps results (default: one in your data folder).",
    )
    no_store: bool = option(False, "--no-store", help="Ignore kept results, and keep none.")
    processes: int | None = processes_option()
    cluster: str | None = cluster_option()
    json_file: Path | None = json_option()


COMMAND = Command("kernel", HELP, KernelOptions, "warploom.cli.kernel:kernel")
