"""Products of warpgroups that nobody has waited for: their registers, and who closed which groups.

While a product is under way its sums hold no value, and neither they nor the registers that hold
its left matrix may be written: `undefined` looks here before each write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.async_completion import Completion
from warploom.machine.race import RaceDetector
from warploom.ptx.emulate.frame import WARP, Frame

Array = npt.NDArray[Any]
Complaint = Callable[[Frame, str, int], Exception]
Mask = npt.NDArray[np.bool_]
# Sums that are there now, for which threads, and what they lack.
Landed = tuple[Frame, list[int], Array, Array | None]
WARPS = 4  # of a warpgroup
_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd: no path is another one's beginning


@dataclass(slots=True, eq=False)
class Product:
    """One instruction of the threads in `threads`; `group` has, for each, the number of its group.

    `lacks` says of a sum, once it is there, for which threads it is made of what was no value.
    """

    frame: Frame
    sums: frozenset[int]
    left: frozenset[int]
    threads: Array
    group: Array
    cause: str
    lacks: dict[int, Array]


@dataclass(slots=True, eq=False)
class Flight:
    """The wgmma groups of a batch: how many each thread closed, and what it has not waited for."""

    closed: Array
    under_way: list[Product] = field(default_factory=list)
    # By instruction: how often each warp came there, and how that is complained of.
    coming: dict[int, tuple[Array, Frame, Complaint]] = field(default_factory=dict)
    path: Array | None = None  # of each warp: a number that is made of where it came, in order

    # Of warpgroups, counted through the batch: the number by which they tell that reading is done.
    sources: dict[int, int] = field(default_factory=dict)

    def source(self, races: RaceDetector, group: int) -> int:
        if group not in self.sources:
            self.sources[group] = races.new_source()
        return self.sources[group]

    def tell(self, races: RaceDetector, threads: Array, numbers: Array, newest: int) -> None:
        """These threads, of these warpgroups, wait for all but so many groups: what those read may
        be written again."""
        for group in np.unique(numbers).tolist():
            who = threads[numbers == group]
            for closed in np.unique(self.closed[who]).tolist():
                completion = Completion(self.source(races, group), closed - newest - 1)
                known = completion.known(races.layout.block_threads)
                races.vector.learn(who[self.closed[who] == closed], known)

    def come(self, f: Frame, site: int, threads: Array, fail: Complaint) -> None:
        """The warps of these threads, a row each, come to an instruction of their warpgroup."""
        if site not in self.coming:
            self.coming[site] = (np.zeros(f.batch.warp_starts.size, np.int64), f, fail)
        warps = f.batch.warp_of[threads[:, 0]]
        self.coming[site][0][warps] += 1
        if self.path is None:
            self.path = np.zeros(f.batch.warp_starts.size, np.uint64)
        self.path[warps] = self.path[warps] * _STEP + np.uint64(list(self.coming).index(site) + 1)

    def finish(self) -> None:
        """All threads have ended: of a warpgroup, all warps have come to the same products."""
        for times, f, fail in self.coming.values():
            warps = -(-f.batch.block_size // WARP)
            whole = times.reshape(-1, warps)[:, : warps // WARPS * WARPS].reshape(-1, WARPS)
            missing = (whole < whole.max(axis=1, keepdims=True, initial=0)).any(axis=1)
            if missing.any():
                group = int(missing.argmax())
                block, inside = divmod(group, warps // WARPS)
                warp = inside * WARPS + int(whole[group].argmax())
                thread = block * f.batch.block_size + warp * WARP
                raise fail(f, "not all four warps of the warpgroup come here", thread)
        if self.path is not None:
            _, f, fail = next(iter(self.coming.values()))
            warps = -(-f.batch.block_size // WARP)
            paths = self.path.reshape(-1, warps)[:, : warps // WARPS * WARPS].reshape(-1, WARPS)
            apart = (paths != paths[:, :1]).any(axis=1)
            if apart.any():
                block, inside = divmod(int(apart.argmax()), warps // WARPS)
                thread = block * f.batch.block_size + inside * WARPS * WARP
                message = "the warps of the warpgroup come to instructions for it in other orders"
                raise fail(f, message, thread)

    def add(
        self, f: Frame, sums: list[int], left: list[int], cause: str, lacks: dict[int, Array]
    ) -> None:  # fmt: skip
        here = f.full_mask().copy()
        registers = frozenset(sums), frozenset(left)
        self.under_way.append(Product(f, *registers, here, self.closed.copy(), cause, lacks))

    def of_any(self, f: Frame, threads: Mask) -> list[Product]:
        """The products of these threads that are under way, the newest first."""
        return [
            one for one in reversed(self.under_way)
            if one.frame is f and (one.threads & threads).any()
        ]  # fmt: skip

    def wait(self, here: Array, newest: int) -> list[Landed]:
        """These threads wait for all but so many of their newest groups: the sums that are there
        now, alike ones together."""
        done: list[tuple[Product, Array]] = []
        for one in self.under_way:
            ended = one.threads & here & (one.group < self.closed - newest)
            if ended.any():
                done.append((one, ended))
                one.threads = one.threads & ~ended
        self.under_way = [one for one in self.under_way if one.threads.any()]
        out: list[Landed] = []
        for one, ended in done:
            alike: dict[tuple[int, int], Landed] = {}
            for slot, there in self._not_added_to(one, ended).items():
                lacks = one.lacks.get(slot)
                key = id(there), id(lacks)
                alike.setdefault(key, (one.frame, [], there, lacks))[1].append(slot)
            out += alike.values()
        return out

    def _not_added_to(self, one: Product, ended: Array) -> dict[int, Array]:
        """By sum, the threads of which no later product is under way that adds to it."""
        out = dict.fromkeys(one.sums, ended)
        for later in self.under_way:
            if later.frame is one.frame:
                known: dict[int, Array] = {}  # mostly all sums are of the same products
                for slot in one.sums & later.sums:
                    before = out[slot]
                    if id(before) not in known:
                        known[id(before)] = before & ~later.threads
                    out[slot] = known[id(before)]
        return out
