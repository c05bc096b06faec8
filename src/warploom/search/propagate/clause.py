"""Clauses of any length: where all literals but one have become impossible, that one must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from warploom.search.branching.candidate import Bits, Flags, Index, Numbers
from warploom.search.propagate.state import State
from warploom.search.space.ground import HUGE


class Literals(Protocol):
    """One kind of literal: a table [instances, columns] of them."""

    @property
    def columns(self) -> int: ...
    def reads(self) -> tuple[Index, Index]: ...
    def possible(self, state: State, row: Index, instance: Index) -> Flags: ...
    def enforce(self, state: State, row: Index, instance: Index, column: Index) -> None: ...


def pairs(variables: Index) -> tuple[Index, Index]:
    """(instance, variable) for a table [instances, columns] of variables."""
    count, columns = variables.shape
    return np.repeat(np.arange(count), columns), variables.reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class DomainLiterals:
    """A choice has one of the allowed values."""

    position: Index
    allowed: Bits

    @property
    def columns(self) -> int:
        return int(self.position.shape[1])

    def reads(self) -> tuple[Index, Index]:
        return pairs(self.position)

    def possible(self, state: State, row: Index, instance: Index) -> Flags:
        domain = state.domain(row[:, None], self.position[instance])
        found: Flags = (domain & self.allowed[instance]) != 0
        return found

    def enforce(self, state: State, row: Index, instance: Index, column: Index) -> None:
        position = self.position[instance, column]
        state.restrict(row, position, self.allowed[instance, column])


@dataclass(frozen=True, slots=True, eq=False)
class RangeLiterals:
    """A counter lies between two numbers. `offset` is the number of the first counter among the
    variables."""

    offset: int
    position: Index
    least: Numbers
    most: Numbers

    @property
    def columns(self) -> int:
        return int(self.position.shape[1])

    def reads(self) -> tuple[Index, Index]:
        return pairs(self.position + self.offset)

    def possible(self, state: State, row: Index, instance: Index) -> Flags:
        low, high = state.range(row[:, None], self.position[instance])
        return (low <= self.most[instance]) & (high >= self.least[instance])

    def enforce(self, state: State, row: Index, instance: Index, column: Index) -> None:
        position = self.position[instance, column]
        state.at_least(row, position, self.least[instance, column])
        state.at_most(row, position, self.most[instance, column])


@dataclass(frozen=True, slots=True, eq=False)
class RelatedLiterals:
    """Two choices have related values. `images[t, b, x]` are the values that table t relates to one
    of those in byte b of a domain, if that byte is x; the second half of the tables are those of
    the first half the other way round."""

    images: Bits
    left: Index
    right: Index
    table: Index

    @property
    def columns(self) -> int:
        return int(self.left.shape[1])

    def reads(self) -> tuple[Index, Index]:
        return pairs(np.concatenate([self.left, self.right], axis=1))

    def image(self, table: Index, domain: Bits) -> Bits:
        """The values related to one of the domain."""
        found = np.zeros_like(domain)
        for byte in range(self.images.shape[1]):
            part = (domain >> np.uint64(8 * byte) & np.uint64(255)).view(np.int64)
            found |= self.images[table, byte, part]
        return found

    def possible(self, state: State, row: Index, instance: Index) -> Flags:
        left = state.domain(row[:, None], self.left[instance])
        right = state.domain(row[:, None], self.right[instance])
        found: Flags = (self.image(self.table[instance], left) & right) != 0
        return found

    def enforce(self, state: State, row: Index, instance: Index, column: Index) -> None:
        left, right = self.left[instance, column], self.right[instance, column]
        table = self.table[instance, column]
        state.restrict(row, right, self.image(table, state.domain(row, left)))
        back = table + len(self.images) // 2
        state.restrict(row, left, self.image(back, state.domain(row, right)))


@dataclass(frozen=True, slots=True, eq=False)
class AtMostLiterals:
    """One counter is at most another one, less a margin."""

    offset: int
    left: Index
    right: Index
    margin: Numbers

    @property
    def columns(self) -> int:
        return int(self.left.shape[1])

    def reads(self) -> tuple[Index, Index]:
        return pairs(np.concatenate([self.left, self.right], axis=1) + self.offset)

    def possible(self, state: State, row: Index, instance: Index) -> Flags:
        low, _ = state.range(row[:, None], self.left[instance])
        _, high = state.range(row[:, None], self.right[instance])
        return low <= _less(high, self.margin[instance])

    def enforce(self, state: State, row: Index, instance: Index, column: Index) -> None:
        left, right = self.left[instance, column], self.right[instance, column]
        margin = self.margin[instance, column]
        _, high = state.range(row, right)
        state.at_most(row, left, _less(high, margin))
        low, _ = state.range(row, left)
        state.at_least(row, right, np.minimum(low + margin, HUGE))


def _less(high: Numbers, margin: Numbers) -> Numbers:
    return np.where(high >= HUGE, HUGE, high - margin)


@dataclass(frozen=True, slots=True, eq=False)
class ClauseGroup:
    """Clauses with the same number of literals of each kind."""

    name: str
    count: int
    literals: tuple[Literals, ...]

    def reads(self) -> tuple[Index, Index]:
        found = [kind.reads() for kind in self.literals]
        return np.concatenate([i for i, _ in found]), np.concatenate([v for _, v in found])

    def filter(self, state: State, row: Index, instance: Index) -> None:
        parts = [kind.possible(state, row, instance) for kind in self.literals]
        possible = np.concatenate(parts, axis=1)
        count = np.count_nonzero(possible, axis=1)
        state.fail(row[count == 0])
        only = np.flatnonzero(count == 1)
        if not len(only):
            return
        column = possible[only].argmax(axis=1)
        row, instance = row[only], instance[only]
        start = 0
        for kind in self.literals:
            own = (column >= start) & (column < start + kind.columns)
            if own.any():
                kind.enforce(state, row[own], instance[own], column[own] - start)
            start += kind.columns
