"""What a layout costs beside wavefronts: wasted bytes, address registers, operations, totals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.errors import UnsupportedError
from warploom.layout.formats.code import cheapest
from warploom.layout.language.evaluate import Numbers, pause_if_long
from warploom.layout.patterns.access import IDLE, Access
from warploom.layout.solver.task import Answer, Task


@dataclass(frozen=True, slots=True)
class Quality:
    """`registers`: for each access the base addresses that its unrolled steps need; the others are
    constant offsets. `operations`: of the index function (0: a table is read)."""

    wasted_bytes: int
    registers: tuple[int, ...]
    operations: int
    wavefronts: int
    instructions: int


def quality_of(task: Task, answer: Answer) -> Quality:
    addresses = task.addresses(answer.map)
    problem = task.problem
    return Quality(
        problem.bytes_of(int(addresses.max()) + 1 - problem.size),
        tuple(address_registers(access, addresses) for access in problem.accesses),
        _operations(task, answer),
        sum(answer.score.wavefronts),
        sum(access.steps for access in problem.accesses),
    )


def address_registers(access: Access, addresses: Numbers) -> int:
    """Steps share a base address if they are apart by as much in every lane.

    With addresses A(lane) ^ B(step) that is where B(step) has no bit that a lane changes.
    """
    first = access.elements[:, :, 0]
    idle = first == IDLE
    pause_if_long(first.size)
    found = np.where(idle, 0, addresses[first])
    start = np.take_along_axis(found, np.argmin(idle, axis=1)[:, None], axis=1)
    apart = np.where(idle, np.iinfo(np.int64).min, found - start)
    return len({row.tobytes() for row in apart})


def _operations(task: Task, answer: Answer) -> int:
    try:
        form = cheapest(task.layout(answer), task.problem.serving.reverses_bits)
    except UnsupportedError:
        return 0
    return form.operations
