"""Where the instances of a space lie: positions of choices and counters, objects as arrays.

Comes in: a space. Goes out: arrays of object numbers for variables, and the position, in a
candidate's vector, of the choice or counter that is made of such objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.search.space.build import Space
from warploom.search.space.ir import Choice, Counter, Objects, Property, Variable
from warploom.search.space.rows import distinct_rows

Ids = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Pairs = Iterable[tuple[Variable, Variable]]

# Of one sentence, before what is known of the objects leaves fewer.
MOST_ROWS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Objects for some variables: `columns[v][r]` is the number of v's object in row r."""

    columns: Mapping[Variable, Ids]
    count: int

    def take(self, chosen: Ids | Flags) -> Rows:
        columns = {variable: column[chosen] for variable, column in self.columns.items()}
        count = len(chosen) if chosen.dtype != np.bool_ else int(np.count_nonzero(chosen))
        return Rows(columns, count)

    def of(self, variables: tuple[Variable, ...]) -> Ids:
        """[rows, variables]"""
        if not variables:
            return np.zeros((self.count, 0), np.int64)
        return np.stack([self.columns[variable] for variable in variables], axis=1)


NO_VARIABLES = Rows({}, 1)


class Layout:
    """Positions of all instances of a space's choices and counters."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.base = max(1, len(space.numbering))
        self.choices = _Positions(self)
        self.counters = _Positions(self)
        start: list[int] = []
        width: list[int] = []
        for choice in space.choices:
            self.choices.add(choice, self.numbers(choice.instances, choice.arity))
            start += choice.start
            width += [choice.width] * len(choice.instances)
        for counter in space.counters:
            rows = self.rows(counter.per, ((a, b) for a in counter.per for b in counter.per))
            objects = rows.of(counter.per)
            self.counters.add(counter, objects[distinct_rows(objects)[0]])
        self.start: Bits = np.array(start, np.uint64)
        self.width: Ids = np.array(width, np.int64)

    def numbers(self, rows: Iterable[Objects], arity: int) -> Ids:
        listed = [[self.space.numbering[item] for item in row] for row in rows]
        return np.array(listed, np.int64).reshape(len(listed), arity)

    def keys(self, objects: Ids) -> Ids:
        """One number for each row of objects."""
        if self.base ** objects.shape[1] >= 1 << 62:
            raise CheckError(f"tuples of {objects.shape[1]} of {self.base} objects are too many")
        key = np.zeros(len(objects), np.int64)
        for column in objects.T:
            key = key * self.base + column
        return key

    # -- rows of objects ---------------------------------------------------------------------------

    def rows(self, variables: Iterable[Variable], different: Pairs) -> Rows:
        return self.extended(NO_VARIABLES, variables, different)[0]

    def extended(
        self, rows: Rows, variables: Iterable[Variable], different: Pairs
    ) -> tuple[Rows, Ids]:
        """Every way to give further variables objects, and the row that each way extends."""
        origin = np.arange(rows.count)
        apart = {frozenset(pair) for pair in different}
        groups: list[list[Variable]] = []
        for variable in dict.fromkeys(variables):
            if variable in rows.columns:
                continue
            for group in groups:
                if _together(variable, group[0], apart):
                    group.append(variable)
                    break
            else:
                groups.append([variable])
        for group in groups:
            rows, kept = self._crossed(rows, group, apart)
            origin = origin[kept]
        return rows, origin

    def _crossed(
        self, rows: Rows, group: list[Variable], apart: set[frozenset[Variable]]
    ) -> tuple[Rows, Ids]:
        """The rows, each with each tuple of objects that the group may stand for."""
        mates = [v for v in rows.columns if _together(v, group[0], apart)]
        relation = self.numbers(group[0].binding.property.rows, group[0].binding.property.arity)
        named = [*mates, *group]
        chosen = relation[:, [v.column for v in named]]
        tuples = chosen[distinct_rows(chosen)[0]]
        if rows.count * len(tuples) > MOST_ROWS:
            raise CheckError(
                f"more than {MOST_ROWS} tuples of objects",
                advice="let variables run through the rows of a relation, or through smaller sets",
            )
        old = np.repeat(np.arange(rows.count), len(tuples))
        new = np.tile(np.arange(len(tuples)), rows.count)
        keep = np.ones(len(old), bool)
        for column, mate in enumerate(mates):
            keep &= rows.columns[mate][old] == tuples[new, column]
        old, new = old[keep], new[keep]
        columns = {v: ids[old] for v, ids in rows.columns.items()}
        columns |= {v: tuples[new, len(mates) + at] for at, v in enumerate(group)}
        keep = np.ones(len(old), bool)
        for a, b in product(group, columns):
            if a is not b and frozenset((a, b)) in apart:
                keep &= columns[a] != columns[b]
        return Rows(columns, len(old)).take(keep), old[keep]

    def holds(self, members: Property, objects: Ids) -> Flags:
        """Whether rows of objects are in a property."""
        return np.isin(
            self.keys(objects), self.keys(self.numbers(members.rows, members.arity))
        )  # fmt: skip

    def given(self, values: Mapping[Objects, int], name: str, objects: Ids) -> Ids:
        """A known number for rows of objects."""
        items = list(self.space.numbering)
        first, which = distinct_rows(objects)
        keys = [tuple(items[item] for item in row) for row in objects[first]]
        for key in keys:
            if key not in values:
                raise CheckError(f"'{name}' is not known for {', '.join(map(str, key))}")
        return np.array([values[key] for key in keys], np.int64)[which]

    def flag_positions(self, objects: Ids, otherwise: int) -> Ids:
        """Where the flags of objects lie; `otherwise` for objects that are always active."""
        table = np.full(self.base, otherwise, np.int64)
        for item, (flag, owner) in self.space.flags.items():
            number = np.array([[self.space.numbering[owner]]])
            table[self.space.numbering[item]] = self.choices.find(flag, number)[0][0]
        return table[objects]


def _together(left: Variable, right: Variable, apart: set[frozenset[Variable]]) -> bool:
    """They stand for objects of one row of a relation, and are known to each other: two quantifiers
    side by side may use the same row's names without meaning the same row."""
    return left.binding is right.binding and frozenset((left, right)) in apart


class _Positions:
    """Instances in the order in which their choices or counters were declared."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.offset: dict[Choice | Counter, int] = {}
        self.objects: dict[Choice | Counter, Ids] = {}
        self.count = 0
        self._sorted: dict[Choice | Counter, tuple[Ids, Ids]] = {}

    def add(self, declared: Choice | Counter, objects: Ids) -> None:
        keys = self._layout.keys(objects)
        order = np.argsort(keys)
        self.offset[declared] = self.count
        self.objects[declared] = objects
        self._sorted[declared] = (keys[order], order)
        self.count += len(objects)

    def find(self, declared: Choice | Counter, objects: Ids) -> tuple[Ids, Flags]:
        """Positions, and where the two objects had to be exchanged to find an instance."""
        found, place = self._look_up(declared, objects)
        exchanged = np.zeros(len(objects), bool)
        if isinstance(declared, Choice) and declared.inverse is not None:
            again, other = self._look_up(declared, objects[:, ::-1])
            exchanged = ~found
            found, place = found | again, np.where(found, place, other)
        if not found.all():
            items = list(self._layout.space.numbering)
            missing = ", ".join(str(items[item]) for item in objects[~found][0])
            raise CheckError(
                f"'{declared.name}' is not made for ({missing})",
                advice="use variables of the sets that it was declared with",
            )
        return place, exchanged

    def _look_up(self, declared: Choice | Counter, objects: Ids) -> tuple[Flags, Ids]:
        keys, order = self._sorted[declared]
        wanted = self._layout.keys(objects)
        if not len(keys):
            return np.zeros(len(wanted), bool), np.zeros(len(wanted), np.int64)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return keys[at] == wanted, order[at] + self.offset[declared]
