"""`warploom judge --problem`: tables of candidates, and definitions in FlashInfer's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.common.problems.forty import write
from tests.cli.conftest import Cli
from tests.tools import require

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = str(ROOT / "examples" / "judge" / "softmax.ptx")
DEFINITION: dict[str, Any] = {
    "name": "softmax_n37", "op_type": "softmax",
    "axes": {"rows": {"type": "const", "value": 2}, "n": {"type": "var"}},
    "inputs": {"x": {"shape": ["rows", "n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["rows", "n"], "dtype": "float32"}},
    "reference": "import torch\n\n\ndef run(x):\n    return torch.softmax(x, dim=1)\n",
}  # fmt: skip


def words(folder: Path, changed: dict[str, Any], kernel: str = "softmax") -> list[str]:
    file = folder / "definition.json"
    file.write_text(json.dumps({**DEFINITION, **changed}))
    return ["judge", "--problem", str(file), SOFTMAX, "--kernel", kernel, "--grid", "rows",
            "--shape", "n=37"]  # fmt: skip


def test_verdicts(cli: Cli, tmp_path: Path) -> None:
    assert "softmax and softmax_n37: equal" in cli(*words(tmp_path, {})).out
    assert cli(*words(tmp_path, {}, "softmax_short")).status == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"axes": 3}, "are objects"), ({"inputs": {}}, "has 3 parameters"),
        ({"reference": "def go(): pass"}, "no function 'run'"),
        ({"reference": "import torch\n1 / 0"}, "ZeroDivisionError"),
        ({"outputs": {"y": {"shape": ["n"], "dtype": "fp4"}}}, "of type fp4"),
        ({"axes": {"rows": {"type": "var"}, "n": {"type": "var"}}}, "needs a size of rows"),
    ],
)  # fmt: skip
def test_definitions_that_are_none(
    cli: Cli,
    tmp_path: Path,
    changed: dict[str, Any],
    said: str,
) -> None:
    ran = cli(*words(tmp_path, changed))
    assert ran.status == 2
    assert said in ran.err


def test_a_table_of_a_folder(cli: Cli, tmp_path: Path) -> None:
    require("ptx")
    problem, candidates = write(tmp_path, "relu")
    folder = tmp_path / "candidates"
    folder.mkdir()
    for each in candidates.values():
        each.rename(folder / each.name)
    (folder / "broken.py").write_text("import torch\nraise ValueError('no')\n")
    record = tmp_path / "o.json"
    ran = cli("judge", "--problem", str(problem), str(folder), "--json", str(record))
    lines = [line.split()[:2] for line in ran.out.splitlines()]
    assert lines == [
        ["broken.py", "not"], ["relu_gamed_candidate.py", "different"],
        ["relu_right_candidate.py", "equal"], ["relu_wrong_candidate.py", "different"],
    ]  # fmt: skip
    assert ran.status == 2  # the worst of all
    assert "broken.py:2" in ran.err
    assert [each["status"] for each in json.loads(record.read_text())] == [2, 1, 0, 1]


def test_sizes_are_replaced(cli: Cli, tmp_path: Path) -> None:
    require("ptx")
    problem, candidates = write(tmp_path, "softmax")
    words = ["judge", "--problem", str(problem), str(candidates["right"])]
    assert cli(*words, "--shape", "rows=2", "--shape", "n=5").status == 0
    assert "has no whole number called m" in cli(*words, "--shape", "m=5").err
    assert "judged at one shape" in cli(*words, "--shape", "n=5,6").err
    assert "where candidates launch themselves" in cli(*words, "--grid", "3").err
    assert "beside --problem" in cli(*words, "--arg", "x=f32").err
