"""Emitted texts stand in one file: side by side, and beside a user's own functions."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.running import implementations
from tests.emit.test_hip import accepted, needs_clang
from tests.tools import require

import warploom
from warploom import runtime
from warploom.catalogue import entries, find, find_function, function_entries
from warploom.emit import emit
from warploom.emit.index_function import index_function
from warploom.emit.language import function_text
from warploom.kernel.build import Builder, cast
from warploom.kernel.dtype import f16, f32, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.layout.formats.function_name import function_name
from warploom.layout.language.parse import parse
from warploom.loopnest.build import LoopNest
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.native import c_compiler
from warploom.runtime.compile import compile_cuda

# A user's own functions, called like our helpers, with another meaning.
NAMES = ("floor_div", "floor_mod", "shift_left", "max_f32", "i32_from_f32", "inside", "bf16_pair")
USERS = "".join(f"DEVICE int {name}(int x, int y) {{ return x - y; }}\n" for name in NAMES)
LAYOUTS = {
    "(32,32):(33,1)": "padded",
    "S<3,4,3> o (64,64):(64,1)": "swizzled",
}


def users(language: str) -> str:
    return USERS.replace("DEVICE", "__device__" if language in ("cuda", "hip") else "")


def with_helpers(name: str = "helped") -> Kernel:
    """A kernel whose text calls helpers of every kind, with arrays that are called like them."""
    k = Builder(name, block=32)
    x = k.array("floor_mod", f32, 32, const=True)
    weights = k.constant("weights", f32, 3)
    y = k.array(f"{name}_floor_mod", i32, 128)
    codes = k.array("inside", f16, 32)
    v = k.register("v", f32)
    k.set(v, x[(k.lane - 5) % 7])
    k.set(v, v.max(weights[k.lane * 5 % 3]))
    codes[k.lane] = cast(f16, v)
    y[(k.lane - 40) // 3 + 14 + ((k.lane - 3) << 1) + 6] = cast(i32, v)
    return k.done()


def kernels(settings: int) -> Iterator[Kernel]:
    """Each kernel of the catalogue with so many settings, and each of these under two names."""
    for name in entries():
        entry = find(name)
        for kernel in [entry.kernel(**each) for each in entry.variants[:settings]]:
            yield kernel
            yield replace(kernel, name=f"{kernel.name}_again")


def pasted(language: str, found: Iterator[Kernel]) -> str:
    both = (with_helpers(), with_helpers("helped_again"))
    return users(language) + "\n".join(emit(each, language) for each in (*found, *both))


def c_compiled(text: str, folder: Path) -> str:
    """What a C compiler says of a text."""
    require("c")
    source = folder / "pasted.c"
    source.write_text(text)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-function", "-fsyntax-only"]
    command = [str(c_compiler()), *flags, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("settings", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_of_every_kernel_as_c(tmp_path: Path, settings: int) -> None:
    text = pasted("c", kernels(settings))
    assert len(re.findall(r"^void ", text, re.MULTILINE)) >= 20 * settings
    assert c_compiled(text, tmp_path) == ""


@pytest.mark.slow
def test_two_of_every_kernel_as_cuda() -> None:
    require("ptx")
    text = pasted("cuda", kernels(2))
    assert compile_cuda(text).text.count(".entry") == text.count('extern "C"') >= 40


def test_kernels_with_helpers_and_constants_as_cuda() -> None:
    require("ptx")
    first = find("convolution-1d").kernel(taps=3)
    text = pasted("cuda", iter([first, replace(first, name="again")]))
    assert "struct again_" in text
    assert compile_cuda(text).text.count(".entry") == 4


@needs_clang
def test_two_of_every_kernel_as_hip(tmp_path: Path) -> None:
    assert accepted(pasted("hip", kernels(2)), tmp_path) == ""


def test_functions_of_every_kind_as_c(tmp_path: Path) -> None:
    """Of device functions, those of two settings; of index functions, each under two names."""
    found = [find_function(name) for name in function_entries()]
    texts = [function_text(e.kernel(**v), "c") for e in found for v in e.variants[:2]]
    texts += [
        index_function(parse(layout), "c", name + end)
        for layout, name in LAYOUTS.items()
        for end in ("", "_again")
    ]
    assert c_compiled(users("c") + "\n".join(texts), tmp_path) == ""


@pytest.mark.parametrize("device", ["c", "ptx", "opencl"])
def test_names_of_helpers_do_not_hide_arrays(device: Any) -> None:
    require(device)
    kernel = with_helpers()
    rng = np.random.default_rng(28)
    x, weights = ((rng.normal(size=n) * 9).astype(np.float32) for n in (32, 3))

    def arguments() -> list[np.ndarray]:
        return [x, weights, np.zeros(128, np.int32), np.zeros(32, np.float16)]

    expected, made = arguments(), arguments()
    run(kernel, expected)
    runtime.load(kernel, device)(*made)
    assert expected[2].any()
    assert all(np.array_equal(*pair) for pair in zip(expected, made, strict=True))


def test_a_users_names_stay() -> None:
    """Only what a helper of this very text is called is renamed."""
    for language in ("cuda", "hip", "opencl", "c"):
        text = emit(with_helpers(), language)
        assert re.search(r"\bfloor_mod\[", text)
        assert re.search(r"\binside\[", text)
        assert "helped_floor_mod(" in text
        assert "helped_floor_mod_[" in text


def test_names_of_a_loop_nest_stay() -> None:
    """Arrays are called as in the program, counters begin with the name of their axis."""
    nest = LoopNest("blur")
    row, tap = nest.axis("row", 16, 4), nest.axis("tap", 8, 4)
    nest.array("blurred", row)[row] = nest.sum(nest.array("image", 16, 8)[row, tap], over=tap)
    space = NestSpace(nest.done(), everything(H200))
    for made in implementations(space, 3, seed=1):
        text = emit(lower(made), "cuda")
        assert re.search(r"const float\* __restrict__ image, float\* __restrict__ blurred", text)
        counters = re.findall(r"for \(int (\w+) =", text)
        assert all(re.match("row|tap", each) for each in counters)


def test_layouts_and_conversions_have_names_of_their_own() -> None:
    """Two of each in one file, by the names that they have if nobody gives any."""
    require("ptx")
    layouts = [warploom.solve_layout(each) for each in ("transpose:32x32:f32", "blocks:32x32")]
    pairs = [("(32,4):(1,32)", "(32,4):(4,1)"), ("(32,4):(4,1)", "(32,4):(1,32)")]
    conversions = [warploom.convert_layout(*each, way="shuffles") for each in pairs]
    results = [*layouts, *conversions]
    texts = [each.text("cuda") for each in results]
    assert compile_cuda("\n".join(texts)).text.count(".entry") == 2
    assert all("// Verdict: " in each for each in texts)
    assert "place_blocks_32x32(" in texts[1]
    assert "convert_32_4_1_32_to_32_4_4_1_128_b32(" in texts[2]
    assert " mine(" in layouts[0].text("c", name="mine")
    assert "\nmine(" in conversions[0].text("cuda", name="mine")


def test_names_tell_layouts_apart() -> None:
    """Of long texts a digest does; of names of a family, such as mma_a, one of their elements."""
    long = [function_name("place", f"(4,4):(1,4){'+0' * 60}+{end}") for end in (1, 2)]
    assert long[0] != long[1]
    assert all(len(each) <= 60 for each in long)
    assert function_name("place", "(4):(-1)") != function_name("place", "(4):(1)")
    named = [
        warploom.convert_layout("mma_c()", f"mma_a({k})", shape=(16, 32), element="i8").text("cuda")
        for k in (2, 4)
    ]
    kernels = [re.search(r"convert_mma_c_\w+", each) for each in named]
    assert len({each and each[0] for each in kernels}) == 2
