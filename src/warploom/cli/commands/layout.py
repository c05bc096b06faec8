"""`warploom layout`: the best layout for how a tensor is used, or a proof that there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.choices import CONVERSIONS, LANGUAGES, SPELLINGS, VARIED
from warploom.cli.commands.shared import json_option, no_store_option, store_option
from warploom.cli.declare import REQUIRED, STDOUT, Command, Group, argument, option

SOLVE = """Find the layout of shared memory that serves all accesses in the fewest wavefronts.

What is minimised are all wavefronts of the tile: those of every request (step) of every access, an
access times its weight (`weight = 10` in its table; 1 unless said). With --worst it is the largest
access. Rows, swizzles and padding are tried first, then larger classes; what a budget (--seconds)
leaves out is told.

PATTERN is a TOML file (a tensor and its accesses, see docs/layouts.md) or a name, such as
transpose:32x32:f32, ldmatrix:64x96:f16, blocks:32x32, mfma:64x64:f16@gfx942. 'all' are the fifty
problems of the published table.

Classes: none (rows as they are), pad (unused places after each row), swizzle (one Swizzle<B,M,S>),
xor (every bijective matrix over F2), mixed (that, and exchanges, rotations, tiles and padding for
any size), any (every layout whatever), tma (what tensor copies can write: boxes in a mode of TMA).

--vary makes more of the accesses a decision: width (how many bytes a lane moves at once), matrices
(ldmatrix and stmatrix for ld and st), order (each lane begins at a step of its own).

\b
Example:
  $ warploom layout solve transpose:32x32:f32 --emit cuda
  $ warploom layout solve mine.toml --class any --certificate proof.json
  $ warploom layout solve transpose:32x32:f32 --vary width,matrices
  $ warploom verify proof.json

The same command again answers from the store.

Exit status: 0 a layout of the class meets the bound that holds for every layout, 1 proved that none
does (the best of the class is printed), 2 bad input, 3 undecided and 130 Ctrl-C (the best so
far is printed)."""
SHOW = """Show a layout: what is true of it and, with a pattern, which lanes collide in which banks.

LAYOUT is a text: (32,32):(33,1), S<3,3,3> o (64,64):(64,1), pad<48,8> o (128,48):(48,1), a CuTe
layout in any of its spellings or as a type, or swizzled(vec,perPhase,maxPhase) and bases as Triton
has them. --emit writes it as any of the others.

\b
Example:
  $ warploom layout show '(32,32):(32,1)' --pattern transpose:32x32:f32 --access 1 -o tile.html
  $ warploom layout show 'swizzled(8,1,8)' --shape 64x64 --element f16 --emit cute"""
CHECK = """Check a layout of your own against how a tensor is used.

Are all elements at different places, are vectors whole and aligned, how many wavefronts does each
access take, and is there anything to gain?

Exit status: 0 it is right and meets the bound, 1 something is wrong or could be better, 2 bad
input."""
CONVERT = """Convert registers from one layout to another: which threads send what to whom?

A layout of registers is Triton's bases ({"register": [[0, 1]], "lane": …, "warp": …}) or layout
objects (BlockedLayout(…), DotOperandLayout(…)), blocked(…), mma_a(k), mma_b(k), mma_c() by name,
or CuTe's layout of threads and values, (32,4):(4,1). Those that do not say it need --shape.

All ways are shown: renames alone, the fewest rounds of shuffles straight from who holds an element
to who wants it (with what proves it; parts of words are not packed again on their way), shared
memory with the solved layout, ldmatrix and stmatrix. The one chosen is chosen by rule; --way takes
another, and --tune measures them all on a GPU, for 30 seconds unless --seconds says otherwise, and
takes the fastest; the store keeps it, and --tune alone reads it there. Without --tune and --check
the same command again answers from the store.

\b
Example:
  $ warploom layout convert --from '(32,5):(1,32)' --to '(32,5):(5,1)' --emit cuda
  $ warploom layout convert --from 'mma_c()' --to 'mma_a(4)' --shape 16x32 --element i8 --check
  $ warploom layout convert --from '(32,4):(4,1)' --to '(32,4):(1,32)' --tune --emit cuda

Exit status: 0 the fewest rounds are proved or none are needed, 1 a check failed, 2 bad input, 3
fewer rounds than found are not ruled out, the search for layouts of shared memory was stopped, or
there is nothing to run a check on, 130 Ctrl-C (the best so far is printed)."""


def _emit_option() -> Any:
    said = "Write the index function, the type, or the bases."
    return option(None, "--emit", metavar="|".join((*LANGUAGES, *SPELLINGS)), help=said)


def _name_option() -> Any:
    return option("place", "--name", metavar="NAME", help="The name of that function or type.")


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """The options of one call."""

    patterns: list[str] = argument([], metavar="PATTERN")
    named: list[str] = option([], "--pattern", metavar="NAME", help="The same by name.")
    klass: str | None = option(
        None, "--class", metavar="CLASS", help="Of layouts: mixed, or tma for tensor copies."
    )
    worst: bool = option(
        False, "--worst", help="Fewest wavefronts of the largest access, not of the tile."
    )
    no_waste: bool = option(False, "--no-waste", help="No place may stay unused.")
    vary: str | None = option(
        None,
        "--vary",
        metavar=",".join(VARIED),
        help="What of the accesses is to be decided, too.",
    )
    machine: str | None = option(None, "--machine", metavar="NAME|FILE", help="By whom it is used.")
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Wall time for each problem."
    )
    memory: float | None = option(
        None, "--memory", min=1, metavar="MB", help="Megabytes of memory of the whole process."
    )
    emit: str | None = _emit_option()
    name: str = _name_option()
    out: Path = option(STDOUT, "-o", metavar="FILE", help="Where it is written.")
    proof: Path | None = option(None, "--certificate", metavar="FILE", help="Write the proof.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ShowLayoutOptions:
    """The options of one call."""

    layout: str = argument(REQUIRED, metavar="LAYOUT")
    pattern: str | None = option(
        None, "--pattern", metavar="PATTERN", help="How it is used: a TOML file, or a name."
    )
    access: int = option(0, "--access", min=0, help="Which access of the pattern.")
    step: int = option(0, "--step", min=0, help="Which of its steps.")
    measured: str | None = option(
        None,
        "--measured",
        metavar="4,32",
        help="Wavefronts per request that a profiler counted, to compare.",
    )
    picture: Path | None = option(
        None, "-o", metavar="FILE.svg|FILE.html", help="Draw it, beside rows as they are."
    )
    shape: str | None = option(
        None, "--shape", metavar="64x64", help="Of the tensor, if no pattern says it."
    )
    element: str | None = option(None, "--element", metavar="TYPE", help="Of an element, likewise.")
    emit: str | None = _emit_option()
    name: str = _name_option()
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class CheckLayoutOptions:
    """The options of one call."""

    layout: str = argument(REQUIRED, metavar="LAYOUT")
    pattern: str = argument(REQUIRED, metavar="PATTERN", help="A TOML file, a name, or 'all'.")
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of one call."""

    source: str = option(REQUIRED, "--from", metavar="LAYOUT", help="What threads hold.")
    target: str = option(REQUIRED, "--to", metavar="LAYOUT", help="What they should hold.")
    shape: str | None = option(
        None, "--shape", metavar="32x32", help="The tensor, if they do not say it."
    )
    element: str = option("f32", "--element", metavar="TYPE", help="The type of an element.")
    way: str | None = option(None, "--way", metavar="WAY", help=f"One of {', '.join(CONVERSIONS)}.")
    check: bool = option(False, "--check", help="Run it: simulator, and PTX on the emulator.")
    tune: bool = option(False, "--tune", help="Measure all ways on a GPU; keep the fastest.")
    store: Path | None = store_option()
    no_store: bool = no_store_option()
    seconds: float | None = option(
        None, "--seconds", min=0, metavar="S", help="Wall time of the search, and of --tune."
    )
    emit: str | None = option(None, "--emit", metavar="|".join(LANGUAGES), help="Write the kernel.")
    out: Path = option(STDOUT, "-o", metavar="FILE", help="Where it is written.")
    json_file: Path | None = option(None, "--json", metavar="FILE", help="Write a record.")


COMMAND = Group(
    "layout",
    "Layouts of shared memory and registers.",
    (
        Command("solve", SOLVE, SolveOptions, "warploom.cli.layout:solve"),
        Command("show", SHOW, ShowLayoutOptions, "warploom.cli.layout_show:show"),
        Command("check", CHECK, CheckLayoutOptions, "warploom.cli.layout_show:check"),
        Command("convert", CONVERT, ConvertOptions, "warploom.cli.layout_convert:convert_command"),
    ),
)
