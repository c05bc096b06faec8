"""Whether a fold is left as it was by what lies beyond the end of an axis.

Loads beyond the end give zero. If all that is added there is zero because of that, nothing has to
guard the addition.
"""

from __future__ import annotations

from warploom.loopnest import ir

# Of zeros they make zero.
KEEP_ZERO = frozenset({"+", "-", "*", "neg", "abs", "min", "max", "move", "cast", "fma"})


def unchanged_outside(fold: ir.Instruction, axis: ir.Axis) -> bool:
    """Whether it adds nothing but zeros where the index along an axis is beyond its end."""
    match fold.action:
        case ir.Compute("+" | "fma", operands):
            others = [each for each in operands if not isinstance(each, ir.Running)]
            return all(zero_outside(each, axis) for each in others)
        case _:
            return False


def zero_outside(operand: ir.Operand, axis: ir.Axis) -> bool:
    """Both factors of a product have to be zero: of the other one nothing is known, and zero times
    infinity is no number."""
    match operand:
        case ir.Constant(value):
            return value == 0
        case ir.Result(instruction):
            match instruction.action:
                case ir.Load():
                    return axis in instruction.axes
                case ir.Compute(op, operands) if op in KEEP_ZERO and instruction.running is None:
                    return all(zero_outside(each, axis) for each in operands)
                case _:
                    return False
        case _:
            return False
