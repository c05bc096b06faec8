"""The order of events that every schedule keeps, of one skeleton.

Edges: the order within a thread; from all that a phase waits for to its completion; from there to
the waits that it lets pass. An edge between agents leads through a completion, so what holds of
agents holds of each of their threads. That a load saw a store orders nothing, nor do atomics; nor
do registers that were waited for, unless that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.skeleton import Act, Agent, Event

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
    """`reached[a][k]`: by agent, the last event that is before event k of agent a is reached;
    `known[a][k]` are, as bits, the completions before that."""

    agents: tuple[Agent, ...]
    registers: bool = False
    contributions: dict[Phase, list[Place]] = field(default_factory=dict)
    number: dict[Phase, int] = field(default_factory=dict)
    reached: list[list[Array]] = field(default_factory=list)
    known: list[list[int]] = field(default_factory=list)
    cycle: Place | None = None  # an event that would have to be before itself

    def __post_init__(self) -> None:
        for place, event in self.each():
            if event.act in CONTRIBUTES and (self.registers or not of_registers(event)):
                self.contributions.setdefault((event.where, event.phase), []).append(place)
        self.number = {phase: at for at, phase in enumerate(self.contributions)}
        self.reached = [[] for _ in self.agents]
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
        return bool(self.reached[second[0]][second[1]][a] >= k)

    def before_all(self, first: Place, second: Place) -> bool:
        """Whether an event of any thread is before any thread of an agent reaches another one.

        Threads of one agent must have met in between.
        """
        (a, k), (b, last) = first, second
        if a != b or len(self.agents[a].threads) == 1:
            return self.before(first, second)
        between = self.agents[a].events[k + 1 : last]
        came = {(e.where, e.phase) for e in between if e.act in CONTRIBUTES} & set(self.number)
        return any(e.act in PASSES and (e.where, e.phase) in came for e in between)

    def completed(self, phase: Phase, place: Place) -> bool:
        """Whether a phase is complete before an event is reached."""
        at = self.number.get(phase)
        return at is not None and bool(self.known[place[0]][place[1]] >> at & 1)

    # -- making ---------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Goes along the agents; each waits where a completion it needs is not known yet."""
        missing = {phase: len(places) for phase, places in self.contributions.items()}
        clock = {phase: np.full(len(self.agents), -1) for phase in missing}
        seen = dict.fromkeys(missing, 0)
        waiting: dict[Phase, list[int]] = {}
        ready = list(range(len(self.agents)))
        state = [(np.full(len(self.agents), -1), 0) for _ in self.agents]
        while ready:
            a = ready.pop()
            now, known = state[a]
            events = self.agents[a].events
            while len(self.reached[a]) < len(events):
                k = len(self.reached[a])
                event = events[k]
                phase = (event.where, event.phase)
                if event.act in PASSES and missing.get(phase):
                    waiting.setdefault(phase, []).append(a)
                    break
                self.reached[a].append(now)
                self.known[a].append(known)
                now = now.copy()
                now[a] = k
                if event.act in PASSES and phase in missing:
                    now = np.maximum(now, clock[phase])
                    known |= seen[phase] | 1 << self.number[phase]
                elif event.act in CONTRIBUTES and phase in missing:
                    clock[phase] = np.maximum(clock[phase], now)
                    seen[phase] |= known
                    missing[phase] -= 1
                    if not missing[phase]:
                        ready += waiting.pop(phase, [])
            state[a] = (now, known)
        stuck = [
            a for a, agent in enumerate(self.agents) if len(self.reached[a]) < len(agent.events)
        ]
        if stuck:
            self.cycle = (stuck[0], len(self.reached[stuck[0]]))
