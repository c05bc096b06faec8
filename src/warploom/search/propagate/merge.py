"""Ground clauses are sorted out: single literals narrow the start, narrow clauses become tables.

All clauses and tables on the same choices are merged, so that they are looked up together
(packed.py); what is too wide for a table stays a clause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from warploom.search.branching.candidate import Bits, Flags, Index
from warploom.search.propagate.packed import PackedGroup, closure
from warploom.search.space.ground import Column, Ground, InDomain, Related
from warploom.search.space.rows import distinct_rows

# A table has an entry for every set of values of its choices together: 2**18 words are 1 MB.
PACKED_BITS = 18
PACKED_WORDS = 1 << 24  # of all tables together, about


@dataclass(slots=True, eq=False)
class Sorter:
    """`start` and `width` describe the choices; `relations` the tables of `Related` literals.

    The position behind the last choice is a constant whose only value is bit 0.
    """

    start: Bits
    width: Index
    relations: list[Bits]
    bits: int = PACKED_BITS
    feasible: bool = True
    clauses: list[Ground] = field(default_factory=list)
    _words: int = 0
    _atoms: list[Flags] = field(default_factory=list)
    _numbers: dict[tuple[tuple[int, ...], bytes], int] = field(default_factory=dict)
    _scopes: dict[int, list[tuple[Index, Index]]] = field(default_factory=dict)

    @property
    def nowhere(self) -> int:
        return len(self.start) - 1

    # -- clauses -----------------------------------------------------------------------------------

    def add_clauses(self, ground: Ground) -> None:
        position, allowed, others = self._normal(ground)
        if not others:
            literals = np.count_nonzero(position != self.nowhere, axis=1)
            self.feasible &= not (literals == 0).any()
            single = literals == 1  # its literal comes first
            np.bitwise_and.at(self.start, position[single, :1], allowed[single, :1])
            position, allowed = position[literals > 1], allowed[literals > 1]
        related = [column for column in others if isinstance(column, Related)]
        if len(position) and len(related) == len(others):
            wide = self._add_small(position, allowed, related)
            position, allowed = position[wide], allowed[wide]
            others = [column.take(wide) for column in related]
        if len(position):
            columns = [InDomain(position[:, c], allowed[:, c]) for c in range(position.shape[1])]
            self.clauses.append(Ground(len(position), [*columns, *others]))

    def _normal(self, ground: Ground) -> tuple[Index, Bits, list[Column]]:
        """Clauses that are not true anyway, without literals that are false anyway: tables of the
        literals on single choices, and the other columns."""
        own = [column for column in ground.columns if isinstance(column, InDomain)]
        others = [column for column in ground.columns if not isinstance(column, InDomain)]
        shape = (ground.count, 0)
        position = np.stack([c.position for c in own], 1) if own else np.zeros(shape, np.int64)
        allowed = np.stack([c.allowed for c in own], 1) if own else np.zeros(shape, np.uint64)
        for later in range(position.shape[1]):
            for column in range(later):  # one literal for each choice
                same = position[:, column] == position[:, later]
                allowed[same, column] |= allowed[same, later]
                allowed[same, later] = 0
        start = self.start[position]
        # Values that are out from the start may stay allowed: equal clauses share a table.
        left = allowed & start
        true = (left == start).any(axis=1)
        position[left == 0] = self.nowhere
        allowed[left == 0] = 0
        order = np.argsort(position, axis=1, kind="stable")  # padding goes last
        position = np.take_along_axis(position, order, axis=1)[~true]
        allowed = np.take_along_axis(allowed, order, axis=1)[~true]
        longest = int(np.count_nonzero(position != self.nowhere, axis=1).max(initial=0))
        return position[:, :longest], allowed[:, :longest], [c.take(~true) for c in others]

    def _add_small(self, position: Index, allowed: Bits, related: list[Related]) -> Flags:
        """Makes tables of the clauses that are narrow enough; says which were not."""
        sides = [side[:, None] for column in related for side in (column.left, column.right)]
        scope = np.sort(np.concatenate([position, *sides], axis=1), axis=1)
        scope[:, 1:][scope[:, 1:] == scope[:, :-1]] = self.nowhere
        scope.sort(axis=1)
        size = np.count_nonzero(scope != self.nowhere, axis=1)
        small: Flags = self.width[scope].sum(axis=1) <= self.bits
        self.feasible &= not (size == 0).any()  # a clause without a literal that can hold
        for count in np.unique(size[small & (size > 0)]).tolist():
            rows = np.flatnonzero(small & (size == count))
            parts = [column.take(rows) for column in related]
            own = scope[rows, :count]
            small[rows] = self._add_rows(own, position[rows], allowed[rows], parts)
        return ~small

    def _add_rows(
        self, scope: Index, position: Index, allowed: Bits, related: list[Related]
    ) -> bool:
        """Clauses that say the same of their choices share a table. Too many tables are none."""
        columns = [self.width[scope]]
        axes = _axes(scope, position)
        columns += [axes, allowed.view(np.int64)]
        for column in related:
            ends = np.stack([column.left, column.right], axis=1)
            columns += [_axes(scope, ends), column.table[:, None]]
        shape = np.concatenate(columns, axis=1)
        first, which = distinct_rows(shape)
        words = int((1 << self.width[scope[first]].sum(axis=1)).sum())
        if self._words + words > PACKED_WORDS:
            return False
        self._words += words
        numbers = [self._clause_table(scope, axes, allowed, related, int(row)) for row in first]
        self.add_atoms(scope, np.array(numbers, np.int64)[which])
        return True

    def _clause_table(
        self, scope: Index, axes: Index, allowed: Bits, related: list[Related], row: int
    ) -> int:
        widths = tuple(self.width[scope[row]].tolist())
        true = np.zeros(widths, bool)
        for axis, bits in zip(axes[row].tolist(), allowed[row].tolist(), strict=True):
            if axis >= 0:
                values = np.array([bool(bits >> v & 1) for v in range(widths[axis])])
                true |= _along(values, (axis,), len(widths))
        for column in related:
            ends = np.array([[column.left[row], column.right[row]]])
            left, right = _axes(scope[row : row + 1], ends)[0].tolist()
            if left < 0:
                continue
            table = self.relations[int(column.table[row])]
            pairs = (table[:, None] >> np.arange(widths[right], dtype=np.uint64)) & np.uint64(1)
            true |= _along(pairs.astype(bool), (left, right), len(widths))
        return self.number(true)

    # -- tables ------------------------------------------------------------------------------------

    def number(self, allowed: Flags) -> int:
        """Equal tables have one number."""
        key = (allowed.shape, np.packbits(allowed).tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self._atoms)
            self._atoms.append(allowed)
        return self._numbers[key]

    def fits(self, widths: Iterable[int]) -> bool:
        return sum(widths) <= self.bits

    def add_table(self, scope: Index, allowed: Flags) -> None:
        """For each row of the scope, the choices at its positions take an allowed tuple."""
        order = np.argsort(scope, axis=1)
        for permutation in order[distinct_rows(order)[0]]:
            rows = (order == permutation).all(axis=1)
            turned = allowed.transpose(permutation)
            atom = self.number(turned)
            ordered = np.take_along_axis(scope[rows], order[rows], axis=1)
            self.add_atoms(ordered, np.full(len(ordered), atom))

    def add_atoms(self, scope: Index, atoms: Index) -> None:
        """Table `atoms[i]` holds for the choices at the ascending positions `scope[i]`."""
        self._scopes.setdefault(scope.shape[1], []).append((scope, atoms))

    def packed(self) -> list[PackedGroup]:
        """All tables: those on the same choices merged, and joined to those on more."""
        merged = {size: self._merged(parts) for size, parts in self._scopes.items()}
        needed = {size: np.ones(len(scope), bool) for size, (scope, _) in merged.items()}
        for size, (scope, atoms) in merged.items():
            merged[size] = (scope, self._joined(scope, atoms, merged, needed))
        return [
            self._group(scope[needed[size]], atoms[needed[size]])
            for size, (scope, atoms) in merged.items()
            if needed[size].any()
        ]

    def _joined(
        self,
        scope: Index,
        atoms: Index,
        merged: dict[int, tuple[Index, Index]],
        needed: dict[int, Flags],
    ) -> Index:
        """Tables with what smaller tables say of some of their choices, which are then not needed:
        a table that knows both rules out more than the two can one after the other."""
        size = scope.shape[1]
        columns, places, hits = [atoms], [], []
        for smaller, (parts, own) in merged.items():
            for axes in combinations(range(size), smaller) if smaller < size else ():
                found = self._find(parts, scope[:, axes])
                if (found >= 0).any():
                    hits.append((smaller, found[found >= 0]))
                    columns.append(np.where(found >= 0, own[found], -1))
                    places.append(axes)
        together = np.stack(columns, axis=1)
        first, which = distinct_rows(together)
        rows = together[first]
        if sum(1 << sum(self._atoms[own].shape) for own in rows[:, 0].tolist()) > PACKED_WORDS:
            return atoms
        for smaller, found in hits:
            needed[smaller][found] = False
        numbers = []
        for own, *others in rows.tolist():
            table = self._atoms[own]
            for axes, atom in zip(places, others, strict=True):
                if atom >= 0:
                    table = table & _along(self._atoms[atom], axes, size)
            numbers.append(self.number(table))
        return np.array(numbers, np.int64)[which]

    def _find(self, rows: Index, wanted: Index) -> Index:
        """Where each wanted row is among some different ones; -1 where it is not."""
        both = np.concatenate([rows, wanted])
        _, which = distinct_rows(both)
        place = np.full(len(both), -1)
        place[which[: len(rows)]] = np.arange(len(rows))
        return place[which[len(rows) :]]

    def _merged(self, parts: list[tuple[Index, Index]]) -> tuple[Index, Index]:
        """Each scope once, with the conjunction of its tables."""
        scope = np.concatenate([scope for scope, _ in parts])
        atoms = np.concatenate([atoms for _, atoms in parts])
        first, which = distinct_rows(scope)
        distinct = scope[first]
        order = np.lexsort((atoms, which))
        which, atoms = which[order], atoms[order]
        starts = np.searchsorted(which, np.arange(len(distinct) + 1))
        found = atoms[starts[:-1]]
        conjunctions: dict[tuple[int, ...], int] = {}
        for row in np.flatnonzero(np.diff(starts) > 1).tolist():
            together = tuple(dict.fromkeys(atoms[starts[row] : starts[row + 1]].tolist()))
            if together not in conjunctions:
                all_hold = np.logical_and.reduce([self._atoms[atom] for atom in together])
                conjunctions[together] = self.number(all_hold)
            found[row] = conjunctions[together]
        return distinct, found

    def _group(self, scope: Index, atoms: Index) -> PackedGroup:
        used, which = np.unique(atoms, return_inverse=True)
        tables = [closure(self._atoms[atom]) for atom in used.tolist()]
        starts = np.cumsum([0, *map(len, tables)])
        width = self.width[scope].T
        return PackedGroup(
            f"tables of {scope.shape[1]} choices",
            np.ascontiguousarray(scope.T),
            np.cumsum(width, axis=0) - width,
            (1 << width) - 1,
            starts[which],
            np.concatenate(tables),
        )


def _axes(scope: Index, position: Index) -> Index:
    """Where in its scope each position is; -1 for padding."""
    same = scope[:, None, :] == position[:, :, None]
    return np.where(same.any(axis=2), same.argmax(axis=2), -1)


def _along(values: Flags, axes: tuple[int, ...], count: int) -> Flags:
    """An array over some axes, ready to be broadcast over all."""
    values = values.transpose(np.argsort(axes))
    shape = [1] * count
    for axis, size in zip(sorted(axes), values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)
