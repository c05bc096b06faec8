"""From addresses to places in memory: which region, which element, and is it allowed.

Loads of all threads at once take the quick way (`load`); stores and atomics work on the active
threads only (`places`). Whatever is wrong becomes a `KernelError` with block and thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Culprit, KernelError, RaceError, Span, UninitialisedError
from warploom.machine.banks import matrix_use
from warploom.machine.counters import Counters, by_warp
from warploom.machine.flag import Order
from warploom.machine.heap import PIECE, Owner, Piece
from warploom.machine.judges import Cause
from warploom.machine.memory import (
    GAP,
    WINDOWS,
    Fault,
    Memory,
    Region,
    check,
    place,
    unstored,
    window_of,
)
from warploom.machine.race import RELAXED, Race, Side
from warploom.machine.semantics import Kind, Semantics
from warploom.machine.shadows import Writing
from warploom.machine.tally import Request, Watched, own_traffic
from warploom.ptx.causes import missing
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Batch, Frame, thread_name
from warploom.ptx.emulate.skeleton import COUNTS, READS, Skeleton
from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
DType = np.dtype[Any]
Write = Callable[[Region, Any, Array], Writing]
SHARED = "shared memory"
REMOTE = 24  # above this bit an address of shared memory names a block of the cluster
LOCAL_PART = 0xFFFFFFFF  # of a generic address: what lies within its window
_SPOKEN = {
    "global": "global memory", "const": "constant memory", "param": "memory of parameters",
    "shared": SHARED, "local": "local memory", "texture": "a handle and no memory",
}  # fmt: skip
# Which memory an access may find at its address; parameters of a kernel lie in the global window.
_MAY_REACH = {
    "generic": ("global", "const", "param"), "global": ("global", "param"), "const": ("const",),
    "param": ("param",),
}  # fmt: skip


@dataclass(slots=True)
class Site:
    """One memory instruction: where it is written and what it does."""

    span: Span
    name: str
    space: str  # generic, global, const, param; shared, local
    width: int  # bytes of the whole access
    counted: bool  # global memory, for the sector counters
    semantics: Semantics
    order: Order = RELAXED
    far: bool = False  # it may reach the shared memory of other blocks of the cluster
    as_weak: Semantics | None = None  # of a volatile access, where that counts as weak
    only_read: bool = False  # by a way for memory that the kernel never writes
    tallied: bool = True  # counted by lanes; matrices are counted by their rows
    last: Region | None = None  # the region found last, which is most often the next one
    owner: Memory | None = None  # whose region that is: every launch has its own memory

    @property
    def kind(self) -> Kind:
        return self.semantics.kind

    @property
    def releases(self) -> int:
        """The scope in which it releases what was done before; 0 if it does not."""
        return int(self.semantics.scope) if self.order.releases else 0

    def error(
        self, f: Frame, message: str, thread: int, kind: type[KernelError] = KernelError
    ) -> KernelError:
        where = f.batch.where(thread)
        told = kind(f"{self.name}: {message}; {where}", self.span)
        told.culprit = Culprit(where, self.space, self.kind.writes, self.width)
        return told


def _thread(f: Frame, position: int, packed: bool) -> int:
    """The thread at a position of an address array."""
    if f.mask is None or not (packed or f.compact):
        return position
    return int(f.index[position])


def _first_active(f: Frame, address: Array) -> int:
    if address.size == 1 or f.mask is None or f.compact:
        return int(address[0])
    return int(address[int(f.mask.argmax())])


def _region(f: Frame, site: Site, address: int) -> Region | None:
    if site.space == "shared":
        return f.batch.shared
    if site.space == "local":
        return f.batch.local
    last = site.last
    if site.owner is not f.batch.memory:
        site.owner, last = f.batch.memory, None
    if last is None or not last.base <= address < last.base + last.size:
        last = f.batch.memory.find(address)
        if last is not None and last.space not in _MAY_REACH[site.space]:
            last = None
        site.last = last
    return last


def _owner(f: Frame, region: Region, packed: bool) -> Array | None:
    if region.origin is None:
        return None
    if f.mask is not None and (packed or f.compact):
        return region.origin[f.index]
    return region.origin


def load(
    f: Frame, site: Site, address: Array, dtype: DType, count_of: int,
    unwritten: list[Array] | None = None,
) -> list[Array]:  # fmt: skip
    """`count_of` neighbouring values of one type for every running thread.

    Which of them are uninitialised is added to `unwritten`; without that list it is an error.
    """
    region = _region(f, site, _first_active(f, address))
    active = None if f.compact else f.mask
    try:
        if region is None:
            raise Fault("no memory", 0, 0)
        index = check(region, region.offsets(address), site.width, active)
    except Fault:
        return _load_slowly(f, site, address, dtype, count_of, unwritten)
    index = place(index, site.width, _owner(f, region, packed=False))
    watch(f, site, region, index, packed=False)
    out = _take(region, index, dtype, count_of)
    if region.written is not None and f.batch.check:
        _note_unwritten(f, site, region, index, dtype, count_of, active, unwritten)
    return out


def _take(region: Region, index: Array, dtype: DType, count_of: int) -> list[Array]:
    values = region.view(dtype)
    if count_of == 1:
        return [values.take(index, mode="clip")]
    rows = values[: values.size // count_of * count_of].reshape(-1, count_of)
    return [rows[:, column].take(index, mode="clip") for column in range(count_of)]


def _part(index: Array, count_of: int, part: int) -> Array:
    return index if count_of == 1 else index * count_of + part


def _note_unwritten(
    f: Frame, site: Site, region: Region, index: Array, dtype: DType, count_of: int,
    active: Array | None, unwritten: list[Array] | None,
) -> None:  # fmt: skip
    for part in range(count_of):
        bad = unstored(region, _part(index, count_of, part), dtype, active)
        if unwritten is not None:
            unwritten.append(bad)
        elif region.parts is None and bad.any():
            thread = _thread(f, int(bad.argmax()), packed=False)
            message = f"reads {region.name} that was never written"
            raise site.error(f, message, thread, UninitialisedError)


def _load_slowly(
    f: Frame, site: Site, address: Array, dtype: DType, count_of: int,
    unwritten: list[Array] | None,
) -> list[Array]:  # fmt: skip
    """Active threads only, in several regions if need be."""
    packed = np.broadcast_to(f.active_part(address), (f.count,))
    out = [np.zeros(f.count, dtype) for _ in range(count_of)]
    bad = [np.zeros(f.count, bool) for _ in range(count_of)]
    for region, chosen, index in places(f, site, packed):
        values = _take(region, index, dtype, count_of)
        for part, value in enumerate(values):
            out[part][chosen] = value
            if region.written is not None:
                bad[part][chosen] = unstored(region, _part(index, count_of, part), dtype)
    if unwritten is not None and f.batch.check and any(each.any() for each in bad):
        unwritten += [f.spread(each) for each in bad]
    return [f.spread(value) for value in out]


def places(
    f: Frame, site: Site, address: Array, write: Write | None = None, *, unseen: bool = False
) -> Iterator[tuple[Region, Any, Array]]:
    """(region, which of the active threads, index in units of the width) for packed addresses.

    `write` tells the race detector how to store, and whose values are there. `unseen`: whoever
    asks calls `watch` itself, when it knows what was done.
    """
    if site.space not in _MAY_REACH:
        region = _region(f, site, 0)
        assert region is not None
        owner = _owner(f, region, packed=True)
        if site.far:
            address, owner = _far(f, site, region, address, owner)
        index = _checked(f, site, region, address, slice(None))
        index = place(index, site.width, owner)
        if not unseen:
            watch(f, site, region, index, packed=True, write=write)
        yield region, slice(None), index
        return
    rest = np.ones(address.size, bool)
    while rest.any():
        first = int(rest.argmax())
        region = _region(f, site, int(address[first]))
        if region is None:
            raise _nowhere(f, site, first, int(address[first]))
        chosen: Any = rest & (region.offsets(address) < np.uint64(max(region.size, 1)))
        if not chosen[first]:
            chosen[first] = True  # reported by the check that follows
        whole = bool(chosen.all())
        where = slice(None) if whole else chosen
        index = _checked(f, site, region, address[where], where)
        if region.origin is not None:
            index = place(index, site.width, region.origin[f.index[where]])
        if site.kind.writes and region.read_only:
            raise site.error(f, f"stores to constant memory {region.name}", int(f.index[first]))
        if not unseen:
            watch(f, site, region, index, packed=True, chosen=where, write=write)
        yield region, where, index
        rest &= ~chosen


def _far(
    f: Frame, site: Site, region: Region, address: Array, owner: Array | None
) -> tuple[Array, Array | None]:
    """Places within a block's shared memory, and where that of each access's block begins."""
    wide = address.astype(np.uint64)
    rank = (wide >> np.uint64(REMOTE)).astype(np.int64) - 1
    named = rank >= 0
    if not named.any():
        return address, owner
    batch = f.batch
    missing = rank >= batch.cluster_size
    if missing.any():
        at = int(missing.argmax())
        raise site.error(f, "this address is in no block of the cluster", int(f.index[at]))
    own = batch.block_of[f.index]
    target = np.where(named, own // batch.cluster_size * batch.cluster_size + rank, own)
    living = np.logical_or.reduceat(batch.alive, np.arange(batch.blocks) * batch.block_size)
    gone = named & ~living[target]
    if gone.any():
        at = int(gone.argmax())
        message = f"the shared memory of block {batch.number(int(target[at]))}, which has ended"
        raise site.error(f, message, int(f.index[at]))
    if batch.skeleton is not None:
        _note_remote(batch.skeleton, f.index[named], own[named], target[named], site)
    return wide & np.uint64((1 << REMOTE) - 1), target * (region.data.size // batch.blocks)


def _note_remote(skeleton: Skeleton, threads: Array, own: Array, target: Array, site: Site) -> None:
    """For the skeleton: accesses of the shared memory of other blocks."""
    for block in np.unique(target[target != own]).tolist():
        how = COUNTS if site.semantics.mbarrier else READS * (not site.kind.writes)
        skeleton.reach(threads[target == block], block, site.span, how)


def _checked(f: Frame, site: Site, region: Region, address: Array, where: Any) -> Array:
    try:
        return check(region, region.offsets(address), site.width, None)
    except Fault as fault:
        position = fault.position
        if not isinstance(where, slice):
            position = int(np.flatnonzero(where)[position])
        far = max(region.base - fault.address, fault.address - region.base - region.size)
        if far > GAP:
            raise _nowhere(f, site, position, fault.address) from None
        within = fault.address - window_of(region.base)
        what = fault.what if fault.piece is None else named(f, fault.what, fault.piece)
        message = f"{what}, at address {within:#x}"
        raise site.error(f, message, int(f.index[position])) from None


def named(f: Frame, what: str, piece: Piece) -> str:
    """What is said of a piece of the heap, with its size and who asked for it and freed it."""
    text = f"the {piece.size} bytes that malloc gave {_whom(f, piece.given)}"
    if piece.freed is not None:
        text += f" and that {_whom(f, piece.freed)} freed"
    return what.replace(PIECE, text)


def _whom(f: Frame, owner: Owner) -> str:
    call = owner.call
    place = f.batch.said(call.label) if isinstance(call.label, Span) else ""
    return f"{thread_name(owner.thread, call.grid, call.block)}{place}"


def _nowhere(f: Frame, site: Site, position: int, address: int) -> KernelError:
    """No memory that the instruction may reach is there; perhaps some of another space is."""
    if site.space in ("const", "param"):
        address = (address - WINDOWS[site.space]) % (1 << 64)
    memory = "no argument or variable"
    if site.space not in ("generic", "global"):
        memory = f"no {_SPOKEN[site.space]}"
    message = f"out-of-bounds access: address {address:#x} belongs to {memory}"
    if f.batch.heap.was_given(address):
        message = f"use after free: address {address:#x} was given by malloc, and freed long ago"
    return site.error(f, message + _elsewhere(f.batch.memory, address), int(f.index[position]))


def _elsewhere(memory: Memory, address: int) -> str:
    """What an address would be in other spaces, in words."""
    start = window_of(address)
    space = next(name for name, window in WINDOWS.items() if window == start)
    if space in ("shared", "local"):
        return f"; as a generic address it lies in {_SPOKEN[space]}"
    for window, meant in ((0, "a generic address"), *((WINDOWS[name], f"an address within {name}")
                          for name in ("const", "param"))):  # fmt: skip
        found = memory.find(address + window)
        if found is not None and 0 <= address + window - found.base < found.size:
            return f"; as {meant} it lies in {found.name}, which is {_SPOKEN[found.space]}"
    return ""


# -- counters and races -------------------------------------------------------------------------


def watch(
    f: Frame, site: Site, region: Region, index: Array, packed: bool, chosen: Any = slice(None),
    write: Write | None = None, failed: Array | None = None,
) -> None:  # fmt: skip
    """Counters and races of an access; `failed` are swaps that did not write."""
    batch = f.batch
    guarded = site.space == "shared" and not (site.semantics.mbarrier or site.semantics.begins)
    guarded = guarded and batch.barrier_words is not None
    if batch.counters is None and batch.races is None and not guarded:
        return
    if index.size != f.count and f.mask is not None and not packed and index.size == f.n:
        index = index[f.index]
    threads = f.index[chosen]
    start = np.broadcast_to(index, threads.shape) * site.width
    if guarded:
        spare(f, site, threads, start, site.width)
    if batch.counters is not None and site.tallied:
        _count(f, site, region, threads, start)
    if batch.skeleton is not None:
        _note(batch, batch.skeleton, site, region, threads, start)
    if batch.races is not None and (site.space == "shared" or site.counted):
        key = SHARED if site.space == "shared" else region.base
        semantics = site.as_weak if batch.weak_volatile and site.as_weak else site.semantics
        if semantics.kind is Kind.READ and site.span in batch.dead:
            first = batch.first_block * batch.block_size
            seen = ~batch.dead[site.span][first + threads]
            threads, start = threads[seen], start[seen]
        races = batch.races.access(
            key, region.data.size, threads, start, site.width, semantics, site.span,
            order=site.order, writing=None if write is None else write(region, chosen, index),
            failed=failed,
        )  # fmt: skip
        if site.semantics.under_way:
            batch.copies.add(key, threads, start, site.width, site.semantics, site.span)
        if races and not batch.races.every:
            raise race_error(f, site, races[0])


def _note(
    batch: Batch, skeleton: Skeleton, site: Site, region: Region, threads: Array, start: Array
) -> None:  # fmt: skip
    """For the skeleton: what an access sees and leaves."""
    looks = site.kind is Kind.STRONG_READ
    if site.space == "shared":
        skeleton.touch(
            site.span, region.data.size, start, site.width, reads=site.kind.reads,
            writes=site.kind.writes,
        )  # fmt: skip
        if looks and not site.semantics.mbarrier:  # perhaps by a generic address
            skeleton.look_at_shared(site.span)
    elif skeleton.loops and looks:
        acquires = int(site.semantics.scope) if site.order.acquires else 0
        skeleton.look(site.span, threads, region, start, acquires)
    if site.counted and site.kind.writes:
        skeleton.write_far(site.span, region, start, site.width)
    if batch.read_only is not None and site.counted:
        batch.read_only.touch(
            skeleton, site.span, region, start, site.width, only=site.only_read,
            writes=site.kind.writes,
        )  # fmt: skip


MBARRIER = 8  # bytes of one


def occupy(batch: Batch, place: int, *, occupied: bool) -> None:
    """An mbarrier begins or ends, at a place in units of its size."""
    if batch.barrier_words is None:
        batch.barrier_words = np.zeros(-(-batch.shared.data.size // MBARRIER), bool)
    batch.barrier_words[place] = occupied


def spare(f: Frame, site: Site, threads: Array, start: Array, width: int) -> None:
    """By the manual only operations on mbarriers may touch one that is alive."""
    words = f.batch.barrier_words
    if words is None or not width:
        return
    first, last = start // MBARRIER, (start + width - 1) // MBARRIER
    for part in range(-(-width // MBARRIER) + 1):
        hit = words[np.minimum(first + part, last)]
        if hit.any():
            message = "touches an mbarrier that is alive; it must be made invalid first"
            raise site.error(f, message, int(threads[hit.argmax()]))


def race_error(f: Frame, site: Site, race: Race) -> RaceError:
    first, second = race.first, race.second
    lacks = missing(race, None)
    plain = race.cause is Cause.ORDER
    error = RaceError(
        f"{site.name}: {lacks.kind}: this {second.words} and an earlier {first.words} by "
        f"{_who(f, first)}{_line(f, first)}"
        + (" have nothing between them that orders them" if plain else f": {lacks.what}")
        + f"; {_who(f, second)}",
        site.span, lacks.remedy,
    )  # fmt: skip
    error.cause, error.manual, error.breaks = race.cause.value, lacks.manual, race.breaks
    return error


def _who(f: Frame, side: Side) -> str:
    return f.batch.where((side.block - f.batch.first_block) * f.batch.block_size + side.thread)


def _line(f: Frame, side: Side) -> str:
    return f.batch.said(side.label) if isinstance(side.label, Span) else ""


def _count(f: Frame, site: Site, region: Region, threads: Array, start: Array) -> None:
    counters = f.batch.counters
    assert counters is not None
    tallies, lanes = counters.tallies, int(threads.size)
    warp, lane = _of(threads, f.batch.warp_of), _of(threads, f.batch.lane)
    if site.kind is Kind.ATOMIC:  # in tallies alone: neither loads nor stores
        counters = Counters(serving=counters.serving)
    if site.space == "shared":
        own = _own(region, threads, start)
        if site.far:  # perhaps another block's
            own = own % max(1, region.data.size // f.batch.blocks)
        use = counters.count_shared(region.name, warp, lane, own, site.width, site.kind.writes)
        tallies.served(site.span, lanes, use)
    elif site.space == "local":
        moved = own_traffic(*_rows(warp, lane, _own(region, threads, start), site.width))
        tallies.moved(site.span, "local", lanes, moved)
    elif region.space == "global":
        write = site.kind.writes
        moved = counters.count_global(region.name, warp, lane, start, site.width, write)
        tallies.moved(site.span, "global", lanes, moved)
    elif region.space != "param":  # of those there is nothing to tell
        warps = 1 + int(np.count_nonzero(warp[1:] != warp[:-1]))  # they come in order
        tallies.asked(site.span, region.space, warps, lanes)
    if tallies.watched is not None:
        _watch(f, site, tallies.watched, region, threads, start)


def _watch(
    f: Frame, site: Site, watched: Watched, region: Region, threads: Array, start: Array
) -> None:
    """Keeps what the block asks for that is looked at."""
    space = "shared" if site.space == "shared" else region.space
    if space not in ("shared", "global"):
        return
    chosen = f.batch.first_block + threads // f.batch.block_size == watched.block
    if not chosen.any():
        return
    own = _own(region, threads, start) if space == "shared" else start + region.base
    inside = threads[chosen]
    rows, active = by_warp(f.batch.warp_of[inside], f.batch.lane[inside], own[chosen])
    watched.requests.append(
        Request(site.span, space, rows, active, site.width, site.kind.writes)
    )  # fmt: skip


def _of(threads: Array, values: Array) -> Array:
    """What belongs to these threads, which come in order; most often they are all."""
    return values if threads.size == values.size else values[threads]


def _own(region: Region, threads: Array, start: Array) -> Array:
    """Places within what belongs to the thread alone, or to its block."""
    return start if region.origin is None else start - _of(threads, region.origin)


def _rows(warp: Array, lane: Array, address: Array, width: int) -> tuple[Array, int, Array]:
    rows, active = by_warp(warp, lane, address)
    return rows, width, active


def count_rows(f: Frame, site: Site, address: Array, rows: int) -> None:
    """What ldmatrix and stmatrix ask of the banks: the first lanes give addresses of rows."""
    counters = f.batch.counters
    if counters is None:
        return
    lane = f.batch.lane[f.index]
    giving = lane < rows
    where = np.broadcast_to(f.active_part(address), (f.count,)).astype(np.int64)
    asked, active = by_warp(f.batch.warp_of[f.index][giving], lane[giving], where[giving])
    use = matrix_use(asked, active, load=site.kind.reads, serving=counters.serving)
    counters.add_shared(f.batch.shared.name, use)
    counters.tallies.served(site.span, f.count, use)


def tallied(ctx: Context, ins: Instruction, step: Step) -> Step:
    """What the asynchronous way does is no request of a warp: counted is how often it is asked."""
    label = ctx.module.span(ins)

    def counted(f: Frame) -> None:
        if f.batch.counters is not None:
            f.batch.counters.tallies.asked(label, "asynchronous", f.count, f.count)
        step(f)

    return counted
