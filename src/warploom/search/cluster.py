"""Work on a Dask cluster: the one module that imports it.

Dask runs whatever code it is sent, and so does every worker of it: whoever reaches its scheduler
owns the machines. So the scheduler must be on this machine, or be reached by TLS, which tells who
is there.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from warploom.errors import CheckError, DeviceError, missing_extra
from warploom.search.store import sources_digest

T = TypeVar("T")
P = ParamSpec("P")

HELP = (
    "A Dask scheduler, tcp://127.0.0.1:8786 or tls://HOST:PORT (needs warploom[cluster]). Dask "
    "runs code it is sent: only this machine or TLS is taken."
)
GPU = "GPU"  # the label of workers that measure: dask worker --resources GPU=1
_SECONDS = 20  # to reach the scheduler
_GOES_ON = "what was done is kept in the store: the same command goes on where it was"


class Cluster(Executor):
    """Workers of a Dask scheduler. Work of one that is lost is done again by Dask itself."""

    def __init__(self, address: str) -> None:
        check_address(address)
        try:
            from distributed import Client  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise missing_extra("distributed", "cluster") from None
        _hush()
        try:
            self._client: Any = Client(address, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise DeviceError(
                f"no Dask scheduler answers at '{address}': {str(error)[:200]}",
                advice="start one with 'dask scheduler --host 127.0.0.1' and 'dask worker'",
            ) from None
        self._check_sources()

    def _check_sources(self) -> None:
        theirs = self._client.run(sources_digest)
        if not theirs:
            self._client.close()
            raise DeviceError(
                "the cluster has no workers", advice="start some: dask worker ADDRESS"
            )
        if others := sorted(who for who, digest in theirs.items() if digest != sources_digest()):
            self._client.close()
            raise DeviceError(
                f"the worker {others[0]} runs other sources of Warploom than this command",
                advice="install the same version everywhere",
            )

    @property
    def workers(self) -> int:
        """Threads of all workers, as it is now: they come and go."""
        return max(1, sum(map(int, self._client.nthreads().values())))

    @property
    def measures(self) -> bool:
        """Whether a worker has the label GPU."""
        known = self._client.scheduler_info()["workers"].values()
        return any(each.get("resources", {}).get(GPU, 0) >= 1 for each in known)

    def share(self, value: Any) -> Any:
        """Sent to every worker once; stands for the value as an argument of `submit`."""
        return self._client.scatter(value, broadcast=True, hash=False)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._submitted(None, fn, *args, **kwargs)

    def measure(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """On a worker with the label GPU, which has one thing at a time to do."""
        return self._submitted({GPU: 1}, fn, *args, **kwargs)

    def _submitted(self, label: Any, fn: Any, *args: Any, **kwargs: Any) -> Future[Any]:
        told: Future[Any] = Future()
        told.set_running_or_notify_cancel()
        try:
            asked = self._client.submit(fn, *args, pure=False, resources=label, **kwargs)
            asked.add_done_callback(lambda done: _tell(done, told))
        except Exception as error:  # noqa: BLE001  # of its own kinds, which are many
            told.set_exception(DeviceError(f"the cluster is gone: {error}", advice=_GOES_ON))
        return told

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """The cluster itself goes on; what we asked for ends with our connection."""
        del wait, cancel_futures
        with suppress(Exception):  # it may be gone already
            self._client.close(timeout=_SECONDS)


def _hush() -> None:
    """What Dask logs of lost connections, with tracebacks, we say in one line."""
    for name in [
        each for each in logging.root.manager.loggerDict if each.startswith("distributed")
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _tell(asked: Any, told: Future[Any]) -> None:
    """What became of work over there, to whoever waits here."""
    if asked.status == "finished":
        told.set_result(asked.result())
        return
    error = asked.exception() if asked.status == "error" else None
    if error is None or type(error).__name__ in ("KilledWorker", "CancelledError"):
        error = DeviceError(
            f"work on the cluster was lost ({asked.status}): {error or 'no reason'}"
        )
    told.set_exception(error)


def check_address(address: str) -> None:
    """Refuses what others could reach, or listen to."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if parts.scheme not in ("tcp", "tls") or not host or port is None:
        raise CheckError(
            f"'{address[:80]}' is no address of a Dask scheduler",
            advice="write tcp://127.0.0.1:8786 or tls://HOST:8786",
        )
    if parts.scheme == "tcp" and not _is_here(host):
        raise CheckError(
            f"'{address[:80]}' is another machine, without TLS: Dask runs code that it is sent",
            advice="use tls://, or a scheduler on 127.0.0.1",
        )


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
