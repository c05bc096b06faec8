"""Is a kernel one that a machine can run without a race? Looked at statement by statement.

It shares nothing with what made the kernel, or proved things of it: no ranges, no normal forms, no
footprints. One block is walked with all its threads, every index is evaluated as it stands, and
what each thread touches between two barriers is written down. Loops are walked as far as `turns`
says, from the beginning and at the end. Values are not computed, so a large kernel takes little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr
from warploom.kernel.ir import (
    ArrayParam,
    Barrier,
    For,
    If,
    Kernel,
    Let,
    Load,
    Registers,
    Shared,
    Stmt,
    Store,
    walk,
)
from warploom.machine.record import Machine

MOST_POINTS = 1 << 14  # statements that are looked at
Ints = npt.NDArray[np.int64]


def check_on(
    kernel: Kernel, machine: Machine, block: tuple[int, int, int] = (0, 0, 0), turns: int = 3
) -> None:
    """Raises CheckError if a kernel has no room, leaves an array, waits in vain, or races."""
    _check_room(kernel, machine)
    _Walk(kernel, block, turns).run()


def _check_room(kernel: Kernel, machine: Machine) -> None:
    sides = [int(evaluate(each, {})) for each in kernel.grid]
    if any(a > b for a, b in zip(kernel.block, machine.block_sides, strict=True)):
        raise CheckError(f"a block of {kernel.block} threads")
    if kernel.threads > machine.block_threads:
        raise CheckError(f"a block of {kernel.threads} threads")
    if any(a > b for a, b in zip(sides, machine.grid_sides, strict=True)):
        raise CheckError(f"a grid of {sides} blocks")
    shared = [each for each in kernel.body if isinstance(each, Shared)]
    ends = [(each.offset or 0) + each.bytes for each in shared]
    used = max(ends, default=0) if any(s.offset is not None for s in shared) else sum(
        -(-each.bytes // 16) * 16 for each in shared
    )  # fmt: skip
    if used > machine.shared_bytes:
        raise CheckError(f"{used} bytes of shared memory")
    words = sum((each.size or 1) for each in walk(kernel.body) if isinstance(each, Registers))
    if words > machine.thread_registers:
        raise CheckError(f"{words} registers of a thread")


@dataclass(slots=True)
class _Phase:
    """What was touched since the last barrier of the block, by array: cells, threads, and after
    how many barriers of the warp."""

    writes: dict[str, list[tuple[Ints, Ints, Ints]]] = field(default_factory=dict)
    reads: dict[str, list[tuple[Ints, Ints, Ints]]] = field(default_factory=dict)
    epoch: int = 0


class _Walk:
    def __init__(self, kernel: Kernel, block: tuple[int, int, int], turns: int) -> None:
        self.kernel, self.turns, self.looked = kernel, turns, 0
        x, y, _ = kernel.block
        thread = np.arange(kernel.threads, dtype=np.int64)
        self.threads = thread
        self.start: dict[str, Any] = {
            "thread": thread, "thread_x": thread % x, "thread_y": thread // x % y,
            "thread_z": thread // (x * y), "lane": thread % kernel.warp_size,
            "warp": thread // kernel.warp_size,
        }  # fmt: skip
        self.start |= dict(zip(("block_x", "block_y", "block_z"), block, strict=True))
        self.sizes = {
            each.name: int(evaluate(each.size, {}))
            for each in kernel.params
            if isinstance(each, ArrayParam)
        }
        shared = [each for each in kernel.body if isinstance(each, Shared)]
        self.sizes |= {each.name: each.size for each in shared}
        written = {each.array for each in walk(kernel.body) if isinstance(each, Store)}
        self.watched = written
        self.places = {each.name: ("pool", each.offset, each.dtype.bytes) for each in shared
                       if each.offset is not None}  # fmt: skip
        self.phase = _Phase()

    def run(self) -> None:
        self._body(self.kernel.body, self.start, np.ones(self.kernel.threads, bool))
        self._close()

    def _body(self, body: tuple[Stmt, ...], env: Mapping[str, Any], active: Any) -> None:
        here = dict(env)
        for stmt in body:
            self.looked += 1
            match stmt:
                case Let(name, expr):
                    here[name] = evaluate(expr, here)
                case For(var, start, stop, inner):
                    first, last = (int(self._same(each, here)) for each in (start, stop))
                    for turn in self._chosen(range(first, last, stmt.step)):
                        self._body(inner, {**here, var: turn}, active)
                case If(condition, then, otherwise):
                    truth = np.broadcast_to(
                        np.asarray(evaluate(condition, here)) != 0, active.shape
                    )
                    if (active & truth).any():
                        self._body(then, here, active & truth)
                    if (active & ~truth).any():
                        self._body(otherwise, here, active & ~truth)
                case Barrier(scope):
                    if not active.all():
                        raise CheckError("a barrier that some threads do not meet")
                    if scope == "block":
                        self._close()
                    self.phase.epoch += 1
                case Load() | Store():
                    self._access(stmt, here, active)
                case _:
                    pass

    def _chosen(self, turns: range) -> list[int]:
        if len(turns) <= self.turns or (self.looked < MOST_POINTS // 8 and len(turns) <= 64):
            return list(turns)
        return [*turns[: self.turns - 1], turns[-1]]

    def _same(self, expr: Expr, env: Mapping[str, Any]) -> Any:
        value = np.asarray(evaluate(expr, env))
        if value.size > 1 and (value != value.flat[0]).any():
            raise CheckError("threads of a block take different turns of a loop")
        return value.flat[0]

    def _access(self, stmt: Load | Store, env: Mapping[str, Any], active: Any) -> None:
        if stmt.predicate is not None:
            active = active & (np.asarray(evaluate(stmt.predicate, env)) != 0)
        if not active.any():
            return
        index = np.broadcast_to(np.asarray(evaluate(stmt.index, env)), active.shape)[active]
        if (index < 0).any() or (index + stmt.width > self.sizes[stmt.array]).any():
            raise CheckError(f"'{stmt.array}' is left at {int(index.min())} to {int(index.max())}")
        if (index % stmt.width).any():
            raise CheckError(f"a wide access of '{stmt.array}' that is not aligned")
        if stmt.array in self.watched:
            cells = (index[:, None] + np.arange(stmt.width)).reshape(-1)
            threads = np.repeat(self.threads[active], stmt.width)
            name, offset, unit = self.places.get(stmt.array, (stmt.array, 0, 1))
            kind = self.phase.writes if isinstance(stmt, Store) else self.phase.reads
            epoch = np.full(len(cells), self.phase.epoch, np.int64)
            kind.setdefault(name, []).append((cells * unit + (offset or 0), threads, epoch))

    def _close(self) -> None:
        """A barrier of the block: who touched what, since the one before? Within a warp only what
        lies between the same two of its own barriers counts."""
        width = self.kernel.warp_size
        for array, listed in self.phase.writes.items():
            written = _joined(listed)
            read = _joined(self.phase.reads.get(array, []))
            for other, what in ((written, "write"), (read, "read")):
                across = _meet((written[0],), written[1] // width, (other[0],), other[1] // width)
                within = _meet((written[0], written[2]), written[1], (other[0], other[2]), other[1])
                if across or within:
                    raise CheckError(f"a cell of '{array}' that one thread writes, others {what}")
        self.phase = _Phase()


def _joined(listed: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    if not listed:
        none = np.zeros(0, np.int64)
        return none, none, none
    cells, threads, epochs = (np.concatenate(each) for each in zip(*listed, strict=True))
    return cells, threads, epochs


def _meet(keys: tuple[Ints, ...], who: Ints, others: tuple[Ints, ...], by: Ints) -> bool:
    """Whether one key is touched by two: one of the first and another one of the second."""
    if not len(who) or not len(by):
        return False
    both = np.stack([np.concatenate(pair) for pair in zip(keys, others, strict=True)], 1)
    code = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    first, second = code[: len(who)], code[len(who) :]
    least, most = np.full(code.max() + 1, np.iinfo(np.int64).max), np.full(code.max() + 1, -1)
    np.minimum.at(least, first, who)
    np.maximum.at(most, first, who)
    touched = most[second] >= 0
    return bool((touched & ((least[second] != by) | (most[second] != by))).any())
