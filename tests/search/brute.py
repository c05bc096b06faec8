"""All solutions of a small space by trying everything: shares nothing with propagation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warploom.search.space.build import Space
from warploom.search.space.evaluate import Assignment, is_solution
from warploom.search.space.ir import Choice, Value


def values(choice: Choice, start: int) -> list[Value | None]:
    """What an instance may be at all; None where it may have no value."""
    found: list[Value | None] = [v for at, v in enumerate(choice.values) if start >> at & 1]
    return found + ([None] if start & choice.absent_bit else [])


def assignments(space: Space) -> Iterator[Assignment]:
    keys, options = [], []
    for choice in space.choices:
        for instance, start in zip(choice.instances, choice.start, strict=True):
            keys.append((choice.name, instance))
            options.append(values(choice, start))
    for chosen in product(*options):
        yield dict(zip(keys, chosen, strict=True))


def raw_size(space: Space) -> int:
    size = 1
    for choice in space.choices:
        for start in choice.start:
            size *= len(values(choice, start))
    return size


def solutions(space: Space) -> list[Assignment]:
    return [found for found in assignments(space) if is_solution(space, found)]


def frozen(assignment: Assignment) -> frozenset[tuple[object, object]]:
    return frozenset(assignment.items())
