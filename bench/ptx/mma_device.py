"""Tensor cores, copies and clusters on a GPU and on the emulator: every bit compared.

    python -m bench.ptx.mma_device             on an H200, with cupy
    python -m bench.ptx.mma_device --dry       the emulator alone, against the bits of the record

mma in every form that is run, ldmatrix, stmatrix, movmatrix (`bench/common/ptx/matrix_kernels.py`),
wmma, wgmma, tensor maps, mbarriers and clusters (`bench/ptx/hopper_kernels.py`), with hard inputs:
cancellation, far-off c, subnormal, infinite and undefined numbers, near ties, zeros of both signs.
One line per kernel; a kernel that fails does not stop the others; rows that are there are kept.
A row has a digest of the emulator's bits, so that a later tree can be held to the record without a
GPU: the exit status is 1 where they are others.
"""

from __future__ import annotations

import hashlib
import sys
import time
from typing import Any

import numpy as np
from bench.common.ptx.matrix_kernels import HEAD, PRODUCTS, moves
from bench.harness import arguments, earlier, environment, measured, save
from bench.ptx import hopper_kernels
from bench.ptx.launches import Job, array_of, on_device, on_emulator

# Warps of each kernel, so that every type of a has a million dot products.
TYPES = {"f16": 2048, "tf32": 4096, "bf16": 4096, "f64": 2400, "e4m3": 1024, "e5m2": 1024}
WARPS = 1700
THREADS = 128


def jobs() -> list[Job]:
    out = []
    for number, form in enumerate(PRODUCTS):
        warps = TYPES.get(form.kinds[1], WARPS)
        args = form.inputs(warps, 1000 + number)
        count = args[-1].size * (2 if form.kinds[0] == "f16" else 1)
        out.append(Job(form.name, HEAD + form.text(), form.name, (warps * 32 // THREADS,),
                       (THREADS,), list(args), products=(form.kinds[1], count)))  # fmt: skip
    rng = np.random.default_rng(5)
    for name, text in moves().items():
        data = rng.integers(0, 1 << 32, 64 * 256, dtype=np.uint32)
        out.append(Job(name, HEAD + text, name, (64,), (32,), [data, np.zeros_like(data)]))
    return out + hopper_kernels.jobs()


def compared(job: Job, dry: bool) -> dict[str, Any]:
    """Every byte of every array afterwards, those that a tensor map describes too."""
    started = time.monotonic()
    here = [array_of(arg) for arg in on_emulator(job)[2]]
    row: dict[str, Any] = {
        "results": int(here[-1].size), "emulator_seconds": time.monotonic() - started,
        "bits": digest(here),
    }  # fmt: skip
    if job.products is not None:
        row |= {"type": job.products[0], "dot_products": job.products[1]}
    if dry:
        return row
    return row | differences(here, [array_of(arg) for arg in on_device(job)])


def digest(arrays: list[Any]) -> str:
    return hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()[:16]


def differences(here: list[Any], there: list[Any]) -> dict[str, Any]:
    """How many elements of the arguments differ in a bit, and the first few of each."""
    different, examples = 0, []
    for number, (mine, theirs) in enumerate(zip(map(_bits, here), map(_bits, there), strict=True)):
        differ = np.flatnonzero(mine != theirs)
        different += int(differ.size)
        examples += [
            {
                "argument": number,
                "at": int(i),
                "here": hex(int(mine[i])),
                "there": hex(int(theirs[i])),
            }
            for i in differ[:5]
        ]
    return {"different": different, "examples": examples}


def _bits(array: Any) -> Any:
    words = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    return array.reshape(-1).view(words[array.itemsize])


def main() -> int:
    what = "the emulator alone, against the bits of the record"
    asked = arguments(
        __doc__, "mma_device.json", dry=what, only="kernels with this word"
    ).parse_args()
    record: dict[str, Any] = earlier(asked.out)
    kept = record.setdefault("kernels", {})
    rows: dict[str, Any] = {} if asked.dry else kept
    given = {job.name: job for job in jobs()}

    def keep(name: str) -> None:
        if not asked.dry:
            print(name, rows[name], flush=True)
            save(asked.out, record)

    measured(rows, given, lambda name: compared(given[name], asked.dry), keep, only=asked.only)
    if asked.dry:
        return against(rows, kept)
    totals: dict[str, int] = {}
    for row in rows.values():
        if "type" in row and row.get("different") == 0:
            totals[row["type"]] = totals.get(row["type"], 0) + row["dot_products"]
    record["equal_dot_products"] = totals
    wrong = [name for name, row in rows.items() if row.get("different") or "failed" in row]
    print(f"{len(rows)} kernels, {len(wrong)} differ or failed: {wrong[:20]}")
    print("dot products that are equal, by type of a:", totals)
    about = environment("NVIDIA H200")
    save(asked.out, record | about)
    return 1 if wrong else 0


def against(rows: dict[str, Any], kept: dict[str, Any]) -> int:
    """The emulator's bits now, and those that a GPU's were equal to."""
    known = {name for name in rows if "bits" in kept.get(name, {})}
    other = [name for name in known if rows[name].get("bits") != kept[name]["bits"]]
    failed = [name for name, row in rows.items() if "failed" in row]
    print(f"{len(rows)} kernels, {len(known)} with bits of a GPU: {len(other)} others: {other[:9]}")
    print(f"{len(failed)} failed: {failed[:9]}")
    return 1 if other or failed else 0


if __name__ == "__main__":
    sys.exit(main())
