"""Compiling CUDA without a GPU, and what the assembler says about registers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from bench.common.kernel import kernels

import warploom
from warploom.emit.cuda import cuda
from warploom.errors import AbsentError, DeviceError, UnsupportedError
from warploom.kernel.ir import Kernel
from warploom.runtime import compile as compiling
from warploom.runtime.compile import Compiler, compile_cuda, parse_usage, usage
from warploom.without_gpu.cuda_kernel import compiled_text

needs_compiler = pytest.mark.skipif(not compiling.can_compile(), reason="no CUDA compiler")
KERNELS: list[Callable[[], Kernel]] = [
    kernels.transpose,
    kernels.stencil,
    kernels.aos_to_soa,
    kernels.convolution,
]


def compilers() -> list[Compiler]:
    found: list[Compiler] = []
    try:
        import_module("cuda.bindings.nvrtc")
        found.append("nvrtc")
    except ImportError:
        pass
    return [*found, "nvcc"] if shutil.which("nvcc") else found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_every_kernel_compiles(compiler: Compiler, arch: str) -> None:
    text = "\n".join(cuda(each()) for each in KERNELS)
    compiled = compile_cuda(text, arch, compiler=compiler)
    assert compiled.compiler == compiler
    assert f".target {arch}" in compiled.text
    for name in ("transpose", "stencil", "aos3", "convolution"):
        assert f".entry {name}(" in compiled.text


@needs_compiler
@pytest.mark.parametrize("make", KERNELS)
def test_no_kernel_leaves_its_registers(make: Callable[[], Kernel]) -> None:
    kernel = make()
    found = usage(cuda(kernel))[kernel.name]
    assert found.stays_in_registers
    assert 0 < found.registers < 64
    if kernel.name == "transpose":
        assert found.shared_bytes == 32 * 33 * 4


@pytest.mark.parametrize("compiler", compilers())
def test_what_a_compiler_says_is_written_into_room_of_its_own(compiler: Compiler) -> None:
    """An empty log is one byte, and Python has one object for all bytes of one value."""
    assert not compile_cuda('extern "C" __global__ void nothing() {}', compiler=compiler).log
    every = bytes(range(256))
    assert [every[value : value + 1][0] for value in range(256)] == list(range(256))


@needs_compiler
def test_machine_code_is_no_text() -> None:
    compiled = compile_cuda(cuda(kernels.stencil()), kind="cubin")
    assert compiled.code[:4] == b"\x7fELF"
    with pytest.raises(DeviceError, match="no text"):
        compiled.text  # noqa: B018


@needs_compiler
def test_the_compilers_message_is_shown() -> None:
    with pytest.raises(DeviceError, match=r"does not compile for sm_90:\n.*undefined"):
        compile_cuda('extern "C" __global__ void f() { nonsense(); }')


def test_an_unknown_architecture() -> None:
    with pytest.raises(DeviceError, match="'--help' is no GPU architecture"):
        compile_cuda("", "--help")


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_nvrtc", lambda: None)
    monkeypatch.setattr(compiling, "find_program", lambda name: None)
    with pytest.raises(UnsupportedError, match="cuda-bindings") as caught:
        compile_cuda("")
    assert ".[nvrtc]" in str(caught.value)


def test_usage_of_several_kernels() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'f' for 'sm_90'
ptxas info    : Function properties for f
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack, 4224 bytes smem
ptxas info    : Compiling entry function 'g' for 'sm_90'
ptxas info    : Used 10 registers
"""
    found = parse_usage(log)
    assert (found["f"].registers, found["f"].spill_stores, found["f"].spill_loads) == (255, 8, 4)
    assert found["f"].shared_bytes == 4224
    assert not found["f"].stays_in_registers
    assert found["g"].stays_in_registers


CLANG = """#!/bin/sh
echo "$@" > "{folder}/asked"
while [ "$1" != "-o" ]; do shift; done
read -r line < "$3"
case "{mode} $line" in
good*|bad*probe*) echo ".version 8.0" > "$2" ;;
*) echo "$3:7:5: error: use of undeclared identifier" >&2; exit 1 ;;
esac
"""


def only_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A machine that has no other compiler of CUDA text than something called clang++."""
    script = tmp_path / "clang++"
    script.write_text(CLANG.format(folder=tmp_path, mode=mode))
    script.chmod(0o755)
    monkeypatch.setattr("warploom.runtime.compile._nvrtc", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_clang_is_asked_where_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_clang(tmp_path, monkeypatch, "good")
    made = compile_cuda("text", "sm_80", options=("-lineinfo", "-DX=1"), contract=False)
    assert (made.text, made.compiler, made.kind) == (".version 8.0\n", "clang", "ptx")
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:4] == ["-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80"]
    assert {"-S", "-gline-tables-only", "-ffp-contract=off", "-DX=1"} <= set(asked)
    with pytest.raises(UnsupportedError):  # machine code is another's
        compile_cuda("text", "sm_80", kind="cubin")


def test_what_clang_says_is_said_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_clang(tmp_path, monkeypatch, "bad")
    with pytest.raises(DeviceError, match=r"mine\.cu:7:5: error: use of undeclared identifier"):
        compiled_text("text", "mine.cu", "sm_80")


def test_a_compiler_without_a_toolkit_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clang++ alone takes no CUDA text at all, which says nothing of this one."""
    only_clang(tmp_path, monkeypatch, "alone")
    with pytest.raises(AbsentError, match=r"'clang\+\+' compiles nothing for sm_90 here") as caught:
        compile_cuda(cuda(kernels.stencil()))
    assert ".[nvrtc]" in str(caught.value)


INCLUDED = """#include <cstdint>
#include <stdint.h>
extern "C" __global__ void k(std::uint32_t* x, int64_t* y) { x[threadIdx.x] = (uint8_t)y[0]; }
"""


@needs_compiler
@pytest.mark.parametrize("compiler", compilers())
def test_types_of_stdint_are_known_to_every_compiler(compiler: Compiler) -> None:
    assert ".entry k(" in compile_cuda(INCLUDED, compiler=compiler).text


@pytest.mark.skipif("nvrtc" not in compilers(), reason="no NVRTC")
def test_other_headers_of_the_host_are_advised_of() -> None:
    with pytest.raises(DeviceError, match='cannot open source file "vector"') as caught:
        compile_cuda("#include <vector>\n" + INCLUDED, compiler="nvrtc")
    assert "NVRTC has no headers of the host" in caught.value.advice


@needs_compiler
def test_emitted_cuda_needs_no_header_and_two_headers_stand_in_one_file(tmp_path: Path) -> None:
    solved = warploom.solve_layout("transpose:16x16:f32", "swizzle")
    solved.save(tmp_path / "a.cuh", name="place_a")
    solved.save(tmp_path / "b.cuh", name="place_b")
    a, b = (tmp_path / f"{each}.cuh" for each in "ab")
    parts = [
        a.read_text(), b.read_text(), a.read_text(),  # one of them twice
        warploom.device_function("load-structures", fields=3).text("cuda"),
        warploom.load("aos-to-soa", fields=3).text("cuda"),
        warploom.load("aos-to-soa", fields=3, dtype="float16").text("cuda"),
        warploom.convert_layout("(32,4):(1,32)", "(32,4):(4,1)", element="f16").text("cuda"),
    ]  # fmt: skip
    text = "\n".join(parts)
    assert "#include" not in text
    compiled = compile_cuda(text.replace("aos_to_soa_3(", "other(", 1))
    assert compiled.text.count(".entry") == 3
