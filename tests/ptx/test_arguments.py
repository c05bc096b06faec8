# ruff: noqa: E501 - programs read better with a line each
"""What a launch is given: arrays that share memory, variables of the module, numbers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError

COPY = """.version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 scale[4];
.global .align 4 .b32 seen;
.visible .entry k(.param .u64 from, .param .u64 to, .param .u64 apart)
{ .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<9>; mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
ld.global.f32 %f1, [%rd4]; and.b32 %r2, %r1, 3; mul.wide.u32 %rd6, %r2, 4; mov.u64 %rd7, scale; add.s64 %rd7, %rd7, %rd6;
ld.const.f32 %f2, [%rd7]; mul.f32 %f1, %f1, %f2; bar.sync 0; st.global.f32 [%rd5], %f1; sub.s64 %rd8, %rd2, %rd1; ld.param.u64 %rd1, [apart];
st.global.u64 [%rd1], %rd8; st.global.b32 [seen], %r1; ret; }
"""


def launch(source: np.ndarray, target: np.ndarray, threads: int = 8) -> int:
    module = ptx.load(COPY)
    module.variable("scale")[:] = [1, 2, 3, 4]
    apart = np.zeros(1, np.int64)
    module.kernel("k").launch(1, threads, [source, target, apart])
    assert int(module.variable("seen")[0]) < threads
    return int(apart[0])


@pytest.mark.parametrize(("first", "second"), [(0, 4), (4, 0), (0, 0), (3, 8), (9, 1)])
def test_arrays_that_share_memory_are_as_far_apart_as_on_the_host(first: int, second: int) -> None:
    memory = np.arange(24, dtype=np.float32)
    source, target = memory[first : first + 10], memory[second : second + 10]
    want = memory.copy()
    want[second : second + 8] = memory[first : first + 8] * np.array([1, 2, 3, 4] * 2, np.float32)
    assert launch(source, target) == 4 * (second - first)
    assert memory.tolist() == want.tolist()


def test_the_whole_and_a_part() -> None:
    memory = np.arange(24, dtype=np.float32)
    assert launch(memory, memory[12:20]) == 48
    assert memory[12:20].tolist() == [0, 2, 6, 12, 4, 10, 18, 28]


def test_bounds_are_those_of_what_is_given() -> None:
    memory = np.arange(64, dtype=np.float32)
    with pytest.raises(
        DeviceError, match=r"argument 0 \('from'\) and argument 1 \('to'\) \(64 bytes\)"
    ):
        launch(memory[8:20], memory[16:24], 32)
    with pytest.raises(DeviceError, match=r"argument 0 \('from'\) \(16 bytes\)"):
        launch(memory[:4], memory[8:20], 8)


def test_variables_keep_what_the_host_wrote() -> None:
    source, target = np.ones(8, np.float32), np.zeros(8, np.float32)
    launch(source, target)
    assert target.tolist() == [1, 2, 3, 4] * 2
    with pytest.raises(DeviceError, match="no variable 'nothing'"):
        ptx.load(COPY).variable("nothing")


ATOMIC = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .f32 x)
{ .reg .f32 %f<4>; .reg .b64 %rd<3>; .shared .align 4 .f32 s;
ld.param.u64 %rd1, [a]; ld.param.f32 %f1, [x]; ld.global.f32 %f2, [%rd1]; st.shared.f32 [s], %f2;
red.global.add.f32 [%rd1], %f1; atom.shared.add.f32 %f3, [s], %f1; st.global.f32 [%rd1+4], %f3; ld.shared.f32 %f3, [s]; st.global.f32 [%rd1+8], %f3;
cvta.to.global.u64 %rd2, %rd1; atom.add.f32 %f3, [%rd1+12], %f1; st.global.f32 [%rd1+16], %f3; ret; }
"""
TINY = np.float32(2.0**-149)
NORMAL = np.float32(2.0**-126)


@pytest.mark.parametrize(
    ("start", "added", "flushed", "kept"),
    [
        (0, 5 * TINY, 0.0, 5 * TINY),
        (3 * TINY, 1, 1.0, 1.0),
        (NORMAL + TINY, -NORMAL, 0.0, TINY),
        (-NORMAL, NORMAL - TINY, -NORMAL, -TINY),
        (-NORMAL - TINY, NORMAL, -0.0, -TINY),
        (1.5, 2.25, 3.75, 3.75),
    ],
)
def test_sums_of_singles_flush_in_global_memory_alone(
    start: float, added: float, flushed: float, kept: float
) -> None:
    out = np.array([start, 9, 9, start, 9], np.float32)
    ptx.load(ATOMIC).kernel("k").launch(1, 1, [out, np.float32(added)])
    want = np.array([flushed, start, kept, flushed, start], np.float32)
    assert out.view(np.uint32).tolist() == want.view(np.uint32).tolist()


def test_structures_are_bytes() -> None:
    """A number is no structure of as many zeros."""
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 4 .b8 pair[8], .param .u64 out)
{ .reg .b32 %r<2>; .reg .b64 %o; ld.param.u32 %r1, [pair+4]; ld.param.u64 %o, [out]; st.global.u32 [%o], %r1; ret; }
"""
    kernel = ptx.load(text).kernel("k")
    record = np.array((3, 7), [("a", "i4"), ("b", "i4")])
    for given in (record, record.tobytes(), (ctypes.c_int32 * 2)(3, 7), np.array([3, 7], np.int32)):
        out = np.zeros(1, np.int32)
        kernel.launch(1, 1, [given, out])
        assert out[0] == 7
    for wrong in (8, "12345678", None, 1 << 50, [0] * 8):
        with pytest.raises(DeviceError, match=r"structure; .* cannot be passed"):
            kernel.launch(1, 1, [wrong, np.zeros(1, np.int32)])


@pytest.mark.parametrize("given", [1.5, "9", None, True, -1, 1 << 40])
def test_shared_bytes_are_a_number(given: Any) -> None:
    with pytest.raises(DeviceError, match=r"shared"):
        ptx.load(ATOMIC).kernel("k").launch(
            1, 1, [np.zeros(5, np.float32), 1.0], shared_bytes=given
        )


PASSED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .TYPE x)
{ .reg .bBITS %r; .reg .b64 %l; ld.param.bBITS %r, [x]; ld.param.u64 %l, [out]; st.global.bBITS [%l], %r; ret; }
"""


def passed(kind: str, value: Any) -> bytes:
    """The bytes that a kernel finds in its parameter."""
    bits = int(kind[1:])
    out = np.zeros(bits // 8, np.uint8)
    text = PASSED.replace("TYPE", kind).replace("BITS", str(bits))
    ptx.load(text, "k.ptx").kernel("k").launch(1, 1, [out, value])
    return out.tobytes()


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64", "u16"])
@pytest.mark.parametrize(
    "value", [1.0, 1.5, np.float16(2), np.float32(2), np.float64(2), np.array(2.0)]
)
def test_a_float_is_no_integer(kind: str, value: Any) -> None:
    with pytest.raises(DeviceError, match=rf"argument 1 \('x'\) is a \.{kind}, a float is given"):
        passed(kind, value)


@pytest.mark.parametrize(
    "value",
    [2, True, np.int8(2), np.int32(2), np.uint32(7), np.int64(-3), np.bool_(True), np.array(5)],
)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_an_integer_for_a_float_has_its_value(kind: str, value: Any) -> None:
    """Also one of as many bits, which were taken for those of a float."""
    assert (
        passed(kind, value) == np.array(float(value), f"<{kind[0]}{int(kind[1:]) // 8}").tobytes()
    )


def test_bits_have_no_meaning_of_their_own() -> None:
    for value in (np.float32(1.5), np.int32(-2), np.uint32(7)):
        assert passed("b32", value) == value.tobytes()
    assert passed("b32", 1.5) == np.float32(1.5).tobytes()
    assert (
        passed("u32", np.int32(-2)) == passed("s32", np.uint32(2**32 - 2)) == np.int32(-2).tobytes()
    )
    assert passed("f32", np.float64(0.1)) == np.float32(0.1).tobytes()
    assert passed("f32", 1e300) == np.float32(np.inf).tobytes()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("f32", 10**400),
        ("u32", 1 << 32),
        ("s64", -(1 << 63) - 1),
        pytest.param("u32", 1 << 20000, id="long"),
        ("u64", np.complex64(1)),
        ("f32", "1"),
        ("u32", b"1234"),
    ],
)
def test_numbers_that_cannot_be_passed(kind: str, value: Any) -> None:
    with pytest.raises(DeviceError, match=r"argument 1 \('x'\)"):
        passed(kind, value)
