"""Element types that the catalogue and own sketches have: small and large, whole and floating."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tools import require

import warploom
from warploom.catalogue import entries
from warploom.catalogue.entry import Parameter
from warploom.catalogue.verify import verify
from warploom.errors import CheckError, DeviceError
from warploom.kernel.dtype import DType, bf16, coded, decoded
from warploom.pipeline.entry import entry_of

ROOT = Path(__file__).parents[2]
EVERY = [each.value for each in DType]
MOVING: tuple[tuple[str, dict[str, Parameter]], ...] = (
    ("aos-to-soa", {"fields": 3}),
    ("soa-to-aos", {"fields": 6, "strategy": "shared"}),
    ("transposition", {"m": 12, "n": 8}),
)
ADDING: tuple[tuple[str, dict[str, Parameter]], ...] = (
    ("aos-sum", {"fields": 5}),
    ("convolution-1d", {"taps": 5}),
    ("convolution-2d", {"taps": 3}),
)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize(("name", "given"), [MOVING[0], MOVING[2], ADDING[0]])
def test_every_type_on_the_simulator(name: str, given: dict[str, Parameter], dtype: str) -> None:
    entry, settings = entries()[name], {**given, "dtype": dtype}
    sizes = entry.sizes(**entry.settings(settings))[5:15:6]
    assert [each for each in verify(entry, settings, "simulator", sizes) if each.wrong] == []


@pytest.mark.sampled(2, each="device")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize(("name", "given"), [MOVING[1], ADDING[0], ADDING[1]])
@pytest.mark.parametrize("device", ["c", "ptx"])
def test_codes_on_every_device(
    name: str, given: dict[str, Parameter], dtype: str, device: str
) -> None:
    require(device)
    entry, settings = entries()[name], {**given, "dtype": dtype}
    sizes = entry.sizes(**entry.settings(settings))[3::9]
    found = verify(entry, settings, device, sizes)  # type: ignore[arg-type]
    assert [each for each in found if each.wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize(("name", "given"), [*MOVING, *ADDING])
def test_every_type_everywhere(name: str, given: dict[str, Parameter], dtype: str) -> None:
    entry, settings = entries()[name], {**given, "dtype": dtype}
    for device in ("c", "ptx", "opencl"):
        require(device)
        sizes = entry.sizes(**entry.settings(settings))[2::7]
        found = verify(entry, settings, device, sizes)
        assert [each for each in found if each.wrong] == []


def test_arrays_keep_shape_and_type() -> None:
    x = np.arange(7 * 96, dtype=np.float16).reshape(7, 16, 6)
    y = warploom.load("transposition", m=16, n=6)(x)
    assert (y.shape, y.dtype) == ((7, 6, 16), np.float16)
    assert (y == x.transpose(0, 2, 1)).all()
    sums = warploom.load("aos-sum", fields=6)(x)
    assert (sums == x.astype(np.float32).sum(axis=2).astype(np.float16)).all()
    bits = coded(x.astype(np.float32), bf16)
    moved = warploom.load("transposition", m=16, n=6, dtype="bfloat16")(bits)
    assert (moved == bits.transpose(0, 2, 1)).all()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16"])
def test_the_type_is_that_of_the_arrays(dtype: str) -> None:
    x = np.arange(96).astype(dtype).reshape(8, 12)
    y = warploom.load("aos-to-soa", fields=12)(x)
    assert y.dtype == dtype
    assert (y == x.T).all()
    with pytest.raises(DeviceError, match="the kernel takes float32"):
        warploom.load("aos-to-soa", fields=12, dtype="float32")(x)


@pytest.mark.slow
def test_images_come_in_batches() -> None:
    entry = entries()["convolution-2d"]
    settings: dict[str, Parameter] = {"images": 1, "rows": 4}
    sizes = entry.sizes(**entry.settings(settings))[4:20:7]
    assert {size["images"] for size in sizes} > {1}
    for device in ("simulator", "c"):
        require(device)
        found = verify(entry, settings, device, sizes)
        assert [each for each in found if each.wrong] == []
    images = np.random.default_rng(0).integers(0, 9, (2, 3, 7, 33)).astype(np.float32)
    weights = np.arange(9, dtype=np.float32)
    convolve = warploom.load("convolution-2d", rows=4)
    many = convolve(images, weights)
    assert many.shape == images.shape
    assert (many[1, 2] == convolve(images[1, 2].copy(), weights)).all()


def test_complex_numbers_are_pairs() -> None:
    x = (np.arange(40) + 1j * np.arange(40)[::-1]).astype(np.complex64)
    planes = warploom.load("aos-to-soa", fields=2)(x)
    assert (planes == np.stack([x.real, x.imag])).all()
    wide = x.astype(np.complex128).reshape(8, 5)
    planes = warploom.load("aos-to-soa", fields=2)(wide)
    assert planes.shape == (2, 8, 5)
    assert (planes[1] == wide.imag).all()
    with pytest.raises(DeviceError, match="not contiguous"):
        warploom.load("aos-to-soa", fields=2)(x[::2])
    with pytest.raises(DeviceError, match="has the shape") as caught:
        warploom.load("transposition", m=8, n=4)(x[:32].reshape(8, 4))
    assert caught.value.advice.startswith("complex numbers are taken as pairs")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_own_sketches_of_codes(dtype: str) -> None:
    adding = warploom.compile(
        warploom.Sketch.from_file(ROOT / "examples" / "sketches" / "sums.swflow"), dtype=dtype
    )
    assert "computed in float32, rounded when stored" in adding.text("cuda")
    moving = warploom.compile(
        warploom.Sketch.from_file(ROOT / "bench" / "common" / "own" / "reversal.swflow"),
        dtype=dtype,
    )
    assert "f32" not in moving.text("cuda")
    for made in (adding, moving):
        entry = entry_of("own", made.tiled)
        for device in ("simulator", "c"):
            require(device)
            found = verify(entry, {}, device, entry.sizes()[::4])
            assert [each for each in found if each.wrong] == []
    x = np.arange(24, dtype=np.float32)
    kind = DType(dtype)
    codes = coded(x, kind)
    sums = decoded(codes, kind).reshape(-1, 3).sum(axis=1)
    assert (adding(codes).view(kind.storage) == coded(sums, kind)).all()


def test_torch_tensors_of_bfloat16_in_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    from warploom.runtime import view

    bits = np.arange(6, dtype=np.uint16)

    class Tensor:
        __module__ = "torch"
        dtype, requires_grad, device = "torch.bfloat16", False, SimpleNamespace(type="cpu")

        def data_ptr(self) -> int:
            return bits.ctypes.data

        def is_neg(self) -> bool:
            return False

        is_conj = is_neg

        def detach(self) -> Tensor:
            return self

        def view(self, kind: object) -> Tensor:
            assert kind == "int16"
            return self

        def numpy(self) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
            return bits.view(np.int16)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(int16="int16"))
    found = view.view(Tensor(), "x")
    assert (found.dtype, found.pointer, found.shape) == (bf16, bits.ctypes.data, (6,))


def test_of_nothing_nothing_is_made() -> None:
    x = np.zeros((0, 3), np.int16)
    assert warploom.load("aos-to-soa", fields=3)(x).shape == (3, 0)
    three: Any = np.int64(3)
    assert warploom.load("soa-to-aos", fields=three)(x.T).shape == (0, 3)
    assert warploom.load("aos-sum", fields=3)(x).shape == (0,)
    assert warploom.load("transposition", m=2, n=3)(np.zeros((0, 2, 3))).shape == (0, 3, 2)
    image, weights = np.zeros((0, 5), np.float32), np.ones((3, 3), np.float32)
    assert warploom.load("convolution-2d", taps=3)(image, weights).shape == (0, 5)


def test_a_device_and_a_store_that_are_none_are_refused_at_once() -> None:
    with pytest.raises(DeviceError, match="there is no device 'gpu'"):
        warploom.load("aos-to-soa", fields=3, device="gpu")
    with pytest.raises(CheckError, match=r"store is a Store, True or False, not 'x\.sqlite'"):
        warploom.load("aos-to-soa", fields=3, store="x.sqlite")
