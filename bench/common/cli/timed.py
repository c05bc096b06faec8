"""Commands run in processes of their own: the CPU time that they take, also after Ctrl-C.

On a machine that does other things the wall runs on while a command waits for its iteration. So the
command's clock is the CPU time of its process: then a budget of S seconds, and whatever goes beyond
it, is the same on a busy machine as on an idle one. With `processes` others work while it waits,
and its clock is that of the wall.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What measures its own time imports it first, and so keeps the clock of the wall.
_START = """import concurrent.futures.thread, queue, signal, subprocess, sys, threading, time
sys.path.pop(0)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
time.monotonic = time.process_time
from warploom.cli.start import main
main()"""
_WALL = _START.replace("time.monotonic = time.process_time\n", "")
_POLL = 0.01  # seconds


@dataclass(frozen=True, slots=True)
class Timed:
    """CPU seconds of a command and its children; `after`: those since the signal, if there was
    one."""

    words: tuple[str, ...]
    cpu: float
    status: int
    output: str
    after: float | None = None

    def holds(self, seconds: float) -> bool:
        return self.cpu <= seconds + max(1.0, 0.1 * seconds)


def timed(
    words: Sequence[str],
    folder: Path,
    *,
    interrupt_at: float | None = None,
    number: int = signal.SIGINT,
    processes: bool = False,
) -> Timed:
    """Runs a command in a folder; at so many seconds of CPU it gets a signal."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _WALL if processes else _START, *words],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
            env=_environment(folder), start_new_session=True,
        )  # fmt: skip
        before = None
        if interrupt_at is not None:
            before = _signalled(process.pid, interrupt_at, number)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    cpu = used.ru_utime + used.ru_stime
    after = None if before is None else cpu - before
    return Timed(tuple(words), cpu, process.returncode, text, after)


def _environment(folder: Path) -> dict[str, str]:
    """Nothing is kept from one command to the next but compiled modules."""
    own = {"XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder), "TMPDIR": str(folder)}
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    left = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**left, **own, **one}


def _signalled(process: int, at: float, number: int) -> float | None:
    """The CPU time at which it was told; None if it ended before."""
    while True:
        used, alive = _used(process)
        if not alive:
            return None
        if used >= at:
            os.kill(process, number)
            return used
        time.sleep(_POLL)


def _used(process: int) -> tuple[float, bool]:
    """CPU seconds of a process and of its children, those that have ended, too; whether it still
    runs."""
    own = _stat(str(process))
    ticks = sum(int(each) for each in own[11:15])
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and (other := _stat(each.name)) and other[1] == str(process):
            ticks += sum(int(each) for each in other[11:15])
    return ticks / os.sysconf("SC_CLK_TCK"), own[0] != "Z"


def _stat(process: str) -> list[str]:
    """What the system says of a process after its name; nothing if it has gone meanwhile."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
