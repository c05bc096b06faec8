"""What each instruction asked of memory over a launch, and where warps parted.

`label` is whatever tells one instruction from another; the PTX emulator gives the place in the
text. An instruction with generic addresses has one tally for each memory that it reached.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.machine.banks import BankUse
from warploom.machine.coalesce import Traffic, traffic
from warploom.machine.record import CUDA

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Requested:
    """Requests by warps; `lanes` are the threads that took part, over all of them."""

    requests: int = 0
    lanes: int = 0
    sectors: int = 0
    least_sectors: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0


@dataclass(slots=True)
class Branched:
    """Warps that came to a branch, each time counted, and those whose lanes did not agree."""

    warps: int = 0
    divergent: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """What one instruction asked for at a time: addresses by warp and lane."""

    label: Hashable
    space: str
    rows: Ints
    active: npt.NDArray[np.bool_]
    width: int
    write: bool


@dataclass(slots=True)
class Watched:
    """One block of a launch, of which every request is kept; and how many warps of all blocks
    executed each kind of instruction, each side of a branch for itself."""

    block: int
    requests: list[Request] = field(default_factory=list)
    executed: dict[str, int] = field(default_factory=dict)

    def came(self, names: Iterable[str], warps: Ints) -> None:
        count = int(np.unique(warps).size)
        for name in names:
            self.executed[name] = self.executed.get(name, 0) + count


@dataclass(slots=True)
class Tallies:
    watched: Watched | None = None
    memory: dict[tuple[Hashable, str], Requested] = field(default_factory=dict)
    branches: dict[Hashable, Branched] = field(default_factory=dict)

    def asked(self, label: Hashable, space: str, requests: int, lanes: int) -> Requested:
        found = self.memory.setdefault((label, space), Requested())
        found.requests += requests
        found.lanes += lanes
        return found

    def moved(self, label: Hashable, space: str, lanes: int, moved: Traffic) -> None:
        found = self.asked(label, space, moved.requests, lanes)
        found.sectors += moved.sectors
        found.least_sectors += moved.least_sectors

    def served(self, label: Hashable, lanes: int, use: BankUse) -> None:
        found = self.asked(label, "shared", use.requests, lanes)
        found.wavefronts += use.wavefronts
        found.least_wavefronts += use.ideal

    def branched(self, label: Hashable, warps: int, divergent: int) -> None:
        found = self.branches.setdefault(label, Branched())
        found.warps += warps
        found.divergent += divergent


def own_traffic(rows: Ints, width: int, active: npt.NDArray[np.bool_]) -> Traffic:
    """Sectors of threads' own memory: words of one place lie side by side, lane after lane.

    `rows` are offsets within each thread's memory, one row per warp, one column per lane.

    >>> one = np.ones((1, 32), bool)
    >>> own_traffic(np.zeros((1, 32), np.int64), 8, one)
    Traffic(requests=1, sectors=8, useful_bytes=256, least_sectors=8)
    """
    word = CUDA.bank_bytes
    lanes = np.arange(rows.shape[1]) * word
    parts = [rows + at for at in range(0, max(width, word), word)]
    spread = [part // word * (word * CUDA.lanes) + lanes + part % word for part in parts]
    return traffic(np.concatenate(spread, 1), min(width, word), np.tile(active, (1, len(parts))))
