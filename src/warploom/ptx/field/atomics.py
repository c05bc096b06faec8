"""Sums that atomics make of floats in memory, for a launch whose floats are elements.

Who adds first is not known, and makes no other sum. It is made in pairs; roundings and additions
are counted as of one after the other.
"""

from __future__ import annotations

import numpy as np

from warploom.machine.semantics import Kind
from warploom.ptx.emulate.access import Site, places
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.memory import by_space
from warploom.ptx.field.digits import COPIES, FORMATS
from warploom.ptx.field.elements import Elements
from warploom.ptx.field.floats import Array, active_of, field_of
from warploom.ptx.field.roundings import Note, noted
from warploom.ptx.ir import Instruction, Register, Vector
from warploom.ptx.known import keys_of, registers, split_operands
from warploom.ptx.types import DTYPES, type_of


def sum_of(ctx: Context, ins: Instruction) -> Step | None:
    """An atomic sum of which nobody reads what was there before; of others None."""
    kind = type_of(ins)
    place = 1 if ins.opcode == "atom" else 0
    if ins.opcode not in ("atom", "red") or "async" in ins.modifiers or "add" not in ins.modifiers:
        return None
    if kind not in FORMATS or isinstance(ins.operands[place + 1], Vector):
        return None
    if place and _is_read(ctx, ins):
        return None
    value, note = ctx.read(ins.operands[place + 1], kind), Note("sum", kind, ctx.module.span(ins))
    return by_space(
        ctx, ins, ins.operands[place], DTYPES[kind].itemsize, Kind.ATOMIC,
        lambda site, address: _step(kind, value, site, address, note),
    )  # fmt: skip


def _is_read(ctx: Context, ins: Instruction) -> bool:
    result = ins.operands[0]
    if not isinstance(result, Register):
        return not isinstance(result, Vector) and getattr(result, "name", "") != "_"
    for each in ctx.function.instructions():
        read = {key for one in registers(split_operands(each)[1]) for key in keys_of(one)}
        guard = each.predicate.key if each.predicate else ""
        if read & set(keys_of(result)) or guard in keys_of(result):
            return True
    return False


def _step(kind: str, value: Fetch, site: Site, address: Fetch, note: Note) -> Step:
    def step(f: Frame) -> None:
        field = field_of(f)
        active_of(f)
        where = np.broadcast_to(f.active_part(address(f)), (f.count,))
        given = np.broadcast_to(f.active_part(value(f)), (f.count,))
        for region, chosen, index in places(f, site, where):
            memory, at = region.view(DTYPES[kind]), index.reshape(COPIES, -1)
            numbers = field.read(given[chosen].reshape(COPIES, -1), kind)
            _, first, group = np.unique(at[0], return_index=True, return_inverse=True)
            before = field.read(memory[at[:, first]], kind)
            total = _total(field.elements, before, numbers, group.reshape(-1), note)
            memory[at[:, first]] = field.written(total, kind).view(memory.dtype)

    return step


def _total(e: Elements, before: Array, numbers: Array, group: Array, note: Note) -> Array:
    """By group, what was there and all numbers of the group."""
    most = e["roundings"][before].copy()
    np.maximum.at(most, group, e["roundings"][numbers])
    longest = e["sums"][before].copy()
    np.maximum.at(longest, group, e["sums"][numbers])
    count = np.bincount(group, minlength=before.size)
    count -= e["constant"][before] == 0
    start = e.count
    made = _added(e, before, _folded(e, numbers, group, note), note)
    new = np.flatnonzero(~e.is_constant(made) & (made >= start))
    e["roundings"][made[new]] = np.maximum(e["roundings"][made], most + count)[new]
    e["sums"][made[new]] = np.maximum(e["sums"][made], longest + count)[new]
    return made


def _folded(e: Elements, numbers: Array, group: Array, note: Note) -> Array:
    """By group the sum of its numbers, two at a time."""
    order = np.argsort(group, kind="stable")
    numbers, group = numbers[order], group[order]
    while True:
        begins = np.concatenate(([True], group[1:] != group[:-1]))
        rank = np.arange(group.size) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
        if not rank.any():
            return np.asarray(numbers)
        second = np.flatnonzero(rank % 2 == 1)
        numbers = numbers.copy()
        numbers[second - 1] = _added(e, numbers[second - 1], numbers[second], note)
        numbers, group = numbers[rank % 2 == 0], group[rank % 2 == 0]


def _added(e: Elements, x: Array, y: Array, note: Note) -> Array:
    first = e.count
    made = e.add(x, y)
    noted(e, note, [x, y], made, first)
    return made
