"""Headers with one function: they compile cleanly, stay in registers, and move every type."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tools import require

from warploom import Sketch, device_function, spec
from warploom.emit.language import calling_text, function_text
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
    if clang() is None:
        pytest.skip("no clang")
    scans = [device_function(f"{kind}-scan").text() for kind in ("inclusive", "exclusive")]
    clang_takes(headers(fields) + "".join(scans), tmp_path)


def clang() -> str | None:
    return shutil.which("clang++") or shutil.which("clang")


def clang_takes(text: str, to: Path) -> None:
    """Without a warning, where there is a clang."""
    source = to / "functions.cu"
    source.write_text(PRELUDE + text)
    options = ["--cuda-device-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib"]
    options += ["-Wno-unknown-cuda-version", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    options += ["-std=c++17"]
    if (found := clang()) is not None:
        command = [found, *options, str(source)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr


def taps(lanes: int, name: str = "taps") -> Sketch:
    """Sums of three neighbours, which a lane loads by itself: nothing is exchanged."""
    s = Sketch(name)
    x = s.input("x", lanes + 2, step=lanes)
    places = np.arange(lanes)[:, None] + np.arange(3)
    s.sum("identity", s.gather(places, x, shape=(lanes, 3), name="near"), name="out")
    s.goal(lambda x: [spec.total(x[i : i + 3]) for i in range(lanes)])
    return s


def compiled_strictly(text: str, to: Path) -> None:
    """In C, with all warnings being errors."""
    (to / "all.c").write_text(text)
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    command = ["cc", *strict, "-Wno-unused-function", "-o", str(to / "all"), str(to / "all.c")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_group_of_lanes_that_exchanges_nothing_has_no_name_for_its_lane(tmp_path: Path) -> None:
    require("c")
    require("ptx")
    header = device_function(taps(12))
    assert "lane" not in header.text("opencl").split("#define")[1]
    compiled_strictly(header.text("c") + "int main(void) { return 0; }\n", tmp_path)
    assert "warning" not in compile_cuda(header.text(), compiler="nvrtc").log.lower()
    clang_takes(header.text(), tmp_path)


def test_functions_of_one_name_and_several_types_are_all_there(tmp_path: Path) -> None:
    """Had they one guard, all but the first would be gone without a word."""
    require("c")
    require("ptx")
    kinds = {"float32": "float", "float64": "double", "int32": "int"}
    several = [device_function(taps(8), dtype=dtype) for dtype in kinds]
    moving = [device_function("blocked-to-striped", registers=2, bytes=n) for n in (2, 4, 8, 16)]
    calls = "".join(f"  {kind} a{n}[3] = {{}}, b{n}[1]; taps(a{n}, b{n});\n"
                    for n, kind in enumerate(kinds.values()))  # fmt: skip
    user = f'extern "C" __global__ void use() {{\n{calls}}}\n'
    compile_cuda("".join(each.text() for each in several) + user)
    texts = [each.text("c") for each in (*several, *moving)]
    for function in ("taps", "taps_f64", "taps_i32", "blocked_to_striped_2_2bytes",
                     "blocked_to_striped_2", "blocked_to_striped_2_16bytes"):  # fmt: skip
        assert sum(f"void {function}(" in text for text in texts) == 1, function
    assert len({each.text() for each in moving}) == 1  # a template is one for all
    used = "int main(void) { unsigned short a[2][32] = {{0}}; blocked_to_striped_2_2bytes(a); "
    used += "float x[3][32] = {{0}}, y[1][32]; taps(x, y); return a[0][0] != y[0][0]; }\n"
    compiled_strictly("".join(texts) + used, tmp_path)


def test_a_function_of_another_content_has_another_guard() -> None:
    guards = [
        re.findall(r"#ifndef (\w+)", device_function("transpose", order=order).text("c"))[0]
        for order in ("crc", "crc", "rcr")
    ]
    assert guards[0] == guards[1] != guards[2]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["float", "main", "for", "printf", "lane", "größe", "y", "*/ x"])
def test_a_function_may_be_called_like_anything(name: str, tmp_path: Path) -> None:
    require("c")
    header = device_function(taps(8, name))
    assert [each for each in header.verify("c", [{"out_size": 9}]) if each.wrong] == []
    compiled_strictly(header.text("c") + "int main(void) { return 0; }\n", tmp_path)


def test_the_header_speaks_of_what_the_function_has() -> None:
    """No arrays, whose lengths would have limits; no holes, whose fill would be said."""
    text = device_function(taps(12)).text()
    assert "has no hole" in text
    assert "indices have" not in text
    assert "Fill" not in text


def test_a_lane_that_nothing_mentions_is_not_asked_for() -> None:
    """A compiler that is asked to warns of it; some scans are instructions that know their lane."""
    text = device_function("inclusive-scan").text()
    assert "shfl.sync.up" in text
    assert "int lane = warploom_lane()" not in text
    assert "int lane = warploom_lane()" in device_function("exclusive-scan").text() + headers(3)


def test_a_function_may_have_the_name_of_a_helper() -> None:
    """`lane` is one: had both one guard, the second would be gone. It is called otherwise, too."""
    k = Builder("call_lane", block=32)
    x, y = k.array("x", f32, 32, const=True), k.array("y", f32, 32)
    v = k.registers("v", f32, 1)
    v[0] = x[k.lane]
    with k.function("lane"):
        v[0] = k.shuffle(v[0], k.lane, "idx")
    y[k.lane] = v[0]
    text = function_text(k.done(), "cuda")
    guards = re.findall(r"#ifndef (\w+)", text)
    assert len(guards) == len(set(guards)) > 1
    assert "void lane_function_(" in text


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("blocked-to-striped", {"registers": 1}),
        ("striped-to-blocked", {"registers": 5, "lanes": 12}),
        ("exclusive-scan", {"dtype": "int64", "lanes": 12, "operator": "*"}),
    ],
)
def test_no_compiler_warns_of_what_is_never_used(
    name: str, given: dict[str, Any], tmp_path: Path
) -> None:
    """A register that stays, a name that a later loop alone has use for."""
    require("c")
    header = device_function(name, **given)
    compiled_strictly(header.text("c") + "int main(void) { return 0; }\n", tmp_path)
    clang_takes(header.text(), tmp_path)


def test_two_headers_stand_in_one_text(tmp_path: Path) -> None:
    """Also in C, where one is included twice."""
    require("c")
    names = [("load-structures", {"fields": 3}), ("inclusive-scan", {}), ("exclusive-scan", {})]
    texts = [device_function(name, **given).text("c") for name, given in names]  # type: ignore[arg-type]
    compiled_strictly("".join([*texts, texts[0], "int main(void) { return 0; }\n"]), tmp_path)


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


def test_a_comment_is_no_edge_of_a_function() -> None:
    """Whatever words a user writes in it."""
    k = Builder("swapped", block=32)
    y, r = k.array("y", u32, 64), k.registers("r", u32, 2, 0)
    with k.function("swap"):
        t = k.register("t", u32)
        k.set(t, r[0])
        k.comment("swap ends.")
        r[0] = r[1]
        r[1] = t
    y[k.thread], y[k.thread + 32] = r[0], r[1]
    assert len(function_of(k.done()).body) == 5
