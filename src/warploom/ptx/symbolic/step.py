"""What one instruction does to forms.

Comes in: an instruction and a way to read registers. Goes out: the forms of its destinations,
without regard to its predicate. What is neither integer arithmetic nor a pure function of it is
opaque: a value of its own, the same in all lanes only if a pure instruction made it from such.
"""

from __future__ import annotations

from warploom.ptx.ir import Component, Instruction
from warploom.ptx.known import record_of, registers_in, split_operands
from warploom.ptx.symbolic.form import Form
from warploom.ptx.symbolic.integer import values
from warploom.ptx.symbolic.operand import Reader, Target, width_of

DEEPEST = 30  # functions inside functions, before a value becomes opaque
LONGEST = 48  # terms, likewise


def targets(step: Instruction) -> list[Target]:
    """The registers an instruction may write; for one we do not know, all it names."""
    written, _ = split_operands(step)
    return [register for operand in written for register in registers_in(operand)]


def evaluate(reader: Reader, step: Instruction, at: int, block: int) -> list[tuple[Target, Form]]:
    """The forms of all destinations after instruction number `at`."""
    found = targets(step)
    if not found:
        return []
    found_values = values(reader, step)
    results = []
    for place, target in enumerate(found):
        register = target.register if isinstance(target, Component) else target
        width = width_of(register.type) or 64
        value = _nth(found_values, place)
        if value is None or len(value.terms) > LONGEST or reader.pool.depth(value) > DEEPEST:
            value = _opaque(reader, step, at, place, width, block)
        elif value.width != width:
            signed = bool(step.modifiers) and step.modifiers[-1].startswith("s")
            value = reader.pool.extend(value, width, signed)
        results.append((target, value))
    return results


def _opaque(reader: Reader, step: Instruction, at: int, place: int, width: int, block: int) -> Form:
    """A fresh value; the same in all lanes if a pure instruction made it from such values."""
    name = f"{step.opcode}@{at}.{place}"
    record = record_of(step)
    if record is not None and record.pure and "cc" not in step.modifiers:
        read = [reader.value(operand, 64) for operand in step.operands[1:]]
        if all(form is not None and reader.pool.uniform(form) for form in read):
            return reader.pool.symbol(name, width, block=block)
    return reader.pool.unknown(name, width, block)


def _nth(found: list[Form | None] | None, place: int) -> Form | None:
    return found[place] if found is not None and place < len(found) else None
