"""`warploom layout`: the best layout for how a tensor is used, or a proof that there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.choices import CONVERSIONS, LANGUAGES, SPELLINGS, VARIED
from warploom.cli.commands.shared import json_option, no_store_option, store_option
from warploom.cli.declare import REQUIRED, STDOUT, Command, Group, argument, option

SOLVE = """Find the shared-memory layout that serves all accesses in the fewest wavefronts.

A bank conflict of n ways takes n wavefronts. The solver minimises the wavefronts of the whole tile,
over all steps of all accesses. `weight = 10` in a TOML file counts an access ten times. With
--worst the access with the most wavefronts is minimised instead. Row-major layouts, swizzles and
padding are tried first, then larger classes. If --seconds ends the search, the answer names the
classes that were not tried.

PATTERN says how lanes use the tile: a TOML file (see docs/layouts.md) or a name, such as
transpose:32x32:f32, ldmatrix:64x96:f16, blocks:32x32 or mfma:64x64:f16@gfx942. The name 'all'
stands for the fifty problems of the published table.

\b
Classes of layouts (--class):
  none     row-major
  pad      row-major with unused elements after each row
  swizzle  one Swizzle<B,M,S>
  xor      every bijective matrix over F2
  mixed    xor, and exchanges, rotations, tiles and padding for any size
  any      every layout
  tma      what TMA tensor copies can write: boxes, each in a TMA swizzle mode
  wgmma    what descriptors of wgmma read: blocks of swizzled rows

\b
Decisions about the accesses (--vary):
  width     how many bytes a lane moves at once
  matrices  ldmatrix and stmatrix in place of ld and st
  order     each lane begins at a step of its own

\b
Example:
  $ warploom layout solve transpose:32x32:f32 --emit cuda
  $ warploom layout solve mine.toml --class any --certificate proof.json
  $ warploom layout solve transpose:32x32:f32 --vary width,matrices
  $ warploom verify proof.json

The same command answers from the store the second time.

\b
Exit status:
  0    a layout of the class meets the bound, which no layout of any class can beat
  1    no layout of the class meets the bound, by proof; the best one is printed
  2    bad input
  3    undecided: the search was stopped; the best so far is printed
  130  Ctrl-C: the best so far is printed"""
SHOW = """Show the properties of a layout and, with a pattern, which lanes conflict in which banks.

LAYOUT is (32,32):(33,1), S<3,3,3> o (64,64):(64,1) or pad<48,8> o (128,48):(48,1). It may also be a
CuTe layout in any spelling or as a C++ type. Of Triton it takes swizzled(vec,perPhase,maxPhase),
bases and attributes (#ttg.swizzled_shared<{…}>). Of TileLang it takes T.Layout((64, 64), lambda i,
j: …), which is parsed, never run. --emit converts between these formats.

\b
Example:
  $ warploom layout show '(32,32):(32,1)' --pattern transpose:32x32:f32 --access 1 -o tile.html
  $ warploom layout show 'swizzled(8,1,8)' --shape 64x64 --element f16 --emit cute"""
CHECK = """Check your own layout against the accesses of a pattern.

The check says whether all elements have different addresses, and whether vectors are whole and
aligned. It also says how many wavefronts each access takes, and whether a better layout exists.

\b
Example:
  $ warploom layout check '(32,32):(33,1)' transpose:32x32:f32

\b
Exit status:
  0    the layout is right and meets the bound
  1    something is wrong, or another layout is better
  2    bad input"""
CONVERT = """Convert data from one register layout to another: find which threads send what to whom.

A register layout is written as Triton's bases ({"register": [[0, 1]], "lane": …, "warp": …}) or
layout objects, such as BlockedLayout(…), or attributes, such as #ttg.blocked<{…}>. It may also be a
name, blocked(…), mma_a(k), mma_b(k) or mma_c(), or CuTe's layout of threads and values,
(32,4):(4,1). Layouts without a shape need --shape.

\b
All ways are shown, and a rule chooses one, unless --way or --tune does:
  nothing   every thread holds what it should already
  renames   the same in other registers
  shuffles  the fewest rounds in which each element goes straight to its lane, with a proof
  shared    through shared memory, with the solved layout
  matrices  through shared memory, with ldmatrix and stmatrix

--tune measures all ways on a GPU for 30 seconds, or for --seconds, and keeps the fastest for the
next --tune. Without --tune and --check, the same command answers from the store the second time.

\b
Example:
  $ warploom layout convert --from '(32,5):(1,32)' --to '(32,5):(5,1)' --emit cuda
  $ warploom layout convert --from 'mma_c()' --to 'mma_a(4)' --shape 16x32 --element i8 --check
  $ warploom layout convert --from '(32,4):(4,1)' --to '(32,4):(1,32)' --tune --emit cuda

\b
Exit status:
  0    the fewest rounds are proved, or none are needed
  1    a check failed
  2    bad input
  3    undecided: fewer rounds may exist, the search was stopped, or no check could run
  130  Ctrl-C: the best so far is printed"""

READ = """Rank the layout conversions and shared-memory accesses of a Triton kernel by their cost.

FILE is TTGIR, Triton's GPU IR, as compiled.asm["ttgir"] has it. It is parsed, never executed. The
command lists each convert_layout, local_load, local_store, local_alloc and asynchronous copy. An
operation in a loop ranks as ten times as costly as one outside.

\b
Columns:
  cost        in wavefronts, with shuffles, selects, instructions and barriers of a conversion
  wavefronts  of shared memory, of all warps, for the layout that the file has
  least       what no layout takes fewer than, for this access

Each tile of shared memory is then judged by all of its accesses together. A layout that takes fewer
wavefronts is printed, also as an attribute. Tiles that wgmma or TMA use keep their layout.

\b
Example:
  $ warploom layout read examples/ttgir/transpose_sm90.ttgir
  $ warploom layout read kernel.ttgir --json costs.json

\b
Exit status:
  0    no tile has a better layout
  1    a tile has a better layout
  2    bad input
  3    undecided: an operation could not be counted, or the search was stopped
  130  Ctrl-C"""


def _emit_option() -> Any:
    said = "Write an index function, or the layout in another tool's words."
    return option(None, "--emit", metavar="|".join((*LANGUAGES, *SPELLINGS)), help=said)


TILES = """Choose accesses and layouts of several tiles of one kernel together.

FILE is TOML with a [[tile]] for each tile. A tile has a shape, accesses in the order of its life, a
number of buffers, and the phases that it is alive in. Tiles of one phase share the memory of a
block. docs/layouts.md has an example under "Several tiles together".

For each tile the command chooses widths, ldmatrix or stmatrix, and a layout. Together they take the
fewest wavefronts that fit into shared memory, and then the fewest instructions. The answer says
where each tile lies, and how much each of its accesses takes. --certificate writes a proof for all
tiles together. The command 'warploom show' draws them.

\b
Example:
  $ warploom layout tiles examples/tiles/matmul.toml
  $ warploom layout tiles examples/tiles/matmul.toml --emit cuda --certificate proof.json
  $ warploom verify proof.json
  $ warploom show examples/tiles/matmul.toml -o matmul.html

\b
Exit status:
  0    every tile meets the bound, which no layouts can beat
  1    no choice that fits meets the bound, by proof; the best one is printed, if there is one
  2    bad input
  3    undecided: the search was stopped; the best so far is printed
  130  Ctrl-C"""


def _name_option(made_from: str) -> Any:
    said = f"Name of what --emit writes (default: made from {made_from})."
    return option(None, "--name", metavar="NAME", help=said)


@dataclass(frozen=True, kw_only=True)
class Solve:
    """The options of one call."""

    patterns: list[str] = argument([], metavar="PATTERN")
    named: list[str] = option(
        [], "--pattern", metavar="NAME", help="A pattern; the same as the argument."
    )
    klass: str | None = option(
        None,
        "--class",
        metavar="CLASS",
        help="Class of layouts to search (default: mixed; tma or wgmma where those use the tile).",
    )
    worst: bool = option(
        False, "--worst", help="Minimise the access with the most wavefronts instead of the sum."
    )
    no_waste: bool = option(
        False, "--no-waste", help="Allow no padding: every element of shared memory is used."
    )
    vary: str | None = option(
        None,
        "--vary",
        metavar=",".join(VARIED),
        help="Decide these properties of the accesses together with the layout.",
    )
    machine: str | None = option(
        None, "--machine", metavar="NAME|FILE", help="Machine whose banks serve the accesses."
    )
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Time limit for each pattern."
    )
    memory: float | None = option(
        None, "--memory", min=1, metavar="MB", help="Memory limit of the process, in megabytes."
    )
    emit: str | None = _emit_option()
    name: str | None = _name_option("the pattern")
    out: Path = option(
        STDOUT, "-o", metavar="FILE", help="Write the text to FILE; - is standard output."
    )
    proof: Path | None = option(
        None, "--certificate", metavar="FILE", help="Write a proof for 'warploom verify'."
    )
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ShowLayout:
    """The options of one call."""

    layout: str = argument(REQUIRED, metavar="LAYOUT")
    pattern: str | None = option(
        None, "--pattern", metavar="PATTERN", help="The accesses to show: a TOML file, or a name."
    )
    access: int = option(0, "--access", min=0, help="Number of the access in the pattern.")
    step: int = option(0, "--step", min=0, help="Number of the step of the access.")
    measured: str | None = option(
        None,
        "--measured",
        metavar="4,32",
        help="Compare with wavefronts per request that a profiler counted.",
    )
    picture: Path | None = option(
        None, "-o", metavar="FILE.svg|FILE.html", help="Draw the layout beside the row-major one."
    )
    shape: str | None = option(
        None, "--shape", metavar="64x64", help="Shape of the tensor, if there is no pattern."
    )
    element: str | None = option(
        None, "--element", metavar="TYPE", help="Type of an element, if there is no pattern."
    )
    emit: str | None = _emit_option()
    name: str | None = _name_option("the layout")
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class CheckLayout:
    """The options of one call."""

    layout: str = argument(REQUIRED, metavar="LAYOUT")
    pattern: str = argument(REQUIRED, metavar="PATTERN", help="A TOML file, a name, or 'all'.")
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class Convert:
    """The options of one call."""

    source: str = option(REQUIRED, "--from", metavar="LAYOUT", help="The layout that threads hold.")
    target: str = option(
        REQUIRED, "--to", metavar="LAYOUT", help="The layout that they should hold."
    )
    shape: str | None = option(
        None, "--shape", metavar="32x32", help="Shape of the tensor, if the layouts do not say it."
    )
    element: str = option("f32", "--element", metavar="TYPE", help="Type of an element.")
    machine: str | None = option(
        None, "--machine", metavar="NAME|FILE", help="Machine that the conversion is for."
    )
    way: str | None = option(
        None, "--way", metavar="WAY", help=f"Take this way: {', '.join(CONVERSIONS)}."
    )
    check: bool = option(
        False, "--check", help="Run the kernel on the simulator and, as PTX, on the emulator."
    )
    tune: bool = option(False, "--tune", help="Measure all ways on a GPU, and keep the fastest.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Time limit of the search, and of --tune."
    )
    emit: str | None = option(None, "--emit", metavar="|".join(LANGUAGES), help="Write the kernel.")
    name: str | None = _name_option("the two layouts")
    out: Path = option(
        STDOUT, "-o", metavar="FILE", help="Write the text to FILE; - is standard output."
    )
    json_file: Path | None = option(
        None,
        "--json",
        metavar="FILE",
        help="Write the answer as JSON records; - is standard output.",
    )


@dataclass(frozen=True, kw_only=True)
class SolveTiles:
    """The options of one call."""

    file: str = argument(REQUIRED, metavar="FILE")
    klass: str | None = option(
        None, "--class", metavar="CLASS", help="Class of layouts to search (default: mixed)."
    )
    machine: str | None = option(
        None, "--machine", metavar="NAME|FILE", help="Machine whose banks serve the accesses."
    )
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Time limit for all tiles."
    )
    emit: str | None = _emit_option()
    out: Path = option(
        STDOUT, "-o", metavar="FILE", help="Write the text to FILE; - is standard output."
    )
    proof: Path | None = option(
        None, "--certificate", metavar="FILE", help="Write a proof for 'warploom verify'."
    )
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """The options of one call."""

    file: str = argument(REQUIRED, metavar="FILE")
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Time limit of the search."
    )
    json_file: Path | None = json_option()


COMMAND = Group(
    "layout",
    "Find the shared-memory layout with the fewest bank conflicts; convert register layouts.",
    (
        Command("solve", SOLVE, Solve, "warploom.cli.layout:solve"),
        Command("tiles", TILES, SolveTiles, "warploom.cli.layout_tiles:tiles_command"),
        Command("show", SHOW, ShowLayout, "warploom.cli.layout_show:show"),
        Command("check", CHECK, CheckLayout, "warploom.cli.layout_show:check"),
        Command("read", READ, ReadFile, "warploom.cli.layout_read:read_command"),
        Command("convert", CONVERT, Convert, "warploom.cli.layout_convert:convert_command"),
    ),
)
