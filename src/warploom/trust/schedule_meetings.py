"""Checks who comes to barriers of threads, in a certificate that one run stands for all schedules.

A named barrier that is for so many threads counts warps, each as 32, and needs exactly these. One
of the whole block or cluster needs everybody who has not left, and lanes that meet all that their
mask names. Whoever leaves counts as one who comes, so that leaving is before the others go on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from warploom.trust.checked import require
from warploom.trust.schedule_flags import Batch, Node

Phase = tuple[Any, int]
_WARP = 32
MEETINGS = ("warp", "barrier", "cluster")


def check_meetings(batch: Batch, cluster: int) -> Iterator[tuple[Phase, Node]]:
    """Raises where too few or too many come; gives whose end a round waits for, as they left."""
    made = _Meetings(batch, cluster)
    for phase in made.comes:
        kind = phase[0][0]
        if kind == "barrier":
            yield from made.barrier(phase)
        elif kind == "cluster":
            yield from made.all_come(phase, made.of_cluster(phase[0]))
        else:
            yield from made.lanes(phase)


class _Meetings:
    """`comes`: by group and round, the agents that come; `last`: by group and agent, the last
    round that it comes to."""

    def __init__(self, batch: Batch, cluster: int) -> None:
        self.agents = batch.agents
        self.cluster = cluster
        self.comes: dict[Phase, set[int]] = defaultdict(set)
        self.amounts: dict[Phase, set[int]] = defaultdict(set)
        self.last: dict[tuple[Any, int], int] = {}
        for (_, agent, _), (act, where, phase, amount, *_) in batch.rows.items():
            if act != "come" or where[0] not in MEETINGS:
                continue
            before = self.last.get((where, agent), 0)
            require(before <= phase, f"{where}: who comes goes back to an earlier round")
            self.comes[where, phase].add(agent)
            self.amounts[where, phase].add(amount)
            self.last[where, agent] = phase
        self.per_block = max((w for each in self.agents for w in each["warps"]), default=0) + 1

    def exits(self, phase: Phase, agents: list[int]) -> Iterator[tuple[Phase, Node]]:
        """The ends of those that do not come; they may not come later either."""
        where, number = phase
        for a in agents:
            left = self.last.get((where, a), -1) < number
            require(left, f"{where}: fewer come to round {number} than it is for")
            yield phase, ("e", a, len(self.agents[a]["events"]) - 1)

    def all_come(self, phase: Phase, agents: list[int]) -> Iterator[tuple[Phase, Node]]:
        comes = self.comes[phase]
        require(comes <= set(agents), f"{phase[0]}: others come than belong to it")
        yield from self.exits(phase, [a for a in agents if a not in comes])

    def of_block(self, block: Any) -> list[int]:
        return [a for a, each in enumerate(self.agents) if each["block"] == block]

    def of_cluster(self, where: Any) -> list[int]:
        return [a for a, each in enumerate(self.agents)
                if each["block"] // self.cluster == where[1]]  # fmt: skip

    def barrier(self, phase: Phase) -> Iterator[tuple[Phase, Node]]:
        (where, number), comes = phase, self.comes[phase]
        mine, needed = self.of_block(where[1]), self.amounts[phase]
        require(len(needed) == 1, f"{where}: those that come mean other numbers of threads")
        (count,) = needed
        if not count:
            yield from self.all_come(phase, mine)
            return
        require(comes <= set(mine), f"{where}: others come than belong to it")
        warps = {warp for a in comes for warp in self.agents[a]["warps"]}
        came = _WARP * len(warps)
        require(came == count, f"{where}: round {number} is for {count} threads, and {came} come")
        beside = [a for a in mine if a not in comes and set(self.agents[a]["warps"]) & warps]
        yield from self.exits(phase, beside)

    def lanes(self, phase: Phase) -> Iterator[tuple[Phase, Node]]:
        """Lanes that a mask does not name do not come; where all do that may, nobody has left."""
        (where, number), comes = phase, self.comes[phase]
        block, warp = divmod(where[1], self.per_block)
        mine = [a for a in self.of_block(block) if warp in self.agents[a]["warps"]]
        require(comes <= set(mine), f"{where}: lanes come that are of other warps")
        came = sum(self.agents[a]["threads"] for a in comes)
        named = where[2].bit_count()
        require(came <= named, f"{where}: more lanes come than are named")
        if came < named:
            yield from self.exits(phase, [a for a in mine if a not in comes])
        later = any(self.last.get((where, a), -1) >= number for a in mine if a not in comes)
        require(not later, f"{where}: fewer come to round {number} than it is for")
