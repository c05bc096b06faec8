"""From final states to fills: which choice for each hole, counted exactly and listed in order.

The fills that lead to a state are never written down to be counted, nor more of them than are asked
for to be listed: `derivations.py` has the first ones in order, and those of least cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LIST_AT_MOST = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Fills:
    """`count` fills exist; `choices[i, h]` is what listed fill i puts into hole `holes[h]`.

    Listed in lexicographic order, the first `LIST_AT_MOST` of them, or fewer if the budget was
    spent on the way.
    """

    holes: tuple[int, ...]
    count: int
    choices: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.choices)

    def only(self, number: int) -> Fills:
        """Just this one."""
        return Fills(self.holes, 1, self.choices[number : number + 1])

    def as_dict(self, number: int) -> dict[int, int]:
        row = self.choices[number]
        return {hole: int(choice) for hole, choice in zip(self.holes, row, strict=True)}


def oracle_states(fills: Fills, options: Sequence[int]) -> int:
    """What a search visits that knows for every prefix whether it can be completed."""
    total = 0
    for depth, size in enumerate(options):
        prefixes = np.unique(fills.choices[:, :depth], axis=0) if depth else fills.choices[:1, :0]
        total += size * max(1 if depth == 0 else 0, len(prefixes))
    return total
