"""Rule (8): sequential maps that can be one loop are one loop. A heuristic: `intended` leaves out
nothing but other ways to write the same loops, `coded` leaves out mappings of their own.

`coded` is what the released code does: no map of a perfect nest is sequential inside a sequential
one, even with a parallel map between them. `intended` only looks through fused maps. `none` leaves
it to the search. `private` is `coded` for maps that can only be sequential or fused: they are then
decided, and the others are free.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from warploom.array.mapping.constraint import FUSED, SEQUENTIAL, Clause, Constraint, is_not
from warploom.array.mapping.tree import Chain, MapTree

Fusion: TypeAlias = Literal["coded", "intended", "none", "private"]
KIND = "fusion"


def fusion_rule(tree: MapTree, fusion: Fusion) -> Iterator[Constraint]:
    for nest in tree.nests:
        if fusion == "private" and not all(tree.node(each).uses("private") for each in nest):
            continue
        clauses = _intended(nest) if fusion == "intended" else _coded(nest)
        if fusion != "none":
            yield Constraint(KIND, f"nest of map {nest[0]}", tuple(clauses))


def _coded(nest: Chain) -> Iterator[Clause]:
    for at, outer in enumerate(nest):
        for inner in nest[at + 1 :]:
            yield (is_not(outer, SEQUENTIAL), is_not(inner, SEQUENTIAL))


def _intended(nest: Chain) -> Iterator[Clause]:
    for at, outer in enumerate(nest):
        for last in range(at + 1, len(nest)):
            between = [is_not(each, FUSED) for each in nest[at + 1 : last]]
            yield (is_not(outer, SEQUENTIAL), *between, is_not(nest[last], SEQUENTIAL))
