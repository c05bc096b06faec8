"""The picture of README.md: a race in a Hopper pipeline, as a terminal shows it.

    python -m bench.report.terminal [FILE]     docs/assets/race.svg, unless another is named

The kernel is compiled (NVRTC or nvcc) and run on the emulator by the command in the picture; the
lines of the kernel and of the answer are what is in the file and what the command prints. The
window brings its own dark background, so it reads the same on a light and on a dark page.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from bench.harness import ROOT, arguments

KERNEL = "examples/ptx/tma_pipeline.cu"
COMMAND = (
    f"warploom ptx run {KERNEL} --block 64 --arg f32[256]=range"
    " --arg f32[32]=zeros --arg i32=8 --races"
)
FIRST, LAST = 20, 31  # lines of the kernel that are shown
COLUMNS, WIDTH, HEIGHT = 98, 8.43, 20  # of a character, in pixels, at 14 px
INK, SOFT, BAD, GOOD, LIT = "#e9edf2", "#a9b3bf", "#ff9a8f", "#63d297", "#4a2a2a"

Line = tuple[str, str, bool]  # text, colour, whether it is lit


def finding() -> list[str]:
    """What the command says, with the kernel's path as it was typed."""
    ran = subprocess.run(
        [sys.executable, "-m", "warploom", *shlex.split(COMMAND)[1:]],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode != 1 or "data race" not in ran.stderr:
        raise SystemExit(f"no race was found:\n{ran.stderr}")
    return short(ran.stderr).splitlines()[:4]


def short(said: str) -> str:
    """Names of files without their folders, which are this machine's."""
    return re.sub(r"\S*/(?=tma_pipeline\.cu)", "", said)


def rows(said: list[str]) -> Iterator[Line]:
    lit = {int(n) for n in re.findall(r"tma_pipeline\.cu:(\d+)", said[0])}
    for number, text in enumerate((ROOT / KERNEL).read_text().splitlines(), 1):
        if FIRST <= number <= LAST:
            yield f"{number:>5} | {text}", INK if number in lit else SOFT, number in lit
    yield "", SOFT, False
    for part in textwrap.wrap(f"$ {COMMAND}", COLUMNS, subsequent_indent="    "):
        yield part, GOOD, False
    for part in textwrap.wrap(said[0], COLUMNS):
        yield part, BAD, False
    for text in said[1:]:
        yield text, INK, False


def drawn(lines: Iterable[Line]) -> str:
    lines = list(lines)
    width, height = round(COLUMNS * WIDTH) + 40, len(lines) * HEIGHT + 64
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="A data race in a TMA pipeline">',
        f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10" '
        'fill="#0e1217" stroke="#75808d"/>',
        *(
            f'<circle cx="{24 + 20 * n}" cy="22" r="6" fill="{colour}"/>'
            for n, colour in enumerate(("#ff9a8f", "#f0a030", "#63d297"))
        ),
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">',
    ]
    for n, (text, colour, lit) in enumerate(lines):
        y = 48 + n * HEIGHT
        if lit:
            parts.append(f'<rect x="12" y="{y}" width="{width - 24}" height="20" fill="{LIT}"/>')
        if text:
            parts.append(
                f'<text x="20" y="{y + 15}" fill="{colour}" xml:space="preserve" '
                f'textLength="{len(text) * WIDTH:.0f}">{escape(text)}</text>'
            )
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main() -> None:
    parser = arguments(__doc__)
    place = ROOT / "docs" / "assets" / "race.svg"
    parser.add_argument("file", nargs="?", type=Path, default=place)
    file = parser.parse_args().file
    file.write_text(drawn(rows(finding())))
    print(f"{file.name}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
