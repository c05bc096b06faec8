"""Counters: a sum or product lies between what certainly counts and what possibly does.

And back: what would make it too much does not count, what it cannot do without does, and the
amounts that count stay within what the others leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from warploom.search.branching.candidate import Bits, Flags, Index, Numbers
from warploom.search.propagate.clause import pairs
from warploom.search.propagate.state import State
from warploom.search.space.ground import HUGE
from warploom.search.space.ir import Kind


class Places(NamedTuple):
    """Some terms of some instances in some candidates."""

    row: Index
    instance: Index
    column: Index


class Amounts(Protocol):
    """What is counted: a table [instances, columns]."""

    def reads(self) -> tuple[Index, Index]: ...
    def bounds(self, state: State, row: Index, instance: Index) -> tuple[Numbers, Numbers]: ...
    def limit(self, state: State, at: Places, least: Numbers, most: Numbers) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class KnownAmounts:
    value: Numbers

    def reads(self) -> tuple[Index, Index]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def bounds(
        self,
        state: State,  # noqa: ARG002 - known in every candidate
        row: Index,  # noqa: ARG002
        instance: Index,
    ) -> tuple[Numbers, Numbers]:
        value = self.value[instance]
        return value, value

    def limit(self, state: State, at: Places, least: Numbers, most: Numbers) -> None:
        """Nothing to choose: where it does not fit, the counter's range is already empty."""


@dataclass(frozen=True, slots=True, eq=False)
class ChosenAmounts:
    """The values of a choice; `values` ascend."""

    position: Index
    values: Numbers

    def reads(self) -> tuple[Index, Index]:
        return pairs(self.position)

    def bounds(self, state: State, row: Index, instance: Index) -> tuple[Numbers, Numbers]:
        # Without values (absent, or failed) whatever is left is harmless: nothing is counted.
        mask = np.uint64((1 << len(self.values)) - 1)
        domain = state.domain(row[:, None], self.position[instance]) & mask
        domain = np.where(domain == 0, np.uint64(1), domain)
        return self.values[lowest(domain)], self.values[highest(domain)]

    def limit(self, state: State, at: Places, least: Numbers, most: Numbers) -> None:
        first = np.searchsorted(self.values, least, side="left").astype(np.uint64)
        end = np.searchsorted(self.values, most, side="right").astype(np.uint64)
        one = np.uint64(1)
        above = ~((one << first) - one)
        below = (one << end) - one
        state.restrict(at.row, self.position[at.instance, at.column], above & below)


@dataclass(frozen=True, slots=True, eq=False)
class CountedAmounts:
    """The values of other counters; `offset` is the number of the first among the variables."""

    position: Index
    offset: int

    def reads(self) -> tuple[Index, Index]:
        return pairs(self.position + self.offset)

    def bounds(self, state: State, row: Index, instance: Index) -> tuple[Numbers, Numbers]:
        return state.range(row[:, None], self.position[instance])

    def limit(self, state: State, at: Places, least: Numbers, most: Numbers) -> None:
        position = self.position[at.instance, at.column]
        state.at_least(at.row, position, least)
        state.at_most(at.row, position, most)


def lowest(bits: Bits) -> Index:
    """The number of the lowest set bit."""
    return (np.frexp((bits & (~bits + np.uint64(1))).astype(np.float64))[1] - 1).astype(np.int64)


def highest(bits: Bits) -> Index:
    """The number of the highest set bit. The one below it is cleared: rounding cannot carry."""
    top = bits & ~(bits >> np.uint64(1))
    return (np.frexp(top.astype(np.float64))[1] - 1).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Amounts with their conditions: literal l of term k of instance i is that the choice at
    `position[i, k, l]` has one of the values `allowed[i, k, l]`."""

    position: Index
    allowed: Bits
    amounts: Amounts

    def reads(self) -> tuple[Index, Index]:
        count = len(self.position)
        own, amounts = pairs(self.position.reshape(count, -1)), self.amounts.reads()
        return np.concatenate([own[0], amounts[0]]), np.concatenate([own[1], amounts[1]])


@dataclass(slots=True, eq=False)
class _View:
    """The terms as they are in some candidates: all arrays are [items, terms]."""

    terms: Terms
    open_literals: Flags  # [items, terms, literals]
    certain: Flags
    possible: Flags
    least: Numbers
    most: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class CounterGroup:
    """The instances of one counter, at `position` among the counters."""

    name: str
    kind: Kind
    position: Index
    base: Numbers
    parts: tuple[Terms, ...]
    offset: int

    @property
    def count(self) -> int:
        return len(self.position)

    def reads(self) -> tuple[Index, Index]:
        found = [part.reads() for part in self.parts]
        found.append(pairs(self.position[:, None] + self.offset))
        return np.concatenate([i for i, _ in found]), np.concatenate([v for _, v in found])

    def filter(self, state: State, row: Index, instance: Index) -> None:
        views = [_view(part, state, row, instance) for part in self.parts]
        low = high = self.base[instance]
        combine = np.add if self.kind == "sum" else np.multiply
        neutral = 0.0 if self.kind == "sum" else 1.0
        for view in views:
            sure = np.where(view.certain, view.least, neutral)
            maybe = np.where(view.possible, view.most, neutral)
            low = np.minimum(combine(low, combine.reduce(sure, axis=1)), HUGE)
            high = np.minimum(combine(high, combine.reduce(maybe, axis=1)), HUGE)
        position = self.position[instance]
        state.at_least(row, position, low)
        state.at_most(row, position, high)
        least, most = state.range(row, position)
        others = _others_of_sum if self.kind == "sum" else _others_of_product
        for view in views:
            _push_back(view, state, row, instance, others(view, low, high, least, most))


Room = tuple[Flags, Flags, Numbers, Numbers]


def _view(terms: Terms, state: State, row: Index, instance: Index) -> _View:
    domain = state.domain(row[:, None, None], terms.position[instance])
    allowed = terms.allowed[instance]
    open_literals = (domain & ~allowed) != 0
    possible = ((domain & allowed) != 0).all(axis=2)
    least, most = terms.amounts.bounds(state, row, instance)
    return _View(terms, open_literals, ~open_literals.any(axis=2), possible, least, most)


def _others_of_sum(view: _View, low: Numbers, high: Numbers, least: Numbers, most: Numbers) -> Room:
    """For each term: is it too much, is it needed, and what may it be if it counts? `low` and
    `high` bound the sum, `least` and `most` the counter."""
    low, high, least, most = (side[:, None] for side in (low, high, least, most))
    unbounded = most >= HUGE
    too_much = (low + view.least > most) & ~unbounded
    needed = (high - view.most < least) & (high < HUGE)
    at_least = np.where(high < HUGE, least - (high - view.most), 0.0)
    at_most = np.where(unbounded, HUGE, most - (low - view.least))
    return too_much, needed, at_least, at_most


def _others_of_product(
    view: _View, low: Numbers, high: Numbers, least: Numbers, most: Numbers
) -> Room:
    """`_others_of_sum` for a product. The quotients by which terms are left out are exact where
    they are used: below HUGE the product was, and the term is one of its factors."""
    low, high, least, most = (side[:, None] for side in (low, high, least, most))
    unbounded = most >= HUGE
    without_low, without_high = low / view.least, high / view.most
    too_much = (low * view.least > most) & ~unbounded
    needed = (without_high < least) & (high < HUGE)
    at_least = np.where(high < HUGE, np.ceil(least / without_high), 0.0)
    at_most = np.where(unbounded, HUGE, np.floor(most / without_low))
    return too_much, needed, at_least, at_most


def _push_back(view: _View, state: State, row: Index, instance: Index, room: Room) -> None:
    too_much, needed, least, most = room
    undecided = view.possible & ~view.certain
    _forbid(view, state, row, instance, undecided & too_much)
    _force(view, state, row, instance, undecided & needed)
    item, column = np.nonzero(view.certain & ((view.least < least) | (view.most > most)))
    if len(item):
        at = Places(row[item], instance[item], column)
        view.terms.amounts.limit(state, at, least[item, column], most[item, column])


def _forbid(view: _View, state: State, row: Index, instance: Index, terms: Flags) -> None:
    """Not all literals hold: if only one is open, it does not."""
    single = terms & (np.count_nonzero(view.open_literals, axis=2) == 1)
    item, column = np.nonzero(single)
    if len(item):
        literal = view.open_literals[item, column].argmax(axis=1)
        place = (instance[item], column, literal)
        state.restrict(row[item], view.terms.position[place], ~view.terms.allowed[place])


def _force(view: _View, state: State, row: Index, instance: Index, terms: Flags) -> None:
    """All literals hold."""
    item, column, literal = np.nonzero(terms[:, :, None] & view.open_literals)
    if len(item):
        place = (instance[item], column, literal)
        state.restrict(row[item], view.terms.position[place], view.terms.allowed[place])
