"""A command run to its end or to a time limit; then all that it started ends with it.

Nothing is run, nor imported by a Python that is started, only because it lies in the working
folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from warploom.errors import DeviceError
from warploom.options import from_environment

TIMEOUT_S = 120.0


def run_command(
    command: Sequence[str], failure: str, timeout: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """The command's exit status and output; `failure` begins the error if it cannot be had."""
    program = find_program(command[0])
    if program is None:
        raise DeviceError(f"{failure}: '{command[0]}' is not there")
    with _SignalsHeldBack() as signals:
        try:
            # A group of its own: compilers start others, which must not outlive them.
            process = subprocess.Popen(
                [program, *command[1:]],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise DeviceError(f"{failure}: {error}") from None
        with process:
            try:
                signals.let_through()
                out, said = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                raise DeviceError(f"{failure}: it took more than {timeout:g} s") from None
            finally:
                if process.poll() is None:
                    with _SignalsHeldBack(), suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
    return subprocess.CompletedProcess(list(command), process.returncode, out, said)


_STOPS = [
    getattr(signal, each) for each in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, each)
]


class _SignalsHeldBack:
    """Signals whose handlers may raise are noted, until somebody can end what has been started.

    One between the fork and the next line would leave the process without an owner. Blocking them
    instead would block them in the process, too."""

    def __init__(self) -> None:
        self._late: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # where handlers run
            found = {each: signal.getsignal(each) for each in _STOPS}
            self._handlers = {each: found[each] for each in found if callable(found[each])}
        for each in self._handlers:
            signal.signal(each, lambda number, _frame: self._late.append(number))
        return self

    def let_through(self) -> None:
        """From now on they are handled, those that came first."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}  # last: what one of them raises here leaves all to `__exit__`
        while self._late:
            signal.raise_signal(self._late.pop())

    def __exit__(self, *_: object) -> None:
        self.let_through()


def find_program(name: str) -> str | None:
    """Where a program is, as a path or on PATH; of the folders there, those that depend on where
    one stands are left out."""
    found = shutil.which(name)
    if found is None or os.path.dirname(name) or os.path.isabs(found):
        return found
    folders = [each for each in from_environment().path.split(os.pathsep) if os.path.isabs(each)]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


# Nothing is imported before the path is set but what Python has with it.
_SAME_PATH = "import json, sys\nsys.path[:] = json.loads(sys.argv.pop(1))\n"
_FLAGS = {
    "isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s", "no_site": "-S",
    "optimize": "-O",
}  # fmt: skip


def python_command(code: str, *words: str) -> list[str]:
    """A Python like this one, which looks for modules where this one does and runs the code. The
    working folder is among these places only if it is here."""
    flags = [flag for name, flag in _FLAGS.items() if getattr(sys.flags, name)]
    path = json.dumps([each for each in sys.path if isinstance(each, str)])
    return [sys.executable, "-P", *flags, "-c", _SAME_PATH + code, path, *words]
