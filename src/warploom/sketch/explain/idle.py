"""Holes that the goal does not depend on: whatever fills them, the last step holds the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.sketch.term.ir import Apply, Program, size

Flags = npt.NDArray[np.bool_]

MOST_READS = 1 << 22  # choices times cells; larger sets are taken to read everything


@dataclass(frozen=True, slots=True)
class Remark:
    """A warning with its place."""

    message: str
    span: Span | None


def idle_holes(program: Program) -> tuple[Remark, ...]:
    """One remark for each hole whose choice no cell of the last step can show."""
    needed: dict[int, Flags] = {
        len(program.steps) - 1: np.ones(size(program.steps[-1].shape), bool)
    }
    idle: list[Remark] = []
    for position in reversed(range(len(program.steps))):
        step = program.steps[position]
        if not isinstance(step, Apply):
            continue
        cells = needed.get(position, np.zeros(size(step.shape), bool))
        inner = np.flatnonzero(np.repeat(cells, step.fold or 1))
        if step.gathers.is_hole and _is_idle(step, inner):
            idle.append(_remark(step))
        _need_arguments(program, step, inner, needed)
    return tuple(reversed(idle))


def _remark(step: Apply) -> Remark:
    count = len(step.gathers)
    return Remark(
        f"the goal does not depend on hole '{step.name}': its {count} choices all give the same",
        step.span,
    )


def _is_large(step: Apply) -> bool:
    return len(step.gathers) * size(step.gathers.out_shape) > MOST_READS


def _is_idle(step: Apply, inner: npt.NDArray[np.intp]) -> bool:
    if not len(inner):
        return True
    if _is_large(step):
        return False
    read = step.gathers.tables[:, inner]
    return bool((read == read[0]).all())


def _need_arguments(
    program: Program, step: Apply, inner: npt.NDArray[np.intp], needed: dict[int, Flags]
) -> None:
    """Marks the cells of the arguments that some choice reads for these cells."""
    counts = [size(program.steps[arg].shape) for arg in step.args]
    read = np.full(
        sum(counts) + 2, len(inner) > 0 and _is_large(step)
    )  # undefined, zero at the end
    if len(inner) and not _is_large(step):
        read[step.gathers.tables[:, inner]] = True
    start = 0
    for arg, count in zip(step.args, counts, strict=True):
        before = needed.get(arg, np.zeros(count, bool))
        needed[arg] = before | read[start : start + count]
        start += count
