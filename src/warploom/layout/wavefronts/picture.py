"""Which lane wants which bank in one request, and in which wavefront it is served.

Words of one bank and one group that are different wait for each other. `report/request.py` draws
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warploom.errors import CheckError
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE, SERVED_AS, Access
from warploom.layout.solver.task import Task
from warploom.machine.serving import asked_in_pairs, cosets
from warploom.pictured import Pictured


@dataclass(frozen=True, slots=True)
class WantedWord:
    """One word that a lane wants: it is served in the `wavefront`-th wavefront of its group and
    bank."""

    lane: int
    bank: int
    word: int
    element: int
    wavefront: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a warp: the words of each lane, and its wavefronts."""

    title: str
    wanted: tuple[WantedWord, ...]
    wavefronts: int


@dataclass(frozen=True, slots=True, eq=False)
class Compared(Pictured):
    """One request in several layouts; `lines` say the same in words."""

    title: str
    task: Task
    requests: tuple[Request, ...]
    lines: tuple[str, ...] = ()


def request_of(task: Task, addresses: Numbers, access: int, step: int, title: str) -> Request:
    """What the lanes of one step want, group by group."""
    chosen = step_of(task, access, step)
    problem, serving = task.problem, task.problem.serving
    group = serving.group(SERVED_AS[chosen.kind], problem.bytes_of(chosen.width))
    row = chosen.elements[step]
    first = row[None, :, 0]
    if group.paired and asked_in_pairs(first, first != IDLE)[0]:
        group = group.when_paired()
    found, total = [], 0
    for lanes in cosets(group.basis, serving.lanes):
        wavefronts: dict[int, dict[int, int]] = {}
        for lane in lanes[lanes < chosen.lanes].tolist():
            for word, element in _words(task, row[lane].tolist(), addresses):
                bank = wavefronts.setdefault(word % serving.banks, {})
                wavefront = bank.setdefault(word, len(bank))
                found.append(WantedWord(lane, word % serving.banks, word, element, wavefront))
        total += max((len(bank) for bank in wavefronts.values()), default=0)
    return Request(title, tuple(found), total)


def worst_request(task: Task, addresses: Numbers, name: str, lines: Sequence[str]) -> Compared:
    """The access that waits longest in rows as they are, there and in a layout."""
    plain = np.arange(task.problem.size, dtype=np.int64)
    steps = [task.meter.by_step(number, plain) for number in range(len(task.problem.accesses))]
    access = max(range(len(steps)), key=lambda number: int(steps[number].max()))
    step = int(np.argmax(steps[access]))
    pairs = (("rows as they are", plain), (name[:40], addresses))
    requests = tuple(request_of(task, at, access, step, title) for title, at in pairs)
    return Compared(task.problem.name, task, requests, tuple(lines))


def step_of(task: Task, access: int, step: int) -> Access:
    """An access that has this step."""
    accesses = task.problem.accesses
    if access >= len(accesses):
        raise CheckError(f"there is no access {access}", advice=f"0 to {len(accesses) - 1}")
    chosen = accesses[access]
    if step >= chosen.steps:
        raise CheckError(f"{chosen.name} has no step {step}", advice=f"0 to {chosen.steps - 1}")
    return chosen


def _words(task: Task, vector: Sequence[int], addresses: Numbers) -> list[tuple[int, int]]:
    """The words of a lane's vector, each with the first element in it."""
    size, word_bytes = task.problem.element_bytes, task.problem.serving.word_bytes
    found: dict[int, int] = {}
    for element in vector:
        if element != IDLE:
            first = task.problem.bytes_of(int(addresses[element])) // word_bytes
            for word in range(first, first + max(1, size // word_bytes)):
                found.setdefault(word, element)
    return list(found.items())
