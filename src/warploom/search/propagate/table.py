"""Tables of values: compositions, listed rows and equations become scopes with allowed tuples.

Comes in: a constraint. Goes out: `Listing`s; the compiler looks narrow ones up (packed.py) and
keeps wide ones as listed tuples (tuples.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from warploom.errors import CheckError, ensure
from warploom.search.branching.candidate import Bits, Index
from warploom.search.space.ir import Choice, Composition, Equation, Table, Variable
from warploom.search.space.layout import Layout

MOST_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """The choices at the positions of each row of `scope` take values whose numbers are a row of
    `allowed`. Where the choice of one of the `excused` columns has no value, anything goes."""

    name: str
    scope: Index
    allowed: Index
    choices: tuple[Choice, ...]
    excused: tuple[int, ...]


def apart(variables: tuple[Variable, ...]) -> list[tuple[Variable, Variable]]:
    """All pairs: they stand for different objects."""
    return list(combinations(variables, 2))


def composed(layout: Layout, constraint: Composition) -> Listing:
    """One row for each three objects: what all six ways to compose them allow."""
    choice = constraint.choice
    assert choice.inverse is not None
    items = np.unique(layout.choices.objects[choice]).tolist()
    objects = np.array(list(combinations(items, 3)), np.int64).reshape(-1, 3)
    sides = ((0, 1), (1, 2), (0, 2))
    scope = [layout.choices.find(choice, objects[:, list(side)]) for side in sides]
    ensure(not any(exchanged.any() for _, exchanged in scope), "instances are in order")
    count = len(choice.values)
    table = (np.array(constraint.table)[..., None] >> np.arange(count) & 1).astype(bool)
    values = dict(zip(sides, np.indices((count,) * 3), strict=True))
    values |= {(b, a): np.array(choice.inverse)[value] for (a, b), value in values.items()}
    allowed = np.ones((count,) * 3, bool)
    for a, b, c in permutations(range(3)):
        allowed &= table[values[a, b], values[b, c], values[a, c]]
    place = np.stack([position for position, _ in scope], axis=1)
    name = f"composition of {choice.name}"
    return Listing(name, place, np.argwhere(allowed), (choice,) * 3, (0, 1, 2))


def listed(layout: Layout, constraint: Table) -> Listing:
    variables = tuple(dict.fromkeys(v for term in constraint.terms for v in term.arguments))
    rows = layout.rows(variables, apart(variables))
    scope, values = [], []
    for column, term in enumerate(constraint.terms):
        position, exchanged = layout.choices.find(term.choice, rows.of(term.arguments))
        if exchanged.any():
            raise CheckError(
                f"the table '{constraint.name}' meets '{term.choice.name}' in both directions",
                advice="use a relation that lists the objects in the order they were declared in",
            )
        scope.append(position)
        values.append([term.choice.values.index(row[column]) for row in constraint.rows])
    allowed = np.array(values, np.int64).reshape(len(values), -1).T
    choices = tuple(term.choice for term in constraint.terms)
    excused = tuple(range(len(choices)))
    return Listing(constraint.name, np.stack(scope, axis=1), allowed, choices, excused)


def equated(layout: Layout, start: Bits, constraint: Equation) -> Iterator[Listing]:
    """One listing for each total: it and its parts."""
    total, part = constraint.total, constraint.part
    keys = layout.rows(total.arguments, apart(total.arguments))
    names = tuple(dict.fromkeys((*total.arguments, *part.arguments)))
    rows, origin = layout.extended(keys, names, apart(names))
    parts, _ = layout.choices.find(part.choice, rows.of(part.arguments))
    totals, _ = layout.choices.find(total.choice, keys.of(total.arguments))
    for number, position in enumerate(totals.tolist()):
        own = np.unique(parts[origin == number])
        scope = np.array([[position, *own.tolist()]])
        choices = (total.choice, *(part.choice,) * len(own))
        allowed = _combinations(constraint, start[scope[0]].tolist())
        yield Listing(constraint.name, scope, allowed, choices, (0,))


def _combinations(constraint: Equation, domains: list[int]) -> Index:
    """Rows (total, parts...) of value numbers for which the equation holds. A part that has no
    value (its number is the last) changes nothing."""
    totals = np.array(constraint.total.choice.values, np.int64)
    neutral = 1 if constraint.kind == "product" else 0
    values = np.array([*constraint.part.choice.values, neutral], np.int64)
    most = int(totals.max(initial=0))
    if most * int(values.max()) >= 1 << 62:
        raise CheckError(f"'{constraint.name}' is about numbers beyond 2**62")
    rows, reached = np.zeros((1, 0), np.int64), np.full(1, neutral)
    for domain in domains[1:]:
        own = np.array([v for v in range(len(values)) if domain >> v & 1], np.int64)
        last = np.tile(own, len(rows))
        rows = np.concatenate([np.repeat(rows, len(own), axis=0), last[:, None]], axis=1)
        reached = np.repeat(reached, len(own))
        reached = reached * values[last] if neutral else reached + values[last]
        rows, reached = rows[reached <= most], reached[reached <= most]
        if len(rows) > MOST_ROWS:
            raise CheckError(
                f"'{constraint.name}' has more than {MOST_ROWS} combinations",
                advice="list fewer values, or split it in two",
            )
    place = np.searchsorted(totals, reached)
    right = np.append(totals, -1)[place] == reached
    right &= (domains[0] >> place & 1).astype(bool)
    return np.concatenate([place[right, None], rows[right]], axis=1)
