"""`warploom.emulate`: CUDA text, CuPy's kernels and tensors, as far as it goes without them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.tools import require

import warploom
from warploom.errors import DeadlockError, DeviceError, KernelError, UnsupportedError

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void reverse(int* x) {
  extern __shared__ int s[];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void forever(volatile int* x) { while (*x == 0); }
"""
PTX = Path("examples/ptx/saxpy.ptx")


@pytest.fixture
def cuda() -> str:
    """CUDA text, where a compiler for it is."""
    require("ptx")
    return SAXPY


def data(n: int = 1000) -> tuple[Any, Any, Any]:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    return x, y, 2 * x + y


def test_text(cuda: str) -> None:
    x, y, wanted = data()
    report = warploom.emulate(cuda, "saxpy")[4, 256](np.float32(2), x, y, 1000)
    np.testing.assert_array_equal(y, wanted)
    assert report.races == []


def test_what_is_found_is_at_its_line_of_the_text(cuda: str) -> None:
    """The text is in no file, and is shown all the same."""
    x, y, _ = data()
    with pytest.raises(KernelError) as caught:
        warploom.emulate(cuda, "saxpy")[4, 256](np.float32(2), x, y, 1001)
    assert "if (i < n) y[i] = a * x[i] + y[i];" in str(caught.value)
    assert "out-of-bounds" in str(caught.value)
    reverse = warploom.emulate(cuda, "reverse")
    with pytest.raises(KernelError) as caught:
        reverse[1, 64, 256](np.arange(64, dtype=np.int32))
    assert "data race" in str(caught.value)
    assert "s[blockDim.x - 1 - threadIdx.x]" in str(caught.value)
    alone = np.arange(32, dtype=np.int32)
    warploom.emulate(cuda, "reverse", races=False)[1, 32, 128](alone)
    assert alone.tolist() == list(range(31, -1, -1))


def test_a_launch_that_never_ends(cuda: str) -> None:
    with pytest.raises(DeadlockError, match="31 others wait at <cuda>:"):
        warploom.emulate(cuda, "forever")[1, 32](np.zeros(1, np.int32))


def test_a_kernel_of_cupy(cuda: str) -> None:
    raw = type("RawKernel", (), {"__module__": "cupy._core.raw"})()
    raw.code, raw.name, raw.options = cuda, "saxpy", ("-DUNUSED=1", "--gpu-architecture=sm_70")
    x, y, wanted = data()
    warploom.emulate(raw)((4,), (256,), (np.float32(2), x, y, np.int32(1000)))
    np.testing.assert_array_equal(y, wanted)


def test_a_file_of_ptx() -> None:
    x, y, wanted = data()
    for given in (PTX, str(PTX), PTX.read_text()):
        y[:] = 1
        warploom.emulate(given)[4, 256](x, y, np.float32(2), 1000)
        np.testing.assert_array_equal(y, wanted)


def test_views_that_are_not_contiguous_are_the_memory_they_are() -> None:
    """Every other element, as a kernel with strides would see it; nothing outside is there."""
    whole = np.zeros(2000, np.float32)
    whole[::2] = np.arange(1000)
    text = PTX.read_text()
    y = np.ones(1999, np.float32)
    warploom.emulate(text)[8, 256](whole[::2], y, np.float32(2), 1999)
    np.testing.assert_array_equal(y, 2 * whole[:1999] + 1)
    with pytest.raises(KernelError, match="out-of-bounds"):
        warploom.emulate(text)[8, 256](whole[::2], np.ones(2000, np.float32), np.float32(2), 2000)
    with pytest.raises(UnsupportedError, match="backwards"):
        warploom.emulate(text)[1, 32](whole[::-1], y, np.float32(2), 10)


class Tensor:
    """As much of a CPU tensor of PyTorch as is asked of one."""

    def __init__(self, array: Any, device: str = "cpu") -> None:
        self.array, self.device, self.is_cuda = array, device, device != "cpu"
        self.dtype = f"torch.{array.dtype.name}"

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def detach(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array


def test_tensors() -> None:
    x, y, wanted = data()
    emulated = warploom.emulate(PTX)
    emulated[4, 256](Tensor(x), Tensor(y), np.float32(2), 1000)
    np.testing.assert_array_equal(y, wanted)
    with pytest.raises(DeviceError, match="lies on a GPU"):
        emulated[4, 256](Tensor(x, "cuda:0"), Tensor(y), np.float32(2), 1000)
    with pytest.raises(DeviceError, match="lies on a GPU"):
        emulated[4, 256](SimpleNamespace(__cuda_array_interface__={}), y, np.float32(2), 1000)


@pytest.mark.parametrize(
    ("kernel", "launch", "args", "message"),
    [
        (print, None, (), "no kernel that can be emulated"),
        (PTX, 4, (), r"\[grid, block\]"),
        (PTX, (4, 256, 0, 0), (), r"\[grid, block\]"),
        (PTX, (4, 256), (), "4 arguments"),
        (PTX, (4, 2560), (np.zeros(4), np.zeros(4), 1.0, 4), "threads in a block"),
        ("none.ptx", (1, 1), (), "cannot read"),
        (PTX, ("a", "b"), (np.zeros(4), np.zeros(4), 1.0, 4), "positive sizes"),
        (PTX, (None, 1), (np.zeros(4), np.zeros(4), 1.0, 4), "positive sizes"),
        (PTX, (1, 32, "x"), (np.zeros(4), np.zeros(4), 1.0, 4), "no number of bytes"),
        (PTX, (1, 32), (np.array([object()]), np.zeros(4), 1.0, 4), "Python objects"),
    ],
)
def test_refused(kernel: Any, launch: Any, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(warploom.WarploomError, match=message):
        warploom.emulate(kernel)[launch](*args)


def test_names_are_no_arguments_of_ptx() -> None:
    with pytest.raises(DeviceError, match="'BLOCK' is no argument"):
        warploom.emulate(PTX)[1, 32](BLOCK=3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"races": "x"}, "races='x'"),
        ({"benign": 1}, "benign=1"),
        ({"counters": "no"}, "counters='no'"),
        ({"name": 5}, "5 is no name of a kernel"),
    ],
)
def test_options_that_mean_nothing(given: dict[str, Any], message: str) -> None:
    """What is merely true was taken for True."""
    with pytest.raises(DeviceError, match=message):
        warploom.emulate(PTX, **given)


def test_arguments_are_a_tuple() -> None:
    with pytest.raises(DeviceError, match="arguments are a tuple, not a int"):
        warploom.emulate(PTX)((1,), (32,), 5)


def test_what_does_not_compile_is_said_of_its_file(cuda: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(cuda.replace("a * x[i]", "b * x[i]"))
    with pytest.raises(DeviceError, match=r"mine\.cu\(4\): error: identifier \"b\"") as caught:
        warploom.emulate(file, "saxpy")
    assert "kernel.cu" not in caught.value.message


def test_headers_beside_a_file_are_found(cuda: str, tmp_path: Path) -> None:
    (tmp_path / "factor.cuh").write_text("#define FACTOR 3\n")
    file = tmp_path / "mine.cu"
    file.write_text('#include "factor.cuh"\n' + cuda.replace("a * x[i]", "FACTOR * x[i]"))
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    warploom.emulate(file, "saxpy")[1, 32](np.float32(1), x, y, 32)
    assert (y == 3).all()


def test_threads_that_have_ended_count_as_arrived_at_a_barrier() -> None:
    """As on the hardware; README and docs/without-gpu.md say so."""
    body = ".reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x; setp.ge.u32 %p, %r, 32;"
    text = f".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() {{ {body} "
    report = warploom.emulate(text + "@%p exit; bar.sync 0; ret; }", races=True)[1, 64]()
    assert not report.races


def test_a_report_prints_what_was_counted_and_nothing_else() -> None:
    x, y, _ = data()
    plain = warploom.emulate(PTX, races=False)[4, 256](x, y, 2.0, 1000)
    assert plain.kernel in str(plain).splitlines()[0]
    assert "4 blocks of 256 threads" in str(plain)
    assert "'numpy'" in str(plain)
    assert "races were not looked for" in str(plain)
    assert "sectors" not in str(plain)
    assert f"{plain.thread_instructions} thread instructions" in str(plain)
    counted = warploom.emulate(PTX, counters=True)[4, 256](x, y, 2.0, 1000)
    assert "no data races" in str(counted)
    assert f"{counted.sectors} sectors of global memory" in str(counted)
    assert counted.sectors > 300
    assert repr(counted) == f"<{counted}>"
    assert len(str(counted).splitlines()) == 3
    assert counted._repr_html_().startswith(f"<pre>{plain.kernel}: 4 blocks")


@pytest.mark.parametrize("call", [(), (np.zeros(4),), ((1,), (32,)), ((1,), (32,), (), 0)])
def test_a_call_without_a_launch_configuration_names_the_form(call: tuple[Any, ...]) -> None:
    with pytest.raises(DeviceError, match="no launch configuration") as caught:
        warploom.emulate(PTX)(*call)
    assert "write kernel[grid, block](arguments…)" in caught.value.advice
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__


def test_a_list_is_no_memory() -> None:
    with pytest.raises(DeviceError, match="list cannot be passed") as caught:
        warploom.emulate(PTX)[1, 32]([1.0], np.zeros(4), 1.0, 4)
    assert "np.asarray" in caught.value.advice
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__


def test_one_pair_of_lines_is_one_finding(cuda: str) -> None:
    """Four stores of one line race with four of another: four pairs of instructions."""
    text = """extern "C" __global__ void both(float* x) {
  if (threadIdx.x == 0) { x[0] = 1; x[1] = 1; x[2] = 1; x[3] = 1; }
  if (threadIdx.x == 32) { x[0] = 2; x[1] = 2; x[2] = 2; x[3] = 2; }
}"""
    with pytest.raises(KernelError) as caught:
        warploom.emulate(text)[1, 64](np.zeros(4, np.float32))
    assert str(caught.value).count("data race") == 1
    assert "(4 pairs of instructions of these lines)" in caught.value.message
