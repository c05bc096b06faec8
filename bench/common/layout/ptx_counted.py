"""What Triton's own PTX of a file of its IR takes, operation by operation, counted by the emulator.

Triton compiles a file of TTGIR as it stands, and the `.loc` of its PTX are then lines of that file.
So every request to shared memory and every shuffle belongs to one operation. Loops run as often as
`LOOP_WEIGHT` says, so that totals of the launch are what the ranking weighs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warploom.errors import Span
from warploom.layout.conversion.traffic import LOOP_WEIGHT, Row, Traffic
from warploom.ptx import load
from warploom.ptx.launch import Kernel

FOLDER = Path(__file__).parents[3] / "examples" / "ttgir"
PTX_FOLDER = Path(__file__).parents[3] / "tests" / "layout" / "ttgir_ptx"


@dataclass(frozen=True)
class Counted:
    """An operation: our row, and what its PTX took in the launch, of all warps."""

    row: Row
    wavefronts: int
    shuffles: int

    @property
    def theirs(self) -> int:
        """A shuffle takes a wavefront of the same crossbar."""
        return self.wavefronts + self.shuffles

    @property
    def ours(self) -> int:
        times = LOOP_WEIGHT**self.row.operation.loops
        return (self.row.wavefronts + self.row.shuffles) * times


def plain(ptx: str, name: str) -> str:
    """Without the sections for debuggers, and with a file's name alone in `.file`."""
    text = ptx.split("\t.section", 1)[0]
    text = re.sub(r'(\.file\s+\d+)\s+"[^"]*"', rf'\1 "{name}"', text)
    return re.sub(r"[ \t]*// .*", "", text)


def launched(
    text: str, arguments: Sequence[Any], shared: int, threads: int = 128
) -> tuple[Kernel, dict[int, int]]:
    """The kernel after a launch of one block, and wavefronts by line of the TTGIR."""
    name = re.search(r"\.entry (\w+)", text)
    assert name is not None, "Triton writes one kernel"
    kernel = load(text).kernel(name[1])
    scratch = len(kernel.function.parameters) - len(arguments)  # which nothing here uses
    ran = kernel.launch(
        1, threads, [*arguments, *[0] * scratch], shared_bytes=shared, counters=True
    )
    found: dict[int, int] = {}
    for (span, space), told in ran.tallies.memory.items():
        if space == "shared" and isinstance(span, Span):
            place: Any = kernel.owner.places.at(span)
            found[place.frames[-1].line] = found.get(place.frames[-1].line, 0) + told.wavefronts
    return kernel, found


def counted(found: Traffic, text: str, arguments: Sequence[Any], shared: int) -> list[Counted]:
    """Each operation of a file beside what was counted of it."""
    warps = found.module.warps
    kernel, wavefronts = launched(text, arguments, shared, 32 * warps)
    shuffles: dict[int, int] = {}
    for step in kernel.function.instructions():
        if step.opcode == "shfl":
            place: Any = kernel.owner.places.at(kernel.owner.module.span(step))
            shuffles[place.frames[-1].line] = shuffles.get(place.frames[-1].line, 0) + 1
    return [
        Counted(
            row, wavefronts.get(row.operation.line, 0),
            shuffles.get(row.operation.line, 0) * warps * LOOP_WEIGHT**row.operation.loops,
        )
        for row in found.rows
        if not row.unknown
    ]  # fmt: skip


def inversions(rows: Sequence[Counted]) -> list[tuple[Counted, Counted]]:
    """Pairs of which Triton's PTX takes more for the one, and we rank the other above it."""
    return [
        (one, other)
        for one in rows
        for other in rows
        if one.theirs > other.theirs and one.ours < other.ours
    ]


# -- the kept files --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A file of examples/ttgir whose PTX is kept beside the tests, and how it is launched."""

    name: str
    shared: int
    make: str  # which arguments: see `arguments_of`

    @property
    def target(self) -> int:
        return int(self.name[-2:])

    @property
    def ptx(self) -> str:
        return (PTX_FOLDER / f"{self.name}.ptx").read_text()


KEPT = (
    Kept("matmul_sm80", 8192, "matmul"),
    Kept("matmul_sm90", 16384, "matmul"),
    Kept("flash_sm80", 24576, "flash"),
    Kept("flash_sm90", 40960, "flash"),
    Kept("transpose_sm90", 16384, "transpose"),
)


def arguments_of(make: str) -> tuple[list[Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Arguments of a launch of one block, the array that it writes, and what that should be."""
    draw, turns = np.random.default_rng(3), LOOP_WEIGHT
    match make:
        case "matmul":
            deep = 32 * turns
            a, b = (draw.standard_normal(size).astype(np.float16) / 8
                    for size in ((64, deep), (deep, 64)))  # fmt: skip
            c = np.zeros((64, 64), np.float16)
            exact = a.astype(np.float32) @ b.astype(np.float32)
            return [a.ravel(), b.ravel(), c.ravel(), 64, 64, deep], c, exact
        case "flash":
            q = draw.standard_normal((64, 64)).astype(np.float16) / 4
            k, v = (draw.standard_normal((64 * turns, 64)).astype(np.float16) / 4 for _ in "kv")
            out = np.zeros((64, 64), np.float16)
            weights = np.exp2(q.astype(np.float32) @ k.astype(np.float32).T)
            exact = weights @ v.astype(np.float32) / weights.sum(axis=1, keepdims=True)
            return [q.ravel(), k.ravel(), v.ravel(), out.ravel(), 64 * turns], out, exact
        case "transpose":
            x = draw.standard_normal((64, 64)).astype(np.float32)
            y = np.zeros((2, 64, 64), np.float32)
            return [x.ravel(), y.ravel()], y, np.stack([x + x, x.T])
    raise ValueError(make)
