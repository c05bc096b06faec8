"""Whether a fold is left as it was by what lies beyond the end of an axis.

Loads beyond the end give zero. If all that is added there is zero because of that, nothing has to
guard the addition.
"""

from __future__ import annotations

from warploom.kernel.ir import Cast, Number, Operation, Value
from warploom.loopnest import ir

# Of zeros they make zero.
KEEP_ZERO = frozenset({"+", "-", "*", "neg", "abs", "min", "max", "fma"})


def unchanged_outside(fold: ir.Instruction, axis: ir.Axis) -> bool:
    """Whether it adds nothing but zeros where the index along an axis is beyond its end."""
    match fold.action:
        case ir.Compute("+" | "fma", operands) if isinstance(fold.action.value, Operation):
            others = [each for each in operands if not isinstance(each, ir.Running)]
            return all(zero_outside(each, axis) for each in others)
        case _:
            return False


def zero_outside(value: Value, axis: ir.Axis) -> bool:
    """Both factors of a product have to be zero: of the other one nothing is known, and zero times
    infinity is no number."""
    match value:
        case Number(number):
            return number == 0
        case Operation(op, parts):
            return op in KEEP_ZERO and all(zero_outside(each, axis) for each in parts)
        case Cast(_, inner):
            return zero_outside(inner, axis)
        case ir.Element(access):
            return axis in access.axes and access.other == 0
        case ir.Result(instruction):
            match instruction.action:
                case ir.Load(access):
                    return axis in access.axes and access.other == 0
                case ir.Compute() if instruction.running is None:
                    return zero_outside(instruction.action.value, axis)
                case _:
                    return False
        case _:
            return False
