"""Commands keep to `--seconds`, in CPU time, and end soon after Ctrl-C: a few of those that
`bench/cli/budgets.py` runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.cli.budget_cases import Case, endless
from bench.cli.budget_sketches import SKETCHES
from bench.common.cli.timed import timed

# Each took between 2 and 30 seconds of CPU where budgets were only asked.
QUICK = (
    ("seven holes", Case("synth s.swflow --seconds S --no-store", 2)),
    ("long goal", Case("synth s.swflow --seconds S --no-store", 0.5)),
    ("", Case("explore two-matmuls --size m=256,n=256,k=256,p=256 --seconds S --no-store", 1)),
    ("", Case("ptx run endless.ptx --arg u32[64]=zeros --seconds S", 0.5)),
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("sketch", "case"), QUICK)
def test_a_command_takes_little_more_than_its_seconds(
    sketch: str, case: Case, tmp_path: Path
) -> None:
    """Beside its start, which takes two or three times as long where other tests run."""
    (tmp_path / "s.swflow").write_text(SKETCHES.get(sketch, ""))
    (tmp_path / "endless.ptx").write_text(endless())
    start = timed([case.command[0], "--help"], tmp_path).cpu
    found = timed(case.command, tmp_path)
    assert found.status == 3, found.output
    assert found.cpu <= start + case.seconds + 1.0, found.output


def test_ctrl_c_ends_a_search_that_looks_ahead(tmp_path: Path) -> None:
    (tmp_path / "s.swflow").write_text(SKETCHES["seven holes"])
    found = timed(["synth", "s.swflow", "--no-store"], tmp_path, interrupt_at=2.0)
    assert found.after is not None
    assert found.after <= 1.0, found.output
    assert "interrupted" in found.output


def test_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    sketch = tmp_path / "s.swflow"
    sketch.write_text(SKETCHES["bits"])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ["synth", str(sketch), "--no-store", "--processes", "1"]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "warploom", *words],
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        end = time.monotonic() + 120
        while time.monotonic() < end and process.poll() is None:
            if list(temporary.glob("warploom-*")):  # what the workers are to read
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
    assert status == 128 + signal.SIGTERM, (tmp_path / "said").read_text()
    assert not list(temporary.iterdir())
