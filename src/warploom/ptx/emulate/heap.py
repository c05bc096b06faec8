"""malloc and free on the device, which `new` and `delete` call too.

Each thread that asks gets memory of its own in the global space, until any thread frees it, in this
launch or a later one; NULL where the heap has no room left. A free is a write to all of a piece:
whoever touches it in another thread must be ordered before.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.heap import ALIGNMENT, Call, Freed
from warploom.machine.memory import Fault
from warploom.machine.semantics import Kind, Semantics
from warploom.ptx.emulate.access import Site, named, race_error
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame, in_grid
from warploom.ptx.emulate.passing import give_result, passed
from warploom.ptx.ir import Instruction, Operand

Array = npt.NDArray[Any]
_WRITE = Semantics(Kind.WRITE)
MOST_PLACES = 1 << 16  # of freed pieces that are looked at together


def _site(ctx: Context, ins: Instruction, name: str) -> Site:
    return Site(ctx.module.span(ins), name, "global", ALIGNMENT, True, _WRITE)


def _call(f: Frame, site: Site) -> Call:
    return Call(site.span, f.batch.grid, f.batch.block)


def _threads(f: Frame, index: Array) -> Array:
    """Numbers through the whole grid."""
    batch = f.batch
    block, inside = np.divmod(index, batch.block_size)
    return in_grid(batch.first_block + block, batch.grid, batch.cluster) * batch.block_size + inside


def _told(f: Frame, site: Site, fault: Fault, threads: Array) -> Exception:
    what = fault.what if fault.piece is None else named(f, fault.what, fault.piece)
    at = f", at address {fault.address:#x}" if fault.address else ""
    return site.error(f, what + at, int(threads[fault.position]))


def malloc(
    ctx: Context, ins: Instruction, name: str, results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Step:  # fmt: skip
    """(size), or (size, alignment), which is a power of two: another gets no memory."""
    site = _site(ctx, ins, name)
    values = passed(ctx, ins, name, arguments, "QQ"[: len(arguments)])
    give = give_result(ctx, ins, name, results, 8)

    def step(f: Frame) -> None:
        given = [value(f) for value in values]
        aligns = np.full(f.count, ALIGNMENT, np.uint64) if len(given) == 1 else given[1]
        out = np.zeros(f.count, np.uint64)
        for align in np.unique(aligns).tolist():
            if align & (align - 1) or not 0 < align <= f.batch.heap.limit:
                continue
            at = np.flatnonzero(aligns == align)
            threads = _threads(f, f.index[at])
            try:
                out[at] = f.batch.heap.give(
                    given[0][at], max(align, ALIGNMENT), threads, _call(f, site)
                )
            except Fault as fault:
                raise _told(f, site, fault, f.index[at]) from None
        _forget(f)
        give(f, out)

    return step


def free(
    ctx: Context, ins: Instruction, name: str, _: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Step:  # fmt: skip
    site = _site(ctx, ins, name)
    (address,) = passed(ctx, ins, name, arguments, "Q")

    def step(f: Frame) -> None:
        addresses = address(f)
        at = np.flatnonzero(addresses)
        if not at.size:
            return
        threads, heap, call = f.index[at], f.batch.heap, _call(f, site)
        try:
            pieces = heap.pieces(addresses[at])
        except Fault as fault:
            raise _told(f, site, fault, threads) from None
        for freed in pieces:
            _watch(f, site, freed, threads[freed.chosen])
            heap.free(freed, _threads(f, threads[freed.chosen]), call)
        _forget(f)

    return step


def _watch(f: Frame, site: Site, freed: Freed, threads: Array) -> None:
    """All bytes of the pieces are written, as far as races are concerned."""
    races = f.batch.races
    if races is None or f.batch.block_size * prod(f.batch.grid) == 1:
        return
    region = freed.arena.region
    cells = -(-freed.sizes // ALIGNMENT)
    who = np.repeat(threads, cells)
    within = np.arange(who.size) - np.repeat(np.cumsum(cells) - cells, cells)
    places = np.repeat(freed.places, cells) + within * ALIGNMENT
    for part in _parts(who.size, f.n):
        found = races.access(
            region.base, region.data.size, who[part], places[part], ALIGNMENT, _WRITE, site.span
        )
        if found and not races.every:
            raise race_error(f, site, found[0])


def _parts(size: int, threads: int) -> Iterator[slice]:
    """Parts of so many places, of which none has as many as there are threads: it would be taken
    for one place of each. Where there is one thread it is."""
    for start in range(0, size, MOST_PLACES):
        end = min(start + MOST_PLACES, size)
        if end - start == threads > 1:
            yield slice(start, start + 1)
            start += 1
        yield slice(start, end)


def _forget(f: Frame) -> None:
    """What gave its bytes back has no accesses to be compared with any more."""
    for base in f.batch.heap.dropped:
        if f.batch.races is not None:
            f.batch.races.forget(base)
    f.batch.heap.dropped.clear()
