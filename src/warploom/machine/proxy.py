"""The ways to memory besides the plain one (PTX: proxies), as what threads know of each other.

That a thread knows what another did is told by the number of the other's block. Whether it may be
seen by another way is told by a second number of that block, one for each way. Fences give what is
known plainly such a number; it is then handed on as all knowledge is. A fence for one state space
gives a number that is asked for only where that space is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from warploom.errors import InternalError
from warploom.machine.clock import Array, Layout
from warploom.machine.semantics import Scope

Blocks = TypeVar("Blocks", int, Array)
Place = tuple[Hashable, int]  # a region, and a byte of it
Renamed = Callable[[int], int | None]  # a number of knowledge, or none
_WAYS = 1 << 20

ASYNC = 0  # bulk copies and products of warpgroups may see it, in all memory
MET = 1  # lanes met those that did it, which orders operations on mbarriers alone
NARROW = 2  # told at an mbarrier in a scope that does not reach so far
BEGUN = 3  # mbarriers that were initialised, which fence.mbarrier_init tells of
ASYNC_GLOBAL = 4  # as ASYNC, in global memory
ASYNC_SHARED = 5  # … in the shared memory of the whole cluster
ENDED = 6  # by threads that had ended when others passed a barrier
FENCED = 7  # before a fence of the whole GPU, of some thread
ASYNC_OWN = 8  # as ASYNC, in that of the first block of the cluster; of the others follow
MOST_CLUSTER = 16
_FREE = ASYNC_OWN + MOST_CLUSTER  # from here on ways of tensor maps and of their releases


class Fenced(Enum):
    """The memory that a fence between the plain way and the asynchronous one is for."""

    ALL = "all"
    GLOBAL = "global"
    CLUSTER = "shared::cluster"
    BLOCK = "shared::cta"


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


@dataclass(slots=True)
class Ways:
    """The ways of one launch: which fences were passed, and the ways of tensor maps.

    A map that was written is released in a scope, and taken in one: the two meet where each scope
    holds the other's thread. What one block has taken, another has not: each multiprocessor keeps
    maps that it has read.
    """

    layout: Layout
    passed: set[int] = field(default_factory=set)  # those of fences that some thread has passed
    _free: dict[Hashable, int] = field(default_factory=dict)

    def of_fence(self, memory: Fenced, block: int) -> int:
        """What a fence by a thread of a block tells."""
        way = {
            Fenced.ALL: ASYNC, Fenced.GLOBAL: ASYNC_GLOBAL, Fenced.CLUSTER: ASYNC_SHARED,
            Fenced.BLOCK: ASYNC_OWN + block % self.layout.cluster,
        }[memory]  # fmt: skip
        self.passed.add(way)
        return way

    def covering(self, *, shared: bool) -> list[int]:
        """The ways by which fences that were passed tell of such memory, but for single blocks'."""
        return [each for each in (ASYNC, ASYNC_SHARED if shared else ASYNC_GLOBAL)
                if each in self.passed]  # fmt: skip

    def plainly(self, way: int) -> Renamed:
        """What is known plainly, under the numbers of a way."""
        return lambda number: by_way(way, number) if 0 <= number < self.layout.blocks else None

    # -- tensor maps ----------------------------------------------------------------------------

    def of_map(self, place: Place, block: int) -> int:
        """The way of those of a block who read the tensor map at a place."""
        return self._way((place, block))

    def of_release(self, scope: Scope, block: int) -> list[int]:
        """The ways by which a release in a scope is told, narrow ones first."""
        groups = {
            Scope.BLOCK: block, Scope.CLUSTER: block // self.layout.cluster, Scope.GRID: 0,
        }  # fmt: skip
        return [self._way(("release", each, groups[each])) for each in Scope if each <= scope]

    def taken(self, place: Place, scope: Scope, block: int) -> Renamed:
        """What was released, under the numbers of those who read the map at a place."""
        way, released = self.of_map(place, block), self.of_release(scope, block)
        return lambda number: by_way(way, block_of(number)) if way_of(number) in released else None

    def _way(self, key: Hashable) -> int:
        way = self._free.setdefault(key, _FREE + len(self._free))
        if way >= _WAYS:
            raise InternalError("more tensor maps than the race detector was made for")
        return way
