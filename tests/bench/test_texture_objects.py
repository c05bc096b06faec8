"""What CuPy is asked for to make textures and surfaces, on a machine without it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench.ptx import texture_kernels
from bench.ptx.launches import on_emulator
from bench.ptx.texture_objects import LINEAR, image_on_device

from warploom import ptx


class FakeArray:
    """A CUDA array; copies must have the shape that CuPy wants."""

    def __init__(self, form: Any, width: int, height: int, depth: int, flags: int) -> None:
        self.asked = (form, width, height, depth, flags)
        channels = sum(bits > 0 for bits in form[:4])
        sides = [side for side in (depth, height) if side]
        self.data = np.zeros((*sides, channels * width), np.uint8)

    def copy_from(self, rows: np.ndarray) -> None:
        assert rows.shape == self.data.shape
        self.data = rows.copy()

    def copy_to(self, rows: np.ndarray) -> None:
        rows[:] = self.data + 1  # what a kernel did


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimpleNamespace(
        cudaChannelFormatKindUnsigned=1, cudaChannelFormatKindSigned=0,
        cudaChannelFormatKindFloat=2, cudaResourceTypeArray=0, cudaResourceTypeLinear=2,
        deviceSynchronize=lambda: None,
    )  # fmt: skip
    texture = SimpleNamespace(
        ChannelFormatDescriptor=lambda *bits: bits, CUDAarray=FakeArray,
        ResourceDescriptor=lambda kind, **given: (kind, given),
        TextureDescriptor=lambda modes, how, read, **given: (
            modes, how, read, given["normalizedCoords"]
        ),
        TextureObject=lambda resource, how: ("texture", resource, how),
        SurfaceObject=lambda resource: ("surface", resource),
    )  # fmt: skip
    module: Any = ModuleType("cupy")
    module.cuda = SimpleNamespace(runtime=runtime, texture=texture)
    module.asarray = np.asarray
    monkeypatch.setitem(sys.modules, "cupy", module)


@pytest.mark.usefixtures("cupy")
def test_textures() -> None:
    array = np.zeros((5, 7, 4), np.uint8)
    made = ptx.texture(
        array, "linear", "mirror", normalized=True, read="normalized", channels=4
    )  # fmt: skip
    (kind, (_, given), how), back = image_on_device(made, {"tld4"})
    assert (kind, how) == ("texture", ([2, 2, 1], 1, 1, 1))
    assert given["cuArr"].asked == ((8, 8, 8, 8, 1), 7, 5, 0, 8)
    assert back() is array
    (_, (_, given), _), _ = image_on_device(ptx.texture(array, layered=True), {"tex"})
    assert given["cuArr"].asked == ((8, 0, 0, 0, 1), 4, 7, 5, 1)
    line = ptx.texture(np.zeros((9, 2), np.float16), channels=2)
    (_, (kind, given), how), _ = image_on_device(line, {LINEAR})
    assert (kind, how) == (2, ([1, 1, 1], 0, 0, 0))
    assert (given["sizeInBytes"], given["chDesc"]) == (36, (16, 16, 0, 0, 2))


@pytest.mark.usefixtures("cupy")
def test_a_surface_comes_back() -> None:
    array = np.arange(40, dtype=np.int32).reshape(4, 5, 2)
    (kind, (_, given)), back = image_on_device(ptx.surface(array, channels=2), {"sust"})
    assert (kind, given["cuArr"].asked) == ("surface", ((32, 32, 0, 0, 0), 5, 4, 0, 2))
    np.testing.assert_array_equal(back(), array + 1)


def test_the_kernels_for_a_gpu_run_here() -> None:
    """Each stores what it finds, and no two threads of one write the same place."""
    jobs = texture_kernels.jobs()
    assert len(jobs) == len({job.name for job in jobs}) >= 30
    for job in jobs[::3]:
        image, _, out = on_emulator(job, races=True)[2]
        found = image.array.view(np.uint8) if "store" in job.name else out != 0xDEAD
        assert found.any(), job.name
