"""CUDA kernels compiled by nvcc, as kept text and as compiled now, against NumPy."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.ptx.programs import PROGRAMS, Program

from warploom import ptx

HERE = Path(__file__).parent


RACY = ("spin", "compare_and_swap")  # on purpose


def run(module: ptx.LoadedModule, program: Program, **options: Any) -> ptx.Report:
    before, args = program.make(), program.make()
    kernel = module.kernel(program.name)
    report = kernel.launch(
        program.grid, program.block, args, shared_bytes=program.shared_bytes, **options
    )
    for number, want in program.expected(before).items():
        np.testing.assert_array_equal(args[number], want, err_msg=f"argument {number}")
    return report


@lru_cache
def kept(name: str) -> ptx.LoadedModule:
    path = HERE / "golden" / "nvcc" / f"{name}.ptx"
    return ptx.load(path.read_text(), path.name)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("batch_threads", [1, 300, 1 << 14])
def test_kept_text(program: Program, batch_threads: int) -> None:
    run(kept(program.file), program, batch_threads=batch_threads)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.name not in RACY], ids=lambda p: p.name
)
def test_no_false_alarms(program: Program) -> None:
    run(kept(program.file), program, races=True, counters=True)


@lru_cache
def compiled(name: str) -> str:
    source = HERE / "cuda" / f"{name}.cu"
    if shutil.which("nvcc"):
        command = ["nvcc", "-ptx", "-arch=sm_80", str(source), "-o", "-"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return _by_nvrtc(source)


def _by_nvrtc(source: Path) -> str:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(source.read_bytes(), source.name.encode(), 0, [], [])
    options = [b"--gpu-architecture=compute_80", b"--device-int128"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = bytearray(size)
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0").decode()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_compiled_now(program: Program) -> None:
    run(ptx.load(compiled(program.file), f"{program.file}.ptx"), program)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_compiled_by_nvrtc(program: Program) -> None:
    text = _nvrtc_text(program.file)
    assert ptx.show(ptx.parse(text)) == text
    run(ptx.load(text, f"{program.file}.ptx"), program)


@lru_cache
def _nvrtc_text(name: str) -> str:
    return _by_nvrtc(HERE / "cuda" / f"{name}.cu")


def test_report() -> None:
    """Sectors, conflicts and divergence of a transposition, counted by hand."""
    program = next(p for p in PROGRAMS if p.name == "transpose")
    text = (HERE / "golden" / "nvcc" / "kernels.ptx").read_text()
    args = [np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32), 64, 64]
    report = ptx.load(text).kernel(program.name).launch((2, 2), (32, 8), args, counters=True)
    counters = report.counters
    warps = 4 * 8 * 4  # blocks, warps of a block, rows of a warp
    assert counters.global_loads.requests == counters.global_stores.requests == warps
    assert counters.global_loads.sectors == counters.global_stores.sectors == 4 * warps
    assert counters.shared.conflicts == 0
    assert counters.barriers == 4
    assert counters.divergent_branches == 0
    assert report.mix["bar"] == 4 * 256
    assert report.thread_instructions == sum(report.mix.values())
