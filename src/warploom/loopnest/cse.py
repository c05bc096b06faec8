"""What a compiler may find that it has already, and so does once where a program says it twice.

In come instructions; out go which of them compute what one before them did or what is known without
running, along which axes every index surely gives something new (of `x[i + j]` the elements are
those along `i`, seen again along `j`; of `x[i]` and `x[i + 1]` only the first counts), and which
folds have a short form. Compilers are taken to know that operands may change places, what 0 and 1
leave as it is, sums of integers, that the constants of a chain become one, and that an exact
conversion is undone by the one back; floats are added as they are written. What a user would not
write (`v - v`, an integer times 0, the greater of `v` and the least of all) is counted as it
stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from warploom.kernel.dtype import DType
from warploom.kernel.ir import Choose, Compare, Value, dtype_of
from warploom.loopnest import ir
from warploom.loopnest.pieces import conditions_of
from warploom.node import Interned, node
from warploom.search.branching.candidate import Flags


@node
class Computed(metaclass=Interned):
    """What an operator makes of others: one object for equal ones, however deep."""

    form: tuple[Hashable, ...]


def repeated(insts: Sequence[ir.Instruction]) -> Flags:
    """[instructions]: those that compute what one before them does or what is known before the
    kernel runs, and those that load from an array of which something was loaded before."""
    absorbed = _absorbed(insts)
    seen: set[Hashable] = set()
    loaded: set[ir.Array] = set()
    keys: dict[ir.Instruction, Hashable] = {}
    given: dict[ir.Instruction, frozenset[ir.Axis] | None] = {}
    found = []
    for inst in insts:
        key = keys[inst] = _key(inst, keys)
        given[inst] = _given_along(inst, given)
        had = key in seen or (isinstance(inst.action, ir.Compute) and given[inst] is None)
        if isinstance(inst.action, ir.Load):  # all of it may be among what was loaded before
            had |= inst.action.access.array in loaded
            loaded.add(inst.action.access.array)
        found.append(had or inst in absorbed)
        seen.add(key)
    return np.array(found)


def _key(inst: ir.Instruction, keys: dict[ir.Instruction, Hashable]) -> Hashable:
    """Equal where two instructions surely give the same."""

    def operand(each: ir.Operand) -> Hashable:
        match each:
            case ir.Result(instruction):
                return keys.get(instruction, instruction)
            case ir.Running(start, _, over):
                return "running", keys.get(start, start), frozenset(dim.axis for dim in over)
            case ir.Constant(value):
                return "constant", float(value)
            case ir.IndexOf():
                return "index", each.expr
            case _:
                return each

    match inst.action:
        case ir.Load(access):
            crooked = tuple(s.expr for s in access.subscripts if isinstance(s, ir.Crooked))
            where = None if access.where is None else (access.where.condition, access.other)
            place, named = access.near, tuple(operand(each.value) for each in access.named)
            own = place.offset, frozenset(place.factors.items()), crooked, named
            return access.array, own, where, access.other if named else 0
        case ir.Compute("choose", operands):
            parts = tuple(operand(each) for each in operands)
            return Computed(("choose", inst.dtype, _asked(inst.action.value), parts))
        case ir.Compute(op, operands):
            return _simple(op, [operand(each) for each in operands], inst)
        case _:
            return inst


# Of two of these with constants a compiler makes one; of any of BITS, and as many &, at most two.
CHAINED = ("<<", ">>", "/", "min", "max")
BITS = ("&", "|", "^", "~")


def _absorbed(insts: Sequence[ir.Instruction]) -> set[ir.Instruction]:
    """Instructions by a constant that only others by a constant use, so that one is left of a
    chain; and conversions that are only undone.

    x + 3, + 3, + 3 → x + 9          (x + 3)·5 - 1 → x·5 + 14          min(min(x, 3), 5) → min(x, 3)
    """
    users: dict[ir.Instruction, list[ir.Instruction]] = {}
    for inst in insts:
        for each in inst.operands:
            if isinstance(each, ir.Result):
                users.setdefault(each.instruction, []).append(inst)
    found = set[ir.Instruction]()
    for inst in insts:
        mine = users.get(inst, [])
        if mine and all(_undoes(each, inst) or _takes_in(each, inst) for each in mine):
            found.add(inst)
    return found


def _undoes(user: ir.Instruction, inst: ir.Instruction) -> bool:
    """Whether the user converts back what was converted without loss."""
    match inst.action, user.action:
        case ir.Compute("cast", (before,)), ir.Compute("cast"):
            return user.dtype is dtype_of(before) and _holds(inst.dtype, user.dtype)
    return False


def _takes_in(user: ir.Instruction, inst: ir.Instruction) -> bool:
    """Whether what the user does with it and what it does by a constant may be one instruction."""
    match inst.action, user.action:
        case ir.Compute(op, operands), ir.Compute(other) if user.dtype is inst.dtype:
            varying = [each for each in operands if not isinstance(each, ir.Constant)]
            if inst.running is not None or len(varying) != 1:
                return False
            both = op == other and op in CHAINED and (not inst.dtype.is_float or op in COMMUTE)
            return both or {op, other} <= {*BITS} or (_is_linear(inst) and _is_linear(user))
    return False


def _is_linear(inst: ir.Instruction) -> bool:
    """A sum or difference of integers, or a multiple by a constant."""
    match inst.action:
        case ir.Compute("+" | "-" | "neg"):
            return not inst.dtype.is_float
        case ir.Compute("*" | "<<", (_, ir.Constant())) | ir.Compute("*", (ir.Constant(), _)):
            return not inst.dtype.is_float
    return False


def _asked(value: Value) -> Hashable:
    assert isinstance(value, Choose)
    return value.condition.op if isinstance(value.condition, Compare) else value.condition


NEUTRAL = {"+": 0.0, "-": 0.0, "*": 1.0, "/": 1.0, "<<": 0.0, ">>": 0.0, "|": 0.0, "^": 0.0}
COMMUTE = ("+", "*", "min", "max", "&", "|", "^")  # and the factors of an fma


def _simple(op: str, parts: list[Hashable], inst: ir.Instruction) -> Hashable:
    """Without what changes nothing, and whatever the order of operands that have none."""
    if op == "cast":
        return _cast(parts[0], inst)
    if op == "move" or (op in ("min", "max", "&", "|") and parts[0] == parts[1]):
        return parts[0]
    if op in NEUTRAL and len(parts) == 2:
        nothing = ("constant", NEUTRAL[op])
        if parts[1] == nothing:
            return parts[0]
        if op in COMMUTE and parts[0] == nothing:
            return parts[1]
    if op in ("min", "max", "&", "|"):
        for one, other in (parts, parts[::-1]):  # of one that was taken into account already
            match one:
                case Computed((word, dtype, frozenset() as inside)) if (word, dtype) == (
                    op,
                    inst.dtype,
                ):
                    if any(part == other for part, _ in inside):
                        return one
    if op in COMMUTE:
        return Computed((op, inst.dtype, frozenset(Counter(parts).items())))
    if op == "fma":
        return Computed((op, inst.dtype, frozenset(Counter(parts[:2]).items()), parts[2]))
    return Computed((op, inst.dtype, tuple(parts)))


def _cast(part: Hashable, inst: ir.Instruction) -> Hashable:
    """Converted back it is what it was, if every number of its type has a place in the other."""
    assert isinstance(inst.action, ir.Compute)
    between = dtype_of(inst.action.operands[0])
    match part:
        case Computed(("cast", _, inner, DType() as first)) if first is inst.dtype and _holds(
            between, first
        ):
            return inner
    return Computed(("cast", inst.dtype, part, between))


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether a number of the narrow type is the same after a conversion there and back."""
    if narrow.is_real:
        return wide is narrow or (wide.is_float and wide.bytes >= narrow.bytes)
    if wide.is_code:
        return False
    bits = 8 * narrow.bytes - narrow.is_signed
    exact = {DType.F32: 24, DType.F64: 53}
    return bits <= exact[wide] if wide.is_float else wide.bytes >= narrow.bytes


def _given_along(
    inst: ir.Instruction, known: dict[ir.Instruction, frozenset[ir.Axis] | None]
) -> frozenset[ir.Axis] | None:
    """The axes along which a value depends on what is in memory; None if it is known without that
    and without parameters, so that a compiler may compute it."""
    match inst.action:
        case ir.Load(access):
            return frozenset(access.place.factors)
        case ir.Compute(_, operands):
            parts = [_given(each, known) for each in operands]
            there = [each for each in parts if each is not None]
            gone = {dim.axis for dim in inst.over}
            return frozenset().union(*there) - gone if there else None
        case ir.Scan(_, value):
            return _given(value, known)
        case _:
            return frozenset(inst.axes)


def _given(
    operand: ir.Operand, known: dict[ir.Instruction, frozenset[ir.Axis] | None]
) -> frozenset[ir.Axis] | None:
    match operand:
        case ir.Result(instruction) | ir.Running(instruction):
            return known.get(instruction, frozenset(instruction.axes))
        case ir.Parameter():
            return frozenset()
        case _:
            return None


def idle(insts: Sequence[ir.Instruction], dims: Sequence[ir.Dim]) -> Flags:
    """[instructions, dims]: dimensions of folds whose iterations a compiler may do all at once, and
    of integers that only such folds use. The least and the greatest of the same are that; integers
    that are the same, or follow from an index, have a sum in closed form."""
    known: dict[ir.Instruction, frozenset[ir.Axis] | None] = {}
    skipped: dict[ir.Instruction, set[ir.Axis]] = {}
    users: dict[ir.Instruction, list[ir.Instruction]] = {inst: [] for inst in insts}
    for inst in insts:
        known[inst] = _given_along(inst, known)
        skipped[inst] = _closed(inst, known)
        for each in inst.operands:
            if isinstance(each, ir.Result) and each.instruction in users:
                users[each.instruction].append(inst)
    for inst in reversed(insts):
        plain = isinstance(inst.action, ir.Compute) and inst.running is None
        if plain and not inst.dtype.is_float and users[inst]:
            all_of_them = set.intersection(*(skipped[user] for user in users[inst]))
            skipped[inst] = all_of_them - (known[inst] or frozenset())
    rows = [[dim in inst.dims and dim.axis in skipped[inst] for dim in dims] for inst in insts]
    return np.array(rows, np.bool_)


def _closed(
    inst: ir.Instruction, known: dict[ir.Instruction, frozenset[ir.Axis] | None]
) -> set[ir.Axis]:
    """The axes that a fold goes along and nothing from memory does."""
    match inst.action:
        case ir.Compute(op, operands) if inst.running is not None:
            if op in ("min", "max") or not inst.dtype.is_float:
                given = [
                    _given(each, known) for each in operands if not isinstance(each, ir.Running)
                ]
                varying = frozenset[ir.Axis]().union(*(each for each in given if each is not None))
                return {dim.axis for dim in inst.over} - varying
    return set()


def anew(insts: Sequence[ir.Instruction], dims: Sequence[ir.Dim]) -> Flags:
    """[instructions, dims]: own dimensions in every iteration of which there is something new."""
    axes: dict[ir.Instruction, frozenset[ir.Axis]] = {}
    loaded: set[ir.Array] = set()
    first: dict[Hashable, ir.Instruction] = {}
    for inst in insts:
        axes[inst] = _new_along(inst, axes, loaded)
        if isinstance(inst.action, ir.Load):
            same = first.setdefault(_key(inst, {}), inst)  # loaded before: as new as that was
            axes[inst] = axes[same]
            loaded.add(inst.action.access.array)
    rows = [[d in i.dims and d.axis in axes[i] for d in dims] for i in insts]
    return np.array(rows, np.bool_)


def _new_along(
    inst: ir.Instruction, known: dict[ir.Instruction, frozenset[ir.Axis]], loaded: set[ir.Array]
) -> frozenset[ir.Axis]:
    match inst.action:
        case ir.Load(access):
            none = frozenset[ir.Axis]()
            return none if access.array in loaded else frozenset(apart(access))
        case ir.Compute(_, operands):
            found = {axis for each in operands if isinstance(each, ir.IndexOf)
                     for axis in each.axes}  # fmt: skip
            names = conditions_of(inst.action.value)
            found |= {axis for axis in inst.axes if axis.name in names}
            for each in operands:
                match each:
                    case ir.Result(instruction):
                        found |= known[instruction] - {d.axis for d in instruction.over}
                    case ir.Running(start, _, over):  # it goes on from what it has
                        found |= known[start] | {dim.axis for dim in over}
            return frozenset(found)
        case ir.Scan(_, ir.Result(instruction)):
            return known[instruction] - {dim.axis for dim in instruction.over}
        case ir.Scan():
            return frozenset()
        case _:  # what is put somewhere is there
            return frozenset(inst.axes)


def apart(access: ir.Access) -> list[ir.Axis]:
    """Axes whose strides lie beyond what the axes with smaller ones reach: these lead to different
    elements."""
    reach, found = 0, list[ir.Axis]()
    for axis, factor in sorted(access.place.factors.items(), key=lambda each: abs(each[1])):
        if abs(factor) > reach:
            found.append(axis)
        reach += abs(factor) * (axis.size - 1)
    return found
