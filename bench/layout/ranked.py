"""Files of Triton's IR: how we rank their operations, beside what Triton's own PTX of them takes.

The PTX of the files in examples/ttgir is kept in tests/layout/ttgir_ptx, where a test counts its
requests by the emulator; `keep` compiles and writes it again. `bench.layout.oracles` asks `ranked`
for random conversions. Both need triton, and no GPU.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.layout.ptx_counted import (
    FOLDER,
    KEPT,
    PTX_FOLDER,
    Counted,
    counted,
    inversions,
    plain,
)
from bench.common.layout.ttgir_text import arguments_for, conversions_text, random_cases

from warploom.errors import WarploomError
from warploom.layout.conversion.traffic import traffic_of
from warploom.layout.formats.ttgir import read_ttgir

WARPS, CASES = 4, 12


def compiled(path: Path, target: int) -> tuple[str, int]:
    """Triton's PTX of a file as it stands, and its bytes of shared memory."""
    import triton
    from triton.backends.compiler import GPUTarget

    made = triton.compile(str(path), target=GPUTarget("cuda", target, 32))
    return plain(made.asm["ptx"], path.name), int(made.metadata.shared)


def ranked(count: int) -> dict[str, Any]:
    """Random conversions, so many files of them: how many pairs of a file we rank as their PTX
    takes, and where our way takes more of the same crossbar than theirs."""
    found: dict[str, Any] = {
        "files": 0, "conversions": 0, "pairs": 0, "inverted": 0, "fewer": 0, "equal": 0,
        "more": [], "not_run": 0,
    }  # fmt: skip
    for seed in range(count):
        target = (80, 90)[seed % 2]
        cases = random_cases(np.random.default_rng(seed), CASES, WARPS)
        text = conversions_text(cases, WARPS, target)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"conversions{seed}.ttgir"
            path.write_text(text)
            ptx, shared = compiled(path, target)
        arguments = arguments_for(cases)
        try:
            rows = counted(traffic_of(read_ttgir(text)), ptx, list(arguments.values()), shared)
        except WarploomError:
            found["not_run"] += (
                1  # bytes that are picked out of words which nobody wrote as a whole
            )
            continue
        for bits in (8, 16, 32):
            assert (arguments[f"x{bits}"] == arguments[f"y{bits}"]).all(), seed
        _note(found, rows)
    return found


def _note(found: dict[str, Any], rows: list[Counted]) -> None:
    found["files"] += 1
    found["conversions"] += len(rows)
    found["pairs"] += sum(a.theirs > b.theirs for a in rows for b in rows)
    found["inverted"] += len(inversions(rows))
    found["fewer"] += sum(row.ours < row.theirs for row in rows)
    found["equal"] += sum(row.ours == row.theirs for row in rows)
    found["more"] += [[row.row.way[:40], row.ours, row.theirs, row.shuffles]
                      for row in rows if row.ours > row.theirs]  # fmt: skip


def keep() -> None:
    """Writes the PTX of the kept files as this version of Triton compiles them."""
    for kept in KEPT:
        text, shared = compiled(FOLDER / f"{kept.name}.ttgir", kept.target)
        assert shared == kept.shared, (kept.name, shared)
        (PTX_FOLDER / f"{kept.name}.ptx").write_text(text)
