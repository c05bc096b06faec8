"""Pairs of kernels of one computation and size: does the time model name the faster one?

    python -m bench.loopnest.pairs_device --dry      predicts each, without a GPU
    python -m bench.loopnest.pairs_device            times each on a GPU, and compares

`bench/common/loopnest/pairs/` has the texts. `--dry` counts each kernel on the emulator, in a small
launch, as `warploom ptx report` does, checks that all kernels of a computation store the same, and
writes what is predicted of the full launch. A later call on a GPU times that launch in a CUDA
graph. Of the pairs whose times differ by more than 1.5 it counts those whose faster kernel was
named.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from typing import Any

import numpy as np
from bench.common.loopnest.paired import TABLE, Group, foretold, inputs, kernels, text
from bench.harness import arguments, earlier, environment, save

FAR = 1.5
LAUNCHES, REPEATS = 20, 5
ENOUGH, LEAST = 0.9, 60  # of the pairs, and how many these are


def predicted_row(group: Group, name: str, first: dict[int, Any]) -> dict[str, Any]:
    told, stored = foretold(group, name)
    right = first.setdefault(id(group), stored)
    if not np.allclose(stored, right, rtol=2e-3, atol=2e-3):
        raise SystemExit(f"{name} stores something else than the first of its computation")
    return {"predicted_us": round(float(told.nanoseconds) / 1e3, 2), "limit": told.limit}


def sides(given: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


def timed(group: Group, name: str) -> float:
    """Microseconds of a full launch, in a graph of some."""
    import torch

    from warploom.runtime.gpu import load_function
    from warploom.runtime.quick import replayed

    way = group.ways[name]
    arrays = [torch.from_numpy(each).cuda() for each in inputs(group, group.full)]
    loaded = load_function(text(group.file), name)
    grid, block = sides(way.grid(*group.full)), sides(way.block)
    given = [*(each.data_ptr() for each in arrays), *map(np.int32, group.full)]

    def bind() -> Any:
        return loaded.bind(grid, block, given, int(torch.cuda.current_stream().cuda_stream))

    replay = replayed(bind, LAUNCHES)
    replay()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(REPEATS):
        first.record()
        replay()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e3 / LAUNCHES)
    return float(np.median(times))


def compared(rows: dict[str, Any]) -> dict[str, Any]:
    """Of pairs of one computation whose times are far apart, those whose faster one is named."""
    named, wrong = 0, []
    for group in TABLE:
        there = [name for name in group.ways if "us" in rows.get(name, {})]
        for one, other in combinations(there, 2):
            slow, fast = sorted((one, other), key=lambda name: -rows[name]["us"])
            if rows[slow]["us"] <= FAR * rows[fast]["us"]:
                continue
            if rows[slow]["predicted_us"] > rows[fast]["predicted_us"]:
                named += 1
            else:
                wrong.append([fast, slow])
    return {"pairs": named + len(wrong), "named": named, "wrong": wrong}


def main() -> int:
    parser = arguments(
        __doc__, "pairs_device.json", dry="predict, without a GPU", only="kernels with this word",
        resumes=True,
    )  # fmt: skip
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    rows, first = record.get("kernels", {}), dict[int, Any]()
    for group, name in kernels():
        if asked.only not in name:
            continue
        row = rows.setdefault(name, {})
        if asked.dry:
            row |= predicted_row(group, name, first)
        elif "us" not in row:
            row["us"] = round(timed(group, name), 2)
        print(name, json.dumps(row, ensure_ascii=False), flush=True)
        save(asked.out, {"kernels": rows, "compared": compared(rows), **environment()})
    found = compared(rows)
    print(json.dumps(found))
    enough = found["pairs"] >= LEAST and found["named"] >= ENOUGH * found["pairs"]
    return 0 if asked.dry or enough else 1


if __name__ == "__main__":
    sys.exit(main())
