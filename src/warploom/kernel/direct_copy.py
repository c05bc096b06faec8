"""Stores ahead that a GPU does as asynchronous copies: which loads and stores are one.

v = x[i]; shared[j] = v (ahead)   →   cp.async shared[j], x[i]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from warploom.kernel.ir import Barrier, Cell, Kernel, Load, Stmt, Store, bodies, walk, walk_value
from warploom.kernel.traverse import target_of, values_of

COPIED_BYTES = (4, 8, 16)  # by one instruction, from global to shared memory


def passed(kernel: Kernel) -> set[str]:
    """Registers that only take what is loaded to a store ahead: a copy does without them."""
    stmts = list(walk(kernel.body))
    pairs = [
        (load, store)
        for load, store in _neighbours(kernel.body)
        if isinstance(load, Load)
        and isinstance(store, Store)
        and store.ahead
        and load.target == store.value
        and load.width == store.width
        and load.otherwise is None
        and load.width * load.target.dtype.bytes in COPIED_BYTES
        and any(each.name == load.array and each.const for each in kernel.arrays)
    ]
    held = {load.target.name for load, _ in pairs if isinstance(load, Load)}
    inside = {id(each) for pair in pairs for each in pair}
    others = [each for each in stmts if id(each) not in inside]
    read = {part.name for each in others for value in values_of(each)
            for part in walk_value(value) if isinstance(part, Cell)}  # fmt: skip
    written = {cell.name for each in others if (cell := target_of(each)) is not None}
    return held - read - written


def _neighbours(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, Stmt]]:
    """Statements and those that follow them at once, or after a barrier."""
    yield from pairwise(stmt for stmt in body if not isinstance(stmt, Barrier))
    for stmt in body:
        for inner in bodies(stmt):
            yield from _neighbours(inner)
