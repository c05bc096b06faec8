"""st.async, red.async and cp.reduce.async.bulk: stores and reductions that end later.

As copies (`bulk`) they are done at once; races know that they come later: into shared memory when
the mbarrier's phase is complete, into global memory when the thread has waited for its group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine import rounding as r
from warploom.machine.semantics import Kind, Scope, Semantics
from warploom.ptx.emulate import atomics, bulk, memory
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.access import tallied
from warploom.ptx.emulate.bulk import (
    Combine,
    Copier,
    across,
    barrier_site,
    boxes_out,
    bytes_at,
    each_of,
    extent,
    landed,
    leaving,
    map_of,
    pieces_of,
    plain_out,
    put_bytes,
    runs_of,
)
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.mbarrier import MBarrier, barriers_at, shared_address
from warploom.ptx.emulate.memory import elements_of
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.tensor import Map
from warploom.ptx.ir import Instruction
from warploom.ptx.types import DTYPES, type_of

Array = npt.NDArray[Any]


def st(ctx: Context, ins: Instruction) -> Step:
    return _remote(ctx, ins, None) if "async" in ins.modifiers else memory.st(ctx, ins)


def red(ctx: Context, ins: Instruction) -> Step:
    if "async" not in ins.modifiers:
        return atomics.compile_atomic(ctx, ins)
    return _remote(ctx, ins, _combining(_operation(ins), type_of(ins), is_global=False))


def cp(ctx: Context, ins: Instruction) -> Step:
    if ins.modifiers[0] != "reduce":
        return bulk.cp(ctx, ins)
    if "tensor" in ins.modifiers:
        return tallied(ctx, ins, _tensor(ctx, ins))
    is_global = "global" in ins.modifiers
    combine = _combining(_operation(ins), type_of(ins), is_global)
    made = _to_global if is_global else _to_shared
    return tallied(ctx, ins, made(ctx, ins, combine))


def _operation(ins: Instruction) -> str:
    return next(word for word in ins.modifiers if word in atomics.OPERATIONS)


def _combining(name: str, kind: str, is_global: bool) -> Combine:
    """A reduction of elements of one type. Sums of f32 in global memory flush subnormal numbers, as
    the manual says."""
    kind = f"u{kind[1:]}" if kind[0] == "b" and kind != "bf16" else kind
    function = atomics.one_by_one(name, kind)
    dtype = DTYPES[kind]

    def combine(old: Array, new: Array) -> Array:
        a, b = (np.ascontiguousarray(each).reshape(-1).view(dtype) for each in (old, new))
        if name == "add" and kind == "f32" and is_global:
            result = r.flush(r.flush(a) + r.flush(b))
        else:
            result = np.asarray(function(a, b, b), dtype)
        return np.ascontiguousarray(result).view(np.uint8).reshape(old.shape)

    return combine


def _semantics(kind: str, scope: Scope, *, bulk: bool = True) -> Semantics:
    """A reduction is a relaxed atomic of each element; of a bulk, by the asynchronous way."""
    size = DTYPES[kind].itemsize
    return Semantics(Kind.ATOMIC, scope, size, under_way=True, asynchronous=bulk)


def _remote(ctx: Context, ins: Instruction, combine: Combine | None) -> Step:
    """[shared of the cluster], value, [mbarrier beside it]"""
    kind = type_of(ins)
    elements = elements_of(ctx, ins, ins.operands[1])
    values = [ctx.read(element, kind) for element in elements]
    slots = [undefined.slots_of(ctx, (element,)) for element in elements]
    to, at = shared_address(ctx, ins.operands[0]), shared_address(ctx, ins.operands[2])
    size = DTYPES[kind].itemsize * len(values)
    copier = Copier(ctx, ins)
    how = Semantics(Kind.WRITE, under_way=True)
    if combine is not None:
        how = _semantics(kind, Scope.CLUSTER, bulk=False)

    def step(f: Frame) -> None:
        targets = each_of(f, to)
        columns = [np.broadcast_to(f.active_part(value(f)), (f.count,)) for value in values]
        rows = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8)
        missing = np.repeat(_missing(f, slots), size // len(values), axis=1)
        for number, thread, barrier in barriers_at(f, barrier_site(copier), at(f)):
            target = targets[number]
            if target % size:
                message = f"misaligned access of {size} bytes, at address {target:#x}"
                raise copier.fail(f, message, thread)
            place = copier.shared(f, thread, target, size)
            _elsewhere(f, copier, thread, barrier)
            data = f.batch.shared.data[place : place + size]
            data[:] = rows[number] if combine is None else combine(data, rows[number])
            there = _values(f, place, missing[number], combine is not None)
            landed(f, copier, thread, barrier, np.array([place]), size, size, how=how, values=there)

    return step


OWN_BLOCK = "st.async and red.async reach the thread's own block, too, as they do on GPUs"


def _elsewhere(f: Frame, copier: Copier, thread: int, barrier: MBarrier) -> None:
    """By the manual these go to other blocks."""
    if f.batch.skeleton is not None and barrier.block == f.batch.block_of[thread]:
        message = "by the manual this goes to another block of the cluster, which its own is not"
        f.batch.skeleton.by_practice("memory", message, copier.site.span, OWN_BLOCK)


def _missing(f: Frame, slots: list[tuple[int, ...]]) -> Array:
    """Which of the values hold none, for each active thread."""
    found = [undefined.causes(f, each) for each in slots]
    none = np.zeros(f.count, bool)
    return np.stack([none if each is None else each != 0 for each in found], axis=1)


def _values(f: Frame, place: int, missing: Array, adds: bool) -> Array | None:
    """Which bytes hold values then; what is added to needs one before."""
    marks = f.batch.shared.written
    if marks is None:
        return None
    return ~missing & (marks[place : place + missing.size] != 0) if adds else ~missing


def _to_shared(ctx: Context, ins: Instruction, combine: Combine) -> Step:
    """[shared of the cluster], [own shared], size, [mbarrier beside the target]"""
    return across(ctx, ins, combine, _semantics(type_of(ins), Scope.CLUSTER))


def _to_global(ctx: Context, ins: Instruction, combine: Combine) -> Step:
    """[global], [shared], size"""
    return plain_out(ctx, ins, combine, _semantics(type_of(ins), Scope.GRID))


# -- by tensor maps -------------------------------------------------------------------------------


def _tensor(ctx: Context, ins: Instruction) -> Step:
    """[map, {…}], [shared]: the type of the elements is the map's."""
    copier, name = Copier(ctx, ins), _operation(ins)
    map_, coordinates = map_of(ctx, ins, ins.operands[0])
    of = shared_address(ctx, ins.operands[1])

    def step(f: Frame) -> None:
        boxes = boxes_out(f, copier, (map_, of), coordinates, "reduction")
        for thread, box, places, used, at in boxes:
            kind = _kind_of(f, copier, thread, name, box)
            inside, offsets = box.elements(at)
            needed = extent(offsets[inside], box.size)
            region, start = copier.target(f, thread, box.address, needed)
            there = start + offsets[inside]
            copier.stored(f, thread, places[inside], box.size)
            data = bytes_at(f.batch.shared, places, box.size)[inside]
            combine = _combining(name, kind, is_global=True)
            put_bytes(region.data, there, combine(bytes_at(region, there, box.size), data))
            leaving(
                f, copier, thread, runs_of(places), bulk.UNIT, region,
                *pieces_of(there, box.size), _semantics(kind, Scope.GRID), used,
            )  # fmt: skip

    return step


def _kind_of(f: Frame, copier: Copier, thread: int, name: str, box: Map) -> str:
    """The type that the map's elements have for a reduction; some have none."""
    kind = box.kind
    floating = kind[0] == "f" or kind == "bf16"
    if kind in ("u8", "u16") or (floating and name != "add" and name[0] != "m"):
        raise copier.fail(f, f"elements of type {kind} have no reduction '{name}'", thread)
    return kind


TABLE: dict[str, Compile] = {"st": st, "red": red, "cp": cp}
