"""Instructions across the lanes of a warp: shfl, vote, match, redux, activemask, elect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.rounding import NAN32
from warploom.ptx.emulate import origins
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import WARP, Frame
from warploom.ptx.emulate.lanes import equal_lanes, lanes_where, names_lane, per_warp
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.ir import Instruction, Operand, Pair, Register
from warploom.ptx.types import DTYPES, type_of

Array = npt.NDArray[Any]


def ballot(f: Frame, condition: Array) -> Array:
    """Bit l of a warp's mask: lane l is active and the condition holds there. Per thread."""
    holds = f.widen(condition)
    return lanes_where(f.batch, holds if f.mask is None else holds & f.mask)


def narrow_to_running(f: Frame, wide: Array) -> Array:
    """A per-thread array as the running group reads values."""
    return wide[f.index] if f.compact and wide.size != 1 else wide


def _two(operand: Operand) -> tuple[Operand, Operand | None]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


# -- shfl ---------------------------------------------------------------------------------------


def source_lanes(mode: str, lane: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The lane read by each lane, and whether it lies in the segment (else the lane itself)."""
    segment = (c >> 8) & 31
    clamp = c & 31
    b = b & 31
    last = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        wanted = lane - b
        inside = wanted >= last
    elif mode == "down":
        wanted = lane + b
        inside = wanted <= last
    elif mode == "bfly":
        wanted = lane ^ b
        inside = wanted <= last
    else:
        wanted = (lane & segment) | (b & ~segment)
        inside = wanted <= last
    return np.where(inside, wanted, lane), inside


def shfl(ctx: Context, ins: Instruction) -> Step:
    mode = next(m for m in ins.modifiers if m in ("up", "down", "bfly", "idx"))
    target, flag = _two(ins.operands[0])
    store = ctx.write(target, "b32")
    store_flag = ctx.write(flag, "pred") if flag is not None else None
    a, b, c = (ctx.read(operand, "b32") for operand in ins.operands[1:4])
    named = _member_mask(ctx, ins)
    note = _undefined_sources(ctx, ins)
    to, of = _slot_of(ctx, target), _slot_of(ctx, ins.operands[1])
    followed = to is not None and of is not None  # else all that is read counts as used
    others = undefined.slots_of(ctx, ins.operands[2 if followed else 1 :])

    def step(f: Frame) -> None:
        source, inside, exists = _shuffle_sources(f, mode, b(f), c(f))
        value, mask = f.widen(a(f)), named(f)
        if not (f.mask is None and exists.all() and mask.size == 1 and mask[0] == 0xFFFFFFFF):
            gives = exists if f.mask is None else exists & f.mask[source]
            gives = gives & ((mask >> f.batch.lane[source].astype(np.uint32)) & 1 != 0)
            note(f, source, ~gives)
            source = np.where(gives, source, np.arange(f.n))  # anything; here the reader's own
        elif f.undefined:
            note(f, source, None)
        if f.batch.origins is not None:
            origins.shuffled(f, to, of if followed else None, others, source)
        store(f, narrow_to_running(f, value[source]))
        if store_flag is not None:
            store_flag(f, narrow_to_running(f, inside))
        if f.batch.counters is not None:
            f.batch.counters.shuffles += int(np.unique(f.batch.warp_of[f.index]).size)

    return step


def _undefined_sources(
    ctx: Context, ins: Instruction
) -> Callable[[Frame, Array, Array | None], None]:
    """Notes who gets no value: from a lane that gives none, or whose own is none, or where no value
    says from which lane."""
    target, flag = _two(ins.operands[0])
    slots = _slot_of(ctx, target), _slot_of(ctx, ins.operands[1]), _slot_of(ctx, flag)
    ways = undefined.slots_of(ctx, ins.operands[2:4])
    line = ctx.module.span(ins).line
    cause = f"{ins.name} (line {line}) reads from a lane that gives none"

    def note(f: Frame, source: Array, absent: Array | None) -> None:
        to, of, to_flag = slots
        if not f.batch.check or to is None:
            return
        active = f.full_mask()
        found = f.undefined.get(of) if of is not None else None
        causes = None if found is None else found[source]
        if absent is not None and (absent & active).any():
            number = np.int32(undefined.cause_number(f, cause))
            causes = np.where(absent, number, 0 if causes is None else causes)
        unknown = [f.undefined[each] for each in ways if each in f.undefined]
        lost = np.maximum.reduce(unknown) if unknown else None
        if lost is not None:
            causes = lost if causes is None else np.maximum(lost, causes)
        undefined.note(f, to, active, causes)
        if to_flag is not None:
            undefined.note(f, to_flag, active, lost)

    return note


def _slot_of(ctx: Context, operand: Operand | None) -> int | None:
    return ctx.slot(operand) if isinstance(operand, Register) and operand.vector == 1 else None


def _shuffle_sources(f: Frame, mode: str, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """For each thread of the batch: the one it reads, whether that lies in the segment, and exists.

    Kept where b and c are uniform.
    """
    batch = f.batch
    uniform = b.size == 1 and c.size == 1
    key = f"shfl {mode} {int(b[0])} {int(c[0])}" if uniform else ""
    if uniform and key in batch.special:
        return batch.special[key], batch.special[key + " inside"], batch.special[key + " exists"]
    wide_b, wide_c = (f.widen(x.astype(np.int64)) for x in (b, c))
    lane, inside = source_lanes(mode, batch.lane, wide_b, wide_c)
    source = batch.warp_base + lane
    exists = source < (batch.block_of + 1) * batch.block_size  # the block may end inside the warp
    source = np.where(exists, source, np.arange(batch.threads))
    if uniform:
        batch.special[key] = source
        batch.special[key + " inside"], batch.special[key + " exists"] = inside, exists
    return source, inside, exists


# -- vote, match, redux -----------------------------------------------------------------------


def _member_mask(ctx: Context, ins: Instruction) -> Callable[[Frame], Array]:
    """Which lanes an instruction names, as a mask per thread; without `.sync`, all of them."""
    if "sync" not in ins.modifiers:
        return lambda _: np.array([0xFFFFFFFF], np.uint32)
    fetch = ctx.read(ins.operands[-1], "b32")
    return lambda f: f.widen(fetch(f))


def vote(ctx: Context, ins: Instruction) -> Step:
    mode = next(m for m in ins.modifiers if m in ("all", "any", "uni", "ballot"))
    store = ctx.write(ins.operands[0], "b32" if mode == "ballot" else "pred")
    p = ctx.read(ins.operands[1], "pred")
    named = _member_mask(ctx, ins)

    def step(f: Frame) -> None:
        mask = named(f)
        yes = ballot(f, p(f)) & mask
        if mode == "ballot":
            result = yes
        elif mode == "any":
            result = yes != 0
        else:
            here = ballot(f, np.ones(1, bool)) & mask
            result = yes == here if mode == "all" else (yes == here) | (yes == 0)
        store(f, narrow_to_running(f, result))

    return step


def activemask(ctx: Context, ins: Instruction) -> Step:
    store = ctx.write(ins.operands[0], "b32")
    return lambda f: store(f, narrow_to_running(f, ballot(f, np.ones(1, bool))))


def match(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    target, flag = _two(ins.operands[0])
    store = ctx.write(target, "b32")
    store_flag = ctx.write(flag, "pred") if flag is not None else None
    a = ctx.read(ins.operands[1], kind)
    every = "all" in ins.modifiers
    named = _member_mask(ctx, ins)

    def step(f: Frame) -> None:
        mask = named(f)
        same = equal_lanes(f.batch, f.index, f.widen(a(f))) & mask
        if every:
            agree = same == ballot(f, np.ones(1, bool)) & mask
            same = np.where(agree, same, np.uint32(0))
            if store_flag is not None:
                store_flag(f, narrow_to_running(f, agree))
        store(f, narrow_to_running(f, same))

    return step


_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def _neutral(name: str, dtype: np.dtype[Any]) -> Array:
    """What an idle lane gives to a reduction."""
    limits = np.iinfo(dtype)
    value = {"and": -1, "min": limits.max, "max": limits.min}.get(name, 0)
    return np.array([value]).astype(dtype)


def redux(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    name = next(m for m in ins.modifiers if m in _REDUCTIONS)
    if kind == "f32":
        return _redux_float(ctx, ins, name)
    ufunc, dtype = _REDUCTIONS[name], DTYPES[kind]
    idle = _neutral(name, dtype)
    store, a = ctx.write(ins.operands[0], kind), ctx.read(ins.operands[1], kind)
    named = _member_mask(ctx, ins)

    def step(f: Frame) -> None:
        value, mask = f.widen(a(f)), named(f)
        result = np.zeros(f.n, dtype)
        for group in np.unique(mask[f.index]).tolist():  # lanes of one mask are one group
            mine = f.full_mask() & (mask == group) & names_lane(f.batch, np.array([group]))
            reduced = ufunc.reduceat(np.where(mine, value, idle), f.batch.warp_starts, dtype=dtype)
            result = np.where(mask == group, reduced[f.batch.warp_of], result)
        store(f, narrow_to_running(f, result))

    return step


def _redux_float(ctx: Context, ins: Instruction, name: str) -> Step:
    """The least or greatest by the order of numbers, in which −0 is below +0."""
    magnitude, keep_nan = "abs" in ins.modifiers, "NaN" in ins.modifiers
    ufunc = _REDUCTIONS[name]
    idle = np.iinfo(np.int64).max if name == "min" else np.iinfo(np.int64).min
    # A key that integers order as the numbers; a NaN is beyond all, or less than none.
    nan = np.int64(-idle - 1 if keep_nan else idle)
    store, a = ctx.write(ins.operands[0], "f32"), ctx.read(ins.operands[1], "f32")
    named = _member_mask(ctx, ins)

    def step(f: Frame) -> None:
        value, mask = f.widen(a(f)), f.widen(named(f))
        key = _ordered_key(np.abs(value) if magnitude else value)
        key = np.where(np.isnan(value), nan, key)
        result = np.full(f.n, idle, np.int64)
        for group in np.unique(mask[f.index]).tolist():
            mine = f.full_mask() & (mask == group) & names_lane(f.batch, np.array([group]))
            reduced = per_warp(f.batch, ufunc, np.where(mine, key, idle))
            result = np.where(mask == group, reduced, result)
        store(f, narrow_to_running(f, _number_of_key(result)))

    return step


def _ordered_key(value: Array) -> Array:
    """The bits of singles as integers that are in the order of the numbers."""
    bits = value.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)


def _number_of_key(key: Array) -> Array:
    """Back; what stands for no number is the hardware's NaN."""
    none = np.abs(key.astype(np.float64)) > 2.0**40
    small = np.where(none, 0, key)
    bits = np.where(small < 0, (-small - 1) | 0x80000000, small).astype(np.uint32)
    return np.where(none, NAN32, bits).view(np.float32)


def elect(ctx: Context, ins: Instruction) -> Step:
    """The lowest active lane that is named leads: its number, and a predicate true there."""
    target, flag = _two(ins.operands[0])
    store = ctx.write(target, "b32")
    store_flag = ctx.write(flag, "pred") if flag is not None else None
    named = _member_mask(ctx, ins)

    def step(f: Frame) -> None:
        lane = f.batch.lane
        mask = named(f)
        leader = np.full(f.n, WARP)
        for group in np.unique(mask[f.index]).tolist():
            mine = f.full_mask() & (mask == group) & names_lane(f.batch, np.array([group]))
            lowest = per_warp(f.batch, np.minimum, np.where(mine, lane, WARP))
            leader = np.where(mask == group, lowest, leader)
        store(f, narrow_to_running(f, leader.astype(np.uint32)))
        if store_flag is not None:
            store_flag(f, narrow_to_running(f, leader == lane))

    return step


TABLE: dict[str, Compile] = {
    "shfl": shfl, "vote": vote, "activemask": activemask, "match": match, "redux": redux,
    "elect": elect,
}  # fmt: skip
