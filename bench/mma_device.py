"""Tensor cores on a GPU and on the emulator: the same kernels, every bit compared.

    python bench/mma_device.py [OUT.json]        on an H200, with cupy
    python bench/mma_device.py --dry             the emulator alone

mma in every form that is run, ldmatrix, stmatrix, movmatrix (`tests/ptx/matrix_kernels.py`),
with hard inputs: cancellation, far-off c, subnormal, infinite and undefined numbers, near ties,
zeros of both signs. One line per kernel; a kernel that fails does not stop the others; rows that
are there already are kept.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.ptx.matrix_kernels import HEAD, PRODUCTS, Product, moves  # noqa: E402 - the checkout

from warploom import ptx  # noqa: E402

OUT = ROOT / "bench" / "results" / "mma_device.json"
# Warps of each kernel, so that every type of a has a million dot products.
TYPES = {"f16": 2048, "tf32": 4096, "bf16": 4096, "f64": 2400, "e4m3": 1024, "e5m2": 1024}
WARPS = 1700
THREADS = 128


class Job:
    def __init__(self, name: str, text: str, blocks: int, threads: int, args: list[Any]) -> None:
        self.name, self.text = name, HEAD + text
        self.blocks, self.threads, self.args = blocks, threads, args
        self.form: Product | None = None

    def fresh(self) -> list[Any]:
        return [arg.copy() for arg in self.args]


def jobs() -> list[Job]:
    out = []
    for number, form in enumerate(PRODUCTS):
        warps = TYPES.get(form.kinds[1], WARPS)
        args = form.inputs(warps, 1000 + number)
        job = Job(form.name, form.text(), warps * 32 // THREADS, THREADS, list(args))
        job.form = form
        out.append(job)
    rng = np.random.default_rng(5)
    for name, text in moves().items():
        data = rng.integers(0, 1 << 32, 64 * 256, dtype=np.uint32)
        out.append(Job(name, text, 64, 32, [data, np.zeros_like(data)]))
    return out


def on_device(job: Job) -> list[Any]:
    import cupy  # only on a machine with a GPU

    file = OUT.parent / "mma_kernel.ptx"
    file.write_text(job.text)
    try:
        function = cupy.RawModule(path=str(file)).get_function(job.name)
        there = [cupy.asarray(arg) for arg in job.fresh()]
        function((job.blocks, 1, 1), (job.threads, 1, 1), tuple(there))
        cupy.cuda.runtime.deviceSynchronize()
        return [cupy.asnumpy(each) for each in there]
    finally:
        file.unlink()


def on_emulator(job: Job) -> list[Any]:
    args = job.fresh()
    ptx.load(job.text, f"{job.name}.ptx").kernel(job.name).launch(job.blocks, job.threads, args)
    return args


def compared(job: Job, dry: bool) -> dict[str, Any]:
    started = time.monotonic()
    here = on_emulator(job)[-1]
    row: dict[str, Any] = {
        "results": int(here.size),
        "emulator_seconds": time.monotonic() - started,
    }
    if job.form is not None:
        per_word = 2 if job.form.kinds[0] == "f16" else 1
        row |= {"type": job.form.kinds[1], "dot_products": int(here.size) * per_word}
    if dry:
        return row
    there = on_device(job)[-1]
    differ = np.flatnonzero(here != there)
    row["different"] = int(differ.size)
    row["examples"] = [
        {"at": int(i), "here": hex(int(here[i])), "there": hex(int(there[i]))} for i in differ[:5]
    ]
    return row


def main() -> None:
    dry = "--dry" in sys.argv
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    out = Path(named[0]) if named else OUT
    record: dict[str, Any] = json.loads(out.read_text()) if out.exists() and not dry else {}
    rows = record.setdefault("kernels", {})
    for job in jobs():
        if "different" in rows.get(job.name, {}):
            continue
        try:
            rows[job.name] = compared(job, dry)
        except Exception as error:  # noqa: BLE001 - the other rows are still wanted
            rows[job.name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
        print(job.name, rows[job.name], flush=True)
        if not dry:
            out.write_text(json.dumps(record, indent=1) + "\n")
    totals: dict[str, int] = {}
    for row in rows.values():
        if "type" in row and (dry or row.get("different") == 0):
            totals[row["type"]] = totals.get(row["type"], 0) + row["dot_products"]
    record["equal_dot_products"] = totals
    print("dot products that are equal, by type of a:", totals)
    if not dry:
        out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
