"""A command that takes too long ends, and with it all that it started."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from warploom.errors import DeviceError
from warploom.process import run_command


def test_children_end_too(tmp_path: Path) -> None:
    """The child would write a file a while after its parent was given up."""
    mark = tmp_path / "mark"
    late = f"import time; time.sleep(1.5); open({str(mark)!r}, 'w')"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    with pytest.raises(DeviceError, match=r"it was slow: it took more than 0\.5 s"):
        run_command([sys.executable, "-c", parent], "it was slow", 0.5)
    time.sleep(2.0)
    assert not mark.exists()


def test_what_it_says() -> None:
    ran = run_command([sys.executable, "-c", "print('yes'); raise SystemExit(3)"], "no")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "yes\n", "")


def test_there_is_no_such_command() -> None:
    with pytest.raises(DeviceError, match="no compiler: "):
        run_command(["warploom-has-no-such-command"], "no compiler")
