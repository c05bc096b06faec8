"""What was skipped is run again, alone, once it can be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = """
import pytest
from pathlib import Path
there = Path(__file__).with_name("there").exists()

@pytest.mark.parametrize("n", [1, 2])
def test_needs(n):
    if n == 2 and not there:
        pytest.skip("not there")

def test_never():
    pytest.skip("never")

def test_always():
    pass
"""
WHOLE = """
import pytest
from pathlib import Path
if not Path(__file__).with_name("there").exists():
    pytest.skip("not there", allow_module_level=True)

def test_it():
    pass
"""


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.skipped", "-p", "xdist", "-v", *words]
    root = Path(__file__).resolve().parents[1]
    # Plugins that have no part in it would take most of the time.
    environment = {"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, f"--rootdir={folder}", "-c", "/dev/null", "-o", f"pythonpath={root}", "."],
        cwd=folder, capture_output=True, text=True, timeout=120, env=environment,
    )  # fmt: skip


def test_only_what_was_skipped_runs_again(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(FILE)
    (tmp_path / "test_whole.py").write_text(WHOLE)
    ran = pytest_in(tmp_path, "-n", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed, 3 skipped" in ran.stdout
    (tmp_path / "there").write_text("")
    again = pytest_in(tmp_path, "-n", "1", "--only-skipped")
    assert again.returncode == 0
    assert "2 passed, 1 skipped" in again.stdout
    (tmp_path / "test_some.py").write_text(FILE.replace('pytest.skip("never")', "pass"))
    assert "1 passed, 4 deselected" in pytest_in(tmp_path, "--only-skipped").stdout
    assert pytest_in(tmp_path, "--only-skipped").returncode == 5  # nothing is left
