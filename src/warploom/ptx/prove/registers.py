"""registers: who waits for more of them, by setmaxnreg, gets them in every order.

Nothing else may count on such a wait, as there may be enough without it; so it orders nothing. All
that can go on does so, until some wait: for every set of increases at which threads may wait at
once, what all others hold by then has to leave enough for all of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from warploom.ptx.emulate.skeleton import Act, Recorded
from warploom.ptx.prove.conditions import Conditions, Failed
from warploom.ptx.prove.order import Order, Place, of_registers

MOST_SETS = 1 << 12  # of increases of one block


def check_registers(recorded: Recorded, each: int | None) -> Iterator[Failed]:
    """`each` is what a thread begins with, where that is known."""
    blocks = {
        agent.block for agent in recorded.agents for event in agent.events if of_registers(event)
    }
    if not blocks:
        return
    if each is None:
        order = Order(recorded.agents, registers=True)
        if order.cycle is not None:
            message = "this waits for registers, or for threads that do, of which none come back"
            yield Failed("registers", message, order.event(order.cycle).site)
        return
    order = Conditions(recorded).order
    for block in sorted(blocks) if order.cycle is None else ():
        yield from _Pool(recorded, order, block, each).failed()


@dataclass(frozen=True, slots=True)
class _Pool:
    recorded: Recorded
    order: Order
    block: int
    each: int

    def failed(self) -> Iterator[Failed]:
        mine = [a for a, agent in enumerate(self.recorded.agents) if agent.block == self.block]
        sets: dict[int, list[Place]] = {a: self._places(a) for a in mine}
        increases = [
            [None, *(at for at in sets[a] if self.order.event(at).act is Act.GO)] for a in mine
        ]
        count = 1
        for choices in increases:
            count *= len(choices)
        if count > MOST_SETS:
            first = next(at for choices in increases for at in choices[1:] if at is not None)
            message = "registers are asked for in too many orders"
            yield Failed("registers", message, self.order.event(first).site)
            return
        for chosen in product(*increases):
            waits = [at for at in chosen if at is not None]
            if waits and not self._one_after_another(waits):
                found = list(self._lacks(sets, waits))
                if found:  # one is enough to tell
                    yield found[0]
                    return

    def _places(self, a: int) -> list[Place]:
        events = self.order.agents[a].events
        return [(a, k) for k, event in enumerate(events) if of_registers(event)]

    def _one_after_another(self, waits: list[Place]) -> bool:
        return any(self.order.before(a, b) for a in waits for b in waits if a != b)

    def _lacks(self, sets: dict[int, list[Place]], waits: list[Place]) -> Iterator[Failed]:
        """Whether these lack registers when they all wait, and all else has been done."""
        held = wanted = 0
        for a, places in sets.items():
            threads, now = len(self.order.agents[a].threads), self.each
            for at in places:
                if at in waits:
                    wanted += threads * (self.order.event(at).amount - now)
                    yield from self._again(places, at)
                if any(at == wait or self.order.before(wait, at) for wait in waits):
                    break
                now = self.order.event(at).amount
            held += threads * now
        had = self.each * sum(len(self.order.agents[a].threads) for a in sets)
        if held + wanted > had:
            message = (
                f"{held + wanted} registers of the block may be held or waited for at once, and it "
                f"began with {had}"
            )
            yield Failed("registers", message, self.order.event(waits[0]).site)

    def _again(self, places: list[Place], at: Place) -> Iterator[Failed]:
        """Warps that got theirs do not ask for more while others of them still wait."""
        later = [each for each in places if each[1] > at[1]][:1]
        for each in later:
            event = self.order.event(each)
            if event.act is Act.GO and not self.order.before_all(at, each):
                message = "some warps may ask for more registers while others lack theirs"
                yield Failed("registers", message, event.site)
