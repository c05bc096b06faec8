"""`warploom ptx report`: text and record of what a launch asks of memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

SAXPY = ("examples/ptx/saxpy.ptx", "--grid", "4", "--block", "256", "--arg", "f32[1000]=range",
         "--arg", "f32[1000]=ones", "--arg", "f32=2")  # fmt: skip


def test_text_and_record(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    result = cli("ptx", "report", *SAXPY, "--arg", "i32=1000", "--json", str(out))
    assert result.status == 0
    assert "no request takes more than its bytes need" in result.out
    (record,) = json.loads(out.read_text())
    assert record["kind"] == "ptx report"
    moved = [row for row in record["rows"] if row["what"] != "branches"]
    assert [row["what"] for row in moved] == ["reads", "reads", "writes"]
    assert all(row["sectors"] == row["least_sectors"] == 125 for row in moved)
    assert record["global_sectors"] == 375
    assert record["divergent_branches"] == 1
    assert record["live_registers"] > 2


@pytest.mark.parametrize(
    "more", [("--arg", "i32=1", "--grid", "0"), (), ("--kernel", "none"), ("--arg", "x=1")]
)
def test_bad_input(cli: Cli, more: tuple[str, ...]) -> None:
    result = cli("ptx", "report", *SAXPY, *more)
    assert result.status == 2
    assert "Traceback" not in result.err


def test_what_goes_wrong_in_the_kernel(cli: Cli) -> None:
    result = cli("ptx", "report", *SAXPY, "--arg", "i32=1001")
    assert result.status == 1
    assert "out-of-bounds" in result.err


def test_equal_rows_are_one_with_a_count(cli: Cli, tmp_path: Path) -> None:
    """A line of the source that is unrolled becomes instructions that ask for the same."""
    text = Path("examples/ptx/saxpy.ptx").read_text()
    (store,) = [line for line in text.splitlines() if "st.global" in line]
    thrice = tmp_path / "thrice.ptx"
    thrice.write_text(text.replace(store, store.strip() + " " + store.strip() + store))
    words = (str(thrice), *SAXPY[1:], "--arg", "i32=1000")
    result = cli("ptx", "report", *words, "--json", str(tmp_path / "out.json"))
    assert result.out.count("st.global.f32    ") == 1, result.out
    assert "3 × st.global.f32    " in result.out
    (record,) = json.loads((tmp_path / "out.json").read_text())
    assert sum(row["instruction"] == "st.global.f32" for row in record["rows"]) == 3
