"""How fast a GPU is at most: micro-benchmarks that write the record from which bounds are made.

    python -m bench.machine.characterise_device --out gpu.json [--name h200]
    warploom explore matmul --size m=1024,n=1024,k=1024 --machine gpu.json

Chains of dependent operations give latencies, many independent ones rates; pointers that lead to
each other give the latency of memories, wide reads their rates. A bound needs rates that are never
exceeded and latencies that are never undercut: MARGIN is added to the former, taken off the latter.
Needs PyTorch (for arrays and events) and NVRTC or nvcc; runs for about ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from bench.harness import arguments, save

from warploom.machine.rates import Cost, Pressure, Rates, rates_record
from warploom.machine.record import H200
from warploom.runtime.gpu import Loaded, load_function

MARGIN = 0.05
STEPS = 4096
TEXT = r"""
#define CHAIN(NAME, STEP) extern "C" __global__ void NAME(float* out, float a, float b, int n) { \
  float x = a; long long begin = clock64(); \
  for (int i = 0; i < n; i += 16) { STEP STEP STEP STEP STEP STEP STEP STEP \
                                    STEP STEP STEP STEP STEP STEP STEP STEP } \
  long long end = clock64(); out[0] = (float)(end - begin) / n; out[1] = x; }
CHAIN(chain_fma, x = fmaf(x, a, b);)
CHAIN(chain_add, x = __fadd_rn(x, b);)
CHAIN(chain_mul, x = __fmul_rn(x, a);)
CHAIN(chain_div, x = __fdiv_rn(a, x);)
CHAIN(chain_sync, __syncthreads();)

extern "C" __global__ void chase(float* out, const int* next, int n) {
  int at = 0;
  for (int i = 0; i < n; ++i) at = __ldcg(&next[at]);
  long long begin = clock64();
  for (int i = 0; i < n; ++i) at = __ldcg(&next[at]);
  out[0] = (float)(clock64() - begin) / n; out[1] = at;
}
extern "C" __global__ void chase_l1(float* out, const int* next, int n) {
  int at = 0;
  for (int i = 0; i < n; ++i) at = __ldca(&next[at]);
  long long begin = clock64();
  for (int i = 0; i < n; ++i) at = __ldca(&next[at]);
  out[0] = (float)(clock64() - begin) / n; out[1] = at;
}
extern "C" __global__ void chase_shared(float* out, const int* next, int n) {
  __shared__ int own[1024];
  for (int i = 0; i < 1024; ++i) own[i] = (i + 33) % 1024;
  int at = next[0] % 1024;
  long long begin = clock64();
  for (int i = 0; i < n; ++i) at = own[at];
  out[0] = (float)(clock64() - begin) / n; out[1] = at;
}
extern "C" __global__ void __launch_bounds__(1024) fma_rate(float* out, float a, float b, int n) {
  float x[8];
  #pragma unroll
  for (int j = 0; j < 8; ++j) x[j] = a + j + threadIdx.x;
  for (int i = 0; i < n; ++i)
    #pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = fmaf(x[j], a, b);
  float s = 0;
  #pragma unroll
  for (int j = 0; j < 8; ++j) s += x[j];
  if (s == 12345.0f) out[0] = s;
}
extern "C" __global__ void __launch_bounds__(1024) shared_rate(float* out, int n) {
  __shared__ float4 own[1024];
  own[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);
  __syncthreads();
  float s = 0; int at = threadIdx.x;
  for (int i = 0; i < n; ++i) {
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      float4 v = own[(at + j * 32) & 1023];
      s += v.x + v.y + v.z + v.w;
    }
    at += 64;
  }
  if (s == 12345.0f) out[0] = s;
}
extern "C" __global__ void read_rate(float* out, const float4* from, int count, int rounds) {
  float s = 0;
  for (int r = 0; r < rounds; ++r)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
      float4 v = __ldcg(&from[i]);
      s += v.x + v.y + v.z + v.w;
    }
  if (s == 12345.0f) out[0] = s;
}
"""


class Device:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.out = torch.zeros(16, device="cuda")
        self.properties = torch.cuda.get_device_properties(0)
        self.functions: dict[str, Loaded] = {}

    def launch(self, name: str, grid: int, block: int, *arguments: Any) -> Callable[[], object]:
        if name not in self.functions:
            self.functions[name] = load_function(TEXT, name)
        given = [self.out.data_ptr(), *arguments]
        return self.functions[name].bind((grid, 1, 1), (block, 1, 1), given)

    def cycles(self, name: str, *arguments: Any, block: int = 1) -> float:
        """What a kernel counted itself, the least of three runs."""
        found = []
        for _ in range(3):
            self.launch(name, 1, block, *arguments)()
            self.torch.cuda.synchronize()
            found.append(float(self.out[0]))
        return min(found)

    def nanoseconds(self, launch: Callable[[], object], repeats: int = 5) -> float:
        """The least of some runs."""
        launch()
        times = []
        for _ in range(repeats):
            first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            launch()
            last.record()
            last.synchronize()
            times.append(float(first.elapsed_time(last)) * 1e6)
        return min(times)

    def ring(self, count: int, step: int) -> Any:
        """Indices that lead once round an array."""
        return (self.torch.arange(count, device="cuda", dtype=self.torch.int32) + step) % count


def measured(device: Device) -> dict[str, float]:
    torch, sms = device.torch, device.properties.multi_processor_count
    one, half = np.float32(1.0001), np.float32(0.5)
    steps = np.int32(STEPS)
    found = {
        f"{name}_cycles": device.cycles(f"chain_{name}", one, half, steps)
        for name in ("fma", "add", "mul", "div")
    }
    found["barrier_cycles"] = device.cycles("chain_sync", one, half, steps, block=256)
    near, far = device.ring(1 << 10, 33), device.ring(1 << 18, 8 * 33)
    found["shared_cycles"] = device.cycles("chase_shared", near.data_ptr(), np.int32(2048))
    found["l1_cycles"] = device.cycles("chase_l1", near.data_ptr(), np.int32(2048))
    found["l2_cycles"] = device.cycles("chase", far.data_ptr(), np.int32(2048))
    work = sms * 2 * 1024 * 8 * STEPS
    time = device.nanoseconds(device.launch("fma_rate", sms * 2, 1024, one, half, steps))
    found["fma_per_ns"] = work / time
    reads = sms * 2 * 1024 * 8 * 16 * STEPS
    time = device.nanoseconds(device.launch("shared_rate", sms * 2, 1024, steps))
    found["shared_bytes_per_ns"] = reads / time
    small = torch.zeros(1 << 22, device="cuda")  # 16 MiB
    large = torch.zeros(1 << 29, device="cuda")  # 2 GiB
    for name, array, rounds in (("l2", small, 64), ("dram", large, 1)):
        count = array.numel() // 4
        arguments = (array.data_ptr(), np.int32(count), np.int32(rounds))
        time = device.nanoseconds(device.launch("read_rate", sms * 4, 512, *arguments))
        found[f"{name}_bytes_per_ns"] = count * 16 * rounds / time
    return found


def rates(name: str, device: Device, found: dict[str, float]) -> Rates:
    """With margins; what is not measured is what the driver says, or as for an H200."""
    given, more, less = device.properties, 1 + MARGIN, 1 - MARGIN
    sms = given.multi_processor_count
    fma = found["fma_per_ns"] * more
    sectors = found["l2_bytes_per_ns"] * more / 32
    whole = Pressure(
        issue=fma, alu=fma, access=fma / 4, lines=sectors, l2_read=sectors, l2_store=sectors,
        shared=found["shared_bytes_per_ns"] * more, dram=found["dram_bytes_per_ns"] * more,
    )  # fmt: skip
    each = replace(whole.times(1 / sms), dram=whole.dram)
    clock = fma / (sms * 128)  # lanes of four schedulers
    costs = {
        op: Cost(found[f"{word}_cycles"] * less)
        for op, word in (("+", "add"), ("*", "mul"), ("fma", "fma"))
    }
    costs["/"] = Cost(found["div_cycles"] * less, 4, 4)
    return replace(
        H200.rates,
        name=name,
        clock=clock,
        processors=sms,
        processor_threads=given.max_threads_per_multi_processor,
        l2_bytes=getattr(given, "L2_cache_size", H200.rates.l2_bytes),
        device=whole,
        processor=replace(each, l2_read=2 * each.l2_read, lines=2 * each.lines),
        thread=Pressure(clock, clock, clock, clock, 2 * clock, 2 * clock, 16 * clock, whole.dram),
        load_latency=found["l1_cycles"] * less,
        shared_latency=found["shared_cycles"] * less,
        instructions=costs,
    )


def main() -> None:
    parser = arguments(__doc__, "gpu_rates.json")
    parser.add_argument("--name", default="gpu")
    given = parser.parse_args()
    import torch

    device = Device(torch)
    found = measured(device)
    for name, value in found.items():
        print(f"{name:24}{value:12.4g}", flush=True)
    record = rates_record(rates(given.name, device, found)) | {"measured": found}
    save(given.out, record)


if __name__ == "__main__":
    main()
