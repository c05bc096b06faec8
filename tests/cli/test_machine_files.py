"""`--machine FILE`: a B200 and an MI300 of the user's own, over the five commands that take one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from warploom.machine.record import KNOWN, machine_named

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "examples" / "machines"
SAXPY = str(ROOT / "examples" / "ptx" / "saxpy.ptx")
ARGUMENTS = ("--grid", "1", "--block", "64", "--arg", "f32[64]=range", "--arg", "f32[64]=ones",
             "--arg", "f32=2", "--arg", "i32=64")  # fmt: skip
COMMANDS = {
    "map": ("map", "matvec", "--size", "m=64,n=64", "--first"),
    "explore": ("explore", "axpy", "--size", "n=12", "--evaluations", "4", "--model"),
    "layout solve": ("layout", "solve", "transpose:32x32:f32"),
    "ptx report": ("ptx", "report", SAXPY, *ARGUMENTS),
    "ptx shuffle": ("ptx", "shuffle", SAXPY, "-o", "out.ptx"),
}
# What the message names, where the command does not serve the machine.
REFUSED = {
    ("mi300", "ptx report"): "lanes = 64",
    ("mi300", "ptx shuffle"): "lanes = 64",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("machine", ["b200", "mi300"])
def test_a_users_machine_serves_or_the_field_is_named(
    cli: Cli, machine: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(FILES / f"{machine}.toml")
    ran = cli(*COMMANDS[command], "--machine", file)
    wanted = REFUSED.get((machine, command))
    assert ran.status == (0 if wanted is None else 2), ran.err
    if wanted is not None:
        assert wanted in ran.err
        assert file in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_record_of_a_name_alone_is_refused_by_its_first_missing_field(
    cli: Cli, command: str, tmp_path: Path
) -> None:
    mine = tmp_path / "bare.toml"
    mine.write_text("lanes = 32\n")
    ran = cli(*COMMANDS[command], "--machine", str(mine))
    assert ran.status == 2
    assert "the record of the machine 'bare' has no field '" in ran.err
    assert str(mine) in ran.err
    assert "warploom machines" in ran.err


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_shown_is_a_record_itself(cli: Cli, name: str, tmp_path: Path) -> None:
    mine, seen = tmp_path / "mine.toml", machine_named(name)
    mine.write_text(cli("machines", name).out.replace(f'name = "{name}"', "", 1))
    read = machine_named(str(mine))
    assert read.missing == seen.missing
    plain = {k: v for k, v in vars(seen).items() if isinstance(v, int | tuple)}
    assert plain.items() <= vars(read).items()
    if "serving" in vars(seen):
        assert read.serving.groups == seen.serving.groups
    if "rates" in vars(seen):
        assert read.rates.device == seen.rates.device


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lanes = 32\nlanse = 3", "no field 'lanse'"),
        ("lanes = 33", "power of two"),
        ("lanes = true", "whole number"),
        ("block_sides = [1, 2]", "block_sides"),
        ('like = "nothing"', "like"),
        ('name = "h200"', "built in"),
        ("lanes = 32\n[times]\nclock = 1", "times.launch' is missing"),
        ('lanes = 32\n[times]\nlike = "mali"', "times.like"),
        ("lanes = 32\nbanks = 32\nbank_bytes = 4\n[serving]\nld4 = [1, 1]", "sum of others"),
        ("lanes = 32\nbanks = 32\nbank_bytes = 4\n[serving]\nld5 = [1]", "ld5"),
        ("rates = 3", "no table"),
        ("lanes = ", "Invalid value"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_located_error(
    cli: Cli, text: str, said: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    ran = cli("machines", str(mine))
    assert ran.status == 2
    assert said in ran.err
    assert "mine.toml" in ran.err


def test_a_layout_for_a_users_machine_has_a_certificate(cli: Cli, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    ran = cli("layout", "solve", "transpose:64x64:f32", "--machine", str(FILES / "mi300.toml"),
              "--certificate", str(proof))  # fmt: skip
    assert ran.status == 0, ran.err
    assert json.loads(proof.read_text())[0]["problem"]["machine"]["lanes"] == 64
    assert cli("verify", str(proof)).status == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r"^clock = .*", "clock = 0", "rates.clock = 0"),
        (r"dram = [\d.]+", "dram = 0", "'rates.device.dram' is missing, or zero"),
        (r", dram = [\d.]+", "", "'rates.device.dram' is missing, or zero"),
        (r'"\+" = ', "plus = ", "'rates.instructions.+' is missing"),
    ],
)
def test_rates_are_above_zero(cli: Cli, tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (FILES / "b200.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE))
    assert file.read_text() != text
    ran = cli(*COMMANDS["explore"], "--machine", str(file))
    assert ran.status == 2
    assert said in ran.err
