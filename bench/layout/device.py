"""Layouts on a GPU: emitted index code of the table's problems and conversions.

    python -m bench.layout.device --out RESULTS.json     a machine with a GPU, NumPy, CuPy and ncu
    python -m bench.layout.device --dry                  the PTX emulator instead: results only

Every access of every problem is a kernel of its own: its addresses come from the emitted function,
its results are compared with the layout, and ncu counts its wavefronts, which must be the model's.
`cp.async.cg` is not counted by ncu. The texts are made first (PLAN), then a child launches them
under ncu. Transpositions are in `layout_transpose_device.py`.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, attempted, child, environment, save
from bench.layout.kernels import (
    CONVERSIONS,
    Launch,
    access_launches,
    conversion_launches,
)

from warploom.layout.patterns.named import FIFTY

METRICS = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")]


def launches() -> list[Launch]:
    """All kernels, each with its input and what it must give."""
    found = []
    for number, name in enumerate(FIFTY):
        if "@" not in name:
            found += access_launches(number, name)
    for number, case in enumerate(CONVERSIONS):
        found += conversion_launches(number, *case)
    return found


def wrong(launch: Launch, out: np.ndarray) -> bool:
    """Whether bytes that must be there are not."""
    return bool((out[launch.known] != launch.wanted[launch.known]).any())


def dry(given: list[Launch]) -> int:
    """The same kernels on the emulator."""
    from warploom.errors import WarploomError
    from warploom.ptx import load
    from warploom.runtime.compile import compile_cuda

    bad = 0
    for launch in given:
        out = np.full(launch.wanted.size, 0xA5, np.uint8)
        try:
            kernel = load(compile_cuda(launch.text).text).kernel(launch.name)
            kernel.launch(1, launch.threads, [*launch.inputs, out])
            said = "WRONG" if wrong(launch, out) else "right"
        except WarploomError as error:
            said = f"not run: {error.message[:80]}"
        bad += said != "right"
        print(f"{launch.name:12} {launch.about:60} {said}", flush=True)
    return bad


# -- on the device ---------------------------------------------------------------------------------


def write_plan(given: list[Launch], path: Path) -> None:
    def packed(array: np.ndarray) -> dict[str, str]:
        return {"dtype": str(array.dtype), "data": base64.b64encode(array.tobytes()).decode()}

    path.write_text(
        json.dumps(
            [
                {
                    "name": each.name, "text": each.text, "threads": each.threads,
                    "inputs": [packed(np.asarray(i)) for i in each.inputs],
                    "scalars": [np.asarray(i).ndim == 0 for i in each.inputs],
                    "size": each.wanted.size,
                }
                for each in given
            ]
        )
    )  # fmt: skip


def launch_plan(path: Path, results: Path) -> None:
    """In the child: every kernel once; outputs go back to the parent."""
    found: dict[str, str] = {}
    for each in json.loads(path.read_text()):
        out, failed = attempted(launched, each)
        found[each["name"]] = out or f"! {failed[:200]}"
    results.write_text(json.dumps(found))


def launched(each: dict[str, Any]) -> str:
    """The bytes that a kernel of the plan writes, as text."""
    import cupy as cp

    module = cp.RawModule(code=each["text"], options=("--std=c++17",))
    given = []
    for one, scalar in zip(each["inputs"], each["scalars"], strict=True):
        array = np.frombuffer(base64.b64decode(one["data"]), one["dtype"])
        given.append(array[0] if scalar else cp.asarray(array))
    out = cp.full(each["size"], 0xA5, cp.uint8)
    module.get_function(each["name"])((1,), (each["threads"],), (*given, out))
    cp.cuda.runtime.deviceSynchronize()
    return base64.b64encode(cp.asnumpy(out).tobytes()).decode()


def counted(text: str) -> dict[str, dict[str, float]]:
    """What ncu says: kernel → metric → value."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        value = row.get("Metric Value", "").replace(",", "")
        if value and row.get("Metric Name") in METRICS:
            found.setdefault(row["Kernel Name"].split("(")[0], {})[row["Metric Name"]] = float(
                value
            )
    return found


def measured(given: list[Launch], folder: Path) -> list[dict[str, Any]]:
    """Every kernel under ncu: right or not, and its wavefronts beside the model's."""
    plan, results = folder / "layout_plan.json", folder / "layout_outputs.json"
    write_plan(given, plan)
    again = child("--launch", str(plan), "--results", str(results))
    ours = ["--kernel-name", "regex:^[pc][0-9]+_"]
    command = ["ncu", "--csv", *ours, "--metrics", ",".join(METRICS), *again]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counts = counted(ran.stdout)
    if not counts:
        print(f"ncu counted nothing: {ran.stderr[-400:]} {ran.stdout[-400:]}", flush=True)
    if not results.exists():
        subprocess.run(again, cwd=ROOT, check=False)
    outputs = json.loads(results.read_text())
    rows = []
    for launch in given:
        said = outputs.get(launch.name, "! not launched")
        row: dict[str, Any] = {"name": launch.name, "about": launch.about, "model": launch.model}
        if said.startswith("!"):
            row["wrong"] = said
        else:
            row["wrong"] = wrong(launch, np.frombuffer(base64.b64decode(said), np.uint8))
        got = counts.get(launch.name, {})
        row["measured"] = {
            op: got.get(metric) for op, metric in zip(("ld", "st"), METRICS, strict=True)
        }
        row["equal"] = (
            None if not got or not launch.model
            else all(row["measured"][op] == count for op, count in launch.model.items())
        )  # fmt: skip
        rows.append(row)
        print(f"{launch.name:12} {launch.about:60} wrong={row['wrong']} {row['measured']} "
              f"model={launch.model}", flush=True)  # fmt: skip
    return rows


def main() -> int:
    parser = arguments(
        __doc__,
        "layout_device.json",
        dry="the emulator instead of a GPU",
        only="kernels whose names begin so, with --dry",
    )
    parser.add_argument("--launch", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.launch is not None:
        launch_plan(given.launch, given.results)
        return 0
    started = time.monotonic()
    plan = launches()
    print(f"{len(plan)} kernels made in {time.monotonic() - started:.0f} s", flush=True)
    if given.dry:
        return 1 if dry([each for each in plan if each.name.startswith(given.only)]) else 0
    with tempfile.TemporaryDirectory() as folder:
        record: dict[str, Any] = {"kernels": measured(plan, Path(folder))}
    save(given.out, record)
    record["seconds"] = round(time.monotonic() - started)
    record |= environment("NVIDIA H200")
    save(given.out, record)
    rows = record["kernels"]
    print(f"{sum(row['wrong'] is False for row in rows)} of {len(rows)} right, "
          f"{sum(row['equal'] is True for row in rows)} counted as the model says, "
          f"{sum(row['equal'] is False for row in rows)} otherwise")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
