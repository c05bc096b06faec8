"""Flags that count on, as semaphores do: who waits for a number writes the next one.

The writes of such a flag are in order, one after the other, and each wait passes between two of
them that are known: then a write is before each wait that needs it, as a completion is. All this is
found on one run, and then asked of the order that it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from warploom.ptx.emulate.skeleton import Act, Agent, Event, FlagLoop, Recorded
from warploom.ptx.prove.conditions import Conditions, Failed
from warploom.ptx.prove.order import Order, Place

CHAIN = "chain"  # the kind of a flag that counts on, in place of `flag`
_WORD = 1 << 32
Holds = Callable[[int], bool]


@dataclass(slots=True)
class Chain:
    """A flag with the numbers that it holds, one after the other, and by place of an event of it
    the number of the state that it leaves, or passes in."""

    flag: Any
    held: list[int]
    state: dict[Place, int] = field(default_factory=dict)
    holds: dict[Place, Holds] = field(default_factory=dict)

    @property
    def named(self) -> Any:
        return (CHAIN, *self.flag[1:])


def chain_of(
    recorded: Recorded, flag: Any, holds: Callable[[FlagLoop, int], Holds]
) -> Chain | None:
    """The one way in which the events of a flag can follow each other, if they wait for it."""
    loops = {loop.load: loop for loop in recorded.loops}
    queues = {
        a: [k for k, event in enumerate(agent.events)
            if event.act in (Act.COME, Act.GO) and event.where == flag]
        for a, agent in enumerate(recorded.agents)
    }  # fmt: skip
    found = Chain(flag, [recorded.initial[flag] % _WORD])
    for a, places in queues.items():
        for k in places:
            event = recorded.agents[a].events[k]
            loop = loops.get(recorded.sites[event.site])
            if event.act is Act.GO and loop is not None:
                found.holds[a, k] = holds(loop, event.amount)
            elif event.act is Act.GO or len(recorded.agents[a].threads) > 1:
                return None
    while any(queues.values()):
        if _pass(found, queues):
            continue
        ready = [a for a, places in queues.items() if places and (a, places[0]) not in found.holds]
        if len(ready) != 1:
            return None
        k = queues[ready[0]].pop(0)
        event = recorded.agents[ready[0]].events[k]
        found.held.append((found.held[-1] * bool(event.bytes) + event.amount) % _WORD)
        found.state[ready[0], k] = len(found.held) - 1
    return found


def _pass(chain: Chain, queues: Mapping[int, list[int]]) -> bool:
    """Waits pass that what the flag holds now lets pass; whether there were any."""
    some = False
    for a, places in queues.items():
        while (
            places and (a, places[0]) in chain.holds and chain.holds[a, places[0]](chain.held[-1])
        ):
            chain.state[a, places.pop(0)] = len(chain.held) - 1
            some = True
    return some


def rewritten(recorded: Recorded, chains: list[Chain]) -> tuple[Recorded, list[Chain]]:
    """The same run with a phase for each write of such flags, and each wait in the phase that it
    needs; who needs none, waits for none. The chains are of the places that events have then."""
    if not chains:
        return recorded, []
    moved = [Chain(each.flag, each.held) for each in chains]
    agents: list[Agent] = []
    for a, agent in enumerate(recorded.agents):
        events: list[Event] = []
        for k, event in enumerate(agent.events):
            at = next((n for n, each in enumerate(chains) if (a, k) in each.state), None)
            if at is None:
                events.append(event)
                continue
            state = chains[at].state[a, k]
            moved[at].state[a, len(events)] = state
            if (a, k) in chains[at].holds:
                moved[at].holds[a, len(events)] = chains[at].holds[a, k]
            where = chains[at].named if state else ("passed", *chains[at].flag[1:])
            events.append(event._replace(where=where, phase=max(0, state - 1)))
        agents.append(replace(agent, events=tuple(events)))
    return replace(recorded, agents=tuple(agents)), moved


def check_chain(recorded: Recorded, chain: Chain) -> Iterator[Failed]:
    """flags: in every order each wait passes in its state, and in no other."""
    order: Order = Conditions(recorded).order
    if order.cycle is not None:
        return  # that is told of the order itself
    writes = {state: at for at, state in chain.state.items() if at not in chain.holds}
    for place, lets in chain.holds.items():
        state, site = chain.state[place], order.event(place).site
        # What a thread wrote itself may be on its way while it looks.
        over = [writes[j + 1] for j in range(state) if lets(chain.held[j])]
        if not all(at[0] != place[0] and order.before(at, place) for at in over):
            yield Failed("flags", "the flag may let it pass before the write that it needs", site)
        elif state + 1 in writes and not order.before_all(place, writes[state + 1]):
            message = "the flag may be written again before all who wait for it have passed"
            yield Failed("flags", message, site)
