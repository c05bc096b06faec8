"""`warploom judge`: its statuses, its records, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2] / "examples" / "judge"
CALL = (
    "judge", str(ROOT / "softmax.ptx"), "--reference", f"{ROOT}/references.py::softmax",
    "--grid", "rows", "--arg", "x=f32[rows,n]", "--arg", "y=f32[rows,n]=out", "--arg", "n=i32=n",
    "--seed", "7",
)  # fmt: skip
SMALL = ("--shape", "rows=2", "--shape", "n=33")


def test_equal_is_0_and_its_record_says_what_was_shown(cli: Cli) -> None:
    ran = cli(*CALL, "--kernel", "softmax", *SMALL, "--json", "-")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)
    assert record["verdict"] == "equal"
    assert record["status"] == 0
    (shape,) = record["shapes"]
    assert shape["shape"] == {"rows": 2, "n": 33}
    assert shape["error_log2"] <= -40
    assert "all schedules and all data" in shape["schedule"]
    assert "equal" in ran.err


def test_different_is_1_and_its_launch_shows_it(cli: Cli, tmp_path: Path) -> None:
    shows, junit, sarif = tmp_path / "c.npz", tmp_path / "j.xml", tmp_path / "s.json"
    ran = cli(
        *CALL, "--kernel", "softmax_short", *SMALL, "--counterexample", str(shows),
        "--junit", str(junit), "--sarif", str(sarif), "--json", str(tmp_path / "a.json"),
    )  # fmt: skip
    assert ran.status == 1, ran.err
    assert 'failures="1"' in junit.read_text()
    assert len(json.loads(sarif.read_text())["runs"][0]["results"]) == 1
    after = tmp_path / "after.npz"
    source = str(ROOT / "softmax.ptx")
    again = cli("ptx", "run", source, "--launch", str(shows), "--save", str(after))
    assert again.status == 0, again.err
    (record,) = json.loads((tmp_path / "a.json").read_text())
    found = record["shapes"][0]["counterexample"]
    value = np.load(after)[found["output"]].reshape(2, 33)[tuple(found["index"])]
    assert value == pytest.approx(found["kernel"], rel=1e-6)
    assert value != pytest.approx(found["reference"], rel=1e-6)


def test_unknown_is_3(cli: Cli) -> None:
    ran = cli(*CALL, "--kernel", "softmax", *SMALL, "--seconds", "0")
    assert ran.status == 3
    assert "longer than the time" in ran.out


def test_a_recorded_launch_is_judged(cli: Cli, tmp_path: Path) -> None:
    launch = {
        "kernel": "softmax", "grid": 2, "block": 32,
        "arrays": {"a": "f32[66]=random", "b": "f32[66]=zeros"},
        "args": [{"array": "a"}, {"array": "b"}, 33],
    }  # fmt: skip
    file = tmp_path / "l.json"
    file.write_text(json.dumps(launch))
    words = [*CALL[:2], "--reference", str(tmp_path / "r.py") + "::f", "--launch", str(file)]
    (tmp_path / "r.py").write_text(
        f"import sys\nsys.path.append({str(ROOT)!r})\nfrom references import softmax\n"
        "def f(a):\n    return softmax(a)\n"
    )
    ran = cli(*words, "--arg", "a=f32[2,33]", "--arg", "b=f32[2,33]=out")
    assert ran.status == 0, ran.out + ran.err
    ran = cli(*words, "--arg", "a=f32[2,30]", "--arg", "b=f32[2,33]=out")
    assert ran.status == 2
    assert "has 240 bytes, and the array 264" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shape", "n=0,x"), "is not a size"),
        (("--shape", "n=4", "--shape", "n=5"), "is given twice"),
        (("--shape", "rows=2", "--shape", "n=33", "--kernel", "none"), "no kernel 'none'"),
        (("--kernel", "softmax", "--shape", "rows=2"), "'n' has no value"),
    ],
)
def test_bad_input_is_one_error(words: tuple[str, ...], said: str, cli: Cli) -> None:
    ran = cli(*CALL, *words)
    assert ran.status == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_reference_is_a_function_of_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("value = 3\n")
    for name, said in (("r.py", "names no function"), ("r.py::value", "is a int")):
        words = [*CALL[:2], "--reference", str(tmp_path / name), *CALL[4:], *SMALL]
        ran = cli(*words, "--kernel", "softmax")
        assert ran.status == 2
        assert said in ran.err


SLOW = Path(__file__).resolve().parents[1] / "verdict" / "slow.ptx"
TURNED = (
    "judge", str(SLOW), "--kernel", "column", "--grid", "2", "--block", "32,8",
    "--arg", "x=f32[2,32,32]", "--arg", "y=f32[2,32,32]=out", "--arg", "n=i32=0", "--seed", "1",
)  # fmt: skip


def test_the_pattern_is_one_that_layout_solve_takes(cli: Cli, tmp_path: Path) -> None:
    reference = tmp_path / "refs.py"
    reference.write_text("def turned(x):\n    return x.transpose(0, 2, 1)\n")
    pattern, out = tmp_path / "tile.toml", tmp_path / "out.json"
    judged = cli(
        *TURNED, "--reference", f"{reference}::turned", "--performance", "--pattern", str(pattern),
        "--json", str(out),
    )  # fmt: skip
    assert judged.status == 0, judged.err
    assert "1. bank conflicts (" in judged.out
    assert "slow.ptx:176): the layout S<5,0,5>" in judged.out
    (record,) = json.loads(out.read_text())
    (first,) = record["shapes"][0]["performance"]["remedies"]
    assert (first["before"], first["after"]) == (1056, 64)
    solved = cli("layout", "solve", str(pattern), "--json", str(tmp_path / "solved.json"))
    assert solved.status == 0, solved.err
    assert first["message"].split()[2] in solved.out


def test_without_conflicts_there_is_no_pattern(cli: Cli, tmp_path: Path) -> None:
    reference = tmp_path / "refs.py"
    reference.write_text("def turned(x):\n    return x.transpose(0, 2, 1)\n")
    pattern = tmp_path / "tile.toml"
    ran = cli(*TURNED, "--reference", f"{reference}::turned", "--pattern", str(pattern))
    assert ran.status == 2
    assert "no layout would help" in ran.err + ran.out
    assert not pattern.exists()
