"""`warploom check`, the fixture of the pytest plugin, and pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.common.cli.tile import FILE
from tests.cli.conftest import Cli

import warploom


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_right_and_wrong(cli: Cli, file: Path, tmp_path: Path) -> None:
    ran = cli("check", f"{file}::right")
    assert ran.status == 0
    assert "mine: proved for every lane, step and warp, 2048 in all" in ran.out
    assert "1 wavefronts per request; no layout takes fewer" in ran.out
    out = tmp_path / "out.json"
    ran = cli("check", f"{file}::tile", "--size", "iteration=2", "--json", str(out))
    assert ran.status == 1
    assert "load takes 2 wavefronts, not 1" in ran.out
    assert json.loads(out.read_text())[0]["wavefronts"] == [1, 2]
    assert cli("check", f"{file}::wrong").status == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [("number", "is a int"), ("nothing", "defines no 'nothing'"), ("", "names nothing to check")],
)
def test_refused(cli: Cli, file: Path, name: str, message: str) -> None:
    ran = cli("check", f"{file}::{name}" if name else str(file))
    assert ran.status == 2
    assert message in ran.err


def test_the_fixture(file: Path) -> None:
    test = file.with_name("test_mine.py")
    test.write_text(
        "from mine import right, wrong\n"
        "def test_right(check_tile):\n    assert check_tile(right).wavefronts == (1, 1)\n"
        "def test_wrong(check_tile):\n    check_tile(wrong)\n"
    )
    package = Path(warploom.__file__).parents[1]
    given = {"PYTHONPATH": str(package), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "warploom.pytest_plugin", str(test)]
    ran = subprocess.run(
        [*command, "--rootdir", str(file.parent)],
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
        env=os.environ | given,
    )
    assert "1 failed, 1 passed" in ran.stdout
    assert "load takes 32 wavefronts, not 1" in ran.stdout


def test_pictures(cli: Cli, tmp_path: Path) -> None:
    page, drawing = tmp_path / "t.html", tmp_path / "t.svg"
    arguments = ("layout", "show", "S<5,0,5> o (32,32):(32,1)", "--pattern", "transpose:32x32:f32")
    ran = cli(*arguments, "--access", "1", "--measured", "1,2", "-o", str(page))
    assert ran.status == 0
    assert "load columns              1         2  other traffic" in ran.out
    assert "32 wavefronts" in page.read_text()
    assert cli(*arguments, "-o", str(drawing)).status == 0
    assert drawing.read_text().startswith("<svg")
    for bad, message in (
        (("--measured", "x,2"), "is not a list of numbers"),
        (("--measured", "1"), "1 figures"),
    ):
        ran = cli(*arguments, *bad)
        assert ran.status == 2
        assert message in ran.err
    assert cli("layout", "show", "(4,4):(4,1)", "-o", str(page)).status == 2
