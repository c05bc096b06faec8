"""Values that nobody gave: registers read before they are written, shuffles from lanes not there.

Such a value may be computed with; it is an error only where it reaches a branch, an address, or
memory that others see. A frame keeps, for the registers that hold such values, a number per thread:
0 where the value is one, else the cause, counted from 1 in the batch's list of causes. While no
register does, which is nearly always, all of this costs one look per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.barrier import Fail
from warploom.ptx.emulate.context import CARRY, Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.lanes import per_warp
from warploom.ptx.ir import Address, Instruction, Operand
from warploom.ptx.known import form_of, keys_of, registers, space_of, split_operands
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.table import OPCODES

Array = npt.NDArray[Any]
_OWN_MEMORY = ("local", "param")  # no other thread sees it


@dataclass(frozen=True, slots=True)
class Use:
    """A register that must hold a value, and what depends on it."""

    slot: int
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Of selp: the predicate, and the slots of both sources; -1 for a constant."""

    holds: Fetch
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Passage:
    """What one step reads and writes, as slots of registers."""

    instruction: Instruction
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    uses: tuple[Use, ...] = ()
    guard: Fetch | None = None
    guard_slot: int | None = None
    choice: Choice | None = None
    across: bool = False  # the result depends on other lanes of the warp
    by_itself: bool = False  # the step says which of its results are no values


def passage_of(ctx: Context, ins: Instruction, guard: Fetch | None) -> Passage:
    """How values pass through an instruction that is known in all its parts."""
    form = form_of(ins)
    assert form is not None
    written, read = split_operands(ins)
    choice = _choice(ctx, read) if ins.opcode == "selp" else None
    carry = (ctx.slot_of(CARRY, "pred"),)
    return Passage(
        ins,
        _slots(ctx, read[2:] if choice else read) + carry * OPCODES[ins.opcode].reads_carry,
        _slots(ctx, written) + carry * ("cc" in ins.modifiers),
        tuple(_uses(ctx, ins, form.operands, form.control)),
        guard,
        None if ins.predicate is None else ctx.slot(ins.predicate),
        choice,
        form.control is Control.LANES or ins.opcode == "vote",
        ins.opcode in ("shfl", "wgmma"),
    )


def _choice(ctx: Context, read: tuple[Operand, ...]) -> Choice:
    first, second = ((*_slots(ctx, (operand,)), -1)[0] for operand in read[:2])
    return Choice(ctx.read(read[2], "pred"), first, second)


def _slots(ctx: Context, operands: tuple[Operand, ...]) -> tuple[int, ...]:
    keys = (key for register in registers(operands) for key in keys_of(register))
    return tuple(ctx.slots[key] for key in keys if key in ctx.slots)


def _uses(ctx: Context, ins: Instruction, words: tuple[str, ...], control: Control) -> list[Use]:
    memory = OPCODES[ins.opcode].memory
    touches = memory not in (MemoryEffect.NOTHING, MemoryEffect.MEETS)
    stores = memory in (MemoryEffect.WRITES, MemoryEffect.UPDATES)
    stores = stores and space_of(ins) not in _OWN_MEMORY
    out: list[Use] = []
    if ins.predicate is not None and (touches or control is not Control.NEXT):
        out += _named(ctx, (ins.predicate,), "the predicate of")
    for word, operand in zip(words, ins.operands, strict=False):
        if isinstance(operand, Address):
            out += _named(ctx, (operand,), "an address of")
        elif memory is MemoryEffect.MEETS and not word.startswith("d"):
            out += _named(ctx, (operand,), "an operand of")
        elif word == "m" and control is Control.LANES:
            out += _named(ctx, (operand,), "the mask of members of")
        elif stores and not word.startswith("d"):
            out += _named(ctx, (operand,), "what is stored by")
    return out


def _named(ctx: Context, operands: tuple[Operand, ...], what: str) -> list[Use]:
    return [
        Use(ctx.slots[key], key, what)
        for register in registers(operands)
        for key in keys_of(register)
        if key in ctx.slots
    ]


# -- running --------------------------------------------------------------------------------------


def begin(f: Frame, slots: dict[str, int], unwritten: frozenset[int]) -> None:
    """At the start of a function: these registers may be read before anything is written there."""
    if not f.batch.check:
        return
    for key, slot in slots.items():
        if slot in unwritten:
            cause = cause_number(f, f"nobody wrote {key}")
            f.undefined[slot] = np.full(f.n, cause, np.int32)


def cause_number(f: Frame, cause: str) -> int:
    causes = f.batch.causes
    if cause not in causes:
        causes.append(cause)
    return causes.index(cause) + 1


def require(f: Frame, flow: Passage, active: Array, fail: Fail) -> None:
    """Everything that must be a value is one, for the active threads."""
    for use in flow.uses:
        bad = f.undefined.get(use.slot)
        if bad is None:
            continue
        guards = use.slot == flow.guard_slot  # a predicate counts whether or not it holds
        wrong = (bad != 0) & (f.full_mask() if guards else active)
        if wrong.any():
            thread = int(wrong.argmax())
            cause = f.batch.causes[int(bad[thread]) - 1]
            name = flow.instruction.name
            message = f"{use.name} is {use.what} {name} and holds no value: {cause}"
            raise fail(flow.instruction, message, thread)


def watched(f: Frame, flow: Passage, step: Step, fail: Fail) -> None:
    """Runs a step while some register holds no value."""
    active = f.full_mask()
    if flow.guard is not None:
        active = active & f.widen(flow.guard(f))
    require(f, flow, active, fail)
    cause = _cause(f, flow)
    step(f)
    if flow.by_itself:
        return
    for slot in flow.writes:
        note(f, slot, active, cause)
        guard = None if flow.guard_slot is None else f.undefined.get(flow.guard_slot)
        if guard is not None and slot != flow.guard_slot:
            note(f, slot, f.full_mask() & (guard != 0), guard)


def _cause(f: Frame, flow: Passage) -> Array | None:
    """Of the result: the cause of any source, or of the one that is chosen."""
    found = [f.undefined[slot] for slot in flow.reads if slot in f.undefined]
    if flow.choice is not None:
        sides = [f.undefined.get(slot) for slot in (flow.choice.first, flow.choice.second)]
        if any(side is not None for side in sides):
            first, second = (0 if side is None else side for side in sides)
            found.append(np.where(f.widen(flow.choice.holds(f)), first, second))
    if not found:
        return None
    cause: Array = np.maximum.reduce(found)
    if flow.across:
        cause = per_warp(f.batch, np.maximum, np.where(f.full_mask(), cause, 0))
    return cause


def note(f: Frame, slot: int, active: Array, cause: Array | None) -> None:
    """The active threads wrote a register: a value, except where there is a cause."""
    old = f.undefined.get(slot)
    if cause is None:
        if old is None:
            return
        fresh = np.where(active, np.int32(0), old)
    else:
        fresh = np.where(active, cause, 0 if old is None else old).astype(np.int32)
    if fresh.any():
        f.undefined[slot] = fresh
    else:
        f.undefined.pop(slot, None)
