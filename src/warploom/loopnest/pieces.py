"""An instruction of several operators as instructions of one each, in one nest of loops.

    store z[n] = fma(a, x[n], y[n])   →   x.1[n] = load x[n]; y.1[n] = load y[n]
                                          z.2[n] = fma(a, x.1[n], y.1[n]); store z[n] = z.2[n]

So a program is in the published system, where each has loops of its own; what a program means, what
of it a compiler may have already and what it costs at least is said of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from warploom.index.ir import variables
from warploom.kernel.ir import (
    Cast,
    Choose,
    Compare,
    Operation,
    Value,
    dtype_of,
    operands,
    walk_value,
)
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir
from warploom.loopnest.communicate import communications

WORDS: Mapping[str, str] = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "&": "and", "|": "or", "^": "xor",
    "~": "not", "<<": "left", ">>": "right",
}  # fmt: skip
Fresh = Callable[[str], str]


def pieces(inst: ir.Instruction, fresh: Fresh | None = None) -> tuple[ir.Instruction, ...]:
    """The last of them is the instruction itself, of what others compute; each of the others has
    the loops of what it depends on. With `fresh`, which gives names, all have the same loops."""
    if not _is_compound(inst):
        return (inst,)
    splitting = _Splitting(inst, fresh)
    root = splitting.root()
    return (*splitting.made, root)


def _is_compound(inst: ir.Instruction) -> bool:
    value = inst.value
    if isinstance(inst.action, ir.Load):
        named = [each.value for each in inst.action.access.named]
        return any(operands(each) or isinstance(each, ir.Element) for each in named)
    if value is None:
        return False
    if isinstance(value, ir.Element):
        return True
    parts = operands(value)  # of what is scanned or stored there is none
    if isinstance(inst.action, ir.Compute):
        return any(operands(each) or isinstance(each, ir.Element) for each in parts)
    return bool(parts)


class _Splitting:
    def __init__(self, inst: ir.Instruction, fresh: Fresh | None) -> None:
        self.inst, self.fresh = inst, fresh
        self.made: list[ir.Instruction] = []
        self.done: dict[Value, Value] = {}

    def root(self) -> ir.Instruction:
        match self.inst.action:
            case ir.Compute() as action:
                value = action.value
                split = self.piece(value) if isinstance(value, ir.Element) else self.inner(value)
                return replace(self.inst, action=ir.Compute(split))
            case ir.Store(access, value):
                return replace(self.inst, action=ir.Store(access, self.piece(value)))
            case ir.Scan() as action:
                return replace(self.inst, action=replace(action, value=self.piece(action.value)))
            case ir.Load(access):
                return replace(self.inst, action=ir.Load(access.naming(self.piece)))
            case action:
                return replace(self.inst, action=action)

    def inner(self, value: Value) -> Value:
        """A value whose operands are leaves."""
        match value:
            case Operation(op, parts):
                return Operation(op, tuple(self.piece(each) for each in parts))
            case Cast(dtype, whole):
                return Cast(dtype, self.piece(whole))
            case Choose(Compare(op, left, right), then, otherwise):
                sides = self.piece(left), self.piece(right)
                return Choose(Compare(op, *sides), self.piece(then), self.piece(otherwise))
            case Choose(condition, then, otherwise):
                return Choose(condition, self.piece(then), self.piece(otherwise))
            case _:
                return value

    def piece(self, value: Value) -> Value:
        """A leaf: what an instruction of its own computes, where it is not one yet."""
        if value not in self.done:
            self.done[value] = self._piece(value)
        return self.done[value]

    def _piece(self, value: Value) -> Value:
        if isinstance(value, ir.Element):
            action: ir.Action = ir.Load(value.access.naming(self.piece))
            word = value.access.array.name
        elif operands(value):
            computed = ir.Compute(self.inner(value))
            action, word = computed, WORDS.get(computed.op, computed.op)
        else:
            return value
        root, _, _ = self.inst.name.partition(".")  # names say where, not how deep
        number = f"{self.inst.name}.{len(self.made) + 1}"
        name = number if self.fresh is None else self.fresh(f"{root}.{word}")
        made = ir.Instruction(name, dtype_of(value), self._dims(action), action)
        self.made.append(made)
        return ir.result(made, (), ir.Scope.LOCAL)

    def _dims(self, action: ir.Action) -> tuple[ir.Dim, ...]:
        if self.fresh is not None:
            return self.inst.dims
        match action:
            case ir.Load(access):
                wanted = set(access.axes)
            case ir.Compute():
                wanted = axes_of(action.value, self.inst.axes)
            case _:
                return self.inst.dims
        return tuple(dim for dim in self.inst.dims if dim.axis in wanted)


def axes_of(value: Value, known: Iterable[ir.Axis]) -> set[ir.Axis]:
    """The axes along which a value varies, those of conditions among them, which know only their
    names."""
    found: set[ir.Axis] = set()
    for each in ir.leaves(value):
        match each:
            case ir.Result(made):
                found |= {dim.axis for dim in made.dims if dim not in made.over}
            case ir.Running(start, _, over):
                found |= {dim.axis for dim in (*start.dims, *over)}
            case ir.IndexOf(axes):
                found |= set(axes)
            case ir.Element(access):
                found |= set(access.axes)
    names = conditions_of(value)
    return found | {axis for axis in known if axis.name in names}


def conditions_of(value: Value) -> set[str]:
    """The names in conditions over indices."""
    chosen = (each.condition for each in walk_value(value) if isinstance(each, Choose))
    return {name for c in chosen if not isinstance(c, Compare) for name in variables(c)}


def in_pieces(program: ir.Program) -> ir.Program:
    """The program with one operator to an instruction, as far as its meaning goes."""
    made = tuple(each for each, _ in piece_list(program.instructions))
    if made == program.instructions:
        return program
    return replace(program, instructions=made, communications=communications(made))


def piece_list(insts: Iterable[ir.Instruction]) -> list[tuple[ir.Instruction, ir.Instruction]]:
    """Every piece, with the instruction that it is of; pieces use results of pieces."""
    last: dict[ir.Instruction, ir.Instruction] = {}
    found: list[tuple[ir.Instruction, ir.Instruction]] = []
    for inst in insts:
        made = pieces(_using(inst, last))
        if made[-1] is not inst:
            last[inst] = made[-1]
        found += [(each, inst) for each in made]
    return found


def _using(
    inst: ir.Instruction, last: Mapping[ir.Instruction, ir.Instruction]
) -> ir.Instruction:  # fmt: skip
    """An instruction that uses other instructions in place of some."""
    if not any(_source(each) in last for each in inst.operands):
        return inst

    def again(value: Value) -> Value:
        return map_value(value, lambda expr: expr, found)

    def found(each: Value) -> Value:
        match each:
            case ir.Result(made, pairs, scope) if made in last:
                return ir.result(last[made], pairs, scope)
            case ir.Running(start, pairs, over) if start in last:
                return ir.running(last[start], pairs, over)
            case ir.Element(access) if access.named:
                return replace(each, access=access.naming(again))
        return each

    if isinstance(inst.action, ir.Load):
        return replace(inst, action=ir.Load(inst.action.access.naming(again)))
    assert inst.value is not None
    value = again(inst.value)
    match inst.action:
        case ir.Store(access):
            return replace(inst, action=ir.Store(access, value))
        case ir.Put():
            assert isinstance(value, ir.Result)
            return replace(inst, action=ir.Put(value))
        case ir.Scan() as action:
            return replace(inst, action=replace(action, value=value))
        case _:
            return replace(inst, action=ir.Compute(value))


def _source(value: Value) -> ir.Instruction | None:
    match value:
        case ir.Result(made) | ir.Running(made):
            return made
    return None
