"""Headers with one function: they compile cleanly, stay in registers, and move every type."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.tools import require

from warploom import device_function
from warploom.emit.function import calling_text, function_text
from warploom.errors import CheckError, EmitError
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType, f32, f64, i32, i64, u32
from warploom.kernel.evaluate import run
from warploom.kernel.function import function_of
from warploom.kernel.ir import Kernel, Operation, Operator
from warploom.ptx import load as load_ptx
from warploom.runtime.compile import compile_cuda, parse_usage

TYPES = {1: "signed char", 2: "short", 4: "float", 8: "double", 16: "Wide"}
WIDE = "struct alignas(16) Wide { float x; int y; double z; };\n"


def headers(fields: int) -> str:
    names = ("load-structures", "store-structures")
    moved = [device_function(name, fields=fields).text() for name in names]
    moved += [
        device_function(name, registers=fields, through=through).text()
        for name in ("blocked-to-striped", "striped-to-blocked")
        for through in ("registers", "shared")
    ]
    return "".join(moved)


def kernel(fields: int, kind: str, name: str) -> str:
    """Loaded, exchanged there and back, in registers and in shared memory, and stored."""
    return f"""
extern "C" __global__ void {name}(const {kind}* x, {kind}* y, int n) {{
  __shared__ {kind} rooms[4][{34 * fields}];
  {kind}* room = rooms[threadIdx.x / 32];
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
  {kind} a[{fields}];
  load_structures_{fields}(x, n, first, a);
  if (__activemask() == 0xffffffffu) {{
    blocked_to_striped_{fields}(a);
    striped_to_blocked_{fields}_shared(room, a);
    blocked_to_striped_{fields}_shared(room, a);
    striped_to_blocked_{fields}(a);
  }}
  store_structures_{fields}(y, n, first, a);
}}
"""


def whole_text(fields: int) -> str:
    text = WIDE + headers(fields)
    return text + "".join(kernel(fields, kind, f"move_{size}") for size, kind in TYPES.items())


@pytest.mark.parametrize("fields", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_every_type_moves_also_where_lanes_are_missing(fields: int) -> None:
    require("ptx")
    module = load_ptx(compile_cuda(whole_text(fields)).text)
    random = np.random.default_rng(fields)
    for size in TYPES:
        for n, block in ((40, 32), (77, 96), (40, 40)):  # the last block has a part of a warp
            x = random.integers(0, 256, n * fields * size, np.uint8)
            y = np.zeros(len(x) + 64, np.uint8)
            grid = -(-n // block)
            module.kernel(f"move_{size}").launch((grid, 1, 1), (block, 1, 1), [x, y, np.int32(n)])
            assert (y[: len(x)] == x).all(), (size, n, block)
            assert not y[len(x) :].any()


@pytest.mark.parametrize("fields", [3, pytest.param(7, marks=pytest.mark.slow)])
def test_nothing_is_warned_of_and_nothing_leaves_registers(fields: int) -> None:
    require("ptx")
    compiled = compile_cuda(
        whole_text(fields), kind="cubin", options=("--ptxas-options=-v",), compiler="nvrtc"
    )
    assert "warning" not in compiled.log.lower()
    used = parse_usage(compiled.log)
    assert all(each.stays_in_registers for each in used.values())


@pytest.mark.slow
@pytest.mark.parametrize("fields", [2, 3, 16])
def test_nvcc_warns_of_nothing(fields: int) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc")
    strict = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra", "-Xptxas", "-v")
    compiled = compile_cuda(whole_text(fields), kind="cubin", options=strict, compiler="nvcc")
    assert all(each.stays_in_registers for each in parse_usage(compiled.log).values())


# What clang without CUDA's headers does not know, and the functions use.
PRELUDE = """
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
__device__ unsigned __activemask();
__device__ void __syncwarp(unsigned = 0xffffffffu);
__device__ unsigned __shfl_sync(unsigned, unsigned, int, int = 32);
__device__ unsigned __shfl_up_sync(unsigned, unsigned, unsigned, int = 32);
"""


@pytest.mark.parametrize("fields", [2, 3, 16])
def test_clang_takes_them(fields: int, tmp_path: Path) -> None:
    clang = shutil.which("clang++") or shutil.which("clang")
    if clang is None:
        pytest.skip("no clang")
    scans = [device_function(f"{kind}-scan").text() for kind in ("inclusive", "exclusive")]
    text = PRELUDE + headers(fields) + "".join(scans)
    source = tmp_path / "functions.cu"
    source.write_text(text)
    options = ["--cuda-device-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib"]
    options += ["-Wno-unknown-cuda-version", "-Wall", "-Werror", "-fsyntax-only", "-std=c++17"]
    ran = subprocess.run(
        [clang, *options, str(source)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_a_lane_that_nothing_mentions_is_not_asked_for() -> None:
    """A compiler that is asked to warns of it; some scans are instructions that know their lane."""
    text = device_function("inclusive-scan").text()
    assert "shfl.sync.up" in text
    assert "int lane = warploom_lane()" not in text
    assert "int lane = warploom_lane()" in device_function("exclusive-scan").text() + headers(3)


def test_a_function_may_have_the_name_of_a_helper() -> None:
    """`lane` is one: had both one guard, the second would be gone."""
    k = Builder("call_lane", block=32)
    x, y = k.array("x", f32, 32, const=True), k.array("y", f32, 32)
    v = k.registers("v", f32, 1)
    v[0] = x[k.lane]
    with k.function("lane"):
        v[0] = k.shuffle(v[0], k.lane, "idx")
    y[k.lane] = v[0]
    guards = re.findall(r"#ifndef (\w+)", function_text(k.done(), "cuda"))
    assert "WARPLOOM_LANE" in guards
    assert len(guards) == len(set(guards)) > 1


def test_two_headers_stand_in_one_text(tmp_path: Path) -> None:
    """Also in C, where one is included twice."""
    require("c")
    names = [("load-structures", {"fields": 3}), ("inclusive-scan", {}), ("exclusive-scan", {})]
    texts = [device_function(name, **given).text("c") for name, given in names]  # type: ignore[arg-type]
    (tmp_path / "all.c").write_text("".join([*texts, texts[0], "int main(void) { return 0; }\n"]))
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    command.append("-Wno-unused-function")
    ran = subprocess.run(
        [*command, "-o", str(tmp_path / "all"), str(tmp_path / "all.c")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


# -- rounds of a scan as one piece of PTX ----------------------------------------------------------

OPERATORS: tuple[Operator, ...] = ("+", "*", "min", "max", "&", "|", "^")
JOINED = [
    (op, dtype)
    for dtype in (f32, f64, i32, u32, i64, DType.U64)
    for op in OPERATORS
    if not (dtype.is_float and op in ("&", "|", "^"))
]


def round_of(op: Operator, dtype: DType, *, distance: int = 4, used_again: bool = False) -> Kernel:
    k = Builder("round", block=32)
    x, y = k.array("x", dtype, 32, const=True), k.array("y", dtype, 32)
    total, got = k.register("total", dtype), k.register("got", dtype)
    k.set(total, x[k.lane])
    k.set(got, k.shuffle(total, distance, "up"))
    with k.when(k.lane.ge(distance)):
        k.set(total, Operation(op, (total, got)))
    if used_again:
        k.set(total, Operation(op, (total, got)))
    y[k.lane] = total
    return k.done()


QUICK = {("+", f32), ("max", f64), ("min", i32), ("^", DType.U64)}
CASES = [pytest.param(*each, marks=[] if each in QUICK else pytest.mark.slow) for each in JOINED]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_rounds_of_every_type_compute_what_the_evaluator_says(op: Operator, dtype: DType) -> None:
    require("ptx")
    from warploom.runtime.emulated import EmulatedFunction

    random = np.random.default_rng(0)
    kernel = round_of(op, dtype)
    if dtype.is_float:
        x = random.normal(size=32).astype(dtype.numpy)
    else:
        limits = np.iinfo(dtype.numpy)
        x = random.integers(limits.min, limits.max, 32, dtype.numpy, endpoint=True)
    wanted, found = np.zeros(32, dtype.numpy), np.zeros(32, dtype.numpy)
    run(kernel, [x, wanted])
    compiled = EmulatedFunction(kernel)
    assert "|p" in compiled.text
    compiled([x, found], (1, 1, 1))
    assert found.tobytes() == wanted.tobytes()


def test_what_is_no_round_stays_as_it_is() -> None:
    from warploom.emit import emit

    assert "asm" in emit(round_of("+", f32), "cuda")
    assert "asm" not in emit(round_of("+", f32, used_again=True), "cuda")
    assert "asm" not in emit(round_of("+", DType.I16), "cuda")


# -- what a function is ----------------------------------------------------------------------------


def doubling(block: int = 32) -> Kernel:
    k = Builder("call_twice", block=block, doc="Twice.")
    n = k.scalar("n")
    x, y = k.array("x", f32, n, const=True), k.array("y", f32, n)
    i = k.let("i", k.lane)
    v = k.registers("v", f32, 2)
    with k.loop("j", 2) as j:
        v[j] = x.at(i, when=i.lt(n))
    with k.function("twice"), k.loop("j", 2) as j:
        v[j] = v[j] + v[j]
    y.put(i, v[0], when=i.lt(n))
    return k.done()


def test_a_function_is_given_what_was_declared_before_it() -> None:
    function = function_of(doubling())
    assert [each.name for each in function.registers] == ["v"]
    assert (function.arrays, function.numbers, function.moves) == ((), (), False)
    text = function_text(doubling(), "cuda")
    assert "void twice(float (&v)[2])" in text
    assert "twice(v);" in calling_text(doubling(), "cuda")
    assert "void twice(float v[2][32])" in function_text(doubling(), "c")
    assert re.search(r"static void twice\(float\* v\)", function_text(doubling(), "opencl"))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(EmitError, match="64 threads in a block"):
        function_text(doubling(64), "cuda")
    k = Builder("plain", block=32)
    k.array("y", f32, 32)[k.lane] = 1.0
    with pytest.raises(CheckError, match="no function is written"):
        function_text(k.done(), "cuda")
    k = Builder("knows_too_much", block=32)
    y = k.array("y", f32, 32)
    with k.function("inner"):
        y[k.thread] = 1.0
    with pytest.raises(CheckError, match="uses 'thread'"):
        function_of(k.done())
