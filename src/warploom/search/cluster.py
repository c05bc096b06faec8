"""Work on a Dask cluster: the one module that imports it.

Dask runs whatever code it is sent, and so does every worker of it: whoever reaches its scheduler
owns the machines. So the scheduler must be on this machine, or be reached by TLS, which tells who
is there.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from warploom.errors import CheckError, DeviceError, GoneError, missing_extra
from warploom.search.store import sources_digest

T = TypeVar("T")
P = ParamSpec("P")

HELP = (
    "A Dask scheduler, tcp://127.0.0.1:8786 or tls://HOST:PORT (needs warploom[cluster]). Dask "
    "runs code it is sent: only this machine or TLS is taken."
)
GPU = "GPU"  # the label of workers that measure: dask worker --resources GPU=1
_SECONDS = 20  # to reach the scheduler
_FETCH_SECONDS = 60  # for a result that is there
_LOOK_EVERY = 0.5  # seconds
_GOES_ON = "what was done is kept in the store: the same command goes on where it was"


class Cluster(Executor):
    """Workers of a Dask scheduler. Work of one that is lost is done again by Dask itself.

    A scheduler that goes away is the end of all that was asked for: whoever waits hears it as an
    error. Dask does not always say so (of one that ended in order, or while a result was fetched),
    so somebody looks after the connection.
    """

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
        self._waiting: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._check_sources()
        threading.Thread(target=self._look_after, daemon=True).start()

    def _check_sources(self) -> None:
        theirs = self._asked(lambda: self._client.run(sources_digest))
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
        threads = self._asked(self._client.nthreads)
        return max(1, sum(map(int, threads.values())))

    @property
    def measures(self) -> bool:
        """Whether a worker has the label GPU."""
        known = self._asked(self._client.scheduler_info)["workers"].values()
        return any(each.get("resources", {}).get(GPU, 0) >= 1 for each in known)

    def share(self, value: Any) -> Any:
        """Sent to every worker once; stands for the value as an argument of `submit`."""
        return self._asked(lambda: self._client.scatter(value, broadcast=True, hash=False))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._submitted(None, fn, *args, **kwargs)

    def measure(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """On a worker with the label GPU, which has one thing at a time to do."""
        return self._submitted({GPU: 1}, fn, *args, **kwargs)

    def _submitted(self, label: Any, fn: Any, *args: Any, **kwargs: Any) -> Future[Any]:
        told: Future[Any] = Future()
        told.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.add(told)
        try:
            asked = self._client.submit(fn, *args, pure=False, resources=label, **kwargs)
            asked.add_done_callback(lambda done: self._tell(told, *_outcome(done)))
        except Exception as error:  # noqa: BLE001  # of its own kinds, which are many
            self._tell(told, None, _gone(error))
        if self._closed.is_set():  # nobody looks any more
            self._tell(told, None, _gone())
        return told

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception as error:  # noqa: BLE001  # as above
            raise _gone(error) from None

    def _tell(self, told: Future[Any], value: Any, error: BaseException | None) -> None:
        """What became of work over there, to whoever waits here: once."""
        with self._lock:
            if told not in self._waiting:
                return
            self._waiting.discard(told)
        if error is None:
            told.set_result(value)
        else:
            told.set_exception(error)

    def _look_after(self) -> None:
        while self._is_there() and not self._closed.wait(_LOOK_EVERY):
            pass
        self._closed.set()
        with self._lock:
            left = list(self._waiting)
        for told in left:
            self._tell(told, None, _gone())

    def _is_there(self) -> bool:
        """Whether the client still listens to the scheduler. After a farewell it does not, and says
        that it is running all the same."""
        listener = getattr(self._client, "_handle_report_task", None)
        return self._client.status == "running" and not (listener is not None and listener.done())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """The cluster itself goes on; what we asked for ends with our connection."""
        del wait, cancel_futures
        self._closed.set()
        with suppress(Exception):  # it may be gone already
            self._client.close(timeout=_SECONDS)


def _hush() -> None:
    """What Dask logs of lost connections, with tracebacks, we say in one line."""
    for name in [
        each for each in logging.root.manager.loggerDict if each.startswith("distributed")
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _gone(why: object = "the scheduler has ended") -> GoneError:
    return GoneError(f"the cluster is gone: {str(why)[:200]}", advice=_GOES_ON)


def _outcome(asked: Any) -> tuple[Any, BaseException | None]:
    """The result of work over there, or its error; also if the way there is lost meanwhile."""
    error = None
    try:
        if asked.status == "finished":
            return asked.result(timeout=_FETCH_SECONDS), None
        if asked.status == "error":
            error = asked.exception(timeout=_FETCH_SECONDS)
    except Exception as lost:  # noqa: BLE001  # as above
        return None, GoneError(f"a result on the cluster was lost: {str(lost)[:200]}")
    if error is None or type(error).__name__ in ("KilledWorker", "CancelledError"):
        error = DeviceError(
            f"work on the cluster was lost ({asked.status}): {error or 'no reason'}"
        )
    return None, error


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
