"""The ways to memory besides the plain one (PTX: proxies), as what threads know of each other.

That a thread knows what another did is told by the number of the other's block. Whether it may be
seen by another way is told by a second number of that block, one for each way. Fences give what is
known plainly such a number; it is then handed on as all knowledge is.
"""

from __future__ import annotations

from typing import TypeVar

from warploom.machine.clock import Array

Blocks = TypeVar("Blocks", int, Array)
_WAYS = 1 << 20

ASYNC = 0  # bulk copies and products of warpgroups may see it
MET = 1  # lanes met those that did it, which orders operations on mbarriers alone
RELEASED = 2  # on its way to those who use it as a tensor map
NARROW = 3  # told at an mbarrier in a scope that does not reach so far
BEGUN = 4  # mbarriers that were initialised, which fence.mbarrier_init tells of
FIRST_MAP = 5  # those who read the tensor map with this number may see it; others follow
MOST_MAPS = _WAYS - FIRST_MAP


def by_way(way: int, block: Blocks) -> Blocks:
    """Under which number a block is known by this way.

    >>> by_way(ASYNC, 0), by_way(MET, 0), way_of(by_way(MET, 7)), block_of(by_way(MET, 7))
    (-1, -2, 1, 7)
    """
    return -1 - way - _WAYS * block


def way_of(number: int) -> int | None:
    """By which way; None for plain knowledge."""
    return None if number >= 0 else (-1 - number) % _WAYS


def block_of(number: int) -> int:
    """Whose block a number by some way is about."""
    return (-1 - number) // _WAYS
