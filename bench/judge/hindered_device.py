"""Ten pairs of kernels on a GPU: one that something holds back, and one with the remedy.

    python -m bench.judge.hindered_device

Needs nvcc and CuPy. Each kernel of tests/verdict/slow.cu is launched 60 times, in turn with the
other of its pair, with other data in L2 before; the median of the times of events is kept. Results
go to bench/results/judge_hindered_device.json.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.verdict.slow import FAST, PAIRS, SOURCE, Pair
from bench.harness import arguments, environment, save

LAUNCHES = 60
BESIDE = 1 << 27  # bytes that are written between


def timed(cupy: Any, module: Any, name: str, pair: Pair) -> dict[str, Any]:
    grid, inputs, outputs, n = pair.large
    draw = np.random.default_rng(1).random(inputs, np.float32) - np.float32(0.5)
    x = cupy.asarray(draw if pair.element == "f4" else (draw.view(np.uint32) >> 16).astype("u2"))
    beside = cupy.zeros(BESIDE, cupy.uint8)
    names = (name, name + FAST)
    results = {each: cupy.zeros(outputs, x.dtype) for each in names}
    times: dict[str, list[float]] = {each: [] for each in names}
    for number in range(LAUNCHES + 1):
        for each in names:
            beside[:] = number
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            module.get_function(each)(grid, pair.block, (x, results[each], np.int32(n)))
            end.record()
            end.synchronize()
            if number:
                times[each].append(1e6 * cupy.cuda.get_elapsed_time(begin, end))
    slow, fast = (cupy.asnumpy(results[each]) for each in names)
    same = bool(np.array_equal(slow, fast)) or (
        pair.element == "f4" and bool(np.allclose(slow, fast, rtol=1e-4, atol=1e-4))
    )
    return {
        "slow_ns": float(np.median(times[name])), "fast_ns": float(np.median(times[name + FAST])),
        **({"same": same} if pair.same else {}),
    }  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, "judge_hindered_device.json")
    asked = parser.parse_args()
    cupy = import_module("cupy")
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "slow.cubin"
        arch = cupy.cuda.Device().compute_capability
        subprocess.run(
            ["nvcc", f"-arch=sm_{arch}", "-cubin", "-o", str(binary), str(SOURCE)], check=True
        )
        module = cupy.RawModule(path=str(binary))
        rows = {name: timed(cupy, module, name, pair) for name, pair in PAIRS.items()}
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    save(asked.out, {**environment(), "device": device, "pairs": rows})
    for name, row in rows.items():
        print(name, row)
    return 0 if all(row.get("same", True) for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
