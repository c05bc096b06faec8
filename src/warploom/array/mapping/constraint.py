"""Constraints on mappings, as data: clauses over "this map runs so" and "someone runs so".

A map *runs* sequentially, fused with the map around it, on vector lanes, or on the threads of a
group, on groups, or on all threads, in one of three dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

SEQUENTIAL, FUSED, VECTOR = "seq", "fused", "vector"
LOCAL, GROUP, GLOBAL = (
    tuple(f"{letter}{dimension}" for dimension in range(3)) for letter in ("l", "w", "g")
)
PARALLEL = (*LOCAL, *GROUP, *GLOBAL)
WARP, LANE = "warp", "lane"  # only where the user says so: together they are dimension 0 of a group
LEVELS = (*PARALLEL, WARP, LANE)
RUNS = (SEQUENTIAL, FUSED, VECTOR, *LEVELS)
BY_THREAD = frozenset((SEQUENTIAL, FUSED, VECTOR))  # one thread does all iterations
IN_GROUP = BY_THREAD | frozenset((*LOCAL, WARP, LANE))


@dataclass(frozen=True, slots=True)
class Is:
    """A map runs in one of these ways."""

    map: int
    runs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Used:
    """Some map runs this way, or (`truth` false) none does."""

    run: str
    truth: bool


Literal: TypeAlias = Is | Used
Clause: TypeAlias = tuple[Literal, ...]  # one of them holds; without any, none does


@dataclass(frozen=True, slots=True)
class Constraint:
    """All clauses hold; `kind` is the rule that they come from."""

    kind: str
    about: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """What every map may be, and what must hold between them."""

    name: str
    choices: Mapping[int, frozenset[str]]
    listed: tuple[Constraint, ...]

    @property
    def by_kind(self) -> dict[str, int]:
        return dict(Counter(each.kind for each in self.listed))


# How each map runs.
Assignment: TypeAlias = Mapping[int, str]


def is_(map_: int, *runs: str) -> Is:
    return Is(map_, frozenset(runs))


def is_not(map_: int, *runs: str) -> Is:
    return Is(map_, frozenset(RUNS) - frozenset(runs))


def implies_one(given: Literal, wanted: Iterable[Literal]) -> Clause:
    return (negated(given), *wanted)


def negated(literal: Literal) -> Literal:
    match literal:
        case Is(map_, runs):
            return Is(map_, frozenset(RUNS) - runs)
        case Used(run, truth):
            return Used(run, not truth)


def holds(clause: Clause, runs: Assignment, used: frozenset[str]) -> bool:
    return any(
        runs[each.map] in each.runs if isinstance(each, Is) else (each.run in used) == each.truth
        for each in clause
    )


def broken(constraints: Constraints, runs: Assignment) -> list[Constraint]:
    """The constraints that a mapping breaks; what a map may not be at all comes first."""
    used = frozenset(runs.values())
    found = [
        Constraint("choice", f"map {each} cannot run so", ())
        for each, allowed in constraints.choices.items()
        if runs[each] not in allowed
    ]
    return found + [
        each
        for each in constraints.listed
        if not all(holds(clause, runs, used) for clause in each.clauses)
    ]
