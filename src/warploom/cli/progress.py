"""Progress on standard error, if that is a terminal: at which step, how many states so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnStates = Callable[[str, int], None]

_EVERY = 0.1  # seconds between two updates


@contextmanager
def progress(name: str) -> Iterator[OnStates | None]:
    """A function to call with (where, states); None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    # Here, not at the top: rich takes longer to import than many sketches to fill.
    from rich.console import Console

    # What comes and goes is no part of an answer that is kept.
    console = Console(file=getattr(sys.stderr, "behind", sys.stderr))
    last = time.monotonic()
    with console.status(_plain(f"{name} …")) as status:

        def report(where: str, states: int) -> None:
            nonlocal last
            if time.monotonic() - last > _EVERY:
                last = time.monotonic()
                status.update(_plain(f"{name}: at {where}, {states} states"))

        yield report


def _plain(text: str) -> str:
    """Square brackets are not markup here."""
    return text.replace("[", r"\[")
