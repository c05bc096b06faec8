"""Is a kernel one that a machine can run without a race? Looked at statement by statement.

It shares nothing with what made the kernel, or proved things of it: no ranges, no normal forms, no
footprints. A block is walked with all its threads, every index is evaluated as it stands, and what
each thread touches between two barriers is written down. Loops with barriers are walked iteration
by iteration: the first two, which are neighbours, and the last. All others are looked at in many
iterations at once, from the beginning and at the end, as many as `points` allows. Values are not
computed, so a large kernel takes little. The last block is walked likewise, and those next to the
first along each side of the grid in their first iterations: what one block writes to global memory,
no other touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr
from warploom.kernel.ir import (
    ArrayParam,
    Barrier,
    Cell,
    For,
    If,
    Kernel,
    Let,
    Load,
    Registers,
    Shared,
    Stmt,
    Store,
    bodies,
    walk,
)
from warploom.machine.record import Machine

MOST_POINTS = 1 << 14  # threads times iterations in which one statement is looked at, about
WORD = 4  # bytes of a register
Ints = npt.NDArray[np.int64]
Block = tuple[int, int, int]
Touched = tuple[Ints, Ints, int]  # cells, threads, and after how many barriers of the warp


def check_on(kernel: Kernel, machine: Machine, points: int = MOST_POINTS) -> None:
    """Raises CheckError if a kernel has no room, leaves an array, waits in vain, or races."""
    if any(isinstance(each, Store) and each.ahead for each in walk(kernel.body)):
        raise CheckError("a store ahead of its time, which this check does not follow")
    _check_room(kernel, machine)
    written: dict[str, Ints] = {}  # by which block each cell was written, 0: by none
    read: dict[str, list[tuple[int, Ints]]] = {}
    for number, (block, iterations) in enumerate(_blocks(kernel).items(), 1):
        found = _Walk(kernel, block, points, iterations)
        found.run()
        for name, cells in found.stored.items():
            owner = written.setdefault(name, np.zeros(found.sizes[name], np.int64))
            for each in cells:
                if ((owner[each] != 0) & (owner[each] != number)).any():
                    raise CheckError(f"a cell of '{name}' that two blocks write")
                owner[each] = number
        for name, cells in found.loaded.items():
            read.setdefault(name, []).extend((number, each) for each in cells)
    for name, owner in written.items():
        for number, each in read.get(name, []):
            if ((owner[each] != 0) & (owner[each] != number)).any():
                raise CheckError(f"a cell of '{name}' that one block writes, another reads")


def _blocks(kernel: Kernel) -> dict[Block, int]:
    """Blocks to walk, each with the iterations of a loop with barriers: first those that others
    meet."""
    x, y, z = (int(evaluate(each, {})) for each in kernel.grid)
    found = {(0, 0, 0): 3}
    found |= {block: 1 for block, side in (((1, 0, 0), x), ((0, 1, 0), y), ((0, 0, 1), z))
              if side > 1}  # fmt: skip
    last = (x - 1, y - 1, z - 1)
    return found | {last: max(2, found.get(last, 2))}


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
    words = words_at_once(kernel.body)
    if words > machine.thread_registers or words * kernel.threads > machine.block_registers:
        raise CheckError(f"{words} registers of each of {kernel.threads} threads")


def words_at_once(body: tuple[Stmt, ...]) -> int:
    """Registers that hold something at the same time, at most: each from the first statement of
    its list that mentions it to the last, and what is inside a statement beside those."""
    mentioned = [set(_cells(stmt)) for stmt in body]
    held: list[tuple[range, int]] = []
    for begin, each in enumerate(body):
        if isinstance(each, Registers):
            own = [at for at, names in enumerate(mentioned) if each.name in names]
            own += [begin] if each.initial is not None else []
            words = -(-each.dtype.bytes * (each.size or 1) // WORD)
            held += [(range(min(own), max(own) + 1), words)] if own else []
    most = 0
    for at, stmt in enumerate(body):
        inside = max((words_at_once(inner) for inner in bodies(stmt)), default=0)
        most = max(most, inside + sum(words for life, words in held if at in life))
    return most


def _cells(part: Any) -> Iterator[str]:
    """The registers that a statement mentions, with all that is inside it."""
    if isinstance(part, Cell):
        yield part.name
    elif isinstance(part, tuple):
        for each in part:
            yield from _cells(each)
    elif is_dataclass(part) and not isinstance(part, Expr):
        for each in fields(part):
            yield from _cells(getattr(part, each.name))


@dataclass(slots=True)
class _Phase:
    """What was touched since the last barrier of the block, by array."""

    writes: dict[str, list[Touched]] = field(default_factory=dict)
    reads: dict[str, list[Touched]] = field(default_factory=dict)
    epoch: int = 0


class _Walk:
    """One block. Names stand for arrays of [iterations looked at together][threads]."""

    def __init__(self, kernel: Kernel, block: Block, points: int, iterations: int) -> None:
        self.kernel, self.points, self.iterations = kernel, points, iterations
        x, y, _ = kernel.block
        thread = np.arange(kernel.threads, dtype=np.int64)[None, :]
        self.threads = thread
        self.start: dict[str, Any] = {
            "thread": thread, "thread_x": thread % x, "thread_y": thread // x % y,
            "thread_z": thread // (x * y), "lane": thread % kernel.warp_size,
            "warp": thread // kernel.warp_size,
        }  # fmt: skip
        self.start |= dict(zip(("block_x", "block_y", "block_z"), block, strict=True))
        params = [each for each in kernel.params if isinstance(each, ArrayParam)]
        self.sizes = {each.name: int(evaluate(each.size, {})) for each in params}
        shared = [each for each in kernel.body if isinstance(each, Shared)]
        self.sizes |= {each.name: each.size for each in shared}
        self.outer = {each.name for each in params}
        self.watched = {each.array for each in walk(kernel.body) if isinstance(each, Store)}
        self.places = _places(shared)
        self.deep: dict[int, int] = {}
        self.waits: dict[int, bool] = {}
        self.met: set[str] = set()  # loops with barriers that were walked before
        self.phase = _Phase()
        self.stored: dict[str, list[Ints]] = {}
        self.loaded: dict[str, list[Ints]] = {}

    def run(self) -> None:
        everyone = np.ones((1, self.kernel.threads), bool)
        self._body(self.kernel.body, self.start, everyone)
        self._close()

    def _body(self, body: tuple[Stmt, ...], env: Mapping[str, Any], active: Any) -> None:
        here = dict(env)
        for stmt in body:
            match stmt:
                case Let(name, expr):
                    here[name] = evaluate(expr, here)
                case For():
                    if self._depth(stmt):
                        self._loop(stmt, here, active)
                case If(condition, then, otherwise):
                    truth = np.asarray(evaluate(condition, here)) != 0
                    for side, taken in ((then, active & truth), (otherwise, active & ~truth)):
                        if side and taken.any():
                            self._body(side, here, taken)
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

    # -- loops

    def _depth(self, stmt: Stmt) -> int:
        """How many loops deep accesses and barriers lie, this one counted; 0 if there is none."""
        if id(stmt) not in self.deep:
            inner = [each for body in bodies(stmt) for each in body]
            most = max((self._depth(each) for each in inner), default=0)
            some = most or any(isinstance(each, Load | Store | Barrier) for each in inner)
            self.deep[id(stmt)] = most + isinstance(stmt, For) if some else 0
        return self.deep[id(stmt)]

    def _loop(self, stmt: For, env: Mapping[str, Any], active: Any) -> None:
        first, stop = (self._alike(each, env) for each in (stmt.start, stmt.stop))
        iterations = range(int(first.min()), int(stop.max()), stmt.step)
        if self._waits(stmt):
            if len(first) > 1 or len(stop) > 1:
                raise CheckError("a barrier in iterations that are looked at together")
            before = None
            for iteration in self._in_order(stmt.var, iterations):
                if before is not None and iteration != before + stmt.step:
                    self._close()  # what was left out has a barrier
                self._body(stmt.body, {**env, stmt.var: iteration}, active)
                before = iteration
            return
        chosen = np.array(self._chosen(iterations, len(active), self._depth(stmt)), np.int64)
        if not len(chosen):
            return
        inner = {name: _repeated(value, len(chosen)) for name, value in env.items()}
        inner[stmt.var] = np.tile(chosen, len(active))[:, None]
        running = np.repeat(active, len(chosen), 0)
        if len(first) > 1 or len(stop) > 1:
            begun = inner[stmt.var] >= _repeated(first, len(chosen))
            running = running & begun & (inner[stmt.var] < _repeated(stop, len(chosen)))
        self._body(stmt.body, inner, running)

    def _waits(self, stmt: For) -> bool:
        if id(stmt) not in self.waits:
            self.waits[id(stmt)] = any(isinstance(each, Barrier) for each in walk(stmt.body))
        return self.waits[id(stmt)]

    def _in_order(self, name: str, iterations: range) -> list[int]:
        """The first two iterations and the last; where the loop was met before, two are enough."""
        few = min(2, self.iterations) if name in self.met else self.iterations
        self.met.add(name)
        if len(iterations) <= few or few == 1:
            return list(iterations[:few])
        return [*iterations[: few - 1], iterations[-1]]

    def _chosen(self, iterations: range, together: int, deep: int) -> list[int]:
        """As many iterations as all loops inside leave points for, two at least."""
        left = self.points / (together * self.kernel.threads)
        count = max(2, int(max(1.0, left) ** (1 / deep)))
        return (
            list(iterations)
            if len(iterations) <= count
            else [*iterations[: count - 1], iterations[-1]]
        )

    def _alike(self, expr: Expr, env: Mapping[str, Any]) -> Ints:
        """A bound of a loop, which all threads agree on: one for each iteration around it."""
        value = np.atleast_2d(np.asarray(evaluate(expr, env)))
        if (value != value[:, :1]).any():
            raise CheckError("threads of a block take different iterations of a loop")
        return value[:, :1]

    # -- accesses

    def _access(self, stmt: Load | Store, env: Mapping[str, Any], active: Any) -> None:
        if stmt.predicate is not None:
            active = active & (np.asarray(evaluate(stmt.predicate, env)) != 0)
        if not active.any():
            return
        index = np.broadcast_to(np.asarray(evaluate(stmt.index, env)), active.shape)[active]
        if int(index.min()) < 0 or int(index.max()) + stmt.width > self.sizes[stmt.array]:
            raise CheckError(f"'{stmt.array}' is left at {int(index.min())} to {int(index.max())}")
        if stmt.width > 1 and (index % stmt.width).any():
            raise CheckError(f"a wide access of '{stmt.array}' that is not aligned")
        if stmt.array not in self.watched:
            return
        threads = np.broadcast_to(self.threads, active.shape)[active]
        name, offset, units = self.places.get(stmt.array, (stmt.array, 0, 1))
        wide = units * stmt.width
        cells = index * units + offset
        if wide > 1:
            cells = (cells[:, None] + np.arange(wide)).reshape(-1)
            threads = np.repeat(threads, wide)
        store = isinstance(stmt, Store)
        kind = self.phase.writes if store else self.phase.reads
        kind.setdefault(name, []).append((cells, threads, self.phase.epoch))
        if stmt.array in self.outer:
            (self.stored if store else self.loaded).setdefault(name, []).append(cells)

    def _close(self) -> None:
        """A barrier of the block: who touched what, since the one before? Within a warp only what
        lies between the same two of its own barriers counts."""
        width = self.kernel.warp_size
        for name, writes in self.phase.writes.items():
            reads = self.phase.reads.get(name, [])
            if len({epoch for _, _, epoch in (*writes, *reads)}) > 1:
                warps = [
                    [(cells, threads // width, 0) for cells, threads, _ in each]
                    for each in (writes, reads)
                ]
                _check_owners(name, warps[0], warps[1])
            for epoch in {epoch for _, _, epoch in writes}:
                own = [[e for e in each if e[2] == epoch] for each in (writes, reads)]
                _check_owners(name, own[0], own[1])
        self.phase = _Phase()


def _places(shared: list[Shared]) -> dict[str, tuple[str, int, int]]:
    """Arrays that lie in one pool of bytes: where each begins and how long a cell is, in units that
    all of them are made of."""
    pooled = [each for each in shared if each.offset is not None]
    unit = gcd(*(number for each in pooled for number in (each.offset or 0, each.dtype.bytes)))
    return {
        each.name: ("shared memory", (each.offset or 0) // unit, each.dtype.bytes // unit)
        for each in pooled
    }


def _repeated(value: Any, times: int) -> Any:
    """The value, repeated for each of so many inner iterations."""
    array = np.asarray(value)
    return np.repeat(array, times, 0) if array.ndim == 2 and len(array) > 1 else value


def _check_owners(name: str, writes: list[Touched], reads: list[Touched]) -> None:
    """Who writes a cell is the only one to touch it: each puts its number into what it writes, and
    finds it there."""
    most = max(int(cells.max()) for cells, _, _ in (*writes, *reads))
    owner = np.full(most + 1, -1, np.int64)
    for cells, who, _ in writes:
        owner[cells] = who
    for touched, what in ((writes, "write"), (reads, "read")):
        for cells, who, _ in touched:
            met = owner[cells]
            if ((met != who) & (met >= 0)).any():
                raise CheckError(f"a cell of '{name}' that one thread writes, others {what}")
