"""`warploom ptx`: shuffles into PTX; PTX without a GPU, and what it asks of memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from warploom.choices import FARTHEST
from warploom.cli.commands.shared import (
    arch_option,
    arg_option,
    block_option,
    grid_option,
    json_option,
    kernel_option,
    launch_seconds_option,
    shared_option,
    variable_option,
)
from warploom.cli.declare import REQUIRED, Command, Group, argument, option

SHUFFLE = """Replace loads by warp shuffles where that is proved and, by default, where it pays.

All other bytes of the file stay as they are, and the input is never overwritten. `warploom-ptxas`
does the same inside a build: it takes the arguments of ptxas, and then calls ptxas.

\b
Example:
  $ nvcc -ptx stencil.cu -o stencil.ptx
  $ warploom ptx shuffle stencil.ptx -o faster.ptx --check --why

\b
Exit status:
  0    done; "no gain, kept" is an answer
  1    --check found a difference
  2    bad input
  3    --check could not run some kernel
  130  Ctrl-C"""
RUN = """Run a kernel without a GPU, and check every access.

An argument of the kernel is TYPE=VALUE for a number or TYPE[COUNT]=START for an array. START is
zeros, ones, range, random or a .npy file: f32[1024]=random, i32=1024, u8[64]=@bytes.npy. A
structure is an array of its bytes. --variable table=f32[8]=range sets a variable of the module.

\b
Example:
  $ warploom ptx run saxpy.ptx --grid 4 --block 256 \\
      --arg f32[1000]=range --arg f32[1000]=ones --arg f32=2 --arg i32=1000 --races

CUDA source (.cu) is compiled first, by nvcc, NVRTC or clang. A finding names block and thread, and
the line of the source if the PTX has line information (-lineinfo). `--json` has all findings.

Long launches are compiled to C if the kernel allows it, which is faster and gives the same answers.
Launches of 65,536 threads and more are compiled at once. The line `engine` in the output says what
ran. Races and counters cost time, so they are optional.

\b
Exit status:
  0    clean
  1    something was found: a fault, a race, a failed assertion
  2    bad input
  3    not proved, with --prove; stopped by the time limit, or out of memory
  130  Ctrl-C"""
REPORT = """Report the memory traffic, divergence and predicted time of a launch.

Traffic and divergence are told by line of the source.

Each row is an instruction. A request is one access of a warp. The row has the sectors (32 bytes of
global or local memory) or the wavefronts (passes through the banks of shared memory) of a request.
In brackets is what the same bytes need at best. A branch has the number of warps that diverged.
The last line predicts the time on the machine, and says what limits it. That is a model, fitted to
kernels of float arithmetic. There is none for bulk copies, wgmma, textures and global atomics.
Arguments are those of `warploom ptx run`.

\b
Example:
  $ warploom ptx report examples/ptx/saxpy.ptx --grid 4 --block 256 \\
      --arg f32[1000]=range --arg f32[1000]=ones --arg f32=2 --arg i32=1000

Register counts come from ptxas, if one is on PATH. `--json` writes one record with all `rows`, or
with the `findings` if the launch did not end.

\b
Exit status:
  0    done
  1    the kernel does something wrong
  2    bad input
  3    stopped by the time limit, or out of memory
  130  Ctrl-C"""


class Model(StrEnum):
    """By which rules data races are judged."""

    PRACTICE = "practice"
    PTX = "ptx"


class Volatile(StrEnum):
    """How volatile accesses race."""

    RELAXED = "relaxed"
    WEAK = "weak"


def model_option() -> Model:
    found: Model = option(
        Model.PRACTICE,
        "--model",
        help="Races that GPUs get wrong, or all that the PTX manual forbids (ptx).",
    )
    return found


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """The options of one call."""

    source: str = argument(REQUIRED, metavar="IN.ptx", help="The file; - is standard input.")
    output: Path | None = option(
        None, "-o", "--output", metavar="OUT.ptx", help="Write the PTX to this file."
    )
    select: str = option(
        "pays",
        "--select",
        metavar="WHICH",
        help="Insert what pays by the time model (pays), or all that is proved (all).",
    )
    variant: str = option(
        "corner",
        "--variant",
        metavar="HOW",
        help="Form of the code: corner or predicated; no-corner and no-load are for timing only.",
    )
    limit: int = option(
        FARTHEST, "--limit", min=0, max=FARTHEST, help="Largest distance between lanes."
    )
    machine: str = option(
        "h200", "--machine", metavar="NAME|FILE", help="Machine whose times decide what pays."
    )
    check: bool = option(False, "--check", help="Run both versions on the emulator, and compare.")
    why: bool = option(False, "--why", help="Explain the decision for each load.")
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class Launched:
    """The options of one launch."""

    source: str = argument(REQUIRED, metavar="IN.ptx|IN.cu", help="The file; - is standard input.")
    kernel: str | None = kernel_option()
    grid: str = grid_option()
    block: str = block_option()
    cluster: str | None = option(
        None, "--cluster", metavar="X,Y,Z", help="Blocks of a cluster; a kernel may say it itself."
    )
    arg: list[str] = arg_option()
    variable: list[str] = variable_option()
    shared: int = shared_option()
    launch: Path | None = option(
        None,
        "--launch",
        metavar="FILE",
        help="A launch that was recorded: grid, block and arguments, as .json or .npz.",
    )


@dataclass(frozen=True, kw_only=True)
class Run(Launched):
    """The options of one call."""

    heap: int | None = option(
        None, "--heap", metavar="BYTES", help="Bytes for device malloc (default: 8 MiB)."
    )
    seed: int = option(0, "--seed", help="Seed of random arrays.")
    races: bool = option(False, "--races", help="Also look for data races.")
    benign: bool = option(
        False, "--benign", help="Leave out races that change nothing: equal writes, unused loads."
    )
    prove: bool = option(
        False, "--prove", help="Say whether all schedules do the same, for all data. Adds races."
    )
    certificate: Path | None = option(
        None, "--certificate", metavar="FILE", help="With --prove: write the proof."
    )
    explore: float | None = option(
        None, "--explore", metavar="SECONDS", help="Run other schedules, unless a proof covers all."
    )
    schedule: str | None = option(
        None, "--schedule", metavar="WHO", help="Hold warps back, as --explore says: 0:1@5."
    )
    volatile: Volatile = option(
        Volatile.RELAXED,
        "--volatile",
        help="Treat volatile accesses as relaxed atomics, or as plain accesses (weak).",
    )
    model: Model = model_option()
    counters: bool = option(
        False, "--counters", help="Also count sectors, bank conflicts, divergent branches and more."
    )
    seconds: float = launch_seconds_option()
    arch: str = arch_option()
    save: Path | None = option(
        None,
        "--save",
        metavar="FILE",
        help="Write the arrays after the launch: all (.npz), or the one that was changed (.npy).",
    )
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class Reported(Launched):
    """The options of one call."""

    machine: str = option(
        "h200", "--machine", metavar="NAME|FILE", help="Machine whose limits and banks are assumed."
    )
    seed: int = option(0, "--seed", help="Seed of random arrays.")
    seconds: float = launch_seconds_option()
    arch: str = arch_option()
    json_file: Path | None = json_option()


COMMAND = Group(
    "ptx",
    "Run and check CUDA or PTX without a GPU; count memory traffic; insert shuffles.",
    (
        Command("shuffle", SHUFFLE, Shuffle, "warploom.cli.ptx:shuffle"),
        Command("run", RUN, Run, "warploom.cli.ptx:run_kernel"),
        Command("report", REPORT, Reported, "warploom.cli.ptx_report:report"),
    ),
)
