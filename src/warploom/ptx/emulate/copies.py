"""Copies that end later than they are issued: groups of cp.async, and who has waited for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.manner import Manner
from warploom.machine.race import RaceDetector

Array = npt.NDArray[Any]


@dataclass(slots=True)
class _Copy:
    """Accesses of one instruction that are under way; arrays go over its threads."""

    region: Any
    threads: Array
    start: Array
    width: int
    manner: Manner
    label: Any
    group: Array


@dataclass(slots=True)
class Copies:
    """Groups of cp.async: what each thread has begun, and what it has waited for."""

    threads: int
    group: Array = field(init=False)  # how many groups each thread has closed
    under_way: list[_Copy] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = np.zeros(self.threads, np.int64)

    def add(
        self, region: Any, threads: Array, start: Array, width: int, manner: Manner, label: Any
    ) -> None:
        group = self.group[threads]
        self.under_way.append(_Copy(region, threads, start, width, manner, label, group))

    def wait(self, races: RaceDetector, threads: Array, newest: Array) -> None:
        """Each of these threads waits for all but so many of its newest groups."""
        limit = np.full(self.threads, -1, np.int64)
        limit[threads] = self.group[threads] - newest
        rest: list[_Copy] = []
        for one in self.under_way:
            done = one.group < limit[one.threads]
            if done.any():
                races.complete(
                    one.region, one.threads[done], one.start[done], one.width, one.manner, one.label
                )  # fmt: skip
            if not done.all():
                left = ~done
                kept = (one.threads[left], one.start[left], one.width, one.manner, one.label)
                rest.append(_Copy(one.region, *kept, one.group[left]))
        self.under_way = rest
