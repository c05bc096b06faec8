"""Indices of accesses: of a path into a buffer → which array or registers, and where in it."""

from __future__ import annotations

from warploom.array.code.context import Context
from warploom.array.code.spread import THREADS
from warploom.array.code.storage import Place, Storage, flat, indices_of
from warploom.array.language.ir import Param
from warploom.array.mapping.constraint import LANE, LOCAL, WARP
from warploom.array.plan.numbered import simpler
from warploom.array.plan.view import Path
from warploom.index.ir import Expr, Var, substitute, variables


class Indexing:
    """Where accesses of one stage go."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def thread(self, run: str) -> Expr:
        """The number of a thread among those that a map within a group runs on."""
        lanes = self.storage.spread.lanes
        if run == LANE:
            return Var(THREADS[0]) % lanes
        if run == WARP:
            return Var(THREADS[0]) // lanes
        return Var(THREADS[LOCAL.index(run)])

    def at(self, memory: Param, path: Path, at: Context) -> tuple[Place, Expr]:
        """The place of a buffer, and the index into it."""
        place = self.storage.of(memory, path)
        indices = [
            at.iterations[each.name] if spread and isinstance(each, Var)
            else substitute(each, at.counters)
            for each, spread in zip(indices_of(path), place.spread or (False,) * 9, strict=False)
        ]  # fmt: skip
        copies = [
            self.thread(name) if name in self.storage.spread.sides else at.counters[name]
            for name, _ in place.copies
        ]
        dims = (*(count for _, count in place.copies), *place.dims)
        return place, simpler(flat([*copies, *indices], dims), at.ranges)

    def moves(self, path: Path, counter: str) -> bool:
        return any(counter in variables(each) for each in indices_of(path))
