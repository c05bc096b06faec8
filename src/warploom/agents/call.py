"""One call: a command of ours in a confined process, watched until it ends or is ended.

Comes in: the words of the command and the limits. Goes out: how it ended, what it said, and the
files that it wrote. Nothing of it is left: its group of processes is ended as a whole.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from warploom.agents.confined import Confinement, command
from warploom.options import for_calls

_LOOK_S = 0.05  # between two looks at a call
_TELL_S = 1.0
_GONE_S = 5.0  # for ended processes to be gone
_MOST_FILES = 2000
_THREADS = 32  # of a process, on average
_FEW_MAPPED, _MAPPED = 8, 64 << 20
_MOST_TEXT = 1 << 20  # bytes of what a command says that are read back
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: time, what its processes hold together, what they write, how many
    they are. Of threads there may be 32 times as many."""

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
    """The processes of a call, the memory that they hold, and how many threads they have."""

    alive: list[int]
    memory: int
    threads: int


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
    began = time.monotonic()
    with (place / "out").open("w+b") as out, (place / "err").open("w+b") as err, _line() as line:
        how = Confinement(
            str(folder), str(scratch), limits.memory_bytes, limits.output_bytes, seconds,
            is_kernels, line,
        )  # fmt: skip
        process = subprocess.Popen(
            command(words, how), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
            env=for_calls(scratch), start_new_session=True, pass_fds=(line,),
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


@contextmanager
def _line() -> Iterator[int]:
    """The end of a pipe that says nothing, and ends with this process."""
    reads, writes = os.pipe()
    try:
        yield reads
    finally:
        os.close(reads)
        os.close(writes)


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
        if len(group.alive) > limits.processes or group.threads > _THREADS * limits.processes:
            return "processes"
        if group.memory > limits.memory_bytes:
            return "memory"
        if _is_full(place, limits.output_bytes, group.alive):
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
    found = [each for each in _processes() if each.group == leader]
    return _Group(
        [each.number for each in found],
        sum(each.memory for each in found),
        sum(each.threads for each in found),
    )


class _Process(NamedTuple):
    number: int
    group: int
    memory: int
    threads: int


def _processes() -> Iterator[_Process]:
    """The processes that live."""
    if sys.platform != "linux":
        return
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):
                text = Path("/proc", name, "stat").read_text(errors="replace")
                words = text.rpartition(")")[2].split()
                if words[0] not in "ZX":
                    yield _Process(int(name), int(words[2]), int(words[21]) * _PAGE, int(words[17]))


def _is_full(place: Path, most: int, processes: Sequence[int] = ()) -> bool:
    """Whether a call has written as much as it may; the limit of one file leaves it at that."""
    total, count = _unlinked(processes), 0
    for folder, folders, files in os.walk(place):
        count += len(files) + len(folders)
        if count > _MOST_FILES:
            return True
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total >= most


def _unlinked(processes: Sequence[int]) -> int:
    """Bytes of files without a name that processes hold: open, or mapped into their memory. Of
    mapped ones the size is not known, so of more than a few each counts as a large one."""
    held: dict[tuple[int, int], int] = {}
    mapped: dict[str, int] = {}
    for number in processes:
        with suppress(OSError):
            for each in os.scandir(f"/proc/{number}/fd"):
                with suppress(OSError):
                    found = os.stat(each.path)
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                        held[found.st_dev, found.st_ino] = found.st_blocks * 512
        with suppress(OSError):
            for line in Path(f"/proc/{number}/maps").read_bytes().splitlines():
                if line.endswith(b"(deleted)") and b"/" in line:
                    range_, _, _, device, inode, *_ = line.split()
                    first, _, last = range_.partition(b"-")
                    mapped[f"{device!r} {inode!r}"] = int(last, 16) - int(first, 16)
    large = _MAPPED if len(mapped) > _FEW_MAPPED else 0
    return sum(held.values()) + sum(max(each, large) for each in mapped.values())


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(_MOST_TEXT).decode("utf-8", "replace")
