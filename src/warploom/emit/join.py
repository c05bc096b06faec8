"""A shuffle from a lane before and the sum that takes it in, as one piece of PTX: a scan's round.

    got = shuffle up(t, d);  if (lane >= d) t = t + got;

The hardware's shuffle says by itself whether there is such a lane, so that the sum needs no
condition of its own. What the compiler makes of the two statements is a sum and a select.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from warploom.index.ir import Const, Var
from warploom.kernel import ir
from warploom.kernel.dtype import DType
from warploom.kernel.function import LANE
from warploom.kernel.traverse import values_of
from warploom.machine.record import CUDA

_FLOATS: dict[ir.Operator, str] = {"+": "add.rn", "*": "mul.rn", "min": "min", "max": "max"}
_INTEGERS: dict[ir.Operator, str] = {
    "+": "add", "*": "mul.lo", "min": "min", "max": "max", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_BITS = ("&", "|", "^")
_TYPES = {
    DType.F32: ("f32", "f"), DType.F64: ("f64", "d"), DType.I32: ("s32", "r"),
    DType.U32: ("u32", "r"), DType.I64: ("s64", "l"), DType.U64: ("u64", "l"),
}  # fmt: skip


def joins(kernel: ir.Kernel) -> frozenset[str]:
    """The registers that bring what a round adds, and are used for nothing else."""
    if kernel.warp_size != CUDA.lanes:
        return frozenset()
    found: Counter[str] = Counter()
    for body in _lists(kernel.body):
        for shuffle, taken in pairwise(body):
            if join_text(shuffle, taken) is not None:
                assert isinstance(shuffle, ir.Shuffle)
                found[shuffle.target.name] += 1
    read: Counter[str] = Counter()
    for stmt in ir.walk(kernel.body):
        for value in values_of(stmt):
            read.update(part.name for part in ir.walk_value(value) if isinstance(part, ir.Cell))
    set_by = Counter(s.target.name for s in ir.walk(kernel.body) if isinstance(s, ir.Shuffle))
    return frozenset(n for n, times in found.items() if read[n] == times == set_by[n])


def _lists(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Stmt, ...]]:
    yield body
    for stmt in body:
        for inner in ir.bodies(stmt):
            yield from _lists(inner)


def join_text(shuffle: ir.Stmt, taken: ir.Stmt) -> str | None:
    """The two statements as inline PTX in which %0 is the total, if they are a round."""
    match shuffle, taken:
        case (
            ir.Shuffle(ir.Cell() as got, ir.Cell() as total, Const(distance), "up"),
            ir.If(condition, (ir.Assign(target, ir.Operation(op, (left, right))),), ()),
        ) if target == total == left and right == got and got.dtype in _TYPES:
            pass
        case _:
            return None
    table = _FLOATS if got.dtype.is_float else _INTEGERS
    if condition is not Var(LANE).ge(distance) or op not in table:
        return None
    kind, _ = _TYPES[got.dtype]
    suffix = f"b{8 * got.dtype.bytes}" if op in _BITS else kind
    add = f"@p {table[op]}.{suffix} %0, %0, r;"
    if got.dtype.bytes == CUDA.bank_bytes:
        move = f".reg .{kind} r; shfl.sync.up.b32 r|p, %0, {distance}, 0, -1;"
    else:
        each = " ".join(
            f"shfl.sync.up.b32 {half}|p, {half}, {distance}, 0, -1;" for half in ("lo", "hi")
        )
        move = f".reg .{kind} r; .reg .b32 lo; .reg .b32 hi; mov.b64 {{lo, hi}}, %0; {each} "
        move += "mov.b64 r, {lo, hi};"
    return f"{{ .reg .pred p; {move} {add} }}"


def constraint(dtype: DType) -> str:
    """How inline PTX names a register of a type."""
    return _TYPES[dtype][1]
