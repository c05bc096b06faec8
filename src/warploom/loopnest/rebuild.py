"""A program written again with other axes: other tiles, or a fold in parts that are added up later.

In come a program and, for some of its axes, what stands in their place; out goes the program that
the same statements make of these. Every instruction keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warploom.errors import UnsupportedError
from warploom.kernel.dtype import DType
from warploom.loopnest import ir
from warploom.loopnest.build import Leaf, LoopNest, Node, Term, neutral

NUMBERED = re.compile(r"(.*)_\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Instead:
    """What an axis becomes: `at` is its index by the new `axes`. A fold over it goes over
    `iterations` first, and then over each of `parts`, one after the other."""

    at: ir.Linear
    axes: tuple[ir.Axis, ...]
    iterations: tuple[ir.Axis, ...]
    parts: tuple[ir.Axis, ...] = ()


# What is made of an axis in a nest that is being written.
Remake = Callable[[LoopNest, ir.Axis], Instead]


def same_with_tiles(tiles: Sequence[Sequence[int]], tail: bool) -> Remake:
    """The axis cut into other tiles."""

    def remake(nest: LoopNest, axis: ir.Axis) -> Instead:
        made = nest.axis(axis.name, axis.size, *tiles, tail=tail)
        return Instead(made, (made,), (made,))

    return remake


def unchanged(nest: LoopNest, axis: ir.Axis) -> Instead:
    copied = ir.Axis(axis.name, axis.size, axis.tiles, axis.dynamic, axis.tail)
    made = nest.add_axis(copied)
    return Instead(made, (made,), (made,))


def in_parts(parts: Sequence[tuple[str, int]], tiles: Sequence[Sequence[int]]) -> Remake:
    """The axis as iterations of neighbours side by side, whose numbers the parts are, the outermost
    first: a fold leaves one result for each of them, and these are folded, the innermost first."""

    def remake(nest: LoopNest, axis: ir.Axis) -> Instead:
        total = 1
        for _, size in parts:
            total *= size
        if axis.size % total:
            raise UnsupportedError(f"{total} parts of '{axis}' of {axis.size} are not equally long")
        outer = nest.axis(axis.name, axis.size // total, *tiles, tail=True)
        at: ir.Linear = outer * total
        found = []
        for name, size in parts:
            total //= size
            each = nest.axis(name, size, dynamic=False)
            at = at + each * total
            found.append(each)
        return Instead(at, (outer, *found), (outer,), tuple(reversed(found)))

    return remake


def rebuilt(program: ir.Program, remade: Mapping[ir.Axis, Remake]) -> ir.Program:
    """The program with some axes remade."""
    return Rebuilding(program, remade).done()


class Rebuilding:
    """The statements of a program, written again one after the other."""

    def __init__(self, program: ir.Program, remade: Mapping[ir.Axis, Remake]) -> None:
        self.program, self.nest = program, LoopNest(program.name)
        self.axes = {axis: remade.get(axis, unchanged)(self.nest, axis) for axis in program.axes}
        self.arrays = {
            each: self.nest.array(each.name, *each.shape, dtype=each.dtype, strides=each.strides)
            for each in program.arrays
        }
        self.parameters = {
            each: self.nest.parameter(each.name, each.dtype) for each in program.parameters
        }
        self.values: dict[ir.Instruction, Leaf] = {}
        self.nodes: dict[ir.Instruction, Term] = {}
        uses = [each for i in program.instructions for each in ir.results(i)]
        self.inner = {each.instruction for each in uses if each.scope is ir.Scope.LOCAL}
        self.inner |= {i.running.start for i in program.instructions if i.running is not None}

    def done(self) -> ir.Program:
        for each in self.program.instructions:
            if each not in self.inner or isinstance(each.action, ir.Load | ir.Store):
                self.write(each)
        return self.nest.done()

    def write(self, each: ir.Instruction) -> None:
        match each.action:
            case ir.Load(access):
                self.values[each] = self.arrays[access.array][self._subscripts(access)]
            case ir.Store(access, value):
                self.arrays[access.array][self._subscripts(access)] = self._term(value)
            case ir.Compute() if each.running is not None:
                self.values[each] = self._folded(each, each.running)
            case _:
                self.values[each] = self.nest.value(self.node(each), _stem(each.name))

    def _subscripts(self, access: ir.Access) -> tuple[ir.Linear | int, ...]:
        found = []
        for each in access.subscripts:
            at: ir.Linear = ir.Affine(each.offset)
            for axis, factor in each.terms:
                at = at + self.axes[axis].at * factor
            found.append(at)
        return tuple(found)

    def _folded(self, each: ir.Instruction, running: ir.Running) -> Leaf:
        """One fold; where its axis has parts, the first of several."""
        over = [self.axes[axis] for axis in dict.fromkeys(dim.axis for dim in running.over)]
        start = self.node(running.start)
        op, expression = self.summand(each)
        stem, first = _stem(each.name), [axis for one in over for axis in one.iterations]
        parts = [axis for one in over for axis in one.parts]
        is_neutral = _is_neutral(start, op, each.dtype)
        if parts and not is_neutral:
            raise UnsupportedError(f"'{each}' starts with a value: it cannot be done in parts")
        begun = None if is_neutral else start
        total = self.nest.fold(op, expression, first, begun, stem)
        for axis in parts:
            total = self.nest.fold(op, total, axis, None, stem)
        return total

    def summand(self, each: ir.Instruction) -> tuple[ir.Fold, Term]:
        """What a fold puts together, and by which operator."""
        assert isinstance(each.action, ir.Compute)
        action = each.action
        operands = [self._term(o) for o in action.operands if not isinstance(o, ir.Running)]
        if action.op == "fma":
            return "+", Node("*", tuple(operands), each.dtype)
        return _fold(action.op), operands[0]

    def node(self, each: ir.Instruction) -> Term:
        """The expression that an instruction computes, with those inside it."""
        if each not in self.nodes:
            assert isinstance(each.action, ir.Compute)
            op, operands = each.action.op, tuple(map(self._term, each.action.operands))
            if op == "move":
                self.nodes[each] = operands[0]
            elif op == "fma":
                product = Node("*", operands[:2], each.dtype)
                self.nodes[each] = Node("+", (product, operands[2]), each.dtype)
            else:
                self.nodes[each] = Node(op, operands, each.dtype)
        return self.nodes[each]

    def _term(self, operand: ir.Operand) -> Term:
        match operand:
            case ir.Result(made, _, ir.Scope.LOCAL) if made not in self.values:
                return self.node(made)
            case ir.Result(made):
                return self.values[made]
            case ir.Parameter():
                return self.parameters[operand]
            case ir.Constant():
                return Leaf(operand, self._type(operand))
            case ir.IndexOf(axis):
                return self._index(operand, axis)
            case ir.Running():
                raise AssertionError("a fold is written as one")

    def _index(self, operand: ir.IndexOf, axis: ir.Axis) -> Term:
        instead = self.axes[axis]
        if len(instead.axes) > 1:
            raise UnsupportedError(f"the index along '{axis}' is used as a number")
        return Leaf(ir.IndexOf(instead.axes[0]), self._type(operand))

    def _type(self, operand: ir.Operand) -> DType:
        """Leaves have the type of who uses them; a cast has another than its operand."""
        users = [i for i in self.program.instructions if operand in i.operands]
        user = users[0]
        if isinstance(user.action, ir.Compute) and user.action.op == "cast":
            return DType.I32 if isinstance(operand, ir.IndexOf) else user.dtype
        return user.dtype


def _stem(name: str) -> str:
    match = NUMBERED.fullmatch(name)
    return match[1] if match else name


def _fold(op: str) -> ir.Fold:
    match op:
        case "+" | "min" | "max":
            return op
    raise UnsupportedError(f"a fold by '{op}' is not written again")


def _is_neutral(start: Term, op: ir.Fold, dtype: DType) -> bool:
    """Whether a fold begins with what it begins with where nothing is said."""
    match start:
        case Leaf(ir.Constant(value)):
            return value == neutral(op, dtype)
    return False
