"""The sound rules: a mapping that obeys computes what the expression means.

They are those of the CC 2022 paper, mended. Memory is looked at buffer by buffer: every map between
a buffer's declaration and an access of it counts, whether the buffer is an argument, a result or
captured. What must be spread over all threads is every write to memory that several threads see,
under a leaf map or not. And groups do not exchange data through global memory, rule (9).
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.mapping.constraint import (
    BY_THREAD,
    FUSED,
    GLOBAL,
    GROUP,
    IN_GROUP,
    PARALLEL,
    SEQUENTIAL,
    VECTOR,
    Clause,
    Constraint,
    Constraints,
    Used,
    implies_one,
    is_,
)
from warploom.array.mapping.fusion import Fusion, fusion_rule
from warploom.array.mapping.released import (
    EXHAUSTIVE_KIND,
    PRIVATE_KIND,
    SHARED_KIND,
    dimensions,
    duplicates,
    hierarchy,
    unmixed,
)
from warploom.array.mapping.tree import Chain, MapNode, MapTree, Shared
from warploom.errors import UnsupportedError

GLOBAL_KIND, MIXED_KIND = "global memory", "mixed levels"


def sound(tree: MapTree, fusion: Fusion = "none") -> Constraints:
    choices = {each.number: choices_of(each) for each in tree.maps}
    listed = [
        *_private(tree),
        *_local(tree),
        *_global(tree),
        *duplicates(tree),
        dimensions(),
        *hierarchy(tree),
        *_exhaustive(tree),
        Constraint(MIXED_KIND, "global threads and groups do not mix", tuple(unmixed())),
        *fusion_rule(tree, fusion),
    ]
    return Constraints("sound", choices, tuple(listed))


def choices_of(node: MapNode) -> frozenset[str]:
    """How a map may run by itself: as the user wrote, or anyhow."""
    kind, dimension = node.level.kind, node.level.dimension
    match kind:
        case "any":
            fused = (FUSED,) if node.perfect else ()
            vector = (VECTOR,) if node.consecutive else ()
            return frozenset((SEQUENTIAL, *PARALLEL, *fused, *vector))
        case "sequential":
            return frozenset((SEQUENTIAL,))
        case "vector":
            return frozenset((VECTOR,) if node.consecutive else ())
        case "local" | "group" | "global":
            letter = {"local": "l", "group": "w", "global": "g"}[kind]
            return frozenset((f"{letter}{dimension}",))
        case _:
            raise UnsupportedError(
                f"maps on the level '{kind}' are not mapped yet", advice="use map_local(0, …)"
            )


def below(buffer: Shared) -> Chain:
    """The maps between a buffer's declaration and its accesses."""
    inner = [each for chain in buffer.accesses for each in chain[len(buffer.scope) :]]
    return tuple(dict.fromkeys(inner))


def _limited(
    tree: MapTree, space: str, kind: str, allowed: frozenset[str]
) -> Iterator[Constraint]:  # fmt: skip
    """Maps through which a buffer is accessed run in these ways only; one constraint for a map."""
    about: dict[int, list[str]] = {}
    for buffer in tree.buffers:
        if buffer.space == space:
            for each in below(buffer):
                about.setdefault(each, []).append(buffer.name)
    for each, names in sorted(about.items()):
        yield Constraint(kind, f"map {each}: {', '.join(names)}", ((is_(each, *allowed),),))


def _private(tree: MapTree) -> Iterator[Constraint]:
    """(1) A thread's own memory is touched by that thread alone."""
    yield from _limited(tree, "private", PRIVATE_KIND, BY_THREAD)


def _local(tree: MapTree) -> Iterator[Constraint]:
    """(2) A group's memory is touched by that group alone: groups are chosen outside of it."""
    yield from _limited(tree, "local", SHARED_KIND, IN_GROUP)
    for buffer in tree.buffers:
        if buffer.space == "local":
            clauses: list[Clause] = [(Used(run, False),) for run in GLOBAL]
            clauses += [
                implies_one(Used(run, True), [is_(each, run) for each in buffer.scope])
                for run in GROUP
            ]
            yield Constraint(SHARED_KIND, f"groups around {buffer.name}", tuple(clauses))


def _global(tree: MapTree) -> Iterator[Constraint]:
    """(9) No group waits for another: what one writes to global memory, it reads itself."""
    yield from _limited(tree, "global", GLOBAL_KIND, IN_GROUP)


def _exhaustive(tree: MapTree) -> Iterator[Constraint]:
    """(7) What several threads see is written by one of them: each write is spread over all."""
    for chain in tree.stores:
        clauses = [
            implies_one(Used(run, True), [is_(each, run) for each in chain]) for run in PARALLEL
        ]
        place = f"map {chain[-1]}" if chain else "no map"
        yield Constraint(EXHAUSTIVE_KIND, f"write in {place}", tuple(clauses))
