"""Types of CuTe that we write, compiled with CUTLASS' own headers: the same function, and what CuTe
itself prints of it is read as the same layout. Needs nvcc and the wheel `nvidia-cutlass`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.layout.spellings import random_layout

from warploom.layout.formats.cute import read_cute
from warploom.layout.formats.export import cute_type
from warploom.layout.language.evaluate import values
from warploom.layout.language.ir import Layout

TOGETHER = 50  # types of one program
HEAD = """#include <cute/layout.hpp>
#include <cute/swizzle_layout.hpp>
#include <cstdio>
template <class T> void show(T layout) {
  cute::print(layout);
  for (int i = 0; i < int(cute::size(layout)); ++i) std::printf(" %d", int(layout(i)));
  std::printf("\\n");
}
"""


def headers() -> Path | None:
    """Where the wheel has CUTLASS' headers."""
    found = find_spec("cutlass_library")
    places = [Path(p, "source", "include") for p in (found.submodule_search_locations or ())] if (
        found is not None
    ) else []  # fmt: skip
    return next((place for place in places if place.is_dir()), None)


def shown(layouts: list[Layout], folder: Path) -> list[str]:
    """What CuTe prints of each: its text, then all values, the first coordinate fastest."""
    types = "".join(cute_type(each, f"t{number}") for number, each in enumerate(layouts))
    calls = "".join(f"  show(t{number}{{}});\n" for number in range(len(layouts)))
    source, program = folder / "types.cu", folder / "types"
    source.write_text(f"{HEAD}{types}int main() {{\n{calls}}}\n")
    command = ["nvcc", "-std=c++17", f"-I{headers()}", "-o", str(program), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def types(count: int) -> dict[str, Any]:
    """So many random layouts: swizzles with and without an offset, nested shapes."""
    if shutil.which("nvcc") is None or headers() is None:
        return {"skipped": "nvcc or the headers of CUTLASS are not installed"}
    draw, seen = np.random.default_rng(23), 0
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, count, TOGETHER):
            some = [random_layout(draw) for _ in range(min(TOGETHER, count - first))]
            for layout, line in zip(some, shown(some, Path(folder)), strict=True):
                words = line.split(" ")
                places = len(values(layout))
                assert list(map(int, words[-places:])) == values(layout).tolist(), line[:80]
                again = read_cute(" ".join(words[:-places]))
                assert np.array_equal(values(again), values(layout)), line[:80]
                seen += 1
    return {"types": seen, "different": 0}
