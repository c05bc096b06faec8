"""A command that takes too long ends, and with it all that it started."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tools import is_here

from warploom.bench.measure import Request, apart
from warploom.errors import DeviceError
from warploom.kernel.dtype import DType
from warploom.native import c_compiler, compile_c
from warploom.process import find_program, python_command, run_command
from warploom.ptx.ptxas import find_ptxas
from warploom.runtime import host
from warploom.search.workers.farm import Farm


def test_children_end_too(tmp_path: Path) -> None:
    """The child would write a file a while after its parent was given up."""
    mark = tmp_path / "mark"
    late = f"import time; time.sleep(1.5); open({str(mark)!r}, 'w')"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    with pytest.raises(DeviceError, match=r"it was slow: it took more than 0\.5 s"):
        run_command([sys.executable, "-c", parent], "it was slow", 0.5)
    time.sleep(2.0)
    assert not mark.exists()


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no alarm here")
def test_an_alarm_while_a_command_is_started_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came after the fork and before anybody owned the process, which went on by itself."""
    started: list[subprocess.Popen[str]] = []

    class Alarmed(subprocess.Popen[str]):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            started.append(self)
            signal.raise_signal(signal.SIGALRM)

    def over(_number: int, _frame: object) -> None:
        raise TimeoutError("the time is over")

    before = signal.signal(signal.SIGALRM, over)
    monkeypatch.setattr(subprocess, "Popen", Alarmed)
    try:
        with pytest.raises(TimeoutError, match="the time is over"):
            run_command([sys.executable, "-c", "import time; time.sleep(20)"], "no")
        assert signal.getsignal(signal.SIGALRM) is over
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [each.returncode for each in started] == [-signal.SIGKILL]


def test_what_it_says() -> None:
    ran = run_command([sys.executable, "-c", "print('yes'); raise SystemExit(3)"], "no")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "yes\n", "")


def test_there_is_no_such_command() -> None:
    with pytest.raises(DeviceError, match="no compiler: "):
        run_command(["warploom-has-no-such-command"], "no compiler")


PLANTED = "open(__import__('os').environ['MARK'], 'w')\n"  # says that it was run
NAMES = ("json", "pickle", "ctypes", "mmap", "hashlib", "numpy", "subprocess", "dataclasses")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder holds modules and programs with names that everybody uses; goes out the
    file that is there once one of them was run."""
    folder, mark = tmp_path / "here", tmp_path / "mark"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(PLANTED)
    for name in ("cc", "gcc", "clang", "nvcc", "clang++", "ptxas"):
        (folder / name).write_text(f"#!/bin/sh\n: > {mark}\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MARK", str(mark))
    return mark


def test_processes_import_nothing_of_the_working_folder(planted: Path) -> None:
    """A module there named json was run by every process that was started."""
    with Farm(1) as farm:
        assert farm.submit(abs, -3).result() == 3
    assert not planted.exists()
    assert apart(Request("sums", {"columns": 3}))["solutions"] >= 0
    assert not planted.exists()


@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
def test_a_call_apart_imports_nothing_of_the_working_folder(planted: Path) -> None:
    code = compile_c("void f(int *x) { x[0] = 7; }\n", ("-fPIC", "-shared"))
    x = np.zeros(1, np.int32)
    host._call_apart(code, "f", "f", [x], [DType.I32])
    assert x[0] == 7
    assert not planted.exists()


def test_a_process_looks_for_modules_where_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only this process does, and in folders that PYTHONPATH does not name."""
    monkeypatch.syspath_prepend("/no such folder, but with a comma")
    ran = run_command(python_command("print(sys.path == json.loads(sys.argv[1]))",
                                     json.dumps(sys.path)), "no")  # fmt: skip
    assert ran.stdout == "True\n"


@pytest.mark.parametrize("relative", ["", ".", "sub/.."])
def test_programs_of_the_working_folder_are_not_run(
    planted: Path, monkeypatch: pytest.MonkeyPatch, relative: str
) -> None:
    Path("sub").mkdir()
    real = planted.parent / "bin"
    real.mkdir()
    (real / "cc").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{relative}:{real}")
    assert find_program("cc") == c_compiler() == str(real / "cc")
    assert find_program("nvcc") is None
    assert find_ptxas(None, f"{relative}:{real}") is None
    with pytest.raises(DeviceError, match="it failed: 'nvcc' is not there"):
        run_command(["nvcc", "--version"], "it failed")
    assert run_command(["./nvcc"], "no").returncode == 0  # by a name that says where it is
    assert planted.exists()
