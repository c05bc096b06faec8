"""A decided implementation becomes a kernel, by way of its schedule."""

from __future__ import annotations

from warploom.kernel.ir import Kernel
from warploom.loopnest.decided import Implementation
from warploom.loopnest.scheduled import schedule_of
from warploom.schedule import lower as schedule
from warploom.schedule import outline


def lower(implementation: Implementation) -> Kernel:
    """The kernel of an implementation, synchronised, its shared arrays placed, checked."""
    return schedule.lower(schedule_of(implementation))


def outlined(implementation: Implementation) -> Kernel:
    """A kernel that does as much, made in a tenth of the time: it is counted, and never run."""
    return outline.outlined(schedule_of(implementation))


def raw(implementation: Implementation) -> Kernel:
    """Without barriers."""
    return schedule.raw(schedule_of(implementation))
