"""Elementwise instructions on arrays over threads: their meanings, interpreted by NumPy."""

from __future__ import annotations

from warploom.machine.value.arrays import dtype_of, function, single
from warploom.ptx.emulate.context import Context, Fetch, Step, Store
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.meaning.shape import CARRY, Unsupported, value_type
from warploom.ptx.meaning.table import MEANINGS, meaning_of
from warploom.ptx.types import DTYPES


def elementwise(ctx: Context, ins: Instruction) -> Step:
    """Every operand is read before the first result is written."""
    try:
        meaning = meaning_of(ins)
    except Unsupported as error:
        raise ctx.unknown(str(error)) from error
    fetches = [_fetch(ctx, operand, kind) for operand, kind in meaning.sources]
    stores = [_store(ctx, result.target, result.kind) for result in meaning.results]
    values = [result.value for result in meaning.results]
    if len(values) == 1:
        return _one(stores[0], single(values[0], len(fetches)), fetches)
    run = function(values)

    def step(f: Frame) -> None:
        made = run([fetch(f) for fetch in fetches])
        for store, value in zip(stores, made, strict=True):
            store(f, value)

    return step


def _one(store: Store, fn: object, fetches: list[Fetch]) -> Step:
    assert callable(fn)
    match fetches:
        case [a]:
            return lambda f: store(f, fn(a(f)))
        case [a, b]:
            return lambda f: store(f, fn(a(f), b(f)))
        case _:
            return lambda f: store(f, fn(*[fetch(f) for fetch in fetches]))


def _fetch(ctx: Context, operand: Operand | str, kind: str) -> Fetch:
    if not isinstance(operand, str):
        read, type_ = ctx.read(operand, kind), dtype_of(value_type(kind))
        return read if DTYPES[kind] == type_ else lambda f: read(f).view(type_)
    return ctx.read_slot(ctx.slot_of(operand, kind), kind, kind)


def _store(ctx: Context, operand: Operand | str, kind: str) -> Store:
    if not isinstance(operand, str):
        return ctx.write(operand, kind)
    slot = ctx.slot_of(CARRY, "pred")
    return lambda f, value: f.write(slot, value)


TABLE: dict[str, Compile] = dict.fromkeys(MEANINGS, elementwise)
