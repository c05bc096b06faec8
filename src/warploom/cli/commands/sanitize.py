"""`warploom sanitize`: is a kernel safe; compute-sanitizer's four tools, without a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.choices import TOOLS
from warploom.cli.commands.ptx import Launched, Model, model_option
from warploom.cli.commands.shared import arch_option, json_option, launch_seconds_option
from warploom.cli.declare import REQUIRED, Command, argument, option

HELP = """Check a kernel for memory errors, data races, bad barriers and uninitialised values.

It has the tools of compute-sanitizer, and needs no GPU:

\b
  memcheck   accesses out of bounds or misaligned, use after free, assert and trap
  racecheck  data races in shared and global memory, missing fences of asynchronous copies
  synccheck  deadlocks, barriers and mbarriers that cannot complete, lanes that do not come
  initcheck  shared memory, heap memory and registers that are used before they are written

\b
Example:
  $ warploom sanitize examples/ptx/race.ptx --block 64 \\
      --arg f32[64]=range --arg f32[64]=zeros
  $ warploom sanitize kernel.cu --tool memcheck,racecheck --arg @x.npy --arg i32=7 \\
      --sarif found.sarif --junit found.xml

Arguments are those of `warploom ptx run`. An array may also be a file: @x.npy, @x.npz,
@x.npz:NAME or @x.pt has the type and the number of elements that the file has. A .pt file needs
PyTorch.

A .py file is a script of yours that launches kernels with `warploom.emulate`. It is run only if
you add --run, with your rights, as `python FILE.py` would run it. All its launches are checked.
A race is reported and the script goes on; what ends a launch is also raised in the script.

With --model ptx all that the PTX manual forbids is a race. What all GPUs do right all the same is
marked so; without the option it is not reported.

A chosen tool does not see what lies behind the end of a launch. So the exit status is 3 if a
launch ends at an error that no chosen tool reports, or at the time limit.

\b
Exit status:
  0    clean
  1    something was found
  2    bad input, or a script that fails
  3    a launch did not come to its end, and nothing was found before
  130  Ctrl-C"""


class PrintedForm(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    SANITIZER = "sanitizer"


@dataclass(frozen=True, kw_only=True)
class Sanitize(Launched):
    """The options of one call."""

    source: str = argument(
        REQUIRED, metavar="FILE.cu|.ptx|.py", help="The kernel, or a script that launches some."
    )
    tool: str = option(
        ",".join(TOOLS), "--tool", metavar="NAMES", help="The tools to use, with commas between."
    )
    strict: bool = option(
        False, "--strict", help="Also report races that change nothing, such as equal writes."
    )
    model: Model = model_option()
    run: bool = option(False, "--run", help="Run the .py script, and check its launches.")
    form: PrintedForm = option(
        PrintedForm.TEXT, "--format", help="Print in our words, or as compute-sanitizer prints."
    )
    sarif: Path | None = option(
        None, "--sarif", metavar="FILE", help="Write the findings as SARIF 2.1.0; - is stdout."
    )
    junit: Path | None = option(
        None, "--junit", metavar="FILE", help="Write one JUnit test case for each tool."
    )
    seed: int = option(0, "--seed", help="Seed of random arrays.")
    seconds: float = launch_seconds_option()
    arch: str = arch_option()
    json_file: Path | None = json_option()


COMMAND = Command("sanitize", HELP, Sanitize, "warploom.cli.sanitize:sanitize")
