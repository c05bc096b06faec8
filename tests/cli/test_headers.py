"""The comment before an emitted kernel: the same lines for all ways in, and a command that makes it
again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

SUMS = str(Path(__file__).resolve().parents[2] / "examples" / "sketches" / "sums.swflow")
WAYS = {
    "kernel": ("kernel", "aos-to-soa", "--set", "fields=4", "--emit", "c"),
    "synth": ("synth", SUMS, "--emit", "c"),
    "map": ("map", "dot", "--size", "n=64", "--first", "--no-store", "--emit", "c"),
    "explore": ("explore", "axpy", "--size", "n=64", "--model", "--evaluations", "2",
                "--no-store", "--emit", "c"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_header_says_launch_verdict_and_command(cli: Cli, tmp_path: Path, way: str) -> None:
    out = tmp_path / "first.c"
    ran = cli(*WAYS[way], "-o", str(out))
    assert ran.status == 0, ran.err
    text = out.read_text()
    comment = [line for line in text.splitlines() if line.startswith("//")]
    for word in ("Verdict:", "Command:", "Launch:"):
        assert any(line.startswith(f"// {word}") for line in comment), comment
    command = next(line for line in comment if line.startswith("// Command: warploom "))
    assert str(tmp_path) not in command  # where it went makes no difference
    again = tmp_path / "again.c"
    asked = shlex.split(command.removeprefix("// Command: warploom "))
    ran = cli(*asked, "-o", str(again), *(["--no-store"] if way in ("map", "explore") else []))
    assert ran.status == 0, ran.err
    assert again.read_text() == text


def test_what_was_not_run_says_so(cli: Cli) -> None:
    ran = cli("map", "dot", "--size", "n=64", "--first", "--no-store", "--emit", "cuda")
    assert "// Verdict: bounds, types and barriers were checked; it was not run." in ran.out
    assert re.search(r"// Schedule: grid 1, block 1 thread; reductions of 64;", ran.out)
    assert "// Launch: (1) block of 1 thread." in ran.out
    assert not re.search(r"\b\d+:[gl]\d", ran.out)


def test_no_counter_is_there_for_nothing(cli: Cli) -> None:
    """A compiler would warn of it."""
    size = ("--size", "m=2,n=2,k=2")
    ran = cli("map", "matmul", *size, "--first", "--no-store", "--emit", "cuda")
    named = re.findall(r"const int (\w+) = ", ran.out)
    assert named
    assert [each for each in named if len(re.findall(rf"\b{each}\b", ran.out)) < 2] == []
