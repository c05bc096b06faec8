"""C code reports what it must not do; in a process of its own even a crash is an error."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from bench.common.kernel import kernels
from tests.tools import require

from warploom import runtime
from warploom.emit import c as emit_c
from warploom.errors import DeviceError
from warploom.index.ir import Expr, Var
from warploom.kernel.build import Builder, from_index
from warploom.kernel.dtype import DType, f32, i32
from warploom.kernel.ir import Kernel
from warploom.runtime.host import HostFunction


@pytest.fixture
def unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are written without the proof that they stay inside: what if it were wrong?"""
    require("c")
    monkeypatch.setattr(sys.modules["warploom.emit.c"], "check", lambda kernel: None)


def writes(index: Expr) -> Kernel:
    k = Builder("far", block=32)
    x, y = k.array("x", i32, 64, const=True), k.array("y", i32, 64)
    v = k.register("v", i32)
    k.grid(2)
    k.set(v, x[k.thread])
    y[index] = v
    return k.raw()


def reads(index: Expr) -> Kernel:
    k = Builder("far", block=32, warp_size=8)
    k.array("x", i32, 64, const=True)
    y, s, w = k.array("y", i32, 64), k.shared("s", i32, 32), k.constant("w", i32, 3)
    v = k.register("v", i32)
    k.grid(2)
    s[k.thread] = from_index(k.thread)
    k.barrier()
    k.set(v, s[index])
    y[k.block_x * 32 + k.thread] = v + w[k.thread % 3]
    return k.raw()


T, B = Var("thread"), Var("block_x")


@pytest.mark.usefixtures("unproved")
@pytest.mark.parametrize("isolate", [False, True])
def test_an_index_outside_is_named(isolate: bool) -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    for index, at, who in (
        (B * 32 + T + 8, 64, "block 1, thread 24"),
        (T + 10**8, 10**8, "block 0, thread 0"),
        (T - 1, -1, "block 0, thread 0"),
    ):
        function = HostFunction(writes(index), isolate=isolate)
        with pytest.raises(DeviceError) as caught:
            function([x, y])
        assert caught.value.message == (
            f"'far': 'y' has 64 elements, but is used at [{at}] ({who})"
        )
        if isolate:
            break  # the text is the same; a new process for each takes its time


@pytest.mark.usefixtures("unproved")
def test_shared_and_constant_arrays_are_checked() -> None:
    x, y, w = np.arange(64, dtype=np.int32), np.zeros(64, np.int32), np.arange(3, dtype=np.int32)
    HostFunction(reads(31 - T))([x, y, w])
    assert y[:3].tolist() == [31, 31, 31]
    with pytest.raises(DeviceError, match=r"'s' has 32 elements, but is used at \[32\]"):
        HostFunction(reads(T + 1))([x, y, w])


@pytest.mark.usefixtures("unproved")
def test_a_crash_in_a_process_of_its_own_is_an_error() -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    wild = HostFunction(writes(T * 1_000_000 + 2**30), checked=False, isolate=True)
    with pytest.raises(DeviceError, match="'far' crashed: SIG"):
        wild([x, y])
    assert not y.any()


def test_all_ways_to_run_give_the_same() -> None:
    require("c")
    x = np.arange(102, dtype=np.float32)
    kernel = kernels.stencil()
    results = [
        runtime.load(kernel, "c", checked=checked, isolate=isolate)(x)
        for checked in (True, False)
        for isolate in (True, False)
    ]
    for each in results:
        np.testing.assert_allclose(each, x[1:-1])


def test_scalars_of_every_type_go_to_another_process() -> None:
    require("c")
    for dtype in (each for each in DType if not each.is_code):
        k = Builder("scalars", block=32)
        number, y = k.number("number", dtype), k.array("y", dtype, 32)
        y[k.thread] = number
        given: Any = -3.5 if dtype.is_float else int(np.iinfo(dtype.numpy).max)
        out = np.zeros(32, dtype.numpy)
        function = HostFunction(k.done(), isolate=dtype in (DType.F32, DType.U64))
        function([given, out])
        assert set(out.tolist()) == {given}


def test_only_c_has_other_ways() -> None:
    with pytest.raises(DeviceError, match="'ptx' supports neither checked=False"):
        runtime.load(kernels.stencil(), "ptx", isolate=True)


def test_a_large_block_does_not_use_up_the_stack() -> None:
    """A register array of every thread lives across barriers: megabytes for a block."""
    require("c")
    k = Builder("large", block=1024)
    y = k.array("y", f32, 1024)
    rows = [k.registers(f"r{i}", f32, 32, float(i)) for i in range(8)]
    s, v = k.shared("s", f32, 1024), k.register("v", f32, 0.0)
    s[k.thread] = rows[3][5]
    k.barrier()
    k.set(v, s[1023 - k.thread])
    for row in rows:
        with k.loop("i", 32) as i:
            k.set(v, v + row[i])
    y[k.thread] = v
    kernel = k.done()
    assert "static _Thread_local" in emit_c(kernel)
    out = np.zeros(1024, np.float32)
    runtime.load(kernel, "c")(out)
    assert set(out.tolist()) == {3.0 + 32 * sum(range(8))}


# -- arrays that share memory ----------------------------------------------------------------------


def in_place(restrict: bool) -> Kernel:
    """Each thread reads x, writes y, and reads x again."""
    k = Builder("in_place", block=32)
    x = k.array("x", i32, 32, const=True, restrict=restrict)
    y = k.array("y", i32, 32, restrict=restrict)
    v, w = k.register("v", i32), k.register("w", i32)
    k.set(v, x[k.thread])
    y[k.thread] = v + 1
    k.set(w, x[k.thread])
    y[k.thread] = v * 100 + w
    return k.done()


@pytest.mark.parametrize("device", ["simulator", "c", "ptx", "opencl"])
def test_one_array_under_two_names(device: Any) -> None:
    require(device)
    kernel = runtime.load(in_place(restrict=False), device)
    data = np.arange(32, dtype=np.int32)
    kernel(data, data)
    assert data.tolist() == [v * 100 + v + 1 for v in range(32)]
    apart = np.zeros(32, np.int32)
    kernel(np.arange(32, dtype=np.int32), apart)
    assert apart.tolist() == [v * 101 for v in range(32)]
    buffer = np.zeros(40, np.int32)
    with pytest.raises(DeviceError, match="shares a part of its memory"):
        kernel(buffer[:32], buffer[8:])
    with pytest.raises(DeviceError, match="'y' is written and shares memory with 'x'"):
        runtime.load(in_place(restrict=True), device)(data, data)


# -- launches that were checked before -------------------------------------------------------------


def test_checked_launches_are_remembered_by_name() -> None:
    k = Builder("large", block=32)
    n, m = k.scalar("n"), k.scalar("m")
    y = k.array("y", i32, 32)
    k.let("product", n * 70_000 + m)
    y[k.thread] = from_index(k.thread)
    kernel = runtime.load(k.done(), "simulator")
    out = np.zeros(32, np.int32)
    kernel(out, n=1, m=40_000)
    for _ in range(2):
        with pytest.raises(DeviceError, match="overflows 32 bits"):
            kernel(out, m=1, n=40_000)  # the same numbers, in the same order


@pytest.mark.parametrize("device", ["c", "opencl"])
@pytest.mark.parametrize("writable", [True, False])
def test_inputs_may_begin_at_one_address_and_differ_in_length(device: Any, writable: bool) -> None:
    require(device)
    k = Builder("two", block=32)
    w, x = k.array("w", i32, 8, const=True), k.array("x", i32, 32, const=True)
    y = k.array("y", i32, 32)
    few, all_of = k.register("few", i32), k.register("all_of", i32)
    k.set(few, w[k.thread % 8])
    k.set(all_of, x[k.thread])
    y[k.thread] = few * 100 + all_of
    whole, result = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    whole.flags.writeable = writable
    runtime.load(k.done(), device, isolate=device == "c")(whole[:8], whole, result)
    assert np.array_equal(result, np.arange(32) % 8 * 100 + np.arange(32))
