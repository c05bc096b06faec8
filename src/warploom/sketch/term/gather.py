"""What may fill a hole: a set of gathers, each a row of integers whose meaning a family knows.

`GatherSet` holds the call, the rows and what each reads, as tables or, where only one coordinate is
replaced, in a small form from which tables are written out when they are asked for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.ir import Expr

Shape: TypeAlias = tuple[int, ...]
Table: TypeAlias = npt.NDArray[np.int32]
Setting: TypeAlias = npt.NDArray[Any]  # the parameters of one choice
Settings: TypeAlias = npt.NDArray[Any]  # of several, one a row

# Entries of a gather table that are not an offset into the arguments. They are negative, so that
# `np.concatenate([*arguments, [undefined, zero]])[table]` reads them without a special case.
ZERO = -1
UNDEFINED = -2

# The most memory that the tables of one set may take when they are written out.
LARGEST_TABLES = 1 << 30


def size(shape: Shape) -> int:
    return math.prod(shape)


def strides(shape: Shape) -> tuple[int, ...]:
    """How far apart neighbours along each axis lie in row-major order."""
    result = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        result[axis] = result[axis + 1] * shape[axis + 1]
    return tuple(result)


@dataclass(frozen=True, slots=True)
class GatherExpr:
    """One gather as arithmetic: which argument is read, at which flat offset in it, and when zero.

    The variables are x0, x1, … (output coordinates). `argument` equal to the number of arguments
    means zero; an offset outside the argument means undefined.
    """

    argument: Expr
    offset: Expr


class Sense(Enum):
    """How a choice at one size may be read at another, the likeliest way first."""

    NATURAL = "natural"  # sizes stay sizes, other constants stay as they are
    SHARE = "share"  # larger constants keep their share of the size
    ANY = "any"  # each constant as it is, by its share, or by its distance from the end
    FORM = "form"  # the form alone is kept, its constants are open


class Family(ABC):
    """Gathers given by rows of integers, at one call; `sketch/holes` has the families.

    A row is all there is to a choice: what it reads, its text, its index expression, its cost, what
    it is at another size and its JSON are derived here.
    """

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def reads(self, rows: Settings) -> Sources:
        """What each row reads."""

    @abstractmethod
    def text(self, row: Setting) -> str:
        """How a choice is shown, e.g. "xform[cf=1,cr=2,dr=3]"."""

    @abstractmethod
    def expression(self, row: Setting) -> GatherExpr:
        """The gather over the output coordinates x0, x1, …"""

    @abstractmethod
    def cheapest(self, rows: Settings) -> int:
        """Which of several rows that mean the same is shown."""

    @abstractmethod
    def counterparts(self, rows: Settings, large: Family, reading: Sense) -> Settings:
        """What any of these rows, which mean the same here, may be for the family `large`, which
        is this one at another call; not for FORM."""

    @abstractmethod
    def forms(self, rows: Settings) -> Settings:
        """What of each row is no constant: equal for rows that differ in constants alone."""

    @abstractmethod
    def to_json(self, row: Setting) -> dict[str, Any]:
        """The parameters by name."""

    @abstractmethod
    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        """The row with these parameters; CheckError if they are not this family's."""


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Tables in which choices differ in one coordinate of the argument, kept small.

    For output cell c choice i reads `kept[c] + pace · values[i, f]`, where f is c's place in the
    grid of `axes` of the output, row-major. A value of `length`, which is beyond that axis of the
    argument, is UNDEFINED, one more is ZERO.
    """

    out_shape: Shape
    axes: tuple[int, ...]
    values: npt.NDArray[Any]
    length: int
    pace: int
    kept: Table

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, some: npt.NDArray[np.intp]) -> Moves:
        return replace(self, values=self.values[some])

    def column(self, cell: int) -> Table:
        """What every choice reads for one cell."""
        at = np.unravel_index(cell, self.out_shape)
        place = 0
        for axis in self.axes:
            place = place * self.out_shape[axis] + int(at[axis])
        return self._offsets(self.values[:, place], self.kept[cell])

    def full(self) -> Table:
        """[choices, cells]: offsets, ZERO and UNDEFINED."""
        opened = [n if a in self.axes else 1 for a, n in enumerate(self.out_shape)]
        moved = self.values.reshape([len(self), *opened])
        tables = self._offsets(moved, self.kept.reshape(self.out_shape))
        return tables.reshape(len(self), -1)

    def _offsets(self, values: npt.NDArray[Any], kept: Any) -> Table:
        tables: Table = np.multiply(values, self.pace, dtype=np.int32) + kept
        if values.max(initial=0) >= self.length:
            tables[np.broadcast_to(values >= self.length, tables.shape)] = UNDEFINED
            tables[np.broadcast_to(values > self.length, tables.shape)] = ZERO
        return tables


def moves(
    in_shape: Shape, out_shape: Shape, axis: int, axes: tuple[int, ...], values: npt.NDArray[Any]
) -> Moves:
    """Reads of the cell itself, but at `values` along `axis`; the shapes agree along the others."""
    pace = strides(in_shape)
    own = np.ogrid[tuple(slice(n) for n in out_shape)]
    kept = np.zeros(out_shape, np.int32)
    for other in set(range(len(out_shape))) - {axis}:
        kept += own[other].astype(np.int32) * np.int32(pace[other])
    return Moves(out_shape, axes, values, in_shape[axis], pace[axis], kept.reshape(-1))


Sources: TypeAlias = Table | Moves


@dataclass(frozen=True, eq=False)
class GatherSet:
    """What may fill one hole: a set of distinct gathers with the same argument and output shapes.

    `reads` says what each choice reads; no two read the same. Row n of `spelled` is one way to
    write choice `owner[n]`: all ways, in the order in which the family lists them.
    """

    function: str
    options: tuple[tuple[str, int | tuple[int, ...] | None], ...]
    arg_shapes: tuple[Shape, ...]
    out_shape: Shape
    family: Family
    spelled: Settings
    owner: npt.NDArray[np.intp]
    reads: Sources

    def __len__(self) -> int:
        return len(self.reads)

    @property
    def is_hole(self) -> bool:
        return len(self.reads) > 1

    @cached_property
    def tables(self) -> Table:
        """`tables[i, c]` is the offset that choice `i` reads for output cell `c` (row-major),
        counted through all arguments laid end to end, or ZERO or UNDEFINED."""
        if isinstance(self.reads, np.ndarray):
            return self.reads
        if 4 * len(self) * size(self.out_shape) > LARGEST_TABLES:
            raise CheckError(
                f"{self.function}: {len(self)} tables of {size(self.out_shape)} cells are too"
                " large to write out",
                advice="use a smaller array or a smaller set of gathers",
            )
        return self.reads.full()

    def rows_of(self, choices: Sequence[int] | npt.NDArray[np.intp]) -> Table:
        """The tables of some choices, without writing out the others."""
        known = self.tables if "tables" in vars(self) else self.reads
        some = known[np.asarray(choices, np.intp)]
        return some if isinstance(some, np.ndarray) else some.full()

    def table(self, choice: int) -> Table:
        """The table of one choice."""
        table: Table = self.rows_of([choice])[0]
        return table

    def column(self, cell: int) -> Table:
        """What every choice reads for one output cell."""
        if isinstance(self.reads, np.ndarray):
            return self.reads[:, cell]
        return self.reads.column(cell)

    def only(self, some: Sequence[int]) -> GatherSet:
        """The set of some of these choices, in this order."""
        number = np.full(len(self), -1, np.intp)
        number[list(some)] = np.arange(len(some))
        kept = number[self.owner] >= 0
        return replace(
            self,
            spelled=self.spelled[kept],
            owner=number[self.owner[kept]],
            reads=self.reads[np.array(some, np.intp)],
        )

    @cached_property
    def _shown(self) -> dict[int, Setting]:
        return {}

    def rows(self, choice: int) -> Settings:
        """Every way to write a choice."""
        return self.spelled[np.flatnonzero(self.owner == range(len(self))[choice])]

    def row(self, choice: int) -> Setting:
        """The cheapest way to write a choice, by which it is shown."""
        if choice not in self._shown:
            rows = self.rows(choice)
            self._shown[choice] = rows[0 if len(rows) == 1 else self.family.cheapest(rows)]
        return self._shown[choice]

    def describe(self, choice: int) -> str:
        return self.family.text(self.row(choice))

    def expression(self, choice: int) -> GatherExpr:
        return self.family.expression(self.row(choice))

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Every way to write every choice, as text; several texts may mean the same gather."""
        for row, choice in zip(self.spelled, self.owner.tolist(), strict=True):
            yield self.family.text(row), choice
