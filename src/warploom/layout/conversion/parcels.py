"""Which words lanes send to one another, and in which rounds.

A *parcel* is a word of one lane. In a round each lane offers one parcel, which any number of lanes
may take, and each takes at most one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warploom.layout.conversion.shuffle import Bound, Wants
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE
from warploom.layout.wavefronts.cost import Mask

FIRST_NODES = 3_000  # of the search for as many rounds as the bound says
LATER_NODES = 500  # of that for each number above


@dataclass(frozen=True, slots=True)
class Parcel:
    sender: int
    elements: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """`rounds[n]`: receiver → parcel. `exhausted`: one round fewer was shown to be too few."""

    parcels: tuple[Parcel, ...]
    rounds: tuple[dict[int, int], ...]
    exhausted: bool = False

    @property
    def count(self) -> int:
        return len(self.rounds)


def sent_apart(wants: Wants) -> Sent:
    """Each receiver gets words that were packed for it alone."""
    parcels: list[Parcel] = []
    edges: list[tuple[int, int]] = []
    for receiver, each in enumerate(_suppliers(wants)):
        for sender, elements in sorted(each.items()):
            for start in range(0, len(elements), wants.parts):
                part = elements[start : start + wants.parts]
                filled = part + [IDLE] * (wants.parts - len(part))
                parcels.append(Parcel(sender, tuple(filled)))
                edges.append((sender, receiver))
    colours = coloured(edges)
    rounds: list[dict[int, int]] = [{} for _ in range(max(colours, default=-1) + 1)]
    for number, ((_, receiver), colour) in enumerate(zip(edges, colours, strict=True)):
        rounds[colour][receiver] = number
    return Sent(tuple(parcels), tuple(rounds))


def _suppliers(wants: Wants) -> list[dict[int, list[int]]]:
    """For each receiver the elements that each sender sends: of several holders the one that has
    sent least so far."""
    holders, load = wants.holders(), [0] * wants.lanes
    found: list[dict[int, list[int]]] = []
    for missing in wants.missing():
        each: dict[int, list[int]] = {}
        for element in missing:
            sender = min(holders[element], key=lambda lane: (lane not in each, load[lane], lane))
            each.setdefault(sender, []).append(element)
            load[sender] += 1
        for sender, elements in each.items():
            elements.sort(key=lambda element: holders[element][sender])
        found.append(each)
    return found


def coloured(edges: Sequence[tuple[int, int]]) -> list[int]:
    """Edges of a bipartite graph with as few colours as the largest degree, none twice at a node.

    An edge takes a colour free at its sender; if that is not free at its receiver, the path of
    edges of these two colours from there swaps them.
    """
    nodes = 1 + max((max(edge) for edge in edges), default=0)
    sender_has: list[dict[int, int]] = [{} for _ in range(nodes)]  # colour → edge
    receiver_has: list[dict[int, int]] = [{} for _ in range(nodes)]
    found = [-1] * len(edges)

    def give(edge: int, colour: int) -> None:
        sender, receiver = edges[edge]
        found[edge] = colour
        sender_has[sender][colour] = receiver_has[receiver][colour] = edge

    def drop(edge: int) -> None:
        sender, receiver = edges[edge]
        del sender_has[sender][found[edge]], receiver_has[receiver][found[edge]]

    for edge, (sender, receiver) in enumerate(edges):
        one = _free(sender_has[sender])
        two = _free(receiver_has[receiver])
        path, at_receiver, node, colour = [], True, receiver, one
        while one != two:
            has = receiver_has[node] if at_receiver else sender_has[node]
            if colour not in has:
                break
            step = has[colour]
            path.append(step)
            node = edges[step][0] if at_receiver else edges[step][1]
            at_receiver, colour = not at_receiver, two if colour == one else one
        turned = [two if found[step] == one else one for step in path]
        for step in path:
            drop(step)
        for step, other in zip(path, turned, strict=True):
            give(step, other)
        give(edge, one)
    return found


def _free(used: dict[int, int]) -> int:
    return next(colour for colour in range(len(used) + 1) if colour not in used)


# -- words as they lie -----------------------------------------------------------------------------


def parcels_as_held(wants: Wants, bound: Bound) -> Sent:
    """Words as they lie in registers, each of which several lanes may take at once; or what is
    packed for each receiver, if no schedule with fewer rounds is found."""
    parcels = _words(wants)
    once = _once(wants, parcels)
    if once is not None:
        return once
    problem, apart = _Offers(wants, parcels), sent_apart(wants)
    exhausted = True
    for count in range(bound.rounds, apart.count):
        rounds, complete = problem.search(
            count, FIRST_NODES if count == bound.rounds else LATER_NODES
        )
        if rounds is not None:
            return Sent(parcels, rounds, exhausted)
        exhausted = exhausted and complete
    return replace(apart, exhausted=exhausted)


def _words(wants: Wants) -> tuple[Parcel, ...]:
    """The different words of each lane that hold something."""
    registers, parts = wants.held.shape[1], wants.parts
    filled = np.pad(wants.held, ((0, 0), (0, -registers % parts)), constant_values=IDLE)
    found: dict[Parcel, None] = {}
    for lane, row in enumerate(filled.reshape(wants.lanes, -1, parts).tolist()):
        for word in row:
            if any(element != IDLE for element in word):
                found.setdefault(Parcel(lane, tuple(word)))
    return tuple(found)


def _by_element(parcels: tuple[Parcel, ...]) -> dict[int, list[int]]:
    """The numbers of the words that have each element."""
    found: dict[int, list[int]] = {}
    for number, parcel in enumerate(parcels):
        for element in set(parcel.elements) - {IDLE}:
            found.setdefault(element, []).append(number)
    return found


def _once(wants: Wants, parcels: tuple[Parcel, ...]) -> Sent | None:
    """Where every element has one holder and every word one receiver: König's theorem."""
    by_element = _by_element(parcels)
    taken = [{n for e in missing for n in by_element[e]} for missing in wants.missing()]
    counted = [number for each in taken for number in each]
    alone = all(len(by_element[e]) == 1 for missing in wants.missing() for e in missing)
    if not alone or len(set(counted)) != len(counted):
        return None
    edges = [
        (parcels[number].sender, receiver)
        for receiver, each in enumerate(taken)
        for number in sorted(each)
    ]
    numbers = [number for each in taken for number in sorted(each)]
    colours = coloured(edges)
    rounds: list[dict[int, int]] = [{} for _ in range(max(colours, default=-1) + 1)]
    for (_, receiver), number, colour in zip(edges, numbers, colours, strict=True):
        rounds[colour][receiver] = number
    return Sent(parcels, tuple(rounds))


class _Offers:
    """The search: each (receiver, element) that is missing takes a word, in a round.

    `alternatives` are the words that each may take. The one with the fewest ways left goes first.
    """

    def __init__(self, wants: Wants, parcels: tuple[Parcel, ...]) -> None:
        self.parcels, self._lanes = parcels, wants.lanes
        having = _by_element(parcels)
        self.needs = [(r, e) for r, missing in enumerate(wants.missing()) for e in missing]
        rows = [(n, r, p) for n, (r, e) in enumerate(self.needs) for p in having[e]]
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        self.need, self.receiver, self.parcel = table.T
        self.sender = np.array([p.sender for p in parcels], dtype=np.int64)[self.parcel]
        self.served = [  # what else the receiver has when it takes that word
            {m for m, (r, e) in enumerate(self.needs) if r == receiver and e in parcels[p].elements}
            for _, receiver, p in rows
        ]

    def search(self, count: int, most: int) -> tuple[tuple[dict[int, int], ...] | None, bool]:
        """Rounds, or None and whether all was tried."""
        offered = np.full((count, self._lanes), -1)
        free = np.ones((count, self._lanes), dtype=np.bool_)
        open_ = np.ones(len(self.needs), dtype=np.bool_)
        rounds: list[dict[int, int]] = [{} for _ in range(count)]
        stack: list[tuple[Iterator[tuple[int, int]], tuple[int, int, bool, list[int]] | None]] = []
        nodes = 0
        while True:
            options = self._options(offered, free, open_)
            if options is None:
                return tuple(rounds), True
            stack.append((iter(options), None))
            step = None
            while step is None:
                if not stack:
                    return None, True
                ways, done = stack.pop()
                if done is not None:
                    self._undo(done, offered, free, open_, rounds)
                step = next(ways, None)
            nodes += 1
            if nodes > most:
                return None, False
            stack.append((ways, self._do(step, offered, free, open_, rounds)))

    def _options(self, offered: Numbers, free: Mask, open_: Mask) -> list[tuple[int, int]] | None:
        """The ways (alternative, round) of the need that has fewest; None if nothing is open."""
        if not open_.any():
            return None
        at_sender = offered[:, self.sender]  # [round, alternative]
        joins = at_sender == self.parcel
        usable = free[:, self.receiver] & (joins | (at_sender == -1))
        counts = np.bincount(self.need, usable.sum(axis=0), minlength=len(self.needs))
        need = int(np.argmin(np.where(open_, counts, np.inf)))
        mine = np.nonzero(self.need == need)[0]
        # Rounds in which nothing happens yet are alike: the first stands for all.
        empty = np.nonzero((offered == -1).all(axis=1))[0]
        ways = [
            (not joins[n, a], int(a), int(n))
            for a in mine
            for n in np.nonzero(usable[:, a])[0]
            if n not in empty[1:]
        ]
        return [(a, n) for _, a, n in sorted(ways)]

    def _do(
        self,
        step: tuple[int, int],
        offered: Numbers,
        free: Mask,
        open_: Mask,
        rounds: list[dict[int, int]],
    ) -> tuple[int, int, bool, list[int]]:
        alternative, number = step
        sender, receiver = int(self.sender[alternative]), int(self.receiver[alternative])
        new = offered[number, sender] == -1
        offered[number, sender] = self.parcel[alternative]
        free[number, receiver] = False
        served = [need for need in self.served[alternative] if open_[need]]
        open_[served] = False
        rounds[number][receiver] = int(self.parcel[alternative])
        return alternative, number, bool(new), served

    def _undo(
        self,
        done: tuple[int, int, bool, list[int]],
        offered: Numbers,
        free: Mask,
        open_: Mask,
        rounds: list[dict[int, int]],
    ) -> None:
        alternative, number, new, served = done
        sender, receiver = int(self.sender[alternative]), int(self.receiver[alternative])
        if new:
            offered[number, sender] = -1
        free[number, receiver] = True
        open_[served] = True
        del rounds[number][receiver]
