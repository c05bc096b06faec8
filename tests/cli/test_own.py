"""`warploom synth --emit` and `warploom kernel FILE`: from a file to a kernel by one command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench.common.own.listing import HERE, OWN, Own
from tests.cli.conftest import Cli

SUMS = str(Path(__file__).parents[2] / "examples" / "sketches" / "sums.swflow")
IMPOSSIBLE = str(Path(SUMS).with_name("impossible.swflow"))
QUICK = [own for own in OWN if own.name in ("interleave", "transposition 16 x 6", "scan")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("own", QUICK, ids=lambda own: own.name)
def test_one_command_from_file_to_cuda(own: Own, cli: Cli) -> None:
    ran = cli("synth", *own.command, "--emit", "cuda")
    assert ran.status == 0, ran.err
    lines = ran.out.splitlines(keepends=True)
    said = [each for each in lines if not each.startswith("// Command: warploom synth ")]
    assert len(said) == len(lines) - 1
    assert "".join(said) == own.compiled().text("cuda")  # and nothing else
    assert "found" in ran.err
    assert "erdict: proved" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_one_command_for_each(own: Own, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "kernel.cu"
    ran = cli("synth", *own.command, "--emit", "cuda", "-o", str(out))
    assert ran.status == 0, ran.err
    assert "__global__" in out.read_text()


def test_a_warp_sketch_is_found_small_and_written_large(cli: Cli, tmp_path: Path) -> None:
    argument, out = str(HERE / "sketches.py::planes"), tmp_path / "planes.cl"
    small = ("--size", "lanes=8", "--transfer", "lanes=32")
    ran = cli("synth", argument, *small, "--emit", "opencl", "-o", str(out), "--json", "-")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)
    assert [each["size"]["lanes"] for each in record["sizes"]] == [8, 32]
    assert {each["verdict"] for each in record["sizes"]} == {"proved"}
    assert "'real' of 160, 33, 31 elements in tiles of 32" in out.read_text()


def test_kernel_checks_and_mutates_a_file(cli: Cli) -> None:
    ran = cli("kernel", SUMS, "--check", "--mutate", "--most", "6", "--json", "-")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)
    assert record["check"]["simulator"]["sizes"] >= 20
    assert all(not each.get("wrong") for each in record["check"].values())
    assert record["mutation"]["caught"] == record["mutation"]["function_changing"]


def test_lanes_and_steps_are_refused_before_the_search(cli: Cli) -> None:
    for options in (["--step", "y=3"], ["--lanes", "64"], ["--dtype", "float5"]):
        ran = cli("synth", SUMS, "--emit", "c", *options)
        assert (ran.status, ran.out) == (2, "")
        assert "found" not in ran.err
    assert "64 lanes" in cli("kernel", SUMS, "--lanes", "64").err
    assert "for sketches" in cli("kernel", "aos-sum", "--lanes", "4").err
    assert "go with --emit" in cli("synth", SUMS, "--lanes", "4").err


def test_an_impossible_sketch_has_no_kernel_and_its_verdict_says_so(cli: Cli) -> None:
    ran = cli("synth", IMPOSSIBLE, "--emit", "cuda")
    assert (ran.status, ran.out) == (1, "")
    (record,) = json.loads(cli("synth", IMPOSSIBLE, "--json", "-").out)
    assert record["verdict"] == "impossible"
    assert "no fill" in cli("kernel", IMPOSSIBLE).err


def test_a_python_file_alone_lists_its_sketches(cli: Cli) -> None:
    ran = cli("synth", str(HERE / "sketches.py"))
    assert ran.status == 2
    names = re.findall(r"sketches\.py::(\w+)", ran.err)
    assert set(names) == {"transposition", "strided_taps", "scan", "planes", "butterfly"}


@pytest.mark.parametrize("option", ["--first", "--best", "--stats", "--published", "--goal=2"])
def test_options_that_warp_sketches_do_not_have_are_refused(option: str, cli: Cli) -> None:
    ran = cli("synth", str(HERE / "sketches.py::planes"), "--size", "lanes=4", option)
    assert (ran.status, ran.out) == (2, "")
    assert "is a warp sketch" in ran.err


def test_no_kernel_at_the_size_asked_for_is_no_success(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "grows.py"
    file.write_text(
        "import numpy as np\n"
        "from warploom import Sketch\n"
        "def turned(n=4):\n"
        "    s = Sketch('turned')\n"
        "    s.hole('rots', s.input('x', n), main=0, second=0, out=0)\n"
        "    s.goal(np.roll(np.arange(n), -1) if n == 4 else np.arange(n)[::-1].copy())\n"
        "    return s\n"
    )
    ran = cli("synth", f"{file}::turned", "--transfer", "n=8", "--emit", "c")
    assert (ran.status, ran.out) == (3, "")
    assert "not carried over to n=8" in ran.err


def test_two_things_do_not_share_standard_output(cli: Cli) -> None:
    assert "both go to standard output" in cli("synth", SUMS, "--emit", "c", "--json", "-").err


def test_help_without_a_command(cli: Cli) -> None:
    ran = cli()
    assert ran.status == 0
    assert "synth" in ran.out


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    from warploom.cli.view import coloured

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("found") != "found"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("found") == "found"


def test_indices_of_64_bits_on_request(cli: Cli) -> None:
    ran = cli("synth", SUMS, "--emit", "c", "--index-bits", "64")
    assert (ran.status, "const long long x_size" in ran.out) == (0, True)
    assert "// Indices have 64 bits: 'sum' of at most 274877906816 elements" in ran.out
    for words in (
        ("--emit", "c", "--index-bits", "16"),
        ("--index-bits", "64"),
        ("--emit", "cuda", "--as", "function", "--index-bits", "64"),
    ):
        refused = cli("synth", SUMS, *words)
        assert refused.status == 2
        assert re.search("indices have|indices of 32 bits|--index-bits", refused.err)
    assert cli("kernel", "load-structures", "--index-bits", "64").status == 2


def test_what_is_asked_for_wrongly_is_said_before_the_search(cli: Cli, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no" / "x.cu")
    for ran in (
        cli("synth", SUMS, "--emit", "cuda", "-o", nowhere),
        cli("synth", SUMS, "--certificate", nowhere),
        cli("kernel", SUMS, "--json", nowhere),
        cli("kernel", SUMS, "-o", str(tmp_path)),
    ):
        assert ran.status == 2
        assert "cannot write" in ran.err
        assert ran.out == ""
    assert "'x=1.5' is not a step" in cli("kernel", SUMS, "--step", "x=1.5").err


def test_a_name_that_a_file_only_imports_is_not_suggested(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from warploom import compile\nfrom warploom import Sketch\nturned = Sketch('t')"
    )
    assert "did you mean turned?" in cli("synth", f"{file}::turnd").err
    assert f"it has {file}::turned" in cli("synth", f"{file}::compil").err
