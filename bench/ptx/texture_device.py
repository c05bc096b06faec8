"""Textures and surfaces on a GPU and on the emulator: every bit compared.

    python -m bench.ptx.texture_device        on an H200, with cupy
    python -m bench.ptx.texture_device --dry  the emulator alone, against the bits of the record

The kernels are those of `bench/ptx/texture_kernels.py`. One row for each; one that fails does not
stop the others; rows that are there are kept. Of values that differ a row has the largest
distance, as numbers and counted in steps of a float, and the first few. The exit status is 1 where
something differs or fails whose name begins neither with `linear` nor with `open`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import arguments, earlier, environment, measured, save
from bench.ptx import texture_kernels
from bench.ptx.launches import Job, array_of, on_device, on_emulator
from bench.ptx.mma_device import against, differences, digest

NOT_PROMISED = ("linear", "open")


def compared(job: Job, dry: bool) -> dict[str, Any]:
    here = [array_of(arg) for arg in on_emulator(job)[2]]
    row: dict[str, Any] = {"results": int(here[-1].size), "bits": digest(here)}
    if dry:
        return row
    there = on_device(job)
    row |= differences(here, [array_of(arg) for arg in there])
    if row["different"] and ".f32." in job.text:
        row |= _distances(job, here[-1], array_of(there[-1]))
    return row


def _distances(job: Job, here: np.ndarray, there: np.ndarray) -> dict[str, Any]:
    """How far apart floats are, and at which coordinates the furthest lie."""
    mine, theirs = (each.reshape(-1).view(np.float32).astype(np.float64) for each in (here, there))
    apart = np.abs(np.nan_to_num(mine) - np.nan_to_num(theirs))
    steps = np.abs(_order(here) - _order(there))
    worst = int(apart.argmax())
    given = job.args[1].reshape(-1, 4)[worst // 4]
    return {
        "largest_distance": float(apart[worst]), "most_steps": int(steps.max()),
        "at": {"coordinates": given.view(np.float32).tolist(), "words": given.tolist(),
               "here": float(mine[worst]), "there": float(theirs[worst])},
    }  # fmt: skip


def _order(words: np.ndarray) -> np.ndarray:
    """Floats as whole numbers in the same order."""
    signed = words.reshape(-1).view(np.int32).astype(np.int64)
    return np.where(signed < 0, -(signed & 0x7FFFFFFF), signed)


def main() -> int:
    what = "the emulator alone, against the bits of the record"
    asked = arguments(
        __doc__, "texture_device.json", dry=what, only="kernels with this word"
    ).parse_args()
    record: dict[str, Any] = earlier(asked.out)
    kept = record.setdefault("kernels", {})
    rows: dict[str, Any] = {} if asked.dry else kept
    given = {job.name: job for job in texture_kernels.jobs()}

    def keep(name: str) -> None:
        if not asked.dry:
            print(name, rows[name], flush=True)
            save(asked.out, record)

    measured(rows, given, lambda name: compared(given[name], asked.dry), keep, only=asked.only)
    if asked.dry:
        return against(rows, kept)
    return _told(record, rows, asked.out)


def _told(record: dict[str, Any], rows: dict[str, Any], out: Path) -> int:
    wrong = [name for name, row in rows.items() if row.get("different") or "failed" in row]
    promised = [name for name in wrong if not name.startswith(NOT_PROMISED)]
    print(f"{len(rows)} kernels, {len(rows) - len(wrong)} equal in every bit")
    print(f"{len(promised)} differ or failed that must not: {promised}")
    print(f"others that differ: {[name for name in wrong if name not in promised]}")
    about = environment("NVIDIA H200")
    save(out, record | about)
    return 1 if promised else 0


if __name__ == "__main__":
    sys.exit(main())
