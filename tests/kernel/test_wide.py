"""Indices of 64 bits: the same kernel on every target, on arrays that 32 bits cannot reach."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.kernel.random_runs import TOGETHER, differences
from tests.tools import require

import warploom
from warploom.emit import emit
from warploom.emit.c import c
from warploom.errors import CheckError, DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Binding, check_indices
from warploom.kernel.build import Builder, ceil_div, from_index
from warploom.kernel.check import check
from warploom.kernel.dtype import DType, i8, i32, i64
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Cell, Kernel
from warploom.kernel.largest import largest, with_largest
from warploom.kernel.wide import index_named, with_index
from warploom.native import compile_c, load_library
from warploom.pipeline.compiled import Compiled

SUMS = str(Path(__file__).parents[2] / "examples" / "sketches" / "sums.swflow")
FAR = 3_000_000_000


def copying(block: int = 128) -> Kernel:
    """y[i] = x[i]; the index is made of blocks and threads alone, without a constant."""
    k = Builder("copying", block=block)
    n = k.scalar("n")
    x, y = k.array("x", i8, n, const=True), k.array("y", i8, n)
    k.grid(ceil_div(n, block))
    v = k.register("v", i8)
    i = k.let("i", k.block_x * block + k.thread)
    k.set(v, x[i])
    y[i] = v
    return k.done(predicate=True)


@pytest.mark.parametrize("device", ["simulator", "c", "ptx"])
def test_random_kernels_compute_the_same(device: Any) -> None:
    if device != "simulator":
        require(device)
    assert differences(range(3000, 3002), device, i64) == []


@pytest.mark.slow
@pytest.mark.parametrize("device", ["c", "ptx", "opencl"])
def test_many_random_kernels_compute_the_same(device: Any) -> None:
    require(device)
    last = 3010 if device == "opencl" else 3400
    for first in range(3000, last, TOGETHER[device]):
        assert differences(range(first, first + TOGETHER[device]), device, i64) == []


def test_what_32_bits_refuse_64_allow() -> None:
    narrow = copying()
    scalars = {"n": FAR}
    grid = (int(evaluate(narrow.grid[0], scalars)), 1, 1)
    with pytest.raises(DeviceError, match="overflows 32 bits"):
        check_indices(narrow, Binding(dict(scalars), grid))
    wide = with_index(narrow, i64)
    check_indices(wide, Binding(dict(scalars), grid))
    assert largest(narrow, lambda n: {"n": n}) == 2**31 - 128
    assert largest(wide, lambda n: {"n": n}) == 128 * (2**31 - 1)
    with pytest.raises(DeviceError, match="overflows 64 bits"):
        check_indices(wide, Binding({"n": 2**63 - 1}, grid))


def test_numbers_of_the_same_type_stay_what_they_are() -> None:
    """`n` is a size and an operand, `add` an operand alone: results have 32 bits, as before."""
    k = Builder("shifted", block=128)
    n, add = k.scalar("n"), k.number("add", i32)
    y = k.array("y", i32, n)
    k.grid(ceil_div(n, 128))
    v = k.register("v", i32)
    k.set(v, add * 2 + Cell("n", None, i32))
    y[k.block_x * 128 + k.thread] = v
    wide = with_index(k.done(predicate=True), i64)
    assert [each.dtype for each in wide.scalars] == [i64, i32]
    found = np.zeros(200, np.int32)
    run(wide, [200, 2**30 + 1, found])
    assert (found == 202 - 2**31).all()


def on_the_last_blocks(text: str, name: str, first: int) -> Any:
    """The C function of a kernel, from one of its blocks on: the others would take minutes."""
    changed, count = re.subn(r"block_x = 0;", f"block_x = {first};", text)
    assert count == 1
    code = compile_c(changed, ("-std=c11", "-fwrapv", "-fPIC", "-shared", "-O1"))
    function = getattr(load_library(code), name)
    function.restype = None
    return function


def test_the_end_of_an_array_of_three_billion() -> None:
    """Arrays of zeros take no memory before they are touched, and only their ends are."""
    require("c")
    wide = with_index(copying(), i64)
    try:
        x, y = np.zeros(FAR, np.int8), np.zeros(FAR, np.int8)
    except MemoryError:
        pytest.skip("no room for two arrays of three gigabytes")
    ends = np.arange(1, 301, dtype=np.int8)
    x[-300:] = ends
    function = on_the_last_blocks(c(wide), "copying", (FAR - 300) // 128)
    function(ctypes.c_int64(FAR), *(ctypes.c_void_p(each.ctypes.data) for each in (x, y)))
    assert np.array_equal(y[-300:], ends)
    assert not y[:4096].any()


def test_the_end_of_long_arrays_of_a_sketch() -> None:
    """As above, of a kernel with exchanges: the last three sums of 2.4 billion elements."""
    require("c")
    made = warploom.compile(warploom.Sketch.from_file(SUMS), dtype="int8", index_bits=64)
    count = 800_000_001
    try:
        x, y = np.zeros(3 * count, np.int8), np.zeros(count, np.int8)
    except MemoryError:
        pytest.skip("no room for three gigabytes")
    x[-9:] = range(9)
    function = on_the_last_blocks(c(made.kernel), "sums", (count - 3) // 128)
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (x, y)]
    function(ctypes.c_int64(count), ctypes.c_int64(3 * count), *pointers)
    assert y[-3:].tolist() == [3, 12, 21]


def test_what_is_made_of_names_alone_is_computed_in_64_bits() -> None:
    """Blocks are ints, and C would add and multiply two ints as such."""
    k = Builder("places", block=(32, 4))
    n = k.scalar("n")
    y = k.array("y", i64, n)
    k.grid(n, n)
    v = k.register("v", i64)
    k.set(v, from_index(k.block_x * k.block_y + k.block_x, i64))
    y[k.block_x] = v
    wide = with_index(k.done(predicate=True), i64)
    for language in ("cuda", "opencl", "c"):
        text = emit(wide, language)
        assert re.search(r"block_x \* 1LL? \* \(?block_y \* 1LL?", text), text


def test_own_sketches_on_every_device() -> None:
    made = warploom.compile(warploom.Sketch.from_file(SUMS), device="simulator", index_bits=64)
    assert "Indices have 64 bits: 'sum' of at most 274877906816 elements" in made.kernel.doc
    assert made.kernel.scalars[0].dtype is DType.I64
    x = np.arange(3 * 133, dtype=np.float32)
    for device in ("simulator", "c", "ptx"):
        if device != "simulator":
            require(device)
        there = Compiled(made.tiled, device)
        assert np.array_equal(there(x), x.reshape(-1, 3).sum(axis=1))


def test_a_kernel_of_the_catalogue() -> None:
    wide = warploom.load("aos-to-soa", fields=3, index_bits=64, device="simulator")
    x = np.arange(3 * 401, dtype=np.float32)
    assert np.array_equal(wide(x), x.reshape(-1, 3).T)
    assert "Indices have 64 bits: n of at most" in wide.text("cuda")
    assert "long long first" in wide.text("cuda")
    narrow = warploom.load("aos-to-soa", fields=3).text("cuda")
    assert re.search(r"Indices have 32 bits: n of at most 7158\d{5}\n", narrow)


def test_a_shift_by_an_index_that_does_not_fit_its_register_is_refused() -> None:
    """In 64 bits an index is no number of 32: what holds of one may not hold of the other."""
    k = Builder("shifts", block=32)
    n = k.scalar("n")
    y = k.array("y", i32, n)
    k.grid(ceil_div(n, 32))
    v = k.register("v", i32)
    far = from_index(n * 1024, i32)
    k.require(n.ge(1))
    k.set(v, 100 / far)  # n * 1024 is no zero, but its low 32 bits may be
    y[k.thread] = v
    kernel = k.done(predicate=True)
    check(kernel)
    with pytest.raises(CheckError, match="may be zero"):
        with_index(kernel, i64)


def test_the_evaluator_and_the_rest_refuse_what_they_do_not_have() -> None:
    for bits in (16, "64", True):
        with pytest.raises(CheckError, match="32 or 64 bits"):
            index_named(bits)  # type: ignore[arg-type]
    wide = with_index(copying(), i64)
    assert with_index(wide, i64) is wide
    x, y = np.arange(200, dtype=np.int8), np.zeros(200, np.int8)
    run(wide, [200, x, y])
    assert np.array_equal(x, y)
    assert with_largest(wide).doc.endswith("n of at most 274877906816")
