"""The overview needs no command's module, and says the same as the application."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, app

from warploom.cli.start import COMMANDS, main, overview

SUMS = str(Path(__file__).parents[2] / "examples" / "sketches" / "sums.swflow")
LOADED = """
import sys
from pathlib import Path
from warploom.cli.start import main
sys.argv = ["warploom", "--help"]
main()
own = [name for name in sys.modules if name.startswith("warploom.") and ".cli" not in name]
sys.stderr.write(repr([own, sorted({"rich", "numpy"} & set(sys.modules))]))
"""


def test_the_overview_imports_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert ran.stdout == overview() + "\n"
    # the first takes the time, the other is the base of records with pictures; no more
    assert ran.stderr == "[['warploom.began', 'warploom.pictured'], []]"


@pytest.mark.parametrize("name", ["warploom", "warploom.cli"])
def test_the_package_runs_like_the_executable(name: str) -> None:
    ran = subprocess.run([sys.executable, "-m", name], capture_output=True, text=True, check=True)
    assert ran.stdout == overview() + "\n"


def test_the_table_is_that_of_the_application(cli: Cli) -> None:
    assert {name: each.name for name, each in app.commands.items()} == {n: n for n in COMMANDS}
    assert cli("--help").out == cli().out == overview() + "\n"


def test_a_command_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for asked, said in (("sinth", "did you mean synth?"), ("42", "there are synth, ")):
        monkeypatch.setattr(sys, "argv", ["warploom", asked])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        assert said in capsys.readouterr().err


def test_ctrl_c_before_a_command_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def imported(*names: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("warploom.cli.app.application", imported)
    monkeypatch.setattr("sys.argv", ["warploom", "layout", "solve", "transpose:32x32:f32"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted before anything was begun\n"


def executable(*words: str, out: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """The executable as a shell calls it, with buffers."""
    known = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-m", "warploom", *words],
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**known, **environment},
    )


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = executable("--help", out=writer)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")  # as SIGPIPE ends others


@pytest.mark.sampled(1)
@pytest.mark.parametrize("times", [1, 2])  # as it is searched, and as it is kept
def test_output_that_cannot_be_written_is_said(tmp_path: Path, times: int) -> None:
    store = {"WARPLOOM_STORE": str(tmp_path / "store.sqlite")}
    if times == 2:
        assert executable("synth", SUMS, out=subprocess.DEVNULL, **store).returncode == 0
    with Path("/dev/full").open("w") as full:
        ran = executable("synth", SUMS, out=full.fileno(), **store)
    assert ran.returncode == 2
    assert ran.stderr.endswith("cannot write the output: No space left on device\n")
    assert "Traceback" not in ran.stderr


def test_letters_that_a_terminal_lacks_are_spelt() -> None:
    ran = executable("--help", out=subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (overview() + "\n").replace("…", "\\u2026")
    ran = executable("synth", "\udcff.txt", out=subprocess.PIPE, PYTHONIOENCODING="utf-8:strict")
    assert (ran.returncode, "no file and no known sketch" in ran.stderr) == (2, True)
