"""Wrong layouts on purpose: is every one noticed, and if not, is it no mistake?

A mutant changes a layout in one place: a bit of its matrix, the shift of its swizzle. It is put in
place of the layout of one access, which then disagrees with the others; or of all, which changes
what they cost. What is stated beforehand is the layout, the wavefronts of each access and how many
places there are: whatever computes another place is then noticed. An access computes the place of a
vector's first element alone: a mutant that moves none of these is given as a layout, as `layout
check` takes it, which sees vectors that are torn. The same mutants are tried where no layout is
stated: what is missed there must be a layout as good, counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from warploom.layout.language.evaluate import Numbers, extended
from warploom.layout.language.facts import as_matrix
from warploom.layout.language.ir import Layout, Matrix, Swizzle
from warploom.layout.own import Looked, examine_tables
from warploom.layout.patterns.named import FIFTY, pattern
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task


def mutations(layout: Layout, size: int, random: np.random.Generator) -> Iterator[Layout]:
    """Layouts that differ from one in one place."""
    if isinstance(layout, Swizzle) and layout.bits:
        for shift in (layout.shift - 1, layout.shift + 1):
            if abs(shift) >= layout.bits:
                yield Swizzle(layout.bits, layout.base, shift)
    matrix = as_matrix(extended(layout, np.arange(size, dtype=np.int64)))
    if size & (size - 1) == 0 and matrix is not None:
        bits = len(matrix.columns)
        for _ in range(40):
            at, bit = int(random.integers(bits)), int(random.integers(bits))
            columns = list(matrix.columns)
            columns[at] ^= 1 << bit
            yield Matrix(tuple(columns), matrix.offset)


def noticed(
    task: Task,
    tables: list[Numbers],
    stated: list[float],
    places: int,
    meant: Numbers | None = None,
) -> bool:
    looked = []
    for access, table, count in zip(task.problem.accesses, tables, stated, strict=True):
        first = np.maximum(access.elements[:, :, 0], 0)
        looked.append(Looked(access, table[first], count))
    steps = [access.steps for access in task.problem.accesses]
    return not examine_tables(task.problem, looked, steps, places, meant).right


def mutated(count: int, seed: int = 3) -> dict[str, Any]:
    """So many mutants; a mutant that is missed must be no mistake, each looked at anew."""
    random, names = np.random.default_rng(seed), 0
    seen, reasons, unstated = Counter[str](), Counter[str](), Counter[str]()
    while sum(seen.values()) < count:
        name = FIFTY[names % len(FIFTY)]
        names += 1
        task = Task(pattern(name))
        if task.problem.size > 2048 or len(task.problem.accesses) > 6:
            continue
        best = solve(task, "mixed").best
        assert best is not None
        original = task.addresses(best.map)
        stated = [float(x) for x in best.score.per_request]
        places = int(original.max()) + 1
        plain = [original] * len(task.problem.accesses)
        assert not noticed(task, plain, stated, places, original), name
        options = list(mutations(best.map, task.problem.size, random))
        for choice in random.permutation(len(options))[: min(12, count - sum(seen.values()))]:
            other = task.addresses(options[int(choice)])
            alone = len(plain) > 1 and bool(random.random() < 0.5)
            tables = [other, *plain[1:]] if alone else [other] * len(plain)
            if noticed(task, tables, stated, places, original):
                seen["noticed"] += 1
            elif task.meter.score(other) is None:
                seen["noticed as a layout: torn vectors"] += 1
            else:
                seen["equivalent"] += 1
                reasons[_same(task, original, tables)] += 1
            if noticed(task, tables, stated, places):
                unstated["noticed"] += 1
            else:
                unstated[_why(task, original, other, alone, stated)] += 1
    return dict(seen) | {"reasons": dict(reasons), "where no layout is stated": dict(unstated)}


def _same(task: Task, original: Numbers, tables: list[Numbers]) -> str:
    """The reason that a mutant is none: every place that is computed is the same."""
    if all(np.array_equal(original, table) for table in tables):
        return "the same function"
    for access, table in zip(task.problem.accesses, tables, strict=True):
        first = access.elements[:, :, 0]  # all that an access computes of a vector
        used = first[first >= 0]
        assert np.array_equal(original[used], table[used]), "another place was missed"
    return "the same for every element whose place is computed"


def _why(task: Task, original: Numbers, other: Numbers, alone: bool, stated: list[float]) -> str:
    """The reason that a mutant is none, each looked at anew."""
    first = task.problem.accesses[0].elements[:, :, 0]  # all that an access computes of a vector
    used = np.unique(first[first >= 0])
    if np.array_equal(original, other):
        return "the same function"
    if alone:
        moved = used[original[used] != other[used]]
        if not len(moved):
            return "the same for every place that the access computes"
        others = np.concatenate([a.elements.ravel() for a in task.problem.accesses[1:]])
        assert not np.isin(moved, others).any(), "a wrong place was missed"
        return "only elements that no other access uses lie elsewhere, and cost the same"
    places = original.copy()  # where elements lie, as the accesses go: on from the first of each
    for access in task.problem.accesses:
        busy = access.elements[access.elements[:, :, 0] >= 0]
        places[busy] = other[busy[:, :1]] + np.arange(access.width)
    wanted = np.unique(np.concatenate([a.elements.ravel() for a in task.problem.accesses]))
    wanted = wanted[wanted >= 0]
    assert len(np.unique(places[wanted])) == len(wanted), "two elements at one place were missed"
    score = task.meter.score(places)
    assert score is not None, "a torn vector was missed"
    assert [float(x) for x in score.per_request] == stated, "a wrong count was missed"
    assert int(places[wanted].max()) <= int(original.max()), "a place outside was missed"
    return "another layout, as good: all accesses agree on it"
