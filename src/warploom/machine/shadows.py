"""The earlier accesses to one region, by what kind of access they were; what one writes now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from warploom.machine.async_completion import PendingCompletions
from warploom.machine.clock import Array, Mask
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


@dataclass(frozen=True)
class Writing:
    """Accesses that write: what they write is looked at only where two of them meet.

    `holds` says of each whether its value is there; `store` may be called before its time.
    """

    holds: Callable[[], Mask]
    store: Callable[[], None]
    bytes_of: Callable[[int], bytes] = field(default=lambda _: b"")  # of one of them
    rows: Callable[[], Array] | None = None  # the bytes of each

    @cached_property
    def before(self) -> Mask:
        """Whether its value was there before."""
        return self.holds()

    @cached_property
    def after(self) -> Mask:
        """Whether its value is there after all have written."""
        _ = self.before  # can only be seen until then
        self.store()
        return self.holds()
