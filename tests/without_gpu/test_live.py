"""Live compilers of others: the same launches through Triton, Numba and CuPy, if they are here.

`make live` makes an environment with them, and runs this file in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from bench.common.without_gpu.cases import NUMBA, TRITON, Case
from tests.tools import require

import warploom
from warploom.errors import DeviceError, KernelError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def kernels(package: str, name: str) -> Any:
    pytest.importorskip(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(f"tests.without_gpu.{package}_kernels").__dict__[name]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("case", TRITON, ids=lambda case: case.name)
def test_triton(case: Case, arch: str) -> None:
    kernel = kernels("triton", case.name)
    if arch == "sm_100" and case.name in ("matmul", "attention"):
        pytest.skip("needs tcgen05, which is not emulated")
    for dtype in case.dtypes:
        for size in case.sizes:
            args, result, wanted = case.make(np.random.default_rng(size), dtype, size)
            emulated = warploom.emulate(kernel, arch=arch)
            emulated[case.grid(args)](**args, **case.settings)
            case.close(args[result], wanted, dtype)


def test_a_grid_that_is_a_function_and_settings_by_name() -> None:
    add = kernels("triton", "add")
    x = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(x)
    grid = lambda settings: (-(-settings["n"] // settings["BLOCK"]),)  # noqa: E731 - as people write
    warploom.emulate(add)[grid](x, x, out, 1000, BLOCK=128, num_warps=2)
    np.testing.assert_array_equal(out, 2 * x)
    warploom.emulate(add)[(1,)](x[1:], x[1:], out, 1, BLOCK=128)
    assert out[0] == 2


def test_what_is_found_is_at_its_line_of_triton() -> None:
    add = kernels("triton", "add")
    x = np.zeros(100, np.float32)
    with pytest.raises(KernelError) as caught:
        warploom.emulate(add)[(1,)](x, x, np.zeros(100, np.float32), 101, BLOCK=128)
    assert "triton_kernels.py" in str(caught.value)
    assert "tl.load(x + i, mask=inside)" in str(caught.value)


def test_refused_by_triton() -> None:
    add = kernels("triton", "add")
    with pytest.raises(DeviceError, match="missing"):
        warploom.emulate(add)[(1,)](np.zeros(4))
    triton = pytest.importorskip("triton")
    configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
    tuned = triton.autotune(configs=configs, key=["n"])(add)
    x = np.zeros(4, np.float32)
    with pytest.raises(DeviceError, match="would time the fastest"):
        warploom.emulate(tuned)[(1,)](x, x, x, 4)


@pytest.mark.parametrize("config", [1, {"BLOCK": 128}])
def test_a_configuration_of_autotune(config: Any) -> None:
    triton, add = pytest.importorskip("triton"), kernels("triton", "add")
    configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
    tuned = triton.autotune(configs=configs, key=["n"])(add)
    x = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(x)
    grid = lambda settings: (-(-1000 // settings["BLOCK"]),)  # noqa: E731 - as people write
    report = warploom.emulate(tuned)[grid](x, x, out, 1000, config=config)
    assert report.grid == (8, 1, 1)
    np.testing.assert_array_equal(out, 2 * x)


SCRIPT = """
import numpy as np, triton
import warploom.without_gpu
from tests.without_gpu.triton_kernels import add
configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
add[(8,)](x, x, out, 1000, BLOCK=128)
assert (out == 2 * x).all()
tuned = triton.autotune(configs=configs, key=["n"])(add)
report = tuned[lambda settings: (triton.cdiv(1000, settings["BLOCK"]),)](x, out, out, 1000)
assert report.grid == (16, 1, 1)
assert (out == 3 * x).all()
print(triton.runtime.driver.active.get_current_target().arch)
"""


def test_a_script_under_the_switch() -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "WARPLOOM_EMULATE": "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "90\n", done.stderr


@pytest.mark.parametrize("name", NUMBA)
def test_numba(name: str) -> None:
    pytest.importorskip("numba.cuda")
    case = NUMBA[name]
    kernel = kernels("numba", "KERNELS")[name][0]
    args, result, wanted = case.make(np.random.default_rng(5), case.dtype)
    warploom.emulate(kernel)[case.shape](*args)
    np.testing.assert_allclose(result, wanted, rtol=case.tolerance)


CUPY = r"""
template <typename T> __device__ T twice(T x) { return x + x; }
extern "C" __global__ void doubled(const TYPE* x, TYPE* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = twice(x[i]);
}
extern "C" __global__ void neighbours(const TYPE* x, TYPE* out, int n) {
  extern __shared__ char raw[];
  TYPE* s = (TYPE*)raw;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  TYPE left = threadIdx.x > 0 ? s[threadIdx.x - 1] : (i > 0 && i <= n ? x[i - 1] : 0);
  if (i < n) out[i] = s[threadIdx.x] + left;
}
"""


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_cupy(dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    require("ptx")
    x = np.random.default_rng(1).integers(-99, 99, 1000).astype(dtype)
    option = (f"-DTYPE={'float' if dtype == 'float32' else 'long long'}",)
    out = np.zeros_like(x)
    doubled = cupy.RawKernel(CUPY, "doubled", options=option)
    warploom.emulate(doubled)((3,), (128,), (x, out, np.int32(1000)))
    np.testing.assert_array_equal(out, 2 * x)
    neighbours = cupy.RawKernel(CUPY, "neighbours", options=option)
    wanted = x + np.append(0, x[:-1]).astype(dtype)
    warploom.emulate(neighbours)((8,), (128,), (x, out, 1000), shared_mem=1024)
    np.testing.assert_array_equal(out, wanted)
