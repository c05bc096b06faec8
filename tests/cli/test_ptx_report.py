"""`warploom ptx report`: text and record of what a launch asks of memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

from warploom.machine.record import H200

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
    told = record["predicted"]
    assert (told["limit"], told["times"]) == ("launch", "h200")
    assert H200.times.launch < told["nanoseconds"] < 2 * H200.times.launch
    assert "by the times of h200: limited by launch" in result.out.splitlines()[-1]


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


STEPS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry steps(.param .u64 p) {
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .shared .align 4 .b8 tile[8192];
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  STEP
  st.global.f32 [%rd1], %f1;
  ret;
}
"""


def reported(cli: Cli, folder: Path, step: str, *more: str) -> tuple[str, dict[str, Any]]:
    (folder / "steps.ptx").write_text(STEPS.replace("STEP", step))
    (folder / "out.json").unlink(missing_ok=True)
    result = cli("ptx", "report", str(folder / "steps.ptx"), "--grid", "1", "--block", "64",
                 "--arg", "f32[64]=range", "--json", str(folder / "out.json"), *more)  # fmt: skip
    assert result.status == 0, result.err
    (record,) = json.loads((folder / "out.json").read_text())
    return result.out.splitlines()[-1], record


def test_the_time_grows_by_what_the_kernel_does(cli: Cli, tmp_path: Path) -> None:
    """And the launch is counted from the memory that it began with: it changes what it reads."""
    clear = "shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;"
    conflicts = clear.replace("%r1, 2", "%r1, 7")
    passes = "st.shared.f32 [%r2], %f1;" * 300
    found = [reported(cli, tmp_path, each)[1] for each in ("", clear + passes, conflicts + passes)]
    times = [each["predicted"]["nanoseconds"] for each in found]
    assert times[0] < times[1] < times[2]
    assert found[1]["bank_conflicts"] == 0 < found[2]["bank_conflicts"]
    assert found[2]["predicted"]["limit"] == "shared memory"


def test_why_no_time_is_predicted(cli: Cli, tmp_path: Path) -> None:
    last, record = reported(cli, tmp_path, "red.global.add.f32 [%rd1], %f1;")
    assert last == "no time is predicted: the time model has no cost of atomics on global memory"
    assert record["predicted"] is None
    assert record["not_predicted"] in last
    last, record = reported(cli, tmp_path, "", "--machine", "cuda")
    assert last.endswith("the record of the machine 'cuda' has no rates and no times")
    assert record["predicted"] is None
