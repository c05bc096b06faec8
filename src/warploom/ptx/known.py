"""What the records say of one instruction: its form, its effects, what it writes and reads."""

from __future__ import annotations

from functools import lru_cache

from warploom.ptx import ir
from warploom.ptx.opcode import Control, Opcode, OpcodeForm
from warploom.ptx.table import OPCODES

SPACES = frozenset({"global", "shared", "local", "const", "param"})
# Accesses that are strong in PTX's memory model: they do not race with each other.
STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio"})
# What atomics do that comes to the same in every order, of whole numbers.
COMMUTES = frozenset({"add", "and", "or", "xor", "min", "max"})
# Registers of the machine that differ from run to run.
_VARYING = (
    "%clock", "%globaltimer", "%smid", "%warpid", "%nwarpid", "%gridid", "%pm", "%nsmid",
    "%current_graph",
)  # fmt: skip


def spelled(opcode: str, modifiers: tuple[str, ...]) -> tuple[OpcodeForm, ...]:
    """The forms that these words may be; none where one of them is not known."""
    record = OPCODES.get(opcode)
    return () if record is None else record.spelled(modifiers)


@lru_cache(maxsize=1 << 14)
def form_with(opcode: str, modifiers: tuple[str, ...], operands: int) -> OpcodeForm | None:
    """The form of these words that takes so many operands; None if there is none."""
    return next((form for form in spelled(opcode, modifiers) if form.takes(operands)), None)


def form_of(instruction: ir.Instruction) -> OpcodeForm | None:
    """The form that an instruction is; None where it is not known in all its parts."""
    return form_with(instruction.opcode, instruction.modifiers, len(instruction.operands))


def is_predicate(operand: ir.Operand) -> bool:
    """Whether an operand is a predicate, turned around or not."""
    inner = operand.operand if isinstance(operand, ir.Negated) else operand
    return isinstance(inner, ir.Register) and inner.type == "pred"


def record_of(instruction: ir.Instruction) -> Opcode | None:
    """The record of an instruction that is one of its forms."""
    return OPCODES[instruction.opcode] if form_of(instruction) is not None else None


def control_of(instruction: ir.Instruction) -> Control:
    form = form_of(instruction)
    if form is not None:
        return form.control
    record = OPCODES.get(instruction.opcode)
    return Control.NEXT if record is None else record.control


def varies(operands: tuple[ir.Operand, ...]) -> bool:
    """Whether among them is a register that differs from run to run."""
    work = list(operands)
    while work:
        each = work.pop()
        if isinstance(each, ir.Special) and each.name.startswith(_VARYING):
            return True
        if isinstance(each, ir.Vector):
            work += each.elements
    return False


def split_operands(
    instruction: ir.Instruction,
) -> tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...]]:
    """(written, read). Of an instruction that is not known, all operands may be both."""
    operands = instruction.operands
    form = form_of(instruction)
    if form is None:
        return operands, operands
    has_result = form.operands[:1] != () and form.operands[0].startswith("d")
    if form.control is Control.CALL:
        lists = sum(isinstance(operand, ir.Arguments) for operand in operands)
        has_result = isinstance(operands[0], ir.Arguments) and lists > 1 if operands else False
    if not has_result:
        return (), operands
    return operands[:1], _of_use(instruction, operands[1:])


def _of_use(ins: ir.Instruction, read: tuple[ir.Operand, ...]) -> tuple[ir.Operand, ...]:
    """Operands less those that a constant says are of no use: words of which prmt takes no byte,
    and bits that a table of lop3 does not look at."""
    if ins.opcode not in ("prmt", "lop3") or len(read) < 3:
        return read
    last = read[2 if ins.opcode == "prmt" else 3]
    if not isinstance(last, ir.Immediate) or ins.modifiers[-1] != "b32":
        return read
    number = int(last.value)
    if ins.opcode == "prmt":
        taken = {number >> 4 * at >> 2 & 1 for at in range(4)}
    else:
        taken = {at for at, step in enumerate((4, 2, 1)) if _differs(number, step)}
    unused = {0, 1} - taken if ins.opcode == "prmt" else {0, 1, 2} - taken
    return tuple(each for at, each in enumerate(read) if at not in unused)


def _differs(table: int, step: int) -> bool:
    """Whether the answers of a table of eight depend on the bit of this weight."""
    return any((table >> at ^ table >> at + step) & 1 for at in range(8) if not at & step)


def registers_moved(operand: ir.Operand) -> tuple[ir.Operand, ...]:
    """What an access of memory moves: registers in braces, those of a vector register, or one."""
    match operand:
        case ir.Vector(inner):
            return inner
        case ir.Register(vector=count) if count > 1:
            return tuple(ir.Component(operand, part) for part in range(count))
        case _:
            return (operand,)


def registers_in(operand: ir.Operand) -> list[ir.Register | ir.Component]:
    """The registers that a destination names."""
    match operand:
        case ir.Register() | ir.Component():
            return [operand]
        case ir.Part(register):
            return [register]
        case ir.Vector(elements) | ir.Arguments(elements):
            return [each for element in elements for each in registers_in(element)]
        case ir.Pair(first, second):
            return registers_in(first) + registers_in(second)
        case _:
            return []


def registers(operands: tuple[ir.Operand, ...]) -> list[ir.Register | ir.Component]:
    """All registers in operands, addresses and lists opened."""
    out: list[ir.Register | ir.Component] = []
    work = list(operands)
    while work:
        match work.pop():
            case ir.Register() | ir.Component() as found:
                out.append(found)
            case ir.Part(inner) | ir.Negated(inner) | ir.Minus(inner) | ir.Offset(inner):
                work.append(inner)
            case ir.Address(base, _, more):
                work += [base, *more]
            case ir.Vector(elements) | ir.Arguments(elements):
                work += elements
            case ir.Pair(first, second):
                work += [first, second]
            case _:
                pass
    return out


def keys_of(register: ir.Register | ir.Component) -> list[str]:
    """The keys of a register's parts."""
    match register:
        case ir.Register(_, _, key, 1):
            return [key]
        case ir.Register(_, _, key, count):
            return [f"{key}.{part}" for part in range(count)]
        case ir.Component(ir.Register(_, _, key), index):
            return [f"{key}.{index}"]


def space_of(instruction: ir.Instruction) -> str:
    """The state space, without `::cta` and the like; generic where none is written."""
    words = (word.split("::")[0] for word in instruction.modifiers)
    return next((word for word in words if word in SPACES), "generic")
