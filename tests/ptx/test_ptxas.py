"""The drop-in for ptxas: what it passes on, what it changes, and what it does in trouble."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from warploom.ptx import ptxas

READ_ONLY = """.version 8.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 B)
{
    .reg .b32 %r<2>; .reg .f32 %f<4>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [A]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.nc.f32 %f1, [%rd3]; ld.global.nc.f32 %f2, [%rd3+4]; add.f32 %f3, %f1, %f2;
    ld.param.u64 %rd4, [B]; st.global.f32 [%rd4], %f3;
    ret;
}
"""
# A stand-in that notes its arguments and the input it was given.
FAKE = """#!/bin/sh
echo "$@" > {log}
for arg in "$@"; do case "$arg" in *.ptx) cat "$arg" > {seen};; esac; done
echo from-ptxas; echo to-stderr >&2
{extra}
exit {status}
"""


class Bench:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.log, self.seen = folder / "log", folder / "seen"
        self.input = folder / "in.ptx"
        self.input.write_text(READ_ONLY)
        self.monkeypatch = monkeypatch

    def fake(self, status: int = 0, extra: str = "") -> Path:
        path = self.folder / "bin" / "ptxas"
        path.parent.mkdir(exist_ok=True)
        path.write_text(FAKE.format(log=self.log, seen=self.seen, status=status, extra=extra))
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
        self.monkeypatch.setenv("WARPLOOM_PTXAS", str(path))
        return path


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_the_input_is_rewritten_in_a_copy(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.fake()
    status = ptxas.main(["-arch=sm_60", "--verbose", str(bench.input), "-o", "out.cubin"])
    out, err = capfd.readouterr()
    assert status == 0
    assert "from-ptxas" in out
    assert "to-stderr" in err
    assert "shfl.sync.down" in bench.seen.read_text()
    assert bench.input.read_text() == READ_ONLY
    words = bench.log.read_text().split()
    assert words[:2] == ["-arch=sm_60", "--verbose"]
    assert words[-2:] == ["-o", "out.cubin"]
    assert not Path(words[2]).exists()  # the copy is gone


def test_what_does_not_pay_goes_through_unchanged(bench: Bench) -> None:
    bench.fake()
    assert ptxas.main(["-arch", "sm_70", str(bench.input)]) == 0
    assert bench.log.read_text().split() == ["-arch", "sm_70", str(bench.input)]


def test_bad_ptx_is_passed_on_with_one_warning(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.fake(status=7)
    bench.input.write_text("}{ not ptx")
    assert ptxas.main([str(bench.input)]) == 7
    warnings = [w for w in capfd.readouterr().err.splitlines() if w.startswith("warploom-ptxas")]
    assert len(warnings) == 1
    assert bench.seen.read_text() == "}{ not ptx"


def test_a_fault_of_ours_is_passed_over(
    bench: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.fake()

    def broken(*args: object, **options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(ptxas, "rewrite", broken)
    assert ptxas.main([str(bench.input)]) == 0
    assert capfd.readouterr().err.count("warploom-ptxas") == 1


def test_a_rejected_rewrite_is_assembled_from_the_original(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.fake(extra=f"grep -q shfl {bench.seen} && exit 9")
    assert ptxas.main(["-arch=sm_60", str(bench.input)]) == 0
    assert bench.seen.read_text() == READ_ONLY
    assert capfd.readouterr().err.count("warploom-ptxas") == 1


def test_without_an_input_the_arguments_are_passed_on(bench: Bench) -> None:
    bench.fake(status=3)
    assert ptxas.main(["--version"]) == 3
    assert bench.log.read_text().strip() == "--version"


def test_the_value_of_an_option_is_no_input(bench: Bench) -> None:
    out = bench.folder / "out.cubin"
    out.write_text("old")
    assert ptxas.inputs(["-o", str(out), str(bench.input)]) == [2]


def test_it_does_not_find_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bench.folder / "first", bench.folder / "second"
    for folder in (first, second):
        folder.mkdir()
        shutil.copy(bench.fake(), folder / "ptxas")
    monkeypatch.setattr("sys.argv", [str(first / "ptxas")])
    path = os.pathsep.join([str(first), str(second)])
    assert ptxas.find_ptxas(None, path) == str(second / "ptxas")
    assert ptxas.find_ptxas(str(first / "ptxas"), path) is None


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ["sm_60", "sm_70"])  # rewritten, and passed on as it is
def test_a_chain_of_scripts_ends_with_one_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    """A script of the name ptxas, as people put one before the real, calls the drop-in again."""
    script = bench.folder / "bin" / "ptxas"
    script.parent.mkdir()
    python = f"PYTHONPATH='{Path(ptxas.__file__).parents[2]}' exec '{sys.executable}'"
    script.write_text(
        f"#!/bin/sh\necho >> '{bench.log}'\n[ $(wc -l < '{bench.log}') -gt 3 ] && exit 99\n"
        f'{python} -m warploom.ptx.ptxas "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("WARPLOOM_PTXAS", raising=False)
    ran = subprocess.run(
        [script, f"-arch={arch}", bench.input], capture_output=True, text=True, check=False
    )
    assert ran.returncode == ptxas.NO_END
    assert ran.stderr.splitlines() == [
        f"warploom-ptxas: error: {script} calls warploom-ptxas again; "
        "set WARPLOOM_PTXAS to the path of the real ptxas"
    ]
    assert bench.log.read_text().count("\n") == 2


def test_no_ptxas_at_all_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("WARPLOOM_PTXAS", raising=False)
    assert ptxas.main(["x.ptx"]) == ptxas.NOT_FOUND
    assert "no real ptxas" in capfd.readouterr().err


def test_what_is_no_program_is_said_once(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.fake().write_text("no program")
    assert ptxas.main(["-arch=sm_60", str(bench.input)]) == ptxas.NOT_RUNNABLE
    assert capfd.readouterr().err.count("warploom-ptxas") == 1


def test_a_signal_gives_the_status_of_a_shell(bench: Bench) -> None:
    bench.fake(extra="kill -SEGV $$")
    assert ptxas.main(["--version"]) == 128 + 11


def test_without_a_folder_to_write_to_the_original_is_assembled(
    bench: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.fake(status=4)

    def refuse(prefix: str) -> None:
        raise FileNotFoundError(f"no folder for {prefix}")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    assert ptxas.main(["-arch=sm_60", str(bench.input)]) == 4
    assert bench.seen.read_text() == READ_ONLY
    assert capfd.readouterr().err.count("warploom-ptxas") == 1


def test_odd_names_of_inputs(bench: Bench) -> None:
    bench.fake()
    odd = bench.folder / "a b ü 'x' $y.ptx"
    odd.write_text(READ_ONLY)
    assert ptxas.main(["-arch=sm_60", "-fmad", "false", str(odd)]) == 0
    assert "shfl" in bench.seen.read_text()
    assert odd.read_text() == READ_ONLY
