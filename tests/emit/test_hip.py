"""HIP: text that clang's front end takes without ROCm, and kernels of 64 lanes that are right."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from warploom.catalogue import entries, find, find_function
from warploom.emit import BACKENDS, emit
from warploom.emit.hip import HARDWARE_WARP, HIP
from warploom.emit.index_function import index_function
from warploom.emit.language import function_text
from warploom.errors import EmitError
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import f32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.layout.language.parse import parse
from warploom.machine.record import machine_named

PREAMBLE = Path(__file__).with_name("hip_preamble.h")
CLANG = next(filter(None, map(shutil.which, ("clang", "clang-19", "clang-16", "clang-14"))), None)
ACCEPT = ("-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "--offload-arch=gfx90a",
          "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-const-variable")  # fmt: skip
WIDE = HARDWARE_WARP


def accepted(text: str, tmp_path: Path) -> str:
    """What clang says of a text; nothing, if it takes it."""
    assert CLANG is not None
    file = tmp_path / "kernel.hip"
    file.write_text(text)
    command = [CLANG, *ACCEPT, "-include", str(PREAMBLE), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


needs_clang = pytest.mark.skipif(CLANG is None, reason="there is no clang")


def reversed_warps(lanes: int) -> Kernel:
    """Each warp gives its elements in reverse, and adds what lanes across and above hold."""
    b = Builder("reversed_warps", block=(2 * lanes, 1, 1), warp_size=lanes)
    n = b.scalar("n")
    x, y = b.array("x", f32, n, const=True), b.array("y", f32, n)
    b.grid(ceil_div(n, 2 * lanes))
    at = b.let("at", b.block_x * (2 * lanes) + b.thread)
    v, w, u, d = (b.register(name, f32) for name in "vwud")
    b.set(v, x.at(at, when=at.lt(n)))
    b.set(w, b.shuffle(v, lanes - 1 - b.lane))
    b.set(u, b.shuffle(w, lanes // 2, "xor"))
    b.set(d, b.shuffle(w, 3, "down"))
    b.barrier("warp")
    with b.when(at.lt(n)):
        y[at] = w + u * 2.0 + d * 3.0
    return b.done()


def test_its_warps_are_those_of_the_machines_record() -> None:
    assert HARDWARE_WARP == machine_named("gfx942").lanes == 64


def test_every_language_is_in_the_one_list() -> None:
    assert list(BACKENDS) == ["cuda", "hip", "opencl", "c"]
    with pytest.raises(EmitError, match="no language 'metal'") as caught:
        emit(reversed_warps(32), "metal")
    assert "hip" in caught.value.advice


def test_functions_that_move_items_of_any_type_are_refused() -> None:
    with pytest.raises(EmitError, match="items of any type, and has no text in hip"):
        function_text(find_function("transpose").kernel(), "hip")


def test_a_function_has_cudas_text_but_for_words_of_its_own() -> None:
    """Lanes are counted in the hardware's warp, and barriers are of a warp that may be a part."""
    texts = [
        function_text(find_function("permute-tile").kernel(), each) for each in ("cuda", "hip")
    ]
    cuda, hip = (text[text.index("void permute_tile_4") :] for text in texts)
    assert "const int lane = thread % 32;" in hip
    hip = hip.replace("  const int thread = warploom_lane();\n", "")
    hip = hip.replace("const int lane = thread % 32;", "const int lane = warploom_lane();")
    assert hip.replace(HIP.warp_barrier, "__syncwarp();") == cuda


@needs_clang
@pytest.mark.parametrize("name", ["permute-tile", "inclusive-scan", "exclusive-scan"])
def test_clang_takes_a_function(name: str, tmp_path: Path) -> None:
    assert accepted(function_text(find_function(name).kernel(), "hip"), tmp_path) == ""


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_a_kernel_of_so_many_lanes_is_right_on_the_simulator(lanes: int) -> None:
    x = np.arange(4 * lanes, dtype=np.float32) ** 2 % 97
    y = np.zeros_like(x)
    run(reversed_warps(lanes), [x.size, x, y])
    back = x.reshape(-1, lanes)[:, ::-1]
    lane = np.arange(lanes)
    above = back[:, np.where(lane + 3 < lanes, lane + 3, lane)]
    wanted = back + back[:, lane ^ lanes // 2] * 2 + above * 3
    assert (y.reshape(-1, lanes) == wanted).all()


def test_shuffles_have_a_width_and_no_mask() -> None:
    text = emit(reversed_warps(64), "hip")
    assert re.findall(r"__shfl\w*", text) == ["__shfl", "__shfl_xor", "__shfl_down"]
    assert text.count(", 64);") == 3
    assert "_sync(" not in text
    assert "__launch_bounds__(128)" in text
    assert "asm" not in text
    with pytest.raises(EmitError, match="CUDA has warps of 32 lanes"):
        emit(reversed_warps(64), "cuda")


@needs_clang
@pytest.mark.parametrize("name", entries())
def test_clang_takes_the_text(name: str, tmp_path: Path) -> None:
    assert accepted(emit(find(name).kernel(), "hip"), tmp_path) == ""


@needs_clang
@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_clang_takes_a_kernel_of_so_many_lanes(lanes: int, tmp_path: Path) -> None:
    assert accepted(emit(reversed_warps(lanes), "hip"), tmp_path) == ""


@needs_clang
@pytest.mark.parametrize("layout", ["(32,32):(33,1)", "S<5,0,5> o (32,32):(32,1)"])
def test_clang_takes_an_index_function(layout: str, tmp_path: Path) -> None:
    assert accepted(index_function(parse(layout), "hip"), tmp_path) == ""


@needs_clang
def test_clang_refuses_what_is_wrong(tmp_path: Path) -> None:
    text = emit(reversed_warps(64), "hip").replace("__shfl_xor(", "__shfl_xor_sync(~0u, ")
    assert "__shfl_xor_sync" in accepted(text, tmp_path)
