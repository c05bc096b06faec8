"""Settings around rows that missed their goals, measured, so that rules can be fitted.

    python -m bench.catalogue.settings_probe        with a GPU, PyTorch and CuPy
    python -m bench.catalogue.settings_probe --dry  no GPU: do the first kernels compile?

Long windows on a line, windows of 9 to 15 taps on an image, large structures whose number is odd,
structures of few fields. Every setting is checked before it is timed; the default is among them.
The record is kept row by row, and a run picks up where an earlier one stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from bench.catalogue.settings_compile import Job, Record, build, built_all
from bench.catalogue.settings_gpu import Gpu
from bench.catalogue.settings_structures import INPUT_BYTES, Structures, measure_structures
from bench.catalogue.settings_windows import LINE, SIDE, measure_1d, measure_2d
from bench.harness import arguments, attempted, earlier, save

TAPS_1D = (21, 25, 29, 31, 33)
TAPS_2D = (9, 11, 13, 15)
# Strips of an image: what gives every multiprocessor of 132 as many blocks, and round numbers.
ROWS_2D = (64, 96, 125, 128, 144, 166, 199, 249, 497)
LARGE = (18, 20, 24, 28)
FEW = (("float32", 3), ("float32", 5), ("float32", 6), ("float64", 3), ("float64", 5))


def varied(row: str, entry: str, fixed: Record, size: Record, ways: Iterator[Record]) -> list[Job]:
    """The default, and each way by its own label."""
    sized = tuple(size.items())
    jobs = [Job(row, entry, "default", tuple(fixed.items()), sized)]
    for way in ways:
        label = " ".join(f"{name}={value}" for name, value in way.items())
        jobs.append(Job(row, entry, label, tuple({**fixed, **way}.items()), sized))
    return jobs


def grid(**values: tuple[Any, ...]) -> Iterator[Record]:
    return (dict(zip(values, way, strict=True)) for way in product(*values.values()))


def lines() -> dict[str, list[Job]]:
    ways = {"width": (2, 4), "rows": (1, 2, 4, 8), "block": (64, 128, 256)}
    return {
        f"1d/{taps}": varied(
            f"1d/{taps}", "convolution-1d", {"taps": taps}, {"n": LINE}, grid(**ways)
        )
        for taps in TAPS_1D
    }


def images() -> dict[str, list[Job]]:
    ways = {"exchange": ("load", "shuffle"), "step": (1,), "rows": ROWS_2D, "block": (64, 128)}
    size = {"height": SIDE, "columns": SIDE}
    return {
        f"2d/{taps}": varied(f"2d/{taps}", "convolution-2d", {"taps": taps}, size, grid(**ways))
        for taps in TAPS_2D
    }


def structures() -> dict[Structures, list[Job]]:
    shared = {"strategy": ("shared",), "block": (64, 128, 256), "tiles": (1, 2, 4)}
    wide = {"strategy": ("shared",), "block": (64, 128, 256), "width": (1, 2, 4)}
    found = {}
    for entry, dtype, fields, ways in (
        *(("aos-to-soa", "float32", fields, wide) for fields in LARGE),
        *(("soa-to-aos", dtype, fields, shared) for dtype, fields in FEW),
    ):
        even = INPUT_BYTES // (fields * int(dtype[5:]) // 8) // 4096 * 4096
        for n in (even, even - 4095):
            row = Structures(entry, fields, dtype, n)
            given = {"fields": fields, "dtype": dtype}
            found[row] = varied(row.key, entry, given, {"n": n}, grid(**ways))
    return found


def run(options: Any) -> int:
    records: Record = earlier(options.out, again=options.again)
    windows, moved = lines() | images(), structures()
    jobs = {**windows, **{row.key: some for row, some in moved.items()}}
    missing = {key: some for key, some in jobs.items() if key not in records}
    started = time.monotonic()
    by_row = built_all([job for some in missing.values() for job in some])
    print(f"compiled in {time.monotonic() - started:.0f} s", flush=True)
    gpu = Gpu()
    measures: dict[str, Callable[..., Record]] = {
        **{f"1d/{t}": lambda built, t=t: measure_1d(gpu, t, built) for t in TAPS_1D},
        **{f"2d/{t}": lambda built, t=t: measure_2d(gpu, t, built) for t in TAPS_2D},
        **{r.key: lambda built, r=r: measure_structures(gpu, r, built, []) for r in moved},
    }
    for key in missing:
        found, failed = attempted(measures[key], by_row[key])
        if failed:
            print(f"{key}: {failed}"[:300], flush=True)
            continue
        records[key] = found
        save(options.out, records)
        print(best_of(key, records[key]), flush=True)
        if time.monotonic() - started > options.seconds:
            print("out of time; run again to go on")
            return 3
    return 0


def best_of(key: str, found: Record) -> str:
    timed = [(each["seconds"], label) for label, each in found["ours"].items() if "seconds" in each]
    default = found["ours"]["default"].get("seconds", float("inf"))
    shown = ", ".join(f"{label} {seconds * 1e6:.1f}" for seconds, label in sorted(timed)[:5])
    return f"{key:<34} default {default * 1e6:.1f} µs; {shown}"


def dry() -> int:
    jobs = [*lines().values(), *images().values(), *structures().values()]
    print(f"{len(jobs)} rows, {sum(map(len, jobs))} kernels")
    failures = [built.failure for some in jobs if (built := build(some[0])).failure]
    print(f"{len(failures)} defaults do not compile {failures[:3]}")
    return 1 if failures else 0


def main() -> int:
    parser = arguments(__doc__, "settings_probe.json", dry="no GPU", resumes=True)
    parser.add_argument("--seconds", type=float, default=420.0)
    options = parser.parse_args()
    return dry() if options.dry else run(options)


if __name__ == "__main__":
    raise SystemExit(main())
