"""registers: who waits for more of them, by setmaxnreg, gets them in every order.

Nothing else may count on such a wait, as there may be enough without it; so it orders nothing. All
that can go on does so, until some wait: for every set of increases at which threads may wait at
once, what all others hold by then has to leave enough for all of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.machine.record import CUDA
from warploom.ptx.emulate.registers import STEP
from warploom.ptx.emulate.skeleton import Act, Recorded
from warploom.ptx.prove.conditions import Conditions, Failed
from warploom.ptx.prove.order import Order, Place, of_registers

WARP = 32
WARPGROUP = 4 * WARP
Wait = tuple[Place, ...]
MOST_SETS = 1 << 12  # of increases of one block


def check_meetings(recorded: Recorded) -> Iterator[Failed]:
    """aligned: by the manual the warps of a warpgroup meet before they set registers again."""
    order = Order(recorded.agents)
    places = [
        [(a, k) for k, event in enumerate(agent.events) if of_registers(event)]
        for a, agent in enumerate(recorded.agents)
    ]
    if order.cycle is not None or not any(len(each) > 1 for each in places):
        return
    size = recorded.block_threads
    groups = [
        {(agent.block, thread % size // WARPGROUP) for thread in agent.threads}
        for agent in recorded.agents
    ]
    for a, mine in enumerate(places):
        for b, theirs in enumerate(places):
            if not groups[a] & groups[b]:
                continue
            for before, after in zip(mine, theirs[1:], strict=False):
                if not order.before_all(before, after):
                    message = (
                        "warps of the warpgroup may not have met since it set its registers before"
                    )
                    yield Failed("aligned", message, order.event(after).site)


def check_registers(recorded: Recorded, each: int | None) -> Iterator[Failed]:
    """`each` is what a thread begins with, where that is known; else as many as there can be."""
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
        each = _most(recorded.block_threads)  # more is never known, and with less there are none
    order = Conditions(recorded).order
    for block in sorted(blocks) if order.cycle is None else ():
        yield from _Pool(recorded, order, block, each).failed()


def _most(threads: int) -> int:
    """The registers that a thread can begin with, in a block of so many."""
    return min(CUDA.block_registers // threads, CUDA.thread_registers) // STEP * STEP


@dataclass(frozen=True, slots=True)
class _Pool:
    recorded: Recorded
    order: Order
    block: int
    each: int

    def failed(self) -> Iterator[Failed]:
        """The first set of increases that lack registers."""
        sets = [self._places(unit) for unit in self._units()]
        increases = [self._increases(each) for each in sets]
        some = self._alike(sets, increases) or self._together(increases)
        for count, waits in enumerate(some):
            found = [*self._lacks(sets, waits)]
            if count == MOST_SETS:
                message = "registers are asked for in too many orders"
                found = [Failed("registers", message, self._site(waits[0]))]
            yield from found[:1]
            if found:
                return

    def _alike(self, sets: list[list[Wait]], increases: list[list[Wait]]) -> list[list[Wait]]:
        """One set of increases, where all lack as much: each is the only and last step of its unit,
        and nothing that others do comes after it. Who waits then counts as if it had got its own,
        and who does not is done."""
        if any(each and each != places[-1:] for each, places in zip(increases, sets, strict=True)):
            return []
        waits = [(number, each) for number, some in enumerate(increases) for each in some]
        for number, wait in waits:
            for other, places in enumerate(sets):
                if other != number and any(self._after(wait, at) for at in places):
                    return []
        return [[wait] for _, wait in waits[:1]]

    def _together(self, increases: list[list[Wait]], *before: Wait) -> Iterator[list[Wait]]:
        """Sets of increases, at most one of each unit, of which none comes after another."""
        for number, choices in enumerate(increases):
            for each in choices:
                if not any(self._after(a, each) or self._after(each, a) for a in before):
                    yield [*before, each]
                    yield from self._together(increases[number + 1 :], *before, each)

    def _units(self) -> list[list[int]]:
        """Agents of which some are in one warp, so that they set registers together."""
        mine = [a for a, agent in enumerate(self.recorded.agents) if agent.block == self.block]
        start = min(self.recorded.agents[a].threads[0] for a in mine)
        units: list[tuple[set[int], list[int]]] = []
        for a in mine:
            warps = {(thread - start) // WARP for thread in self.recorded.agents[a].threads}
            near = [each for each in units if each[0] & warps]
            units = [each for each in units if not each[0] & warps]
            units.append((warps.union(*(w for w, _ in near)), sum((u for _, u in near), [a])))
        return [agents for _, agents in units]

    def _places(self, unit: list[int]) -> list[Wait]:
        """Where a unit sets its registers, in order: a place of each of its agents."""
        each = [
            [(a, k) for k, event in enumerate(self.order.agents[a].events) if of_registers(event)]
            for a in unit
        ]
        return [tuple(places) for places in zip(*each, strict=False)]

    def _increases(self, places: list[Wait]) -> list[Wait]:
        return [each for each in places if self.order.event(each[0]).act is Act.GO]

    def _site(self, wait: Wait) -> int:
        return self.order.event(wait[0]).site

    def _after(self, wait: Wait, other: Wait) -> bool:
        return any(self.order.before(a, b) for a in wait for b in other)

    def _lacks(self, sets: list[list[Wait]], waits: list[Wait]) -> Iterator[Failed]:
        """Whether these lack registers when they all wait, and all else has been done."""
        held = wanted = had = 0
        for places, unit in zip(sets, self._units(), strict=True):
            threads, now = sum(len(self.order.agents[a].threads) for a in unit), self.each
            for at in places:
                if at in waits:
                    wanted += threads * (self.order.event(at[0]).amount - now)
                    yield from self._again(places, at)
                if any(at == wait or self._after(wait, at) for wait in waits):
                    break
                now = self.order.event(at[0]).amount
            held += threads * now
            had += threads * self.each
        if held + wanted > had:
            message = (
                f"{held + wanted} registers of the block may be held or waited for at once, and it "
                f"began with {had}"
            )
            yield Failed("registers", message, self._site(waits[0]))

    def _again(self, places: list[Wait], at: Wait) -> Iterator[Failed]:
        """Warps that got theirs do not ask for more while others of them still wait."""
        for later in places[places.index(at) + 1 :][:1]:
            apart = any(not self.order.before_all(a, b) for a, b in zip(at, later, strict=True))
            if self.order.event(later[0]).act is Act.GO and apart:
                message = "some warps may ask for more registers while others lack theirs"
                yield Failed("registers", message, self._site(later))
