"""The published table of fifty problems: wavefronts of each class, bounds, address registers."""

from __future__ import annotations

from pathlib import Path

from warploom.layout.solver.task import Task

TABLE = Path(__file__).with_name("fifty.txt")


def rows() -> dict[str, list[str]]:
    lines = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {line[0]: line[1:] for line in lines}


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split("/")]


def total(task: Task, text: str) -> float:
    """All wavefronts of the tile; the table has them per request of each access."""
    each = zip(numbers(text), task.problem.accesses, strict=True)
    return sum(mean * access.steps for mean, access in each)


PUBLISHED = rows()
# The table has the least sum of what each access takes per request; where accesses take different
# numbers of steps, the tile may take fewer wavefronts in another layout: 176 here, and not 322.
FEWER_IN_ALL = {("stencil:34x34:f32", "pad"): "1/1/1/1/1/8"}
