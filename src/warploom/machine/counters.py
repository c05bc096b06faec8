"""Running totals of a launch, and the layout in which accesses are counted: one row per warp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from warploom.machine.banks import BankUse, bank_use
from warploom.machine.coalesce import Traffic, traffic
from warploom.machine.record import CUDA, NVIDIA
from warploom.machine.serving import Serving
from warploom.machine.tally import Tallies

Ints = npt.NDArray[np.int64]
_LANES = np.arange(CUDA.lanes)


@dataclass(slots=True)
class Counters:
    """Totals over a launch, memory by array. A request is one memory instruction of one warp."""

    loads: dict[str, Traffic] = field(default_factory=dict)
    stores: dict[str, Traffic] = field(default_factory=dict)
    banks: dict[str, BankUse] = field(default_factory=dict)
    shuffles: int = 0  # by warps, as all that follows where nothing else is said
    selects: int = 0
    operations: int = 0
    index_operations: int = 0
    branches: int = 0
    divergent_branches: int = 0
    barriers: int = 0  # by blocks; those of warps by warps
    atomics: int = 0  # by threads
    tallies: Tallies = field(default_factory=Tallies)  # by instruction, where there are some
    serving: Serving = NVIDIA  # how shared memory is served

    # -- counting -----------------------------------------------------------------------------

    def add_load(self, array: str, moved: Traffic) -> None:
        self.loads[array] = self.loads.get(array, Traffic()) + moved

    def add_store(self, array: str, moved: Traffic) -> None:
        self.stores[array] = self.stores.get(array, Traffic()) + moved

    def add_shared(self, array: str, use: BankUse) -> None:
        self.banks[array] = self.banks.get(array, BankUse()) + use

    def count_global(
        self, array: str, warp: Ints, lane: Ints, address: Ints, width: int, write: bool
    ) -> Traffic:
        rows, active = by_warp(warp, lane, address)
        moved = traffic(rows, width, active)
        (self.add_store if write else self.add_load)(array, moved)
        return moved

    def count_shared(
        self, array: str, warp: Ints, lane: Ints, address: Ints, width: int, write: bool = False
    ) -> BankUse:
        rows, active = by_warp(warp, lane, address)
        use = bank_use(rows, width, active, load=not write, serving=self.serving)
        self.add_shared(array, use)
        return use

    def onto(self, other: Counters) -> None:
        """Makes these the counters of another."""
        for each in fields(Counters):
            setattr(other, each.name, getattr(self, each.name))

    # -- totals -------------------------------------------------------------------------------

    @property
    def global_loads(self) -> Traffic:
        return _total(self.loads.values())

    @property
    def global_stores(self) -> Traffic:
        return _total(self.stores.values())

    @property
    def shared(self) -> BankUse:
        return sum(self.banks.values(), BankUse())

    @property
    def sectors(self) -> int:
        return (self.global_loads + self.global_stores).sectors

    @property
    def load_efficiency(self) -> float:
        return self.global_loads.efficiency

    @property
    def store_efficiency(self) -> float:
        return self.global_stores.efficiency

    @property
    def efficiency(self) -> float:
        """Useful bytes per byte moved between the chip and global memory."""
        return (self.global_loads + self.global_stores).efficiency

    @property
    def bank_conflicts(self) -> int:
        return self.shared.conflicts

    def as_dict(self) -> dict[str, int | float]:
        """The figures by name, for records."""
        names = (
            "sectors", "efficiency", "load_efficiency", "store_efficiency", "bank_conflicts",
            "shuffles", "selects", "operations", "index_operations", "branches",
            "divergent_branches", "barriers",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


def _total(parts: Iterable[Traffic]) -> Traffic:
    return sum(parts, Traffic())


def by_warp(warp: Ints, lane: Ints, address: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Addresses of single lanes as rows of warps, and which lanes take part; no idle warps.

    >>> rows, active = by_warp(np.array([7, 7]), np.array([0, 3]), np.array([64, 96]))
    >>> rows.shape, np.flatnonzero(active[0]).tolist()
    ((1, 32), [0, 3])
    """
    if _whole(warp, lane):
        rows = address.reshape(-1, CUDA.lanes).astype(np.int64, copy=False)
        return rows, np.ones(rows.shape, bool)
    fresh = np.ones(warp.size, bool)
    fresh[1:] = warp[1:] != warp[:-1]
    place = np.cumsum(fresh)
    count = int(place[-1]) if place.size else 0
    place -= 1
    place *= CUDA.lanes
    place += lane
    rows = np.zeros((count, CUDA.lanes), np.int64)
    active = np.zeros((count, CUDA.lanes), bool)
    rows.reshape(-1)[place] = address
    active.reshape(-1)[place] = True
    return rows, active


def _whole(warp: Ints, lane: Ints) -> bool:
    """Whether every warp is there with all its lanes in order, which most often is so."""
    if not lane.size or lane.size % CUDA.lanes:
        return False
    lanes, warps = lane.reshape(-1, CUDA.lanes), warp.reshape(-1, CUDA.lanes)
    # Warps come one after the other, so the first and the last lane tell of those between.
    return bool((lanes == _LANES).all() and (warps[:, 0] == warps[:, -1]).all())
