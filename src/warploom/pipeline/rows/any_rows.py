"""A kernel for so many rows as one for any number of them.

Where blocks are rows, nothing but the grid and the sizes of arrays says how many there are.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.ir import ArrayParam, Kernel, ScalarParam
from warploom.loopnest.computation import Computation, Folded, Loaded
from warploom.loopnest.ir import Access, Affine, Program

ROWS = "m"


def of_any_rows(kernel: Kernel, program: Program) -> Kernel | None:
    """None where more than the grid depends on the number of rows.

    Of one row nothing says that blocks are rows: the only block may be anything. Nor are they where
    rows are folded.
    """
    axis = next(axis for axis in program.axes if axis.name == ROWS)
    if axis.size < 2 or kernel.grid != (Const(axis.size), Const(1), Const(1)):
        return None
    leaves = Computation.of(program).leaves
    if any(isinstance(each, Folded) and axis in each.over for each in leaves):
        return None
    made = of_given_rows(kernel, program)
    try:
        check(made)
    except CheckError:
        return None
    return made


def of_given_rows(kernel: Kernel, program: Program) -> Kernel:
    """With as many rows, and blocks, as a launch says: of none nothing is launched."""
    rows = next(axis.size for axis in program.axes if axis.name == ROWS)
    source = Computation.of(program)
    accesses = [each.access for each in source.stores]
    accesses += [each.access for each in source.leaves if isinstance(each, Loaded)]
    long = {each.array.name for each in accesses if _is_along_rows(each)}
    params = tuple(
        replace(each, size=_times(each.size, rows)) if each.name in long else each
        for each in kernel.params if isinstance(each, ArrayParam)
    )  # fmt: skip
    scalars = tuple(each for each in kernel.params if isinstance(each, ScalarParam))
    one = Const(1)
    return replace(
        kernel,
        params=(*params, *scalars, ScalarParam(ROWS, DType.I32)),
        grid=(Var(ROWS), one, one),
    )


def _is_along_rows(access: Access) -> bool:
    """Whether an array's first dimension counts rows."""
    first = access.subscripts[0]
    return isinstance(first, Affine) and any(axis.name == ROWS for axis in first.axes)


def _times(size: Expr, rows: int) -> Expr:
    assert isinstance(size, Const)
    return Var(ROWS) * (size.value // rows)
