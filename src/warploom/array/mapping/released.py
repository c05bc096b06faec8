"""The rules of the CC 2022 paper as its released code has them, numbers as printed there.

They are kept to reproduce its figures. They are not sound: they look at leaf maps instead of
writes, at a map's result and direct argument instead of all it touches, and let groups exchange
data through global memory. `sound.py` has the rules that everything else uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.mapping.constraint import (
    FUSED,
    GLOBAL,
    GROUP,
    LEVELS,
    LOCAL,
    PARALLEL,
    SEQUENTIAL,
    Clause,
    Constraint,
    Constraints,
    Used,
    implies_one,
    is_,
    is_not,
)
from warploom.array.mapping.fusion import Fusion, fusion_rule
from warploom.array.mapping.tree import MapNode, MapTree

PRIVATE_KIND, SHARED_KIND = "private memory", "shared memory"
DUPLICATE_KIND, DIMENSION_KIND = "duplicate scheduling", "dimensionality"
HIERARCHY_KIND, EXHAUSTIVE_KIND = "hierarchy", "exhaustive"


def released(tree: MapTree, fusion: Fusion = "coded") -> Constraints:
    choices = {
        each.number: frozenset((SEQUENTIAL, *PARALLEL, *((FUSED,) if each.perfect else ())))
        for each in tree.maps
    }
    listed = [
        *_private(tree),
        *_shared(tree),
        *duplicates(tree),
        dimensions(),
        *hierarchy(tree),
        *_exhaustive(tree),
        *fusion_rule(tree, fusion),
    ]
    return Constraints("released", choices, tuple(listed))


def _private(tree: MapTree) -> Iterator[Constraint]:
    """(1) A map that touches private memory is not parallel."""
    for each in tree.maps:
        if each.uses("private"):
            yield Constraint(
                PRIVATE_KIND, f"map {each.number}", ((is_(each.number, SEQUENTIAL, FUSED),),)
            )


def _shared(tree: MapTree) -> Iterator[Constraint]:
    """(2) A map that touches local memory stays within one group, which outer maps choose."""
    some = False
    for each in tree.maps:
        if each.uses("local"):
            some = True
            yield Constraint(SHARED_KIND, f"map {each.number}", tuple(_in_one_group(tree, each)))
    if some:
        groups = tuple(Used(run, True) for run in GROUP)
        yield Constraint(SHARED_KIND, "local memory needs groups", (groups,))
    yield Constraint(SHARED_KIND, "global threads and groups do not mix", tuple(unmixed()))


def _in_one_group(tree: MapTree, node: MapNode) -> Iterator[Clause]:
    outer = tree.outer[node.number]
    yield (is_(node.number, SEQUENTIAL, FUSED, *LOCAL),)
    yield tuple(is_(each, *GROUP) for each in outer)
    for run in GROUP:
        yield implies_one(Used(run, True), [is_(each, run) for each in outer])


def unmixed() -> Iterator[Clause]:
    """Threads counted over all groups are the threads of groups: a kernel uses one or the other."""
    for run in GLOBAL:
        for other in (*LOCAL, *GROUP):
            yield (Used(run, False), Used(other, False))


def duplicates(tree: MapTree) -> Iterator[Constraint]:
    """(3) No two maps inside each other run on the same threads."""
    for outer, nested in tree.nested.items():
        if nested:
            clauses = [
                (is_not(outer, run), is_not(inner, run)) for inner in nested for run in LEVELS
            ]
            yield Constraint(DUPLICATE_KIND, f"map {outer}", tuple(clauses))


def dimensions() -> Constraint:
    """(4), (5) Groups have threads in the dimensions in which there are groups."""
    clauses: list[Clause] = []
    for local, group in zip(LOCAL, GROUP, strict=True):
        clauses += [implies_one(Used(local, True), [Used(group, True)])]
        clauses += [implies_one(Used(group, True), [Used(local, True)])]
    return Constraint(DIMENSION_KIND, "groups and their threads", tuple(clauses))


def hierarchy(tree: MapTree) -> Iterator[Constraint]:
    """(6) Groups are not inside threads of their dimension."""
    for outer, nested in tree.nested.items():
        if nested:
            clauses = [
                (is_not(outer, local), is_not(inner, group))
                for inner in nested
                for local, group in zip(LOCAL, GROUP, strict=True)
            ]
            yield Constraint(HIERARCHY_KIND, f"map {outer}", tuple(clauses))


def _exhaustive(tree: MapTree) -> Iterator[Constraint]:
    """(7) What runs anywhere runs in every chain; a map alone is in none."""
    for chain in tree.chains:
        if len(chain) > 1:
            clauses = [
                implies_one(Used(run, True), [is_(each, run) for each in chain]) for run in PARALLEL
            ]
            yield Constraint(EXHAUSTIVE_KIND, f"chain to map {chain[-1]}", tuple(clauses))
