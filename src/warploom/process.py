"""A command run to its end or to a time limit; then all that it started ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from warploom.errors import DeviceError

TIMEOUT_S = 120.0


def run_command(
    command: Sequence[str], failure: str, timeout: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """The command's exit status and output; `failure` begins the error if it cannot be had."""
    try:
        # A group of its own: compilers start others, which must not outlive them.
        process = subprocess.Popen(
            command,
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
            out, said = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise DeviceError(f"{failure}: it took more than {timeout:g} s") from None
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(process.args, process.returncode, out, said)
