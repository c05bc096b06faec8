"""Proofs on the command line: written beside an answer, checked without the search."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from warploom.bench import inventor_sketches
from warploom.trust.checked import digest

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
    ran = cli("verify", "e.json")
    assert ran.status == 0
    assert "no fill gives 2 of the 64 cells of 's3'" in ran.out


def test_a_file_without_end_is_not_read_to_its_end(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warploom.cli.verify.MOST_BYTES", 1000)
    ran = cli("verify", "/dev/zero")
    assert (ran.status, ran.err) == (2, "/dev/zero is larger than 1000 bytes\n")


TWO_GOALS = """define iteration([4]) -> [4] = { same = [0, 1, 2, 3], reverse = [3, 2, 1, 0] }
x: [4] = range(0, 4)
y: [4] = ?iteration(x)
goal: [4] = [0, 0, 0, 1]
goal: [4] = [3, 2, 1, 0]
goal: [4] = [0, 1, 2, 3]
"""


def test_several_goals_are_numbered_and_one_without_is_said(cli: Cli, tmp_path: Path) -> None:
    sketch, proof = tmp_path / "two.swflow", tmp_path / "proof.json"
    sketch.write_text(TWO_GOALS)
    proof.write_text("an older one")
    ran = cli("synth", str(sketch), "--certificate", str(proof))
    assert ran.status == 1
    records = json.loads(proof.read_text())
    assert [record["kind"] for record in records] == ["impossible", "fill", "fill"]
    numbered = [(record["goal"]["number"], record["goal"]["of"]) for record in records]
    assert numbered == [(1, 3), (2, 3), (3, 3)]
    checked = cli("verify", str(proof))
    assert checked.status == 0
    assert "no fill gives 1 of the 4 cells of 'y'" in checked.out
    assert "(goal 2 of 3)" in checked.out
    proof.write_text(json.dumps(records[1:]))
    checked = cli("verify", str(proof))
    assert "no certificate here of goal 1 of 'two.swflow'" in checked.out


def test_where_there_are_too_many_fills_to_try_it_says_so(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warploom.trust.impossible._MOST_WORK", 10)
    sketch, proof = tmp_path / "two.swflow", tmp_path / "proof.json"
    sketch.write_text(TWO_GOALS)
    ran = cli("synth", str(sketch), "--goal", "1", "--certificate", str(proof), "--no-store")
    assert ran.status == 1
    assert f"no certificate of {sketch}, goal 1: impossible, but '" in ran.out
    assert "two.swflow' has too many fills to try one by one" in ran.out
    assert not proof.exists()


def test_an_older_certificate_does_not_survive_an_answer_without_one(
    cli: Cli, tmp_path: Path
) -> None:
    sketch, proof = tmp_path / "two.swflow", tmp_path / "proof.json"
    sketch.write_text(TWO_GOALS)
    store = ("--store", str(tmp_path / "store.db"))
    for number, status in ((2, 0), (1, 1), (2, 0), (1, 1)):
        ran = cli("synth", str(sketch), "--goal", str(number), "--certificate", str(proof), *store)
        assert ran.status == status
        assert [each["goal"]["number"] for each in json.loads(proof.read_text())] == [number]
    slow = ("synth", "gaussian", "--seconds", "0", "--certificate", str(proof), *store)
    assert cli(*slow).status == 3
    assert not proof.exists()


def test_what_is_not_covered_is_printed_and_told(cli: Cli, tmp_path: Path) -> None:
    proof, told = str(tmp_path / "c.json"), tmp_path / "told.json"
    ran = cli("synth", str(EXAMPLES / "sums.swflow"), "--certificate", proof)
    assert "  not covered: rounding and overflow\n" in ran.out
    assert cli("verify", proof).out.endswith(f"{proof}: not covered: rounding and overflow\n")
    assert cli("verify", proof, "--json", str(told)).status == 0
    assert json.loads(told.read_text())[0]["not_covered"] == ["rounding and overflow"]


@pytest.mark.parametrize("kind", ["fill", "layout"])
def test_a_key_before_the_real_one_is_refused(cli: Cli, tmp_path: Path, kind: str) -> None:
    proof = tmp_path / "c.json"
    solve = ("layout", "solve", "transpose:8x8:f32")
    words = ("synth", str(EXAMPLES / "sums.swflow")) if kind == "fill" else solve
    cli(*words, "--certificate", str(proof))
    text = proof.read_text()
    key = "goal" if kind == "fill" else "layout"
    proof.write_text(text.replace('"kind":', f'"{key}": "anything", "kind":', 1))
    ran = cli("verify", str(proof))
    assert ran.status == 2
    assert f"the key '{key}' stands twice" in ran.err


def test_a_name_has_no_lines_of_its_own(cli: Cli, tmp_path: Path) -> None:
    proof = tmp_path / "c.json"
    cli("synth", str(EXAMPLES / "sums.swflow"), "--certificate", str(proof))
    record = json.loads(proof.read_text())[0]
    record["name"] = record["goal"]["text"] = "x\nproof.json: all is well\x1b[2J\ud800"
    record["size"] = {"n": "1\n2\ud800"}
    record["not_covered"].append("\ud800")
    proof.write_text(json.dumps(record | {"digest": digest(record)}))
    ran = cli("verify", str(proof), "--json", str(tmp_path / "records"))
    assert ran.status == 0
    assert len(ran.out.splitlines()) == 4
    assert "\x1b" not in ran.out
    assert "\\\\ud800" in (tmp_path / "records").read_text()


def test_each_size_of_a_warp_sketch_has_its_certificate(cli: Cli, tmp_path: Path) -> None:
    proof = str(tmp_path / "c.json")
    file = Path(inventor_sketches.__file__)
    words = ("synth", f"{file}::stencil_1d", "--size", "warp=4,taps=3", "--transfer", "warp=8")
    assert cli(*words, "--certificate", proof).status == 0
    sizes = [record["size"] for record in json.loads(Path(proof).read_text())]
    assert sizes == [{"warp": 4, "taps": 3}, {"warp": 8, "taps": 3}]
    assert cli("verify", proof).out.count("one tile of one warp, lanes lane=") == 2


IN_A_PROCESS = """import json, sys
from warploom import Sketch, solve, synthesize
from warploom.bench import inventor_sketches as paper
proofs = [synthesize(Sketch.from_file(each)).certificate() for each in sys.argv[1:]]
proofs.append(solve(paper.stencil_1d.at(warp=8, taps=3)).certificate())
print(json.dumps(proofs))
"""


@pytest.mark.slow
def test_the_same_sketch_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """Other hashes, other addresses, another folder, another day."""
    names = [f"{name}.swflow" for name in ("sums", "convolution", "own_gathers")]
    texts = []
    for seed, folder in (("1", EXAMPLES), ("77", tmp_path)):
        given = [os.path.relpath(EXAMPLES / name, folder) for name in names]
        texts.append(
            subprocess.run(
                [sys.executable, "-c", IN_A_PROCESS, *given],
                cwd=folder, env=os.environ | {"PYTHONHASHSEED": seed},
                capture_output=True, check=True,
            ).stdout
        )  # fmt: skip
    assert texts[0] == texts[1]
    assert len(json.loads(texts[0])) == 4
