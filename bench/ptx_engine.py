"""How many kernels the fast engine takes, and whether its bits are the evaluator's.

    python bench/ptx_engine.py [--only WORD] [--look] [--out FILE]

Kernels of nvcc, CUB, Triton and Numba that the tests keep, of the catalogue, and one for each form
of instruction (`--look` only asks which are taken and compiles nothing). Needs NumPy and gcc.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from bench.ptx_launches import Job  # noqa: E402
from tests.ptx import device_kernels  # noqa: E402

from bench import ptx_ncu_kernels as kept  # noqa: E402 - not installed

OUT = ROOT / "bench" / "results" / "ptx_engine.json"


def instructions() -> Iterator[Job]:
    for case in device_kernels.cases():
        text = device_kernels.PTX_HEADER + device_kernels.ptx_source(case)
        args = [*device_kernels.inputs(case), *device_kernels.outputs(case)]
        blocks = device_kernels.SIZE // device_kernels.BLOCK
        yield Job(case.name, text, case.name, (blocks,), (device_kernels.BLOCK,), args)


GROUPS = {
    "nvcc": kept.all_programs, "CUB": kept.all_collectives, "Triton": kept.all_tritons,
    "Numba": kept.numbas, "catalogue": kept.catalogued, "instructions": instructions,
}  # fmt: skip


def judged(job: Job, look: bool) -> dict[str, Any]:
    kernel = job.loaded()
    why_not = kernel.why_not_fast()
    if look or why_not:
        return {"taken": not why_not, "why_not": why_not}
    results, seconds, ran = [], {}, ""
    for engine in ("numpy", "c", "c"):  # the second time it is compiled already
        args = job.fresh()
        started = time.monotonic()
        report = kernel.launch(job.grid, job.block, args, shared_bytes=job.shared, engine=engine)
        seconds[f"again_{engine}" if engine in seconds else engine] = time.monotonic() - started
        results.append(args)
        ran = report.engine
    if ran != "c":
        return {"taken": False, "why_not": kernel.fast.why_not or "given up while it ran"}
    pairs = zip(results[0], results[-1], strict=True)
    same = all(a.tobytes() == b.tobytes() for a, b in pairs if isinstance(a, np.ndarray))
    return {"taken": True, "same_bits": same, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="groups and kernels with this word")
    parser.add_argument("--look", action="store_true", help="compile nothing")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    record: dict[str, Any] = {}
    for group, make in GROUPS.items():
        rows = {job.name: judged(job, asked.look) for job in make()
                if asked.only in f"{group} {job.name}"}  # fmt: skip
        if not rows:
            continue
        taken = [row for row in rows.values() if row["taken"]]
        wrong = [name for name, row in rows.items() if not row.get("same_bits", True)]
        reasons = Counter(row["why_not"] for row in rows.values() if not row["taken"])
        print(
            f"{group:13} {len(taken)} of {len(rows)} taken, {len(wrong)} with other bits",
            flush=True,
        )
        for why, times in reasons.most_common(40):
            print(f"    {times:4} {why}")
        record[group] = {
            "kernels": len(rows), "taken": len(taken), "other_bits": wrong,
            "left": {name: row["why_not"] for name, row in rows.items() if not row["taken"]},
        }  # fmt: skip
    if asked.out is not None:
        whole = {
            "date": time.strftime("%Y-%m-%d"),
            "command": "python bench/ptx_engine.py --out FILE",
        }
        asked.out.write_text(json.dumps(whole | {"groups": record}, indent=1) + "\n")


if __name__ == "__main__":
    main()
