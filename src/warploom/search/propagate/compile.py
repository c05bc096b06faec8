"""A declared space becomes filters.

Comes in: a `Space`. Goes out: groups of filters, and the domains to start from.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, assert_never

import numpy as np

from warploom.search.branching.candidate import Bits, Index
from warploom.search.propagate.clause import (
    AtMostLiterals,
    ClauseGroup,
    DomainLiterals,
    Literals,
    RangeLiterals,
    RelatedLiterals,
)
from warploom.search.propagate.count import counter_groups
from warploom.search.propagate.fixpoint import Group
from warploom.search.propagate.merge import PACKED_BITS, Sorter
from warploom.search.propagate.table import Listing, composed, equated, listed
from warploom.search.propagate.tuples import TupleGroup, supports_of
from warploom.search.space.build import Space
from warploom.search.space.ground import (
    AtMost,
    Column,
    Ground,
    Grounder,
    InDomain,
    InRange,
    Related,
)
from warploom.search.space.ir import Choice, Composition, Equation, Requirement, Table
from warploom.search.space.layout import Layout
from warploom.search.space.sentence import clauses


class Compiler:
    """The filters of a space and the domains to start from."""

    def __init__(self, space: Space, packed_bits: int = PACKED_BITS) -> None:
        self.space = space
        self.layout = Layout(space)
        self.grounder = Grounder(self.layout)
        self.sorter = Sorter(
            np.append(self.layout.start, np.uint64(1)),
            np.append(self.layout.width, 0),
            self.grounder.relations.tables,
            packed_bits,
        )
        self.listed: list[TupleGroup] = []
        self.compared: list[tuple[Index, Index]] = []  # counters, with one another
        self.offset = self.layout.choices.count + 1  # of counters among the variables
        self._compile()

    def _compile(self) -> None:
        grounds: list[Ground] = []
        for choice in self.space.choices:
            grounds += self._absences(choice)
        for constraint in self.space.constraints:
            match constraint:
                case Requirement(_, sentence):
                    for clause in clauses(sentence):
                        grounds += self.grounder.clause(clause)
                case Composition():
                    self._allow(composed(self.layout, constraint))
                case Table():
                    self._allow(listed(self.layout, constraint))
                case Equation():
                    for listing in equated(self.layout, self.sorter.start, constraint):
                        self._allow(listing)
                case _:
                    assert_never(constraint)
        for ground in grounds:
            self.sorter.add_clauses(ground)

    def groups(self) -> list[Group]:
        """The cheap ones first."""
        counters = counter_groups(self.grounder)
        return [*self.sorter.packed(), *self._clause_groups(), *self.listed, *counters]

    # -- clauses -----------------------------------------------------------------------------------

    def _absences(self, choice: Choice) -> list[Ground]:
        """An instance has no value exactly where one of its objects is inactive."""
        if not choice.absent:
            return []
        position = self.layout.choices.offset[choice] + np.arange(len(choice.instances))
        objects = self.layout.choices.objects[choice]
        absent = np.full(len(position), choice.absent_bit, np.uint64)
        missing: list[Column] = []
        grounds = []
        for column in objects.T:
            missing += self.grounder.flag(column, active=False)
            grounds += [
                Ground(len(position), [InDomain(position, absent), active])
                for active in self.grounder.flag(column, active=True)
            ]
        present = np.full(len(position), (1 << len(choice.values)) - 1, np.uint64)
        grounds.append(Ground(len(position), [InDomain(position, present), *missing]))
        return grounds

    def _clause_groups(self) -> list[ClauseGroup]:
        """Clauses with equally many literals of each kind, up to padding, are one group."""
        shapes: dict[tuple[int, ...], list[Ground]] = {}
        for ground in self.sorter.clauses:
            count = [sum(isinstance(c, kind) for c in ground.columns) for kind in KINDS]
            plain = 1 << (count[0] - 1).bit_length() if count[0] else 0
            for _ in range(plain - count[0]):
                ground.columns.append(self._false(ground.count))
            shapes.setdefault((plain, *count[1:]), []).append(ground)
        return [self._clause_group(grounds) for grounds in shapes.values()]

    def _false(self, count: int) -> InDomain:
        return InDomain(np.full(count, self.sorter.nowhere), np.zeros(count, np.uint64))

    def _clause_group(self, grounds: list[Ground]) -> ClauseGroup:
        literals: list[Literals] = []
        if tables := _columns(grounds, InDomain):
            literals.append(DomainLiterals(*tables))
        if tables := _columns(grounds, InRange):
            literals.append(RangeLiterals(self.offset, *tables))
        if tables := _columns(grounds, Related):
            literals.append(RelatedLiterals(self._images(), *tables))
        if tables := _columns(grounds, AtMost):
            self.compared.append((tables[0], tables[1]))
            literals.append(AtMostLiterals(self.offset, *tables))
        total = sum(ground.count for ground in grounds)
        width = sum(kind.columns for kind in literals)
        return ClauseGroup(f"clauses of {width} literals", total, tuple(literals))

    def _images(self) -> Bits:
        """For each relation and then for each inverse: images of sets, byte by byte."""
        forward = self.grounder.relations.tables
        both = [*forward, *map(_transposed, forward)]
        count = -(-max(len(table) for table in both) // 8)
        images = np.zeros((len(both), count, 256), np.uint64)
        for number, table in enumerate(both):
            for value, related in enumerate(table):
                held = (np.arange(256) >> value % 8 & 1).astype(bool)
                images[number, value // 8, held] |= related
        return images

    # -- tables ------------------------------------------------------------------------------------

    def _allow(self, listing: Listing) -> None:
        """Looked up if it is narrow enough, else kept as listed tuples."""
        widths = tuple(choice.width for choice in listing.choices)
        if not len(listing.scope):
            return
        if self.sorter.fits(widths):
            allowed = np.zeros(widths, bool)
            allowed[tuple(listing.allowed.T)] = True
            for axis in listing.excused:
                if listing.choices[axis].absent:
                    np.moveaxis(allowed, axis, 0)[-1] = True
            self.sorter.add_table(listing.scope, allowed)
        else:
            supports = _supports(listing)
            shape = (len(listing.scope), *supports.shape)
            supports = np.broadcast_to(supports, shape)
            self.listed.append(TupleGroup(listing.name, listing.scope, supports))


KINDS = (InDomain, InRange, Related, AtMost)


def _columns(grounds: list[Ground], kind: type[Column]) -> Any:
    """The fields of all columns of one kind, each as a table [clauses, columns]; nothing if there
    are no such columns."""
    if not any(isinstance(column, kind) for column in grounds[0].columns):
        return []
    tables = []
    for field in fields(kind):
        parts = [
            [getattr(c, field.name) for c in g.columns if isinstance(c, kind)] for g in grounds
        ]
        tables.append(np.concatenate([np.stack(part, axis=1) for part in parts]))
    return tables


def _transposed(table: Bits) -> Bits:
    width = max(1, int(max((int(bits) for bits in table), default=0)).bit_length())
    bits = np.arange(width, dtype=np.uint64)
    truths = (table[None, :] >> bits[:, None]) & np.uint64(1)
    weights = np.uint64(1) << np.arange(len(table), dtype=np.uint64)
    found: Bits = (truths * weights).sum(axis=1, dtype=np.uint64)
    return found


def _supports(listing: Listing) -> Bits:
    """Where an excused choice has no value anything goes: one more row of the table for each."""
    excused = [at for at in listing.excused if listing.choices[at].absent]
    count = len(listing.allowed)
    width = max(choice.width for choice in listing.choices)
    supports = supports_of(listing.allowed, width, count + len(excused))
    for row, at in enumerate(excused, count):
        bit = np.uint64(1 << row % 64)
        others = [column for column in range(len(listing.choices)) if column != at]
        supports[others, :, row // 64] |= bit
        supports[at, len(listing.choices[at].values), row // 64] |= bit
    return supports
