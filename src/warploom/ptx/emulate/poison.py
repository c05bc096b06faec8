"""Uninitialised values: registers read before they are written, shared memory that nobody wrote,
shuffles from lanes not there.

Such a value may be computed with and lie in shared memory, as it does in collectives that look one
place too far and choose afterwards; it is an error only where it reaches a branch, an address, or
memory that outlives the block. A frame keeps, for the registers that hold such values, a number per
thread: 0 where the value is one, else the cause, counted from 1 in the batch's list of causes.
While no register does, which is nearly always, all of this costs one look per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import UninitialisedError, WarploomError
from warploom.machine.memory import Region
from warploom.ptx.emulate.access import Site
from warploom.ptx.emulate.barrier import Fail
from warploom.ptx.emulate.context import CARRY, Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.lanes import per_warp
from warploom.ptx.emulate.packed import Parts, packed, parts_of, taken
from warploom.ptx.ir import Address, Instruction, Operand
from warploom.ptx.known import form_of, keys_of, registers, space_of, split_operands
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.patience import timed
from warploom.ptx.table import OPCODES

Array = npt.NDArray[Any]
_OWN_MEMORY = ("local", "param")  # no other thread sees it
_NONE = np.zeros(1, np.int32)  # no thread lacks a value
SHOWN = ("shared", "generic", "local")  # where memory may know whether a value was stored


@dataclass(frozen=True, slots=True)
class Use:
    """A register that must hold a value, and what depends on it."""

    slot: int
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The sources of selp: its predicate, and the slots of both values; -1 for a constant."""

    holds: Fetch
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Decided:
    """Predicates of which one with this value decides the result, whatever the others are."""

    value: bool
    sources: tuple[tuple[Fetch, int], ...]


@dataclass(frozen=True, slots=True)
class PoisonTransfer:
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
    decided: Decided | None = None
    plain: bool = False  # does nothing but write its results
    loads: bool = False  # a load of memory that other threads may write
    shuffles: bool = False
    parts: Parts | None = None


def poison_transfer_of(ctx: Context, ins: Instruction, guard: Fetch | None) -> PoisonTransfer:
    """How values pass through an instruction that is known in all its parts."""
    form = form_of(ins)
    assert form is not None
    written, read = split_operands(ins)
    choice = _choice(ctx, read) if ins.opcode == "selp" else None
    carry = (ctx.slot_of(CARRY, "pred"),)
    loads = ins.opcode in ("ld", "ldu")
    return PoisonTransfer(
        ins,
        slots_of(ctx, read[2:] if choice else read) + carry * OPCODES[ins.opcode].reads_carry,
        slots_of(ctx, written) + carry * ("cc" in ins.modifiers),
        tuple(_uses(ctx, ins, form.operands, form.control)),
        guard,
        None if ins.predicate is None else ctx.slot(ins.predicate),
        choice,
        form.control is Control.LANES or ins.opcode == "vote",
        loads or ins.opcode in ("shfl", "wgmma"),
        _decided(ctx, ins, read),
        OPCODES[ins.opcode].memory is MemoryEffect.NOTHING
        and form.control in (Control.NEXT, Control.LANES),
        loads and space_of(ins) not in (*_OWN_MEMORY, "const"),
        ins.opcode == "shfl",
        parts_of(ctx, ins),
    )


def deciding(
    ins: Instruction, read: tuple[Operand, ...]
) -> tuple[bool, tuple[Operand, ...]] | None:
    """For `and` and `or` on predicates, alone or at the end of a comparison: the value that decides
    the result, and the operands that may have it. None for other instructions."""
    word = ins.opcode if ins.opcode in ("and", "or") else next(
        (m for m in ins.modifiers if m in ("and", "or") and ins.opcode == "setp"), None
    )  # fmt: skip
    if word is None or (ins.opcode != "setp" and "pred" not in ins.modifiers):
        return None
    return word == "or", read if ins.opcode != "setp" else read[2:]


def _decided(ctx: Context, ins: Instruction, read: tuple[Operand, ...]) -> Decided | None:
    found = deciding(ins, read)
    if found is None:
        return None
    value, named = found
    sources = [
        (ctx.read(operand, "pred"), (*slots_of(ctx, (operand,)), -1)[0]) for operand in named
    ]
    return Decided(value, tuple(sources))


def _choice(ctx: Context, read: tuple[Operand, ...]) -> Choice:
    first, second = ((*slots_of(ctx, (operand,)), -1)[0] for operand in read[:2])
    return Choice(ctx.read(read[2], "pred"), first, second)


def slots_of(ctx: Context, operands: tuple[Operand, ...]) -> tuple[int, ...]:
    keys = (key for register in registers(operands) for key in keys_of(register))
    return tuple(ctx.slots[key] for key in keys if key in ctx.slots)


def _uses(ctx: Context, ins: Instruction, words: tuple[str, ...], control: Control) -> list[Use]:
    memory = OPCODES[ins.opcode].memory
    touches = memory not in (MemoryEffect.NOTHING, MemoryEffect.MEETS)
    stores = memory in (MemoryEffect.WRITES, MemoryEffect.UPDATES)
    stores = stores and space_of(ins) not in _OWN_MEMORY
    own = ins.opcode == "st" and space_of(ins) in SHOWN  # the step looks where it goes
    # All operands say what is done elsewhere, or who waits for it.
    orders = memory is MemoryEffect.ANYTHING and control is Control.NEXT
    orders &= "pending_count" not in ins.modifiers
    out: list[Use] = []
    if ins.predicate is not None and (touches or control is not Control.NEXT):
        out += _named(ctx, (ins.predicate,), "the predicate of")
    for word, operand in zip(words, ins.operands, strict=False):
        if ins.opcode == "wgmma" and word == "q":
            out += _named(ctx, (operand,), "the predicate of")
        elif isinstance(operand, Address) or (ins.opcode == "wgmma" and word in ("x", "y")):
            out += _named(ctx, (operand,), "an address of")
        elif (memory is MemoryEffect.MEETS or orders) and word[0] not in "d_":
            out += _named(ctx, (operand,), "an operand of")
        elif word == "m" and control is Control.LANES:
            out += _named(ctx, (operand,), "the mask of members of")
        elif stores and not word.startswith("d") and not own:
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
    for key, slot in timed(slots.items()):
        if slot in unwritten:
            cause = cause_number(f, f"nobody wrote {key}")
            f.undefined[slot] = np.full(f.n, cause, np.int32)


def cause_number(f: Frame, cause: str) -> int:
    causes = f.batch.causes
    if cause not in causes:
        causes.append(cause)
    return causes.index(cause) + 1


def require(f: Frame, flow: PoisonTransfer, active: Array, fail: Fail) -> None:
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
            what = f"{use.name} is {use.what} {flow.instruction.name}"
            error = fail(flow.instruction, f"{what} and holds no value: {cause}", thread)
            raise _at_the_load(f, cause, what, error, thread)


def _at_the_load(
    f: Frame, cause: str, what: str, error: WarploomError, thread: int
) -> WarploomError:  # fmt: skip
    """What came out of memory that nobody wrote is told where it was read."""
    site = f.batch.sites.get(cause)
    if site is None:
        return error
    line = f.batch.said(error.span) if error.span else ""
    message = f"reads {_memory(site)} that was never written: {what}{line}"
    told: WarploomError = site.error(f, message, thread, UninitialisedError)
    return told


def watched(f: Frame, flow: PoisonTransfer, step: Step, fail: Fail) -> None:
    """Runs a step while some register holds no value."""
    active = f.full_mask()
    if flow.guard is not None:
        active = active & f.widen(flow.guard(f))
    require(f, flow, active, fail)
    if f.batch.flight is not None:
        _leave_alone(f, flow, active, fail)
    cause = _cause(f, flow)
    made = None if flow.parts is None else packed(f, flow.parts, active)
    of_parts = {} if flow.parts is None else taken(f, flow.parts)
    step(f)
    if flow.by_itself:
        return
    for slot in flow.writes:
        note(f, slot, active, of_parts.get(slot, cause))
        guard = None if flow.guard_slot is None else f.undefined.get(flow.guard_slot)
        if guard is not None and slot != flow.guard_slot:
            note(f, slot, f.full_mask() & (guard != 0), guard)
    if flow.parts is not None and made is not None:
        f.packed[flow.parts.word] = made


def _leave_alone(f: Frame, flow: PoisonTransfer, active: Array, fail: Fail) -> None:
    """Registers of a product under way are not written, but by one that adds to the same sums.

    A copy of such a sum is another name for it, which compilers give where a loop comes round.
    """
    ins = flow.instruction
    if ins.opcode == "mov":
        for slot in flow.reads:
            active = active & (f.undefined.get(slot, _NONE) == 0)
    products = f.batch.flight.of_any(f, active)
    if not products:
        return
    written = (key for each in registers(split_operands(ins)[0]) for key in keys_of(each))
    for key, slot in zip(written, flow.writes, strict=False):
        for product in products:
            adds = ins.opcode == "wgmma" and slot in product.sums
            if not adds and (slot in product.sums or slot in product.left):
                wrong = int((product.threads & active).argmax())
                raise fail(ins, f"writes {key}: {product.cause}", wrong)


def _cause(f: Frame, flow: PoisonTransfer) -> Array | None:
    """The cause of a result's poison: that of any source, or of the one that is chosen."""
    found = [f.undefined[slot] for slot in flow.reads if slot in f.undefined]
    if flow.choice is not None:
        sides = [f.undefined.get(slot) for slot in (flow.choice.first, flow.choice.second)]
        if any(side is not None for side in sides):
            first, second = (0 if side is None else side for side in sides)
            found.append(np.where(f.widen(flow.choice.holds(f)), first, second))
    if not found:
        return None
    cause: Array = np.maximum.reduce(found)
    if flow.decided is not None:
        for fetch, slot in flow.decided.sources:
            known = f.undefined.get(slot)
            decides = f.widen(fetch(f)) == flow.decided.value
            cause = np.where(decides if known is None else decides & (known == 0), 0, cause)
    if flow.across:
        cause = per_warp(f.batch, np.maximum, np.where(f.full_mask(), cause, 0))
    return cause


def note(f: Frame, slot: int, active: Array, cause: Array | None) -> None:
    """The active threads wrote a register: a value, except where there is a cause."""
    f.packed.pop(slot, None)
    old = f.undefined.get(slot, _NONE)
    if cause is None and old is _NONE:
        return
    fresh = np.where(active, _NONE if cause is None else cause, old).astype(np.int32)
    if fresh.any():
        f.undefined[slot] = fresh
    else:
        f.undefined.pop(slot, None)


def note_all(f: Frame, slots: Sequence[int], active: Array, cause: Array | None) -> None:
    """The active threads wrote these registers: `note` for each, but in one go, as there are many
    of a product."""
    none = np.zeros(f.n, np.int32)
    old = np.stack([f.undefined.get(slot, none) for slot in slots])
    fresh = np.where(active, _NONE if cause is None else cause, old).astype(np.int32)
    some = np.asarray(fresh.any(axis=1)).tolist()
    for slot, row, lacks in zip(slots, fresh, some, strict=True):
        if lacks:
            f.undefined[slot] = row
        else:
            f.undefined.pop(slot, None)


# -- loads and stores -----------------------------------------------------------------------------


def _memory(site: Site) -> str:
    own = site.space in ("shared", "local")
    return f"{site.space} memory" if own else "memory of the device heap"


def loaded(
    f: Frame, slots: list[tuple[int, ...]], unwritten: list[Array], site: Site
) -> None:  # fmt: skip
    """Registers were filled from memory; of each, which threads read uninitialised memory."""
    for part, own in enumerate(slots):
        bad = unwritten[part] if unwritten else None
        found = None
        if bad is not None and bad.any():
            line = f.batch.said(site.span)
            cause = f"{site.name}{line} reads {_memory(site)} that was never written"
            f.batch.sites[cause] = site
            found = np.where(f.widen(bad), np.int32(cause_number(f, cause)), np.int32(0))
        for slot in own:
            note(f, slot, f.full_mask(), found)


def causes(f: Frame, slots: tuple[int, ...]) -> Array | None:
    """Why a register holds no value, for each active thread; None if it holds values."""
    found = [f.undefined[slot][f.index] for slot in slots if slot in f.undefined]
    if not found:
        return None
    cause: Array = np.maximum.reduce(found)
    return cause if cause.any() else None


def kept(
    site: Site, f: Frame, threads: Array, region: Region, index: Array, dtype: Any, cause: Array
) -> None:  # fmt: skip
    """What was just stored there is no value for some threads: memory knows, or it is an error."""
    bad = cause != 0
    if not bad.any():
        return
    if region.written is None:
        at = int(bad.argmax())
        why, thread = f.batch.causes[int(cause[at]) - 1], int(threads[at])
        message = f"what is stored holds no value: {why}"
        error = site.error(f, message, thread, UninitialisedError)
        raise _at_the_load(f, why, f"it is stored by {site.name}", error, thread)
    region.view(dtype, marks=True)[index[bad]] = 0
