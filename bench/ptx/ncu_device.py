"""Sectors and wavefronts as `warploom ptx report` says them, beside what ncu counts on a GPU.

    python -m bench.ptx.ncu_device [--out FILE]      a machine with a GPU, CuPy and ncu
    python -m bench.ptx.ncu_device --dry             the emulator alone: its counts
    python -m bench.ptx.ncu_device --explain         the emulator's side of the record made anew
    python -m bench.ptx.ncu_device --only WORD --times N --out FILE     some kernels, several times

One child launches all kernels (`bench/ptx/ncu_kernels.py`) under one ncu; where a launch breaks the
child, another goes on behind it. Each row has both counts of each kind; those that differ have
their reasons in `EXPLAINED`, and a row that differs without one is said to be unexplained.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, attempted, child, earlier, environment, save
from bench.ptx.launches import Job, on_device, on_emulator
from bench.ptx.ncu_kernels import jobs

from warploom.ptx.traffic import traffic_rows

# What is compared → ncu's name of it. `conflicts` are wavefronts beyond those that must be.
METRICS = {
    "global loads, sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global loads, requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global stores, sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global stores, requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "shared loads, wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared loads, conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared stores, wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared stores, conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "local loads, sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local stores, sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
}
# Kept beside them, and not compared: what atomics and copies cost is said by nobody.
BESIDE = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "smsp__inst_executed_op_ldgsts.sum",
)
# A word in the name of a row, the kind of count, and why the two differ.
_JOINED = "likely: the assembler joins neighbouring accesses of PTX into wide ones"
_CHANGES = "ncu counts 99 to 102 wavefronts in five launches of one text; by the banks it is 96"
_AT_TIMES = "ncu counts up to three wavefronts more in some launches of one text, in others none"
_CALLS = "likely: calls by the machine's own convention, which keeps registers in local memory"
EXPLAINED = (
    ("nvcc matmul", "shared loads", _JOINED), ("product-shared", "shared loads", _JOINED),
    ("block_reduce", "shared loads", _JOINED), ("block_scan_raking", "shared loads", _JOINED),
    ("attention", "shared loads", _JOINED), ("block_merge_sort", "shared stores", _JOINED),
    ("warp_exchange", "shared stores", _CHANGES), ("warp_sort", "shared stores", _AT_TIMES),
    ("block_radix_sort", "shared loads", _AT_TIMES), ("attention", "shared stores", _AT_TIMES),
    ("nvcc functions", "", _CALLS),
    ("nvcc generic", "", "likely: generic addresses, of which ncu counts all lanes as one kind"),
)  # fmt: skip


def emulated(job: Job) -> tuple[dict[str, int], list[Any]]:
    """Counts by the emulator's report, and the arguments afterwards."""
    kernel, report, args = on_emulator(job, counters=True)
    found = dict.fromkeys(METRICS, 0)
    for row in traffic_rows(kernel, report):
        kind = {"reads": "loads", "writes": "stores"}.get(row.what)
        if kind is None or row.space not in ("global", "local", "shared"):
            continue
        if row.instruction.startswith("cp.async") and row.space == "shared":
            continue  # with counters of its own; what a copy reads is among the global loads
        most, least = row.wavefronts or 0, row.least_wavefronts or 0
        for what, count in (
            ("sectors", row.sectors or 0), ("requests", row.requests), ("wavefronts", most),
            ("conflicts", most - least),
        ):  # fmt: skip
            name = f"{row.space} {kind}, {what}"
            if name in found:
                found[name] += count
    return found, args


# -- on the device --------------------------------------------------------------------------------


def chosen(only: str, times: int) -> list[Job]:
    """Those with a word in their names, each several times: counts of ncu need not repeat."""
    found = [job for job in jobs() if only in job.name]
    return [replace(job, name=f"{job.name}{f' #{iteration}' if iteration else ''}")
            for iteration in range(times) for job in found]  # fmt: skip


def launch_all(given: list[Job], first: int, results: Path) -> None:
    """In the child: every kernel from one on, each once; which were launched goes to a file."""
    done: list[dict[str, Any]] = []
    for number, job in enumerate(given[first:], first):
        row: dict[str, Any] = {"number": number, "kernel": job.loaded().name}
        there, failed = attempted(lambda job=job: [digest(arg) for arg in on_device(job)])
        row |= {"failed": failed[:300]} if failed else {"digests": there}
        done.append(row)
        results.write_text(json.dumps(done))
        if "failed" in row and not alive():
            return  # no kernel runs any more in this process


def alive() -> bool:
    import cupy

    return not attempted(cupy.cuda.runtime.deviceSynchronize)[1]


def digest(arg: Any) -> str:
    import hashlib

    return hashlib.sha256(arg.tobytes() if isinstance(arg, np.ndarray) else b"").hexdigest()[:16]


def counted(text: str) -> list[tuple[str, dict[str, float]]]:
    """What ncu says, launch by launch: the kernel's name, and metric → value."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        value = row.get("Metric Value", "").replace(",", "")
        name = row["Kernel Name"].split("(")[0]
        launch = found.setdefault(row["ID"], (name, {}))
        try:
            launch[1][row["Metric Name"]] = float(value)
        except ValueError:
            continue
    return list(found.values())


def known_metrics() -> list[str]:
    """Of what we ask for, what this ncu has."""
    asked = [*METRICS.values(), *BESIDE]
    found = listed(asked)
    print(f"{len(found)} of {len(asked)} metrics are listed by this ncu", flush=True)
    return [*METRICS.values(), *(each for each in BESIDE if each in found)]


def listed(asked: Iterable[str]) -> list[str]:
    """Of these metrics, those that this ncu lists."""
    said = ""
    for kind in ("profiling", "source"):
        command = ["ncu", "--query-metrics-collection", kind, "--query-metrics", "--chip", "gh100"]
        said += subprocess.run(command, capture_output=True, text=True, check=False).stdout
    words = set(said.split())
    return [each for each in asked if each.removesuffix(".sum") in words]


def profiled(total: int, folder: Path, which: list[str]) -> dict[int, dict[str, Any]]:
    """Every launch by its number: what ncu counted, digests of its results, or why it failed."""
    metrics = known_metrics()
    rows: dict[int, dict[str, Any]] = {}
    first = 0
    while first < total:
        results = folder / f"launched_{first}.json"
        again = child("--launch", str(first), "--results", str(results), *which)
        ncu = ["ncu", "--csv", "--clock-control", "none", "--print-kernel-base", "mangled"]
        ran = subprocess.run([*ncu, "--metrics", ",".join(metrics), *again],
                             cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
        launched = earlier(results, [])
        counts = counted(ran.stdout)
        if not counts:
            print(f"ncu counted nothing: {ran.stderr[-600:]} {ran.stdout[-600:]}", flush=True)
        at = 0
        for row in launched:
            if "failed" not in row and at < len(counts) and counts[at][0] == row["kernel"]:
                row["counts"] = counts[at][1]
                at += 1
            elif "failed" not in row:
                row["failed"] = f"ncu names {counts[at][0] if at < len(counts) else 'nothing'}"
            rows[row["number"]] = row
        first = max(rows, default=first - 1) + 1
        if not launched:
            rows[first] = {"failed": f"the child ended: {ran.stderr[-300:]}"}
            first += 1
    return rows


def compared(job: Job, seen: dict[str, Any]) -> dict[str, Any]:
    """Both counts of each kind, where one is not zero; what differs, and why."""
    mine, args = emulated(job)
    if "counts" not in seen:
        return {"emulator": _nonzero(mine), "failed": seen.get("failed", "not launched")}
    theirs = {name: int(seen["counts"].get(metric, -1)) for name, metric in METRICS.items()}
    differ = [name for name in METRICS if mine[name] != theirs[name]]
    return {
        "emulator": _nonzero(mine),
        "ncu": _nonzero(theirs),
        "different": {
            n: {"emulator": mine[n], "ncu": theirs[n], "why": _reason(job.name, n)} for n in differ
        },
        "beside": {name: seen["counts"][name] for name in BESIDE if seen["counts"].get(name)},
        "same_results": [digest(arg) for arg in args] == seen["digests"],
    }  # fmt: skip


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _reason(row: str, kind: str) -> str:
    found = [why for word, what, why in EXPLAINED if word in row and what in kind]
    return found[0] if found else "unexplained"


def explain(path: Path) -> None:
    """The emulator's counts anew, beside what ncu counted then; and the reasons."""
    record = json.loads(path.read_text())
    for job in jobs():
        name = job.name
        found = record["rows"][name]
        counted = _zeros(found.get("ncu", found["emulator"])) | {
            kind: each["ncu"] for kind, each in found["different"].items()
        }
        mine, _ = emulated(job)
        differ = [kind for kind in METRICS if mine[kind] != counted[kind]]
        found |= {"emulator": _nonzero(mine), "ncu": _nonzero(counted), "different": {
            kind: {"emulator": mine[kind], "ncu": counted[kind], "why": _reason(name, kind)}
            for kind in differ
        }}  # fmt: skip
        for kind, each in found["different"].items():
            print(f"{name:40} {kind:26} {each['emulator']:7} {each['ncu']:7} {each['why']}")
    record["equal"] = sum(not row["different"] for row in record["rows"].values())
    save(path, record)
    print(f"{record['equal']} of {len(record['rows'])} equal")


def _zeros(counts: dict[str, int]) -> dict[str, int]:
    return dict.fromkeys(METRICS, 0) | counts


def machine() -> str:
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def main() -> None:
    parser = arguments(__doc__, "ptx_ncu.json", dry="no GPU", only="kernels with this word")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--launch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    given = chosen(asked.only, asked.times)
    if asked.launch is not None:
        launch_all(given, asked.launch, asked.results)
        return
    if asked.explain:
        explain(asked.out)
        return
    if asked.dry:
        for job in given:
            print(f"{job.name:45} {_nonzero(emulated(job)[0])}", flush=True)
        print(f"{len(given)} kernels")
        return
    with tempfile.TemporaryDirectory() as folder:
        which = ["--only", asked.only, "--times", str(asked.times)]
        seen = profiled(len(given), Path(folder), which)
    rows: dict[str, Any] = {}
    for number, job in enumerate(given):
        row, failed = attempted(compared, job, seen.get(number, {}))
        rows[job.name] = row or {"failed": failed[:300]}
        said = rows[job.name].get("failed") or rows[job.name]["different"] or "equal"
        print(f"{job.name:45} {said}", flush=True)
    whole = [row for row in rows.values() if "failed" not in row]
    record = {
        **environment(machine()), "kernels": len(rows), "counted": len(whole),
        "equal": sum(not row["different"] for row in whole), "rows": rows,
    }  # fmt: skip
    save(asked.out, record)
    print(f"{record['equal']} of {record['counted']} equal, {len(rows) - len(whole)} not counted")


if __name__ == "__main__":
    main()
