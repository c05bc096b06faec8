"""Rows of convolutions, on a line and on an image; ours beside NPP and what hardware allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from bench.catalogue import conv_baselines as baselines
from bench.catalogue.settings_compile import Built, Job, Record
from bench.catalogue.settings_gpu import SAMPLES, Gpu, checked, contest
from bench.harness import attempted

TAPS_1D = (3, 5, 7, 9, 13, 17, 21, 25, 31)
TAPS_2D = (3, 5, 7, 9, 11, 13, 15)
LINE, SIDE = 1 << 26, 8192
FMA_RATE = 33.5e12
OF_LINE = 0.93  # of the copy ceiling
OVER_NPP = {3: 1.2, 5: 1.5}
OVER_NPP_OTHERWISE, OVER_FLOOR = 5.0, 1.5


def jobs_1d(taps: int) -> Iterator[Job]:
    size = (("n", LINE),)
    yield Job(f"1d/{taps}", "convolution-1d", "default", (("taps", taps),), size)
    for rows, block in ((1, 128), (2, 128), (1, 256), (4, 128)):
        given = (("taps", taps), ("rows", rows), ("block", block))
        yield Job(f"1d/{taps}", "convolution-1d", f"rows={rows} block={block}", given, size)


def measure_1d(gpu: Gpu, taps: int, built: list[Built]) -> Record:
    torch = gpu.torch
    x = torch.randn(LINE + taps - 1, device="cuda")
    w = np.random.default_rng(taps).standard_normal(taps).astype(np.float32)
    y, wanted = torch.empty(LINE, device="cuda"), torch.zeros(LINE, device="cuda").double()
    for j in range(taps):
        wanted += float(w[j]) * x[j : j + LINE]
    moved = 4 * (2 * LINE + taps - 1)
    ceiling = gpu.ceiling(moved)
    found: Record = {"bytes": moved, "ceiling": ceiling, "ours": {}}
    for each in built:
        arguments = {"n": np.int32(LINE), "x": x.data_ptr(), "w": w, "y": y.data_ptr()}
        found["ours"][each.job.label] = contest(gpu, each, arguments, y, wanted, {"n": LINE})
    for each in found["ours"].values():
        if "seconds" in each:
            each["fraction"] = round(moved / each["seconds"] / ceiling, 4)
    fraction = found["ours"]["default"].get("fraction", 0.0)
    return found | {"fraction": fraction, "goal": OF_LINE, "met": fraction >= OF_LINE}


def jobs_2d(taps: int) -> Iterator[Job]:
    size = (("height", SIDE), ("columns", SIDE))
    yield Job(f"2d/{taps}", "convolution-2d", "default", (("taps", taps),), size)
    for step, rows, block, exchange in others_2d(taps):
        values = {"taps": taps, "step": step, "rows": rows, "block": block, "exchange": exchange}
        label = f"step={step} rows={rows} block={block} {exchange}"
        yield Job(f"2d/{taps}", "convolution-2d", label, tuple(values.items()), size)


def others_2d(taps: int) -> list[tuple[int, int, int, str]]:
    if taps == 3:
        ways = [(4, 8, 128), (4, 16, 256), (4, 32, 128), (2, 16, 128), (2, 32, 128), (8, 16, 128)]
    elif taps <= 7:
        ways = [(1, 96, 128), (2, 32, 128), (2, 48, 128), (2, 128, 128), (4, 64, 128), (2, 72, 64)]
    else:
        ways = [(1, 64, 128), (1, 128, 128), (1, 192, 128), (1, 96, 64), (2, 128, 128)]
    both = [(*way, exchange) for way in ways[:3] for exchange in ("shuffle", "load")]
    return both + [(*way, "shuffle" if taps < 9 else "load") for way in ways[3:]]


def measure_2d(gpu: Gpu, taps: int, built: list[Built]) -> Record:
    torch = gpu.torch
    image = torch.randn(SIDE, SIDE, device="cuda")
    w = np.random.default_rng(taps).standard_normal((taps, taps)).astype(np.float32)
    out = torch.empty_like(image)
    wanted = windows(torch, image, w)
    ceiling = gpu.ceiling(8 * SIDE * SIDE)
    floors = {"memory": 8 * SIDE * SIDE / ceiling, "fma": taps * taps * SIDE * SIDE / FMA_RATE}
    found: Record = {"ceiling": ceiling, "floors": floors, "ours": {}, "others": {}}
    size = {"height": SIDE, "columns": SIDE}
    for each in built:
        arguments: dict[str, Any] = {name: np.int32(value) for name, value in size.items()}
        arguments |= {"image": image.data_ptr(), "w": w.reshape(-1), "out": out.data_ptr()}
        found["ours"][each.job.label] = contest(gpu, each, arguments, out, wanted, size)
    found["others"]["npp"] = by_npp(gpu, taps, image, w, out, wanted)
    ours = found["ours"]["default"].get("seconds", math.inf)
    over = found["others"]["npp"].get("seconds", 0.0) / ours
    goal, floor = OVER_NPP.get(taps, OVER_NPP_OTHERWISE), max(floors.values())
    return found | {
        "over_npp": round(over, 3),
        "goal": goal,
        "over_floor": round(ours / floor, 3),
        "met": over >= goal and ours <= OVER_FLOOR * floor,
    }


def windows(torch: Any, image: Any, w: Any) -> Any:
    """The specification, in float64."""
    taps = len(w)
    half = taps // 2
    padded = torch.nn.functional.pad(image[None, None], (half,) * 4, mode="replicate")[0, 0]
    padded, wanted = padded.double(), torch.zeros(SIDE, SIDE, device="cuda").double()
    for r in range(taps):
        for c in range(taps):
            wanted += float(w[r, c]) * padded[r : r + SIDE, c : c + SIDE]
    return wanted


def by_npp(gpu: Gpu, taps: int, image: Any, w: Any, out: Any, wanted: Any) -> Record:
    found, failed = attempted(_npp, gpu, taps, image, w, out, wanted)
    return found or {"error": failed[:300]}  # a competitor's failure is a result, too


def _npp(gpu: Gpu, taps: int, image: Any, w: Any, out: Any, wanted: Any) -> Record:
    import cupy

    library = baselines.npp_library()
    if library is None:
        return {"error": "libnppif is not installed"}
    given, made = cupy.from_dlpack(image), cupy.from_dlpack(out)
    held = cupy.asarray(np.ascontiguousarray(w[::-1, ::-1]))  # NPP takes them in reverse
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    launch = baselines.npp_filter(library, given, made, held, taps, properties)
    return checked(gpu, launch, out, wanted, SAMPLES)
