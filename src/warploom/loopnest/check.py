"""When a loop nest is well formed: `check(program)` raises one CheckError or returns nothing.

A program does not know where it was written; whoever does gives the lines along.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import TypeAlias

import numpy as np

from warploom.errors import CheckError, Span
from warploom.index.evaluate import evaluate
from warploom.kernel.bounds import INT_MAX
from warploom.kernel.check import check_name
from warploom.kernel.dtype import DType
from warploom.kernel.ir import ARITY, FLOAT_ONLY, INTEGER_ONLY, dtype_of
from warploom.loopnest import ir
from warploom.loopnest.pieces import pieces
from warploom.loopnest.tiling import tilings

# Places of a store that are looked at one by one.
MOST_PLACES = 1 << 24

# What to do with numbers of types in which nothing is computed.
INSTEAD = "cast it to f32 first, and what is stored back: cast(x[i], f32), cast(total, bf16)"

# Where axes, arrays, parameters and instructions were written.
Lines: TypeAlias = Mapping[object, Span]


def check(program: ir.Program, lines: Lines | None = None) -> None:
    lines = lines or {}
    if not any(isinstance(each.action, ir.Store) for each in program.instructions):
        raise CheckError(f"'{program.name}' stores nothing", advice="give an array its values")
    _check_names(program, lines)
    for axis in program.axes:
        if not tilings(axis):
            raise CheckError(
                f"no tiles of the listed sizes make up the axis '{axis}' of size {axis.size}",
                lines.get(axis),
                "list divisors of its size, or allow it a tail",
            )
    for array in program.arrays:
        check_array(array, lines.get(array))
    for parameter in program.parameters:
        with _at(lines.get(parameter)):
            check_name(parameter.name)
            check_computes(parameter.dtype, f"the number '{parameter}'")
    seen = set[ir.Instruction]()
    for instruction in program.instructions:
        with _at(lines.get(instruction)):
            _check_dims(instruction)
            for each in pieces(instruction):
                _check_action(each)
                for operand in each.operands:
                    _check_operand(operand, each, seen)
                seen.add(each)
        seen.add(instruction)
    _check_ends(program, lines)
    _check_crossing(program, lines)
    _check_memory(program, lines)
    _check_used(program, lines)


@contextmanager
def _at(where: Span | None) -> Iterator[None]:
    """What is wrong in here is wrong there."""
    try:
        yield
    except CheckError as error:
        error.span = error.span or where
        raise


def _check_names(program: ir.Program, lines: Lines) -> None:
    named: list[object] = [*program.axes, *program.tiles, *program.dims, *program.instructions]
    named += [*program.arrays, *program.parameters]
    names = Counter(map(str, named))
    for each in reversed(named):  # the later one is the one to rename
        if names[str(each)] > 1:
            raise CheckError(
                f"the name '{each}' is used twice", lines.get(each), "rename one of the two"
            )


def check_computes(dtype: DType, what: str, where: Span | None = None) -> None:
    """Refuses arithmetic in types that are stored and moved alone."""
    if dtype.is_code:
        raise CheckError(f"{what} is of {dtype!r}: nothing is computed in it", where, INSTEAD)


def check_array(array: ir.Array, where: Span | None = None) -> None:
    with _at(where):
        check_name(array.name)
    for size, stride in zip(array.shape, array.strides, strict=True):
        whole = isinstance(size, Integral) and isinstance(stride, Integral)
        if not whole or size < 1 or stride < 0:
            raise CheckError(
                f"'{array}' has shape {array.shape} and strides {array.strides}",
                where,
                "sizes are whole numbers from 1 on, strides from 0 on",
            )
    if array.elements > INT_MAX:
        raise CheckError(
            f"'{array}' has {array.elements} elements",
            where,
            f"indices of kernels have 32 bits: at most {INT_MAX}",
        )


def _check_dims(instruction: ir.Instruction) -> None:
    """It runs along all tiles of its axes, each once."""
    for axis in instruction.axes:
        levels = sorted(
            -1 if dim.tile is None else dim.tile.level
            for dim in instruction.dims
            if dim.axis is axis
        )
        if levels != [*([-1] if axis.dynamic else []), *range(len(axis.tiles))]:
            raise CheckError(f"'{instruction}' does not run along all of '{axis}' once")


def _check_action(instruction: ir.Instruction) -> None:
    match instruction.action:
        case ir.Compute("cast", (given,)):
            _check_cast(dtype_of(given), instruction)
        case ir.Compute("move" | "choose"):
            return
        case ir.Compute(op, operands):
            check_computes(instruction.dtype, f"'{instruction}'")
            arity = ARITY[op]  # type: ignore[index]  # the others are above
            if len(operands) != arity:
                raise CheckError(f"'{instruction}': '{op}' takes {arity} operands")
            wrong = INTEGER_ONLY if instruction.dtype.is_float else FLOAT_ONLY
            if op in wrong:
                raise CheckError(f"'{instruction}': '{op}' is not for {instruction.dtype!r}")
        case ir.Load(access) | ir.Store(access):
            _check_access(access, instruction)
        case ir.Scan(_, _, over):
            check_computes(instruction.dtype, f"'{instruction}'")
            own = {dim for dim in instruction.dims if dim.axis in {each.axis for each in over}}
            if set(over) != own or len({dim.axis for dim in over}) != 1:
                raise CheckError(f"'{instruction}' does not scan along a whole axis")
        case _:
            raise CheckError(f"'{instruction}' is of a temporary array, which nobody writes")


def _check_cast(given: DType, instruction: ir.Instruction) -> None:
    codes = [each for each in (given, instruction.dtype) if each.is_code]
    if codes and DType.F32 not in (given, instruction.dtype):
        raise CheckError(
            f"'{instruction}' makes {instruction.dtype!r} of {given!r}",
            advice=f"{codes[0]!r} becomes f32, and f32 becomes it",
        )


def _check_access(access: ir.Access, instruction: ir.Instruction) -> None:
    for axis in access.axes:
        if axis not in instruction.axes:
            raise CheckError(f"'{instruction}' does not run along '{axis}', which it is indexed by")
    for at, (subscript, size) in enumerate(zip(access.subscripts, access.array.shape, strict=True)):
        if isinstance(subscript, ir.ByData):  # what is not inside is not loaded
            continue
        low, high = subscript.range
        if access.where is None and (low < 0 or high >= size):
            raise CheckError(
                f"subscript {at} of '{access.array}' runs from {low} to {high}, but its size is "
                f"{size}",
                advice="load where it is inside: x.at((i - 1, j), where=(i - 1).expr.ge(0)), which "
                "is 0 elsewhere; or declare a larger array",
            )


# -- operands --------------------------------------------------------------------------------------


def _check_operand(
    operand: ir.Operand, instruction: ir.Instruction, seen: set[ir.Instruction]
) -> None:
    match operand:
        case ir.Constant() | ir.Parameter():
            return
        case ir.IndexOf(axes):
            for axis in axes:
                if axis not in instruction.axes:
                    raise CheckError(f"'{instruction}' does not run along '{axis}', which it uses")
        case ir.Result(producer, pairs):
            if producer not in seen:
                raise CheckError(f"'{instruction}' uses '{producer}', which comes after it")
            _check_pairs(producer, pairs, instruction.dims)
        case ir.Running(start, pairs, over):
            if start not in seen or start.over:
                raise CheckError(f"'{instruction}' starts with '{start}', which comes after it")
            _check_folded(instruction, over)
            kept = tuple(dim for dim in instruction.dims if dim not in over)
            _check_pairs(start, pairs, kept)
            if {dim.axis for dim in start.dims} != {dim.axis for dim in kept}:
                raise CheckError(f"'{instruction}' starts with '{start}', which has other axes")
        case _:
            raise CheckError(f"'{instruction}' uses {operand!r:.40}, which is none of its program")


def _check_pairs(producer: ir.Instruction, pairs: ir.Pairs, mine: Iterable[ir.Dim]) -> None:
    """Every dimension along which a result varies is shared, or has its counterpart."""
    own = set(mine)
    partner = dict(pairs)
    for dim in producer.dims:
        if dim in own or dim in producer.over:
            continue
        other = partner.pop(dim, None)
        if other is None or other not in own or other.tile is not dim.tile:
            raise CheckError(f"'{producer}' varies along '{dim}', which is used nowhere")
    if partner:
        raise CheckError(f"'{producer}' does not vary along '{next(iter(partner))}'")


def _check_folded(instruction: ir.Instruction, over: tuple[ir.Dim, ...]) -> None:
    axes = {dim.axis for dim in over}
    if not axes or set(over) != {dim for dim in instruction.dims if dim.axis in axes}:
        raise CheckError(f"'{instruction}' does not fold over whole axes")


def _check_ends(program: ir.Program, lines: Lines) -> None:
    """What counts the tiles of an axis is one loop: at its end a fold is done, and nothing that
    needs it is inside."""
    ended: dict[ir.Instruction, set[ir.Dim]] = {}
    for instruction in program.instructions:
        used = [each.instruction for each in instruction.operands if isinstance(each, ir.Result)]
        used += [each.start for each in instruction.operands if isinstance(each, ir.Running)]
        before = {dim for each in used for dim in ended[each]}
        again = before & set(instruction.dims)
        if again:
            raise CheckError(
                f"'{instruction}' runs along '{again.pop().axis}', but needs a fold over all of it",
                lines.get(instruction),
                "let it run along another axis of the same size, or one that is not dynamic",
            )
        ended[instruction] = before | {dim for dim in instruction.over if dim.tile is None}


def _check_crossing(program: ir.Program, lines: Lines) -> None:
    """A fold is inside the loops that it does not fold over. Two of them want two loops that count
    tiles the other way round each."""
    folds = [each for each in program.instructions if each.over or each.scanned]
    for number, one in enumerate(folds):
        for other in folds[:number]:
            along = [set(f.over) | set(f.scanned) for f in (one, other)]
            ends = [{d for d in own if d.tile is None} for own in along]
            keeps = [set(f.dims) - own for f, own in zip((one, other), along, strict=True)]
            if ends[0] & keeps[1] and ends[1] & keeps[0]:
                first, second = ends[0] & keeps[1], ends[1] & keeps[0]
                raise CheckError(
                    f"'{one}' {_word(one)} over '{first.pop().axis}' and '{other}' over "
                    f"'{second.pop().axis}', each for all of the other axis",
                    lines.get(one),
                    "let one of them run along other axes of the same sizes, or along axes that "
                    "are not dynamic",
                )


def _word(instruction: ir.Instruction) -> str:
    return "scans" if instruction.scanned else "folds"


def _check_used(program: ir.Program, lines: Lines) -> None:
    """What nobody uses a compiler leaves out: it would be in the bound, but not in the kernel."""
    used = {
        each.start if isinstance(each, ir.Running) else each.instruction
        for instruction in program.instructions for each in instruction.operands
        if isinstance(each, ir.Running | ir.Result)
    }  # fmt: skip
    for instruction in program.instructions:
        if instruction not in used and not isinstance(instruction.action, ir.Store):
            raise CheckError(
                f"'{instruction}' is used nowhere",
                lines.get(instruction),
                "leave it out, or store it",
            )


# -- memory ----------------------------------------------------------------------------------------


def _check_memory(program: ir.Program, lines: Lines) -> None:
    """Instructions that share nothing but an array may come in any order: what is stored is stored
    once, and loaded at most by who stores it, from the same place."""
    stored: dict[ir.Array, ir.Instruction] = {}
    for instruction in program.instructions:
        if isinstance(instruction.action, ir.Store):
            access = instruction.action.access
            if access.array in stored:
                raise CheckError(f"'{access.array}' is stored to twice", lines.get(instruction))
            stored[access.array] = instruction
            with _at(lines.get(instruction)):
                _check_injective(access, instruction)
    for instruction in program.instructions:
        for access in loads_of(instruction):
            if access.array in stored and not _is_update(access, instruction):
                raise CheckError(
                    f"'{access.array}' is loaded and stored to",
                    lines.get(instruction),
                    "load the element that is stored alone, x[i] = f(x[i]); else use two arrays",
                )


def _is_update(access: ir.Access, instruction: ir.Instruction) -> bool:
    """Whether a thread loads the very element that it stores then."""
    if not isinstance(instruction.action, ir.Store):
        return False
    own = instruction.action.access
    pairs = zip(access.subscripts, own.subscripts, strict=True)
    return access.array is own.array and access.where is None and all(
        isinstance(a, ir.Affine) and isinstance(b, ir.Affine)
        and (a.offset, a.factors) == (b.offset, b.factors)
        for a, b in pairs
    )  # fmt: skip


def loads_of(instruction: ir.Instruction) -> list[ir.Access]:
    """What an instruction loads, by itself or for what it computes."""
    own = [instruction.action.access] if isinstance(instruction.action, ir.Load) else []
    return own + [each.access for each in instruction.operands if isinstance(each, ir.Element)]


def _check_injective(access: ir.Access, instruction: ir.Instruction) -> None:
    """Two places of the axes are two elements: each stride is beyond what lies within it. Of what
    is not linear all places are looked at."""
    if access.named:
        raise CheckError(f"data decide where '{instruction}' stores to '{access.array}'")
    if not access.is_linear:
        _check_each(access, instruction)
        return
    factors: dict[ir.Axis, int] = dict.fromkeys(instruction.axes, 0)
    factors |= access.place.factors
    reach = 0
    for axis, factor in sorted(factors.items(), key=lambda each: abs(each[1])):
        if axis.size > 1 and abs(factor) <= reach:
            raise _twice(access, instruction)
        reach += abs(factor) * (axis.size - 1)


def _check_each(access: ir.Access, instruction: ir.Instruction) -> None:
    sizes = [axis.size for axis in instruction.axes]
    if math.prod(sizes) > MOST_PLACES:
        raise CheckError(
            f"'{instruction}' has subscripts that are not linear, and too many to look at",
            advice="store along axes, and let loads have such subscripts",
        )
    places = np.indices(sizes).reshape(len(sizes), -1)
    env = {a.name: each for a, each in zip(instruction.axes, places, strict=True)}
    place = sum(
        np.asarray(evaluate(each.expr, env)) * stride
        for each, stride in zip(access.subscripts, access.array.strides, strict=True)
        if not isinstance(each, ir.ByData)
    )
    if len(np.unique(place)) < math.prod(sizes):
        raise _twice(access, instruction)


def _twice(access: ir.Access, instruction: ir.Instruction) -> CheckError:
    return CheckError(
        f"'{instruction}' may store to an element of '{access.array}' twice",
        advice="use every axis in a subscript of its own",
    )
