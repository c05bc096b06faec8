"""The overview needs no command's module, and says the same as the application."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.cli.conftest import Cli, app

from warploom.cli.start import COMMANDS, main, overview

LOADED = """
import sys
from warploom.cli.start import main
sys.argv = ["warploom", "--help"]
main()
own = [name for name in sys.modules if name.startswith("warploom.") and ".cli" not in name]
sys.stderr.write(repr([own, sorted({"typer", "rich", "numpy"} & set(sys.modules))]))
"""


def test_the_overview_imports_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert ran.stdout == overview() + "\n"
    assert ran.stderr == "[[], []]"


@pytest.mark.parametrize("name", ["warploom", "warploom.cli"])
def test_the_package_runs_like_the_executable(name: str) -> None:
    ran = subprocess.run([sys.executable, "-m", name], capture_output=True, text=True, check=True)
    assert ran.stdout == overview() + "\n"


def test_the_table_is_that_of_the_application(cli: Cli) -> None:
    commands = [each.name for each in app.registered_commands]
    groups = [each.name for each in app.registered_groups]
    assert sorted(filter(None, commands + groups)) == sorted(COMMANDS)
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
    assert ended.value.code == 3
    assert capsys.readouterr().err == "interrupted before anything was begun\n"
