"""What every command does alike: records on standard output, files by their names, carets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
SUMS = str(ROOT / "examples/sketches/sums.swflow")
SAXPY = str(ROOT / "examples/ptx/saxpy.ptx")
STENCIL = str(ROOT / "examples/ptx/stencil.ptx")
LAUNCH = ["--grid", "4", "--block", "256", "--arg", "f32[1000]=range", "--arg", "f32[1000]=ones"]
LAUNCH += ["--arg", "f32=2", "--arg", "i32=1000"]

RECORDS = {
    "synth": ["synth", SUMS],
    "names": ["kernel"],
    "kernel": ["kernel", "product-registers", "-o", "text.cu"],
    "machines": ["machines"],
    "bench": ["bench", "synth", "--match", "no such name"],
    "layout show": ["layout", "show", "(32,32):(32,1)"],
    "layout check": ["layout", "check", "(32,32):(32,1)", "rcd:32x32"],
    "verify": ["verify", "proof.json"],
    "ptx run": ["ptx", "run", SAXPY, *LAUNCH],
    "ptx shuffle": ["ptx", "shuffle", STENCIL, "-o", "out.ptx"],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", RECORDS)
def test_records_go_to_standard_output_alone(name: str, cli: Cli) -> None:
    if name == "verify":
        solve = ["layout", "solve", "--pattern", "rcd:32x32", "--certificate", "proof.json"]
        assert cli(*solve).status == 0
    ran = cli(*RECORDS[name], "--json", "-")
    assert ran.status in (0, 1), ran.err
    assert isinstance(json.loads(ran.out), list)
    file = cli(*RECORDS[name], "--json", "records.json")
    assert len(json.loads(Path("records.json").read_text())) == len(json.loads(ran.out))
    assert file.status == ran.status


def test_a_text_and_records_cannot_both_go_there(cli: Cli) -> None:
    for words in (["kernel", "product-registers"], ["ptx", "shuffle", STENCIL]):
        ran = cli(*words, "--json", "-")
        assert (ran.status, ran.out) == (2, "")
        assert "both go to standard output" in ran.err


def test_saved_arrays_have_the_name_that_was_given(cli: Cli) -> None:
    for name in ("o.npy", "o.npz", "plain"):
        assert cli("ptx", "run", SAXPY, *LAUNCH, "--save", name).status == 0
    wanted = 2 * np.arange(1000) + 1
    assert sorted(each.name for each in Path().iterdir()) == ["o.npy", "o.npz", "plain"]
    assert np.array_equal(np.load("o.npy"), wanted)  # the one that was stored
    for name in ("o.npz", "plain"):
        assert np.array_equal(np.load(name)["arg1"], wanted)
    still = [word.replace("=range", "=zeros").replace("i32=1000", "i32=0") for word in LAUNCH]
    ran = cli("ptx", "run", SAXPY, *still, "--save", "none.npy")
    assert ran.status == 2
    assert "the kernel changed 0: none" in ran.err
    assert not Path("none.npy").exists()


LARGE = ["--grid", "256", "--block", "256", "--arg", "f32[65000]=range", "--arg", "f32[65000]=ones"]
LARGE += ["--arg", "f32=2", "--arg", "i32=65000"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("asked", [[], ["--counters"], ["--races"]], ids=str)
def test_large_launches_are_compiled(asked: list[str], cli: Cli) -> None:
    ran = cli("ptx", "run", SAXPY, *LARGE, *asked, "--save", "out.npy", "--json", "-")
    assert ran.status == 0, ran.err
    record = json.loads(ran.out)[0]
    assert record["engine"] == "c"
    assert record["thread_instructions"] == sum(record["mix"].values()) > 65000
    assert ("global_load_sectors" in record) == (asked == ["--counters"])
    assert np.array_equal(np.load("out.npy"), (2 * np.arange(65000) + 1).astype(np.float32))


@pytest.mark.parametrize(
    ("line", "caret"),
    [
        ("s: [4,3] = ?row_xforms{foo=3}(regs)", "foo"),
        ("s: [4,3] = ?xforms{main=0,second=7,out=0}(regs)", "second"),
        ("s: [4,3] = ?col_rots{main=[1]}(regs)", "main"),
        ("s: [4,3] = ?grouped_perms{axis=0,group=99}(regs)", "group"),
        ("s: [4,3] = ?cond_keep{restrict=[7,0]}(regs)", "restrict"),
    ],
)
def test_the_caret_is_at_the_option_that_is_wrong(cli: Cli, line: str, caret: str) -> None:
    text = f"x: [12] = range(0, 12)\nregs: [4,3] = load_rep(x)\n{line}\ngoal: [4,3] trove\n"
    Path("a.swflow").write_text(text)
    ran = cli("synth", "a.swflow")
    assert ran.status == 2
    shown, under = ran.err.splitlines()[1:3]
    column = under.index("^")
    assert shown[column : column + under.count("^")] == caret, ran.err


def test_fills_that_are_carried_over_are_aligned(cli: Cli) -> None:
    ran = cli("synth", "gaussian", "--transfer", "lanes=16", "--limit", "1")
    carried = ran.out.split("carried over")[1].splitlines()[1:]
    assert carried[0] == "    fill 1"
    assert all(line.startswith("      o") for line in carried[1:])
