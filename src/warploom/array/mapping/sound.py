"""The sound rules: a mapping that obeys computes what the expression means.

They are those of the CC 2022 paper, mended. Memory is looked at buffer by buffer: every map between
a buffer's declaration and an access of it counts, whether the buffer is an argument, a result or
captured. What must be spread over all threads is every write to memory that several threads see,
under a leaf map or not. And groups do not exchange data through global memory, rule (9).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from warploom.array.mapping.constraint import (
    BY_THREAD,
    FUSED,
    GLOBAL,
    GROUP,
    IN_GROUP,
    LANE,
    LEVELS,
    LOCAL,
    PARALLEL,
    SEQUENTIAL,
    VECTOR,
    WARP,
    Clause,
    Constraint,
    Constraints,
    Used,
    implies_one,
    is_,
    is_not,
)
from warploom.array.mapping.fusion import Fusion, fusion_rule
from warploom.array.mapping.released import (
    DIMENSION_KIND,
    EXHAUSTIVE_KIND,
    PRIVATE_KIND,
    SHARED_KIND,
    duplicates,
    hierarchy,
    unmixed,
)
from warploom.array.mapping.tree import Chain, MapNode, MapTree, Shared

GLOBAL_KIND, MIXED_KIND = "global memory", "mixed levels"


def sound(tree: MapTree, fusion: Fusion = "none") -> Constraints:
    choices = {each.number: choices_of(each) for each in tree.maps}
    listed = [
        *_private(tree),
        *_local(tree),
        *_global(tree),
        *duplicates(tree),
        _dimensions(),
        *hierarchy(tree),
        *_exhaustive(tree),
        Constraint(MIXED_KIND, "global threads and groups do not mix", tuple(unmixed())),
        *_warps(tree),
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
        case "warp":
            return frozenset((WARP,))
        case "lane":
            return frozenset((LANE,))
        case _:
            assert_never(kind)


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
    """(1) A thread's own memory is touched by that thread alone: maps through which it is accessed
    are not parallel. But a dimension that only maps index, all on the same threads, is spread over
    these: each has the elements of its own iterations."""
    inner = {each.parent: each.number for each in tree.maps if each.perfect}
    for buffer in tree.buffers:
        if buffer.space != "private":
            continue
        spread = {each for along in buffer.along for each in along}
        for each in below(buffer):
            allowed = BY_THREAD | set(LOCAL) if each in spread else BY_THREAD
            about = f"map {each}: {buffer.name}"
            yield Constraint(PRIVATE_KIND, about, ((is_(each, *allowed),),))
        for along in filter(None, buffer.along):
            clauses = [
                (is_not(one, run), is_(other, run))
                for one in along for other in along if one != other for run in LOCAL
            ]  # fmt: skip
            clauses += [
                (is_not(one, *LOCAL), is_not(inner[one], FUSED)) for one in along if one in inner
            ]
            yield Constraint(PRIVATE_KIND, f"maps {along}: {buffer.name}", tuple(clauses))


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


def _dimensions() -> Constraint:
    """(4) Threads are those of groups. (5) Groups have threads, if not in each of their dimensions:
    a group of one thread is a thread."""
    some = [Used(run, True) for run in (*LOCAL, LANE)]
    clauses: list[Clause] = []
    for local, group in zip(LOCAL, GROUP, strict=True):
        clauses += [(Used(local, False), Used(group, True)), (Used(group, False), *some)]
    return Constraint(DIMENSION_KIND, "groups and their threads", tuple(clauses))


def _warps(tree: MapTree) -> Iterator[Constraint]:
    """Warps and their lanes are the threads of a group in dimension 0, both or none."""
    if not any(each.level.kind in ("warp", "lane") for each in tree.maps):
        return
    clauses: list[Clause] = [
        (Used(one, False), Used(other, False))
        for one in (WARP, LANE) for other in (LOCAL[0], *GLOBAL)
    ]  # fmt: skip
    clauses += [(Used(WARP, False), Used(LANE, True)), (Used(LANE, False), Used(WARP, True))]
    clauses += [(Used(LANE, False), Used(GROUP[0], True))]
    yield Constraint(MIXED_KIND, "warps and lanes are threads of a group", tuple(clauses))
    inside = [
        (is_not(outer, WARP, LANE), is_not(inner, GROUP[0]))
        for outer, nested in tree.nested.items() for inner in nested
    ]  # fmt: skip
    yield Constraint("hierarchy", "groups are not inside warps", tuple(inside))


def _exhaustive(tree: MapTree) -> Iterator[Constraint]:
    """(7) What several threads see is written by one of them: each write is spread over all."""
    for chain in tree.stores:
        clauses = [
            implies_one(Used(run, True), [is_(each, run) for each in chain]) for run in LEVELS
        ]
        place = f"map {chain[-1]}" if chain else "no map"
        yield Constraint(EXHAUSTIVE_KIND, f"write in {place}", tuple(clauses))
