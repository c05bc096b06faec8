"""What the records say of one instruction: its form, its effects, what it writes and reads."""

from __future__ import annotations

from functools import lru_cache

from warploom.ptx.ir import (
    Address,
    Arguments,
    Component,
    Instruction,
    Minus,
    Negated,
    Offset,
    Operand,
    Pair,
    Part,
    Register,
    Vector,
)
from warploom.ptx.opcode import Control, Opcode, OpcodeForm
from warploom.ptx.table import OPCODES

SPACES = frozenset({"global", "shared", "local", "const", "param"})
# Accesses that are strong in PTX's memory model: they do not race with each other.
STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio"})


def spelled(opcode: str, modifiers: tuple[str, ...]) -> tuple[OpcodeForm, ...]:
    """The forms that these words may be; none where one of them is not known."""
    record = OPCODES.get(opcode)
    return () if record is None else record.spelled(modifiers)


@lru_cache(maxsize=1 << 14)
def form_with(opcode: str, modifiers: tuple[str, ...], operands: int) -> OpcodeForm | None:
    """The form of these words that takes so many operands; None if there is none."""
    return next((form for form in spelled(opcode, modifiers) if form.takes(operands)), None)


def form_of(instruction: Instruction) -> OpcodeForm | None:
    """The form that an instruction is; None where it is not known in all its parts."""
    return form_with(instruction.opcode, instruction.modifiers, len(instruction.operands))


def record_of(instruction: Instruction) -> Opcode | None:
    """The record of an instruction that is one of its forms."""
    return OPCODES[instruction.opcode] if form_of(instruction) is not None else None


def control_of(instruction: Instruction) -> Control:
    form = form_of(instruction)
    if form is not None:
        return form.control
    record = OPCODES.get(instruction.opcode)
    return Control.NEXT if record is None else record.control


def split_operands(instruction: Instruction) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """(written, read). Of an instruction that is not known, all operands may be both."""
    operands = instruction.operands
    form = form_of(instruction)
    if form is None:
        return operands, operands
    has_result = form.operands[:1] != () and form.operands[0].startswith("d")
    if form.control is Control.CALL:
        lists = sum(isinstance(operand, Arguments) for operand in operands)
        has_result = isinstance(operands[0], Arguments) and lists > 1 if operands else False
    return (operands[:1], operands[1:]) if has_result else ((), operands)


def registers_moved(operand: Operand) -> tuple[Operand, ...]:
    """What an access of memory moves: registers in braces, those of a vector register, or one."""
    match operand:
        case Vector(inner):
            return inner
        case Register(vector=count) if count > 1:
            return tuple(Component(operand, part) for part in range(count))
        case _:
            return (operand,)


def registers_in(operand: Operand) -> list[Register | Component]:
    """The registers that a destination names."""
    match operand:
        case Register() | Component():
            return [operand]
        case Part(register):
            return [register]
        case Vector(elements) | Arguments(elements):
            return [each for element in elements for each in registers_in(element)]
        case Pair(first, second):
            return registers_in(first) + registers_in(second)
        case _:
            return []


def registers(operands: tuple[Operand, ...]) -> list[Register | Component]:
    """All registers in operands, addresses and lists opened."""
    out: list[Register | Component] = []
    work = list(operands)
    while work:
        match work.pop():
            case Register() | Component() as found:
                out.append(found)
            case Part(inner) | Negated(inner) | Minus(inner) | Offset(inner):
                work.append(inner)
            case Address(base, _, more):
                work += [base, *more]
            case Vector(elements) | Arguments(elements):
                work += elements
            case Pair(first, second):
                work += [first, second]
            case _:
                pass
    return out


def keys_of(register: Register | Component) -> list[str]:
    """The keys of a register's parts."""
    match register:
        case Register(_, _, key, 1):
            return [key]
        case Register(_, _, key, count):
            return [f"{key}.{part}" for part in range(count)]
        case Component(Register(_, _, key), index):
            return [f"{key}.{index}"]


def space_of(instruction: Instruction) -> str:
    """The state space, without `::cta` and the like; generic where none is written."""
    words = (word.split("::")[0] for word in instruction.modifiers)
    return next((word for word in words if word in SPACES), "generic")
