"""What a compiled kernel notes of its accesses, where counters or races are asked for.

Comes in: while a text is written, each access that it makes; after a launch, how often which
addresses were asked for. Goes out: the C text's table of accesses, and the counters, by the same
rules as the evaluator's (`machine/counters.py`): each pattern of addresses is judged once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine.banks import BankUse, bank_use, matrix_use
from warploom.machine.coalesce import Traffic, traffic
from warploom.machine.counters import Counters
from warploom.machine.memory import Region
from warploom.machine.record import CUDA
from warploom.machine.semantics import Kind
from warploom.machine.serving import Serving
from warploom.machine.tally import own_traffic

Array = npt.NDArray[Any]
Sums = TypeVar("Sums", Traffic, BankUse)
PATTERNS = 4096  # as in the C text
_IN_SHARED, _IN_LOCAL, _ASYNCHRONOUS = -1, -2, -3
_PATTERN = np.dtype(
    [("times", "u8"), ("site", "u4"), ("mask", "u4"), ("region", "i8"), ("at", "i8", CUDA.lanes)]
)
_WHAT = {Kind.READ: "READS", Kind.WRITE: "WRITES", Kind.ATOMIC: "UPDATES_IT"}


@dataclass(frozen=True, slots=True)
class Notes:
    """What a text is to note beside its work."""

    counts: bool = False
    races: bool = False

    def __bool__(self) -> bool:
        return self.counts or self.races


NO_NOTES = Notes()


@dataclass(frozen=True, slots=True)
class NotedSite:
    """An access of the text. `rows`: lanes give the addresses of rows, and are counted so; `part`:
    what a lane has of such a matrix, for races."""

    span: Span
    width: int  # bytes of the whole access
    kind: Literal[Kind.READ, Kind.WRITE, Kind.ATOMIC]
    constant: bool = False  # by the way for what nobody writes
    rows: bool = False
    part: bool = False


@dataclass(slots=True)
class Noted:
    """What one text notes: its accesses and its branches, by number."""

    notes: Notes = NO_NOTES
    sites: list[NotedSite] = field(default_factory=list)
    branches: list[Span] = field(default_factory=list)

    def site(self, site: NotedSite) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def branch(self, span: Span) -> int:
        self.branches.append(span)
        return len(self.branches) - 1

    @property
    def unit(self) -> int:
        """Bytes of a cell of memory that no access divides."""
        return min((site.width for site in self.sites if not site.rows), default=1)

    def head(self) -> str:
        """The part of the C text that says what is noted."""
        rows = [
            f"{{{s.width}, {_WHAT[s.kind]}, {s.constant:d}, {not s.part:d}, {not s.rows:d}}}"
            for s in self.sites
        ]
        updated = any(site.kind is Kind.ATOMIC for site in self.sites)
        return "\n".join((
            f"#define COUNTS {int(self.notes.counts)}", f"#define RACES {int(self.notes.races)}",
            f"#define UPDATED {int(updated)}", f"#define UNIT {self.unit}",
            f"#define SITES {', '.join(rows) or '{0}'}",
        ))  # fmt: skip


class Counting:
    """Counts of one launch: the table that compiled code fills, and what was taken out of it."""

    def __init__(self, noted: Noted, regions: Sequence[Region], serving: Serving) -> None:
        self._noted, self._regions = noted, regions
        self.table = np.zeros(PATTERNS, _PATTERN)
        self.latest = np.zeros(len(noted.sites) + 1, np.uint32)
        self.branched = np.zeros((len(noted.branches) + 1, 2), np.uint64)
        self.found = Counters(serving=serving)
        self.broke: BaseException | None = None

    def take(self, taken: Any) -> None:
        """Counts what the table holds; compiled code calls it when that is full, and empties it.

        What is raised here cannot pass through compiled code: it is kept, and the launch ends.
        """
        try:
            self._take()
            taken[0] = 1
        except BaseException as error:  # noqa: BLE001 - raised again by `Core.step`
            self.broke = error

    def _take(self) -> None:
        for rows, times in _alike(self.table[self.table["times"] > 0]):
            site = self._noted.sites[int(rows["site"][0])]
            active = (rows["mask"][:, None] >> np.arange(CUDA.lanes, dtype=np.uint32)) & 1 != 0
            where = int(rows["region"][0])
            lanes = int(np.count_nonzero(active)) * times
            if where == _IN_SHARED:
                self._shared(site, rows["at"], active, lanes, times)
            elif where == _ASYNCHRONOUS:
                self.found.tallies.asked(site.span, "asynchronous", lanes, lanes)
            elif where == _IN_LOCAL:
                moved = own_traffic(rows["at"], site.width, active)
                self.found.tallies.moved(site.span, "local", lanes, _often(moved, times))
            else:
                self._other(site, self._regions[where], rows["at"], active, lanes, times)

    def _shared(self, site: NotedSite, rows: Array, active: Array, lanes: int, times: int) -> None:
        if site.rows:
            use = matrix_use(rows, active, load=site.kind.reads, serving=self.found.serving)
            lanes = CUDA.lanes * len(rows) * times  # all take part, some give addresses
        else:
            load = not site.kind.writes
            use = bank_use(rows, site.width, active, load=load, serving=self.found.serving)
        use = _often(use, times)
        if site.kind is not Kind.ATOMIC:  # in tallies alone: neither loads nor stores
            self.found.add_shared("shared memory", use)
        self.found.tallies.served(site.span, lanes, use)

    def _other(
        self, site: NotedSite, region: Region, rows: Array, active: Array, lanes: int, times: int
    ) -> None:
        tallies = self.found.tallies
        if region.space == "param":
            return
        if region.space != "global":
            tallies.asked(site.span, region.space, len(rows) * times, lanes)
            return
        moved = _often(traffic(rows, site.width, active), times)
        if site.kind is Kind.READ:
            self.found.add_load(region.name, moved)
        elif site.kind is Kind.WRITE:
            self.found.add_store(region.name, moved)
        tallies.moved(site.span, "global", lanes, moved)

    def into(self, counters: Counters, barriers: int, shuffles: int, updates: int) -> None:
        """The counters of a launch that came to its end."""
        self._take()
        found = self.found
        found.barriers, found.shuffles, found.atomics = barriers, shuffles, updates
        for span, (warps, divergent) in zip(
            self._noted.branches, self.branched.tolist(), strict=False
        ):
            if warps:
                found.tallies.branched(span, warps, divergent)
                found.divergent_branches += divergent
        found.onto(counters)


def _alike(rows: Array) -> Iterator[tuple[Array, int]]:
    """Patterns of one access, one region and one number of times, together."""
    keys = np.stack([rows[name].astype(np.int64) for name in ("site", "region", "times")])
    order = np.lexsort(keys)
    ends = np.flatnonzero((keys[:, order][:, 1:] != keys[:, order][:, :-1]).any(axis=0)) + 1
    for part in np.split(order, ends):
        if part.size:
            yield rows[part], int(rows["times"][part[0]])


def _often(one: Sums, times: int) -> Sums:
    return replace(one, **{each.name: getattr(one, each.name) * times for each in fields(one)})
