"""Work on a Dask cluster: the one module that imports it.

Dask runs whatever code it is sent, and so does every worker of it: whoever reaches its scheduler
owns the machines. So the scheduler must be on this machine, or be reached by TLS, which tells who
is there. Workers that run other sources of Warploom than this process are not asked. Each answer
says which sources made it; one of others is thrown away, and another worker is asked.
"""

from __future__ import annotations

import ipaddress
import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from warploom.errors import CheckError, DeviceError, GoneError, missing_extra
from warploom.search.workers.answer import answer_to, fault_of, packed
from warploom.search.workers.roster import Roster, Worker
from warploom.search.workers.sources import CHANGED, running_digest

T = TypeVar("T")
P = ParamSpec("P")

GPU = "GPU"  # the label of workers that measure: dask worker --resources GPU=1
_SECONDS = 20  # to reach the scheduler
_FETCH_SECONDS = 60  # for a result that is there
_LOOK_EVERY = 0.5  # seconds
_PATIENCE = 30.0  # seconds without anybody who may be asked
ATTEMPTS = 3  # at work that comes back as nothing of ours, or whose workers are lost
_GOES_ON = "what was done is kept in the store: the same command goes on where it was"


@dataclass(slots=True, eq=False)
class _Work:
    """A call that was asked for, and who hears of it."""

    told: Future[Any]
    label: str | None
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    token: str = ""  # of the last attempt: another one's answer is none
    attempts: int = 0  # that came to nothing
    allowed: frozenset[str] = frozenset()  # who may do it; nobody: it was not sent yet
    asked: Any = None  # the future of Dask


@dataclass(slots=True, eq=False)
class _Share:
    """Something that lies on the workers; those that come later get it, too."""

    value: Any
    there: Any = None  # the future of Dask
    holders: frozenset[str] = frozenset()


class Cluster(Executor):
    """Workers of a Dask scheduler, as long as they run our sources: `told` hears of others. Work of
    one that is lost is done again.

    A scheduler that goes away is the end of all that was asked for: whoever waits hears it as an
    error. Dask does not always say so (of one that ended in order, or while a result was fetched),
    so somebody looks after the connection, and after workers that come and go.
    """

    def __init__(self, address: str, told: Callable[[str], object] | None = None) -> None:
        check_address(address)
        try:
            from distributed import Client  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise missing_extra("distributed", "cluster") from None
        _hush()
        ours = running_digest()
        if ours == CHANGED:
            raise DeviceError(
                "the files of Warploom changed after this process had loaded some of them",
                advice="start it again",
            )
        connect: Any = Client  # Dask's own has types in some versions
        try:
            self._client: Any = connect(address, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise DeviceError(
                f"no Dask scheduler answers at '{address}': {str(error)[:200]}",
                advice="start one with 'dask scheduler --host 127.0.0.1' and 'dask worker'",
            ) from None
        self.done_by: dict[str, int] = {}  # answers that were taken, by worker
        self._roster = Roster(ours, told or logging.getLogger("warploom").warning)
        self._waiting: set[_Work] = set()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._spreading = threading.Lock()
        self._alone_since: float | None = None
        self._meet()
        for task in (self._look_after, self._meet_late):
            threading.Thread(target=task, daemon=True).start()

    @property
    def workers(self) -> int:
        """Threads of all workers that may be asked, as it is now: they come and go."""
        if not self._is_there():
            raise _gone()
        return max(1, self._roster.threads)

    @property
    def measures(self) -> bool:
        """Whether a worker that may be asked has the label GPU."""
        return bool(self._roster.to_ask(GPU))

    def share(self, value: Any) -> Any:
        """Sent to every worker once; stands for the value as an argument of `submit`."""
        share = _Share(value)
        if not self._roster.to_ask():
            raise self._roster.refusal()
        self._spread(share)
        return share

    def _spread(self, share: _Share) -> Any:
        """Onto all who may be asked: Dask gives work to those who hold what it needs."""
        with self._spreading:
            holders = frozenset(self._roster.to_ask())
            if share.there is None or not holders <= share.holders:
                share.there = self._asked(
                    lambda: self._client.scatter(
                        [share.value], workers=sorted(holders), broadcast=True, hash=False
                    )
                )[0]
                share.holders = holders
            return share.there

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._submitted(None, fn, args, kwargs)

    def measure(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """On a worker with the label GPU, which has one thing at a time to do."""
        return self._submitted(GPU, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """The cluster itself goes on; what we asked for ends with our connection."""
        del wait, cancel_futures
        self._closed.set()
        with suppress(Exception):  # it may be gone already
            self._client.close(timeout=_SECONDS)

    # -- work --------------------------------------------------------------------------------------

    def _submitted(
        self, label: str | None, fn: Any, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Future[Any]:
        work = _Work(Future(), label, fn, args, named)
        work.told.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.add(work)
        self._send(work)
        if self._closed.is_set():  # nobody looks any more
            self._tell(work, None, _gone())
        return work.told

    def _send(self, work: _Work) -> None:
        """To whoever may do it; if that is nobody, it is sent later (`_rescue`)."""
        to_ask = self._roster.to_ask(work.label)
        with self._lock:
            work.token = token = str(next(self._numbers))
            work.allowed, work.asked = frozenset(to_ask), None
        if not to_ask:
            return
        label = None if work.label is None else {work.label: 1}
        try:
            args = [self._spread(arg) if isinstance(arg, _Share) else arg for arg in work.args]
            work.asked = asked = self._client.submit(
                _answered, token, work.fn, work.named, *args,
                pure=False, workers=to_ask, allow_other_workers=False, resources=label,
            )  # fmt: skip
            asked.add_done_callback(lambda done: self._heard(work, token, done))
        except Exception as error:  # noqa: BLE001  # of its own kinds, which are many
            if not self._is_there():
                self._tell(work, None, _gone(error))
            else:  # somebody who was to be asked has just gone: a little later it is another
                self._put_off(work, f"work on the cluster cannot be sent: {str(error)[:200]}")

    def _put_off(self, work: _Work, why: str) -> None:
        work.attempts += 1
        with self._lock:
            work.allowed, work.asked = frozenset(), None
        if work.attempts >= ATTEMPTS:
            self._tell(work, None, DeviceError(why))

    def _heard(self, work: _Work, token: str, done: Any) -> None:
        """Takes the answer of an attempt, or asks another worker."""
        with self._lock:
            if work not in self._waiting or work.token != token:
                return
        said, error = _outcome(done)
        if isinstance(error, _LostError):
            self._forget_shares(work)
            self._again(work, error.message)
            return
        if error is not None and isinstance(error, DeviceError):
            self._tell(work, None, error)
            return
        answer = None if error is not None else answer_to(token, said)
        if answer is None:
            self._doubt(
                work, error or DeviceError("an answer of the cluster is not an answer of Warploom")
            )
            return
        fault = fault_of(answer.digest, self._roster.ours)
        if fault is not None:
            self._roster.refuse(answer.who, fault)
            self._send(work)
            return
        self.done_by[answer.who] = self.done_by.get(answer.who, 0) + 1
        succeeded, value = answer.value()
        self._tell(work, *((value, None) if succeeded else (None, value)))

    def _doubt(self, work: _Work, error: BaseException) -> None:
        """Somebody could not even answer, and Dask does not say who: all are checked again."""
        self._check(self._roster.to_ask())
        self._again(work, f"work on the cluster failed: {type(error).__name__}: {error}")

    def _forget_shares(self, work: _Work) -> None:
        """They may have been lost with the last who held them."""
        for arg in work.args:
            if isinstance(arg, _Share):
                arg.holders = frozenset()

    def _again(self, work: _Work, why: str) -> None:
        work.attempts += 1
        if work.attempts < ATTEMPTS:
            self._send(work)
        else:
            self._tell(work, None, DeviceError(why[:400]))

    def _tell(self, work: _Work, value: Any, error: BaseException | None) -> None:
        """What became of work over there, to whoever waits here: once."""
        with self._lock:
            if work not in self._waiting:
                return
            self._waiting.discard(work)
            work.asked = None
        if error is None:
            work.told.set_result(value)
        else:
            work.told.set_exception(error)

    # -- workers -----------------------------------------------------------------------------------

    def _meet(self) -> None:
        """All who are there at first; if none may be asked, the cluster is refused."""
        self._check(self._roster.seen(self._asked(self._present)))
        if not self._roster.to_ask():
            self.shutdown()
            raise self._roster.refusal()

    def _present(self) -> dict[str, Worker]:
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return {
            who: Worker(
                int(each["nthreads"]),
                frozenset(name for name, count in each.get("resources", {}).items() if count >= 1),
            )
            for who, each in known.items()
        }

    def _check(self, workers: Sequence[str]) -> None:
        if workers:
            said = self._asked(
                lambda: self._client.run(running_digest, workers=list(workers), on_error="return")
            )
            self._roster.judge(said)

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception as error:  # noqa: BLE001  # as above
            raise _gone(error) from None

    def _look_after(self) -> None:
        while self._is_there() and not self._closed.wait(_LOOK_EVERY):
            self._rescue()
        self._closed.set()
        with self._lock:
            left = list(self._waiting)
        for work in left:
            self._tell(work, None, _gone())

    def _meet_late(self) -> None:
        """Workers that come later, in a thread of its own: a question to a scheduler that is gone
        takes its time."""
        while not self._closed.wait(_LOOK_EVERY):
            with suppress(GoneError):  # which the other thread hears
                self._check(self._roster.seen(self._asked(self._present)))

    def _rescue(self) -> None:
        """Work that nobody of those who are left may do is sent again, or given up in the end."""
        with self._lock:
            strays = [
                work
                for work in self._waiting
                if work.allowed.isdisjoint(self._roster.to_ask(work.label))
            ]
        if not strays:
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = now if self._alone_since is None else self._alone_since
        for work in strays:
            if self._roster.to_ask(work.label):
                self._send_elsewhere(work)
            elif now - self._alone_since > _PATIENCE:
                self._tell(work, None, self._left_alone(work))

    def _left_alone(self, work: _Work) -> GoneError:
        refusal = self._roster.refusal()
        if work.asked is None and not work.attempts:
            return refusal
        why = f"work on the cluster was lost with its workers, and {refusal.message}"
        return GoneError(why, advice=refusal.advice)

    def _send_elsewhere(self, work: _Work) -> None:
        self._forget_shares(work)
        asked, work.asked = work.asked, None
        if asked is None:  # it never was on its way
            self._send(work)
            return
        with suppress(Exception):  # whether it is done over there does not matter any more
            asked.cancel()
        self._again(work, "work on the cluster was lost with its workers")

    def _is_there(self) -> bool:
        """Whether the client still listens to the scheduler. After a farewell it does not, and says
        that it is running all the same."""
        listener = getattr(self._client, "_handle_report_task", None)
        return self._client.status == "running" and not (listener is not None and listener.done())


def _answered(token: str, fn: Callable[..., Any], named: Mapping[str, Any], *args: Any) -> Any:
    """Over there."""
    from distributed import get_worker

    return packed(token, get_worker().address, fn, args, named)


def _hush() -> None:
    """What Dask logs of lost connections, with tracebacks, we say in one line."""
    for name in [
        each for each in logging.root.manager.loggerDict if each.startswith("distributed")
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _gone(why: object = "the scheduler has ended") -> GoneError:
    return GoneError(f"the cluster is gone: {str(why)[:200]}", advice=_GOES_ON)


class _LostError(DeviceError):
    """Work that Dask gave up, or what it needed."""


def _outcome(asked: Any) -> tuple[Any, BaseException | None]:
    """What came back from over there, or an error: a `DeviceError` if it was lost on the way."""
    error = None
    try:
        if asked.status == "finished":
            return asked.result(timeout=_FETCH_SECONDS), None
        if asked.status == "error":
            error = asked.exception(timeout=_FETCH_SECONDS)
    except Exception as lost:  # noqa: BLE001  # as above
        return None, _LostError(f"a result on the cluster was lost: {str(lost)[:200]}")
    why = f"work on the cluster was lost ({asked.status}): {error or 'no reason'}"
    if error is None or type(error).__name__ == "CancelledError":
        return None, _LostError(why)
    return None, DeviceError(why) if type(error).__name__ == "KilledWorker" else error


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
