"""Uninitialised values, in C: beside a register that may hold one lies a flag for each lane.

A text that watches is written only for kernels that need it: those that read a register before it
is written, and those of which a launch met shared memory that nobody wrote or a shuffle from a lane
not there. The rules are those of `emulate/poison.py`; where that one would go on with such a
value in memory of its own, or say an error, the launch is left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.ptx.emulate.compile import uses
from warploom.ptx.emulate.context import CARRY
from warploom.ptx.emulate.poison import deciding
from warploom.ptx.fast.operand import Writer
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.known import form_of, space_of, split_operands
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.table import OPCODES


def may_hold_none(steps: Iterable[Instruction], unwritten: frozenset[str]) -> frozenset[str]:
    """Keys of registers into which such a value may come, by whatever way through the text."""
    flows = [(*uses(step), _gives_none(step)) for step in steps]
    found, before = set(unwritten), -1
    while len(found) != before:
        before = len(found)
        for read, written, gives in flows:
            if gives or found & read:
                found |= written
    return frozenset(found)


def _gives_none(ins: Instruction) -> bool:
    """Whether it may make such a value; its own text then has the flags of its results."""
    return ins.opcode == "shfl" or (ins.opcode == "ld" and space_of(ins) == "shared")


def before(w: Writer, ins: Instruction) -> str | None:
    """Fails where a value is needed; else an array of flags for the results, if any is set."""
    form = form_of(ins)
    assert form is not None
    _, read = split_operands(ins)
    needed = w.flags(*_needed(ins, read, form.operands, form.control))
    if needed:
        w.must(f"!(packed({w.filled(1, needed)}) & @)")
    guard = "" if ins.predicate is None else w.flags(ins.predicate)
    if guard and (_touches(ins) or form.control is not Control.NEXT):
        w.put(f"if (packed({w.filled(1, guard)}) & m) return FAULT;")
    if _gives_none(ins):
        return None
    text = _of_result(w, ins, read)
    if not text:
        return None
    made = w.filled(1, text)
    if form.control is Control.LANES or ins.opcode == "vote":
        w.count += 1
        w.put(f"const uint32_t y{w.count} = (packed({made}) & m) != 0;")
        made = w.filled(1, f"y{w.count}")
    return made


def after(w: Writer, ins: Instruction, made: str | None) -> None:
    """The flags of what the instruction wrote; under a predicate that is none, they are set."""
    if _gives_none(ins):
        return
    written, _ = split_operands(ins)
    guards = () if ins.predicate is None else (ins.predicate,)
    own, unknown = w.watched_in(guards), w.flags(*guards)
    carry = [CARRY] if "cc" in ins.modifiers and CARRY in w.watched else []
    for key in (*w.watched_in(written), *carry):
        w.set_flag(key, f"{made}[l]" if made else "0u")
        if unknown and key not in own:
            guard, w.guard = w.guard, ""
            w.set_flag(key, f"{w.flag(key)} | {unknown}")
            w.guard = guard


def _touches(ins: Instruction) -> bool:
    return OPCODES[ins.opcode].memory is not MemoryEffect.NOTHING


def _needed(
    ins: Instruction, read: tuple[Operand, ...], words: tuple[str, ...], control: Control
) -> tuple[Operand, ...]:
    """Operands that must be values: all that memory sees but what a store leaves in shared memory,
    lanes that are named, and where a shuffle reads."""
    if ins.opcode == "st" and space_of(ins) == "shared":
        return read[:1]
    if ins.opcode == "shfl":
        return read[1:]
    if _touches(ins):
        return read
    named = (op for word, op in zip(words, ins.operands, strict=False) if word == "m")
    return tuple(named) if control is Control.LANES else ()


def _of_result(w: Writer, ins: Instruction, read: tuple[Operand, ...]) -> str:
    """Any source's flag, or that of the one that is chosen; none where another decides."""
    choice = ins.opcode == "selp"
    found = [each for each in (w.flags(*(read[2:] if choice else read)),) if each]
    if OPCODES[ins.opcode].reads_carry and CARRY in w.watched:
        found.append(w.flag(CARRY))
    if choice:
        first, second = (w.flags(side) or "0u" for side in read[:2])
        if (first, second) != ("0u", "0u"):
            found.append(f"({w.read(read[2], 'pred')} ? {first} : {second})")
    if not found:
        return ""
    text = f"({' | '.join(found)})"
    value, deciders = deciding(ins, read) or (False, ())
    for operand in deciders:
        known = w.flags(operand) or "0u"
        text = f"({text} & ((({w.read(operand, 'pred')} ^ {int(value)}u) | {known}) != 0))"
    return text
