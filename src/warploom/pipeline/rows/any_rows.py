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
from warploom.loopnest.ir import Program

ROWS = "m"


def of_any_rows(kernel: Kernel, program: Program) -> Kernel | None:
    """None where more than the grid depends on the number of rows."""
    rows = next(axis.size for axis in program.axes if axis.name == ROWS)
    if kernel.grid != (Const(rows), Const(1), Const(1)):
        return None
    long = {each.name for each in program.arrays if each.shape[0] == rows and len(each.shape) > 0
            and _is_along_rows(program, each.name)}  # fmt: skip
    params = tuple(
        replace(each, size=_times(each.size, rows)) if each.name in long else each
        for each in kernel.params if isinstance(each, ArrayParam)
    )  # fmt: skip
    scalars = tuple(each for each in kernel.params if isinstance(each, ScalarParam))
    one = Const(1)
    made = replace(
        kernel,
        params=(*params, *scalars, ScalarParam(ROWS, DType.I32)),
        grid=(Var(ROWS), one, one),
    )
    try:
        check(made)
    except CheckError:
        return None
    return made


def _is_along_rows(program: Program, name: str) -> bool:
    """Whether an array's first dimension counts rows."""
    for store in program.source.stores if program.source is not None else ():  # type: ignore[attr-defined]
        if store.access.array.name == name:
            return _first_is_rows(store.access)
    for leaf in program.source.leaves:  # type: ignore[union-attr]
        access = getattr(leaf, "access", None)
        if access is not None and access.array.name == name:
            return _first_is_rows(access)
    return False


def _first_is_rows(access: object) -> bool:
    axes = getattr(access.subscripts[0], "axes", ())  # type: ignore[attr-defined]
    return any(axis.name == ROWS for axis in axes)


def _times(size: Expr, rows: int) -> Expr:
    assert isinstance(size, Const)
    return Var(ROWS) * (size.value // rows)
