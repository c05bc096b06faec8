"""Which values a search keeps as bags of items, because a later fold takes them apart.

Under the laws `+(+(a, b), c)` is `+(a, b, c)`, so what an inner fold makes is no subterm of the
goal. Its items are carried along instead: the value of each cell takes several cells, in no order,
filled up with zeros, and the later fold packs them all. Since a fold of one item is that item, a
product between two sums may have to pass a bag on. docs/search.md says why no fill is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.errors import SearchError, spelled
from warploom.sketch.term.ir import Apply, Fold, Literal, Program, Step
from warploom.sketch.term.laws import bag, obeys
from warploom.sketch.term.zeros import may_be_lone

Operators = dict[int, frozenset[str]]
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """For each live step: the operator of its bags (empty: none), and how many cells a value has.

    `reads` says whose bags a step takes of its arguments; `also_packed` are the steps in bags that
    some other step reads as whole values.
    """

    operator: Mapping[int, str]
    width: Mapping[int, int]
    reads: Mapping[int, str]
    also_packed: frozenset[int]


def plan(program: Program, live: frozenset[int], laws: tuple[str, ...]) -> Plan:
    steps = {position: program.steps[position] for position in sorted(live)}
    operator = _carried(steps, laws) if laws else dict.fromkeys(steps, "")
    reads = {p: operator[p] or _flattens(step, laws) for p, step in steps.items()}
    packed = frozenset(
        arg
        for position, step in steps.items()
        for arg in _args(step)
        if operator[arg] not in ("", reads[position])
    )
    return Plan(operator, _widths(steps, operator, reads), reads, packed)


def _flattens(step: Step, laws: tuple[str, ...]) -> str:
    """The operator of which a step takes folds apart; empty if of none."""
    folds = isinstance(step, Apply) and step.fold is not None
    return step.operator if folds and obeys(step.operator, laws) else ""  # type: ignore[union-attr]


def _args(step: Step) -> tuple[int, ...]:
    return step.args if isinstance(step, Apply) else ()


def _widths(
    steps: dict[int, Step], operator: Mapping[int, str], reads: Mapping[int, str]
) -> dict[int, int]:
    width: dict[int, int] = {}
    for position, step in steps.items():
        if not operator[position]:
            width[position] = 1
        elif isinstance(step, Literal):
            width[position] = max(len(bag(operator[position], value)) for value in step.values)
        else:
            same = [arg for arg in step.args if operator[arg] == reads[position]]
            grows = step.fold if step.fold and step.operator == operator[position] else 1
            width[position] = max((width[arg] for arg in same), default=1) * grows
    return width


def _carried(steps: dict[int, Step], laws: tuple[str, ...]) -> dict[int, str]:
    """The operator of which each step holds folds that a fold of the same operator reads."""
    folds = {p: s for p, s in steps.items() if isinstance(s, Apply) and s.fold is not None}
    lawful = {p: s.operator for p, s in folds.items() if obeys(s.operator, laws)}
    # As if every fold could be of one item; where that makes no difference, nobody need look.
    lone = frozenset(folds)
    holds, feeds = _holds(steps, lawful, lone, laws), _feeds(steps, lawful, lone)
    if any(holds[position] & feeds[position] for position in steps):
        lone = may_be_lone(steps) if len(set(lawful.values())) > 1 else frozenset()
        holds, feeds = _holds(steps, lawful, lone, laws), _feeds(steps, lawful, lone)
    found: dict[int, str] = {}
    for position, step in steps.items():
        both = holds[position] & feeds[position]
        if position in lawful and lawful[position] not in both and both:
            # It passes on a lone item in its bag, so it cannot take another argument apart.
            both |= {found[arg] for arg in _args(step)} & {lawful[position]}
        if len(both) > 1:
            raise SearchError(
                f"'{step.name}' holds folds with {' and with '.join(sorted(both))}, and later "
                "folds take both apart: the search does not support that with the law flatten",
                step.span,
                "search without laws: " + spelled("--laws none", "laws='none'"),
            )
        found[position] = next(iter(both), "")
    return found


def _holds(
    steps: dict[int, Step], lawful: dict[int, str], lone: frozenset[int], laws: tuple[str, ...]
) -> Operators:
    """For each step, the operators whose folds its cells may hold."""
    holds: Operators = {}
    for position, step in steps.items():
        if isinstance(step, Literal):
            tops = {value.operator for value in step.values if isinstance(value, Fold)}
            holds[position] = frozenset(top for top in tops if obeys(top, laws))
            continue
        passed = NONE.union(*(holds[arg] for arg in step.args))
        if step.fold is None:
            holds[position] = passed
        elif position in lawful:
            holds[position] = frozenset({lawful[position]}) | (passed if position in lone else NONE)
        else:
            holds[position] = NONE
    return holds


def _feeds(steps: dict[int, Step], lawful: dict[int, str], lone: frozenset[int]) -> Operators:
    """Which folds may read a step's value as it is, through gathers and folds of one item."""
    feeds: Operators = dict.fromkeys(steps, NONE)
    for position in reversed(steps):
        step = steps[position]
        if isinstance(step, Literal):
            continue
        into = feeds[position] if step.fold is None else NONE
        if position in lawful:
            into = (feeds[position] if position in lone else NONE) | {lawful[position]}
        for arg in step.args:
            feeds[arg] |= into
    return feeds
