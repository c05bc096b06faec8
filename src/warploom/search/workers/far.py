"""Measurements on workers that have a GPU: a bench over there that is asked like one that is here.

A bench is made by a function of a module and its arguments, once on each worker, and kept there for
as long as the same one is asked. What it is given and gives back travels.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Measuring(Protocol):
    """Workers of which some have a GPU: a `Cluster`."""

    def measure(self, fn: Callable[..., T], /, *args: Any) -> Future[T]: ...


class Far:
    """The bench of a worker, of which there is one kind in a cluster."""

    def __init__(self, crew: Measuring, make: Callable[..., Any], /, *args: Any) -> None:
        self._crew, self._asked = crew, pickle.dumps((make, args))

    def told(self, *names: str) -> list[Any]:
        """What the bench over there is: some of its attributes."""
        return self._crew.measure(_told, self._asked, names).result()

    def measure(self, prepared: Any, samples: int) -> Sequence[float]:
        return self._crew.measure(_measured, self._asked, prepared, samples).result()


_here = threading.local()  # the bench of this worker, and what it was made of


def _bench(asked: bytes) -> Any:
    if getattr(_here, "asked", None) != asked:
        make, args = pickle.loads(asked)
        _here.bench, _here.asked = make(*args), asked
    return _here.bench


def _told(asked: bytes, names: Sequence[str]) -> list[Any]:
    bench = _bench(asked)
    return [getattr(bench, name) for name in names]


def _measured(asked: bytes, prepared: Any, samples: int) -> list[float]:
    return list(_bench(asked).measure(prepared, samples))
