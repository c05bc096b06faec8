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

SHUFFLE = """Replace loads by warp shuffles where proved right and, by default, where it pays.

Every other byte of the file stays as it is; the input is never overwritten. `warploom-ptxas` does
the same inside a build: it takes ptxas's arguments and calls the real one.

\b
Example:
  $ nvcc -ptx stencil.cu -o stencil.ptx
  $ warploom ptx shuffle stencil.ptx -o faster.ptx --check --why

Exit status: 0 done ("no gain, kept" is an answer), 1 --check found a difference, 2 bad input,
3 --check could not run some kernel, which shows nothing, 130 Ctrl-C."""
RUN = """Run a kernel without a GPU, every access checked.

An argument is TYPE=VALUE for a number or TYPE[COUNT]=START for an array, where START is zeros,
ones, range, random or a .npy file: f32[1024]=random, i32=1024, u8[64]=@bytes.npy. A structure is
an array of its bytes. --variable table=f32[8]=range gives a variable of the module its value.

\b
Example:
  $ warploom ptx run saxpy.ptx --grid 4 --block 256 \\
      --arg f32[1000]=range --arg f32[1000]=ones --arg f32=2 --arg i32=1000 --races

Launches of 65,536 threads and more, and those that turn out to be long work, are compiled to C,
where the kernel can be, with the same answers sooner. Races and counters cost time, so they are
looked for only if asked for. `engine` in the output says who ran.

CUDA text (.cu) is compiled first, by nvcc, NVRTC or clang. What is found is shown at the line of
the source where the PTX names one (-lineinfo), with block and thread; `--json` has it as
`findings`, whatever the exit status.

Exit status: 0 clean, 1 something found (a fault, a race, an assertion), 2 bad input, 3 stopped by
the time limit, or out of memory, 130 Ctrl-C."""
REPORT = """What a launch asks of memory, for each instruction, in lines of the source.

Requests are those of warps. Sectors (32 bytes of global or local memory) and wavefronts (passes
through the banks of shared memory) stand for each request, with what the same bytes would need at
best in brackets. Branches say how many warps diverged. Arguments are those of `warploom ptx run`.

\b
Example:
  $ warploom ptx report examples/ptx/saxpy.ptx --grid 4 --block 256 \\
      --arg f32[1000]=range --arg f32[1000]=ones --arg f32=2 --arg i32=1000

Registers come from ptxas, where one is on PATH. `--json` has the figures, one record with its
`rows`, or with its `findings` where the launch came to no end.

Exit status: 0 done, 1 the kernel does something wrong, 2 bad input, 3 stopped by the time limit,
or out of memory, 130 Ctrl-C."""


class Volatile(StrEnum):
    """How volatile accesses race."""

    RELAXED = "relaxed"
    WEAK = "weak"


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """The options of one call."""

    source: str = argument(REQUIRED, metavar="IN.ptx", help="- is standard input.")
    output: Path | None = option(
        None, "-o", "--output", metavar="OUT.ptx", help="Where it is written."
    )
    select: str = option(
        "pays", "--select", metavar="WHICH", help="pays, or all that can be proved."
    )
    variant: str = option(
        "corner",
        "--variant",
        metavar="HOW",
        help="corner, predicated; for timing studies also no-corner, no-load.",
    )
    limit: int = option(FARTHEST, "--limit", min=0, max=FARTHEST, help="Largest lane distance.")
    machine: str = option(
        "h200", "--machine", metavar="NAME|FILE", help="Whose latencies decide what pays."
    )
    check: bool = option(False, "--check", help="Run both on the emulator and compare.")
    why: bool = option(False, "--why", help="Say for each load what was decided.")
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class Launched:
    """The options of one launch."""

    source: str = argument(REQUIRED, metavar="IN.ptx|IN.cu", help="- is standard input.")
    kernel: str | None = kernel_option()
    grid: str = grid_option()
    block: str = block_option()
    cluster: str | None = option(
        None, "--cluster", metavar="X,Y,Z", help="Blocks of a cluster; a kernel may say it itself."
    )
    arg: list[str] = arg_option()
    variable: list[str] = variable_option()
    shared: int = shared_option()


@dataclass(frozen=True, kw_only=True)
class Run(Launched):
    """The options of one call."""

    heap: int | None = option(
        None, "--heap", metavar="BYTES", help="Bytes for device malloc; 8 MiB if not said."
    )
    seed: int = option(0, "--seed", help="For random arrays.")
    races: bool = option(False, "--races", help="Also look for data races.")
    benign: bool = option(
        False, "--benign", help="Writes of one value and loads of no use are no races."
    )
    volatile: Volatile = option(
        Volatile.RELAXED,
        "--volatile",
        help="How volatile accesses race: as atomics, or as plain ones.",
    )
    counters: bool = option(
        False, "--counters", help="Also count sectors, bank conflicts, divergence and the like."
    )
    seconds: float = launch_seconds_option()
    arch: str = arch_option()
    save: Path | None = option(
        None,
        "--save",
        metavar="FILE",
        help="Write the arrays: all as .npz, the one that was stored as .npy.",
    )
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class Reported(Launched):
    """The options of one call."""

    machine: str = option(
        "h200", "--machine", metavar="NAME|FILE", help="Whose limits hold and whose banks serve."
    )
    seed: int = option(0, "--seed", help="For random arrays.")
    seconds: float = launch_seconds_option()
    arch: str = arch_option()
    json_file: Path | None = json_option()


COMMAND = Group(
    "ptx",
    "Shuffles into finished PTX; PTX run without a GPU.",
    (
        Command("shuffle", SHUFFLE, Shuffle, "warploom.cli.ptx:shuffle"),
        Command("run", RUN, Run, "warploom.cli.ptx:run_kernel"),
        Command("report", REPORT, Reported, "warploom.cli.ptx_report:report"),
    ),
)
