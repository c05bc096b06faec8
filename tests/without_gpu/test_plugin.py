"""The fixture `gpu` in somebody's own tests: findings are failures, in lines of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from tests.tools import require

from warploom.without_gpu.fixture import Gpu

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
    sums(gpu, "while (((volatile int*)s)[threadIdx.x]++ >= 0);")
'''
BAD_INPUT = '''
import numpy as np
import pytest

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) { ret; }
"""
X = np.zeros(32, np.float32)

@pytest.mark.parametrize("launch", [
    lambda gpu: gpu.launch(PTX, (1, 32), X, name="absent"),
    lambda gpu: gpu.launch(PTX, (1, 32)),
    lambda gpu: gpu.launch(PTX, (1, 32), X, 1),
    lambda gpu: gpu.launch(PTX, (1, 32), "word"),
    lambda gpu: gpu.launch(PTX, (1, 3200), X),
    lambda gpu: gpu.launch(PTX, "one", X),
    lambda gpu: gpu.launch("absent.ptx", (1, 32), X),
    lambda gpu: gpu.launch(PTX.replace("ret", "rat"), (1, 32), X),
    lambda gpu: gpu.launch(3, (1, 32), X),
], ids=range(9))
def test_bad(gpu, launch):
    launch(gpu)

@pytest.mark.parametrize("field, value", [("seconds", "x"), ("seconds", -1), ("arch", 90)])
def test_bad_field(gpu, field, value):
    setattr(gpu, field, value)
    gpu.launch(PTX, (1, 32), X)
'''


def ran(folder: Path, text: str) -> str:
    """What pytest says of somebody's tests."""
    (folder / "test_theirs.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "warploom.pytest_plugin", "-p", "no:cacheprovider",
         "-q", "--rootdir", str(folder), str(folder)],
        # By name, and not by its entry point as well: an installed package has one.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_findings_fail_tests(tmp_path: Path) -> None:
    require("ptx")
    said = ran(tmp_path, THEIRS)
    assert "3 failed, 1 passed" in said, said
    assert "data race" in said
    assert "if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];" in said
    assert "out-of-bounds access" in said
    assert "did not end in the time it was given" in said
    assert "Traceback" not in said
    assert "During handling" not in said


def test_bad_input_is_one_failure_without_our_frames(tmp_path: Path) -> None:
    said = ran(tmp_path, BAD_INPUT)
    assert "12 failed" in said, said
    assert "a launch of 'x' seconds" in said
    assert "no kernel 'absent' in this module" in said
    assert "is no kernel that can be emulated" in said
    for ours in ("Traceback", "During handling", "pytest_plugin.py", "warploom/", "def launch"):
        assert ours not in said, said


def test_a_report_of_each_launch() -> None:
    gpu = Gpu(arch="sm_80")
    x = np.zeros(32, np.float32)
    report = gpu.launch("examples/ptx/saxpy.ptx", (1, 32), x, x.copy(), np.float32(2), 32)
    assert gpu.reports == [report]
    assert report.sectors == 12


def test_large_launches_are_compiled_whatever_is_asked_for() -> None:
    n = 1 << 16
    for races, asked in ((False, False), (False, True), (True, True)):
        gpu = Gpu(races=races, counters=asked)
        x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        report = gpu.launch("examples/ptx/saxpy.ptx", (n // 256, 256), x, y, np.float32(2), n)
        assert report.engine == "c"
        assert report.cores == 1 or not (races or asked)
        assert hasattr(report, "sectors") == asked
        assert np.array_equal(y, 2 * x + 1)
