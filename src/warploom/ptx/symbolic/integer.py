"""What an instruction does to forms: one form per destination, or None where nothing is known.

Elementwise instructions are interpreted by their meanings (`elementwise.py`); moves, addresses and
loads of what does not change are here.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.ptx.ir import Address, Component, Instruction, Register, Symbol
from warploom.ptx.known import record_of, space_of
from warploom.ptx.meaning.table import MEANINGS
from warploom.ptx.symbolic.elementwise import interpreted
from warploom.ptx.symbolic.form import Form
from warploom.ptx.symbolic.operand import Reader, is_integer, roots, width_of


def values(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """One form per destination where we can say; None where nothing is known."""
    record = record_of(step)
    if record is None or not width_of(_kind(step)):
        return None
    handler = HANDLERS.get(step.opcode)
    if handler is not None:
        return handler(reader, step)
    if not record.pure:
        return None
    found = interpreted(reader, step) if step.opcode in MEANINGS else None
    return found if found is not None else [_pure(reader, step)]


def _kind(step: Instruction) -> str:
    return step.modifiers[-1] if step.modifiers else ""


def _pure(reader: Reader, step: Instruction) -> Form | None:
    """A function of the operands, keyed by the whole name of the instruction."""
    if not is_integer(_kind(step)) or "cc" in step.modifiers:
        return None
    width = max(map(width_of, step.modifiers))  # nothing is cut off
    args = [reader.value(operand, width) for operand in step.operands[1:]]
    if not isinstance(step.operands[0], Register):
        return None
    known = tuple(form for form in args if form is not None)
    if len(known) != len(args):
        return None
    return reader.pool.function(step.name, width_of(step.operands[0].type), known)


# -- handlers -------------------------------------------------------------------------------------


def _mov(reader: Reader, step: Instruction) -> list[Form | None] | None:
    if not isinstance(step.operands[0], Register | Component):
        return None
    return [reader.value(step.operands[1], width_of(_kind(step)))]


def _cvta(reader: Reader, step: Instruction) -> list[Form | None] | None:
    width = width_of(_kind(step))
    form = reader.value(step.operands[1], width)
    space = space_of(step)
    if form is None:
        return None
    if space == "global":  # generic addresses of global memory are its addresses
        return [form]
    window = reader.pool.symbol(f"window {space}", width)
    return [form - window if "to" in step.modifiers else form + window]


def _load(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """Parameters and constants are functions of the address, as is `.nc` memory."""
    words = {word.split("::")[0] for word in step.modifiers}
    fixed = "param" in words or "const" in words or "nc" in words
    if not fixed or "volatile" in words or not isinstance(step.operands[0], Register):
        return None
    address = reader.address(step.operands[1])
    if address is None or not _readable(reader, step, words):
        return None
    kind = _kind(step)
    width = width_of(kind)
    name = "param" if "param" in words else "const" if "const" in words else "nc"
    if width not in (8, 16, 32, 64):
        return None
    form = reader.pool.function(f"{name}.{width}", width, (address,))
    return [reader.pool.extend(form, max(width, width_of(step.operands[0].type)), kind[0] == "s")]


def _readable(reader: Reader, step: Instruction, words: set[str]) -> bool:
    """Parameters of the kernel are; those of a call inside it change with every call."""
    if "nc" in words:  # a promise that the kernel itself breaks is no promise
        form = reader.address(step.operands[1])
        return form is not None and not roots(reader.pool, form) & reader.written
    if "param" not in words:
        return True
    address = step.operands[1]
    if not isinstance(address, Address):
        return False
    base = address.base
    return not isinstance(base, Symbol) or base.name in reader.parameters


Handler = Callable[[Reader, Instruction], list[Form | None] | None]
HANDLERS: dict[str, Handler] = {"mov": _mov, "cvta": _cvta, "ld": _load}
