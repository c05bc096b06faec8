"""Comparisons, selections and moves of predicates: setp, set, selp, slct."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine import rounding as r
from warploom.ptx.emulate.context import Context, Fetch, Step, Store
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import Compile, parts, type_of
from warploom.ptx.ir import Instruction, Operand, Pair
from warploom.ptx.types import DTYPES, F16, U16, is_float

Array = npt.NDArray[Any]
Function = Callable[..., Array]

_ORDERED: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_COMBINE: dict[str, Function] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def comparison(ins: Instruction, kind: str) -> Function:
    """The comparison among the modifiers, on values of a type. NaN: ordered ones are false."""
    names = (*_ORDERED, *_UNORDERED, "num", "nan")
    name = next(m for m in ins.modifiers if m in names)
    if not is_float(kind):
        return _ORDERED[name]
    return _float_comparison(ins, kind, name)


def _float_comparison(ins: Instruction, kind: str, name: str) -> Function:
    plain = _plain_float(name)
    if kind.startswith("bf16"):
        return lambda a, b: plain(r.bf16_to_single(a), r.bf16_to_single(b))
    if "ftz" in ins.modifiers:
        return lambda a, b: plain(r.flush(a), r.flush(b))
    return plain


def _plain_float(name: str) -> Function:
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "ne":
        return lambda a, b: (a < b) | (a > b)
    if name in _UNORDERED:
        ordered = _ORDERED[_UNORDERED[name]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    return _ORDERED[name]


def _combiner(ins: Instruction) -> Function | None:
    return next((_COMBINE[m] for m in ins.modifiers if m in _COMBINE), None)


def _two_stores(ctx: Context, operand: Operand) -> tuple[Store, Store | None]:
    if isinstance(operand, Pair):
        return ctx.write(operand.first, "pred"), ctx.write(operand.second, "pred")
    return ctx.write(operand, "pred"), None


def setp(ctx: Context, ins: Instruction) -> Step:
    """setp.lt.and.s32 p|q, a, b, c: p = (a < b) and c, q = not (a < b) and c."""
    kind = type_of(ins)
    if kind in ("f16x2", "bf16x2"):
        return _setp_pairs(ctx, ins, kind)
    compare = comparison(ins, kind)
    first, second = _two_stores(ctx, ins.operands[0])
    a, b = (ctx.read(operand, kind) for operand in ins.operands[1:3])
    combine = _combiner(ins)
    if combine is None and second is None:
        return lambda f: first(f, compare(a(f), b(f)))
    c = ctx.read(ins.operands[3], "pred") if combine is not None else None

    def step(f: Frame) -> None:
        result = compare(a(f), b(f))
        opposite = ~result
        if combine is not None and c is not None:
            other = c(f)
            result, opposite = combine(result, other), combine(opposite, other)
        first(f, result)
        if second is not None:
            second(f, opposite)

    return step


def _setp_pairs(ctx: Context, ins: Instruction, kind: str) -> Step:
    """On packed pairs p is for the lower and q for the upper half."""
    compare = comparison(ins, kind)
    first, second = _two_stores(ctx, ins.operands[0])
    a, b = (ctx.read(operand, kind) for operand in ins.operands[1:3])
    combine = _combiner(ins)
    c = ctx.read(ins.operands[3], "pred") if combine is not None else None

    def step(f: Frame) -> None:
        result = _of_halves(compare, kind, a(f), b(f))
        if combine is not None and c is not None:
            result = combine(result, c(f)[:, None])  # before p is written, which it may be
        for store, column in ((first, 0), (second, 1)):
            if store is not None:
                store(f, result[:, column])

    return step


def _of_halves(compare: Function, kind: str, a: Array, b: Array) -> Array:
    """A comparison of packed pairs: one column for the lower halves, one for the upper."""
    dtype = F16 if kind == "f16x2" else U16
    x, y = (np.ascontiguousarray(value).view(dtype).reshape(-1, 2) for value in (a, b))
    return np.atleast_2d(compare(x, y))


def set_(ctx: Context, ins: Instruction) -> Step:
    """set.lt.u32.f32: all ones (or 1.0 for a floating result) where the comparison holds."""
    target, source = type_of(ins, -2), type_of(ins, -1)
    if source.endswith("x2"):
        return _set_pairs(ctx, ins, target, source)
    compare = comparison(ins, source)
    combine = _combiner(ins)
    store, (a, b) = parts(ctx, ins, target, source, source)
    c = ctx.read(ins.operands[3], "pred") if combine is not None else None
    yes = _truth(target)
    zero = np.zeros(1, yes.dtype)

    def step(f: Frame) -> None:
        result = compare(a(f), b(f))
        if combine is not None and c is not None:
            result = combine(result, c(f))
        store(f, np.where(result, yes, zero))

    return step


def _set_pairs(ctx: Context, ins: Instruction, target: str, source: str) -> Step:
    """On packed pairs each half of the result says whether the comparison of these halves holds."""
    compare, combine = comparison(ins, source), _combiner(ins)
    store, (a, b) = parts(ctx, ins, "u32", source, source)
    c = ctx.read(ins.operands[3], "pred") if combine is not None else None
    ones = {"f16x2": 0x3C00, "bf16x2": 0x3F80}
    yes = np.array([1, 1 << 16], np.uint32) * np.uint32(ones.get(target, 0xFFFF))

    def step(f: Frame) -> None:
        result = _of_halves(compare, source, a(f), b(f))
        if combine is not None and c is not None:
            result = combine(result, c(f)[:, None])
        store(f, np.where(result, yes, 0).sum(axis=1, dtype=np.uint32))

    return step


def _truth(kind: str) -> Array:
    if kind == "bf16":
        return np.array([0x3F80], np.uint16)
    if is_float(kind):
        return np.ones(1, DTYPES[kind])
    return ~np.zeros(1, DTYPES[kind])


def selp(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    store, (a, b) = parts(ctx, ins, kind, kind, kind)
    p: Fetch = ctx.read(ins.operands[3], "pred")
    return lambda f: store(f, np.where(p(f), a(f), b(f)))


def slct(ctx: Context, ins: Instruction) -> Step:
    """a where c is not negative (−0 counts as zero), else b."""
    kind, tested = type_of(ins, -2), type_of(ins, -1)
    store, (a, b, c) = parts(ctx, ins, kind, kind, kind, tested)
    if "ftz" in ins.modifiers:
        return lambda f: store(f, np.where(r.flush(c(f)) >= 0, a(f), b(f)))
    return lambda f: store(f, np.where(c(f) >= 0, a(f), b(f)))


TABLE: dict[str, Compile] = {"setp": setp, "set": set_, "selp": selp, "slct": slct}
