"""Device functions in a kernel of one's own: points are loaded, moved and stored by whole warps.

`warploom.device_function` writes headers; this kernel includes three of them. Each thread has one
point of three floats, which lie side by side in memory; yet the warp reads and writes memory in
order. The kernel is compiled to PTX and run on the emulator: no GPU is needed.
"""

from __future__ import annotations

import numpy as np

import warploom
from warploom.ptx import load as load_ptx
from warploom.runtime.compile import can_compile, compile_cuda

KERNEL = """
extern "C" __global__ void walk(const float* points, float* moved, float* paths, int n) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
  float p[3];
  load_structures_3(points, n, first, p);   // lane i has point first + i; beyond n it has zeros
  float length[1] = {p[0] * p[0] + p[1] * p[1] + p[2] * p[2]};
  inclusive_scan_sum_f32_1(length);         // of all points of the warp up to this one
  const int i = first + threadIdx.x % 32;
  if (i < n) paths[i] = length[0];
  for (int j = 0; j < 3; ++j) p[j] += 1.0f;
  store_structures_3(moved, n, first, p);   // nothing is stored beyond n
}
"""


def main() -> None:
    headers = [
        warploom.device_function("load-structures", fields=3),
        warploom.device_function("store-structures", fields=3),
        warploom.device_function("inclusive-scan"),
    ]
    text = "".join(header.text("cuda") for header in headers) + KERNEL
    print("\n".join(line for line in text.splitlines() if line.startswith("// ")))
    if not can_compile():
        print("no CUDA compiler here: the kernel was written, not run")
        return
    kernel = load_ptx(compile_cuda(text, contract=False).text).kernel("walk")
    n = 100
    points = np.random.default_rng(0).integers(-9, 9, (n, 3)).astype(np.float32)
    moved, paths = np.full((n, 3), np.nan, np.float32), np.full(n, np.nan, np.float32)
    kernel.launch((1, 1, 1), (128, 1, 1), [points, moved, paths, np.int32(n)])
    assert (moved == points + 1).all()
    lengths = (points * points).sum(axis=1)
    wanted = np.concatenate([np.cumsum(lengths[k : k + 32]) for k in range(0, n, 32)])
    assert (paths == wanted).all()
    print(f"{n} points moved, right: three warps, and a part of one")


if __name__ == "__main__":
    main()
