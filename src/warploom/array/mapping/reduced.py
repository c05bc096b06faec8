"""Constraints made smaller without losing a mapping: what is decided already is put in.

A clause with one literal left restricts a map; a literal that cannot hold goes, and so does a
clause with one that always holds. What is left says the same of fewer maps.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.array.mapping.constraint import LEVELS, Clause, Constraints, Is, Literal, Used


@dataclass(slots=True)
class Reduced:
    """`choices` of all maps and the clauses that are left; `used` holds what is known of runs.

    `impossible`: no mapping obeys.
    """

    choices: dict[int, frozenset[str]]
    clauses: list[Clause]
    used: dict[str, bool]
    impossible: bool = False

    @property
    def open(self) -> tuple[int, ...]:
        """The maps that are not decided."""
        return tuple(each for each, allowed in self.choices.items() if len(allowed) > 1)


def reduced(constraints: Constraints) -> Reduced:
    clauses = [clause for each in constraints.listed for clause in each.clauses]
    state = Reduced(dict(constraints.choices), list(dict.fromkeys(clauses)), {})
    before = None
    while before != (state.choices, state.used) and not state.impossible:
        before = (dict(state.choices), dict(state.used))
        _note_used(state)
        state.clauses = list(dict.fromkeys(_left(state)))
    state.impossible |= any(not allowed for allowed in state.choices.values())
    return state


def _note_used(state: Reduced) -> None:
    """A run that no map may have is not used; one that a decided map has is."""
    possible = frozenset().union(*state.choices.values()) if state.choices else frozenset()
    decided = {run for allowed in state.choices.values() if len(allowed) == 1 for run in allowed}
    for run in LEVELS:
        if run not in possible:
            _note(state, Used(run, False))
        elif run in decided:
            _note(state, Used(run, True))


def _left(state: Reduced) -> list[Clause]:
    found = []
    for clause in state.clauses:
        values = [(each, _truth(state, each)) for each in clause]
        if any(truth is True for _, truth in values):
            continue
        rest = tuple(each for each, truth in values if truth is None)
        if not rest:
            state.impossible = True
        elif len(rest) == 1:
            _note(state, rest[0])
        else:
            found.append(rest)
    return found


def _truth(state: Reduced, literal: Literal) -> bool | None:
    match literal:
        case Is(map_, runs):
            allowed = state.choices[map_]
            return True if allowed <= runs else None if allowed & runs else False
        case Used(run, truth):
            known = state.used.get(run)
            return None if known is None else known == truth


def _note(state: Reduced, literal: Literal) -> None:
    match literal:
        case Is(map_, runs):
            state.choices[map_] &= runs
        case Used(run, truth):
            if state.used.setdefault(run, truth) != truth:
                state.impossible = True
            if not truth:
                for each in state.choices:
                    state.choices[each] -= {run}
