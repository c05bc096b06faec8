"""How a kernel uses its own shared arrays: patterns for the solver of layouts, by running it.

An element is a place of the array as the kernel numbers them, so that the answer is a layout to put
behind the kernel's own indices; "rows as they are" is the kernel as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from warploom.errors import CheckError
from warploom.kernel.evaluate import Accessed, Array, Ints, run
from warploom.kernel.ir import Kernel, Load, Shared, Store, walk
from warploom.layout.patterns.access import IDLE, Access, AccessKind, Problem, check_problem
from warploom.machine.record import NVIDIA


def shared_problems(
    kernel: Kernel,
    arguments: Sequence[Array | int | float],
    named: Mapping[str, int | float] | None = None,
) -> dict[str, Problem]:
    """A problem for each shared array that is used, from the first block of a run. Every load and
    store in the kernel's text is an access, and every time that a warp does it is a step; what is
    done again in the same way counts once."""
    if kernel.warp_size != NVIDIA.lanes:
        raise CheckError(f"a warp of {kernel.warp_size} lanes", advice=f"it has {NVIDIA.lanes}")
    warps = -(-kernel.threads // kernel.warp_size)
    requests: dict[Load | Store, list[Ints]] = {}

    def watch(seen: Accessed) -> None:
        if seen.shared and seen.first == 0:
            active = seen.active[:warps]
            rows = np.where(active, seen.addresses[:warps], IDLE)
            requests.setdefault(seen.statement, []).extend(rows[active.any(axis=1)])

    run(kernel, arguments, named, watch=watch)
    found = {}
    for array in (each for each in walk(kernel.body) if isinstance(each, Shared)):
        accesses = [
            _access(statement, rows, array)
            for statement, rows in requests.items()
            if statement.array == array.name and rows
        ]
        if accesses:
            named_apart = tuple(_named(accesses))
            problem = Problem(array.name, (array.size,), array.dtype.bytes, named_apart)
            found[array.name] = check_problem(problem)
    return found


def _access(statement: Load | Store, rows: list[Ints], array: Shared) -> Access:
    first = np.unique(np.stack(rows), axis=0)
    elements = (first // array.dtype.bytes)[:, :, None] + np.arange(statement.width)
    kind: AccessKind = "ld"
    if isinstance(statement, Store):
        kind = "cp.async" if statement.ahead else "st"
    return Access(kind, np.where(first[:, :, None] == IDLE, IDLE, elements), kind)


def _named(accesses: list[Access]) -> list[Access]:
    """In the order in which they are done first; the second load is called so."""
    counts: dict[str, int] = {}
    found = []
    for each in accesses:
        counts[each.name] = counts.get(each.name, 0) + 1
        name = f"{each.name} {counts[each.name]}"
        found.append(Access(name, each.elements, each.kind))
    return found
