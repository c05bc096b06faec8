"""Loop nests as text: one line for each instruction, with the axes that it varies along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from warploom.loopnest import ir


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
        case ir.Compute(op, operands):
            parts = ", ".join(show_operand(each) for each in operands)
            made = parts if op == "move" else f"{op}({parts})"
        case ir.Load(access):
            made = f"load {show_access(access)}"
        case ir.Store(access, value):
            return f"store {show_access(access)} = {show_operand(value)}"
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


def show_operand(operand: ir.Operand) -> str:
    match operand:
        case ir.Constant(value):
            return f"{value:g}"
        case ir.Parameter(name):
            return name
        case ir.IndexOf(axis):
            return f"index({axis})"
        case ir.Result(instruction):
            return _varying(instruction)
        case ir.Running(start):
            return f"running from {_varying(start)}"
        case _:
            assert_never(operand)


def show_access(access: ir.Access) -> str:
    return f"{access.array}[{', '.join(map(show_affine, access.subscripts))}]"


def show_affine(value: ir.Affine) -> str:
    parts = [str(a) if f == 1 else f"{f}*{a}" for a, f in value.factors.items()]
    if value.offset or not parts:
        parts.append(str(value.offset))
    return " + ".join(parts)
