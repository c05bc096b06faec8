"""What threads hand on to each other, by the manual: what is released and acquired on the way.

A release hands on all that its thread knows; a relaxed arrival what that knew at its last fence,
and an expectation of bytes nothing. Copies, and arrivals that come when copies are done, begin
after what stands before them in their thread: they hand on what that has seen, and nothing of what
it wrote. Of each mbarrier alone more is known: whose phase is seen to be complete, of that all has
come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.semantics import Scope
from warploom.ptx.emulate.skeleton import (
    ACQUIRES,
    NARROW,
    OWN,
    RELAXED,
    RELEASES,
    Act,
    Agent,
    Event,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Known:
    """By agent: the last of its events that is over, and the last one up to which all that it saw,
    it has seen. As bits: phases that are complete, and mbarriers of which a fence told that they
    are initialised."""

    reached: Array
    seen: Array
    completed: int = 0
    begun: int = 0

    def joined(self, other: Known) -> Known:
        return Known(
            np.maximum(self.reached, other.reached), np.maximum(self.seen, other.seen),
            self.completed | other.completed, self.begun | other.begun,
        )  # fmt: skip

    def at(self, agent: int, event: int) -> Known:
        """This, and that an agent has done an event."""
        reached = self.reached.copy()
        reached[agent] = event
        return replace(self, reached=reached)

    def only_seen(self, nothing: Known) -> Known:
        seen = np.maximum(self.reached, self.seen)
        return replace(nothing, seen=seen, completed=self.completed)

    def over(self, phases: int) -> Known:
        return replace(self, completed=self.completed | phases)


def begun_by(inits: Iterable[tuple[tuple[int, int], int]], known: Known) -> Known:
    """What is known behind a fence that tells what was initialised before it."""
    bits = sum(1 << number for (a, k), number in inits if known.reached[a] >= k)
    return replace(known, begun=known.begun | bits)


@dataclass(slots=True)
class HandedOn:
    """What a phase hands on: of its own block, of others to all of the cluster, and of others who
    arrived in the scope of their block. Without the manual all of it is `near`."""

    near: Known
    far: Known | None = None
    narrow: Known | None = None


class Allowed(IntEnum):
    """What is taken for wide enough: nothing, waits in the scope of a block, or arrivals, too."""

    NOTHING = 0
    WAITS = 1
    ALL = 2


@dataclass(frozen=True, slots=True)
class Manual:
    homes: Sequence[int]  # the blocks of mbarriers
    excused: Allowed = Allowed.NOTHING

    def of(self, agent: Agent, nothing: Known) -> Hands:
        return Hands(self, agent.block, *[nothing] * 5)


@dataclass(slots=True)
class Hands:
    """What a thread knew at its last fences, for its block and for the cluster; and what it heard
    by relaxed waits of its block, and of others, which it knows behind its next fence."""

    manual: Manual
    block: int
    nothing: Known
    fenced: Known
    fenced_far: Known
    heard: Known
    heard_far: Known

    def tell(self, event: Event, known: Known, told: HandedOn) -> None:
        """A thread comes to a barrier of threads or an mbarrier, and hands on what it may."""
        if event.act is Act.COME:
            some = self._relaxed(self.fenced_far, known) if event.how & RELAXED else known
            told.near = told.near.joined(some)
        if event.act in (Act.COME, Act.EXPECT) or (event.act is Act.COPY and not event.blocks):
            return  # bytes that a thread counts itself are as those that it expects
        near = self.manual.homes[event.where] == self.block
        if event.act is not Act.ARRIVE:
            known = known.only_seen(self.nothing)
        elif event.how & RELAXED:
            known = self._relaxed(self.fenced if near else self.fenced_far, known)
        if near:
            told.near = told.near.joined(known)
        elif event.how & NARROW:
            told.narrow = known if told.narrow is None else told.narrow.joined(known)
        else:
            told.far = known if told.far is None else told.far.joined(known)

    def _relaxed(self, fenced: Known, known: Known) -> Known:
        return replace(fenced, begun=fenced.begun | known.begun)

    def hear(self, event: Event, known: Known, told: HandedOn) -> Known:
        """A thread goes on from there; gives what it knows then."""
        far: list[Known | None] = [told.far]
        if event.how & NARROW and self.manual.excused < Allowed.WAITS:
            far = []
        if self.manual.excused is Allowed.ALL:
            far.append(told.narrow)
        if event.how & RELAXED:
            self.heard = self.heard.joined(told.near)
            for each in filter(None, far):
                self.heard_far = self.heard_far.joined(each)
            return known
        known = known.joined(told.near)
        for each in filter(None, far):
            known = known.joined(each)
        return known

    def fence(self, event: Event, known: Known) -> Known:
        """A thread passes a fence; gives what it knows then."""
        if event.how & OWN:
            return known
        wide = event.amount >= Scope.CLUSTER
        if event.bytes & ACQUIRES:
            known = known.joined(self.heard)
            known = known.joined(self.heard_far) if wide else known
        if event.bytes & RELEASES:
            self.fenced = known
            self.fenced_far = known if wide else self.fenced_far
        return known
