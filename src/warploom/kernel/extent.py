"""How deep and how large a kernel may be: beyond, no compiler takes its text.

Nothing here recurses, so that a kernel of any depth gets an error instead of using up a stack.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.errors import CheckError
from warploom.index.ir import fold_up
from warploom.kernel.ir import Kernel, Registers, Stmt, Value, bodies, operands
from warploom.kernel.traverse import exprs_of, values_of
from warploom.machine.record import CUDA

MOST_NESTED = 100  # C promises 127 blocks inside each other
MOST_DEEP = 150  # clang takes 256 parentheses inside each other
MOST_DEEP_INDEX = 240  # of which few parts stand in parentheses twice
MOST_OPERATIONS = 1 << 14  # of one value


def check_extent(kernel: Kernel) -> None:
    """Raises CheckError if statements or values are nested too deeply, or there are too many."""
    for stmt, depth, declared in _nested(kernel.body):
        if depth > MOST_NESTED:
            raise CheckError(
                f"more than {MOST_NESTED} loops and conditions stand inside each other",
                advice="join conditions with and_",
            )
        if declared > CUDA.local_bytes:
            raise CheckError(
                f"the registers in sight take {declared} bytes",
                advice=f"a thread has {CUDA.local_bytes} at most, in memory; use shared arrays",
            )
        for value in values_of(stmt):
            _check_value_extent(value)
        for expr in exprs_of(stmt):
            if fold_up(expr, lambda _, depths: 1 + max(depths, default=0)) > MOST_DEEP_INDEX:
                raise CheckError(
                    f"an index is more than {MOST_DEEP_INDEX} deep",
                    advice="name a part of it with let",
                )


def _nested(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, int, int]]:
    """Every statement, how many others it is inside of, and the bytes of registers in sight."""
    pending = [(body, 0, 0)]
    while pending:
        stmts, depth, declared = pending.pop()
        for stmt in stmts:
            if isinstance(stmt, Registers):
                declared += (stmt.size or 1) * stmt.dtype.bytes
            yield stmt, depth, declared
            pending += [(inner, depth + 1, declared) for inner in bodies(stmt)]


def _check_value_extent(value: Value) -> None:
    pending, count = [(value, 1)], 0
    while pending:
        part, depth = pending.pop()
        count += 1
        if depth > MOST_DEEP or count > MOST_OPERATIONS:
            what = f"{MOST_DEEP} deep" if depth > MOST_DEEP else f"{MOST_OPERATIONS} operations"
            raise CheckError(
                f"a value is more than {what}", advice="set a register to a part of it first"
            )
        pending += [(each, depth + 1) for each in operands(part)]
