"""What a compiler may find that it has already, and so does once where a program says it twice.

In come instructions; out go which of them compute what one before them did, and along which axes
every index surely gives something new: of `x[i + j]` the elements are those along `i`, seen again
along `j`, and loads of `x[i]` and `x[i + 1]` meet where a loop is unrolled.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from warploom.loopnest.ir import (
    Access,
    Array,
    Axis,
    Compute,
    Dim,
    IndexOf,
    Instruction,
    Load,
    Operand,
    Result,
    Running,
)
from warploom.search.candidate import Flags


def repeated(insts: Sequence[Instruction]) -> Flags:
    """[instructions]: those that load or compute what one before them does."""
    seen: set[Hashable] = set()
    keys: dict[Instruction, Hashable] = {}
    found = []
    for inst in insts:
        key = keys[inst] = _key(inst, keys)
        found.append(key in seen)
        seen.add(key)
    return np.array(found)


def _key(inst: Instruction, keys: dict[Instruction, Hashable]) -> Hashable:
    """Equal where two instructions surely give the same."""

    def operand(each: Operand) -> Hashable:
        match each:
            case Result(instruction):
                return keys.get(instruction, instruction)
            case Running(start, _, over):
                return "running", keys.get(start, start), frozenset(dim.axis for dim in over)
            case _:
                return each

    match inst.action:
        case Load(access):
            return access.array, access.place.offset, frozenset(access.place.factors.items())
        case Compute(op, operands):
            return op, inst.dtype, tuple(map(operand, operands))
        case _:
            return inst


def anew(insts: Sequence[Instruction], dims: Sequence[Dim]) -> Flags:
    """[instructions, dims]: own dimensions in every turn of which there is something new."""
    axes: dict[Instruction, frozenset[Axis]] = {}
    loaded: set[Array] = set()
    for inst in insts:
        axes[inst] = _new_along(inst, axes, loaded)
        if isinstance(inst.action, Load):
            loaded.add(inst.action.access.array)
    rows = [[d in i.dims and d.axis in axes[i] for d in dims] for i in insts]
    return np.array(rows, np.bool_)


def _new_along(
    inst: Instruction, known: dict[Instruction, frozenset[Axis]], loaded: set[Array]
) -> frozenset[Axis]:
    match inst.action:
        case Load(access):
            none = frozenset[Axis]()
            return none if access.array in loaded else frozenset(apart(access))
        case Compute(_, operands) if inst.running is None:
            found = {each.axis for each in operands if isinstance(each, IndexOf)}
            for each in operands:
                if isinstance(each, Result):
                    found |= known[each.instruction] - {d.axis for d in each.instruction.over}
            return frozenset(found)
        case _:  # a fold goes on from what it has; what is put somewhere is there
            return frozenset(inst.axes)


def apart(access: Access) -> list[Axis]:
    """Axes whose strides lie beyond what the axes with smaller ones reach: these lead to different
    elements."""
    reach, found = 0, list[Axis]()
    for axis, factor in sorted(access.place.factors.items(), key=lambda each: abs(each[1])):
        if abs(factor) > reach:
            found.append(axis)
        reach += abs(factor) * (axis.size - 1)
    return found
