"""Proofs on the command line: written beside an answer, checked without the search."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples" / "sketches"


def test_from_the_command_line(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sums = str(EXAMPLES / "sums.swflow")
    assert cli("synth", sums, "--certificate", "c.json").status == 0
    ran = cli("verify", "c.json")
    assert ran.status == 0
    assert "each of the 4 cells of 'sum' holds its goal, called 'trove_sum{n=3}'" in ran.out
    text = Path("c.json").read_text()
    Path("d.json").write_text(text.replace("x0", "x1", 1))
    assert cli("verify", "d.json").status == 1
    none = cli("synth", str(EXAMPLES / "impossible.swflow"), "--certificate", "e.json")
    assert none.status == 1
    assert not Path("e.json").exists()


def test_a_file_without_end_is_not_read_to_its_end(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warploom.cli.verify.MOST_BYTES", 1000)
    ran = cli("verify", "/dev/zero")
    assert (ran.status, ran.err) == (2, "/dev/zero is larger than 1000 bytes\n")
