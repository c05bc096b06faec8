"""What a run of a kernel cost, counted as hardware would: per warp, per sector, per bank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.machine.banks import BankUse
from warploom.machine.coalesce import Traffic


@dataclass(slots=True)
class Report:
    """Counts of one launch; instructions count once for each warp that executes them."""

    grid: tuple[int, int, int]
    threads: int
    loads: dict[str, Traffic] = field(default_factory=dict)
    stores: dict[str, Traffic] = field(default_factory=dict)
    shared: dict[str, BankUse] = field(default_factory=dict)
    shuffles: int = 0
    selects: int = 0
    operations: int = 0
    index_operations: int = 0
    branches: int = 0
    divergent_branches: int = 0
    barriers: int = 0

    @property
    def load_efficiency(self) -> float:
        return _total(self.loads.values()).efficiency

    @property
    def store_efficiency(self) -> float:
        return _total(self.stores.values()).efficiency

    @property
    def efficiency(self) -> float:
        """Useful bytes per byte moved between the chip and global memory."""
        return _total([*self.loads.values(), *self.stores.values()]).efficiency

    @property
    def sectors(self) -> int:
        return _total([*self.loads.values(), *self.stores.values()]).sectors

    @property
    def bank_conflicts(self) -> int:
        return sum(use.conflicts for use in self.shared.values())

    def add_load(self, array: str, traffic: Traffic) -> None:
        self.loads[array] = self.loads.get(array, Traffic()) + traffic

    def add_store(self, array: str, traffic: Traffic) -> None:
        self.stores[array] = self.stores.get(array, Traffic()) + traffic

    def add_shared(self, array: str, use: BankUse) -> None:
        self.shared[array] = self.shared.get(array, BankUse()) + use

    def as_dict(self) -> dict[str, int | float]:
        """The figures by name, for records."""
        return {
            "sectors": self.sectors,
            "efficiency": self.efficiency,
            "load_efficiency": self.load_efficiency,
            "store_efficiency": self.store_efficiency,
            "bank_conflicts": self.bank_conflicts,
            "shuffles": self.shuffles,
            "selects": self.selects,
            "operations": self.operations,
            "index_operations": self.index_operations,
            "branches": self.branches,
            "divergent_branches": self.divergent_branches,
            "barriers": self.barriers,
        }


def _total(parts: Iterable[Traffic]) -> Traffic:
    return sum(parts, Traffic())
