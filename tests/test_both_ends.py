"""Two processes read the files of tests from both ends, and run them in one order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = """
import os
from pathlib import Path
with Path(os.environ["ORDER"], os.environ["PYTEST_XDIST_WORKER"]).open("a") as file:
    print(Path(__file__).stem, file=file)

def test_first():
    pass

def test_second():
    pass
"""


def test_the_second_process_begins_at_the_end(tmp_path: Path) -> None:
    tests, order = tmp_path / "tests", tmp_path / "order"
    order.mkdir()
    names = ["one/test_a", "one/test_b", "two/test_c", "two/test_d"]
    for name in names:
        file = tests / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FILE)
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "pytest", "-p", "tests.both_ends", "-p", "xdist", "-n", "2"]
    ran = subprocess.run(
        [*command, f"--rootdir={tests}", "-c", "/dev/null", "-o", f"pythonpath={root}", "."],
        cwd=tests, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "ORDER": str(order)},
    )  # fmt: skip
    assert "8 passed" in ran.stdout, ran.stdout + ran.stderr
    stems = [Path(name).stem for name in names]
    assert (order / "gw0").read_text().split() == stems
    assert (order / "gw1").read_text().split() == stems[::-1]
