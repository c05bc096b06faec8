"""The state of a running batch of blocks: registers as arrays over threads, and who is active.

A value is an array with one element per thread, or with one element for all (uniform). While only
some threads are active, two ways of working are used:

* wide: instructions compute for all threads and a write keeps the old value of the others, but
  only where some waiting thread will still read it (`protected`);
* compact (few active threads): operands are gathered and results scattered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine.counters import Counters
from warploom.machine.fused import Rule
from warploom.machine.heap import Heap
from warploom.machine.memory import Memory, Region
from warploom.machine.race import RaceDetector
from warploom.machine.record import CUDA
from warploom.ptx.emulate.copies import Copies
from warploom.ptx.emulate.skeleton import Skeleton
from warploom.ptx.emulate.work import Work

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
COMPACT_BELOW = 4  # compact when fewer than 1/4 of the threads are active
WARP = CUDA.lanes
Triple = tuple[int, int, int]


class Arithmetic(Protocol):
    """Compiled code that makes products."""

    def fused(
        self, a: Array, b: Array, c: Array, kinds: tuple[str, str], result: str, rule: Rule
    ) -> Array | None:  # fmt: skip
        """c + Σ a·b for each warp; None where it has no code for these types."""


class _Everything:
    """Every register is protected: for predicated instructions."""

    def __contains__(self, item: object) -> bool:
        return True


EVERYTHING = _Everything()
NOTHING: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Batch:
    """What all frames of one batch of blocks share."""

    threads: int
    block_size: int
    blocks: int
    first_block: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    memory: Memory
    shared: Region
    local: Region
    symbols: dict[str, int]  # address of every global and const variable; shared: offset
    functions: dict[str, int]
    alive: Mask
    counters: Counters | None
    races: RaceDetector | None
    deadline: float | None
    dynamic_shared: int
    check: bool = True  # values and shared memory that nobody wrote
    chance: np.random.Generator | None = None  # decides who runs next, instead of the code's order
    holding: Any = None  # … or who is held back does: `hold.Holding`
    special: dict[str, Array] = field(default_factory=dict)
    causes: list[str] = field(default_factory=list)  # of registers that hold no value
    cluster: tuple[int, int, int] = (1, 1, 1)
    special_state: dict[str, Any] = field(default_factory=dict)  # kept by instructions
    sites: dict[str, Any] = field(default_factory=dict)  # of causes: the load that it came from
    copies: Copies = field(init=False)  # cp.async that nobody waited for yet
    mbarriers: dict[int, Any] = field(default_factory=dict)  # by place in shared memory
    barrier_words: Mask | None = None  # whether a word of shared memory is one, once there was any
    flight: Any = None  # products of warpgroups that are not waited for, once there was one
    output: list[str] = field(default_factory=list)  # what the kernel printed
    bulks: dict[int, list[Any]] = field(default_factory=dict)  # groups of bulk copies, by thread
    heap: Heap = field(default_factory=Heap)  # where malloc takes from
    variables: Mapping[str, int] = field(default_factory=dict)  # of shared memory: where they lie
    refused: dict[int, Any] | None = None  # by thread: what it waits for, while that is looked at
    swapped: bool = False  # an atomic changed memory, while that is looked at
    reserved: int = 0  # bytes of shared memory that are kept for the system
    registers: int | None = None  # of a thread as it starts, where that is known
    resident: bool = False  # no more blocks than these run at once
    skeleton: Skeleton | None = None  # what threads did that others wait for, where it is asked for
    read_only: Any = None  # what ld.global.nc read, and what was written, if that is kept
    origins: Any = None  # what loads are of use, where that is asked for
    dead: Mapping[Span, Mask] = field(default_factory=dict)  # loads that are none, by thread
    weak_volatile: bool = False  # for races
    work: Work | None = None  # what was done, where that decides who goes on
    arithmetic: Arithmetic | None = None
    twins: int = 1  # copies of each block, which run alike (`ptx/field`)
    floats: Any = None  # what the floats of such a launch are
    line_of: Callable[[Span], str] = field(default=lambda span: f"line {span.line}")
    joined: Array = field(init=False)  # by block, of its last bar.red: how many hold, of how many

    def __post_init__(self) -> None:
        self.joined = np.zeros((2, self.blocks))
        self.copies = Copies(self.threads)

    @property
    def cluster_size(self) -> int:
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def number(self, block: int) -> int:
        """The number in the grid, x first, of a block of the batch."""
        return int(self.numbers(np.array(block)))

    def numbers(self, blocks: Array) -> Array:
        """The numbers in the grid of blocks of the batch; copies of a block have the same."""
        places = self.first_block + blocks % (self.blocks // self.twins)
        return in_grid(places, self.grid, self.cluster)

    @property
    def block_of(self) -> npt.NDArray[np.int64]:
        found = self.special.get("block_of")
        if found is None:
            found = np.repeat(np.arange(self.blocks, dtype=np.int64), self.block_size)
            self.special["block_of"] = found
        return found

    @property
    def warp_base(self) -> npt.NDArray[np.int64]:
        """Index of lane 0 of each thread's warp (warps do not cross blocks)."""
        found = self.special.get("warp_base")
        if found is None:
            inside = np.arange(self.threads, dtype=np.int64) % self.block_size
            found = np.arange(self.threads, dtype=np.int64) - inside % WARP
            self.special["warp_base"] = found
        return found

    @property
    def lane(self) -> npt.NDArray[np.int64]:
        found = self.special.get("lane")
        if found is None:
            inside = np.arange(self.threads, dtype=np.int64) % self.block_size
            found = inside % WARP
            self.special["lane"] = found
        return found

    @property
    def warp_starts(self) -> npt.NDArray[np.int64]:
        """Index of the first thread of every warp."""
        found = self.special.get("warp_starts")
        if found is None:
            found = self.special["warp_starts"] = np.flatnonzero(self.lane == 0)
        return found

    @property
    def warp_of(self) -> npt.NDArray[np.int64]:
        """Number of each thread's warp within the batch."""
        found = self.special.get("warp_of")
        if found is None:
            found = self.special["warp_of"] = np.cumsum(self.lane == 0) - 1
        return found

    def where(self, thread: int) -> str:
        """`block (1,0,0), thread (3,0,0)` for an index into the batch."""
        block, inside = divmod(thread, self.block_size)
        number = self.number(block) * self.block_size + inside
        return thread_name(number, self.grid, self.block)

    def said(self, span: Span) -> str:
        """Where an instruction that is not the one at fault stands, in words."""
        return f" ({self.line_of(span)})"


def thread_name(number: int, grid: Triple, block: Triple) -> str:
    """The name of a thread that is counted through the whole grid, the x of everything first."""
    outer, inner = divmod(number, prod(block))
    return f"block {_triple(outer, grid)}, thread {_triple(inner, block)}"


def in_grid(place: Array, grid: Triple, cluster: Triple) -> Array:
    """Blocks run one after the other, those of a cluster together: their numbers in the grid."""
    if cluster == (1, 1, 1):
        return place
    group, rank = np.divmod(place, prod(cluster))
    number, below = np.zeros_like(place), 1
    for side, own in zip(grid, cluster, strict=True):
        number += below * (group % (side // own) * own + rank % own)
        group, rank, below = group // (side // own), rank // own, below * side
    return number


def _triple(number: int, sizes: tuple[int, int, int]) -> str:
    x, rest = number % sizes[0], number // sizes[0]
    return f"({x},{rest % sizes[1]},{rest // sizes[1]})"


def _whole(value: Array) -> Array:
    """The array that a view shows, which the same bits under another type are."""
    return value if value.base is None else value.base


class Frame:
    """Registers of one function call and the group of threads that runs now."""

    __slots__ = (
        "_index", "_owners", "batch", "compact", "count", "depth", "joins", "local_base", "mask",
        "n", "origins", "packed", "parameters", "private", "protected", "regs", "undefined",
    )  # fmt: skip

    def __init__(self, batch: Batch, registers: list[Array], depth: int, local_base: int) -> None:
        self.batch = batch
        self.n = batch.threads
        self.regs = registers
        self.depth = depth
        self.local_base = local_base
        self.parameters: dict[str, int] = {}
        self.private: dict[int, Array] = {}  # by register, an array that no other one has
        self._owners: dict[int, int] = {}  # the same by identity of the array
        self.undefined: dict[int, Array] = {}  # see `poison`
        self.packed: dict[int, tuple[tuple[tuple[int, int], Array], ...]] = {}  # see `packed`
        self.origins: dict[int, dict[Any, Array]] = {}  # see `origins`, and by block:
        self.joins: dict[int, list[tuple[frozenset[int], dict[Any, Array]]]] = {}
        self.mask: Mask | None = None
        self.compact = False
        self.count = self.n
        self.protected: frozenset[int] | _Everything = NOTHING
        self._index: npt.NDArray[np.intp] | None = None

    @property
    def index(self) -> npt.NDArray[np.intp]:
        """The active threads, in order."""
        if self._index is None:
            active = np.arange(self.n) if self.mask is None else np.flatnonzero(self.mask)
            self._index = active
        return self._index

    def activate(self, mask: Mask | None, protected: frozenset[int] | _Everything) -> None:
        """Makes a group of threads the running one; None means every thread of the batch."""
        self._index = None
        self.protected = protected
        count = self.n if mask is None else int(np.count_nonzero(mask))
        self.mask = None if count == self.n else mask
        self.count = count
        self.compact = count * COMPACT_BELOW < self.n

    def full_mask(self) -> Mask:
        return np.ones(self.n, bool) if self.mask is None else self.mask

    def widen(self, value: Array) -> Array:
        """A value as read now, with one element per thread of the batch (others undefined)."""
        if value.size == self.n:
            return value
        if value.size == 1:
            return np.broadcast_to(value, (self.n,))
        wide = np.zeros(self.n, value.dtype)
        wide[self.index] = value
        return wide

    def active_part(self, value: Array) -> Array:
        """A value as read now, for the active threads only (uniform values stay uniform)."""
        if value.size == 1 or self.mask is None or self.compact:
            return value
        return value[self.index]

    def spread(self, value: Array) -> Array:
        """One element per active thread, in the form that `write` takes."""
        if value.size == 1 or self.mask is None or self.compact:
            return value
        wide = np.zeros(self.n, value.dtype)
        wide[self.index] = value
        return wide

    def write(self, slot: int, value: Array) -> None:
        if self.mask is not None and slot in self.protected:
            self._blend(slot, value)
            return
        if self.compact and value.size != 1:
            wide = np.empty(self.n, value.dtype)
            wide[self.index] = value
            value = wide
        if self.private:
            self._release(slot, value)
        self.regs[slot] = value

    def _release(self, slot: int, value: Array) -> None:
        """A register gets an array, perhaps that of another: neither writes into it in place."""
        sharing = self._owners.get(id(_whole(value)))
        for each in {slot} if sharing is None else {slot, sharing}:
            mine = self.private.pop(each, None)
            if mine is not None:
                del self._owners[id(mine)]

    def _blend(self, slot: int, value: Array) -> None:
        old = self.regs[slot]
        if old.dtype != value.dtype:
            old = old.view(value.dtype)
        if not self.compact:
            assert self.mask is not None
            self.regs[slot] = np.where(self.mask, value, old)
        elif _whole(old) is self.private.get(slot):
            old[self.index] = value
            self.regs[slot] = old
        else:
            wide = np.broadcast_to(old, (self.n,)).copy()
            wide[self.index] = value
            self._release(slot, wide)
            self.regs[slot] = self.private[slot] = wide
            self._owners[id(wide)] = slot

    @contextmanager
    def narrowed(self, condition: Array) -> Iterator[bool]:
        """Only the active threads where `condition` holds; yields whether there are any."""
        saved = (self.mask, self.count, self.compact, self.protected, self._index)
        mask = self.widen(condition)
        if self.mask is not None:
            mask = mask & self.mask
        self.activate(mask, EVERYTHING)
        try:
            yield self.count > 0
        finally:
            self.mask, self.count, self.compact, self.protected, self._index = saved
