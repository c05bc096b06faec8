"""A kernel whose indices have 32 bits → the same with 64, for arrays of more elements."""

from __future__ import annotations

from dataclasses import replace

from warploom.errors import CheckError
from warploom.index.ir import Expr, variables
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, Cell, Kernel, Value, walk
from warploom.kernel.traverse import exprs_of, map_body

INDEX_TYPES = {32: DType.I32, 64: DType.I64}


def index_named(bits: int) -> DType:
    if isinstance(bits, bool) or bits not in INDEX_TYPES:
        raise CheckError(f"indices have 32 or 64 bits, not {bits!r:.40}")
    return INDEX_TYPES[bits]


def with_index(kernel: Kernel, index: DType) -> Kernel:
    """The kernel with all its index arithmetic in another type, checked again for all launches
    that are possible then. Scalars in indices have that type, too; others keep theirs."""
    if kernel.index is index:
        return kernel
    old, named = kernel.index, _index_names(kernel)
    moved = {each.name for each in kernel.scalars if each.dtype is old and each.name in named}
    params = tuple(
        replace(each, dtype=index) if each.name in moved else each for each in kernel.params
    )

    def value(part: Value) -> Value:
        """What is computed with such a scalar stays of the type that it was stated in."""
        if isinstance(part, Cell) and part.index is None and part.name in moved:
            return Cast(old, replace(part, dtype=index))
        return part

    body = map_body(kernel.body, lambda expr: expr, value)
    made = replace(kernel, params=params, index=index, body=body)
    check(made)
    return made


def _index_names(kernel: Kernel) -> frozenset[str]:
    """The names in all index expressions: of the body, the arrays, the grid, what is required."""
    exprs: list[Expr] = [*kernel.grid, *kernel.requires, *(each.size for each in kernel.arrays)]
    for view in kernel.maps:
        exprs += [*view.sizes, *view.strides]
    for stmt in walk(kernel.body):
        exprs += exprs_of(stmt)
    return frozenset().union(*map(variables, exprs))
