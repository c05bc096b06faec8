"""Sixty commands with little time for what they are asked: the cases of `bench/cli/budgets.py`.

`written(folder)` writes the files that they read; `CASES` are the words after `warploom`, in which
`S` stands for the seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.cli.budget_sketches import SKETCHES
from bench.harness import ROOT


class Case(NamedTuple):
    """A command and its seconds."""

    words: str
    seconds: float

    @property
    def command(self) -> list[str]:
        said = f"{self.seconds:g}"
        return [said if word == "S" else word for word in self.words.split()]


def _file(name: str) -> str:
    return name.replace(" ", "_") + ".swflow"


def endless() -> str:
    """A kernel whose threads go round for ever."""
    return """.version 8.0
.target sm_90
.address_size 64
.visible .entry endless(.param .u64 out)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, 0;
again:
	add.s32 %r1, %r1, 1;
	bra again;
}
"""


def straight(count: int) -> str:
    """A kernel of so many instructions in a row, each of which needs the one before."""
    steps = "\n".join(f"\txor.b32 %r{2 + n % 2}, %r{3 - n % 2}, {n};" for n in range(count))
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry straight(.param .u64 out)
{{
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %tid.x;
{steps}
	mul.wide.u32 %rd3, %r2, 0;
	add.s64 %rd2, %rd2, %rd3;
	st.global.u32 [%rd2], %r3;
	ret;
}}
"""


def written(folder: Path) -> None:
    for name, text in SKETCHES.items():
        (folder / _file(name)).write_text(text)
    (folder / "endless.ptx").write_text(endless())
    (folder / "straight.ptx").write_text(straight(200_000))
    (folder / "saxpy.ptx").write_bytes((ROOT / "examples" / "ptx" / "saxpy.ptx").read_bytes())


def _sketches() -> Iterator[Case]:
    for number, name in enumerate(SKETCHES):
        yield Case(f"synth {_file(name)} --seconds S --no-store", (0.5, 1, 2)[number % 3])


SAXPY = (
    "ptx {} saxpy.ptx --grid 16384 --block 256 --arg f32[4000000]=range --arg f32[4000000]=ones "
    "--arg f32=2 --arg i32=4000000 {} --seconds S"
)

CASES: tuple[Case, ...] = (
    *_sketches(),
    Case("synth seven_holes.swflow --seconds S --no-store", 5),
    Case("synth seven_holes.swflow --seconds S --store kept.sqlite", 3),
    Case("synth long_goal.swflow --seconds S --no-store", 3),
    Case("synth bits.swflow --seconds S --no-store --first", 0.5),
    Case("synth own_tables.swflow --seconds S --no-store --best", 1),
    Case("synth joined.swflow --seconds S --no-store --engine smt", 1),
    Case("synth five_holes.swflow --seconds S --no-store --engine pairs", 1),
    Case("synth nested_sums.swflow --seconds S --no-store --suggest", 2),
    Case("synth conditions.swflow --seconds S --no-store --suggest", 2),
    Case("synth gaussian --seconds S --no-store --transfer lanes=128", 0.5),
    Case("synth sums --size columns=9 --seconds S --no-store --best --emit cuda -o s.cu", 1),
    Case("layout solve transpose:2048x2048:f32 --seconds S --no-store", 1),
    Case("layout solve transpose:512x512:f16 --seconds S --no-store", 0.5),
    Case("layout solve stencil:34x34:f32 --seconds S --no-store", 1),
    Case("layout solve rcd:32x32 --seconds S --no-store", 1),
    Case("explore matmul --size m=1024,n=1024,k=1024 --model --seconds S --no-store", 2),
    Case("explore matmul --size m=512,n=512,k=512 --model --engine random --evaluations 100000 "
         "--seconds S --no-store", 3),
    Case("explore matvec --size m=512,n=512 --model --engine exact --seconds S --no-store", 2),
    Case("explore axpy --size n=1048576 --model --seconds S --no-store --emit cuda -o a.cu", 3),
    Case("explore two-matmuls --size m=256,n=256,k=256,p=256 --model --seconds S --no-store", 1),
    Case("map conv --layer conv4_2 --seconds S --no-store --count", 1),
    Case("map conv --layer conv4_2 --seconds S --no-store", 5),
    Case("map matmul --size m=1024,n=1024,k=1024 --among 100000 --seconds S --no-store", 2),
    Case("map matmul --size m=512,n=512,k=512 --sample 200 --seconds S --no-store", 2),
    Case("map stencil-2d --size m=512,n=512 --seconds S --no-store", 1),
    Case(SAXPY.format("run", ""), 1),
    Case(SAXPY.format("run", "--races --counters"), 1),
    Case(SAXPY.format("report", ""), 1),
    Case("ptx run endless.ptx --grid 4 --block 64 --arg u32[64]=zeros --seconds S", 0.5),
    Case("ptx run straight.ptx --arg u32[64]=zeros --seconds S", 1),
)  # fmt: skip
