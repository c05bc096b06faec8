"""Which earlier accesses conflict with one now, and what is missing between the two.

There are two models. By `practice` two accesses race if GPUs are known to get them wrong. By `ptx`
they race if the manual orders them by nothing. These rules of it seldom show on GPUs, and practice
does without them; which of them mattered is kept (`Practice`), as a proof assumes it:

- an arrival at another block's mbarrier, or a wait for one, in the scope of a block orders what was
  read before, and copies (not what was written);
- bulk copies tell the mbarriers of their own block without a fence behind `mbarrier.init`;
- bulk copies overwrite what was read plainly, without a fence between the two ways to memory;
- a fence of the GPU's scope that is not `sc` tells only what its own thread writes or looks at
  beside it, not what others do who meet it (`cumulative`);
- threads that end let others pass a barrier of the block, who know what those did;
- what lane 0 of a warp has waited for, its other lanes need not know when a product reads it;
- in kernels with acquires, lanes that meet at a shuffle, a vote or a reduction have acquired what
  one of them has, and overwrite what another has read (`company`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from warploom.errors import InternalError
from warploom.machine.async_completion import PendingCompletions
from warploom.machine.clock import Array, Clocks, Layout, Mask, Vector
from warploom.machine.company import Company
from warploom.machine.flag import Flags
from warploom.machine.proxy import ASYNC_OWN, BEGUN, ENDED, MET, NARROW, Ways, by_way
from warploom.machine.semantics import ConflictScope, Semantics
from warploom.machine.shadow import Judge

Conflict = Callable[[Array, Array], Mask]  # a judge that does not ask for cells
Home = Callable[[Array], Array]  # of cells of shared memory: the rank of their block


class Cause(Enum):
    """What is missing between two accesses that race."""

    ORDER = "order"  # nothing orders them
    PROXY = "proxy"  # a fence between the plain way to memory and that of copies
    MAP = "map"  # fences between the plain way and that of tensor maps
    INIT = "init"  # a fence behind the initialisation of an mbarrier
    SCOPE = "scope"  # a scope that reaches the other block
    WAIT = "wait"  # nobody waited for what ends later
    REGISTER = "register"  # a fence between an access of a register and a product that has it
    GRID = "grid"  # the launch before is not waited for


class Practice(Enum):
    """What GPUs do, of which the manual says less."""

    NARROW = (
        "who arrives or waits in the scope of a block at an mbarrier of copies from other blocks, "
        "or of their arrivals, has those copies, and may overwrite what those blocks read"
    )
    OVERTAKES = "bulk copies do not overtake plain loads that are in order before them"
    CUMULATIVE = "a fence of the GPU's scope tells also what others did who met its thread"
    ENDED = "threads that end let others pass a barrier, who know what those did"
    TOGETHER = "what lane 0 has waited for is there for a wgmma of its warp, without bar.warp.sync"
    COMPANY = "lanes that meet at a shuffle, a vote or a reduction have what one has acquired"


@dataclass(slots=True)
class Judges:
    """`lenient` judges by practice, all else by the manual."""

    layout: Layout
    flags: Flags | None
    meetings: bool
    ways: Ways
    map: int = 0  # the way of those who read the tensor map that is read now
    narrow: bool = False  # somebody was told something in too small a scope
    after_ends: bool = False  # somebody passed a barrier when others had ended
    company: Company | None = None  # of lanes that meet, where that may be asked
    tells: bool = False  # it is to be known which rules of practice mattered
    relied: set[Practice] = field(default_factory=set)
    _clocks: Clocks | None = field(default=None, init=False)

    def start(self, clocks: Clocks) -> None:
        self._clocks = clocks
        if self.company is not None:
            self.company.known.clear()

    @property
    def asks_who_met(self) -> bool:
        return self.meetings or self.company is not None

    @property
    def clocks(self) -> Clocks:
        assert self._clocks is not None
        return self._clocks

    @property
    def vector(self) -> Vector:
        """The clocks for all other ways to synchronise: `release`, `acquire` and `meet`."""
        if not isinstance(self.clocks, Vector):
            raise InternalError("the race detector was not made for partial barriers")
        return self.clocks

    # -- conflicts ------------------------------------------------------------------------------

    def conflict(self, apart: ConflictScope, other: Semantics, *, lenient: bool) -> Conflict:
        """Which earlier accesses, made as `other` says, conflict with accesses now."""
        unordered = self._unordered(other, lenient=lenient)
        match apart:
            case ConflictScope.UNMAPPED:
                return lambda entries, threads: np.asarray(
                    (entries != 0) & ~self.heard(entries, threads, self.map)
                    | unordered(entries, threads)
                )
            case ConflictScope.UNBEGUN:
                return lambda entries, threads: self._less(unordered, BEGUN, entries, threads)
            case ConflictScope.UNMET:
                if not self.meetings:
                    return unordered
                return lambda entries, threads: self._less(unordered, MET, entries, threads)
            case ConflictScope.ALWAYS:
                return self._of_others
            case ConflictScope.OTHER_BLOCK | ConflictScope.OTHER_CLUSTER:
                group = self.layout.cluster if apart is ConflictScope.OTHER_CLUSTER else 1
                return lambda entries, threads: self._elsewhere(unordered, entries, threads, group)
            case _:
                return unordered

    def _unordered(self, other: Semantics, *, lenient: bool) -> Conflict:
        """Those that nothing orders before now."""
        plain = other.kind.writes and not other.asynchronous
        found: Conflict = self.clocks.unordered
        if lenient and self.narrow and not plain:
            unordered = found
            narrow = Practice.NARROW
            found = lambda entries, threads: self._less(unordered, NARROW, entries, threads, narrow)  # noqa: E731
        if lenient and self.after_ends:
            before = found
            ended = Practice.ENDED
            found = lambda entries, threads: self._less(before, ENDED, entries, threads, ended)  # noqa: E731
        if not lenient or self.company is None or other.asynchronous or other.under_way:
            return found
        return lambda entries, threads: self._apart(found, entries, threads, other)

    def _apart(self, conflict: Conflict, entries: Array, threads: Array, other: Semantics) -> Mask:
        """Those that conflict, less those that lanes know of since they met."""
        bad = conflict(entries, threads)
        at = np.flatnonzero(bad)
        if at.size and self.company is not None:
            bad[at] = ~self.company.heard(self.vector, entries[at], threads[at], other)
            self._rely(Practice.COMPANY, ~bad[at])
        return bad

    def _less(
        self, conflict: Conflict, way: int, entries: Array, threads: Array,
        rule: Practice | None = None,
    ) -> Mask:  # fmt: skip
        """Those that conflict, less those of which a thread knows by another way."""
        bad = conflict(entries, threads)
        if not bad.any():
            return bad
        known = bad & self.heard(entries, threads, way)
        if rule is not None:
            self._rely(rule, known)
        return bad & ~known

    def _rely(self, rule: Practice, where: Mask) -> None:
        """There a rule of practice makes a difference."""
        if where.any():
            self.relied.add(rule)

    def unfenced(
        self, apart: ConflictScope, other: Semantics, home: Home | None, *, lenient: bool
    ) -> Judge:
        """Those that are unordered, and those of which a thread knows by no fence that is for their
        memory. In shared memory `home` says in whose."""
        unordered = self._unordered(other, lenient=lenient)
        if apart is ConflictScope.UNTOLD:  # what tells of initialisations orders them, too
            unordered = self.conflict(ConflictScope.UNBEGUN, other, lenient=lenient)
        if lenient and apart is not ConflictScope.UNFENCED:
            if not self.tells or apart is not ConflictScope.UNFENCED_READ:
                return of_any_cell(unordered)
            return self._overtaking(unordered, self.unfenced(apart, other, home, lenient=False))
        ways = self.ways.covering(shared=home is not None)
        ways += [BEGUN] if apart is ConflictScope.UNTOLD else []

        def judge(entries: Array, threads: Array, cells: Array) -> Mask:
            bare = entries != 0
            for way in ways:
                at = np.flatnonzero(bare)
                bare[at] = ~self.heard(entries[at], threads[at], way)
            if home is not None:
                self._fenced_by_block(bare, home(cells), entries, threads)
            return np.asarray(bare | unordered(entries, threads))

        return judge

    def _overtaking(self, unordered: Conflict, unfenced: Judge) -> Judge:
        """Those that are unordered; whether a fence is missing before others is kept."""

        def judge(entries: Array, threads: Array, cells: Array) -> Mask:
            bad = unordered(entries, threads)
            if Practice.OVERTAKES not in self.relied:
                self._rely(Practice.OVERTAKES, unfenced(entries, threads, cells) & ~bad)
            return bad

        return judge

    def _fenced_by_block(self, bare: Mask, rank: Array, entries: Array, threads: Array) -> None:
        """Takes out accesses that a fence for the shared memory of one block is for."""
        for each in np.unique(rank[bare]).tolist():
            if ASYNC_OWN + each in self.ways.passed:
                at = np.flatnonzero(bare & (rank == each))
                bare[at] = ~self.heard(entries[at], threads[at], ASYNC_OWN + each)

    def _of_others(self, entries: Array, threads: Array) -> Mask:
        differ = self.layout.differ(entries, self.clocks.now(threads))
        return np.asarray((entries != 0) & (differ != 0))

    def _elsewhere(
        self, unordered: Conflict, entries: Array, threads: Array, group: int
    ) -> Mask:  # fmt: skip
        """Unordered accesses of other blocks, or of other groups of so many.

        At a flag in shared memory there are none, however many threads wait at it: whose they are
        is asked first, as what a thread knows of another takes much longer to find.
        """
        layout = self.layout
        theirs, mine = layout.block(entries), layout.block(self.clocks.now(threads))
        found: Mask = (entries != 0) & (theirs // group != mine // group)
        at = np.flatnonzero(found)
        if at.size:
            found[at] = unordered(entries[at], threads[at])
        return found

    def heard(self, entries: Array, threads: Array, way: int) -> Mask:
        """Whether each thread knows an access by one of the other ways."""
        layout = self.layout
        stamp = entries >> layout.stamp_shift
        return self.vector.told(
            by_way(way, layout.block(entries)), stamp, layout.inside(entries), threads
        )

    def unobserved(
        self, conflict: Conflict, region: Hashable, unit: int, other: Semantics, now: frozenset[int]
    ) -> Judge:
        """Strong writes that are unordered, and that nobody read of whom the thread knows.

        A write is before what follows a strong read that sees it, though what the writer did
        before is not: the last block that counted may set the counter back.
        """
        clocks, flags = self.vector, self.flags
        assert flags is not None
        known: dict[tuple[int, int], Array] = {}

        def judge(entries: Array, threads: Array, cells: Array) -> Mask:
            bad = conflict(entries, threads)
            at = np.flatnonzero(bad)
            place = cells[at] * unit // other.size * other.size
            # Those of one place and thread together: most often nobody saw anything there.
            order = np.lexsort((threads[at], place))
            at, place = at[order], place[order]
            fresh = np.ones(at.size, bool)
            fresh[1:] = (place[1:] != place[:-1]) | (threads[at[1:]] != threads[at[:-1]])
            for own in np.split(np.arange(at.size), np.flatnonzero(fresh)[1:]) if at.size else ():
                where = int(place[own[0]]), int(threads[at[own[0]]])
                if where not in known:
                    known[where] = flags.observed(clocks, region, *where, now)
                seen = known[where]
                for each in at[own].tolist() if seen.size else ():
                    bad[each] = not flags.is_among(
                        clocks, region, where[0], int(entries[each]), seen
                    )
            return bad

        return judge

    def untold(self, store: PendingCompletions, *, lenient: bool) -> Judge:
        """Accesses that end later, of whose end a thread was not told."""
        told = self._told_narrowly if lenient and self.narrow else self.vector.told
        return store.unknown_to(told)

    def _told_narrowly(self, source: Array, tick: Array, inside: Array, threads: Array) -> Mask:
        told = self.vector.told
        plainly = told(source, tick, inside, threads)
        narrowly = told(by_way(NARROW, source), tick, inside, threads)
        self._rely(Practice.NARROW, narrowly & ~plainly)
        return plainly | narrowly

    def ended(self, gone: Array, threads: Array) -> None:
        """By practice threads that ended have come to a barrier that these threads pass."""
        self.after_ends = True
        self.vector.advance(gone)
        for thread in gone.tolist():
            known = self.vector.knowledge(thread).renamed(self.ways.plainly(ENDED))
            self.vector.learn(threads, known)

    # -- causes ---------------------------------------------------------------------------------

    def cause(self, apart: ConflictScope, other: Semantics, entry: int, thread: Array) -> Cause:
        """What is missing between an earlier access and one of this thread."""
        entries = np.array([entry])
        unordered = bool(self.clocks.unordered(entries, thread)[0])
        if apart in (ConflictScope.UNTOLD, ConflictScope.UNBEGUN):
            # Within a block a barrier is enough, or there is none.
            differ = self.layout.differ(entries, self.clocks.now(thread))
            near = not (differ >> self.layout.inner_bits).any()
            return Cause.ORDER if near and unordered else Cause.INIT
        if unordered:
            narrow = self.narrow and self.heard(entries, thread, NARROW)[0]
            return Cause.SCOPE if narrow else Cause.ORDER
        if other.under_way:
            return Cause.WAIT
        match apart:
            case ConflictScope.UNFENCED | ConflictScope.UNFENCED_READ:
                return Cause.PROXY
            case ConflictScope.UNMAPPED:
                return Cause.MAP
        return Cause.ORDER


def of_any_cell(conflict: Conflict) -> Judge:
    return lambda entries, threads, _: conflict(entries, threads)
