"""PTX back to text: an unchanged module byte for byte, an edited one by splicing its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from warploom.errors import InternalError
from warploom.ptx import ir

_COMPONENTS = "xyzw"


@dataclass(frozen=True, slots=True)
class Edit:
    """The text from `start` to `end` (offsets of the original) becomes `text`."""

    start: int
    end: int
    text: str


def replace(item: ir.Statement | ir.Function, text: str) -> Edit:
    return Edit(item.start, item.end, text)


def insert_before(item: ir.Statement | ir.Function, text: str) -> Edit:
    return Edit(item.start, item.start, text)


def insert_after(item: ir.Statement | ir.Function, text: str) -> Edit:
    return Edit(item.end, item.end, text)


def insert_at_top(function: ir.Function, text: str) -> Edit:
    """Just after the opening brace of the body."""
    return Edit(function.body_start, function.body_start, text)


def show(module: ir.Module, edits: Iterable[Edit] = ()) -> str:
    """The module's text with the edits made. Edits at one place come out in the order given."""
    text = module.text.source.text
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < position:
            raise InternalError("two edits overlap", module.text.span(edit.start, edit.end))
        pieces += (text[position : edit.start], edit.text)
        position = edit.end
    pieces.append(text[position:])
    return "".join(pieces)


def show_instruction(instruction: ir.Instruction) -> str:
    """One instruction in the usual layout, for statements that no text has."""
    guard = ""
    if instruction.predicate is not None:
        guard = f"@{'!' if instruction.negated else ''}{instruction.predicate.name} "
    operands = ", ".join(show_operand(operand) for operand in instruction.operands)
    return f"{guard}{instruction.name}{' ' if operands else ''}{operands};"


def show_operand(operand: ir.Operand) -> str:
    match operand:
        case ir.Register(name) | ir.Special(name) | ir.Symbol(name):
            return name
        case ir.Component(register, index):
            return f"{register.name}.{_COMPONENTS[index]}"
        case ir.Part(register, selector):
            return f"{register.name}.{selector}"
        case ir.Immediate(text):
            return text
        case ir.Negated(inner):
            return "!" + show_operand(inner)
        case ir.Minus(inner):
            return "-" + show_operand(inner)
        case ir.Address(base, offset, more):
            inside = [show_operand(base) + (f"+{offset}" if offset else "")]
            return "[" + ", ".join(inside + [show_operand(each) for each in more]) + "]"
        case ir.Offset(base, offset):
            return f"{show_operand(base)}+{offset}"
        case ir.Vector(elements):
            return "{" + ", ".join(map(show_operand, elements)) + "}"
        case ir.Arguments(elements):
            return "(" + ", ".join(map(show_operand, elements)) + ")"
        case ir.Pair(first, second):
            return f"{show_operand(first)}|{show_operand(second)}"
        case _:
            assert_never(operand)
