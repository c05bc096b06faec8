"""Loop nests as text: one line for each instruction, with the axes that it varies along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from warploom.index.show import show as show_index
from warploom.kernel.ir import (
    Cast,
    Cell,
    Choose,
    Compare,
    FromIndex,
    Number,
    Operation,
    Value,
    innermost_first,
    repeated_parts,
    tree_size,
)
from warploom.loopnest import ir

MOST_PARTS = 256  # of a value that is written out; beyond, what is shared gets a name


def show(program: ir.Program) -> str:
    return "\n".join(_lines(program))


def _lines(program: ir.Program) -> Iterator[str]:
    yield f"nest {program.name}"
    for axis in program.axes:
        yield f"  {show_axis(axis)}"
    for instruction in program.instructions:
        yield f"  {show_instruction(instruction)}"


def show_axis(axis: ir.Axis) -> str:
    levels = ["*"] if axis.dynamic else []
    levels += ["|".join(map(str, sizes)) for sizes in axis.tiles]
    tail = ", the last partial" if axis.tail else ""
    return f"axis {axis} of {axis.size}: {' × '.join(levels) or '1'}{tail}"


def show_instruction(instruction: ir.Instruction) -> str:
    over = _names(dim.axis for dim in instruction.over)
    end = f" over {', '.join(over)}" if over else ""
    match instruction.action:
        case ir.Compute():
            made = show_value(instruction.action.value)
        case ir.Scan(op, value, _, exclusive):
            before = " before it" if exclusive else ""
            made = f"scan {op} of {show_value(value)}{before} along {instruction.action.axis}"
        case ir.Load(access):
            made = f"load {show_access(access)}"
        case ir.Store(access, value):
            return f"store {show_access(access)} = {show_value(value)}"
        case ir.Put(value):
            return f"put {show_operand(value)}"
        case ir.Get():
            made = "get"
        case _:
            assert_never(instruction.action)
    return f"{_varying(instruction)} = {made}{end}"


def _varying(instruction: ir.Instruction) -> str:
    axes = _names(dim.axis for dim in instruction.dims if dim not in instruction.over)
    return f"{instruction}[{', '.join(axes)}]"


def _names(axes: Iterator[ir.Axis]) -> list[str]:
    return list(dict.fromkeys(map(str, axes)))


def show_value(value: Value) -> str:
    """A value as it is written; of a large one, what is shared has a name."""
    names: dict[Value, str] = {}
    shared = repeated_parts(value) if tree_size(value) > MOST_PARTS else frozenset()
    lines = list[str]()
    for part in innermost_first(value):
        if part in shared:
            text = show_operand(part, names)
            names[part] = f"part_{len(names) + 1}"
            lines.append(f"{names[part]} = {text}")
    end = f" where {', '.join(lines)}" if lines else ""
    return f"{show_operand(value, names)}{end}"


def show_operand(value: Value, names: Mapping[Value, str] | None = None) -> str:
    known = {} if names is None else names

    def inner(each: Value) -> str:
        return known[each] if each in known else show_operand(each, known)

    match value:
        case ir.Result(instruction):
            return _varying(instruction)
        case ir.Running(start):
            return f"running from {_varying(start)}"
        case ir.Element(access):
            return show_access(access)
        case Number(number):
            return f"{number:g}"
        case Cell(name):
            return name
        case FromIndex(expr):
            return f"index({show_index(expr)})"
        case Operation(op, parts):
            return f"{op}({', '.join(map(inner, parts))})"
        case Cast(_, whole):
            return f"cast({inner(whole)})"
        case Choose(Compare(op, left, right), then, otherwise):
            condition = f"{inner(left)} {op} {inner(right)}"
            return f"({condition} ? {inner(then)} : {inner(otherwise)})"
        case Choose(condition, then, otherwise):
            assert not isinstance(condition, Compare)
            return f"({show_index(condition)} ? {inner(then)} : {inner(otherwise)})"
        case _:
            assert_never(value)


def show_access(access: ir.Access) -> str:
    found = f"{access.array}[{', '.join(map(show_subscript, access.subscripts))}]"
    if access.where is None:
        return found
    return f"({show_index(access.where.condition)} ? {found} : {access.other:g})"


def show_subscript(value: ir.Subscript) -> str:
    if isinstance(value, ir.ByData):
        return show_value(value.value)
    if isinstance(value, ir.Crooked):
        return show_index(value.expr)
    parts = [str(a) if f == 1 else f"{f}*{a}" for a, f in value.factors.items()]
    if value.offset or not parts:
        parts.append(str(value.offset))
    return " + ".join(parts)
