"""The fixture `gpu` in somebody's own tests: findings are failures, in lines of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from tests.tools import require

from warploom.pytest_plugin import Gpu

THEIRS = '''
import numpy as np

KERNELS = """
extern "C" __global__ void sums(const int* x, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  FIRST
  for (int step = 32; step > 0; step /= 2) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
"""

def sums(gpu, first, blocks=4):
    x, out = np.arange(256, dtype=np.int32), np.zeros(4, np.int32)
    gpu.launch(KERNELS.replace("FIRST", first), (blocks, 64), x, out)
    return out.tolist(), x.reshape(4, 64).sum(axis=1).tolist()

def test_right(gpu):
    found, wanted = sums(gpu, "__syncthreads();")
    assert found == wanted
    assert gpu.reports[0].divergent_branches > 0

def test_racy(gpu):
    sums(gpu, "")

def test_outside(gpu):
    sums(gpu, "__syncthreads();", blocks=5)

def test_endless(gpu):
    gpu.seconds = 0.2
    sums(gpu, "while (((volatile int*)s)[threadIdx.x] >= 0);")
'''


def test_findings_fail_tests(tmp_path: Path) -> None:
    require("ptx")
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "warploom.pytest_plugin", "-p", "no:cacheprovider",
         "-q", "--rootdir", str(tmp_path), str(tmp_path)],
        # By name, and not by its entry point as well: an installed package has one.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "3 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "data race" in ran.stdout
    assert "if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];" in ran.stdout
    assert "out-of-bounds access" in ran.stdout
    assert "did not end in the time it was given" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "During handling" not in ran.stdout


def test_a_report_of_each_launch() -> None:
    gpu = Gpu(arch="sm_80")
    x = np.zeros(32, np.float32)
    report = gpu.launch("examples/ptx/saxpy.ptx", (1, 32), x, x.copy(), np.float32(2), 32)
    assert gpu.reports == [report]
    assert report.sectors == 12
