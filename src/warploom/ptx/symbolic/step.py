"""What one instruction does to forms.

Comes in: an instruction and a way to read registers. Goes out: the forms of its destinations,
without regard to its predicate. What is neither integer arithmetic nor a pure function of it is
opaque: a value of its own, the same in all lanes only if a pure instruction made it from such.
"""

from __future__ import annotations

from warploom.ptx.ir import Arguments, Component, Instruction, Operand, Pair, Register, Vector
from warploom.ptx.symbolic.form import Form
from warploom.ptx.symbolic.integer import PURE, values
from warploom.ptx.symbolic.operand import Reader, Target, width_of, words

DEEPEST = 30  # functions inside functions, before a value becomes opaque
LONGEST = 48  # terms, likewise
NO_TARGET = words(
    "st red bar barrier membar fence bra brx ret exit trap brkpt prefetch prefetchu nanosleep "
    "cp stmatrix discard applypriority pmevent setmaxnreg griddepcontrol st_async"
)
ONE_TARGET = words(
    "ld ldu atom shfl vote match activemask redux elect mov cvta cvt setp selp addc subc madc fma "
    "rcp sqrt rsqrt sin cos ex2 lg2 tanh copysign testp isspacep mapa tex tld4 ldmatrix mma "
    "movmatrix getctarank"
)
ARITHMETIC = PURE | words("fma rcp sqrt rsqrt sin cos ex2 lg2 tanh copysign testp setp cvt")


def targets(step: Instruction) -> list[Target]:
    """The registers an instruction may write; for one we do not know, all it names."""
    votes = step.opcode in ("bar", "barrier") and "red" in step.modifiers
    if (step.opcode in NO_TARGET and not votes) or not step.operands:
        return []
    if votes or step.opcode in PURE or step.opcode in ONE_TARGET:
        return _registers(step.operands[0])
    return [r for operand in step.operands for r in _registers(operand)]


def _registers(operand: Operand) -> list[Target]:
    match operand:
        case Register() | Component():
            return [operand]
        case Vector(elements) | Arguments(elements):
            return [r for element in elements for r in _registers(element)]
        case Pair(first, second):
            return _registers(first) + _registers(second)
        case _:
            return []


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
    if step.opcode in ARITHMETIC and not step.name.endswith(".cc"):
        read = [reader.value(operand, 64) for operand in step.operands[1:]]
        if all(form is not None and reader.pool.uniform(form) for form in read):
            return reader.pool.symbol(name, width, block=block)
    return reader.pool.unknown(name, width, block)


def _nth(found: list[Form | None] | None, place: int) -> Form | None:
    return found[place] if found is not None and place < len(found) else None
