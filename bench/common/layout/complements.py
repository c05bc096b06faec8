"""Triples of subspaces of F2^n without a common complement, counted by the exact search."""

from __future__ import annotations

from itertools import combinations

from warploom.layout.solver.columns import ColumnSearch
from warploom.layout.solver.demand import Demand, Demands
from warploom.layout.solver.frame import Frame, Free
from warploom.layout.solver.subspace import Span, elements
from warploom.search.engine import Watch


def subspaces(bits: int, dimension: int) -> list[tuple[int, ...]]:
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for vectors in combinations(range(1, 1 << bits), dimension):
        span = Span(vectors)
        if len(span) == dimension:
            found.setdefault(tuple(sorted(elements(span.basis).tolist())), tuple(span.basis))
    return list(found.values())


def have_common_complement(bits: int, some: tuple[tuple[int, ...], ...]) -> bool:
    """A kernel that meets none of the subspaces: as many banks as the subspaces have points."""
    dimension = len(some[0])
    frame = Frame(bits, 0, dimension, (), tuple(Free(1 << b, 0) for b in range(bits)), ())
    demands = [
        Demand(number, tuple(elements(basis).tolist()), basis, 1, 1)
        for number, basis in enumerate(some)
    ]
    search = ColumnSearch(Demands(frame, tuple(demands), 1), Watch(), len(some) + 1)
    search.run()
    return search.best is not None


# Triples of subspaces without a common complement, by bits and dimension.
WITHOUT = {
    (2, 1): 1, (3, 1): 7, (3, 2): 7, (4, 1): 35, (4, 2): 105, (4, 3): 35,
    (5, 1): 155, (5, 2): 1085, (5, 3): 1085, (5, 4): 155,
}  # fmt: skip


def count_without(bits: int, dimension: int) -> int:
    """All subspaces of a dimension are alike: a triple is counted by each of its three."""
    first, *rest = subspaces(bits, dimension)
    assert all(have_common_complement(bits, (first, other)) for other in rest)
    bad = sum(not have_common_complement(bits, (first, *two)) for two in combinations(rest, 2))
    total = (len(rest) + 1) * bad
    assert total % 3 == 0
    return total // 3
