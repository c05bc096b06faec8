"""What a machine does not have is left out of a check and named; a kernel is not wrong for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from tests.cli.conftest import Cli

from warploom import runtime
from warploom.catalogue import find
from warploom.catalogue.verify import verify
from warploom.errors import AbsentError
from warploom.runtime.callable import Device

ROOT = Path(__file__).resolve().parents[2]
Patch = pytest.MonkeyPatch


class _ClError(Exception):
    """As pyopencl has one of its own."""


def _no_platform() -> list[object]:
    raise _ClError("PLATFORM_NOT_FOUND_KHR")


def no_opencl_platform(patch: Patch, _: Path) -> None:
    """pip installs pyopencl for aarch64, and no device for it."""
    cl = SimpleNamespace(get_platforms=_no_platform, Error=_ClError)
    patch.setattr("warploom.runtime.opencl.pyopencl", lambda: cl)


def no_opencl_device(patch: Patch, _: Path) -> None:
    empty = SimpleNamespace(get_devices=list)
    cl = SimpleNamespace(get_platforms=lambda: [empty], Error=_ClError)
    patch.setattr("warploom.runtime.opencl.pyopencl", lambda: cl)


def no_linker_for_pocl(patch: Patch, folder: Path) -> None:
    """It would end the process: an image for Python has PoCL by pip, and neither cc nor ld."""
    pocl = SimpleNamespace(platform=SimpleNamespace(name="Portable Computing Language"))
    platform = SimpleNamespace(get_devices=lambda: [pocl])
    cl = SimpleNamespace(get_platforms=lambda: [platform], Error=_ClError)
    patch.setattr("warploom.runtime.opencl.pyopencl", lambda: cl)
    patch.setenv("PATH", str(folder))


def no_pyopencl(patch: Patch, _: Path) -> None:
    patch.setitem(sys.modules, "pyopencl", None)


def no_programs(patch: Patch, folder: Path) -> None:
    patch.setenv("PATH", str(folder))


def c_compiler(patch: Patch, folder: Path, script: str) -> None:
    (folder / "cc").write_text(script)
    (folder / "cc").chmod(0o755)
    patch.setenv("PATH", str(folder))


def c_without_headers(patch: Patch, folder: Path) -> None:
    """A compiler that compiles nothing."""
    c_compiler(patch, folder, "#!/bin/sh\necho 'math.h: No such file or directory' >&2\nexit 1\n")


def c_for_another_machine(patch: Patch, folder: Path) -> None:
    """What it writes cannot be loaded; nor can anything from a folder mounted with noexec."""
    write = '[ "$last" = -o ] && echo other > "$each"; last=$each'
    c_compiler(patch, folder, f'#!/bin/sh\nfor each in "$@"; do {write}; done\nexit 0\n')


def c_that_writes_nothing(patch: Patch, folder: Path) -> None:
    c_compiler(patch, folder, "#!/bin/sh\n")


def c_that_is_no_program(patch: Patch, folder: Path) -> None:
    c_compiler(patch, folder, "\x7fELF of another machine")


def c_that_does_not_end(patch: Patch, folder: Path) -> None:
    patch.setattr("warploom.native._PROBE_S", 0.1)
    for each in ("compile_c", "kept_library"):
        patch.setattr(f"warploom.native.{each}.__defaults__", (0.1,))
    c_compiler(patch, folder, "#!/bin/sh\nwhile :; do /bin/sleep 1; done\n")


def no_cuda_compiler(patch: Patch, folder: Path) -> None:
    patch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    patch.setenv("PATH", str(folder))


def nvcc_without_a_host_compiler(patch: Patch, folder: Path) -> None:
    no_cuda_compiler(patch, folder)
    script = folder / "nvcc"
    script.write_text("#!/bin/sh\necho 'nvcc fatal: no host compiler' >&2\nexit 1\n")
    script.chmod(0o755)


class Absence(NamedTuple):
    device: Device
    arrange: Callable[[Patch, Path], None]
    said: str


ABSENCES = [
    Absence("opencl", no_opencl_platform, "there is no OpenCL device"),
    Absence("opencl", no_opencl_device, "there is no OpenCL device"),
    Absence("opencl", no_linker_for_pocl, "needs the linker 'ld'"),
    Absence("opencl", no_pyopencl, "'pyopencl', which is not installed"),
    Absence("c", no_programs, "no C compiler was found"),
    Absence("c", c_without_headers, "compiles nothing here"),
    Absence("c", c_for_another_machine, "compiles nothing here"),
    Absence("c", c_that_writes_nothing, "compiles nothing here"),
    Absence("c", c_that_is_no_program, "compiles nothing here"),
    Absence("c", c_that_does_not_end, "compiles nothing here"),
    Absence("ptx", no_cuda_compiler, "'cuda-bindings', which is not installed"),
    Absence("ptx", nvcc_without_a_host_compiler, "'nvcc' compiles nothing for sm_90 here"),
]


@pytest.fixture(params=ABSENCES, ids=lambda each: each.arrange.__name__)
def absence(request: pytest.FixtureRequest, monkeypatch: Patch, tmp_path: Path) -> Absence:
    found: Absence = request.param
    monkeypatch.setenv("WARPLOOM_CACHE", str(tmp_path / "cache"))  # nothing was compiled before
    (tmp_path / "bin").mkdir()
    found.arrange(monkeypatch, tmp_path / "bin")
    return found


@pytest.mark.sampled(4)
def test_a_check_leaves_out_what_is_not_there(
    absence: Absence, cli: Cli, monkeypatch: Patch, tmp_path: Path
) -> None:
    monkeypatch.setattr("warploom.cli.kernel.WITHOUT_GPU", ("simulator", absence.device))
    out = tmp_path / "check.json"
    ran = cli("kernel", "aos-sum", "--set", "fields=2", "--check", "--json", str(out))
    assert ran.status == 0, ran.out
    assert "simulator  agrees on" in ran.out
    (line,) = [each for each in ran.out.splitlines() if each.startswith(absence.device)]
    assert line.startswith(f"{absence.device:<10} left out: ")
    assert absence.said in line
    assert "wrong" not in ran.out
    (record,) = json.loads(out.read_text())
    assert absence.said in record["check"][absence.device]["left_out"]
    if absence.device == "ptx":
        assert "registers  left out: " in ran.out


def test_in_python_it_is_an_error_of_its_own(absence: Absence) -> None:
    entry = find("aos-sum")
    with pytest.raises(AbsentError) as caught:
        verify(entry, {"fields": 2}, absence.device)
    assert absence.said in caught.value.message
    assert caught.value.advice
    function = runtime.load(entry.kernel(fields=2), absence.device)
    with pytest.raises(AbsentError):
        function(np.ones(80, np.float32))


def test_a_sketch_of_the_users_own_where_nothing_is(
    cli: Cli, monkeypatch: Patch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE", "")  # nothing was compiled before
    no_opencl_platform(monkeypatch, tmp_path)
    no_cuda_compiler(monkeypatch, tmp_path)
    ran = cli("kernel", str(ROOT / "examples" / "sketches" / "sums.swflow"), "--check")
    assert ran.status == 0
    words = [line.split()[:2] for line in ran.out.splitlines()]
    assert words == [
        ["simulator", "agrees"], ["c", "left"], ["opencl", "left"], ["ptx", "left"],
        ["registers", "left"],
    ]  # fmt: skip


def test_conversions_leave_out_the_compiler(cli: Cli, monkeypatch: Patch, tmp_path: Path) -> None:
    no_cuda_compiler(monkeypatch, tmp_path)
    out = tmp_path / "convert.json"
    given = ["layout", "convert", "--from", "(32,4):(4,1)", "--to", "(32,4):(1,32)", "--check"]
    ran = cli(*given, "--way", "shuffles", "--json", str(out))
    assert ran.status == 0
    assert "  simulator: right\n  ptx: left out: this needs" in ran.out
    (record,) = json.loads(out.read_text())
    assert record["check"]["simulator"] == {"wrong": ""}
    assert "cuda-bindings" in record["check"]["ptx"]["left_out"]


@pytest.mark.parametrize(
    ("arrange", "where", "said"),
    [(no_opencl_platform, "opencl", "there is no OpenCL device"),
     (no_programs, "c", "no C compiler was found")],
)  # fmt: skip
def test_nothing_is_measured_where_nothing_is(
    cli: Cli, monkeypatch: Patch, tmp_path: Path,
    arrange: Callable[[Patch, Path], None], where: str, said: str,
) -> None:  # fmt: skip
    arrange(monkeypatch, tmp_path)
    ran = cli("map", "matmul", "--size", "m=32,n=32,k=32", "--tune", "--on", where, "--no-store")
    assert ran.status == 2
    assert said in ran.err


def test_without_z3_the_second_engine_names_its_extra(cli: Cli, monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    sketch = str(ROOT / "examples" / "sketches" / "sums.swflow")
    ran = cli("synth", sketch, "--engine", "smt", "--no-store")
    assert ran.status == 2
    assert ".[smt]" in ran.err
    assert cli("synth", sketch, "--no-store").status == 0
