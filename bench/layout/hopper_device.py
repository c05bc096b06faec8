"""A Hopper matmul whose layouts of A, B and C are the solver's: is it right, and without conflicts?

    python -m bench.layout.hopper_device              a machine with an H200, CuPy and ncu
    python -m bench.layout.hopper_device --dry        the emulator: results, and its own counters
    python -m bench.layout.hopper_device --only mn    some of the settings

The kernel (`hopper_gemm.cu`) says nothing about how tiles lie in shared memory. For each setting
the solver answers three questions: how tensor copies fill A and B so that wgmma reads them by
descriptors, and how stmatrix stores C so that tensor copies take it. Its answers become macros: the
copies, the descriptors with the start of every step of k, and the index function of C. Beside them
stands one setting with C as rows, which conflicts: the counters must see it. Settings that are
`alone` have one tile of one stage for each block, so that copies, products and stores do not meet.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, attempted, child, earlier, environment, save
from bench.ptx.launches import Job, on_device, on_emulator
from bench.ptx.ncu_device import counted, listed

from warploom import ptx
from warploom.emit.index_function import exported
from warploom.layout.formats.operand import reading
from warploom.layout.formats.tma import MODES, Box, box_of
from warploom.layout.language.build import row_major
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.certificate import SPANS
from warploom.layout.solver.front import front_of, usual_class
from warploom.layout.solver.task import Task
from warploom.runtime.compile import compile_cuda

KERNEL = Path(__file__).with_name("hopper_gemm.cu")
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
# Loads, stores (stmatrix) and what wgmma reads by descriptor: conflicts, and wavefronts in all.
COUNTED = tuple(f"{CONFLICTS}_op_{kind}.sum" for kind in ("ld", "st", "gmma"))
BY_INSTRUCTION = ("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal")
BESIDE = (
    f"{CONFLICTS}.sum", f"{WAVEFRONTS}_op_st.sum", f"{WAVEFRONTS}_op_gmma.sum", *BY_INSTRUCTION,
)  # fmt: skip
DEEP = 64  # elements of k in a stage
NAN = 0x7FFF  # what C holds before: an element that is not written is noticed
SMALL = ((256, 256, 128), (200, 136, 72))  # for the emulator; the second has ragged tiles
ALONE = (1024, 1024, 64)  # 128 tiles of one stage: copies, products and stores follow each other
LARGE = ((1024, 1024, 1024), (4096, 4096, 4096), (1000, 1000, 1000))


@dataclass(frozen=True)
class Setting:
    """`a_turned`: m lies together in A, which is then given as K×M; `b_turned`: n in B, K×N."""

    name: str
    columns: int = 128
    groups: int = 2
    stages: int = 4
    a_turned: bool = False
    b_turned: bool = False
    rows: bool = False  # C as rows, without asking the solver
    alone: bool = False  # one warp group with one tile: nothing else uses shared memory meanwhile

    @property
    def rows_of_a(self) -> int:
        return 64 * self.groups


SETTINGS = (
    Setting("k k"), Setting("k mn", b_turned=True), Setting("mn k", a_turned=True),
    Setting("mn mn", a_turned=True, b_turned=True), Setting("k k, 256", 256, stages=3),
    Setting("k k, C as rows", rows=True),
    *(Setting(f"{a} {b}, alone", 128, 1, a_turned=a == "mn", b_turned=b == "mn", alone=True)
      for a in ("k", "mn") for b in ("k", "mn")),
    Setting("k k, 256, alone", 256, 1, alone=True),
    Setting("k k, C as rows, alone", 128, 1, rows=True, alone=True),
)  # fmt: skip


# -- what the solver says, as macros ---------------------------------------------------------------


@dataclass(frozen=True)
class Solved:
    """A tile: its box, for a tensor map, and the text before the kernel."""

    box: Box
    text: str


def tile_name(wide: int, turned: bool, rows: int) -> str:
    sides = f"{DEEP}x{wide}" if turned else f"{wide}x{DEEP}"
    return f"wgmma:{sides}:bf16:rows={rows}:mn={int(turned)}"


def operand(letter: str, wide: int, rows: int, turned: bool) -> Solved:
    """A or B: copies, descriptor, starts."""
    front = front_of(Task(pattern(tile_name(wide, turned, rows))), "wgmma")
    assert front.best is not None
    assert front.best.cost == front.task.least
    problem, addresses = front.task.problem, front.task.addresses(front.best.map)
    found, box = reading(problem, problem.operands[0], addresses), box_of(addresses, problem)
    assert found is not None
    assert box is not None
    starts = ", ".join(map(str, found.starts[0]))
    lines = [
        f"#define {letter}_DESC {found.descriptor.bits:#x}ull",
        f"#define {letter}_STARTS {{{starts}}}",
        f"#define {letter}_TURNED {int(turned)}",
        copies(f"{letter}_COPY", problem, box),
    ]
    if letter == "A":
        apart = found.starts[1][0] - found.starts[0][0] if len(found.starts) > 1 else 0
        lines.append(f"#define A_WARPS {apart}")
    return Solved(box, "\n".join(lines) + "\n")


def result(columns: int, as_rows: bool) -> Solved:
    """C of one warp group: the index function, and the copies that take it."""
    task = Task(pattern(f"wgmma-c:64x{columns}:bf16"))
    layout, box = row_major(64, columns), Box(64, columns, MODES[0])
    if not as_rows:
        front = front_of(task, usual_class(task.problem))
        assert front.best is not None
        assert front.best.cost == task.least
        layout = task.layout(front.best)  # type: ignore[assignment]
        found = box_of(task.addresses(front.best.map), task.problem)
        assert found is not None
        box = found
    text = exported(layout, "cuda", "place", 2)
    return Solved(box, text + copies("C_COPY", task.problem, box) + "\n")


def copies(name: str, problem: Problem, box: Box) -> str:
    """One copy for each box of a tile: its byte, its column and its row."""
    across = range(0, problem.columns, box.width)
    down = range(0, problem.rows, box.height)
    each = [
        f"f({box.start(problem, number)}, {x}, {y})"
        for number, (x, y) in enumerate(product(across, down))
    ]
    return f"#define {name}(f) {' '.join(each)}"


@dataclass(frozen=True)
class Made:
    setting: Setting
    boxes: tuple[Box, Box, Box]
    ptx: str

    @property
    def shared(self) -> int:
        s = self.setting
        stage = (s.rows_of_a + s.columns) * DEEP * 2
        return s.stages * stage + s.groups * 64 * s.columns * 2


def made(setting: Setting) -> Made:
    """The kernel of a setting, compiled."""
    s = setting
    a = operand("A", s.rows_of_a, 64, s.a_turned)
    b = operand("B", s.columns, s.columns, s.b_turned)
    c = result(s.columns, s.rows)
    head = f"#define BN {s.columns}\n#define WG {s.groups}\n#define ST {s.stages}\n"
    text = head + a.text + b.text + c.text + KERNEL.read_text()
    return Made(s, (a.box, b.box, c.box), compile_cuda(text, arch="sm_90a").text)


# -- launches --------------------------------------------------------------------------------------


def bf16(x: Any) -> Any:
    """Rounded to the nearest, ties to even, as the kernel's `cvt.rn` does."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def job_of(kernel: Made, m: int, n: int, k: int, blocks: int) -> tuple[Job, Any]:
    """A launch, and what C must be: small whole numbers, whose sums are exact."""
    draw, s = np.random.default_rng(m + n + k), kernel.setting
    a, b = draw.integers(-1, 2, (m, k)), draw.integers(-1, 2, (n, k))
    wanted = bf16(a.astype(np.float32) @ b.astype(np.float32).T)
    given = (bf16(a.T if s.a_turned else a), bf16(b.T if s.b_turned else b))
    arrays = [*map(np.ascontiguousarray, given), np.full((m, n), NAN, np.uint16)]
    maps = [
        ptx.tensor_map(array, (box.height, box.width), SPANS[box.mode.name])
        for array, box in zip(arrays, kernel.boxes, strict=True)
    ]
    job = Job(f"{s.name} {m}x{n}x{k}", kernel.ptx, "gemm", (blocks,), (128 * (s.groups + 1),),
              [*maps, m, n, k], kernel.shared)  # fmt: skip
    return job, wanted


def emulated(kernel: Made, m: int, n: int, k: int) -> dict[str, Any]:
    """One launch on the emulator, with its own counters."""
    job, wanted = job_of(kernel, m, n, k, blocks=2)
    _, report, args = on_emulator(job, counters=True, races=True)
    right = bool(np.array_equal(args[2].array, wanted))
    return {"name": job.name, "right": right, "conflicts": int(report.bank_conflicts)}


def dry(only: str) -> list[dict[str, Any]]:
    """On the emulator: right, and without conflicts, but for the setting that must have some."""
    rows = []
    for setting in (each for each in SETTINGS if only in each.name):
        kernel = made(setting)
        for sides in SMALL:
            rows.append(emulated(kernel, *sides))
            print(rows[-1], flush=True)
    return rows


def launch_all(results: Path, only: str) -> None:
    """In the child under ncu: every setting at every size."""
    import cupy

    blocks, rows = cupy.cuda.Device().attributes["MultiProcessorCount"], []
    for setting in (each for each in SETTINGS if only in each.name):
        kernel = made(setting)
        for sides in (ALONE,) if setting.alone else LARGE:
            job, wanted = job_of(kernel, *sides, blocks=blocks)
            out, failed = attempted(on_device, job)
            right = out is not None and bool(np.array_equal(out[2], wanted))
            rows.append({"name": job.name, "right": right, "failed": failed[:300]})
            results.write_text(json.dumps(rows))


def measured(only: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "rows.json")
        again = child("--launch", str(results), "--only", only)
        ours = ["--kernel-name", "regex:gemm", "--clock-control", "none"]
        metrics = [*COUNTED, *listed(BESIDE)]
        command = ["ncu", "--csv", *ours, "--metrics", ",".join(metrics), *again]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not results.exists():
            raise SystemExit(f"nothing was launched: {ran.stderr[-800:]}")
        rows = json.loads(results.read_text())
    launches = [counts for _, counts in counted(ran.stdout)]
    done = [row for row in rows if not row["failed"]]
    if len(done) != len(launches):
        print(f"ncu counted {len(launches)} of {len(done)} launches: {ran.stderr[-800:]}")
        return list(rows)
    for row, counts in zip(done, launches, strict=True):
        row["ncu"] = counts
        row["conflicts"] = sum(counts.get(name, -1) for name in COUNTED)
        print(row, flush=True)
    return list(rows)


def main() -> int:
    parser = arguments(
        __doc__, "layout_hopper_device.json", dry="the emulator alone", only="settings by name"
    )
    parser.add_argument("--launch", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.launch is not None:
        launch_all(asked.launch, asked.only)
        return 0
    rows = dry(asked.only) if asked.dry else measured(asked.only)
    part, machine = ("emulator", "") if asked.dry else ("device", "NVIDIA H200")
    if not asked.only:
        save(asked.out, earlier(asked.out) | {part: environment(machine) | {"rows": rows}})
    wrong = [row["name"] for row in rows if not row["right"]]
    bad = [row["name"] for row in rows if excess(row) and "as rows" not in row["name"]]
    seen = [row["name"] for row in rows if excess(row) and "as rows" in row["name"]]
    print(f"{len(rows)} launches, wrong: {wrong or 'none'}, with conflicts: {bad or 'none'}; "
          f"C as rows conflicts in {len(seen)}")  # fmt: skip
    return 1 if wrong or bad or (not asked.only and not seen) else 0


def excess(row: dict[str, Any]) -> float:
    """Wavefronts that banks cost; -1 where nothing was counted.

    A pipe's own counters count an access that waits for a tensor copy too, so they decide where a
    tile is alone. Elsewhere ncu's wavefronts by instruction do, beside those that must be.
    """
    if "ncu" not in row or "alone" in row["name"]:
        return float(row.get("conflicts", -1))
    made, ideal = (row["ncu"].get(name, -1) for name in BY_INSTRUCTION)
    return float(made - ideal) if min(made, ideal) >= 0 else -1.0


if __name__ == "__main__":
    raise SystemExit(main())
