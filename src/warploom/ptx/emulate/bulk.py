"""cp.async.bulk: copies of many bytes by one thread, plain or by a tensor map.

The bytes are there at once; races know that they come later: into shared memory when the
mbarrier's phase is complete, out of it when the thread has waited for its group (with `.read`
only for the reading).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Culprit, KernelError, UninitialisedError
from warploom.machine.async_completion import Completion
from warploom.machine.memory import FIRST_ADDRESS, WINDOWS, Region
from warploom.machine.race import MAP_READ
from warploom.machine.semantics import Kind, Scope, Semantics
from warploom.ptx.emulate import memory
from warploom.ptx.emulate.access import REMOTE, SHARED, Site, race_error, spare, tallied
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.mbarrier import (
    MBarrier,
    arrive_after_copies,
    barriers_at,
    noted,
    shared_address,
    site_of,
)
from warploom.ptx.emulate.product import vector
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.skeleton import Act
from warploom.ptx.emulate.tensor import MAP_BYTES, Map, MapError, read_map
from warploom.ptx.ir import Address, Instruction

Array = npt.NDArray[Any]
UNIT = 16  # sizes and addresses are multiples of it
Bytes = npt.NDArray[np.uint8]
Combine = Callable[[Bytes, Bytes], Bytes]  # what is there, what comes
Done = Callable[[Completion | None], None]  # nobody tells of what a thread waits for itself


class Copier:
    """What the forms have in common: places, checks, races."""

    def __init__(self, ctx: Context, ins: Instruction) -> None:
        self.site = site_of(ctx, ins, UNIT, Semantics(Kind.WRITE))
        self.near = "shared::cluster" not in ins.modifiers  # all that is shared is the block's own

    def fail(self, f: Frame, message: str, thread: int) -> KernelError:
        told = self.site.error(f, message, thread)
        told.culprit = Culprit(f.batch.where(thread))  # which of its two memories is not said
        return told

    def whole(self, f: Frame, thread: int, what: str, *numbers: int) -> None:
        for number in numbers:
            if number % UNIT:
                raise self.fail(f, f"{what} {number:#x} is no multiple of {UNIT}", thread)

    def shared(self, f: Frame, thread: int, address: int, size: int, *, near: bool = False) -> int:
        """Where in all of the batch's shared memory a block's bytes are; `near`: of its own."""
        batch, region = f.batch, f.batch.shared
        block = int(batch.block_of[thread])
        if address >> REMOTE:
            rank = (address >> REMOTE) - 1
            if near:
                message = "an address of shared::cluster where only shared::cta may be"
                raise self.fail(f, message, thread)
            if rank >= batch.cluster_size:
                raise self.fail(f, "this address is in no block of the cluster", thread)
            block = block // batch.cluster_size * batch.cluster_size + rank
            address &= (1 << REMOTE) - 1
        if address + size > region.size:
            message = f"out-of-bounds access of {size} bytes, {address} bytes into {region.name}"
            raise self.fail(f, f"{message} ({region.size} bytes)", thread)
        return address + block * (region.data.size // batch.blocks)

    def everywhere(
        self, f: Frame, thread: int, address: int, size: int, barrier: int, mask: int
    ) -> Iterator[tuple[int, MBarrier]]:
        """Yields, for each block that a multicast names, where the bytes go, and its mbarrier."""
        own = (1 << REMOTE) - 1
        if mask >> f.batch.cluster_size or not mask:
            message = f"the mask {mask:#x} does not fit a cluster of {f.batch.cluster_size} blocks"
            raise self.fail(f, message, thread)
        for rank in range(f.batch.cluster_size):
            if mask >> rank & 1:
                there = (rank + 1) << REMOTE
                at = self.shared(f, thread, barrier & own | there, 8)
                found = f.batch.mbarriers.get(at // 8)
                if found is None:
                    message = f"block {rank} of the cluster has no mbarrier at this place"
                    raise self.fail(f, message, thread)
                self.note_barrier(f, thread, at)
                yield self.shared(f, thread, address & own | there, size), found

    def region(self, f: Frame, thread: int, address: int, size: int) -> tuple[Region, int]:
        found = f.batch.memory.bytes_from(address)
        if found is None or found[2] < size:
            message = f"out-of-bounds access of {size} bytes at address {address:#x}"
            raise self.fail(f, message, thread)
        region, at, _ = found
        return region, at if region.origin is None else at + int(region.origin[thread])

    def target(self, f: Frame, thread: int, address: int, size: int) -> tuple[Region, int]:
        """A region that may be written."""
        region, at = self.region(f, thread, address, size)
        if region.read_only:
            raise self.fail(f, f"writes to {region.name}, which is constant", thread)
        return region, at

    def note(
        self, f: Frame, thread: int, key: Any, size: int, places: Array, width: int, kind: Kind,
        how: Semantics | None = None,
    ) -> Done:  # fmt: skip
        """Accesses that are under way; the result is called when they are done, and for whom."""
        races = f.batch.races
        if races is None or not places.size or not width:  # a copy of no bytes
            return lambda _: None
        semantics = how or Semantics(kind, under_way=True, asynchronous=True)
        label = self.site.span
        places, width = (places[:, None] + np.arange(0, width, UNIT)).reshape(-1), min(width, UNIT)
        who = np.full(places.size, thread)
        found = races.access(key, size, who, places, width, semantics, label)
        if found and not races.every:
            raise race_error(f, self.site, found[0])

        def done(completion: Completion | None) -> None:
            if completion is None:
                races.complete(key, who, places, width, semantics, label)
            else:
                races.land(key, who, places, width, semantics, label, completion)

        return done

    def beside(self, f: Frame, thread: int, barrier: MBarrier, places: Array) -> None:
        """The mbarrier is in the block that the bytes go to, as the manual asks."""
        size = f.batch.shared.data.size // f.batch.blocks
        home = int(places[0]) // size if places.size else barrier.block
        if home != barrier.block:
            blocks = [f.batch.number(each) for each in (barrier.block, home)]
            message = "the mbarrier is in block {} and the bytes go to block {}".format(*blocks)
            raise self.fail(f, message, thread)

    def stored(self, f: Frame, thread: int, starts: Array, width: int) -> None:
        """What leaves shared memory was written."""
        marks = f.batch.shared.written
        if marks is not None and not marks[starts[:, None] + np.arange(width)].all():
            message = "reads shared memory that was never written"
            raise self.site.error(f, message, thread, UninitialisedError)

    def note_barrier(self, f: Frame, thread: int, at: int) -> None:
        """A copy will tell the mbarrier of another block."""
        if f.batch.races is None:
            return
        size, who = f.batch.shared.data.size, np.array([thread])
        found = f.batch.races.access(SHARED, size, who, np.array([at]), 8, _TELLS, self.site.span)
        if found and not f.batch.races.every:
            raise race_error(f, self.site, found[0])

    def note_map(self, f: Frame, thread: int, region: Region, at: int) -> Done:
        """The tensor map of a copy is read by a way to memory of its own, until it is done."""
        races = f.batch.races
        if races is None or region.read_only or at % UNIT:
            return lambda _: None
        races.use_map(region.base, at, thread)
        size, places = region.data.size, np.array([at])
        return once(self.note(f, thread, region.base, size, places, MAP_BYTES, Kind.READ, MAP_READ))

    def note_source(self, f: Frame, thread: int, region: Region, places: Array, width: int) -> Done:
        """Global memory that is read; of a multicast, until the first of its blocks has it."""
        size = region.data.size
        return once(self.note(f, thread, region.base, size, places, width, Kind.READ))


def once(*parts: Done) -> Done:
    """Ends all of these, at the first call."""
    waiting = list(parts)

    def done(completion: Completion | None) -> None:
        while waiting:
            waiting.pop()(completion)

    return done


def mark(region: Region, start: int, size: int) -> None:
    if region.written is not None:
        region.written[start : start + size] = 1


def each_of(f: Frame, fetch: Fetch) -> list[int]:
    values: list[int] = np.broadcast_to(f.active_part(fetch(f)), (f.count,)).tolist()
    return values


def cp(ctx: Context, ins: Instruction) -> Step:
    if "bulk" in ins.modifiers:
        return bulk(ctx, ins)
    return arrive_after_copies(ctx, ins) if "mbarrier" in ins.modifiers else memory.cp(ctx, ins)


def bulk(ctx: Context, ins: Instruction) -> Step:
    words = ins.modifiers
    if "prefetch" in words:
        return _prefetch(ctx, ins)
    if "commit_group" in words or "wait_group" in words:
        return _groups(ctx, ins)
    tensor = "tensor" in words
    if "shared::cluster" in words and "shared::cta" in words:
        return tallied(ctx, ins, across(ctx, ins))
    shared = next(at for at, word in enumerate(words) if word.startswith("shared"))
    into_shared = words.index("global") > shared
    ways = (_tensor_in, _tensor_out) if tensor else (_plain_in, plain_out)
    return tallied(ctx, ins, ways[0 if into_shared else 1](ctx, ins))


def _prefetch(ctx: Context, ins: Instruction) -> Step:
    """[global], size, or [map, {…}]: fetches into a cache, of which there are none; what may not be
    copied may not be fetched."""
    copier = Copier(ctx, ins)
    if "tensor" in ins.modifiers:
        map_, coordinates = map_of(ctx, ins, ins.operands[0])

        def box(f: Frame) -> None:
            maps, starts = each_of(f, map_), coordinates_of(f, coordinates)
            for thread, address, start in zip(f.index.tolist(), maps, starts, strict=True):
                read_box(f, copier, thread, address, start)

        return box
    of, size = ctx.address(ins.operands[0]), ctx.read(ins.operands[1], "u32")

    def step(f: Frame) -> None:
        every = zip(f.index.tolist(), each_of(f, of), each_of(f, size), strict=True)
        for thread, source, count in every:
            copier.whole(f, thread, "the size or an address", source, count)
            copier.region(f, thread, source, count)

    return step


def _plain_in(ctx: Context, ins: Instruction) -> Step:
    """[shared], [global], size, [mbarrier]"""
    copier = Copier(ctx, ins)
    to, of = shared_address(ctx, ins.operands[0]), ctx.address(ins.operands[1])
    size, at = ctx.read(ins.operands[2], "u32"), shared_address(ctx, ins.operands[3])
    mask = _mask(ctx, ins, 4)

    def step(f: Frame) -> None:
        targets, sources, sizes = each_of(f, to), each_of(f, of), each_of(f, size)
        for number, thread, meant in _barriers(f, copier, at, mask):
            target, source, count = targets[number], sources[number], sizes[number]
            copier.whole(f, thread, "the size or an address", target, source, count)
            region, start = copier.region(f, thread, source, count)
            read = copier.note_source(f, thread, region, np.array([start]), count)
            for place, barrier in _targets(f, copier, thread, target, count, meant):
                f.batch.shared.data[place : place + count] = region.data[start : start + count]
                landed(f, copier, thread, barrier, np.array([place]), count, count, read)

    return step


def across(
    ctx: Context, ins: Instruction, combine: Combine | None = None, how: Semantics | None = None
) -> Step:
    """[shared of the cluster], [own shared], size, [mbarrier beside the target]; `combine` makes
    what is there and what comes one."""
    copier = Copier(ctx, ins)
    to, of = shared_address(ctx, ins.operands[0]), shared_address(ctx, ins.operands[1])
    size, at = ctx.read(ins.operands[2], "u32"), shared_address(ctx, ins.operands[3])

    def step(f: Frame) -> None:
        targets, sources, sizes = each_of(f, to), each_of(f, of), each_of(f, size)
        for number, thread, barrier in barriers_at(f, barrier_site(copier), at(f)):
            target, source, count = targets[number], sources[number], sizes[number]
            copier.whole(f, thread, "the size or an address", target, source, count)
            start = copier.shared(f, thread, source, count, near=True)
            place = copier.shared(f, thread, target, count)
            data, marks = f.batch.shared.data, f.batch.shared.written
            came = data[start : start + count].copy()
            values = None if marks is None else marks[start : start + count].copy()
            data[place : place + count] = (
                came if combine is None else combine(data[place : place + count], came)
            )
            if combine is not None and marks is not None and values is not None:
                values &= marks[place : place + count]
            read = copier.note(f, thread, SHARED, data.size, np.array([start]), count, Kind.READ)
            landed(
                f, copier, thread, barrier, np.array([place]), count, count, read, how, across=True,
                values=values,
            )  # fmt: skip

    return step


Meant = MBarrier | tuple[int, int]  # an mbarrier; or where it is in each block, and of which


def _mask(ctx: Context, ins: Instruction, at: int) -> Fetch | None:
    multicast = "multicast::cluster" in ins.modifiers
    return ctx.read(ins.operands[at], "b16") if multicast else None


def _barriers(
    f: Frame, copier: Copier, at: Fetch, mask: Fetch | None
) -> Iterator[tuple[int, int, Meant]]:
    """For each active thread: its number among them, itself, and what its copy tells."""
    if mask is None:
        yield from barriers_at(f, barrier_site(copier), at(f))
        return
    every = zip(f.index.tolist(), each_of(f, at), each_of(f, mask), strict=True)
    for number, (thread, place, blocks) in enumerate(every):
        yield number, thread, (place, blocks)


def _targets(
    f: Frame, copier: Copier, thread: int, target: int, size: int, meant: Meant
) -> Iterator[tuple[int, MBarrier]]:
    if isinstance(meant, MBarrier):
        yield copier.shared(f, thread, target, size, near=copier.near), meant
    else:
        yield from copier.everywhere(f, thread, target, size, *meant)


_TELLS = Semantics(Kind.ATOMIC, Scope.CLUSTER, 8, mbarrier=True, asynchronous=True)


def barrier_site(copier: Copier) -> Site:
    """The mbarrier that a copy will tell that its bytes are there."""
    return replace(copier.site, width=8, semantics=_TELLS)


def landed(
    f: Frame, copier: Copier, thread: int, barrier: MBarrier, places: Array, width: int,
    total: int, read: Done | None = None, how: Semantics | None = None, *, across: bool = False,
    values: Array | None = None,
) -> None:  # fmt: skip
    """Bytes are there, which their mbarrier will count; `read` is where they came from, `how`
    how they were written, if not plainly. `values`: which of them somebody had written."""
    shared = f.batch.shared
    copier.beside(f, thread, barrier, places)
    spare(f, copier.site, np.full(places.size, thread), places, width)
    if shared.written is not None:
        shared.written[places[:, None] + np.arange(width)] = 1 if values is None else values
    parts = [copier.note(f, thread, SHARED, shared.data.size, places, width, Kind.WRITE, how)]
    parts += [] if read is None else [read]
    far = int(f.batch.block_of[thread]) != barrier.block
    barrier.tells_of_copies(f.batch, far=far)
    issued = barrier.phase
    if f.batch.skeleton is not None:
        f.batch.skeleton.touch(
            copier.site.span, shared.data.size, places, width,
            reads=how is not None and how.kind.reads, writes=True,
        )  # fmt: skip
        size = shared.data.size // f.batch.blocks
        blocks = {barrier.block} | ({int(places[0]) // size} if places.size else set())
        blocks |= {int(f.batch.block_of[thread])} if across else set()
        touched = tuple(sorted(blocks))
        noted(f, copier.site, Act.COPY, barrier, thread, 0, total, blocks=touched)

    def count() -> None:
        if f.batch.skeleton is not None and barrier.phase != issued:
            message = "a copy begins in one phase of its mbarrier, and ends in another"
            f.batch.skeleton.fail("C1", message, copier.site.span)
        for done in parts:
            done(barrier.completion(far=far))

    barrier.coming.append((total, count))


def plain_out(
    ctx: Context, ins: Instruction, combine: Combine | None = None, how: Semantics | None = None
) -> Step:
    """[global], [shared], size; `combine` makes what is there and what comes one."""
    copier = Copier(ctx, ins)
    to, of = ctx.address(ins.operands[0]), shared_address(ctx, ins.operands[1])
    size = ctx.read(ins.operands[2], "u32")

    def step(f: Frame) -> None:
        every = zip(f.index.tolist(), each_of(f, to), each_of(f, of), each_of(f, size), strict=True)
        for thread, target, source, count in every:
            copier.whole(f, thread, "the size or an address", target, source, count)
            region, start = copier.target(f, thread, target, count)
            place = copier.shared(f, thread, source, count, near=True)
            copier.stored(f, thread, np.array([place]), count)
            data, came = region.data[start : start + count], f.batch.shared.data[place:][:count]
            data[:] = came if combine is None else combine(data, came)
            mark(region, start, count)
            leaving(
                f, copier, thread, np.array([place]), count, region, np.array([start]), count, how
            )

    return step


def leaving(
    f: Frame, copier: Copier, thread: int, read: Array, read_width: int, region: Region,
    written: Array, write_width: int, how: Semantics | None = None, used: Done | None = None,
) -> None:  # fmt: skip
    """Bytes go out of shared memory; `how` is how they are written, if not plainly, and `used`
    ends the reading of their tensor map."""
    shared = f.batch.shared
    spare(f, copier.site, np.full(read.size, thread), read, read_width)
    source = copier.note(f, thread, SHARED, shared.data.size, read, read_width, Kind.READ)
    parts = [
        source if used is None else once(source, used),
        copier.note(
            f, thread, region.base, region.data.size, written, write_width, Kind.WRITE, how
        ),
    ]
    if f.batch.skeleton is not None:
        f.batch.skeleton.overwrite(region, written, write_width)
        f.batch.skeleton.write_far(copier.site.span, region, written, write_width)
        if f.batch.read_only is not None:
            f.batch.read_only.touch(
                f.batch.skeleton, copier.site.span, region, written, write_width, only=False,
                writes=True,
            )  # fmt: skip
    f.batch.bulks.setdefault(thread, [[]])[-1].append((*parts, copier.site.span))


def _groups(ctx: Context, ins: Instruction) -> Step:
    """commit_group and wait_group N; with `.read` only the sources are free again."""
    newest = ctx.read(ins.operands[0], "u32") if ins.operands else None
    reading = "read" in ins.modifiers

    def step(f: Frame) -> None:
        numbers = [0] * f.count if newest is None else each_of(f, newest)
        for thread, number in zip(f.index.tolist(), numbers, strict=True):
            groups = f.batch.bulks.setdefault(thread, [[]])
            if newest is None:
                groups.append([])
                continue
            for group in groups[: max(0, len(groups) - 1 - number)]:
                for at, (read, write, span) in enumerate(group):
                    if read is not None:
                        read(None)
                    if write is not None and not reading:
                        write(None)
                    group[at] = (None, write if reading else None, span)

    return step


# -- by tensor maps -------------------------------------------------------------------------------


def map_of(ctx: Context, ins: Instruction, operand: Any) -> tuple[Fetch, list[Fetch]]:
    """[map, {coordinates}]"""
    if not isinstance(operand, Address) or len(operand.more) != 1:
        raise ctx.fail(f"{ins.name} takes a tensor map and coordinates", ins)
    plain = Address(operand.base, operand.offset, ())
    coordinates = [ctx.read(each, "s32") for each in vector(operand.more[0])]
    return ctx.address(plain), coordinates


def coordinates_of(f: Frame, fetches: list[Fetch]) -> list[tuple[int, ...]]:
    return list(zip(*[each_of(f, fetch) for fetch in fetches], strict=True))


def _tensor_in(ctx: Context, ins: Instruction) -> Step:
    """[shared], [map, {…}], [mbarrier]"""
    copier = Copier(ctx, ins)
    to, at = shared_address(ctx, ins.operands[0]), shared_address(ctx, ins.operands[2])
    map_, coordinates = map_of(ctx, ins, ins.operands[1])
    mask = _mask(ctx, ins, 3)

    def step(f: Frame) -> None:
        targets, maps, starts = each_of(f, to), each_of(f, map_), coordinates_of(f, coordinates)
        for number, thread, meant in _barriers(f, copier, at, mask):
            target = targets[number] & (1 << REMOTE) - 1
            box, own, used = placed(f, copier, thread, maps[number], target, starts[number])
            base = copier.shared(f, thread, target, 0)
            runs, data, region = _box(f, copier, thread, box, starts[number])
            own = own[:: box.count // len(data)]
            read = once(copier.note_source(f, thread, region, runs, UNIT), used)
            for place, barrier in _targets(f, copier, thread, targets[number], 0, meant):
                places = own - base + place
                put_bytes(f.batch.shared.data, places, data)
                landed(f, copier, thread, barrier, runs_of(places), UNIT, data.size, read)

    return step


def _box(
    f: Frame, copier: Copier, thread: int, box: Map, corner: tuple[int, ...]
) -> tuple[Array, Bytes, Region]:
    """Where a box is read, in units, its bytes, and of which memory: by units where all of it lies
    inside, else by elements."""
    whole = box.units(corner)
    if whole is not None:
        region, start = copier.region(f, thread, box.address, int(whole.max()) + UNIT)
        return np.sort(start + whole), bytes_at(region, start + whole, UNIT), region
    inside, offsets = box.elements(corner)
    region, start = copier.region(f, thread, box.address, extent(offsets[inside], box.size))
    data = np.zeros((offsets.size, box.size), np.uint8)
    data[:] = box.outside()
    data[inside] = bytes_at(region, start + offsets[inside], box.size)
    return runs_of(start + offsets[inside]), data, region


def extent(offsets: Array, size: int) -> int:
    """How many bytes elements of a size take that begin at these offsets."""
    return int(offsets.max()) + size if offsets.size else 0


def _tensor_out(ctx: Context, ins: Instruction) -> Step:
    """[map, {…}], [shared]"""
    copier = Copier(ctx, ins)
    map_, coordinates = map_of(ctx, ins, ins.operands[0])
    of = shared_address(ctx, ins.operands[1])

    def step(f: Frame) -> None:
        for thread, box, places, used, at in boxes_out(f, copier, (map_, of), coordinates, "store"):
            inside, offsets = box.elements(at)
            needed = extent(offsets[inside], box.size)
            region, start = copier.target(f, thread, box.address, needed)
            copier.stored(f, thread, places[inside], box.size)
            data = bytes_at(f.batch.shared, places, box.size)
            put_bytes(region.data, start + offsets[inside], data[inside])
            written = pieces_of(start + offsets[inside], box.size)
            leaving(f, copier, thread, runs_of(places), UNIT, region, *written, used=used)

    return step


def boxes_out(
    f: Frame, copier: Copier, fetches: tuple[Fetch, Fetch], coordinates: list[Fetch], what: str
) -> Iterator[tuple[int, Map, Array, Done, tuple[int, ...]]]:
    """Boxes that threads store: each thread, its map, where the elements lie in shared memory, what
    ends the reading of the map, and where the box begins."""
    maps, sources = (each_of(f, each) for each in fetches)
    starts = coordinates_of(f, coordinates)
    for number, thread in enumerate(f.index.tolist()):
        box, places, used = placed(f, copier, thread, maps[number], sources[number], starts[number])
        if min(starts[number]) < 0:  # an H200 ends the kernel as an illegal instruction
            message = f"a {what} of a box that begins before the array, at {starts[number]}"
            raise copier.fail(f, message, thread)
        yield thread, box, places, used, starts[number]


def placed(
    f: Frame, copier: Copier, thread: int, address: int, target: int, start: tuple[int, ...]
) -> tuple[Map, Array, Done]:
    """A map, where in shared memory each element of its box lies, and what ends its reading."""
    box, region, at = read_box(f, copier, thread, address, start)
    used = copier.note_map(f, thread, region, at)
    if target % 128:
        raise copier.fail(f, f"the shared address {target:#x} is no multiple of 128", thread)
    base = copier.shared(f, thread, target, box.room, near=copier.near)
    return box, base - target + box.swizzled(target), used


def read_box(
    f: Frame, copier: Copier, thread: int, address: int, start: tuple[int, ...]
) -> tuple[Map, Region, int]:
    """The map at an address, whose box may begin at these coordinates, and where it lies."""
    if address < FIRST_ADDRESS["global"]:  # a parameter's address without its window
        address += WINDOWS["param"]
    region, at = copier.region(f, thread, address, MAP_BYTES)
    if f.batch.skeleton is not None and region.space != "param":
        f.batch.skeleton.read_map(copier.site.span, region, at, MAP_BYTES)
    try:
        box = read_map(region.data[at : at + MAP_BYTES])
    except MapError as error:
        raise copier.fail(f, str(error), thread) from None
    if len(start) != box.rank:
        raise copier.fail(f, f"{len(start)} coordinates for a map of rank {box.rank}", thread)
    if start[0] * box.size % UNIT:
        message = f"the first coordinate, {start[0]}, is not at a multiple of {UNIT} bytes"
        raise copier.fail(f, message, thread)
    return box, region, at


def bytes_at(region: Region, starts: Array, size: int) -> Bytes:
    found: Bytes = region.data[starts[:, None] + np.arange(size)]
    return found


def put_bytes(data: Bytes, starts: Array, values: Bytes) -> None:
    data[starts[:, None] + np.arange(values.shape[1])] = values


def runs_of(starts: Array) -> Array:
    """The pieces of sixteen bytes that elements lie in."""
    found = np.sort(starts // UNIT)
    return found[np.concatenate(([True], found[1:] != found[:-1]))] * UNIT if found.size else found


def pieces_of(starts: Array, size: int) -> tuple[Array, int]:
    """Where bytes are written, and how many: pieces, or elements where a piece is not whole."""
    whole = runs_of(starts)
    return (whole, UNIT) if whole.size * UNIT == starts.size * size else (starts, size)


TABLE: dict[str, Compile] = {"cp": cp}
