"""What a loop nest means, in plain NumPy: every instruction is an array over the axes it has.

Every result is rounded to its type once, so what is too large or too small for it is so here, too;
what an instruction does within itself, all of a fold, is done in double precision: in which order a
sum is added up is one of the decisions of an implementation, and rounding depends on it. Integers
wrap, and their quotients are cut off towards zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.index.ir import Expr, variables
from warploom.index.ranges import range_of
from warploom.kernel.arithmetic import FUNCTIONS as ELEMENTARY
from warploom.kernel.dtype import DType, memory_of, numbers_of
from warploom.kernel.ir import Choose, Compare, Value, dtype_of
from warploom.loopnest import ir
from warploom.loopnest.fold import neutral
from warploom.loopnest.pieces import in_pieces

Numbers: TypeAlias = npt.NDArray[Any]

FUNCTIONS: dict[str, Callable[..., Numbers]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": lambda a, b: _quotient(a, b),
    "min": np.fmin, "max": np.fmax, "neg": np.negative, "abs": np.abs,
    **{str(name): each for name, each in ELEMENTARY.items()},
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "~": np.invert,
    "<<": np.left_shift, ">>": np.right_shift,
    "fma": lambda a, b, c: a * b + c, "move": lambda x: x,
}  # fmt: skip
REDUCTIONS: dict[str, Callable[..., Numbers]] = {
    "+": np.sum, "*": np.prod, "min": np.fmin.reduce, "max": np.fmax.reduce,
    "&": np.bitwise_and.reduce, "|": np.bitwise_or.reduce, "^": np.bitwise_xor.reduce,
}  # fmt: skip
ACCUMULATED: dict[str, Callable[..., Numbers]] = {
    "+": np.add.accumulate, "*": np.multiply.accumulate, "min": np.fmin.accumulate,
    "max": np.fmax.accumulate, "&": np.bitwise_and.accumulate, "|": np.bitwise_or.accumulate,
    "^": np.bitwise_xor.accumulate,
}  # fmt: skip
COMPARED: dict[str, Callable[..., Numbers]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


SOME_ROWS = 64  # of an array that data name, where axes are shorter than they are

Points: TypeAlias = Mapping[ir.Axis, Numbers]  # where along some axes, in ascending order


def evaluate(
    program: ir.Program,
    arrays: Mapping[str, Numbers],
    numbers: Mapping[str, float] | None = None,
    sizes: Mapping[ir.Axis, int] | None = None,
) -> dict[str, Numbers]:
    """The arrays that the program stores, from those that it loads and its parameters; with `sizes`
    along shorter axes."""
    return Evaluation(program, arrays, numbers or {}, sizes or {}).outputs()


def evaluate_at(
    program: ir.Program,
    arrays: Mapping[str, Numbers],
    numbers: Mapping[str, float],
    points: Points,
) -> dict[str, tuple[Numbers, Numbers]]:
    """Elements of the arrays that the program stores, where they are and what they should be, at
    some points of axes over which nothing is folded."""
    folded = {dim.axis for each in program.instructions for dim in (*each.over, *each.scanned)}
    if mixed := folded & points.keys():
        raise CheckError(f"all of axis '{next(iter(mixed)).name}' is needed: it is folded over")
    part = Evaluation(program, arrays, numbers, {}, points)
    made = part.outputs()
    found = {}
    for name, places in part.written().items():
        where = np.unique(places)
        found[name] = where, made[name][where]
    return found


class Evaluation:
    def __init__(
        self,
        program: ir.Program,
        arrays: Mapping[str, Numbers],
        numbers: Mapping[str, float],
        sizes: Mapping[ir.Axis, int],
        points: Points | None = None,
    ) -> None:
        self.program = in_pieces(program)
        whole = {axis: np.arange(sizes.get(axis, axis.size)) for axis in program.axes}
        self.points = {**whole, **(points or {})}
        self.sizes = {axis: len(each) for axis, each in self.points.items()}
        self.elements = elements(program, sizes)
        self.short = bool(sizes)
        self.arrays = arrays
        self.numbers = numbers
        self.values: dict[ir.Instruction, Numbers] = {}
        self.updated = {each.action.access.array for each in self.program.instructions
                        if isinstance(each.action, ir.Load)}  # fmt: skip

    def outputs(self) -> dict[str, Numbers]:
        made: dict[str, Numbers] = {}
        for instruction in self.program.instructions:
            match instruction.action:
                case ir.Store(access, value):
                    made[access.array.name] = self.stored(instruction, access, value)
                case ir.Load(access):
                    self.values[instruction] = self.loaded(instruction, access)
                case ir.Compute(op, operands):
                    self.values[instruction] = self.computed(
                        instruction, op, operands, instruction.action.value
                    )
                case ir.Scan():
                    self.values[instruction] = self.scanned(instruction, instruction.action)
                case ir.Put() | ir.Get():
                    raise CheckError("a temporary array is no part of what a program means")
                case _:
                    assert_never(instruction.action)
        return made

    # Values have one axis for each axis of the program; of size 1 where they do not vary.

    def index(self, axis: ir.Axis) -> Numbers:
        shape = [self.sizes[axis] if each is axis else 1 for each in self.program.axes]
        return self.points[axis].reshape(shape)

    def place(self, access: ir.Access) -> Numbers:
        total = np.zeros([1] * len(self.program.axes), np.int64)
        for subscript, stride in zip(access.subscripts, access.array.strides, strict=True):
            total = total + stride * self.along(subscript)
        return total

    def inside(self, access: ir.Access) -> Numbers:
        """Where data name an element of the array, and the condition holds."""
        found = np.ones([1] * len(self.program.axes), np.bool_)
        if access.where is not None:
            found = found & (self.expression(access.where.condition) != 0)
        for subscript, rows in zip(access.subscripts, rows_of(access, self.short), strict=True):
            if isinstance(subscript, ir.ByData):
                named = self.operand(subscript.value, dtype_of(subscript.value))
                found = found & (named >= 0) & (named < rows)
        return found

    def along(self, subscript: ir.Subscript) -> Numbers:
        if isinstance(subscript, ir.ByData):
            named = self.operand(subscript.value, dtype_of(subscript.value))
            return named.astype(np.int64)
        if isinstance(subscript, ir.Crooked):
            return self.expression(subscript.expr)
        total = np.full([1] * len(self.program.axes), subscript.offset)
        for axis, factor in subscript.factors.items():
            total = total + factor * self.index(axis)
        return total

    def expression(self, expr: Expr) -> Numbers:
        """An expression over the names of axes."""
        names = variables(expr)
        env = {axis.name: self.index(axis) for axis in self.program.axes if axis.name in names}
        found: Numbers = np.asarray(evaluate_index(expr, env))
        return found.reshape([1] * len(self.program.axes)) if not found.ndim else found

    def shape(self, instruction: ir.Instruction) -> tuple[int, ...]:
        axes = {dim.axis for dim in instruction.dims}
        return tuple(self.sizes[axis] if axis in axes else 1 for axis in self.program.axes)

    def loaded(self, instruction: ir.Instruction, access: ir.Access) -> Numbers:
        given = self.given(access.array.name, self.elements[access.array])
        place = self.place(access)
        if access.where is None and not access.named:
            return wide(numbers_of(given[place], instruction.dtype), instruction.dtype)
        place, inside = np.broadcast_arrays(place, self.inside(access))
        held = numbers_of(given[np.where(inside, place, 0)], instruction.dtype)
        found = np.where(inside, held, access.other)
        return wide(found, instruction.dtype)

    def given(self, name: str, elements: int) -> Numbers:
        if name not in self.arrays or self.arrays[name].size < elements:
            raise CheckError(f"'{name}' is missing, or has fewer than {elements} elements")
        return self.arrays[name].reshape(-1)

    def stored(self, instruction: ir.Instruction, access: ir.Access, value: ir.Operand) -> Numbers:
        made = np.zeros(self.elements[access.array], access.array.dtype.numpy)
        if access.array.name in self.arrays:  # what is not stored stays
            given = self.given(access.array.name, len(made))
            made[:] = given[: len(made)] if access.array in self.updated else 0
        place = np.broadcast_to(self.place(access), self.shape(instruction))
        with np.errstate(over="ignore"):  # rounded to an infinity
            held = memory_of(self.operand(value, instruction.dtype), instruction.dtype)
            made[place] = np.broadcast_to(held, place.shape)
        return made

    def operand(self, operand: ir.Operand, dtype: DType) -> Numbers:
        ones = [1] * len(self.program.axes)
        match operand:
            case ir.Constant(value):
                return wide(np.full(ones, value), dtype)
            case ir.Parameter(name, own):  # a cast has another type than what it casts
                return wide(np.full(ones, self.numbers[name]), own)
            case ir.IndexOf():
                return wide(self.expression(operand.expr), operand.dtype)
            case ir.Result(instruction):
                return self.values[instruction]
            case _:
                raise CheckError("a fold is no plain operand")

    def computed(
        self, instruction: ir.Instruction, op: str, operands: tuple[ir.Operand, ...], value: Value
    ) -> Numbers:
        running = instruction.running
        plain = [each for each in operands if not isinstance(each, ir.Running)]
        values = [self.operand(each, instruction.dtype) for each in plain]
        with np.errstate(all="ignore"):
            if op == "cast":
                made = narrowed(values[0], instruction.dtype)
            elif isinstance(value, Choose):
                made = self.chosen(value, values)
            elif running is None:
                made = FUNCTIONS[op](*values)
            else:
                made = self.folded(instruction, op, running, values)
        return wide(made, instruction.dtype)

    def chosen(self, value: Choose, values: list[Numbers]) -> Numbers:
        if isinstance(value.condition, Compare):
            left, right, then, otherwise = values
            return np.where(COMPARED[value.condition.op](left, right), then, otherwise)
        then, otherwise = values
        return np.where(self.expression(value.condition) != 0, then, otherwise)

    def varying(self, instruction: ir.Instruction) -> tuple[int, ...]:
        gone = {dim.axis for dim in instruction.over}
        pairs = zip(self.program.axes, self.shape(instruction), strict=True)
        return tuple(1 if axis in gone else size for axis, size in pairs)

    def folded(
        self, instruction: ir.Instruction, op: str, running: ir.Running, values: list[Numbers]
    ) -> Numbers:
        start, shape = self.values[running.start], self.shape(instruction)
        if op == "fma":
            return start + _contracted(values, shape, self.varying(instruction))
        gone = {dim.axis for dim in running.over}
        axes = tuple(at for at, axis in enumerate(self.program.axes) if axis in gone)
        folded = REDUCTIONS[op](np.broadcast_to(values[0], shape), axis=axes, keepdims=True)
        return FUNCTIONS[op](start, folded)

    def scanned(self, instruction: ir.Instruction, scan: ir.Scan) -> Numbers:
        whole = np.broadcast_to(
            self.operand(scan.value, instruction.dtype), self.shape(instruction)
        )
        at = self.program.axes.index(scan.axis)
        with np.errstate(all="ignore"):
            made = ACCUMULATED[scan.op](whole, axis=at)
        if scan.exclusive:
            nothing = np.full_like(np.take(made, [0], axis=at), neutral(scan.op, instruction.dtype))
            before = np.take(made, range(made.shape[at] - 1), axis=at)
            made = np.concatenate([nothing, before], axis=at)
        return wide(made.astype(whole.dtype), instruction.dtype)

    def written(self) -> dict[str, Numbers]:
        """Where in its arrays the program stores."""
        found: dict[str, Numbers] = {}
        for each in self.program.instructions:
            if isinstance(each.action, ir.Store):
                found[each.action.access.array.name] = self.place(each.action.access)
        return found


def written(program: ir.Program, sizes: Mapping[ir.Axis, int]) -> dict[str, Numbers]:
    """Which elements of its arrays a program stores along shorter axes."""
    whole = Evaluation(program, {}, {}, sizes)
    counts = {array.name: count for array, count in whole.elements.items()}
    found: dict[str, Numbers] = {}
    for name, places in whole.written().items():
        found[name] = np.zeros(counts[name], np.bool_)
        found[name][places] = True
    return found


def elements(program: ir.Program, sizes: Mapping[ir.Axis, int]) -> dict[ir.Array, int]:
    """Elements of each array: all, or up to the last that is used along shorter axes."""
    if not sizes:
        return {array: array.elements for array in program.arrays}
    found = dict.fromkeys(program.arrays, 1)
    for each in in_pieces(program).instructions:
        if isinstance(each.action, ir.Load | ir.Store):
            access, last = each.action.access, 0
            rows = rows_of(access, short=True)
            for subscript, stride, n in zip(
                access.subscripts, access.array.strides, rows, strict=True
            ):
                if isinstance(subscript, ir.ByData):
                    last += stride * (n - 1)
                else:
                    last += stride * _greatest(subscript, sizes)
            most = access.array.elements
            found[access.array] = max(found[access.array], min(1 + last, most))
    return found


def rows_of(access: ir.Access, short: bool) -> tuple[int, ...]:
    """Below what data have to be for each subscript; of shortened axes they name few rows."""
    shape = access.array.shape
    return tuple(min(size, SOME_ROWS) for size in shape) if short else shape


def _greatest(subscript: ir.Affine | ir.Crooked, sizes: Mapping[ir.Axis, int]) -> int:
    """The greatest that a subscript is along shorter axes."""
    if isinstance(subscript, ir.Crooked):
        bounds = {a.name: (0, sizes.get(a, a.size) - 1) for a in subscript.axes}
        return max(0, range_of(subscript.expr, bounds).high)
    ends = [f * (sizes.get(a, a.size) - 1) for a, f in subscript.factors.items() if f > 0]
    return subscript.offset + sum(ends)


def _contracted(factors: list[Numbers], shape: tuple[int, ...], kept: tuple[int, ...]) -> Numbers:
    """The sum of products over the axes that are not kept, without an array of all products."""
    axes = list(range(len(shape)))
    absent = [
        a for a in axes if kept[a] == 1 < shape[a] and all(each.shape[a] == 1 for each in factors)
    ]
    own = [[a for a in axes if each.shape[a] > 1] for each in factors]
    wanted = [a for a in axes if kept[a] > 1 and any(a in names for names in own)]
    parts: list[Any] = []
    for each, names in zip(factors, own, strict=True):
        parts += [each.reshape([each.shape[a] for a in names]), names]
    total = np.einsum(*parts, wanted, optimize=True)
    repeated = math.prod(shape[a] for a in absent)  # an axis that no factor varies along
    made: Numbers = total.reshape([kept[a] if a in wanted else 1 for a in axes]) * repeated
    return made


def wide(values: Numbers, dtype: DType) -> Numbers:
    """Floats of the type, written in double precision; integers of the type, wrapped."""
    with np.errstate(over="ignore"):  # rounded to an infinity
        made = numbers_of(memory_of(np.asarray(values), dtype), dtype)
    return made.astype(np.float64) if dtype.is_real else made


def _quotient(left: Numbers, right: Numbers) -> Numbers:
    if left.dtype.kind == "f":
        return np.divide(left, right)
    down = left // right
    uneven = (left != down * right) & ((left < 0) != (right < 0))
    return np.where(right == 0, 0, down + uneven).astype(left.dtype)


def narrowed(values: Numbers, dtype: DType) -> Numbers:
    """Converted: to an integer by truncation, to the nearest that there is; NaN is 0."""
    if dtype.is_real or values.dtype.kind != "f":
        return values
    limits = np.iinfo(dtype.numpy)
    cut = np.clip(np.nan_to_num(np.trunc(values)), float(limits.min), float(limits.max))
    top = cut >= float(limits.max)
    return np.where(top, limits.max, np.where(top, 0, cut).astype(dtype.numpy))
