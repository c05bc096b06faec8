"""Checks that setmaxnreg gets what it asks for, in a certificate of all schedules.

Who lacks registers waits until others give some back. So for all warps that may wait at one time:
all others go on as far as they can without these, and what is held then has to leave enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from warploom.trust.checked import TooMuchError, require
from warploom.trust.schedule_flags import Batch, Node

Step = tuple[Node, ...]  # where the agents of a warp set their registers together
_MOST = 1 << 14  # of such sets


def check_pools(batch: Batch, own: int) -> None:
    """`own`: what a thread begins with."""
    for block in sorted({agent["block"] for agent in batch.agents}):
        _Block(batch, block, own).check()


class _Block:
    """`lines`: for each set of warps that act together, its threads and its steps in order."""

    def __init__(self, batch: Batch, block: int, own: int) -> None:
        self.batch, self.own = batch, own
        self.lines: list[tuple[int, list[Step]]] = []
        for agents in self._together(block):
            steps = [
                [("e", a, k) for k, row in enumerate(batch.agents[a]["events"]) if _sets(row)]
                for a in agents
            ]
            require(len({len(each) for each in steps}) == 1, "lanes of a warp set registers apart")
            lines = [tuple(nodes) for nodes in zip(*steps, strict=True)]
            self.lines.append((sum(batch.agents[a]["threads"] for a in agents), lines))

    def _together(self, block: int) -> list[list[int]]:
        """Agents of which some are lanes of one warp."""
        found: list[tuple[set[int], list[int]]] = []
        for a, agent in enumerate(self.batch.agents):
            if agent["block"] == block:
                warps, mine = set(agent["warps"]), [a]
                for each in [other for other in found if other[0] & warps]:
                    found.remove(each)
                    warps, mine = warps | each[0], each[1] + mine
                found.append((warps, mine))
        return [mine for _, mine in found]

    def _asks(self, step: Step) -> bool:
        return bool(self.batch.rows[step[0]][0] == "go")

    def _amount(self, step: Step) -> int:
        return int(self.batch.rows[step[0]][3])

    def _behind(self, step: Step, wait: Step) -> bool:
        return any(self.batch.reached_after(a, b) for a in step for b in wait)

    def check(self) -> None:
        for taken, waits in enumerate(self._one_for_all() or self._waiting()):
            if taken >= _MOST:
                raise TooMuchError(f"whether registers are enough: more than {_MOST} orders")
            self._enough(waits)
        for _, steps in self.lines:
            for one, two in pairwise(steps):
                if self._asks(one) and self._asks(two):
                    met = all(map(self.batch.done_by_all, two, one))
                    require(met, "warps ask again for registers while others still wait")

    def _one_for_all(self) -> list[dict[int, Step]]:
        """If all that lines ask for is the last that they do, once, and nobody's step is behind
        another's: a line holds as much in the end whether it waits or not, so one set will do."""
        asks = {n: [s for s in steps if self._asks(s)] for n, (_, steps) in enumerate(self.lines)}
        asks = {number: some for number, some in asks.items() if some}
        last = all(some == self.lines[number][1][-1:] for number, some in asks.items())
        free = last and not any(
            self._behind(step, some[0])
            for number, some in asks.items()
            for other, (_, steps) in enumerate(self.lines) if other != number
            for step in steps
        )  # fmt: skip
        return [{number: some[0]} for number, some in [*asks.items()][:1]] if free else []

    def _waiting(self) -> Iterator[dict[int, Step]]:
        """All sets of steps at which their lines may wait at one time, each from a smaller one."""
        asks = [[s for s in steps if self._asks(s)] for _, steps in self.lines]

        def larger(first: int, chosen: dict[int, Step]) -> Iterator[dict[int, Step]]:
            for number in range(first, len(asks)):
                for step in asks[number]:
                    known = chosen.values()
                    if not any(self._behind(step, o) or self._behind(o, step) for o in known):
                        more = {**chosen, number: step}
                        yield more
                        yield from larger(number + 1, more)

        return larger(0, {})

    def _enough(self, waits: dict[int, Step]) -> None:
        used = first = 0
        for number, (threads, steps) in enumerate(self.lines):
            amount = self.own
            for step in steps:
                if step == waits.get(number):
                    amount = self._amount(step)  # beside what it gives up for it
                    break
                if any(self._behind(step, wait) for wait in waits.values()):
                    break
                amount = self._amount(step)
            used, first = used + threads * amount, first + threads * self.own
        require(used <= first, "a block may lack registers that its threads wait for")


def _sets(row: list[Any]) -> bool:
    return row[0] in ("come", "go") and row[1][0] == "registers"
