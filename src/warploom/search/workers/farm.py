"""Work on all cores: functions run in Python processes of their own that wait for more.

The work of a process that ends, whatever the reason, is done again by another; what ends several is
an error of whoever asked for it. Nothing of the script that started us is run again in there, as it
would be with `multiprocessing`.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

from warploom.errors import DeviceError
from warploom.process import python_command
from warploom.search.workers.answer import error_bytes
from warploom.search.workers.sources import CHANGED, running_digest

T = TypeVar("T")
P = ParamSpec("P")

_SERVE = "from warploom.search.workers.farm import serve; serve(int(sys.argv[1]), sys.argv[2])"
_LENGTH = 8  # bytes before each message
_LOOK_EVERY = 1.0  # seconds
ATTEMPTS = 3  # at work whose processes end
_OTHERS = 65  # the status of a process that finds other sources than those of who started it


class Farm(Executor):
    """Processes that run what is submitted: module-level functions and their arguments, as `pickle`
    takes them. What it does not take (a lambda, a function of the script itself) runs in a thread
    of this process."""

    def __init__(self, workers: int | None = None) -> None:
        # One core is left for whoever waits for the results and measures them.
        self.workers = workers or max(1, (os.cpu_count() or 2) - 1)
        self._threads = ThreadPoolExecutor(self.workers)
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._shared: list[Path] = []
        self._closed = False
        self._abandoned = 0  # how often what was being worked on was given up

    def share(self, value: Any) -> Any:
        """Something large that many pieces of work need; `shared` gives it back over there."""
        with tempfile.NamedTemporaryFile("wb", prefix="warploom-", delete=False) as file:
            self._shared.append(Path(file.name))
            pickle.dump(value, file)
        return Shared(self._shared[-1])

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        work = _pickled(fn, args, kwargs)
        if work is None:
            return self._threads.submit(fn, *args, **kwargs)
        return self._threads.submit(self._elsewhere, work)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """With `cancel_futures` also what is being worked on ends."""
        if cancel_futures:
            with self._lock:
                self._closed = True
                for process in self._processes:
                    process.kill()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        with self._lock:
            self._closed = True
            for process in self._processes:
                _end(process)
            self._processes.clear()
        for path in self._shared:
            path.unlink(missing_ok=True)
        self._shared.clear()

    def abandon(self) -> None:
        """Nobody waits any longer for what is being worked on: it ends, without a result."""
        with self._lock:
            self._abandoned += 1
            for process in self._processes:
                process.kill()

    def _elsewhere(self, work: bytes) -> Any:
        status, before = 0, self._abandoned
        for _ in range(ATTEMPTS):
            process = self._process()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                _send(process.stdin, work)
                succeeded, value = pickle.loads(_receive(process.stdout))
            except (OSError, EOFError):
                self._mine.process = None
                status = process.wait()
                if self._abandoned != before:
                    raise DeviceError("the work was given up") from None
                continue
            if not succeeded:
                raise value
            return value
        if status == _OTHERS:
            raise DeviceError(
                "the files of Warploom changed after this process had loaded some of them",
                advice="start it again",
            )
        raise DeviceError(f"a worker process ended with status {status}, {ATTEMPTS} times")

    def _process(self) -> subprocess.Popen[bytes]:
        """The process of this thread, begun with its first work."""
        found: subprocess.Popen[bytes] | None = getattr(self._mine, "process", None)
        if found is None:
            with self._lock:
                if self._closed:
                    raise DeviceError("the farm is closed")
                # A session of its own: Ctrl-C is for us, who end it in order.
                found = subprocess.Popen(
                    python_command(_SERVE, str(os.getpid()), running_digest()),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
                self._processes.append(found)
            self._mine.process = found
        return found


@dataclass(frozen=True, slots=True)
class Shared:
    """Stands for a value that lies in a file."""

    path: Path


def shared(value: Any) -> Any:
    """What `share` of a farm was given; a cluster has put it there already."""
    if isinstance(value, Shared):
        with value.path.open("rb") as file:
            return pickle.load(file)
    return value


def serve(parent: int, sources: str) -> None:
    """The life of a worker: a function in, its result or error out, until nobody asks any more.
    Files that changed since the parent loaded them would be another program."""
    if running_digest() != sources or sources == CHANGED:
        os._exit(_OTHERS)
    threading.Thread(target=_outlive_nobody, args=(parent,), daemon=True).start()
    asked, told = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the functions print is no message
    while True:
        try:
            message = _receive(asked)
        except EOFError:
            return
        try:
            function, args, kwargs = pickle.loads(message)
            answer = pickle.dumps((True, function(*args, **kwargs)))
        except Exception as error:  # noqa: BLE001  # it is raised where it was asked for
            answer = error_bytes(error)
        try:
            _send(told, answer)
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(1)  # as Python would say so again while it ends


def _outlive_nobody(parent: int) -> None:
    """Nobody waits for a result any more when the process that asked for it is gone."""
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(1)


def _pickled(function: Callable[..., Any], args: Any, kwargs: Any) -> bytes | None:
    inner = getattr(function, "func", function)  # of a functools.partial
    if getattr(inner, "__module__", "__main__") == "__main__":
        return None
    try:
        return pickle.dumps((function, args, kwargs))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def _send(stream: Any, message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH, "little") + message)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> bytes:
    length = stream.read(_LENGTH)
    if len(length) < _LENGTH:
        raise EOFError
    size = int.from_bytes(length, "little")
    message: bytes = stream.read(size)
    if len(message) < size:  # whoever sent it ended while it did
        raise EOFError
    return message


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # it ended before it had read what was sent
                stream.close()
    process.wait()
