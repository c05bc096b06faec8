"""`.ci/run` tries the machine as it is before it installs anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / ".ci" / "run"


def ran(folder: Path, *, installs: bool) -> list[str]:
    """What is called in order, on a machine that says it is aarch64 and has apt-get."""
    log = folder / "log"
    programs = {
        "make": f'echo "make $*" >> {log}',
        "apt-get": f'echo "apt-get $1" >> {log}\n{"exit 0" if installs else "exit 1"}',
        "uname": "echo aarch64",
        "dirname": f"echo {RUN.parent}",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(["/bin/bash", str(RUN)], env={"PATH": str(folder)}, timeout=60)
    assert done.returncode == 0
    return log.read_text().splitlines()


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="no bash")
def test_the_readmes_command_comes_first(tmp_path: Path) -> None:
    for name, installs in (("can", True), ("cannot", False)):
        folder = tmp_path / name
        folder.mkdir()
        calls = ran(folder, installs=installs)
        assert calls[0] == "make test"
        assert calls[-1] == "make lint"
        assert ("make skipped" in calls) is installs
        assert "apt-get update" in calls[1:]
        assert calls.count("make test") == 1
