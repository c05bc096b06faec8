"""The sixteen KernelGen kernels on a GPU: original, no-load, no-corner, all and selected shuffles.

    python -m bench.ptx.shuffle_device --out results.json      one call; a second one resumes
    python -m bench.ptx.shuffle_device --dry                   all but the GPU: rewrite, assemble

Needs numpy and cupy, and ptxas where there is one (the driver compiles the PTX otherwise). Results
of `all` and `selected` are compared with the original's bit for bit. Also measures waits that the
table `[times]` of `machine/h200.toml` holds: shuffle, L1, and the test at the edge of a warp.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, command, earlier, save

from warploom.ptx.parse import parse
from warploom.ptx.shuffle import rewrite

PTX = ROOT / "tests" / "ptx" / "kernelgen" / "kernelgen.ptx"
VARIANTS: dict[str, dict[str, Any]] = {
    "no-load": {"select": "all", "variant": "no-load"},
    "no-corner": {"select": "all", "variant": "no-corner"},
    "predicated": {"select": "all", "variant": "predicated"},
    "all": {"select": "all"},
    "selected": {"select": "pays", "machine": "h200"},
}
EXACT = ("all", "selected", "predicated")
PLANES = ("gameoflife", "gaussblur", "jacobi", "whispering")  # two dimensions; others have three
FLAT = {"matmul": (2048, 2048), "matvec": (16384, 16384)}
BLOCK = 512
WARM, TIMES = 3, 15


def texts() -> tuple[dict[str, str], dict[str, Any]]:
    """PTX of every variant, and what the analysis says of each kernel."""
    original = PTX.read_text()
    result = {"original": original}
    found: dict[str, Any] = {}
    for name, options in VARIANTS.items():
        done = rewrite(original, PTX.name, **options)
        result[name] = done.text
        for kernel in done.kernels:
            entry = found.setdefault(kernel.name, {"loads": kernel.loads})
            entry[name] = {"shuffles": kernel.shuffles, "deltas": kernel.deltas}
            entry["seconds"] = round(kernel.seconds, 4)
    return result, found


def assemble(text: str, arch: str, folder: Path, name: str) -> tuple[Path, dict[str, int]]:
    """A cubin and the registers of each kernel; the PTX itself where there is no ptxas."""
    source = folder / f"{name}.ptx"
    source.write_text(text)
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if ptxas is None:
        return source, {}
    target = folder / f"{name}.cubin"
    done = subprocess.run(
        [ptxas, f"-arch={arch}", "-v", str(source), "-o", str(target)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    registers: dict[str, int] = {}
    current = ""
    for line in (done.stdout + done.stderr).splitlines():
        if match := re.search(r"entry function '(\w+)'", line):
            current = match.group(1)
        if (match := re.search(r"Used (\d+) registers", line)) and current:
            registers[current] = int(match.group(1))
    return target, registers


# -- on the device ------------------------------------------------------------------------------


def geometry(name: str) -> tuple[tuple[int, ...], tuple[int, int, int], int]:
    """Integer arguments, grid, and elements of each array."""
    if name in FLAT:
        nx, nt = FLAT[name]
        rows = nx if name == "matmul" else 1
        return (nx, nt), (-(-nx // BLOCK), rows, 1), nx * nt
    if name in PLANES:
        nx = 16384
        return (nx,), (nx // BLOCK, nx - 4, 1), nx * nx
    nx, ny, nz = 512, 512, 512
    return (nx, ny), (nx // BLOCK, ny - 4, nz - 4), nx * ny * nz


def launched_with(cp: Any, name: str) -> tuple[list[Any], list[Any], tuple[int, int, int]]:
    """Arguments by the types of the parameters, the arrays among them, and the grid."""
    function = parse(PTX.read_text()).function(name)
    assert function is not None
    integers, grid, size = geometry(name)
    waiting = list(integers)
    rng = cp.random.default_rng(3)
    args: list[Any] = []
    arrays = []
    for parameter in function.parameters:
        if parameter.type == "u64":
            arrays.append(rng.random(size, dtype=cp.float32))
            args.append(arrays[-1])
        elif parameter.type == "f32":
            args.append(np.float32(0.1 + 0.07 * len(args)))
        else:
            args.append(np.int32(waiting.pop(0)))
    return args, arrays, grid


def occupancy(cp: Any, kernel: Any) -> float:
    driver = cp.cuda.driver
    try:
        blocks = driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, BLOCK, 0)
    except AttributeError:
        return -1.0  # an older cupy
    threads = cp.cuda.Device().attributes["MaxThreadsPerMultiProcessor"]
    return float(blocks * BLOCK / threads)


def measure_kernel(cp: Any, name: str, modules: dict[str, Any]) -> dict[str, Any]:
    args, arrays, grid = launched_with(cp, name)
    kernels = {variant: module.get_function(name) for variant, module in modules.items()}

    def run(variant: str) -> None:
        kernels[variant](grid, (BLOCK, 1, 1), tuple(args))

    equal = compare(cp, arrays, run)
    samples = time_in_iterations(cp, list(kernels), run)
    middle = {variant: statistics.median(times) for variant, times in samples.items()}
    spread = {v: (max(times) - min(times)) / middle[v] for v, times in samples.items()}
    return {
        "equal": equal,
        "milliseconds": {v: round(t, 5) for v, t in middle.items()},
        "spread": {v: round(s, 4) for v, s in spread.items()},
        "speedup": {v: round(middle["original"] / t, 4) for v, t in middle.items()},
        "registers": {v: int(k.num_regs) for v, k in kernels.items()},
        "occupancy": {v: round(occupancy(cp, k), 3) for v, k in kernels.items()},
        "bytes": int(sum(array.nbytes for array in arrays)),
    }


def compare(cp: Any, arrays: list[Any], run: Callable[[str], None]) -> dict[str, bool]:
    """Whether each correct variant leaves the same bits in every array as the original."""
    start = [array.copy() for array in arrays]
    run("original")
    expected = [array.copy() for array in arrays]
    equal = {}
    for variant in EXACT:
        for array, old in zip(arrays, start, strict=True):
            cp.copyto(array, old)
        run(variant)
        equal[variant] = all(
            bool((a.view(cp.uint32) == b.view(cp.uint32)).all())
            for a, b in zip(arrays, expected, strict=True)
        )
    return equal


def time_in_iterations(
    cp: Any, variants: list[str], run: Callable[[str], None]
) -> dict[str, list[float]]:
    """Milliseconds by variant; in iterations, so that a drift of the clock hits all alike."""
    samples: dict[str, list[float]] = {variant: [] for variant in variants}
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    for iteration in range(WARM + TIMES):
        for variant in variants:
            begin.record()
            run(variant)
            end.record()
            end.synchronize()
            if iteration >= WARM:
                samples[variant].append(cp.cuda.get_elapsed_time(begin, end))
    return samples


LATENCY_SOURCE = r"""
#define STEPS 512
#define TIMED(NAME, SETUP, STEP)                                                        \
extern "C" __global__ void NAME(int *data, long long *out, int mask) {                  \
    __shared__ int pool[1024];                                                          \
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) pool[i] = data[i] & 1023;      \
    __syncthreads();                                                                    \
    int v = threadIdx.x; int lane = threadIdx.x & 31; SETUP;                            \
    for (int i = 0; i < 64; ++i) { STEP; }                                              \
    long long start = clock64();                                                        \
    _Pragma("unroll 32") for (int i = 0; i < STEPS; ++i) { STEP; }                      \
    long long stop = clock64();                                                         \
    if (lane == 0) out[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32] = stop - start; \
    if (v == -12345) data[0] = v + lane + pool[v & 1023];                               \
}
// data[i] is i rotated by 32 within `mask` + 1 elements, so that v walks through it.
TIMED(shuffle, , asm volatile("shfl.sync.up.b32 %0, %0, 1, 0, -1;" : "+r"(v)))
TIMED(l1, , asm volatile("ld.global.ca.s32 %0, [%1];" : "=r"(v) : "l"(data + v)))
TIMED(l2, , asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(data + v)))
TIMED(shared, , v = ((volatile int *)pool)[v & 1023])
TIMED(corner, , asm volatile("{ .reg .pred p; .reg .b32 t; setp.lt.s32 p, %2, 1;"
      "shfl.sync.up.b32 t, %0, 1, 0, -1; @p ld.global.ca.s32 t, [%1]; mov.b32 %0, t; }"
      : "+r"(v) : "l"(data + (v & 1023)), "r"(lane)))
"""


def measure_latencies(cp: Any) -> dict[str, float]:
    """Cycles a step: alone in one warp (latency), and with 32 warps on each SM (throughput)."""
    module = cp.RawModule(code=LATENCY_SOURCE)
    sms = cp.cuda.Device().attributes["MultiProcessorCount"]
    found: dict[str, float] = {}
    for name in ("shuffle", "l1", "l2", "shared", "corner"):
        elements = 1 << 20 if name == "l2" else 1024
        data = (cp.arange(elements, dtype=cp.int32) + 32) % elements
        kernel = module.get_function(name)
        for label, blocks, threads in (("latency", 1, 32), ("throughput", sms, 1024)):
            out = cp.zeros(blocks * threads // 32, cp.int64)
            times = []
            for _ in range(7):
                kernel((blocks,), (threads,), (data, out, np.int32(elements - 1)))
                times.append(float(out.mean()) / 512)
            found[f"{name} {label}"] = round(statistics.median(times) / max(1, threads // 32), 3)
    return found


# -- the run ------------------------------------------------------------------------------------


def main() -> int:
    parser = arguments(
        __doc__, "ptx_shuffle_device.json", dry="no GPU: rewrite and assemble only", resumes=True
    )
    parser.add_argument("--kernels", nargs="*", help="only these")
    options = parser.parse_args()
    record: dict[str, Any] = earlier(options.out, again=options.again)
    variants, analysis = texts()
    record.setdefault("kernels", {})
    with tempfile.TemporaryDirectory() as folder:
        if options.dry:
            dry(record, variants, analysis, Path(folder))
        else:
            run(record, variants, analysis, Path(folder), options)
    save(options.out, record, sort_keys=True)
    show(record)
    return 0 if all(all(k.get("equal", {}).values()) for k in record["kernels"].values()) else 1


def dry(
    record: dict[str, Any], variants: dict[str, str], analysis: dict[str, Any], folder: Path
) -> None:
    used = {v: assemble(text, "sm_80", folder, v)[1] for v, text in variants.items()}
    for name, entry in analysis.items():
        registers = {v: table[name] for v, table in used.items() if name in table}
        record["kernels"].setdefault(name, {}).update(analysis=entry, assembled=registers)


def run(
    record: dict[str, Any], variants: dict[str, str], analysis: dict[str, Any], folder: Path,
    options: argparse.Namespace,
) -> None:  # fmt: skip
    import cupy as cp

    device = cp.cuda.Device()
    arch = f"sm_{device.compute_capability}"
    properties = cp.cuda.runtime.getDeviceProperties(device.id)
    record |= {"date": date.today().isoformat(), "command": command()}
    record["device"] = {"name": properties["name"].decode(), "arch": arch, "block": BLOCK}
    if "latencies" not in record or options.again:
        record["latencies"] = measure_latencies(cp)
        save(options.out, record, sort_keys=True)
    modules = {}
    for variant, text in variants.items():
        path, _ = assemble(text, arch, folder, variant)
        modules[variant] = cp.RawModule(path=str(path))
    for name, entry in analysis.items():
        if options.kernels and name not in options.kernels:
            continue
        if "speedup" in record["kernels"].get(name, {}) and not options.again:
            continue
        start = time.time()
        measured = measure_kernel(cp, name, modules)
        record["kernels"].setdefault(name, {}).update(analysis=entry, **measured)
        cp.get_default_memory_pool().free_all_blocks()
        save(options.out, record, sort_keys=True)
        print(f"{name}: {time.time() - start:.1f} s", flush=True)


def show(record: dict[str, Any]) -> None:
    columns = ["original", *VARIANTS]
    print(f"{'kernel':18}{'shuffles':>9}" + "".join(f"{c:>20}" for c in columns))
    for name, entry in record["kernels"].items():
        whole = entry["analysis"]
        row = f"{name:18}{whole['all']['shuffles']:>5}/{whole['loads']:<3}"
        for column in columns:
            speed = entry.get("speedup", {}).get(column)
            registers = entry.get("registers", entry.get("assembled", {})).get(column, "?")
            filled = entry.get("occupancy", {}).get(column)
            cell = (
                f"{registers} regs" if speed is None else f"{speed:.3f} {registers}r {filled:.2f}"
            )
            row += f"{cell:>20}"
        print(row)
    for name, cycles in record.get("latencies", {}).items():
        print(f"{name:24}{cycles:>10.2f} cycles")


if __name__ == "__main__":
    sys.exit(main())
