"""Numbers of sixteen and eight bits: stored and moved as codes, computed in f32, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import of
from hypothesis import given
from hypothesis import strategies as st
from tests.tools import is_here

from warploom.catalogue import entries
from warploom.catalogue.entry import Parameter
from warploom.errors import CheckError, DeviceError
from warploom.kernel.build import Builder, cast, choose, from_index
from warploom.kernel.dtype import (
    Codes,
    DType,
    bf16,
    coded,
    decoded,
    e4m3,
    e5m2,
    f16,
    f32,
    f64,
    i32,
    u16,
    u32,
)
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.kernel.stored import computes, retyped, stored_as
from warploom.runtime.callable import load

CODES = (f16, bf16, e4m3, e5m2)


def every(dtype: DType) -> Codes:
    """All codes of a type."""
    return np.arange(1 << 8 * dtype.bytes).astype(dtype.storage)


def test_every_code_is_read_and_written_back() -> None:
    for dtype in CODES:
        codes = every(dtype)
        numbers = decoded(codes, dtype)
        back = coded(numbers, dtype)
        known = np.isfinite(numbers) if dtype.bytes == 1 else ~np.isnan(numbers)
        assert (back[known] == codes[known]).all()
        assert (back[np.isnan(numbers)] == (1 << 8 * dtype.bytes - 1) - 1).all()
    assert (decoded(every(f16), f16)[:0x7C00] == every(f16)[:0x7C00].view(np.float16)).all()


# By hand, from the definitions of the two formats.
KNOWN = {
    e4m3: {1.0: 0x38, -1.75: 0xBE, 448.0: 0x7E, 1e9: 0x7E, -np.inf: 0xFE, 2.0**-9: 0x01, 17.0: 0x58,
           2.0**-10: 0x00, 1.5 * 2.0**-9: 0x02, 19.0: 0x5A, -0.0: 0x80},
    e5m2: {1.0: 0x3C, -1.75: 0xBF, 57344.0: 0x7B, 1e9: 0x7B, np.inf: 0x7B, 2.0**-16: 0x01,
           2.0**-17: 0x00, 1.5 * 2.0**-16: 0x02, 9.0: 0x48, 11.0: 0x4A, -0.0: 0x80},
}  # fmt: skip


@pytest.mark.parametrize("dtype", KNOWN, ids=repr)
def test_numbers_of_eight_bits(dtype: DType) -> None:
    given = np.array(list(KNOWN[dtype]), np.float32)
    assert list(coded(given, dtype)) == list(KNOWN[dtype].values())
    assert np.isnan(decoded(np.array([0x7F, 0xFF], np.uint8), dtype)).all()
    assert np.isinf(decoded(np.array([0x7C], np.uint8), e5m2))[0]
    assert decoded(np.array([0x7C], np.uint8), e4m3)[0] == 384


@pytest.mark.parametrize("dtype", [e4m3, e5m2], ids=repr)
def test_all_numbers_become_codes_of_eight_bits_everywhere(dtype: DType) -> None:
    """Every float whose first sixteen bits are the same, and those half way between two codes."""
    k = Builder("narrowed", block=64)
    n = k.scalar("n")
    x, y = k.array("x", f32, n, const=True), k.array("y", dtype, n)
    k.grid((n + 63) // 64)
    i = k.let("i", k.block_x * 64 + k.thread)
    v = k.register("v", f32)
    k.set(v, x.at(i, when=i.lt(n)))
    y.put(i, cast(dtype, v), when=i.lt(n))
    kernel = k.done()
    half = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    given = np.concatenate([half, half + np.uint32(1), half + np.uint32(0x8000)]).view(np.float32)
    wanted = np.zeros(len(given), np.uint8)
    run(kernel, [given, wanted])
    assert (wanted == coded(given, dtype)).all()
    for device in ("c", "ptx", "opencl"):
        if is_here(device):
            found = np.zeros_like(wanted)
            load(kernel, device)(given, found)
            assert (found == wanted).all(), device


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_numbers_become_the_nearest_code(values: list[float]) -> None:
    numbers = np.array(values, np.float32)
    with np.errstate(all="ignore"):
        assert (coded(numbers, f16) == numbers.astype(np.float16).view(np.uint16)).all()
    # Of the two codes around a number the nearer one, or the even one, by exact distances.
    found = decoded(coded(numbers, bf16), bf16).astype(np.float64)
    bits = numbers.view(np.uint32)
    below = (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
    above = ((bits & np.uint32(0xFFFF0000)) + np.uint32(0x10000)).view(np.float32)
    finite = np.isfinite(above) & np.isfinite(numbers)
    above = np.where(finite, above, 0)
    near, far = np.abs(numbers - below), np.abs(above.astype(np.float64) - numbers)
    even = (bits >> np.uint32(16)) % 2 == 0
    wanted = np.where((near < far) | ((near == far) & even), below, above)
    assert (found[finite] == wanted[finite]).all()


def squares(width: int = 4) -> Kernel:
    """Sums of squares, with wide loads, a predicate and a wide store of two."""
    k = Builder("squares", block=64)
    n = k.scalar("n")
    x, y = k.array("x", f32, n * 4, const=True), k.array("y", f32, n * 2)
    k.grid((n + 63) // 64)
    i = k.let("i", k.block_x * 64 + k.thread)
    v, both = k.registers("v", f32, 4), k.registers("both", f32, 2, 0)
    if width == 4:
        k.set(v[0], x.at(i * 4, when=i.lt(n), otherwise=2.0, width=4))
    else:
        with k.loop("j", 4) as j:
            v[j] = x.at(i * 4 + j, when=i.lt(n))
    with k.loop("j", 4) as j:
        both[0] = both[0] + v[j] * v[j]
        both[1] = both[1].max(v[j])
    y.put(i * 2, both[0], when=i.lt(n), width=2)
    return k.done()


@pytest.mark.parametrize("dtype", CODES, ids=repr)
def test_all_codes_on_all_devices(dtype: DType) -> None:
    kernel, count = stored_as(squares(), dtype), len(every(dtype))
    others = np.random.default_rng(0).integers(0, count, (3, count)).astype(dtype.storage)
    x = np.concatenate([every(dtype)[None], others]).T.reshape(-1).copy()
    wanted = np.zeros(2 * count, dtype.storage)
    run(kernel, [x, wanted])
    for device in ("c", "ptx"):
        if is_here(device):
            found = np.zeros_like(wanted)
            load(kernel, device)(x, found)
            assert (found == wanted).all(), device


SETTINGS: tuple[tuple[str, dict[str, Parameter]], ...] = (
    ("aos-sum", {"fields": 6}),
    ("aos-sum", {"fields": 3, "strategy": "shared"}),
    ("convolution-1d", {"taps": 3}),
    ("stencil-1d", {}),
)


@pytest.mark.parametrize("dtype", CODES, ids=repr)
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_it_computes_as_it_did_and_rounds_once(
    name: str, settings: dict[str, Parameter], dtype: DType
) -> None:
    entry = entries()[name]
    kernel = entry.kernel(**settings)
    case = entry.case(kernel, {"n": 77}, 3, **settings)
    codes = [coded(of(np.ndarray, a), dtype) if _is_float(a) else a for a in case.arguments]
    wide = [decoded(a, dtype) if isinstance(a, np.ndarray) else a for a in codes]
    run(kernel, wide)
    run(stored_as(kernel, dtype), codes)
    for before, after in zip(wide, codes, strict=True):
        if isinstance(before, np.ndarray):
            assert (coded(before, dtype) == after).all()


def _is_float(given: Any) -> bool:
    return isinstance(given, np.ndarray) and given.dtype.kind == "f"


def test_what_only_moves_moves_as_bits() -> None:
    entry = entries()["transposition"]
    kernel = entry.kernel(m=5, n=7, dtype="uint16")
    assert not computes(kernel)
    x = np.random.default_rng(0).integers(0, 1 << 16, 3 * 35).astype(np.uint16)
    y, z = np.zeros_like(x), np.zeros(len(x), np.float16)
    run(kernel, [3, x, y])
    run(retyped(kernel, u16, f16), [3, x.view(np.float16), z])
    assert (z.view(np.uint16) == y).all()  # NaNs as they were
    few = entry.kernel(m=5, n=7, dtype="float8_e4m3fn")
    assert {each.dtype for each in few.arrays} == {e4m3}
    bits, moved = x.astype(np.uint8), np.zeros(len(x), np.uint8)
    run(few, [3, bits, moved])
    assert (moved == y.astype(np.uint8)).all()
    assert computes(squares())
    with pytest.raises(CheckError, match="cannot have f16 for u32"):
        retyped(kernel, u32, f16)
    with pytest.raises(CheckError, match="cannot have e5m2 for u16"):
        retyped(kernel, u16, e5m2)
    with pytest.raises(CheckError, match="f32 is no code"):
        stored_as(squares(), f32)


def test_nothing_is_computed_in_codes() -> None:
    def kernel(make: Any) -> Kernel:
        k = Builder("codes", block=32)
        x, y = k.array("x", f16, 32, const=True), k.array("y", f16, 32)
        v = k.register("v", f16)
        k.set(v, x[k.lane])
        y[k.lane] = make(v)
        return k.done()

    kernel(lambda v: choose(Builder("b", block=32).lane.lt(4), v, 0))
    kernel(lambda v: cast(f16, cast(f32, v) * 2.0))
    for wrong, said in (
        (lambda v: v + v, "do not compute in it"),
        (lambda v: choose(v.lt(v), v, v), "do not compute in it"),
        (lambda v: cast(f16, cast(f64, v)), "f64 is converted to f16"),
        (lambda v: cast(f16, cast(i32, cast(f32, v))), "i32 is converted to f16"),
        (lambda _: from_index(1, f16), "do not compute in it"),
        (lambda v: choose(Builder("b", block=32).lane.lt(4), v, 1), "1 is no f16"),
    ):
        with pytest.raises(CheckError, match=said):
            kernel(wrong)


def test_a_number_is_no_code() -> None:
    k = Builder("scalar", block=32)
    number, y = k.number("number", f16), k.array("y", f16, 32)
    y[k.thread] = number
    with pytest.raises(CheckError, match="the number 'number' of f16"):
        k.done()


def test_arrays_of_another_type_are_refused() -> None:
    kernel = stored_as(squares(), bf16)
    y = np.zeros(2, np.uint16)
    with pytest.raises(DeviceError, match="holds float16, but the kernel takes bfloat16"):
        run(kernel, [np.zeros(4, np.float16), y])
    with pytest.raises(DeviceError, match="holds float32"):
        run(kernel, [np.zeros(4, np.float32), y])
