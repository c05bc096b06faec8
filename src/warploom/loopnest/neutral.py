"""By which operator something is folded, and whether a fold is left as it was by what lies beyond
the end of an axis.

Loads beyond the end give zero. If all that is added there is zero because of that, nothing has to
guard the addition.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.kernel.ir import Cast, Number, Operation, Value
from warploom.loopnest import ir
from warploom.loopnest.fold import NEUTRAL, Fold

# Of zeros they make zero.
KEEP_ZERO = frozenset({"+", "-", "*", "neg", "abs", "min", "max", "fma"})


def folded_by(inst: ir.Instruction) -> Fold | None:
    """The operator by which parts of a fold may be put together in any order."""
    match inst.action:
        case ir.Compute("fma", (_, _, ir.Running())):
            return "+"
        case ir.Compute(op, (ir.Running(), _)) if op in NEUTRAL:
            return op
    return None


def unchanged_outside(fold: ir.Instruction, axis: ir.Axis) -> bool:
    """Whether it adds nothing but zeros where the index along an axis is beyond its end."""
    match fold.action:
        case ir.Compute("+" | "fma", operands) if isinstance(fold.action.value, Operation):
            others = [each for each in operands if not isinstance(each, ir.Running)]
            done: dict[Value, bool] = {}
            return all(zero_outside(each, axis, done) for each in others)
        case _:
            return False


def zero_outside(value: Value, axis: ir.Axis, done: dict[Value, bool]) -> bool:
    """Both factors of a product have to be zero: of the other one nothing is known, and zero times
    infinity is no number."""
    if value not in done:
        done[value] = _zero_outside(value, axis, lambda each: zero_outside(each, axis, done))
    return done[value]


def _zero_outside(value: Value, axis: ir.Axis, inner: Callable[[Value], bool]) -> bool:
    match value:
        case Number(number):
            return number == 0
        case Operation(op, parts):
            return op in KEEP_ZERO and all(map(inner, parts))
        case Cast(_, whole):
            return inner(whole)
        case ir.Element(access):
            return axis in access.axes and access.other == 0
        case ir.Result(instruction):
            match instruction.action:
                case ir.Load(access):
                    return axis in access.axes and access.other == 0
                case ir.Compute() if instruction.running is None:
                    return inner(instruction.action.value)
                case _:
                    return False
        case _:
            return False
