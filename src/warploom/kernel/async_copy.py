"""Stores that take effect later: what the evaluator has yet to do, in groups.

A group is what was stored ahead between two barriers that wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.kernel.ir import Store


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """A store that has yet to take effect: where, in which threads, and what each of its elements
    is to be."""

    stmt: Store
    flat: npt.NDArray[Any]
    cells: npt.NDArray[np.int64]
    use: npt.NDArray[np.bool_]
    stored: list[npt.NDArray[Any]]

    def take_effect(self) -> None:
        for offset, value in enumerate(self.stored):
            self.flat[self.cells[self.use] + offset] = value


class Groups:
    """The oldest first; the last one is still open."""

    def __init__(self) -> None:
        self._groups: list[list[Ahead]] = [[]]

    def add(self, store: Ahead) -> None:
        self._groups[-1].append(store)

    def close(self, waits: int) -> Iterator[Ahead]:
        """Closes a group; the stores of all but the last `waits` groups, which are due."""
        self._groups.append([])
        while len(self._groups) > waits + 1:
            yield from self._groups.pop(0)

    @property
    def left(self) -> list[Ahead]:
        return [each for group in self._groups for each in group]
