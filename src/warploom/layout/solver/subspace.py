"""Subspaces of bit vectors over F2, as lists of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from warploom.layout.language.evaluate import Numbers


class Span:
    """A subspace that grows; `add` says whether a vector was new to it."""

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self._by_top: dict[int, int] = {}
        for vector in vectors:
            self.add(vector)

    def reduced(self, vector: int) -> int:
        """What is left of a vector; 0 if it is in the subspace."""
        while vector:
            known = self._by_top.get(vector.bit_length())
            if known is None:
                return vector
            vector ^= known
        return 0

    def add(self, vector: int) -> bool:
        rest = self.reduced(vector)
        if rest:
            self._by_top[rest.bit_length()] = rest
        return rest != 0

    def __contains__(self, vector: int) -> bool:
        return self.reduced(vector) == 0

    def __len__(self) -> int:
        return len(self._by_top)

    @property
    def basis(self) -> list[int]:
        """Independent vectors, each with a highest bit of its own."""
        return [self._by_top[top] for top in sorted(self._by_top)]


def elements(basis: Sequence[int]) -> Numbers:
    """All vectors of a subspace.

    >>> elements([1, 6])
    array([0, 1, 6, 7])
    """
    found = np.zeros(1, dtype=np.int64)
    for vector in basis:
        found = np.concatenate([found, found ^ vector])
    return found


def basis_of(points: Numbers) -> list[int] | None:
    """A basis of a set of different vectors with 0, if the set is a subspace."""
    size = len(points)
    if size & (size - 1):
        return None
    span = Span(points.tolist())
    return span.basis if 1 << len(span) == size else None
