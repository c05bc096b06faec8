"""What is known of other threads through flags: who was seen how far, in any block.

A clock per thread has room for its own block. What comes from elsewhere, or by way of a flag, is a
`Knowledge`: one thread's view of its block when it released, and the knowledge that it had then.
They are never changed, so that many threads and flags can hold one; what they add up to is worked
out only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Ticks = npt.NDArray[np.int32]
Array = npt.NDArray[Any]
LONG = 16  # of what a knowledge is made of
FEW_BLOCKS = 16  # in what is kept of those on the way


class Knowledge:
    __slots__ = ("_flat", "_own", "_parents")

    def __init__(self, own: tuple[int, Ticks] | None, parents: tuple[Knowledge, ...]) -> None:
        self._own = own  # a block of the grid, and how far each of its threads was seen
        self._parents = parents
        self._flat: dict[int, Ticks] | None = None

    def holds(self, other: Knowledge) -> bool:
        """Whether it was made of the other; it may know as much all the same."""
        return any(
            parent is other or any(each is other for each in parent._parents)
            for parent in self._parents
        )

    def flat(self) -> dict[int, Ticks]:
        """By block, how far each thread was seen."""
        if self._flat is None:
            made_of = list(self._all())
            if len(made_of) > LONG:  # some on the way are worked out, too: they are asked again
                for each in self._oldest_first():
                    if len(each._add_up()) > FEW_BLOCKS:
                        break
            self._add_up()
        assert self._flat is not None
        return self._flat

    def _add_up(self) -> dict[int, Ticks]:
        made_of = list(self._all())
        flats = [each._flat for each in made_of if each._flat is not None]
        most = max(flats, key=len, default={})
        found = dict(most)
        for flat in flats:
            if flat is not most:
                _merge_all(found, flat.items())
        own = (each._own for each in made_of if each._flat is None)
        _merge_all(found, (each for each in own if each is not None))
        self._flat, self._own, self._parents = found, None, ()
        return found

    def _oldest_first(self) -> list[Knowledge]:
        """What is not worked out yet, each after all that it is made of."""
        order: list[Knowledge] = []
        seen = {id(self)}
        path = [(self, iter(self._parents))]
        while path:
            one, parents = path[-1]
            parent = next((each for each in parents if id(each) not in seen), None)
            if parent is None:
                order.append(one)
                path.pop()
            elif parent._flat is None:
                path.append((parent, iter(parent._parents)))
                seen.add(id(parent))
        return order

    def _all(self) -> Iterable[Knowledge]:
        seen = {id(self)}
        work = [self]
        while work:
            one = work.pop()
            yield one
            if one._flat is None:
                for parent in one._parents:
                    if id(parent) not in seen:
                        seen.add(id(parent))
                        work.append(parent)

    def renamed(self, number: Callable[[int], int | None]) -> Knowledge:
        """This knowledge under other numbers of blocks; None leaves a block out."""
        made = Knowledge(None, ())
        made._flat = {}
        for block, ticks in self.flat().items():
            other = number(block)
            if other is not None:
                _merge(made._flat, other, ticks)
        return made

    def covers(self, other: Knowledge) -> bool:
        """Whether it knows of blocks and their ways all that the other does."""
        known = self.flat()
        return all(
            block in known and bool((ticks <= known[block]).all())
            for block, ticks in other.flat().items()
        )

    def seen(self, blocks: Array, inside: Array) -> Array:
        """How far each of these threads was seen; 0 for not at all."""
        out = np.zeros(blocks.size, np.int64)
        known = self.flat()
        heads = np.flatnonzero(blocks[1:] != blocks[:-1]) + 1  # they most often come in runs
        asked = set(blocks[heads].tolist()) | set(blocks[:1].tolist())
        for block in asked & known.keys():
            here = blocks == block if len(asked) > 1 else slice(None)
            out[here] = known[block][inside[here]]
        return out


def _merge_all(found: dict[int, Ticks], parts: Iterable[tuple[int, Ticks]]) -> None:
    for block, ticks in parts:
        old = found.get(block)
        if old is not ticks:  # most often it came from one thread by many ways
            found[block] = ticks if old is None else np.maximum(old, ticks)


def _merge(found: dict[int, Ticks], block: int, ticks: Ticks) -> None:
    _merge_all(found, ((block, ticks),))


def joined(*parts: Knowledge | None) -> Knowledge | None:
    """All that any of these knows."""
    real = tuple(dict.fromkeys(part for part in parts if part is not None))
    if len(real) == 2 and real[0].holds(real[1]):
        return real[0]  # as when a thread looks at one flag again and again
    if len(real) == 2 and real[1].holds(real[0]):
        return real[1]  # as when threads met: all of them know the same then
    return real[0] if len(real) == 1 else Knowledge(None, real) if real else None
