"""Fewer reports of what passes; none is missing of what does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = """
import pytest

@pytest.fixture
def broken_before():
    raise ValueError("before")

@pytest.fixture
def broken_after():
    yield
    raise ValueError("after")

def test_right(): pass
def test_wrong(): assert 1 == 2
def test_left_out(): pytest.skip("not here")
def test_before(broken_before): pass
def test_after(broken_after): pass
"""


def test_what_does_not_pass_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(FILE)
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "pytest", "-p", "tests.fewer_reports", "-p", "xdist", "-n1"]
    ran = subprocess.run(
        [*command, f"--rootdir={tmp_path}", "-c", "/dev/null", "-o", f"pythonpath={root}", "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert "1 failed, 2 passed, 1 skipped, 2 errors" in ran.stdout, ran.stdout + ran.stderr
    for said in ("assert 1 == 2", "ValueError: before", "ValueError: after"):
        assert said in ran.stdout
