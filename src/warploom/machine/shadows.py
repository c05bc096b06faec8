"""The earlier accesses to one region, by what kind of access they were."""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.machine.async_completion import PendingCompletions
from warploom.machine.semantics import ConflictScope, Semantics
from warploom.machine.shadow import ByLabel, History, Latest, UnderWay

Store = Latest | ByLabel | History | UnderWay | PendingCompletions
Conflicts = list[tuple[Semantics, Store, ConflictScope]]


@dataclass(slots=True)
class Shadows:
    """The accesses to one region, in cells of `unit` bytes that no access so far has divided."""

    size: int
    unit: int
    stores: dict[Semantics, Store] = field(default_factory=dict)
    conflicts: dict[Semantics, Conflicts] = field(default_factory=dict)  # of the stores there are

    def add(self, semantics: Semantics, store: Store) -> None:
        self.stores[semantics] = store
        self.conflicts.clear()

    def refine(self, unit: int) -> None:
        for store in self.stores.values():
            store.refine(self.unit // unit)
        self.unit = unit
