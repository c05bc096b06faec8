"""Standard streams that may be closed, full, or without a reader: none of it ends the work.

A command that prints goes on when nobody reads, as files that were asked for are still to be
written. What was lost is known at the end, and decides the exit status.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any


class _Patient(io.FileIO):
    """A file descriptor whose first error is kept in `lost`; what comes after that is dropped."""

    lost: OSError | None = None

    def write(self, data: Any) -> int:
        if self.lost is None:
            try:
                while (written := super().write(data)) is None:  # somebody made it non-blocking
                    select.select([], [self], [])
                return written
            except OSError as error:
                self.lost = error
        return memoryview(data).nbytes


def open_standard() -> None:
    """Opens what was closed (`>&-`) on the null device. Otherwise the next file that is opened
    would be standard output, and printing would go into it."""
    for number, mode, name in ((0, "r", "stdin"), (1, "w", "stdout"), (2, "w", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            taken = os.open(os.devnull, os.O_RDWR)
            if taken != number:
                os.dup2(taken, number)
                os.close(taken)
            _CLOSED.add(number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  # for good


_CLOSED: set[int] = set()


def was_closed(number: int) -> bool:
    """Whether whoever called us had closed this standard stream."""
    return number in _CLOSED


def patient(stream: Any) -> Any:
    """The stream with write errors kept, not raised; what is no file of the system is unchanged."""
    if not isinstance(stream, io.TextIOWrapper) or _raw(stream) is None:
        return stream
    raw = _Patient(stream.fileno(), "w", closefd=False)
    through = stream.write_through
    return io.TextIOWrapper(
        raw if through else io.BufferedWriter(raw),  # as Python does it
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=through,
    )


def lost(stream: Any) -> OSError | None:
    """Why some of what was written did not get through, if so."""
    raw = _raw(stream)
    return raw.lost if isinstance(raw, _Patient) else None


def _raw(stream: Any) -> io.FileIO | None:
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw if isinstance(raw, io.FileIO) else None
