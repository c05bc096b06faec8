"""A kernel whose indices have 32 bits → the same with 64, for arrays of more elements."""

from __future__ import annotations

from dataclasses import replace

from warploom.errors import CheckError
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel, ScalarParam

INDEX_TYPES = {32: DType.I32, 64: DType.I64}


def index_named(bits: int) -> DType:
    if isinstance(bits, bool) or bits not in INDEX_TYPES:
        raise CheckError(f"indices have 32 or 64 bits, not {bits!r:.40}")
    return INDEX_TYPES[bits]


def with_index(kernel: Kernel, index: DType) -> Kernel:
    """The kernel with all its index arithmetic in another type, checked again for all launches
    that are possible then; the scalars in it have that type, too."""
    if kernel.index is index:
        return kernel
    params = tuple(
        replace(each, dtype=index)
        if isinstance(each, ScalarParam) and each.dtype is kernel.index
        else each
        for each in kernel.params
    )
    made = replace(kernel, params=params, index=index)
    check(made)
    return made
