"""Conversions within a warp by shuffles: what is offered, from whom it is taken, where it goes.

Three tables. `offers` chooses by lane what lies in each slot; slots go from lane to lane, those
that stay in their lane cost nothing; `placed` chooses by lane where each register comes from. A
*round* is a slot that moves: each lane offers one word, and takes the word that one lane offers.
Elements smaller than a word go several in a word.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Bound:
    """At least so many rounds, and why."""

    rounds: int
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Shuffles:
    """`offers[slot, part, lane]` is a register or -1; `sources[slot, lane]` a lane;
    `placed[register, lane]` is slot · parts + part, or -1 where nothing is wanted."""

    offers: Numbers = field(repr=False)
    sources: Numbers = field(repr=False)
    placed: Numbers = field(repr=False)
    bound: Bound
    exhausted: bool = False  # every schedule of one round fewer was tried

    @property
    def parts(self) -> int:
        return int(self.offers.shape[1])

    @property
    def lanes(self) -> int:
        return int(self.sources.shape[1])

    @property
    def moving(self) -> list[int]:
        """The slots that are rounds."""
        return [n for n, row in enumerate(self.sources) if (row != np.arange(self.lanes)).any()]

    @property
    def rounds(self) -> int:
        return len(self.moving)

    @property
    def proved(self) -> bool:
        return self.rounds == self.bound.rounds or self.exhausted

    @property
    def selects(self) -> int:
        """Choices by lane, counted as they are written: see `selection`."""
        before = self.offers.reshape(-1, self.lanes)
        return selection(before).selects + selection(self.placed).selects


def moved(plan: Shuffles, held: Numbers) -> Numbers:
    """What a plan does: `held[register, lane]` before → after; -1 where nothing is wanted."""
    lanes = np.arange(plan.lanes)
    offered = np.where(plan.offers == NOBODY, IDLE, held[plan.offers, lanes])
    taken = np.stack([slot[:, source] for slot, source in zip(offered, plan.sources, strict=True)])
    flat = taken.reshape(-1, plan.lanes)
    return np.where(plan.placed == NOBODY, IDLE, flat[plan.placed, lanes])


# -- choosing by lane ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """How a table of choices `[place, lane]` is written.

    `by` None: each place is a chain of selects. Otherwise the registers are turned first, all
    alike, by `rotation[lane]`: by exclusive or of register numbers, or by rotation; then the place
    p is register `first[p]`.
    """

    by: str | None
    rotation: Numbers
    first: Numbers
    selects: int


def selection(table: Numbers) -> Selection:
    """The cheapest of the ways to write a table."""
    none = np.zeros(table.shape[1], dtype=np.int64)
    chains = Selection(None, none, none, sum(_chain(row) for row in table))
    count = len(table)
    if not count or (table == NOBODY).any() or np.unique(table).size != count:
        return chains
    if int(table.max()) != count - 1 or int(table.min()):
        return chains
    found = [chains]
    if count & (count - 1) == 0:
        rotation = table[0] ^ table[0, 0]
        if (table == (table[:, :1] ^ rotation)).all():
            stages = sum(1 for bit in range(count.bit_length()) if (rotation >> bit & 1).any())
            found.append(Selection("^", rotation, table[:, 0], stages * count))
    rotation = (table[0] - table[0, 0]) % count
    if (table == (table[:, :1] + rotation) % count).all():
        stages = sum(1 for bit in range(count.bit_length()) if (rotation >> bit & 1).any())
        found.append(Selection("+", rotation, table[:, 0], stages * count))
    return min(found, key=lambda each: each.selects)


def _chain(row: Numbers) -> int:
    return max(0, np.unique(row[row != NOBODY]).size - 1)


# -- what must be sent -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Wants:
    """One warp's conversion: elements held and wanted, `[lane][register]`; `parts` in a word."""

    held: Numbers
    wanted: Numbers
    parts: int

    @property
    def lanes(self) -> int:
        return len(self.held)

    def holders(self) -> dict[int, dict[int, int]]:
        """For each element the lanes that hold it, each with the first register."""
        found: dict[int, dict[int, int]] = {}
        for lane in range(self.lanes):
            for register, element in enumerate(self.held[lane].tolist()):
                if element != IDLE:
                    found.setdefault(element, {}).setdefault(lane, register)
        return found

    def missing(self) -> list[list[int]]:
        """The different elements that each lane wants and does not hold."""
        return [
            sorted(set(self.wanted[lane].tolist()) - set(self.held[lane].tolist()) - {IDLE})
            for lane in range(self.lanes)
        ]


def bound_of(wants: Wants) -> Bound:
    """What no schedule can be below that sends elements straight: what one lane must receive, or
    one alone must send. Parts of a word that a third lane packs together may come in fewer words:
    where that counts, `why` says it."""
    holders, missing, parts = wants.holders(), wants.missing(), wants.parts
    sent: dict[int, set[int]] = {}
    best = Bound(0, "every lane holds what it wants")
    for lane, elements in enumerate(missing):
        sole: dict[int, int] = {}
        for element in elements:
            if len(holders[element]) == 1:
                (sender,) = holders[element]
                sole[sender] = sole.get(sender, 0) + 1
                sent.setdefault(sender, set()).add(element)
        # A word comes from one lane; elements with several holders may come along with others.
        apart = sum(-(-count // parts) for count in sole.values())
        least = max(apart, -(-len(elements) // parts))
        if least > best.rounds:
            straight = ", each from who holds it" if least * parts >= len(elements) + parts else ""
            best = Bound(least, f"lane {lane} must receive {_words(least, parts)}{straight}")
    for lane, each in sorted(sent.items()):
        least = -(-len(each) // parts)
        if least > best.rounds:
            best = Bound(least, f"lane {lane} must send {_words(least, parts)}, as it alone can")
    return best


def _words(count: int, parts: int) -> str:
    what = "words" if parts > 1 else "elements"
    return f"{count} {what[:-1] if count == 1 else what}"
