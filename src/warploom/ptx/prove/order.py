"""The order of events that every schedule keeps, of one skeleton.

Edges: the order within a thread; from all that a phase waits for to its completion; from there to
the waits that it lets pass. An edge between agents leads through a completion, so what holds of
agents holds of each of their threads. That a load saw a store orders nothing, nor do atomics; nor
do registers that were waited for, unless that is asked. With a `Manual`, what is handed on along
those edges is what arrivals and fences release, and waits and fences acquire.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.skeleton import RELAXED, Act, Agent, Event
from warploom.ptx.prove.handed import HandedOn, Known, Manual, begun_by

Array = npt.NDArray[Any]
Phase = tuple[Any, int]  # an mbarrier or a group of threads, and which of its phases
Place = tuple[int, int]  # an agent, and which of its events

COUNTED = frozenset({Act.ARRIVE, Act.EXPECT, Act.COPY, Act.LATER})  # in a phase of an mbarrier
CONTRIBUTES = COUNTED | {Act.COME}
PASSES = frozenset({Act.WAIT, Act.TOKEN, Act.GO})


def of_registers(event: Event) -> bool:
    return event.act in (Act.COME, Act.GO) and event.where[0] == "registers"


@dataclass(slots=True)
class Order:
    """`known[a][k]` is what is before event k of agent a is reached."""

    agents: tuple[Agent, ...]
    registers: bool = False
    manual: Manual | None = None
    contributions: dict[Phase, list[Place]] = field(default_factory=dict)
    number: dict[Phase, int] = field(default_factory=dict)
    known: list[list[Known]] = field(default_factory=list)
    cycle: Place | None = None  # an event that would have to be before itself

    def __post_init__(self) -> None:
        for place, event in self.each():
            if event.act in CONTRIBUTES and (self.registers or not of_registers(event)):
                self.contributions.setdefault((event.where, event.phase), []).append(place)
        self.number = {phase: at for at, phase in enumerate(self.contributions)}
        self.known = [[] for _ in self.agents]
        self._walk()

    def each(self) -> Iterator[tuple[Place, Event]]:
        for a, agent in enumerate(self.agents):
            for k, event in enumerate(agent.events):
                yield (a, k), event

    def event(self, place: Place) -> Event:
        return self.agents[place[0]].events[place[1]]

    # -- asking ---------------------------------------------------------------------------------

    def before(self, first: Place, second: Place) -> bool:
        """Whether an event is before another one is reached."""
        a, k = first
        known, event = self.known[second[0]][second[1]], self.event(first)
        if known.reached[a] >= k or (event.act in PASSES and known.seen[a] >= k):
            return True
        # A phase may have counted it that is complete.
        return event.act in COUNTED and self.completed((event.where, event.phase), second)

    def before_all(self, first: Place, second: Place) -> bool:
        """Whether an event of any thread is before any thread of an agent reaches another one.

        Threads of one agent must have met in between.
        """
        (a, k), (b, last) = first, second
        if a != b or len(self.agents[a].threads) == 1:
            return self.before(first, second)
        event = self.event(first)
        if event.act in COUNTED and self.completed((event.where, event.phase), second):
            return True
        between = [each for each in self.agents[a].events[k + 1 : last] if self._orders(each)]
        came = {(e.where, e.phase) for e in between if e.act in CONTRIBUTES} & set(self.number)
        return any(e.act in PASSES and (e.where, e.phase) in came for e in between)

    def _orders(self, event: Event) -> bool:
        """Whether it orders all that its thread does, if others of its agent do the same."""
        if self.manual is None:
            return True
        copies = event.act in COUNTED and event.act is not Act.ARRIVE
        return not copies and not event.how & RELAXED

    def completed(self, phase: Phase, place: Place) -> bool:
        """Whether a phase is complete before an event is reached."""
        at = self.number.get(phase)
        return at is not None and bool(self.known[place[0]][place[1]].completed >> at & 1)

    def initialised(self, mbarrier: int, place: Place) -> bool:
        """Whether a fence tells who reaches an event that an mbarrier is initialised."""
        return bool(self.known[place[0]][place[1]].begun >> mbarrier & 1)

    # -- making ---------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Goes along the agents; each waits where a completion it needs is not known yet."""
        missing = {phase: len(places) for phase, places in self.contributions.items()}
        none = np.full(len(self.agents), -1)
        nothing = Known(none, none)
        told, bits = {phase: HandedOn(nothing) for phase in missing}, self._bits()
        waiting: dict[Phase, list[int]] = {}
        inits = [(place, event.where) for place, event in self.each() if event.act is Act.INIT]
        ready = list(range(len(self.agents)))
        state = [nothing for _ in self.agents]
        hands = [None if self.manual is None else self.manual.of(a, nothing) for a in self.agents]
        while ready:
            a = ready.pop()
            now, mine = state[a], hands[a]
            events = self.agents[a].events
            while len(self.known[a]) < len(events):
                k = len(self.known[a])
                event = events[k]
                phase = (event.where, event.phase)
                if event.act in PASSES and missing.get(phase):
                    waiting.setdefault(phase, []).append(a)
                    break
                self.known[a].append(now)
                now = now.at(a, k)
                if event.act in PASSES and phase in missing:
                    found = told[phase]
                    now = now.joined(found.near) if mine is None else mine.hear(event, now, found)
                    now = now.over(bits[phase])
                elif event.act in CONTRIBUTES and phase in missing:
                    if mine is None:
                        told[phase].near = told[phase].near.joined(now)
                    else:
                        mine.tell(event, now, told[phase])
                    missing[phase] -= 1
                    if not missing[phase]:
                        ready += waiting.pop(phase, [])
                elif mine is not None and event.act is Act.ORDERS:
                    now = mine.fence(event, now)
                elif event.act is Act.FENCE and event.amount:
                    now = begun_by(inits, now)
            state[a] = now
        stuck = [a for a, agent in enumerate(self.agents) if len(self.known[a]) < len(agent.events)]
        if stuck:
            self.cycle = (stuck[0], len(self.known[stuck[0]]))

    def _bits(self) -> dict[Phase, int]:
        """As bits: each phase, and of an mbarrier those before it, as they come one by one."""
        whole: dict[Any, int] = {}
        found: dict[Phase, int] = {}
        for where, phase in sorted(self.number, key=lambda each: each[1]):
            bit = 1 << self.number[where, phase]
            if isinstance(where, int):
                bit = whole[where] = whole.get(where, 0) | bit
            found[where, phase] = bit
        return found
