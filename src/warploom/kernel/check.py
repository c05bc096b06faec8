"""When a kernel is well formed: `check(kernel)` raises one CheckError or returns nothing.

This file looks at names, types and parameters; `flow.py` and `registers.py` at what depends on
where a statement stands: bounds, uniformity, initialisation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias, get_args

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, variables
from warploom.kernel import ir
from warploom.kernel.allocate import check_places
from warploom.kernel.bounds import INT_MAX
from warploom.kernel.check_hopper import check_head, check_hopper
from warploom.kernel.dtype import DType
from warploom.kernel.extent import check_extent
from warploom.kernel.flow import check_flow
from warploom.kernel.pool import whole_bytes
from warploom.kernel.tensor import types_of
from warploom.kernel.traverse import exprs_of, target_of, values_of
from warploom.machine.record import CUDA

VECTOR_WIDTHS = (1, 2, 4)
MORE_WIDTHS = (8, 16)  # of elements so small that they are one access
REGISTER_BYTES = 4
WARP_SIZES = (1, 2, 4, 8, 16, 32, 64)  # up to what any machine has
MOST_LETTERS = 128  # PoCL makes files of a kernel's name, and ends the process where it cannot

Declaration: TypeAlias = (
    ir.ArrayParam | ir.ScalarParam | ir.Registers | ir.Shared | ir.Let | ir.Named | ir.For
    | ir.MapParam | ir.Ring
)  # fmt: skip

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check(kernel: ir.Kernel) -> None:
    """Raises CheckError unless the kernel is well formed."""
    check_extent(kernel)
    _check(kernel)


@lru_cache(maxsize=64)  # every stage asks, most ask again
def _check(kernel: ir.Kernel) -> None:
    _check_shape(kernel)
    scope: dict[str, Declaration] = {}
    for param in kernel.params:
        _declare(scope, param.name, param)
    for map in kernel.maps:
        _declare(scope, map.name, map)
    _check_params(kernel)
    check_head(kernel)
    _check_body(kernel.body, scope, kernel, top=True)
    check_flow(kernel)
    check_places(kernel)


def _check_shape(kernel: ir.Kernel) -> None:
    check_name(kernel.name)
    sides = zip(kernel.block, CUDA.block_sides, strict=True)
    if not all(1 <= side <= most for side, most in sides) or kernel.threads > CUDA.block_threads:
        raise CheckError(
            f"'{kernel.name}': a block of {kernel.block} threads cannot be launched",
            advice=f"sides of 1 to {CUDA.block_sides}, at most {CUDA.block_threads} threads in all",
        )
    if kernel.warp_size not in WARP_SIZES:
        raise CheckError(
            f"a warp of {kernel.warp_size} lanes",
            advice=f"use a power of two up to {WARP_SIZES[-1]}",
        )


def _check_params(kernel: ir.Kernel) -> None:
    for scalar in kernel.scalars:
        _check_computes(scalar.dtype, f"the number '{scalar.name}'")
    if kernel.index not in (DType.I32, DType.I64):
        raise CheckError(f"indices are i32 or i64, not {kernel.index!r:.40}")
    integers = {each.name for each in kernel.scalars if each.dtype is kernel.index}
    for array in kernel.arrays:
        _check_scalars_only(array.size, integers, f"the size of '{array.name}'")
        if isinstance(array.size, Const) and array.size.value < 0:
            raise CheckError(f"'{array.name}' has {array.size.value} elements")
        many = array.size.value if isinstance(array.size, Const) else 0
        if many > INT_MAX and not _is_mapped_alone(kernel, array.name):  # maps count no elements
            raise CheckError(
                f"'{array.name}' has {many} elements",
                advice=f"at most {INT_MAX}: indices are numbers of 32 bits",
            )
    for size in kernel.grid:
        _check_scalars_only(size, integers, "the grid")
        if isinstance(size, Const) and size.value < 1:
            raise CheckError(f"a grid of {size.value} blocks along one axis", advice="at least 1")
    for condition in kernel.requires:
        _check_scalars_only(condition, integers, "a requirement")
    for map in kernel.maps:
        for size in (*map.sizes, *map.strides):
            _check_scalars_only(size, integers, f"the map '{map.name}'")
    _check_constants([each for each in kernel.arrays if each.space == "constant"])


def _is_mapped_alone(kernel: ir.Kernel, name: str) -> bool:
    """Whether an array is accessed through tensor maps, and in no other way."""
    if all(each.array != name for each in kernel.maps):
        return False
    return not any(getattr(each, "array", None) == name for each in ir.walk(kernel.body))


def _check_constants(arrays: list[ir.ArrayParam]) -> None:
    total = 0
    for array in arrays:
        if not isinstance(array.size, Const) or array.size.value < 1:
            raise CheckError(
                f"the constant array '{array.name}' needs a constant size of at least 1"
            )
        total += array.size.value * array.dtype.bytes
        if total > CUDA.constant_bytes:
            raise CheckError(
                f"with the constant array '{array.name}', {total} bytes are passed by value",
                advice=f"at most {CUDA.constant_bytes} in all; pass it as a global array",
            )


def _check_scalars_only(expr: Expr, allowed: set[str], what: str) -> None:
    other = sorted(variables(expr) - allowed)
    if other:
        raise CheckError(f"{what} uses '{other[0]}', which is no i32 scalar parameter")


def check_name(name: str) -> None:
    """Refuses what cannot be the name of a kernel, nor of anything in it."""
    if not _IDENTIFIER.match(name) or name in ir.BUILT_IN:
        raise CheckError(
            f"'{name[:40]}' cannot be a name",
            advice="letters, digits and '_' only, no digit first, no name of a thread or block",
        )
    if len(name) > MOST_LETTERS:
        raise CheckError(
            f"the name '{name[:40]}…' has {len(name)} letters", advice=f"at most {MOST_LETTERS}"
        )


def _declare(scope: dict[str, Declaration], name: str, what: Declaration) -> None:
    check_name(name)
    if name in scope:
        raise CheckError(f"the name '{name}' is used twice", advice="rename one of the two")
    scope[name] = what


def _check_body(
    body: tuple[ir.Stmt, ...],
    outer: Mapping[str, Declaration],
    kernel: ir.Kernel,
    top: bool = False,
) -> None:
    scope = dict(outer)
    for stmt in body:
        if isinstance(stmt, ir.Shared) and not top:
            raise CheckError(f"'{stmt.name}': shared arrays are declared at the top of a kernel")
        _check_statement(stmt, scope, kernel)
        match stmt:
            case ir.Named(name):
                _check_named(stmt)
                _declare(scope, name, stmt)
            case ir.Let(name) | ir.Registers(name) | ir.Shared(name):
                _check_declared_size(stmt)
                _declare(scope, name, stmt)
            case ir.For(var, _, _, inner):
                _check_loop(stmt)
                inside = dict(scope)
                _declare(inside, var, stmt)
                _check_body(inner, inside, kernel)
            case ir.Ring(var, _, stage, _, inner):
                inside = dict(scope)
                _declare(inside, var, stmt)
                _declare(inside, stage, stmt)
                _check_body(inner, inside, kernel)
            case ir.If(_, then, otherwise):
                _check_body(then, scope, kernel)
                _check_body(otherwise, scope, kernel)
            case _:
                pass
    if top:
        _check_shared_total(kernel)


def _check_loop(stmt: ir.For) -> None:
    if stmt.step < 1:
        raise CheckError(f"the loop over '{stmt.var}' has step {stmt.step}, not at least 1")
    if stmt.unroll and stmt.counts is None:
        raise CheckError(
            f"the loop over '{stmt.var}' cannot be unrolled: its bounds are no constants",
            advice="use unroll=False",
        )


def _check_declared_size(stmt: ir.Let | ir.Registers | ir.Shared) -> None:
    if isinstance(stmt, ir.Registers) and stmt.initial is not None:
        check_number(stmt.initial, stmt.dtype)
    if not isinstance(stmt, ir.Let) and stmt.size is not None and stmt.size < 1:
        raise CheckError(f"the array '{stmt.name}' has {stmt.size} elements, not at least 1")
    if isinstance(stmt, ir.Registers):
        words = (stmt.size or 1) * max(1, stmt.dtype.bytes // REGISTER_BYTES)
        if words > CUDA.thread_registers:
            raise CheckError(
                f"'{stmt.name}' needs {words} registers, but a thread has {CUDA.thread_registers}",
                advice="use a shared array, or fewer elements for each thread",
            )


def _check_named(stmt: ir.Named) -> None:
    if stmt.value.dtype.is_real:
        raise CheckError(
            f"'{stmt.name}' names a {stmt.value.dtype!r}", advice="indices are integers: cast it"
        )
    if not 1 <= stmt.size <= INT_MAX:
        raise CheckError(
            f"'{stmt.name}' is below {stmt.size}", advice=f"a size is from 1 to {INT_MAX}"
        )


def _check_shared_total(kernel: ir.Kernel) -> None:
    total, most = whole_bytes(kernel), kernel.shared_most
    if total > most:
        may = "declare" if most <= CUDA.shared_bytes else "ask for"
        raise CheckError(
            f"the kernel uses {total} bytes of shared memory",
            advice=f"a block may {may} at most {most}; use smaller tiles, "
            "or let arrays share bytes: warploom.kernel.allocate",
        )


def _check_statement(stmt: ir.Stmt, scope: Mapping[str, Declaration], kernel: ir.Kernel) -> None:
    for expr in exprs_of(stmt):
        for name in sorted(variables(expr) - ir.BUILT_IN):
            _check_index_variable(name, scope, kernel.index)
    for value in values_of(stmt):
        check_value(value, scope)
    target = target_of(stmt)
    if target is not None:
        _check_register(target, scope)
    match stmt:
        case ir.Assign(cell, value):
            _same(cell.dtype, ir.dtype_of(value), f"'{cell.name}'")
        case ir.Load(cell, array, _, _, otherwise, width):
            memory = _memory(array, scope)
            _same(cell.dtype, memory.dtype, f"a load of '{array}'")
            if otherwise is not None:
                _same(cell.dtype, ir.dtype_of(otherwise), f"a load of '{array}'")
            _check_width(width, cell)
            _check_streaming(stmt.streaming, memory)
        case ir.Store():
            _check_store(stmt, _memory(stmt.array, scope))
        case ir.Barrier():
            _check_waits(stmt)
        case ir.Shuffle(cell, value):
            _same(cell.dtype, ir.dtype_of(value), "a shuffle")
            _check_exchange(stmt, kernel)
        case ir.TensorProduct():
            _check_product(stmt, scope, kernel)
        case _:
            check_hopper(stmt, scope, kernel)


def _check_product(
    stmt: ir.TensorProduct, scope: Mapping[str, Declaration], kernel: ir.Kernel
) -> None:
    if stmt.kind not in get_args(ir.TensorKind):
        known = ", ".join(get_args(ir.TensorKind))
        raise CheckError(
            f"no tensor core takes factors for {stmt.kind!r:.40}", advice=f"use {known}"
        )
    if kernel.warp_size != CUDA.lanes:
        raise CheckError(
            f"a product on tensor cores in warps of {kernel.warp_size} lanes",
            advice=f"they multiply in warps of {CUDA.lanes}",
        )
    sums, factors = types_of(stmt.kind)
    _same(stmt.a.dtype, stmt.b.dtype, "a product on tensor cores")
    for cell, may in ((stmt.target, (sums,)), (stmt.a, factors), (stmt.b, factors)):
        _check_register(cell, scope)
        if cell.dtype not in may:
            raise CheckError(
                f"'{cell.name}' of {cell.dtype!r} in a product of {stmt.kind} on tensor cores",
                advice=f"it is of {' or '.join(map(repr, may))}",
            )
        if cell.index is None:
            raise CheckError(
                f"'{cell.name}' is one register", advice="tensor cores use neighbours of an array"
            )
    _check_whole_warps(kernel)


def _check_exchange(stmt: ir.Shuffle, kernel: ir.Kernel) -> None:
    if stmt.mode not in get_args(ir.ShuffleMode):
        known = ", ".join(get_args(ir.ShuffleMode))
        raise CheckError(f"no shuffle is of the mode {stmt.mode!r:.40}", advice=f"use {known}")
    _check_whole_warps(kernel)


def _check_whole_warps(kernel: ir.Kernel) -> None:
    if kernel.threads % kernel.warp_size:
        raise CheckError(
            f"a block of {kernel.threads} threads has a partial warp, but lanes exchange",
            advice=f"make the block a multiple of {kernel.warp_size} threads",
        )


def _check_store(stmt: ir.Store, memory: ir.ArrayParam | ir.Shared) -> None:
    _check_streaming(stmt.streaming, memory)
    if isinstance(memory, ir.ArrayParam) and memory.const:
        raise CheckError(f"'{stmt.array}' is const but is stored to")
    _same(memory.dtype, ir.dtype_of(stmt.value), f"a store to '{stmt.array}'")
    _check_width(stmt.width, stmt.value)
    if stmt.ahead and not isinstance(memory, ir.Shared):
        raise CheckError(
            f"an asynchronous copy to '{stmt.array}'", advice="its target must be a shared array"
        )


def _check_waits(stmt: ir.Barrier) -> None:
    if stmt.waits is not None and (stmt.scope != "block" or stmt.waits < 0):
        raise CheckError(
            f"a {stmt.scope} barrier cannot wait for all but {stmt.waits} groups of copies",
            advice="use a block barrier, and 0 groups or more",
        )


def _check_index_variable(name: str, scope: Mapping[str, Declaration], index: DType) -> None:
    match scope.get(name):
        case ir.Let() | ir.Named() | ir.For() | ir.Ring():
            return
        case ir.ScalarParam(_, dtype) if dtype is index:
            return
        case None:
            raise CheckError(f"the index variable '{name}' is not defined here")
        case _:
            raise CheckError(
                f"'{name}' is used in an index expression, but is no integer known there",
                advice="indices use threads, blocks, loop counters and "
                f"{index!r} scalar parameters",
            )


def _memory(name: str, scope: Mapping[str, Declaration]) -> ir.ArrayParam | ir.Shared:
    match scope.get(name):
        case ir.ArrayParam() as array if array.space == "global":
            return array
        case ir.Shared() as array:
            return array
        case _:
            raise CheckError(f"'{name}' is no global or shared array that is known here")


def _check_register(cell: ir.Cell, scope: Mapping[str, Declaration]) -> None:
    declared = scope.get(cell.name)
    if not isinstance(declared, ir.Registers):
        raise CheckError(f"'{cell.name}' is no register that is known here")
    _check_cell(cell, declared.dtype, declared.size)


def _check_cell(cell: ir.Cell, dtype: DType, size: int | None) -> None:
    _same(cell.dtype, dtype, f"'{cell.name}'")
    if (cell.index is None) != (size is None):
        kind = "one number" if size is None else "an array"
        raise CheckError(f"'{cell.name}' is {kind} and is not used as such")


def check_value(value: ir.Value, scope: Mapping[str, Declaration]) -> None:
    """Every read is of something declared, and operators get operands of one type."""
    for part in ir.walk_value(value):
        match part:
            case ir.Cell(name):
                match scope.get(name):
                    case ir.Registers(_, dtype, size):
                        _check_cell(part, dtype, size)
                    case ir.ScalarParam(_, dtype):
                        _check_cell(part, dtype, None)
                    case ir.ArrayParam() as array if array.space == "constant":
                        _check_cell(part, array.dtype, 1)
                    case _:
                        raise CheckError(f"'{name}' is no register or number that is known here")
            case ir.Number(number, dtype):
                check_number(number, dtype)
            case ir.Operation():
                _check_operation(part)
            case ir.Choose(condition, then, otherwise):
                _same(ir.dtype_of(then), ir.dtype_of(otherwise), "a select")
                if isinstance(condition, ir.Compare):
                    left, right = ir.dtype_of(condition.left), ir.dtype_of(condition.right)
                    _same(left, right, f"'{condition.op}'")
                    _check_computes(left, f"'{condition.op}'")
            case ir.FromIndex(_, dtype):
                _check_computes(dtype, "an index")
            case ir.Cast(dtype, inner):
                _check_cast(dtype, ir.dtype_of(inner))
            case _:
                pass


def check_number(number: float, dtype: DType) -> None:
    """A constant must be a number of its type."""
    if not dtype.has(number):
        raise CheckError(f"{number} is no {dtype!r}")


def _check_operation(value: ir.Operation) -> None:
    if len(value.operands) != ir.ARITY[value.op]:
        raise CheckError(f"'{value.op}' takes {ir.ARITY[value.op]} operands")
    first = ir.dtype_of(value.operands[0])
    _check_computes(first, f"'{value.op}'")
    for other in value.operands[1:]:
        _same(first, ir.dtype_of(other), f"'{value.op}'")
    if value.op in ir.INTEGER_ONLY and first.is_float:
        raise CheckError(f"'{value.op}' is for integers, not {first!r}")
    if value.op == "bytes" and first is not DType.U32:
        raise CheckError(
            f"'bytes' picks those of two u32, not of {first!r}", advice="cast it first"
        )
    if value.op in ir.FLOAT_ONLY and not first.is_float:
        raise CheckError(f"'{value.op}' is for floats, not {first!r}", advice="cast it first")


def _check_cast(target: DType, source: DType) -> None:
    codes = [each for each in (target, source) if each.is_code]
    if codes and DType.F32 not in (target, source):
        raise CheckError(
            f"{source!r} is converted to {target!r}",
            advice=f"{codes[0]!r} becomes f32, and f32 becomes it",
        )


def _check_computes(dtype: DType, what: str) -> None:
    if dtype.is_code:
        raise CheckError(
            f"{what} of {dtype!r}: kernels do not compute in it", advice="cast it to f32"
        )


def _same(left: DType, right: DType, where: str) -> None:
    if left is not right:
        raise CheckError(f"{where} mixes {left!r} and {right!r}", advice="cast one of the two")


def _check_streaming(streaming: bool, memory: ir.ArrayParam | ir.Shared) -> None:
    if streaming and isinstance(memory, ir.Shared):
        raise CheckError(
            f"a streaming access of the shared array '{memory.name}'",
            advice="streaming is for global memory",
        )


def _check_width(width: int, value: ir.Value) -> None:
    bytes_ = width * ir.dtype_of(value).bytes
    if width not in VECTOR_WIDTHS and (width not in MORE_WIDTHS or bytes_ > CUDA.access_bytes):
        raise CheckError(
            f"an access of {width} elements",
            advice=f"use 1, 2 or 4; 8 or 16 that are at most {CUDA.access_bytes} bytes together",
        )
    if width > 1 and not (isinstance(value, ir.Cell) and value.index is not None):
        raise CheckError("an access of several elements needs a register array")
