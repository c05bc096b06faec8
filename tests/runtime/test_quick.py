"""Kernels timed in quick succession, on a driver that lets the simulator run them."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.running import implementations
from tests.runtime.fakes import Cuda

from warploom.emit.spell import function_name
from warploom.errors import DeviceError
from warploom.index.ir import Const
from warploom.kernel.ir import Kernel
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.kernels import Cut, axpy, matvec
from warploom.loopnest.lower import lower
from warploom.loopnest.parted import parted
from warploom.loopnest.space import NestSpace
from warploom.pipeline import raced
from warploom.pipeline.drawn import Made
from warploom.runtime import quick
from warploom.runtime.driver import Driver

PROGRAM = axpy(24, tiles=((4,),))


class Tensor(np.ndarray):
    """What QuickGpu asks of a tensor, in memory of the host."""

    def clone(self) -> Any:
        return self.copy()

    def data_ptr(self) -> int:
        return int(self.ctypes.data)

    def cpu(self) -> Any:
        return SimpleNamespace(numpy=lambda: np.asarray(self))


class Clock:
    def start(self) -> None:
        self.since = time.perf_counter()

    def stop(self) -> float:
        return time.perf_counter() - self.since


class Graph:
    """Launches are noted while it is captured; this driver does them at once, too."""

    log: list[str] = []  # noqa: RUF012

    def capture_begin(self) -> None:
        self.log.append("begin")

    def capture_end(self) -> None:
        self.log.append("end")

    def replay(self) -> None:
        self.log.append("replay")


def torch() -> Any:
    cuda = SimpleNamespace(
        CUDAGraph=Graph,
        Stream=lambda: SimpleNamespace(cuda_stream=7),
        stream=lambda _: nullcontext(),
        synchronize=lambda: None,
        current_stream=lambda: SimpleNamespace(cuda_stream=0),
    )
    return SimpleNamespace(cuda=cuda)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    cuda = Cuda()
    made = Driver(cuda)
    monkeypatch.setattr(quick, "open_driver", lambda: made)
    monkeypatch.setattr(quick, "gpu_library", lambda: ("torch", torch()))
    monkeypatch.setattr(quick, "clock", Clock)
    monkeypatch.setattr(quick, "on_gpu", lambda value, _gpu: value.view(Tensor))
    monkeypatch.setattr(quick, "LAUNCHES", 2)
    return cuda


def made_of(kernel: Kernel, cuda: Cuda) -> Made:
    name = function_name(kernel, "cuda")
    cuda.kernels[name] = kernel
    return Made(b"", 1.0, (launched(kernel, name),), "key")


def launched(kernel: Kernel, name: str) -> quick.Launched:
    grid = [each.value for each in kernel.grid if isinstance(each, Const)]
    names = tuple(each.name for each in kernel.params)
    return quick.Launched(name, (grid[0], grid[1], grid[2]), kernel.block, b"code", names)


def test_a_kernel_is_checked_looked_at_and_timed_in_a_graph(driver: Cuda) -> None:
    rig = raced.quick_gpu(PROGRAM)
    assert rig.arch == "sm_90"
    some = [made_of(lower(each), driver) for each in implementations(NestSpace(PROGRAM), 2)]
    Graph.log.clear()
    taken, is_sure = rig.time(some[0], float("inf"))
    assert is_sure
    assert taken >= 0
    assert Graph.log[:3] == ["begin", "end", "replay"]
    assert len(driver.launched) >= 3  # the check, a first look, and what is captured
    Graph.log.clear()
    slow, is_sure = rig.time(some[1], -1e9)  # nothing is as fast as that
    assert not is_sure
    assert slow > 0
    assert not Graph.log
    assert len(rig.again(some, 3)) == 2


def test_a_wrong_kernel_is_an_error(driver: Cuda) -> None:
    rig = raced.quick_gpu(PROGRAM)
    assert isinstance(rig, quick.QuickGpu)
    (right,) = implementations(NestSpace(PROGRAM), 1)
    made = made_of(lower(right), driver)
    rig.time(made, float("inf"))
    where, wanted = rig.wanted["z"]
    rig._first["z"] = rig._first["z"] + np.float32(1)  # all others are compared with this
    with pytest.raises(DeviceError, match="computes a wrong z"):
        rig.time(made, float("inf"))
    rig._first.clear()
    rig.wanted = {"z": (where, wanted + 1)}
    with pytest.raises(DeviceError, match="computes a wrong z"):
        rig.time(made, float("inf"))


def test_a_failure_of_the_library_is_an_error_of_ours(
    driver: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = raced.quick_gpu(PROGRAM)
    (right,) = implementations(NestSpace(PROGRAM), 1)
    made = made_of(lower(right), driver)

    def fails(*_: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    monkeypatch.setattr(quick.QuickGpu, "_looked_at", partial(fails))
    with pytest.raises(DeviceError, match="illegal memory access"):
        rig.time(made, float("inf"))


def test_two_kernels_are_timed_as_one(driver: Cuda) -> None:
    """What the first leaves for the second is in memory that is theirs; results are checked."""
    program = matvec(6, 16, cut=Cut(tail=True))
    made = parted(Computation.of(program), 4)
    both = [program_of(each, published=False) for each in (made.parts, made.after)]
    kernels = [lower(next(iter(implementations(NestSpace(each), 1)))) for each in both]
    for each in kernels:
        driver.kernels[function_name(each, "cuda")] = each
    launches = tuple(launched(each, function_name(each, "cuda")) for each in kernels)
    between = ((made.between.name, "float32", made.between.elements),)
    rig = raced.quick_gpu(program)
    whole = Made(b"", 1.0, launches, "key", between)
    assert rig.time(whole, float("inf"))[1]
    names = [each.function for each in driver.launched]
    assert names == ["matvec_parts", "matvec_after"] * (len(names) // 2)
    with pytest.raises(DeviceError, match="computes a wrong y"):
        rig.time(replace(whole, launches=launches[:1]), float("inf"))
