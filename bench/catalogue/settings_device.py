"""Settings by rule on a GPU: defaults, no tuning, beside the plain kernels and what others have.

    python -m bench.catalogue.settings_device        with a GPU, PyTorch and CuPy (2-D: NPP)
    python -m bench.catalogue.settings_device --dry  small, no GPU: is everything right?

Structures to arrays, back, and summed (multiples of 4096 and odd numbers), 1-D and 2-D convolution.
Each row has the default, beside it the hand-written kernels of structures_baselines.cu and PyTorch
(or NPP), our other strategies, and for images some other settings, from which rules can learn; only
the default counts. All texts are compiled first, on all cores. Every kernel is checked on a
poisoned output before it is timed. The record is kept row by row, and a run picks up where an
earlier one stopped. `--only structures 1d 2d` selects.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
from bench.catalogue.settings_compile import Built, Job, Record, build, built_all, plain_text
from bench.catalogue.settings_gpu import Gpu, grid_of
from bench.catalogue.settings_structures import (
    FIELDS,
    INPUT_BYTES,
    MOVES,
    Structures,
    measure_structures,
    plain_jobs,
    structure_rows,
)
from bench.catalogue.settings_windows import (
    TAPS_1D,
    TAPS_2D,
    jobs_1d,
    jobs_2d,
    measure_1d,
    measure_2d,
)
from bench.harness import arguments, command, earlier, save

from warploom import ptx
from warploom.emit.cuda import cuda
from warploom.kernel.ir import ArrayParam
from warploom.runtime.compile import compile_cuda

# -- the run ---------------------------------------------------------------------------------------


def run(options: Any) -> int:
    started = time.monotonic()
    records: Record = earlier(options.out, again=options.again)
    structures = structure_rows(options) if "structures" in options.only else []
    rows = [row for row in structures if row.key not in records]
    lines = [t for t in TAPS_1D if "1d" in options.only and f"1d/{t}" not in records]
    images = [t for t in TAPS_2D if "2d" in options.only and f"2d/{t}" not in records]
    jobs = [job for row in rows for job in row.jobs()]
    jobs += [job for taps in lines for job in jobs_1d(taps)]
    jobs += [job for taps in images for job in jobs_2d(taps)]
    jobs.sort(key=lambda job: job.row.startswith("2d"), reverse=True)  # the longest first
    jobs += plain_jobs(rows)
    by_row = built_all(jobs)
    print(f"{len(jobs)} kernels compiled in {time.monotonic() - started:.0f} s", flush=True)
    gpu = Gpu()
    work: list[tuple[str, Callable[[], Record]]] = [
        *((f"1d/{t}", lambda t=t: measure_1d(gpu, t, by_row[f"1d/{t}"])) for t in lines),
        *((f"2d/{t}", lambda t=t: measure_2d(gpu, t, by_row[f"2d/{t}"])) for t in images),
        *((r.key, lambda r=r: measure_structures(gpu, r, by_row[r.key], plain_of(by_row, r)))
          for r in rows),
    ]  # fmt: skip
    records["machine"] = machine(gpu, records.get("machine", {}))
    for key, measured in work:
        records[key] = measured()
        save(options.out, records)
        print(line_of(key, records[key]), flush=True)
        if time.monotonic() - started > options.seconds:
            print("out of time; run again to go on")
            return 3
    records["machine"]["wall_seconds"] = round(time.monotonic() - started, 1)
    save(options.out, records)
    return summary(records)


def plain_of(by_row: dict[str, list[Built]], row: Structures) -> list[Built]:
    wanted = {"fields": row.fields, "dtype": row.dtype}
    return [
        each
        for each in by_row.get("", [])
        if {k: v for k, v in each.job.given if k != "per"} == wanted
    ]


def machine(gpu: Gpu, before: Record) -> Record:
    return before | {
        "gpu": gpu.torch.cuda.get_device_name(),
        "torch": gpu.torch.__version__,
        "date": date.today().isoformat(),
        "command": command(),
    }


def line_of(key: str, found: Record) -> str:
    words = [f"{key:<36}", "met " if found["met"] else "MISS"]
    if "over_npp" in found:
        words.append(f"{found['over_npp']:.2f} of NPP (goal {found['goal']})")
        words.append(f"{found['over_floor']:.2f} of the floor")
    else:
        words.append(f"{found['fraction']:.3f} (goal {found['goal']})")
    if "of_best" in found:
        words.append(f"{found['of_best']:.3f} of the best other")
        words.append(str((found["ours"]["default"]["settings"] or {}).get("strategy")))
    shown = {name: each.get("fraction", each.get("error", each.get("seconds")))
             for name, each in found["ours"].items()}  # fmt: skip
    best = min(
        (each["seconds"], name) for name, each in found["ours"].items() if "seconds" in each
    ) if any("seconds" in each for each in found["ours"].values()) else (0.0, "none")  # fmt: skip
    words.append(f"best of ours: {best[1]} {shown.get(best[1], '')}")
    return "  ".join(words)


def summary(records: Record) -> int:
    rows = {key: each for key, each in records.items() if key != "machine"}
    missed = [key for key, each in rows.items() if not each["met"]]
    print(f"{len(rows) - len(missed)} of {len(rows)} rows meet their goals")
    for key in missed:
        print(f"  {line_of(key, rows[key])}")
    return 1 if missed else 0


# -- without a GPU ---------------------------------------------------------------------------------


def dry(options: Any) -> int:
    """Small sizes on the emulator, both hand-written kernels and what the rule chooses."""
    failures = 0
    for row in structure_rows(options):
        for n in (256, 321):
            small = Structures(row.entry, row.fields, row.dtype, n)
            for job in (*small.jobs(), *plain_jobs([small])):
                wrong = dry_job(small, job)
                failures += bool(wrong)
                if wrong:
                    print(f"{small.key} {job.label}: {wrong}", flush=True)
    for job in (next(jobs_1d(3)), *list(jobs_2d(3))[:2]):
        built = build(job)
        failures += bool(built.failure)
        assert built.kernel is not None
        assert grid_of(built.kernel, dict(job.size))[0] >= 1
        assert {p.name for p in built.kernel.params} <= {
            "n", "x", "w", "y", "height", "columns", "image", "out"
        }  # fmt: skip
    print(f"{failures} failures")
    return 1 if failures else 0


def dry_job(row: Structures, job: Job) -> str:
    built = build(job)
    if built.failure:
        return built.failure
    x = np.random.default_rng(row.n).integers(0, 99, row.n * row.fields).astype(row.dtype)
    summed = row.entry == "aos-sum"
    shape = (row.fields, row.n) if row.entry == "soa-to-aos" else (row.n, row.fields)
    wanted = x.reshape(shape).sum(1) if summed else x.reshape(shape).T.reshape(-1)
    if built.kernel is not None:
        names, text = [built.name], cuda(built.kernel)
        grid, block = grid_of(built.kernel, {"n": row.n}), built.kernel.block
        assert [isinstance(p, ArrayParam) for p in built.kernel.params] == [False, True, True]
    else:
        names = [f"{kind}_{MOVES[row.entry]}" for kind in ("direct", "shared")]
        text, per = plain_text(**dict(job.given)), dict(job.given)["per"]
        grid, block = (-(-row.n // (256 * per)), 1, 1), (256, 1, 1)
    module = ptx.load(compile_cuda(text).text)
    for name in names:
        y = np.full(len(wanted), 7777, row.dtype)
        module.kernel(name).launch(grid, block, [np.int32(row.n), x, y])
        if not np.array_equal(y, wanted):
            return f"{name} is wrong"
    return ""


def main() -> int:
    parser = arguments(__doc__, "settings_device.json", dry="small, no GPU", resumes=True)
    parser.add_argument("--only", nargs="*", default=["structures", "1d", "2d"])
    parser.add_argument("--fields", type=int, nargs="*", default=list(FIELDS))
    parser.add_argument("--bytes", type=int, default=INPUT_BYTES, help="size of the input array")
    parser.add_argument("--seconds", type=float, default=420.0)
    options = parser.parse_args()
    return dry(options) if options.dry else run(options)


if __name__ == "__main__":
    raise SystemExit(main())
