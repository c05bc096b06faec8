"""Which workers of a cluster may be asked: those that run the sources of this process.

They come and go. Each is checked before it is asked for the first time; one that answers from other
sources later is refused from then on, for as long as it is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warploom.errors import GoneError
from warploom.search.workers.answer import fault_of

REMEDY = "install the same version everywhere, and start the workers again"
_NAMED = 4  # workers in one error


@dataclass(frozen=True, slots=True)
class Worker:
    threads: int
    labels: frozenset[str] = frozenset()


class Roster:
    """The workers by address; `told` hears one line of each that is refused."""

    def __init__(self, ours: str, told: Callable[[str], object]) -> None:
        self.ours, self._told = ours, told
        self._lock = threading.Lock()
        self._known: dict[str, Worker] = {}
        self._good: set[str] = set()
        self._refused: dict[str, str] = {}
        self._said: set[tuple[str, str]] = set()  # once, also of one that leaves and comes back

    def seen(self, known: Mapping[str, Worker]) -> list[str]:
        """Takes note of who is there now. Goes out: those who were not checked yet."""
        with self._lock:
            self._known = dict(known)
            self._good &= known.keys()
            self._refused = {who: why for who, why in self._refused.items() if who in known}
            return sorted(known.keys() - self._good - self._refused.keys())

    def judge(self, said: Mapping[str, object]) -> None:
        """By what each says of the sources that it runs; of one that cannot be reached, nothing."""
        for who, what in said.items():
            if isinstance(what, OSError):
                continue
            fault = fault_of(what, self.ours)
            if fault is not None:
                self.refuse(who, fault)
                continue
            with self._lock:
                if who in self._known and who not in self._refused:
                    self._good.add(who)

    def refuse(self, who: str, why: str) -> None:
        with self._lock:
            new = (who, why) not in self._said
            self._said.add((who, why))
            self._good.discard(who)
            self._refused[who] = why
        if new:
            self._told(f"the worker {who} {why}: it is not asked; {REMEDY}")

    def to_ask(self, label: str | None = None) -> list[str]:
        with self._lock:
            return sorted(
                who for who in self._good if label is None or label in self._known[who].labels
            )

    @property
    def threads(self) -> int:
        """Threads of all workers that may be asked."""
        with self._lock:
            return sum(self._known[who].threads for who in self._good)

    def refusal(self) -> GoneError:
        """That nobody is left to ask, and why."""
        with self._lock:
            reasons = [f"{who} {why}" for who, why in sorted(self._refused.items())]
        if not reasons:
            return GoneError("the cluster has no workers", advice="start some: dask worker ADDRESS")
        more = f"; and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
        return GoneError(
            "no worker of the cluster runs the sources of this command: "
            f"{'; '.join(reasons[:_NAMED])}{more}",
            advice=REMEDY,
        )
