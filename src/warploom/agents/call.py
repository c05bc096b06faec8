"""One call: a command of ours in a confined process, watched until it ends or is ended.

Comes in: the words of the command and the limits. Goes out: how it ended, what it said, and the
files that it wrote. Nothing of it is left: its group of processes is ended as a whole.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from warploom.agents.confined import Confinement, command
from warploom.options import for_calls

_LOOK_S = 0.05  # between two looks at a call
_TELL_S = 1.0
_GONE_S = 5.0  # for ended processes to be gone
_MOST_FILES = 2000
_MOST_TEXT = 1 << 20  # bytes of what a command says that are read back
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: time, what its processes hold together, what they write, how many."""

    seconds: float = 120.0
    memory_bytes: int = 4 << 30
    output_bytes: int = 64 << 20
    processes: int = 32


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: an exit status, or in `stopped` which limit ended it."""

    status: int | None
    stopped: str
    seconds: float
    out: str
    err: str


class _Group(NamedTuple):
    """The processes of a call: how many, and the memory that they hold."""

    alive: int
    memory: int


def run(
    words: list[str], folder: Path, place: Path, limits: Limits, is_kernels: bool,
    cancelled: threading.Event, tell: Callable[[float], None] = lambda _: None,
) -> Ended:  # fmt: skip
    """Runs `warploom WORDS` in the folder; it writes to `place/scratch` alone. `tell` is called
    once a second, and setting `cancelled` ends the call."""
    scratch = place / "scratch"
    scratch.mkdir(parents=True)
    # A command that sees to its own time has a little more of the processor than of the clock.
    seconds = int(limits.seconds * (os.cpu_count() or 1)) + 2
    how = Confinement(
        str(folder), str(scratch), limits.memory_bytes, limits.output_bytes, seconds, is_kernels
    )
    began = time.monotonic()
    with (place / "out").open("w+b") as out, (place / "err").open("w+b") as err:
        process = subprocess.Popen(
            command(words, how), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
            env=for_calls(scratch), start_new_session=True,
        )  # fmt: skip
        try:
            stopped = _watched(process.pid, place, limits, cancelled, tell, began)
        finally:
            _end(process)
        status = process.returncode
        stopped = stopped or _by_limit(status)
        return Ended(
            None if stopped else status, stopped, time.monotonic() - began, _text(out), _text(err)
        )


def _watched(
    leader: int, place: Path, limits: Limits, cancelled: threading.Event,
    tell: Callable[[float], None], began: float,
) -> str:  # fmt: skip
    """Waits for the end; the limit that was reached before, if one was."""
    told = began
    while not _has_ended(leader):
        now = time.monotonic()
        if cancelled.wait(_LOOK_S):
            return "cancelled"
        if now - began > limits.seconds:
            return "time"
        group = _group(leader)
        if group.alive > limits.processes:
            return "processes"
        if group.memory > limits.memory_bytes:
            return "memory"
        if _is_full(place, limits.output_bytes):
            return "output"
        if now - told >= _TELL_S:
            told = now
            tell(now - began)
    return "output" if _is_full(place, limits.output_bytes) else ""


def _by_limit(status: int) -> str:
    """Which limit of the kernel has ended a process."""
    return {-signal.SIGXCPU: "time", -signal.SIGXFSZ: "output"}.get(status, "")


def _has_ended(leader: int) -> bool:
    """Without taking its number from it, which names the group."""
    return os.waitid(os.P_PID, leader, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends all of the group: nobody can leave it, and nobody who is being ended starts another."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + _GONE_S
    while _group(process.pid).alive and time.monotonic() < until:
        time.sleep(0.01)


def _group(leader: int) -> _Group:
    """Who is alive in the group, as Linux lists it."""
    found = [memory for group, memory in _processes() if group == leader]
    return _Group(len(found), sum(found))


def _processes() -> Iterator[tuple[int, int]]:
    """The group of each process that lives, and the bytes that it holds."""
    if sys.platform != "linux":
        return
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):
                text = Path("/proc", name, "stat").read_text(errors="replace")
                words = text.rpartition(")")[2].split()
                if words[0] not in "ZX":
                    yield int(words[2]), int(words[21]) * _PAGE


def _is_full(place: Path, most: int) -> bool:
    """Whether a call has written as much as it may; the limit of one file leaves it at that."""
    total = count = 0
    for folder, folders, files in os.walk(place):
        count += len(files) + len(folders)
        if count > _MOST_FILES:
            return True
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total >= most


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(_MOST_TEXT).decode("utf-8", "replace")
