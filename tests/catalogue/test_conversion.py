"""Conversions as kernels: each is run, on the simulator and as compiled PTX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.catalogue import conversion
from warploom.catalogue.conversion import conversion_kernel, conversion_text, wrong_results
from warploom.errors import WarploomError
from warploom.kernel.ir import Kernel
from warploom.layout.conversion.convert import convert
from warploom.layout.formats.fragment_text import read_fragment
from warploom.ptx.table import OPCODES
from warploom.runtime.callable import Device, load
from warploom.runtime.compile import can_compile, compile_cuda

CASES = [
    ("(32,5):(1,32)", "(32,5):(5,1)", 4, None, "shuffles"),
    ("(32,8):(8,1)", "(32,8):(1,32)", 4, None, "shuffles"),
    ("(32,6):(1,32)", "(32,6):(6,1)", 8, None, "shuffles"),
    ("mma_c()", "mma_a(4)", 1, (16, 32), "shuffles"),
    ("mma_c()", "mma_a(4)", 1, (16, 32), "shared"),
    ("(32,(2,2)):(4,(1,2))", "(32,(2,2)):(4,(2,1))", 4, None, "renames"),
    ("mma_c([2,1])", "blocked([1,4],[2,16],[2,1],[1,0])", 4, (32, 32), "shared"),
    ("blocked([1,3],[4,8],[1,1],[1,0])", "blocked([1,1],[8,4],[1,1],[0,1])", 4, (8, 24), "shared"),
    ("blocked([1,1],[2,16],[1,1],[1,0])", "blocked([1,1],[1,32],[1,1],[1,0])", 2, (2, 8), "shared"),
    ("blocked([1,4],[1,32],[1,1],[1,0])", "blocked([1,1],[1,32],[1,1],[1,0])", 4, (2, 24),
     "shuffles"),
]  # fmt: skip
SLOW = [
    (f"(32,{n}):(1,32)", f"(32,{n}):({n},1)", size, None, way)
    for n in (2, 3, 4, 7, 12, 16, 32)
    for size in (1, 2, 4, 8)
    for way in ("shuffles", "shared")
]
Case = tuple[str, str, int, tuple[int, ...] | None, str]


def _wrong(case: Case, device: str) -> str:
    source, target, size, shape, way = case
    found = convert(read_fragment(source, shape), read_fragment(target, shape), size)
    return wrong_results(found, way, device)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_kernels_on_the_simulator(case: Case) -> None:
    assert _wrong(case, "simulator") == ""


@pytest.mark.sampled(2)
@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("case", CASES[:2] + CASES[3:5])
def test_kernels_as_compiled_ptx(case: Case) -> None:
    assert _wrong(case, "ptx") == ""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["simulator", "ptx"])
@pytest.mark.parametrize("case", SLOW)
def test_every_kernel(case: Case, device: str) -> None:
    if device == "ptx" and not can_compile():
        pytest.skip("no CUDA compiler")
    assert _wrong(case, device) == ""


def test_a_wrong_plan_is_noticed() -> None:
    found = convert(read_fragment("(32,4):(1,32)"), read_fragment("(32,4):(4,1)"), 4)
    assert found.shuffles is not None
    found.shuffles.sources[0, 3] ^= 1
    assert "is not what it should be" in wrong_results(found, "shuffles", "simulator")


def test_a_lost_half_of_a_long_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are tried must reach into the upper word."""
    found = convert(read_fragment("(32,2):(1,32)"), read_fragment("(32,2):(2,1)"), 8)

    def halved(kernel: Kernel, device: Device) -> Any:
        whole = load(kernel, device)
        return lambda blocks, x, y: whole(blocks, x & np.uint64(0xFFFFFFFF), y)

    assert wrong_results(found, "shared", "simulator") == ""
    monkeypatch.setattr(conversion, "load", halved)
    assert "is not what it should be" in wrong_results(found, "shared", "simulator")


def test_texts() -> None:
    found = convert(read_fragment("(32,4):(1,32)"), read_fragment("(32,4):(4,1)"), 4)
    assert conversion_text(found, "shuffles", "cuda").count("__shfl_sync") == 4
    assert "__local" in conversion_text(found, "shared", "opencl")
    with pytest.raises(WarploomError, match="there is no language 'metal'"):
        conversion_text(found, "shared", "metal")
    with pytest.raises(WarploomError, match="cannot be done by 'renames'"):
        conversion_kernel(found, "renames")


MATRICES = [
    ("blocked([1,4],[4,8],[1,1],[1,0])", "blocked([4,1],[8,4],[1,1],[0,1])", 4, (32, 32)),
    ("blocked([1,8],[4,8],[2,1],[1,0])", "blocked([8,1],[8,4],[1,2],[0,1])", 2, (32, 64)),
    ("mma_c()", "mma_a(4)", 1, (16, 32)),
    ("(32,5):(1,32)", "(32,5):(5,1)", 4, None),
]


@pytest.mark.sampled(1)
@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("case", MATRICES)
def test_matrices(case: tuple[str, str, int, tuple[int, ...] | None]) -> None:
    source, target, size, shape = case
    found = convert(read_fragment(source, shape), read_fragment(target, shape), size)
    text = conversion_text(found, "matrices", "cuda")
    assert "matrix.sync.aligned.m8n8" in text
    compile_cuda(text)
    if "ldmatrix" in OPCODES:
        assert wrong_results(found, "matrices", "ptx") == ""


def test_matrices_are_of_cuda() -> None:
    found = convert(read_fragment("(32,4):(1,32)"), read_fragment("(32,4):(4,1)"), 4)
    with pytest.raises(WarploomError, match="exist only in CUDA"):
        conversion_text(found, "matrices", "c")
