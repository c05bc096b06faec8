"""CUDA C++ text to PTX or machine code without a GPU or driver: NVRTC, else nvcc or clang on PATH.

This is the only module that imports `cuda.bindings.nvrtc`.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from warploom.errors import AbsentError, DeviceError, missing_extra
from warploom.kernel.check_hopper import needs_hopper
from warploom.kernel.ir import Kernel
from warploom.process import find_program, run_command

Kind = Literal["ptx", "cubin"]
Compiler = Literal["auto", "nvrtc", "nvcc", "clang"]

DEFAULT_ARCH = "sm_90"
_ARCH = re.compile(r"sm_(\d+[a-z]?)\Z")
NVCC_TIMEOUT_S = 300.0
_PROBE = 'extern "C" __global__ void probe() {}\n'


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of a compilation and what the compiler had to say."""

    code: bytes
    kind: Kind
    arch: str
    log: str
    compiler: str

    @property
    def text(self) -> str:
        """PTX as text."""
        if self.kind != "ptx":
            raise DeviceError("machine code is no text", advice="compile with kind='ptx'")
        return self.code.rstrip(b"\0").decode()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the assembler reports for one kernel: `ptxas -v`."""

    name: str
    registers: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    shared_bytes: int = 0

    @property
    def stays_in_registers(self) -> bool:
        """No local memory and no spills."""
        return self.stack_bytes == self.spill_stores == self.spill_loads == 0


def compile_cuda(
    text: str,
    arch: str = DEFAULT_ARCH,
    *,
    kind: Kind = "ptx",
    compiler: Compiler = "auto",
    options: Sequence[str] = (),
    contract: bool = True,
) -> Compiled:
    """Compiles CUDA C++ for a compute architecture such as `sm_90`.

    With `contract`, as by default for any text, the compiler may make one rounding of a product and
    a sum; the kernels of this package are compiled without.
    """
    if not _ARCH.match(arch):
        raise DeviceError(f"'{arch}' is no GPU architecture", advice="use sm_80, sm_90, …")
    if not contract:
        options = (*options, "--fmad=false")
    nvrtc = _nvrtc() if compiler in ("auto", "nvrtc") else None
    if nvrtc is not None:
        return _compile_nvrtc(nvrtc, text, arch, kind, options)
    if compiler in ("auto", "nvcc") and find_program("nvcc") is not None:
        return _compile_nvcc(text, arch, kind, options)
    if compiler in ("auto", "clang") and kind == "ptx" and find_program("clang++") is not None:
        return _compile_clang(text, arch, options)
    raise missing_extra("cuda-bindings", "nvrtc")


def arch_of(kernel: Kernel, arch: str = DEFAULT_ARCH) -> str:
    """The architecture that a kernel is compiled for: what only Hopper has, it has under a name of
    its own, `sm_90a`."""
    if not needs_hopper(kernel):
        return arch
    if arch not in (DEFAULT_ARCH, f"{DEFAULT_ARCH}a"):
        raise DeviceError(f"'{kernel.name}' has statements of Hopper, which {arch} does not run")
    return f"{DEFAULT_ARCH}a"


def can_compile() -> bool:
    """Whether a CUDA compiler is there."""
    return _nvrtc() is not None or find_program("nvcc") is not None


def usage(
    text: str, arch: str = DEFAULT_ARCH, *, compiler: Compiler = "auto", contract: bool = False
) -> dict[str, Usage]:
    """Registers, spills and local memory of every kernel in a CUDA C++ text."""
    verbose = ("--ptxas-options=-v",)
    # NVRTC keeps what it compiled, and says nothing of a text it has seen before.
    fresh = f"{text}\n// {time.time_ns()}\n"
    compiled = compile_cuda(
        fresh, arch, kind="cubin", compiler=compiler, options=verbose, contract=contract
    )
    return parse_usage(compiled.log)


def ptx_usage(text: str, ptxas: str, seconds: float | None = None) -> dict[str, Usage]:
    """Registers, spills and local memory of kernels in PTX; empty if ptxas refuses the text."""
    target = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(text, errors="surrogateescape")
        command = [ptxas, "-v", f"-arch={target[1] if target else DEFAULT_ARCH}"]
        command += ["-o", str(Path(folder, "kernel.cubin")), str(source)]
        limit = NVCC_TIMEOUT_S if seconds is None else seconds
        ran = run_command(command, "'ptxas' could not be run", limit)
        return {} if ran.returncode else parse_usage(ran.stdout + ran.stderr)


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_usage(log: str) -> dict[str, Usage]:
    """What `ptxas -v` says, by kernel name."""
    found: dict[str, Usage] = {}
    name, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            name, frame = match[1], (0, 0, 0)
        elif match := _FRAME.search(line):
            frame = int(match[1]), int(match[2]), int(match[3])
        elif (match := _USED.search(line)) and name:
            shared = _SHARED.search(match[2])
            found[name] = Usage(name, int(match[1]), *frame, int(shared[1]) if shared else 0)
    return found


def _nvrtc() -> Any:
    """The bindings of NVRTC, or None if they or the library are not installed."""
    try:
        nvrtc = import_module("cuda.bindings.nvrtc")
    except ImportError:
        return None
    try:
        status, *_ = nvrtc.nvrtcVersion()
    except (RuntimeError, OSError):  # the bindings are there, the library is not
        return None
    return nvrtc if int(status) == 0 else None


_NO_HOST = (
    "NVRTC has no headers of the host: leave the include out, or give a file and have nvcc on PATH"
)
# NVRTC has no headers of the host. Of these people need the types alone, which are spelled as
# NVIDIA's own library spells them there, so that both may be included.
_WHOLE_NUMBERS = ("stdint.h", "cstdint")
_TYPES = (
    "#pragma once\n"
    + "".join(
        f"typedef signed {c} int{bits}_t;\ntypedef unsigned {c} uint{bits}_t;\n"
        for bits, c in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    )
    + """typedef signed long long intptr_t;
typedef unsigned long long uintptr_t;
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
}
"""
)


def _compile_nvrtc(
    nvrtc: Any, text: str, arch: str, kind: Kind, options: Sequence[str]
) -> Compiled:
    target = arch.replace("sm_", "compute_") if kind == "ptx" else arch
    flags = [f"--gpu-architecture={target}", "--std=c++17", *options]
    flags += [f"--include-path={folder}" for folder in include_folders()]
    names = [each.encode() for each in _WHOLE_NUMBERS]
    headers = [_TYPES.encode()] * len(names)
    status, program = nvrtc.nvrtcCreateProgram(
        text.encode(), b"kernel.cu", len(names), headers, names
    )
    _expect(nvrtc, status, "create a program")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(
            program, len(flags), [flag.encode() for flag in flags]
        )
        log = _fetch(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        said = log.rstrip(b"\0").decode(errors="replace").strip()
        if int(status):
            lacks = "cannot open source file" in said
            raise DeviceError(
                f"the kernel does not compile for {arch}:\n{said}",
                advice=_NO_HOST if lacks else "",
            )
        if kind == "ptx":
            code = _fetch(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        else:
            code = _fetch(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Compiled(code, kind, arch, said, "nvrtc")


def _fetch(nvrtc: Any, program: Any, size_of: Any, fill: Any) -> bytes:
    status, size = size_of(program)
    _expect(nvrtc, status, "ask for a size")
    # Room that is ours to write: bytes of length one are shared by the whole process.
    buffer = bytearray(int(size))
    (status,) = fill(program, buffer)
    _expect(nvrtc, status, "fetch the result")
    return bytes(buffer)


def _expect(nvrtc: Any, status: Any, what: str) -> None:
    if int(status):
        _, message = nvrtc.nvrtcGetErrorString(status)
        raise DeviceError(f"NVRTC could not {what}: {message.decode(errors='replace')}")


def include_folders() -> list[str]:
    """The toolkit's headers, where a toolkit is installed."""
    nvcc = find_program("nvcc")
    roots = [Path(nvcc).resolve().parents[1]] if nvcc else []
    roots.append(Path("/usr/local/cuda"))
    found = [root / "include" for root in roots if (root / "include" / "cuda_runtime.h").exists()]
    return [str(folder) for folder in found[:1]]


def _compile_nvcc(text: str, arch: str, kind: Kind, options: Sequence[str]) -> Compiled:
    command = ["nvcc", f"-arch={arch}", "-std=c++17", f"-{kind}"]
    return _compile_by(command, options, text, arch, kind)


# What nvcc's options, as this package gives them, are called there.
_FOR_CLANG = {"-lineinfo": "-gline-tables-only", "--fmad=false": "-ffp-contract=off"}


def _compile_clang(text: str, arch: str, options: Sequence[str]) -> Compiled:
    """PTX by clang, which finds the headers of a CUDA toolkit itself, or says that it does not."""
    command = ["clang++", "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={arch}"]
    command += ["-std=c++17", "-O3", "-S"]
    return _compile_by(command, [_FOR_CLANG.get(each, each) for each in options], text, arch, "ptx")


def _compile_by(
    command: Sequence[str], options: Sequence[str], text: str, arch: str, kind: Kind
) -> Compiled:
    """A compiler on PATH, which takes a file and writes one."""
    code, said = _run_compiler([*command, *options], text, kind)
    if code is not None:
        name = "clang" if command[0] == "clang++" else command[0]
        return Compiled(code, kind, arch, said, name)
    # Without a toolkit or a host compiler it says nothing about the text.
    probed, why = _run_compiler(command, _PROBE, kind)
    if probed is None:
        raise AbsentError(
            f"'{command[0]}' compiles nothing for {arch} here:\n{why}",
            advice="in the source folder: pip install '.[nvrtc]'",
        )
    raise DeviceError(f"the kernel does not compile for {arch}:\n{said}")


def _run_compiler(command: Sequence[str], text: str, kind: Kind) -> tuple[bytes | None, str]:
    """What it made, or None, and what it said."""
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        source, target = Path(folder, "kernel.cu"), Path(folder, f"kernel.{kind}")
        source.write_text(text)
        whole = [*command, "-o", str(target), str(source)]
        ran = run_command(whole, f"'{command[0]}' could not be run", NVCC_TIMEOUT_S)
        said = (ran.stdout + ran.stderr).replace(folder, "").strip()
        return (target.read_bytes() if not ran.returncode and target.exists() else None), said
