"""Do the arguments of a launch fit the kernel? One rule for the simulator and every device.

In come descriptions of the arguments; out go the scalars, those left out inferred from the sizes
of the arrays, and the grid. Everything is checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from warploom.errors import CheckError, DeviceError, UnsupportedError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, Const, Expr, Var, variables, walk
from warploom.index.ranges import Ranges
from warploom.index.show import show
from warploom.kernel import ir
from warploom.kernel.bounds import counter_range, index_limits, static_bounds
from warploom.kernel.dtype import DType
from warploom.kernel.traverse import exprs_of
from warploom.machine.record import CUDA


@dataclass(frozen=True, slots=True)
class Described:
    """What a launch needs to know of an array argument, wherever its data is."""

    size: int
    dtype: DType
    contiguous: bool = True
    writable: bool = True


NOTHING = (0, 0, 0)
TOO_LARGE = "launch over a part of the array at a time, or ask for indices of 64 bits"

Argument: TypeAlias = "Described | int | float"


@dataclass(frozen=True, slots=True)
class Binding:
    """Arguments that fit: a number for each scalar parameter, and the grid, which is `NOTHING`
    where outputs are empty: such a launch is none."""

    scalars: dict[str, int | float]
    grid: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        x, y, z = self.grid
        return x * y * z


def bind(
    kernel: ir.Kernel, arguments: Sequence[Argument], named: Mapping[str, int | float] | None = None
) -> Binding:
    """Matches arguments with parameters: all of them in order, or the arrays alone.

    Scalars may also be named; a scalar that is nowhere given is inferred from an array's size.
    """
    try:
        return _bind(kernel, arguments, named)
    except CheckError as error:  # a size or grid that is not defined for these scalars
        raise DeviceError(f"'{kernel.name}' cannot be launched so: {error.message}") from None


def _bind(
    kernel: ir.Kernel, arguments: Sequence[Argument], named: Mapping[str, int | float] | None
) -> Binding:
    arrays, scalars = _match(kernel, arguments, dict(named or {}))
    for param in kernel.arrays:
        _check_array(param, arrays[param.name])
    _infer(kernel, arrays, scalars)
    integers = _checked_scalars(kernel, scalars)
    nothing = _is_for_nothing(kernel, integers)
    for param in kernel.arrays:
        if arrays[param.name].size == 0 and not nothing:
            raise DeviceError(f"'{param.name}' is empty", advice="give at least one element")
        _check_size(param, arrays[param.name], integers)
    if nothing:
        return Binding(scalars, NOTHING)
    for condition in kernel.requires:
        if not evaluate(condition, integers):
            raise DeviceError(f"'{kernel.name}' requires {show(condition)}{_given(integers)}")
    return Binding(scalars, _grid(kernel, integers))


def _is_for_nothing(kernel: ir.Kernel, integers: Mapping[str, int]) -> bool:
    """Whether there is nothing to write and no block to write it, so that nothing need hold."""
    written = [each.size for each in kernel.arrays if not each.const]
    if any(evaluate(size, integers) for size in written):
        return False
    return any(evaluate(side, integers) == 0 for side in kernel.grid)


def describe_numpy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Described:
    known = {each.value: each for each in DType}
    name = array.dtype.name
    if name not in known or not array.dtype.isnative:
        raise DeviceError(
            f"kernels have no element type {array.dtype}", advice="use " + ", ".join(known)
        )
    return Described(array.size, known[name], array.flags.c_contiguous, array.flags.writeable)


def _match(
    kernel: ir.Kernel, arguments: Sequence[Argument], scalars: dict[str, int | float]
) -> tuple[dict[str, Described], dict[str, int | float]]:
    unknown = sorted(scalars.keys() - {each.name for each in kernel.scalars})
    if unknown:
        raise DeviceError(f"'{kernel.name}' has no scalar parameter '{unknown[0]}'")
    params: Sequence[ir.Param] = kernel.params
    if len(arguments) != len(params):
        params = [p for p in params if isinstance(p, ir.ArrayParam)]
    if len(arguments) != len(params):
        wanted = ", ".join(param.name for param in kernel.params)
        raise DeviceError(
            f"'{kernel.name}' takes ({wanted}), but {len(arguments)} arguments are given",
            advice="give all of them in order, or the arrays alone",
        )
    arrays: dict[str, Described] = {}
    for param, argument in zip(params, arguments, strict=True):
        match param, argument:
            case ir.ArrayParam(name), Described():
                arrays[name] = argument
            case ir.ScalarParam(name), int() | float():
                scalars[name] = argument
            case ir.ArrayParam(name), _:
                raise DeviceError(f"'{name}' must be an array, not a number")
            case _:
                raise DeviceError(f"'{param.name}' must be a number, not an array")
    return arrays, scalars


def _check_array(param: ir.ArrayParam, given: Described) -> None:
    bits = param.dtype.is_code and given.dtype.value == param.dtype.storage.name  # as NumPy has it
    if given.dtype is not param.dtype and not bits:
        raise DeviceError(
            f"'{param.name}' holds {given.dtype.value}, but the kernel takes {param.dtype.value}",
            advice="convert the array first; nothing was computed",
        )
    if not given.contiguous:
        raise DeviceError(
            f"'{param.name}' is not contiguous", advice="make a contiguous copy of it first"
        )
    if not param.const and not given.writable:
        raise DeviceError(
            f"'{param.name}' is written, but the array is read-only",
            advice="give one that can be written; what comes by DLPack can be from NumPy 2.3 on",
        )


def _infer(
    kernel: ir.Kernel, arrays: Mapping[str, Described], scalars: dict[str, int | float]
) -> None:
    """Solves `size(n) = actual size` for scalars that are still unknown."""
    for param in kernel.arrays:
        names = variables(param.size) - scalars.keys()
        if len(names) == 1:
            name = next(iter(names))
            solved = _solve(param.size, name, arrays[param.name].size, scalars)
            if solved is not None:
                scalars[name] = solved


def _solve(size: Expr, name: str, value: int, known: Mapping[str, int | float]) -> int | None:
    """The integer at which `size` equals `value`, for sums and products with one unknown."""
    match size:
        case Var():
            return value
        case Binary("+" | "-" | "*" as op, left, right):
            inner, other = (left, right) if name in variables(left) else (right, left)
            if name in variables(other) or (op == "-" and inner is right):
                return None
            constant = int(evaluate(other, _integers(known)))
            if op == "*":
                if constant == 0 or value % constant:
                    return None
                return _solve(inner, name, value // constant, known)
            return _solve(inner, name, value + (constant if op == "-" else -constant), known)
        case _:
            return None


def _integers(scalars: Mapping[str, int | float]) -> dict[str, int]:
    return {name: value for name, value in scalars.items() if isinstance(value, int)}


def _checked_scalars(kernel: ir.Kernel, scalars: Mapping[str, int | float]) -> dict[str, int]:
    for param in kernel.scalars:
        if param.name not in scalars:
            raise DeviceError(
                f"'{param.name}' is not given and does not follow from the arrays",
                advice=f"give it by name: {param.name}=…",
            )
        value = scalars[param.name]
        whole = param.dtype.is_float or isinstance(value, int)
        if not whole or not param.dtype.has(value):
            large = isinstance(value, int) and param.dtype is kernel.index is DType.I32
            raise DeviceError(
                f"'{param.name}' must be an {param.dtype.value}, not {value}",
                advice=TOO_LARGE if large else "",
            )
    return _integers(scalars)


def _check_size(param: ir.ArrayParam, given: Described, integers: Mapping[str, int]) -> None:
    wanted = evaluate(param.size, integers)
    if wanted != given.size:
        formula = "" if isinstance(param.size, Const) else f"{show(param.size)} = "
        raise DeviceError(
            f"'{param.name}' has {given.size} elements, but the kernel needs {formula}{wanted}"
            + _given(integers)
        )


def _given(integers: Mapping[str, int]) -> str:
    if not integers:
        return ""
    return " with " + ", ".join(f"{name} = {value}" for name, value in integers.items())


def _grid(kernel: ir.Kernel, integers: Mapping[str, int]) -> tuple[int, int, int]:
    x, y, z = (int(evaluate(size, integers)) for size in kernel.grid)
    for size, limit in zip((x, y, z), CUDA.grid_sides, strict=True):
        if not 1 <= size <= limit:
            raise DeviceError(
                f"'{kernel.name}' cannot be launched with a grid of {x} × {y} × {z} blocks"
                + _given(integers)
            )
    return x, y, z


def check_overlap(kernel: ir.Kernel, spans: Mapping[str, tuple[int, int]]) -> None:
    """Raises DeviceError if an array that is written shares memory with another, unless both are
    declared without `restrict` and are the same array. Spans are first and last address + 1."""
    for param in kernel.arrays:
        start, end = spans[param.name]
        for other in kernel.arrays:
            first, last = spans[other.name]
            if param.const or other is param or end <= first or last <= start:
                continue
            if param.restrict or other.restrict:
                raise DeviceError(
                    f"'{param.name}' is written and shares memory with '{other.name}'",
                    advice="give the output its own array; a kernel built by hand may declare both "
                    "with restrict=False",
                )
            if (start, end, param.dtype) != (first, last, other.dtype):
                raise DeviceError(
                    f"'{param.name}' is written and shares a part of its memory with "
                    f"'{other.name}'",
                    advice="give the same array for both, or arrays that lie apart",
                )


def check_indices(kernel: ir.Kernel, binding: Binding) -> None:
    """Raises DeviceError if some index expression may leave its type in this launch."""
    if not binding.blocks:
        return
    bounds = static_bounds(kernel)
    for name, size in zip(("block_x", "block_y", "block_z"), binding.grid, strict=True):
        bounds[name] = (0, size - 1)
    bounds |= {n: (v, v) for n, v in binding.scalars.items() if isinstance(v, int)}
    for blocks in kernel.grid:  # C text computes the grid itself
        _check_width(kernel, blocks, Ranges(bounds))
    _check_body_indices(kernel, kernel.body, bounds)


def _check_body_indices(
    kernel: ir.Kernel, body: tuple[ir.Stmt, ...], outer: Mapping[str, tuple[int, int]]
) -> None:
    bounds = dict(outer)
    for stmt in body:
        ranges = Ranges(bounds)
        exprs = exprs_of(stmt)
        if isinstance(stmt, ir.Load | ir.Store) and stmt.predicate is not None:
            exprs = iter([stmt.predicate]) if _is_never(stmt.predicate, ranges) else exprs
        for expr in exprs:
            _check_width(kernel, expr, ranges)
        match stmt:
            case ir.Let(name, expr):
                bounds[name] = ranges.of(expr)
            case ir.Named(name):
                bounds[name] = stmt.bounds
            case ir.For(var, _, _, inner):
                first, last = counter_range(stmt, ranges)
                if first <= last:
                    _check_width(kernel, Const(last + stmt.step), ranges)  # where it ends
                    _check_body_indices(kernel, inner, bounds | {var: (first, last)})
            case ir.If(condition, then, otherwise):
                if not _is_never(condition, ranges):
                    _check_body_indices(kernel, then, bounds)
                if not _is_never(condition.not_(), ranges):
                    _check_body_indices(kernel, otherwise, bounds)
            case _:
                for inner in ir.bodies(stmt):
                    _check_body_indices(kernel, inner, bounds | _of_ring(stmt, ranges))


def _of_ring(stmt: ir.Stmt, ranges: Ranges) -> dict[str, tuple[int, int]]:
    """The bounds of what a ring declares."""
    if not isinstance(stmt, ir.Ring):
        return {}
    return {
        stmt.var: (0, max(0, ranges.of(stmt.count).high - 1)),
        stmt.stage: (0, stmt.stages - 1),
    }


def _is_never(condition: Expr, ranges: Ranges) -> bool:
    """Whether a condition holds nowhere in this launch, so that what it guards does not matter."""
    return ranges.of(condition) == (0, 0)


def _shown(expr: Expr) -> str:
    try:
        return show(expr)
    except UnsupportedError:  # too long to be written out, though not to be computed
        return "an index"


def _check_width(kernel: ir.Kernel, expr: Expr, ranges: Ranges) -> None:
    least, most = index_limits(kernel)
    for part in walk(expr):
        low, high = ranges.of(part)
        if low < least or high > most:
            raise DeviceError(
                f"'{kernel.name}': {_shown(part)} overflows {8 * kernel.index.bytes} bits in this "
                "launch",
                advice=TOO_LARGE,
            )
