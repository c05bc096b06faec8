"""Clauses over variables become clauses over positions: one row for each tuple of objects.

Comes in: a clause of sentence.py. Goes out: arrays of literals. What is known of the objects is
evaluated here, so that only conditions on choices and counters are left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.search.space import ir
from warploom.search.space.layout import Bits, Flags, Ids, Layout, Rows
from warploom.search.space.sentence import Clause, OneOf, variables_of

Numbers: TypeAlias = npt.NDArray[np.float64]

# Counters hold whole numbers exactly up to here; more is only known to be more.
HUGE = 2.0**52

_MIRRORED: dict[ir.Operator, ir.Operator] = {
    "<=": ">=", ">=": "<=", "<": ">", ">": "<", "==": "==", "!=": "!=",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class InDomain:
    """A choice has one of the values whose bits are set. Columns of clauses: one entry for each."""

    position: Ids
    allowed: Bits

    def take(self, clauses: Ids | Flags) -> InDomain:
        return InDomain(self.position[clauses], self.allowed[clauses])


@dataclass(frozen=True, slots=True, eq=False)
class InRange:
    """A counter lies between two numbers, which may be minus and plus HUGE."""

    position: Ids
    low: Numbers
    high: Numbers

    def take(self, clauses: Ids | Flags) -> InRange:
        return InRange(self.position[clauses], self.low[clauses], self.high[clauses])


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """Two choices have values that are related by the table of this number."""

    left: Ids
    right: Ids
    table: Ids

    def take(self, clauses: Ids | Flags) -> Related:
        return Related(self.left[clauses], self.right[clauses], self.table[clauses])


@dataclass(frozen=True, slots=True, eq=False)
class AtMost:
    """One counter is at most another one, less `margin`."""

    left: Ids
    right: Ids
    margin: Numbers

    def take(self, clauses: Ids | Flags) -> AtMost:
        return AtMost(self.left[clauses], self.right[clauses], self.margin[clauses])


Column: TypeAlias = InDomain | InRange | Related | AtMost


@dataclass(slots=True, eq=False)
class Ground:
    """`count` clauses, each of which has one literal in each of the columns."""

    count: int
    columns: list[Column] = field(default_factory=list)


class Relations:
    """Tables of pairs of values, numbered; `allowed[t][u]` are the bits of v related to u."""

    def __init__(self) -> None:
        self.tables: list[Bits] = []
        self._known: dict[bytes, int] = {}

    def number(self, table: Flags) -> int:
        """The number of a table of truths [left values, right values]; new ones are added."""
        weights = np.uint64(1) << np.arange(table.shape[1], dtype=np.uint64)
        packed: Bits = (table * weights).sum(axis=1, dtype=np.uint64)
        key = packed.tobytes()
        if key not in self._known:
            self._known[key] = len(self.tables)
            self.tables.append(packed)
        return self._known[key]

    def diagonal(self) -> Bits:
        """For each table, the bits of the values that are related to themselves."""
        own = [sum(int(bits) & 1 << v for v, bits in enumerate(t)) for t in self.tables]
        return np.array(own, np.uint64)


class Grounder:
    """Literals for rows of objects. Padding refers to the position behind the last choice."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.relations = Relations()
        self.nowhere = layout.choices.count

    # -- clauses -----------------------------------------------------------------------------------

    def clause(self, clause: Clause) -> list[Ground]:
        """An equality of counters makes two clauses of one."""
        rows = self.layout.rows(clause.variables, clause.different)
        for condition in clause.conditions:
            if isinstance(condition, ir.Holds):
                rows = rows.take(~self.known(condition, rows))
        drafts: list[list[Column]] = [[]]
        for condition in clause.conditions:
            if not isinstance(condition, ir.Holds):
                ways = self.literals(condition, rows)
                drafts = [[*draft, *way] for draft in drafts for way in ways]
        guards = self.guards(clause, rows)
        return [Ground(rows.count, [*draft, *guards]) for draft in drafts]

    def literals(self, condition: ir.Is | ir.Compare | OneOf, rows: Rows) -> list[list[Column]]:
        """Columns of literals; where there are several lists, each of them has to hold."""
        match condition:
            case OneOf():
                return [self.one_of(condition, rows)]
            case ir.Is():
                return [[self.is_in(condition, rows, absent=True)]]
            case ir.Compare():
                return self.compare(condition, rows, absent=True)
            case _:
                assert_never(condition)

    def guards(self, clause: Clause, rows: Rows) -> list[Column]:
        """A sentence says nothing of inactive objects. A choice made of one has no value, which
        counts as true; where no choice is asked of an object, its flag is."""
        asked = set(clause.flagged)
        for condition in clause.conditions:
            if isinstance(condition, ir.Is):
                asked |= set(condition.term.arguments)
            elif isinstance(condition, ir.Compare) and _counted(condition) is None:
                for term in (condition.left, condition.right):
                    asked |= set(term.arguments) if isinstance(term, ir.Chosen) else set()
        return [
            column
            for variable in clause.variables
            if variable not in asked
            for column in self.flag(rows.columns[variable], active=False)
        ]

    def flag(self, objects: Ids, active: bool) -> list[Column]:
        """That objects are active, or not; nothing if all of them always are."""
        if not self.layout.space.flags:
            return []
        position = self.layout.flag_positions(objects, self.nowhere)
        if (position == self.nowhere).all():
            return []
        bit = np.uint64(1 if active else 2)
        always = np.uint64(1 if active else 0)
        return [InDomain(position, np.where(position == self.nowhere, always, bit))]

    def known(self, condition: ir.Holds, rows: Rows) -> Flags:
        found = self.layout.holds(condition.property, rows.of(condition.arguments))
        return ~found if condition.negated else found

    # -- conditions --------------------------------------------------------------------------------

    def is_in(self, condition: ir.Is, rows: Rows, absent: bool) -> InDomain:
        choice = condition.term.choice
        allowed = np.full(rows.count, condition.allowed, np.uint64)
        return self.in_domain(condition.term, allowed, choice.absent_bit if absent else 0, rows)

    def in_domain(self, term: ir.Chosen, allowed: Bits, also: int, rows: Rows) -> InDomain:
        position, exchanged = self.layout.choices.find(term.choice, rows.of(term.arguments))
        if exchanged.any():
            allowed = np.where(exchanged, inverted(term.choice, allowed), allowed)
        return InDomain(position, allowed | np.uint64(also))

    def compare(self, condition: ir.Compare, rows: Rows, absent: bool) -> list[list[Column]]:
        op, left, right = condition.op, condition.left, condition.right
        if isinstance(left, ir.Given | int):
            op, left, right = _MIRRORED[op], right, left
        if isinstance(left, ir.Given | int):
            assert isinstance(right, ir.Given | int)
            true = COMPARE[op](self.value(left, rows), self.value(right, rows))
            return [[InDomain(np.full(rows.count, self.nowhere), true.astype(np.uint64))]]
        if isinstance(left, ir.Chosen):
            if isinstance(right, ir.Chosen):
                return [self.related(op, left, right, rows, absent)]
            return [[self.choice_against(op, left, right, rows, absent)]]
        return self.counter_against(op, left, right, rows)

    def value(self, term: ir.Given | int, rows: Rows) -> Ids:
        if isinstance(term, int):
            return np.full(rows.count, term, np.int64)
        return self.layout.given(term.number.values, term.number.name, rows.of(term.arguments))

    def choice_against(
        self, op: ir.Operator, left: ir.Chosen, right: ir.Term, rows: Rows, absent: bool
    ) -> InDomain:
        assert isinstance(right, ir.Given | int)
        limits = self.value(right, rows)
        choice = left.choice
        allowed = np.zeros(rows.count, np.uint64)
        for bit, value in enumerate(choice.values):
            true = COMPARE[op](np.int64(value), limits)
            allowed |= np.where(true, np.uint64(1 << bit), np.uint64(0))
        return self.in_domain(left, allowed, choice.absent_bit if absent else 0, rows)

    def related(
        self, op: ir.Operator, left: ir.Chosen, right: ir.Chosen, rows: Rows, absent: bool
    ) -> list[Column]:
        """Where both are the same instance, it is a condition on that one alone."""
        table = _truths(op, left.choice, right.choice, absent)
        first, first_exchanged = self.layout.choices.find(left.choice, rows.of(left.arguments))
        second, second_exchanged = self.layout.choices.find(right.choice, rows.of(right.arguments))
        numbers = np.zeros(rows.count, np.int64)
        for flip_left in (False, True):
            for flip_right in (False, True):
                chosen = (first_exchanged == flip_left) & (second_exchanged == flip_right)
                if chosen.any():
                    turned = table[_step(left.choice, flip_left)]
                    turned = turned[:, _step(right.choice, flip_right)]
                    numbers[chosen] = self.relations.number(turned)
        same = first == second
        if not same.any():
            return [Related(first, second, numbers)]
        kept = self.relations.diagonal()[numbers]
        never = self.relations.number(np.zeros((1, 1), np.bool_))
        return [
            InDomain(np.where(same, first, self.nowhere), np.where(same, kept, np.uint64(0))),
            Related(
                np.where(same, self.nowhere, first),
                np.where(same, self.nowhere, second),
                np.where(same, never, numbers),
            ),
        ]

    def counter_against(
        self, op: ir.Operator, left: ir.Counted, right: ir.Term, rows: Rows
    ) -> list[list[Column]]:
        position = self.counter(left, rows)
        if isinstance(right, ir.Counted):
            return self.counters(op, position, self.counter(right, rows))
        assert isinstance(right, ir.Given | int)
        limit = self.value(right, rows).astype(np.float64)
        if (np.abs(limit) >= HUGE).any():
            raise CheckError(f"'{left.counter.name}' is compared with a number beyond 2**52")
        low, high = np.full(rows.count, -HUGE), np.full(rows.count, HUGE)
        if op in ("<=", "<", "=="):
            high = limit - (op == "<")
        if op in (">=", ">", "=="):
            low = limit + (op == ">")
        return [[InRange(position, low, high)]]

    def counters(self, op: ir.Operator, left: Ids, right: Ids) -> list[list[Column]]:
        def at_most(a: Ids, b: Ids, margin: float = 0.0) -> list[Column]:
            return [AtMost(a, b, np.full(len(a), margin))]

        match op:
            case "<=" | "<":
                return [at_most(left, right, float(op == "<"))]
            case ">=" | ">":
                return [at_most(right, left, float(op == ">"))]
            case _:
                return [at_most(left, right), at_most(right, left)]

    def counter(self, term: ir.Counted, rows: Rows) -> Ids:
        return self.layout.counters.find(term.counter, rows.of(term.arguments))[0]

    def one_of(self, condition: OneOf, rows: Rows) -> list[Column]:
        """One column for the first object that each row finds, one for the second, and so on."""
        apart = [
            (v, w) for v in condition.variables for w in (*condition.scope, *condition.variables)
        ]
        deeper, origin = self.layout.extended(rows, condition.variables, apart)
        for part in condition.filters:
            keep = self.known(part, deeper)
            deeper, origin = deeper.take(keep), origin[keep]
        self.check_active(condition, deeper)
        if condition.condition is None:
            found = np.zeros(rows.count, np.uint64)
            found[origin] = 1
            return [InDomain(np.full(rows.count, self.nowhere), found)]
        (way,) = self.atoms(condition.condition, deeper)
        (column,) = way
        assert isinstance(column, InDomain), "sentence.py lets nothing else through"
        return list(_spread(column, origin, rows.count, self.nowhere))

    def check_active(self, condition: OneOf, rows: Rows) -> None:
        """The choice asked must be made of every object that may be inactive."""
        asked = variables_of(condition.condition) if condition.condition is not None else ()
        for variable in condition.variables:
            if variable not in asked and self.flag(rows.columns[variable], active=True):
                raise CheckError(
                    f"'some' asks nothing of {variable.name}, which may be inactive",
                    advice="ask for its flag",
                )

    def atoms(self, condition: ir.Is | ir.Compare, rows: Rows) -> list[list[Column]]:
        """Literals that an inactive object does not fulfil."""
        if isinstance(condition, ir.Is):
            return [[self.is_in(condition, rows, absent=False)]]
        return self.compare(condition, rows, absent=False)

    def conjunction(
        self, parts: tuple[ir.Atom, ...], rows: Rows
    ) -> tuple[Rows, list[InDomain], Ids]:
        """The rows for which a conjunction can hold, and its literals; inactive objects fulfil
        none. Also which rows are left."""
        kept = np.arange(rows.count)
        for part in parts:
            if isinstance(part, ir.Holds):
                keep = self.known(part, rows)
                rows, kept = rows.take(keep), kept[keep]
        columns: list[Column] = []
        for part in parts:
            if not isinstance(part, ir.Holds):
                columns += self.atoms(part, rows)[0]
        for objects in rows.columns.values():
            columns += self.flag(objects, active=True)
        return rows, [column for column in columns if isinstance(column, InDomain)], kept


COMPARE = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
    "==": np.equal,
    "!=": np.not_equal,
}


def _counted(condition: ir.Compare) -> ir.Counted | None:
    for term in (condition.left, condition.right):
        if isinstance(term, ir.Counted):
            return term
    return None


def inverted(choice: ir.Choice, bits: Bits) -> Bits:
    """The values with the two objects exchanged."""
    assert choice.inverse is not None
    turned = np.zeros_like(bits)
    for value, inverse in enumerate((*choice.inverse, len(choice.values))):
        turned |= (bits >> np.uint64(value) & np.uint64(1)) << np.uint64(inverse)
    return turned


def _step(choice: ir.Choice, flipped: bool) -> list[int]:
    if not flipped:
        return list(range(choice.width))
    assert choice.inverse is not None
    return [*choice.inverse, len(choice.values)][: choice.width]


def _truths(op: ir.Operator, left: ir.Choice, right: ir.Choice, absent: bool) -> Flags:
    """[width of left, width of right]; what has no value compares as `absent`."""
    table = np.full((left.width, right.width), absent)
    if left.is_integer:
        first, second = np.array(left.values, np.int64), np.array(right.values, np.int64)
    else:  # the same values: equal where their numbers are
        first = second = np.arange(len(left.values))
    table[: len(first), : len(second)] = COMPARE[op](first[:, None], second)
    return table


def _spread(column: InDomain, origin: Ids, count: int, nowhere: int) -> list[InDomain]:
    """A ragged column as padded ones: entry i belongs to row `origin[i]`, which ascends."""
    rank = np.arange(len(origin)) - np.searchsorted(origin, origin)
    columns = []
    for level in range(int(rank.max(initial=-1)) + 1):
        chosen = rank == level
        position = np.full(count, nowhere)
        allowed = np.zeros(count, np.uint64)
        position[origin[chosen]] = column.position[chosen]
        allowed[origin[chosen]] = column.allowed[chosen]
        columns.append(InDomain(position, allowed))
    return columns
