"""What the scripts of `bench/` share: options, rows that are kept, and the environment line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from bench import harness
from warploom.bench import script


def test_rows_that_are_there_stay_and_failed_ones_are_made_again(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    rows = {"kept": {"seconds": 1}, "lost": {"failed": "before"}}
    asked = []

    def make(name: str) -> dict[str, int]:
        asked.append(name)
        if name == "bad":
            raise ZeroDivisionError("surprise")
        return {"seconds": 2}

    names = ["kept", "lost", "bad", "other"]
    harness.measured(rows, names, make, lambda _: harness.save(file, rows), only="")
    assert asked == ["lost", "bad", "other"]
    assert rows["bad"] == {"failed": "ZeroDivisionError: surprise"}
    assert harness.earlier(file) == rows
    assert harness.earlier(file, again=True) == {}
    assert harness.earlier(tmp_path / "none.json", []) == []
    harness.measured(rows, ["a word", "another"], make, only="word")
    assert asked[3:] == ["a word"]


def test_options_are_the_same_everywhere() -> None:
    parser = harness.arguments("What it does.", "x.json", dry="no GPU", only="names", resumes=True)
    asked = parser.parse_args(["--dry", "--only", "w"])
    assert (asked.dry, asked.only, asked.again) == (True, "w", False)
    assert asked.out == harness.RESULTS / "x.json"
    assert parser.parse_args(["--again"]).again
    assert not parser.parse_args(["--resume"]).again


def test_a_script_leaves_its_environment_line(tmp_path: Path) -> None:
    file = tmp_path / "store.json"
    words = ["-m", "bench.search.store", "--seconds", "0.1", "--processes", "1", "--out", str(file)]
    subprocess.run([sys.executable, *words], cwd=harness.ROOT, check=True, capture_output=True)
    record = json.loads(file.read_text())
    assert record["command"] == "python -m bench.search.store --seconds 0.1 --processes 1"
    assert {"date", "machine"} <= record.keys()


def test_the_command_finds_scripts(cli: Cli) -> None:
    assert "release.floors" in cli("bench", "--list").out
    assert cli("bench", "release.floors", "--", "--extra", "smt").status == 0
    assert cli("bench", "release.floors", "--quick").status == 2
    assert "did you mean ptx.speed?" in cli("bench", "ptx.sped").err
    assert "is not an argument of a table" in cli("bench", "synth", "more").err


def test_an_installed_package_has_no_scripts(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "CHECKOUT", tmp_path)
    ran = cli("bench", "ptx.speed")
    assert ran.status == 2
    assert "are not in the package" in ran.err
    assert "in a checkout" in ran.err
