"""Functions of a few bounded integers, each a row of integers: what gathers and warp holes share.

A gather of a term sketch replaces a coordinate by such a function of output coordinates; a hole of
a warp sketch is one of lanes and loop counters. Either says where the function stands, the form of
the function (`swizzle.py`, `condition.py`, `bits.py`, …) is written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers
from warploom.sketch.term.gather import Sense, Setting, Settings

SizePairs: TypeAlias = frozenset[tuple[int, int]]  # (length at the small size, at the large one)


class IndexFunctions(ABC):
    """One form of functions at one size; variable n is the nth coordinate, or variable, there is.

    Each subclass holds `extents`: how many values each variable takes, from 0 on.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of a row's entries."""

    @property
    @abstractmethod
    def depends(self) -> tuple[int, ...]:
        """The variables the functions may depend on, ascending."""

    @abstractmethod
    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        """[rows, points]: the value of each function where variable n is `at[n]`."""

    @abstractmethod
    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        """The function as arithmetic on the variables, which may be any expressions."""

    @abstractmethod
    def counterparts(self, rows: Settings, large: IndexFunctions, reading: Sense) -> Settings:
        """What rows that mean the same here may be at the size of `large`; not for FORM."""

    @abstractmethod
    def forms(self, rows: Settings) -> Settings:
        """What of each row is no constant."""

    def to_json(self, row: Setting) -> dict[str, Any]:
        return dict(zip(self.columns, map(int, row), strict=True))

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        """The row with these parameters, all of them and no others."""
        check_names(parameters, self.columns)
        return np.array([whole_number(name, parameters[name]) for name in self.columns], np.int64)


@dataclass(frozen=True, slots=True)
class OfTwo(IndexFunctions):
    """Functions of the variable `main`, which is meant below `size`, and of a second one."""

    size: int
    extents: tuple[int, ...]
    main: int
    second: int | None = None

    @property
    def depends(self) -> tuple[int, ...]:
        return tuple(sorted({self.main} if self.second is None else {self.main, self.second}))

    @property
    def turns(self) -> int:
        """How many values the second variable takes."""
        return 1 if self.second is None else self.extents[self.second]

    def both(self, at: Mapping[int, Integers]) -> tuple[Integers, Integers]:
        """The two variables; the second is 0 where there is none."""
        first = at[self.main]
        return first, np.zeros_like(first) if self.second is None else at[self.second]


class HasColumns(Protocol):
    @property
    def columns(self) -> tuple[str, ...]: ...


def none_of(functions: HasColumns) -> Settings:
    """No row at all."""
    return np.zeros((0, len(functions.columns)), np.int64)


def images(number: int, sizes: SizePairs) -> list[int]:
    """What a number may mean: itself, or the same share of, or distance from the end of, a size."""
    found = [number]
    for small, large in sorted(sizes):
        sign = -1 if number < 0 else 1
        if number * large % small == 0:
            found.append(number * large // small)
        if 0 < abs(number) <= small:
            found.append(sign * (abs(number) + large - small))
    return list(dict.fromkeys(found))


def sizes_of(small: Call, large: Call) -> SizePairs:
    """The lengths that differ between two sizes of one call."""
    shapes = zip(
        (*small.arg_shapes, small.out_shape), (*large.arg_shapes, large.out_shape), strict=True
    )
    pairs = [pair for a, b in shapes for pair in zip(a, b, strict=True)]
    return frozenset(pair for pair in pairs if pair[0] != pair[1])


def check_names(parameters: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in parameters:
        if name not in known:
            raise CheckError(
                f"there is no parameter '{str(name)[:80]}'",
                advice=f"the parameters are {', '.join(known) or 'none'}",
            )
    missing = [name for name in known if name not in parameters]
    if missing:
        raise CheckError(f"the parameter '{missing[0]}' is missing")


def whole_number(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 31:
        raise CheckError(f"the parameter '{name}' is a 32-bit number, not {value!r:.80}")
    return value
