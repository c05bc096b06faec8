"""Counters over variables become counter groups: one row for each tuple of objects counted.

Counters of the same kind that count the same kinds of amounts are one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from warploom.search.branching.candidate import Index, Numbers
from warploom.search.propagate.counter import (
    Amounts,
    ChosenAmounts,
    CountedAmounts,
    CounterGroup,
    KnownAmounts,
    Terms,
)
from warploom.search.space.ground import Grounder, InDomain
from warploom.search.space.ir import Amount, Choice, Chosen, Counted, Counter, Given
from warploom.search.space.layout import Rows
from warploom.search.space.sentence import conditions, variables_of


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """What one amount of a counter counts: `origin` says for which of its instances. `source` is
    the choice (or just: a counter) whose value at `position` counts, or None for known values."""

    origin: Index
    literals: list[InDomain]
    source: Choice | type[Counter] | None
    position: Index
    value: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """One counter, grounded."""

    counter: Counter
    position: Index
    base: Numbers
    parts: tuple[_Entries, ...]


def counter_groups(grounder: Grounder) -> list[CounterGroup]:
    alike: dict[tuple[object, ...], list[_Member]] = {}
    for counter in grounder.layout.space.counters:
        member = _member(grounder, counter)
        key = (counter.kind, *(part.source for part in member.parts))
        alike.setdefault(key, []).append(member)
    return [_group(grounder, members) for members in alike.values()]


def _member(grounder: Grounder, counter: Counter) -> _Member:
    layout = grounder.layout
    objects = layout.counters.objects[counter]
    keys = Rows({v: objects[:, at] for at, v in enumerate(counter.per)}, len(objects))
    assert isinstance(counter.base, Given | int), "checked when it was declared"
    base = grounder.value(counter.base, keys).astype(np.float64)
    parts = tuple(_entries(grounder, amount, keys) for amount in counter.amounts)
    return _Member(counter, layout.counters.offset[counter] + np.arange(len(objects)), base, parts)


def _entries(grounder: Grounder, amount: Amount, keys: Rows) -> _Entries:
    layout = grounder.layout
    named = (*keys.columns, *variables_of(amount.amount), *variables_of(amount.when))
    names = tuple(dict.fromkeys(named))
    apart = [(a, b) for at, a in enumerate(names) for b in names[:at]]
    rows, origin = layout.extended(keys, names, apart)
    rows, literals, kept = grounder.conjunction(conditions(amount.when), rows)
    origin, nothing = origin[kept], np.zeros(0, np.int64)
    match amount.amount:
        case Chosen(choice, arguments):
            position = layout.choices.find(choice, rows.of(arguments))[0]
            return _Entries(origin, literals, choice, position, np.zeros(0))
        case Counted(counter, arguments):
            position = layout.counters.find(counter, rows.of(arguments))[0]
            return _Entries(origin, literals, Counter, position, np.zeros(0))
        case Given() | int():
            value = grounder.value(amount.amount, rows).astype(np.float64)
            return _Entries(origin, literals, None, nothing, value)
        case _:
            assert_never(amount.amount)


def _group(grounder: Grounder, members: list[_Member]) -> CounterGroup:
    starts = np.cumsum([0, *(len(member.position) for member in members)])
    parts = zip(*(member.parts for member in members), strict=True)
    return CounterGroup(
        ", ".join(member.counter.name for member in members),
        members[0].counter.kind,
        np.concatenate([member.position for member in members]),
        np.concatenate([member.base for member in members]),
        tuple(_terms(grounder, part, starts) for part in parts),
        grounder.nowhere + 1,
    )


def _terms(grounder: Grounder, parts: tuple[_Entries, ...], starts: Index) -> Terms:
    """Entries side by side, those of one instance in one row. Literals that are missing are true,
    and terms that are missing have a false one: the constant behind the last choice is bit 0."""
    origin = np.concatenate([p.origin + start for p, start in zip(parts, starts, strict=False)])
    rank = np.arange(len(origin)) - np.searchsorted(origin, origin)
    shape = (int(starts[-1]), int(rank.max(initial=-1)) + 1)
    place = (origin, rank)
    depth = max([1, *(len(part.literals) for part in parts)])
    position = np.full((*shape, depth), grounder.nowhere)
    allowed = np.zeros((*shape, depth), np.uint64)
    allowed[place] = 1
    ends = np.cumsum([len(part.origin) for part in parts])
    for part, end in zip(parts, ends, strict=True):
        own = slice(end - len(part.origin), end)
        for at, literal in enumerate(part.literals):
            position[origin[own], rank[own], at] = literal.position
            allowed[origin[own], rank[own], at] = literal.allowed
    return Terms(position, allowed, _amounts(grounder, parts, place, shape))


def _amounts(
    grounder: Grounder,
    parts: tuple[_Entries, ...],
    place: tuple[Index, Index],
    shape: tuple[int, int],
) -> Amounts:
    source = parts[0].source
    if source is None:
        value = np.ones(shape)
        value[place] = np.concatenate([part.value for part in parts])
        return KnownAmounts(value)
    nowhere = grounder.nowhere if isinstance(source, Choice) else grounder.layout.counters.count
    position = np.full(shape, nowhere)
    position[place] = np.concatenate([part.position for part in parts])
    if isinstance(source, Choice):
        return ChosenAmounts(position, np.array(source.values, np.float64))
    return CountedAmounts(position, grounder.nowhere + 1)
