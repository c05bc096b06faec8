"""The script that runs a suite's kernels by a plan, on files that are made here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bench.ptx.suites import looked_at, planned, size

FILES = {
    "right_sum.cu": "atomicAdd(x, 1);",
    "racy_sum.cu": "x[0] += threadIdx.x;",
    "racy_once.cu": "if (atomicAdd(&turn, 1) == 1) x[2 * blockIdx.x] = 1; else x[2] = 2;",
}
TEXT = """#define BLOCKS 2
#define THREADS (32)
__device__ int turn = 0;
__global__ void k(int* x) {{ {} }}
int main() {{ }}
"""
PLAN = {
    "files": "*.cu", "racy": "racy_*", "kernel": "k", "grid": "BLOCKS", "block": "THREADS",
    "args": [{"array": "x"}], "arrays": {"x": "i32[4]=zeros"},
    "otherwise": {"right_*": "race"}, "why": "because",
}  # fmt: skip


def test_a_size_is_a_number_or_a_define() -> None:
    assert size("BLOCKS", TEXT) == 2
    assert size(["THREADS", 3], TEXT) == [32, 3]
    assert size("WIDE", "static const int WIDE = 512;") == 512
    with pytest.raises(SystemExit, match="no NOTHING with a number"):
        size("NOTHING", TEXT)


def test_a_plan_without_files_ends(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([PLAN]))
    with pytest.raises(SystemExit, match="no file of"):
        list(planned(tmp_path, plan))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_what_is_racy_by_its_name_is_found(tmp_path: Path) -> None:
    for name, body in FILES.items():
        (tmp_path / name).write_text(TEXT.format(body))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([PLAN]))
    rows = [looked_at(tmp_path, file, entry) for file, entry in planned(tmp_path, plan)]
    assert {row["file"]: row["found"] for row in rows} == {
        "racy_once.cu": "race", "racy_sum.cu": "race", "right_sum.cu": "nothing"
    }  # fmt: skip
    assert all(row["agrees"] and "why" not in row for row in rows)
