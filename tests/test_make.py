"""`make demo` says what it does before it waits: in a fresh clone installing takes a while."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_the_demo_says_what_it_installs_and_for_how_long(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", "demo", f"VENV={folder}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    steps = [n for n, line in enumerate(told) if "-m venv" in line or "pip install" in line]
    assert len(steps) == 2
    for number, at in enumerate(steps, 1):
        assert re.match(rf'echo "{number} of 2: .*seconds\)"', told[at - 1]), told
    assert "examples/demo.py" in told[-1]
    assert all("--quiet" in told[at] for at in steps[1:])  # here nobody sees a bar
