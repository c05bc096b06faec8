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
    UNMET = "unmet"  # if nothing orders them, nor did their lanes meet
    ALWAYS = "always"  # whatever orders them


# What makes two accesses conflict if nothing orders them.
BY_ORDER = (ConflictScope.UNORDERED, ConflictScope.OTHER_BLOCK, ConflictScope.OTHER_CLUSTER)


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
        if self.asynchronous and other.kind.writes and not other.asynchronous:
            return ConflictScope.UNFENCED
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
