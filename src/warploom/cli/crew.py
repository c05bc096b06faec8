"""Who does the work: this process, several, or a cluster."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from warploom.errors import ParseError
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm


@contextmanager
def crew_of(processes: int | None, cluster: str | None) -> Iterator[Farm | Cluster | None]:
    """Those who were asked for; they go when it ends. None: this process does it all."""
    if processes is not None and cluster is not None:
        raise ParseError("--processes and --cluster exclude each other")
    crew: Farm | Cluster | None = None
    with _ended_in_order():
        if cluster is not None:
            crew = Cluster(cluster, _warn)
        elif processes is not None:
            crew = Farm(processes or os.cpu_count() or 1)
        try:
            yield crew
        finally:
            if crew is not None:
                crew.shutdown(cancel_futures=True)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM leaves no process and no file behind; a handler of somebody else is left alone."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def told(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, told)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _warn(line: str) -> None:
    """Writes a worker's warning to stderr, past the output that is kept with an answer."""
    getattr(sys.stderr, "behind", sys.stderr).write(f"warning: {line}\n")
