"""How many threads a group may have: all triples that a machine can launch, by the sides in use.

A candidate whose maps run on threads in some dimensions chooses one triple, with 1 in the others.
Counting them makes drawing exact: a mapping that leaves more triples is drawn so much more often.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.machine.record import CUDA, Machine

Ints = npt.NDArray[np.int64]
ALONG = np.array([1, 2, 4])  # a set of dimensions is the sum of these
SIDES = tuple(
    sorted({b << k for b in (1, 3, 5, 7, 9) for k in range(11) if b << k <= 1024})
)  # threads in one dimension


class Groups:
    """The triples for each of the eight sets of dimensions."""

    def __init__(self, machine: Machine) -> None:
        # Kernels are checked for all targets at once, so CUDA's sides hold too.
        most = [min(pair) for pair in zip(machine.block_sides, CUDA.block_sides, strict=True)]
        threads = min(machine.block_threads, CUDA.block_threads)
        self.tables: list[Ints] = []
        for used in range(8):
            sides = [
                [each for each in SIDES if each <= most[k]] if used >> k & 1 else [1]
                for k in range(3)
            ]
            every = np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, 3)
            self.tables.append(every[every.prod(1) <= threads].astype(np.int64))
        self.counts: Ints = np.array([len(each) for each in self.tables])
        self._starts = np.concatenate([[0], self.counts.cumsum()[:-1]])
        self._all = np.concatenate(self.tables)

    def draw(self, random: np.random.Generator, used: Ints) -> Ints:
        """A triple for each set of dimensions, all equally likely."""
        found: Ints = self._all[self._starts[used] + random.integers(self.counts[used])]
        return found
