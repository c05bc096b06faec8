"""Candidates of a space: vectors of domains, a batch of them at a time, and decisions on them.

A candidate gives each instance of each choice a domain, a set of values as the bits of a word, and
each counter a range. It stands for every solution within its domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.search.space.ir import Choice, Objects, Value

Bits = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that one instance of a choice may still have."""

    values: tuple[Value, ...]
    may_be_absent: bool = False

    @property
    def is_decided(self) -> bool:
        return len(self.values) + self.may_be_absent == 1


@dataclass(frozen=True, slots=True)
class Decision:
    """One instance of a choice takes one of these values; None is having no value, because one of
    the objects is inactive. Decisions commute: a candidate is the same whatever the order in which
    they were made."""

    choice: str
    objects: tuple[str, ...]
    values: tuple[Value | None, ...]

    def __str__(self) -> str:
        values = " or ".join("absent" if v is None else str(v) for v in self.values)
        return f"{self.choice}({', '.join(self.objects)}) = {values}"


@dataclass(slots=True, eq=False)
class Candidates:
    """A batch: `domains[r, p]` are the values that instance p may have in candidate r, and counter
    c lies between `low[r, c]` and `high[r, c]`.

    Behind the last instance and the last counter lies a constant that padding may refer to.
    """

    domains: Bits
    low: Numbers
    high: Numbers

    def __len__(self) -> int:
        return len(self.domains)

    @property
    def nbytes(self) -> int:
        return self.domains.nbytes + self.low.nbytes + self.high.nbytes

    def take(self, rows: Index | Flags | slice) -> Candidates:
        """A copy of some rows."""
        return Candidates(
            self.domains[rows].copy(), self.low[rows].copy(), self.high[rows].copy()
        )  # fmt: skip


def joined(batches: Sequence[Candidates]) -> Candidates:
    return Candidates(
        np.concatenate([batch.domains for batch in batches]),
        np.concatenate([batch.low for batch in batches]),
        np.concatenate([batch.high for batch in batches]),
    )


def domain_of(choice: Choice, bits: int) -> Domain:
    values = tuple(value for at, value in enumerate(choice.values) if bits >> at & 1)
    return Domain(values, bool(bits & choice.absent_bit))


def decision(choice: Choice, objects: Objects, *values: Value | None) -> Decision:
    """By the choice's own objects and values."""
    choice.bits(values)
    return Decision(choice.name, tuple(map(str, objects)), values)
