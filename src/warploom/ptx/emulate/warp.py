"""Instructions across the lanes of a warp: shfl, vote, match, redux, activemask, elect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import WARP, Frame
from warploom.ptx.emulate.shape import Compile, type_of
from warploom.ptx.ir import Instruction, Operand, Pair
from warploom.ptx.types import DTYPES

Array = npt.NDArray[Any]


def per_warp(f: Frame, ufunc: np.ufunc, value: Array) -> Array:
    """A value per thread reduced over its warp, given back to every thread of it."""
    reduced = ufunc.reduceat(value, f.batch.warp_starts)
    return reduced[f.batch.warp_of]


def ballot(f: Frame, condition: Array) -> Array:
    """Bit l of a warp's mask: lane l is active and the condition holds there. Per thread."""
    holds = f.widen(condition)
    if f.mask is not None:
        holds = holds & f.mask
    return per_warp(f, np.bitwise_or, holds.astype(np.uint32) << f.batch.lane.astype(np.uint32))


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

    def step(f: Frame) -> None:
        source, inside = _shuffle_sources(f, mode, b(f), c(f))
        value = f.widen(a(f))
        if f.mask is not None:  # a lane that is not here gives nothing: the reader keeps its own
            source = np.where(f.mask[source], source, np.arange(f.n))
        store(f, narrow_to_running(f, value[source]))
        if store_flag is not None:
            store_flag(f, narrow_to_running(f, inside))
        if f.batch.counters is not None:
            f.batch.counters.shuffles += int(np.unique(f.batch.warp_of[f.index]).size)

    return step


def _shuffle_sources(f: Frame, mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """Index of the thread read by each thread of the batch; kept where b and c are uniform."""
    batch = f.batch
    uniform = b.size == 1 and c.size == 1
    key = f"shfl {mode} {int(b[0])} {int(c[0])}" if uniform else ""
    if uniform and key in batch.special:
        return batch.special[key], batch.special[key + " inside"]
    wide_b, wide_c = (f.widen(x.astype(np.int64)) for x in (b, c))
    lane, inside = source_lanes(mode, batch.lane, wide_b, wide_c)
    source = batch.warp_base + lane
    thread = np.arange(batch.threads)
    last = (batch.block_of + 1) * batch.block_size
    source = np.where(source < last, source, thread)  # the block ends inside the warp
    if uniform:
        batch.special[key], batch.special[key + " inside"] = source, inside
    return source, inside


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
        same = _equal_lanes(f, f.widen(a(f))) & mask
        if every:
            agree = same == ballot(f, np.ones(1, bool)) & mask
            same = np.where(agree, same, np.uint32(0))
            if store_flag is not None:
                store_flag(f, narrow_to_running(f, agree))
        store(f, narrow_to_running(f, same))

    return step


def _equal_lanes(f: Frame, value: Array) -> Array:
    """Per thread the mask of the active lanes of its warp that hold the same value."""
    threads = f.index
    warp, mine = f.batch.warp_of[threads], value[threads]
    order = np.lexsort((mine, warp))
    w, v = warp[order], mine[order]
    fresh = np.concatenate(([True], (w[1:] != w[:-1]) | (v[1:] != v[:-1])))
    bits = np.uint32(1) << f.batch.lane[threads][order].astype(np.uint32)
    groups = np.bitwise_or.reduceat(bits, np.flatnonzero(fresh))
    out = np.zeros(f.n, np.uint32)
    out[threads[order]] = groups[np.cumsum(fresh) - 1]
    return out


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
    ufunc, dtype = _REDUCTIONS[name], DTYPES[kind]
    idle = _neutral(name, dtype)
    store, a = ctx.write(ins.operands[0], kind), ctx.read(ins.operands[1], kind)
    named = _member_mask(ctx, ins)

    def step(f: Frame) -> None:
        value, mask = f.widen(a(f)), named(f)
        result = np.zeros(f.n, dtype)
        for group in np.unique(mask[f.index]).tolist():  # lanes of one mask are one group
            mine = f.full_mask() & (mask == group) & _names(f, group)
            reduced = ufunc.reduceat(np.where(mine, value, idle), f.batch.warp_starts, dtype=dtype)
            result = np.where(mask == group, reduced[f.batch.warp_of], result)
        store(f, narrow_to_running(f, result))

    return step


def _names(f: Frame, mask: int) -> Array:
    """Whether a mask of members names each thread's lane."""
    named: Array = (np.int64(mask) >> f.batch.lane) & 1 != 0
    return named


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
            mine = f.full_mask() & (mask == group) & _names(f, group)
            lowest = per_warp(f, np.minimum, np.where(mine, lane, WARP))
            leader = np.where(mask == group, lowest, leader)
        store(f, narrow_to_running(f, leader.astype(np.uint32)))
        if store_flag is not None:
            store_flag(f, narrow_to_running(f, leader == lane))

    return step


def members(ctx: Context, ins: Instruction) -> Callable[[Frame], Array | None] | None:
    """For a `.sync` instruction: which threads must wait because lanes of its mask are elsewhere.

    None where the instruction has no mask of members.
    """
    if "sync" not in ins.modifiers or not ins.operands:
        return None
    fetch = ctx.read(ins.operands[-1], "b32")

    def missing(f: Frame) -> Array | None:
        named = np.where(f.full_mask(), f.widen(fetch(f)), np.uint32(0))
        lanes = f.batch.lane.astype(np.uint32)
        named = per_warp(f, np.bitwise_or, np.ascontiguousarray(named))
        alive = per_warp(f, np.bitwise_or, f.batch.alive.astype(np.uint32) << lanes)
        here = ballot(f, np.ones(1, bool))
        waits = (named & alive & ~here) != 0
        waits &= f.full_mask()
        return waits if waits.any() else None

    return missing


TABLE: dict[str, Compile] = {
    "shfl": shfl, "vote": vote, "activemask": activemask, "match": match, "redux": redux,
    "elect": elect,
}  # fmt: skip
