"""`warploom judge`: is a kernel equal to its reference, for all inputs of a shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.ptx import Launched
from warploom.cli.commands.shared import SECONDS, arch_option, json_option
from warploom.cli.declare import REQUIRED, Command, argument, option

HELP = """Judge a kernel: is it equal to its reference for all inputs of a shape? Needs no GPU.

The reference is a function on NumPy arrays, or on tensors of PyTorch, in a Python file,
FILE.py::NAME. The file is imported, with your rights; `import torch` gives it a stand-in, so that
no PyTorch is needed. Its parameters bear the names of arguments and sizes.

Each argument of the kernel is NAME=TYPE…, in the kernel's order:

\b
  x=f32[rows,n]        an input that stands for any values
  y=f32[rows,n]=out    what the kernel writes; nobody has written it before
  y=f32[n]=inout       any values, which the kernel changes
  y=f32[n]=out:zeros   what the kernel writes, zeros at first
  t=f32[n]=scratch     memory to work in, of which nothing is asked; also scratch:zeros
  k=i32[n]=range       whole numbers, the same in all runs: zeros, ones, range or random
  scale=f32            a number that stands for any value; scale=f32=0.125 is this one
  n=i32=n              a whole number: an expression of the sizes

\b
Example:
  $ warploom judge softmax.cu --reference refs.py::softmax --grid rows --block 32 \\
      --arg 'x=f32[rows,n]' --arg 'y=f32[rows,n]=out' --arg n=i32=n \\
      --shape rows=3 --shape n=37,64

The verdict is one of three. Equal: as functions over the reals, in all schedules, where no
denominator vanishes; rounding and overflow are not looked at. The error that is left is printed.
Different: with inputs that show it by more than rounding, or with a fault, such as a race. Unknown:
all else, with the reasons. Constants that were taken for rounded ones are listed.

Said of each output: the types that its sums are held in, and the roundings on its longest path.
With --precision hard inputs are tried, too: how many bits cancel, and how far results are off, in
units in the last place. Limits such as --accumulate float32 and --ulps 4 are verdicts.

With --performance a time on an H200 is predicted. What would lower it is ranked by its gain, such
as bank conflicts, scattered or narrow accesses and divergent lanes.

The kernel is launched at two other shapes, too, and what is wrong there is said. With --general it
makes the verdict.

With --problem KERNEL is a candidate, or a folder of candidates, of which a table is printed. In
KernelBench's form the problem has Model, get_inputs and get_init_inputs. The candidate has
ModelNew, with kernels in load_inline or in Triton, if that is installed. --shape replaces whole
numbers of the problem: use small ones. A FlashInfer definition needs a kernel in CUDA or PTX, with
--grid and --block. No PyTorch is needed: both files see a stand-in. They are run with your rights.

With --launch the launch is a recorded one, and each --arg says what one of its arrays is.

\b
Exit status:
  0    equal
  1    different
  2    bad input
  3    unknown
  130  Ctrl-C"""


@dataclass(frozen=True, kw_only=True)
class Judge(Launched):
    """The options of one call."""

    source: str = argument(
        REQUIRED,
        metavar="KERNEL",
        help="FILE.cu, FILE.ptx, or FILE.py::NAME of such a text; a candidate of --problem.",
    )
    reference: str | None = option(
        None,
        "--reference",
        metavar="FILE.py::NAME",
        help="A function in NumPy or PyTorch.",
    )
    problem: Path | None = option(
        None,
        "--problem",
        metavar="FILE.py|FILE.json",
        help="A problem in KernelBench's form, or a FlashInfer definition, in its place.",
    )
    arg: list[str] = option(
        [], "--arg", metavar="NAME=TYPE…", help="The next argument of the kernel, by name."
    )
    shape: list[str] = option(
        [], "--shape", metavar="NAME=N,N", help="A size, with one value or several."
    )
    others: int = option(
        2, "--others", min=0, max=16, metavar="N", help="Shapes to launch that were not given."
    )
    general: bool = option(
        False, "--general", help="What is wrong at other shapes makes the verdict, too."
    )
    precision: bool = option(
        False, "--precision", help="Try inputs that are hard on rounding, too."
    )
    accumulate: str | None = option(
        None, "--accumulate", metavar="TYPE", help="The narrowest type that sums may be held in."
    )
    ulps: float | None = option(
        None, "--ulps", min=0, metavar="N", help="At most how far results are from the reference."
    )
    performance: bool = option(
        False, "--performance", help="Predict the time, and say what would lower it."
    )
    pattern: Path | None = option(
        None, "--pattern", metavar="FILE.toml", help="With it: write a pattern for layout solve."
    )
    counterexample: Path | None = option(
        None, "--counterexample", metavar="FILE.npz", help="Write a launch that shows a difference."
    )
    sarif: Path | None = option(
        None, "--sarif", metavar="FILE", help="Write the reasons as SARIF 2.1.0; - is stdout."
    )
    junit: Path | None = option(
        None, "--junit", metavar="FILE", help="Write the verdict as a JUnit test case."
    )
    seed: int | None = option(
        None, "--seed", min=0, help="Repeat a call; without it all is drawn anew."
    )
    seconds: float = option(
        SECONDS, "--seconds", min=0, metavar="S", help="Time limit for each shape."
    )
    arch: str = arch_option()
    json_file: Path | None = json_option()


COMMAND = Command("judge", HELP, Judge, "warploom.cli.judge:judge")
