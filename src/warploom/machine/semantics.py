"""How memory is touched: read or written, weak or strong and in which scope, by which way.

Two accesses that overlap, of which one writes, conflict; strong ones of equal size, each in a scope
that contains the other's thread, do not: they may meet without an order. What is read by the way
for data that nobody writes conflicts with every write of the launch, ordered or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class Scope(IntEnum):
    """Among which threads a strong access is one; a whole system is not told from its GPU."""

    BLOCK = 1
    CLUSTER = 2
    GRID = 3


class Kind(Enum):
    """What an access does; strong ones do not race with each other."""

    READ = "read"
    WRITE = "write"
    STRONG_READ = "strong read"
    STRONG_WRITE = "strong write"
    ATOMIC = "atomic"  # reads and writes

    @property
    def reads(self) -> bool:
        return self in (Kind.READ, Kind.STRONG_READ, Kind.ATOMIC)

    @property
    def writes(self) -> bool:
        return self in (Kind.WRITE, Kind.STRONG_WRITE, Kind.ATOMIC)

    @property
    def strong(self) -> bool:
        return self not in (Kind.READ, Kind.WRITE)


class ConflictScope(Enum):
    """The scope within which two accesses conflict."""

    NEVER = "never"
    UNORDERED = "unordered"  # those of two threads, if nothing orders them
    OTHER_BLOCK = "other block"  # … of two blocks
    OTHER_CLUSTER = "other cluster"
    UNFENCED = "unfenced"  # if nothing orders them, or no fence between the ways to memory does
    UNFENCED_READ = "unfenced read"  # the same of what was read before, and is written now
    UNMAPPED = "unmapped"  # … or no fences between the plain way and that of tensor maps do
    UNTOLD = "untold"  # … or no fence tells copies that an mbarrier was initialised
    UNBEGUN = "unbegun"  # if nothing orders them, nor does a fence behind initialisations
    UNMET = "unmet"  # if nothing orders them, nor did their lanes meet
    ALWAYS = "always"  # whatever orders them


# What makes two accesses conflict if nothing orders them.
BY_ORDER = (ConflictScope.UNORDERED, ConflictScope.OTHER_BLOCK, ConflictScope.OTHER_CLUSTER)
# … also if no fence between the plain way and the asynchronous one does.
BY_FENCE = (ConflictScope.UNFENCED, ConflictScope.UNFENCED_READ, ConflictScope.UNTOLD)


@dataclass(frozen=True, slots=True)
class Semantics:
    """`size` is that of one scalar, of strong accesses; `constant`: by the read-only way."""

    kind: Kind
    scope: Scope = Scope.GRID
    size: int = 0
    constant: bool = False
    under_way: bool = False  # done by a copy that nobody has waited for yet
    asynchronous: bool = False  # by the way of bulk copies and of wgmma
    told: int = 0  # ends for those who are told (`async_completion`); apart for each number
    mbarrier: bool = False  # an operation on an mbarrier
    begins: bool = False  # the initialisation of one
    tensor_map: bool = False  # read as a tensor map by a copy

    @property
    def writes_for_readers(self) -> bool:
        """A strong write, which a strong read may see."""
        return self.kind.strong and self.kind.writes

    @property
    def ends_mbarrier(self) -> bool:
        return self.mbarrier and not self.kind.strong

    def conflict_with(self, other: Semantics) -> ConflictScope:
        """The scope within which this access conflicts with an earlier one."""
        if not (self.kind.writes or other.kind.writes):
            return ConflictScope.NEVER
        if self.constant or other.constant:
            return ConflictScope.ALWAYS
        if self.tensor_map:
            return ConflictScope.UNMAPPED
        if self.mbarrier and self.kind.strong and other.begins:
            return ConflictScope.UNTOLD if self.asynchronous else ConflictScope.UNBEGUN
        if self.asynchronous and not other.asynchronous and not self.mbarrier:
            writes = other.kind.writes
            return ConflictScope.UNFENCED if writes else ConflictScope.UNFENCED_READ
        if self.ends_mbarrier and other.mbarrier and other.kind.strong:
            return ConflictScope.UNMET
        if not (self.kind.strong and other.kind.strong) or self.size != other.size:
            return ConflictScope.UNORDERED
        match min(self.scope, other.scope):
            case Scope.BLOCK:
                return ConflictScope.OTHER_BLOCK
            case Scope.CLUSTER:
                return ConflictScope.OTHER_CLUSTER
            case _:
                return ConflictScope.NEVER
