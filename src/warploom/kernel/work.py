"""What a kernel does, counted without running it: the work that a time model asks for.

One block in the middle of the grid stands for all. A statement counts as often as the loops around
it say, as its first iteration does it: addresses are computed for all threads there, and so are
sectors, lines and passes through banks. Sectors that several statements or iterations of a block
touch count once, as far as `ITERATIONS` of the innermost loops show it, but again for each request
of a streaming store, which asks for nothing to be kept; some neighbours in each direction of the
grid tell what blocks have in common. A load in a loop that changes neither its
address nor its memory counts once: compilers do it before the loop.

What data name is not known. It is taken to be inside its array and all over it: `SPREAD` places
further on for each element that the name was loaded from, as in a table whose rows are drawn at
random. So rows are seldom the same, and neighbours in the grid share none by this.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, substitute, variables
from warploom.kernel import ir
from warploom.kernel.bounds import thread_variables
from warploom.kernel.direct_copy import passed
from warploom.kernel.pool import offsets, pool_bytes
from warploom.kernel.traverse import target_of, values_of
from warploom.machine.banks import bank_use
from warploom.machine.coalesce import SECTOR_BYTES, distinct_per_row
from warploom.machine.record import CUDA, Machine, timed
from warploom.machine.times import Prediction, predicted
from warploom.machine.work import Work

ITERATIONS = 32  # of inner loops that are looked at for sectors that are touched again
BLOCKS = 4  # neighbours in each direction of the grid, which tell what blocks have in common
AT_ONCE = 4  # iterations that a compiler lets wait together, where no barrier is between them
# It makes them one where they have so many instructions together, as NVRTC does: what is computed,
# each access with its address, and the loop's own.
UNROLLED, OWN = 115, 3
LINE_BYTES = CUDA.line_bytes
SPREAD = 40503  # a prime: places between what neighbouring elements name, around the array
REGISTER_BYTES = 4
SPECIAL = ir.FLOAT_ONLY | {"/"}

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def work_of(kernel: ir.Kernel, scalars: Mapping[str, int] | None = None) -> Work:
    """The work of a launch with these scalar parameters, as far as indices depend on them."""
    return _Count(kernel, dict(scalars or {})).work()


def prediction(
    kernel: ir.Kernel, machine: Machine, scalars: Mapping[str, int] | None = None
) -> Prediction:
    """How long a launch takes by the time model, and what limits it."""
    return predicted(work_of(kernel, scalars), timed(machine))


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop around a statement; `waits`: it stays a loop in which threads meet."""

    var: str
    start: int
    step: int
    trips: int
    meets: bool
    stored: frozenset[str]


@dataclass(slots=True)
class _Round:
    """What is waited for in the body of a loop that stays one."""

    loaded: bool = False
    read: bool = False
    named: bool = False  # what is loaded is waited for, as it says what to load then


@dataclass(slots=True)
class _Touched:
    """Sectors of one array, by how often others like them come; and of neighbours in the grid.
    `again` are those that come again as nothing kept them."""

    sectors: dict[float, list[Ints]] = field(default_factory=lambda: defaultdict(list))
    beside: list[list[Ints]] = field(default_factory=lambda: [[], [], []])
    again: float = 0.0

    def count(self) -> float:
        return sum(times * len(_distinct(each)) for times, each in self.sectors.items())

    def growth(self, side: int, blocks: int) -> float:
        """What each further block in a direction touches that others do not, of a block's own."""
        own = len(_distinct([part for each in self.sectors.values() for part in each]))
        more = len(_distinct(self.beside[side])) - own
        return min(1.0, max(0, more) / max(1, own * (blocks - 1)))


class _Count:
    def __init__(self, kernel: ir.Kernel, scalars: dict[str, int]) -> None:
        self.kernel = kernel
        grid = [int(evaluate(each, scalars)) for each in kernel.grid]
        self.grid = dict(zip(ir.BLOCK_NAMES, grid, strict=True))
        middle = {name: sides // 2 for name, sides in self.grid.items()}
        self.env: dict[str, Any] = {**thread_variables(kernel), **middle, **scalars}
        self.lets: dict[str, Expr] = {}
        self.of: dict[str, float] = defaultdict(float)
        self.warps = -(-kernel.threads // kernel.warp_size)
        self.instructions, self.addresses = np.zeros((2, self.warps))
        shared = [each for each in kernel.body if isinstance(each, ir.Shared)]
        self.places = offsets(shared)
        self.pool = pool_bytes(shared)
        self.widths = {each.name: each.dtype.bytes for each in shared}
        self.widths |= {each.name: each.dtype.bytes for each in kernel.arrays}
        self.sizes = {each.name: int(evaluate(each.size, scalars)) for each in kernel.arrays}
        self.outside = {each.name for each in kernel.arrays if each.space == "global"}
        self.touched: dict[str, _Touched] = defaultdict(_Touched)
        self.passed = passed(kernel)
        self.rounds = [_Round()]
        self.origins: dict[str, Expr] = {}  # of registers: from which elements of memory they are

    def work(self) -> Work:
        kernel = self.kernel
        self._body(kernel.body, (), np.ones(kernel.threads, bool))
        self._waited(self.rounds.pop(), 1.0)
        blocks = math.prod(self.grid.values())
        sectors = {name: each.count() for name, each in self.touched.items()}
        passed = sum(sectors.values()) + sum(each.again for each in self.touched.values())
        return Work(
            blocks=blocks,
            threads=kernel.threads,
            registers=_registers(kernel, self.passed),
            shared_bytes=self.pool,
            longest=float(self.instructions.max(initial=0.0)),
            sectors=passed,
            touched=SECTOR_BYTES * sum(map(self._of_all_blocks, sectors.items())),
            fetched=SECTOR_BYTES * blocks * passed,
            **{name: float(count) for name, count in self.of.items()},
        )

    def _of_all_blocks(self, own: tuple[str, float]) -> float:
        """Sectors that all blocks touch together, where neighbours share as those looked at do."""
        name, count = own
        for side, many in enumerate(self.grid.values()):
            count *= 1 + (many - 1) * self.touched[name].growth(side, min(many, BLOCKS))
        most = self.sizes[name] * self.widths[name] / SECTOR_BYTES
        kept = 1 + self.touched[name].again / max(1.0, own[1])
        return float(min(count, most) * kept)

    def _origin(self, value: ir.Value) -> Expr:
        """A number for what a value was loaded from, and is an index of."""
        made: Expr = Const(0)
        for part in ir.walk_value(value):
            match part:
                case ir.Cell(name, index):
                    made = made * 3 + self.origins.get(name, Const(0))
                    made = made if index is None else made + substitute(index, self.lets)
                case ir.FromIndex(expr):
                    made = made * 3 + substitute(expr, self.lets)
        return made

    def _note_origin(self, target: ir.Cell, made: Expr) -> None:
        """For the whole of a register array, as if its first had been loaded."""
        if target.dtype.is_real:
            return
        first = made if target.index is None else made - substitute(target.index, self.lets)
        self.origins[target.name] = first

    # -- statements --------------------------------------------------------------------------------

    def _body(self, body: Sequence[ir.Stmt], around: tuple[_Loop, ...], active: Mask) -> None:
        times = float(math.prod(each.trips for each in around))
        for stmt in body:
            match stmt:
                case ir.Let(name, expr):
                    self._let(name, expr, around)
                case ir.Named(name, value, size):
                    self._issue("arithmetic", 2 * times, active)
                    self.rounds[-1].named |= self.rounds[-1].loaded
                    self._let(name, self._origin(value) * SPREAD % size, around)
                case ir.For():
                    self._loop(stmt, around, active)
                case ir.If(condition, then, otherwise):
                    holds = active & self._truth(condition)
                    for part, mask in ((then, holds), (otherwise, active & ~holds)):
                        if mask.any():
                            self._body(part, around, mask)
                case ir.Load():
                    self._access(stmt, around, active)
                    self._note_origin(stmt.target, substitute(stmt.index, self.lets))
                case ir.Store():
                    self._values(stmt, times, active)
                    self._access(stmt, around, active)
                case _:
                    self._simple(stmt, times, active)

    def _simple(self, stmt: ir.Stmt, times: float, active: Mask) -> None:
        match stmt:
            case ir.Barrier():
                self.of["barriers"] += times
                self._issue("", times, active)
            case ir.Shuffle():
                self._issue("shuffles", times, active)
            case ir.TensorProduct():
                self._issue("products", times, active)
            case ir.Assign(target, value):
                self._values(stmt, times, active)
                if not target.dtype.is_real:
                    self._note_origin(target, self._origin(value))

    def _let(self, name: str, expr: Expr, around: tuple[_Loop, ...]) -> None:
        spelled = substitute(expr, self.lets)
        self.env[name] = evaluate(spelled, self.env)
        self.lets.pop(name, None)
        if variables(spelled) & ({each.var for each in around} | self.grid.keys()):
            self.lets[name] = spelled

    def _loop(self, stmt: ir.For, around: tuple[_Loop, ...], active: Mask) -> None:
        start, stop = (int(np.max(evaluate(each, self.env))) for each in (stmt.start, stmt.stop))
        trips = len(range(start, stop, stmt.step))
        if not trips:
            return
        inside = list(ir.walk(stmt.body))
        meets = any(isinstance(each, ir.Barrier) for each in inside)
        stored = frozenset(each.array for each in inside if isinstance(each, ir.Store))
        own = _Loop(stmt.var, start, stmt.step, trips, meets, stored)
        self.env[stmt.var] = start
        times = float(math.prod(each.trips for each in (*around, own)))
        stays = not (stmt.unroll and stmt.counts is not None) and trips > 1
        if stays:
            self._issue("iterations", times, active)
            self.rounds.append(_Round())
        before = self.instructions.max() + self.addresses.max()
        self._body(stmt.body, (*around, own), active)
        if stays:
            size = (self.instructions.max() + self.addresses.max() - before) / times + OWN
            self._waited(self.rounds.pop(), times / (1 if meets else _at_once(trips, size)))

    def _waited(self, seen: _Round, times: float) -> None:
        self.of["global_rounds"] += times * (seen.loaded + seen.named)
        self.of["shared_rounds"] += times * seen.read

    def _issue(self, name: str, times: float, active: Mask) -> None:
        """An instruction of each warp that has active threads, so many times."""
        warps = self._rows(active).any(axis=1)
        if name:
            self.of[name] += times * int(warps.sum())
        self.instructions += times * warps
        if name in ("requests", "shared_requests"):
            self.addresses += times * warps

    def _rows(self, each: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One row for each warp; threads that are missing are not active, and at the last place."""
        lack = self.warps * self.kernel.warp_size - self.kernel.threads
        filled = np.pad(each, (0, lack), mode="constant" if each.dtype == bool else "edge")
        return filled.reshape(self.warps, -1)

    def _truth(self, condition: Expr) -> Mask:
        found = np.asarray(evaluate(condition, self.env)) != 0
        return np.broadcast_to(found, (self.kernel.threads,))

    def _values(self, stmt: ir.Assign | ir.Store, times: float, active: Mask) -> None:
        operators = 0
        for value in values_of(stmt):
            for part in ir.walk_value(value):
                if isinstance(part, ir.Operation) and part.op in SPECIAL:
                    self._issue("special", times, active)
                elif isinstance(part, ir.Operation | ir.Choose | ir.Cast):
                    operators += 1
        if operators or isinstance(stmt, ir.Assign):
            self._issue("arithmetic" if operators else "moves", times * max(1, operators), active)

    # -- memory ------------------------------------------------------------------------------------

    def _access(self, stmt: ir.Load | ir.Store, around: tuple[_Loop, ...], active: Mask) -> None:
        index = substitute(stmt.index, self.lets)
        guard = None if stmt.predicate is None else substitute(stmt.predicate, self.lets)
        if guard is not None:
            active = active & self._truth(guard)
        named = variables(index) | (frozenset() if guard is None else variables(guard))
        loops = tuple(_needed(stmt, around, named))
        times = float(math.prod(each.trips for each in loops))
        width = self.widths[stmt.array]
        place = np.broadcast_to(np.asarray(evaluate(index, self.env)), (self.kernel.threads,))
        addresses, rows = self._rows(place * width), self._rows(active)
        here = len(loops) == len(around)
        if stmt.array in self.outside:
            sent = self._outside(stmt, times, addresses, rows, width)
            depends = [each for each in loops if each.var in named]
            own = self._touch(stmt.array, index, guard, depends, active, width)
            if stmt.streaming and isinstance(stmt, ir.Store):
                self.touched[stmt.array].again += max(0.0, sent - own)
            self.rounds[-1].loaded |= here and isinstance(stmt, ir.Load)
        elif stmt.array in self.places:
            self._inside(stmt, times, addresses + self.places[stmt.array], rows, width)
            self.rounds[-1].read |= here and isinstance(stmt, ir.Load)
        else:  # constants
            self._issue("moves", times, active)

    def _outside(
        self, stmt: ir.Load | ir.Store, times: float, addresses: Ints, rows: Mask, width: int
    ) -> float:
        """The sectors of all its requests."""
        self._issue("requests", times, rows.reshape(-1)[: self.kernel.threads])
        wide = addresses[:, :, None] + np.arange(0, stmt.width * width, SECTOR_BYTES)
        active = np.repeat(rows, wide.shape[2], axis=1)
        wide = wide.reshape(len(rows), -1)
        self.of["lines"] += times * int(distinct_per_row(wide // LINE_BYTES, active).sum())
        return times * int(distinct_per_row(wide // SECTOR_BYTES, active).sum())

    def _inside(
        self, stmt: ir.Load | ir.Store, times: float, addresses: Ints, rows: Mask, width: int
    ) -> None:
        load = isinstance(stmt, ir.Load)
        used = bank_use(addresses, stmt.width * width, rows, load=load)
        self.of["wavefronts"] += times * used.wavefronts
        if not (isinstance(stmt, ir.Store) and self._is_copied(stmt.value)):
            self._issue("shared_requests", times, rows.reshape(-1)[: self.kernel.threads])

    def _is_copied(self, value: ir.Value) -> bool:
        """Whether a copy does the load and the store of it, as one instruction."""
        return isinstance(value, ir.Cell) and value.name in self.passed

    def _touch(
        self, name: str, index: Expr, guard: Expr | None, loops: Sequence[_Loop],
        active: Mask, width: int,
    ) -> float:  # fmt: skip
        """Which sectors the block and its neighbours touch, over some iterations, and how many of
        its own there are."""
        rest, inner = 1.0, list[_Loop]()
        for each in reversed(loops):
            some = min(each.trips, ITERATIONS // math.prod(one.trips for one in inner))
            rest *= each.trips / some
            inner.append(replace(each, trips=some))
        counts = np.meshgrid(*(each.start + each.step * np.arange(each.trips) for each in inner))
        counted = {each.var: at.reshape(-1, 1) for each, at in zip(inner, counts, strict=True)}
        env = {**self.env, **counted}
        seen = self.touched[name]
        own = self._sectors(index, guard, env, active, width)
        seen.sectors[rest].append(own)
        for side, (block, many) in enumerate(self.grid.items()):
            if many > 1:
                first = max(0, min(env[block] // BLOCKS * BLOCKS, many - BLOCKS))
                numbers = np.arange(first, first + min(many, BLOCKS)).reshape(-1, 1, 1)
                beside: dict[str, Any] = {**env, block: numbers}
                seen.beside[side].append(self._sectors(index, guard, beside, active, width))
        return rest * len(own)

    def _sectors(
        self, index: Expr, guard: Expr | None, env: Mapping[str, Any], active: Mask, width: int
    ) -> Ints:
        used: Any = active
        if guard is not None:
            used = active & (np.asarray(evaluate(guard, env)) != 0)
        places, used = np.broadcast_arrays(np.asarray(evaluate(index, env)), used)
        return _different(places[used] * width // SECTOR_BYTES)


def _registers(kernel: ir.Kernel, passed: Container[str]) -> float:
    """The most registers that hold something at once: each from where it is first named in the
    text to where it is named last."""
    sizes: dict[str, float] = {}
    spans: dict[str, tuple[int, int]] = {}
    at = -1
    for at, stmt in enumerate(ir.walk(kernel.body)):
        if isinstance(stmt, ir.Registers) and stmt.name not in passed:
            sizes[stmt.name] = (stmt.size or 1) * stmt.dtype.bytes / REGISTER_BYTES
        for name in _named(stmt):
            spans[name] = spans.get(name, (at, at))[0], at
    change = np.zeros(at + 2)
    for name in sizes.keys() & spans.keys():
        first, last = spans[name]
        change[first] += sizes[name]
        change[last + 1] -= sizes[name]
    return float(np.cumsum(change).max(initial=0.0))


def _named(stmt: ir.Stmt) -> Iterator[str]:
    """Registers that a statement reads or writes."""
    if isinstance(stmt, ir.TensorProduct):
        yield from (stmt.target.name, stmt.a.name, stmt.b.name)
        return
    target = target_of(stmt)
    if target is not None:
        yield target.name
    for value in values_of(stmt):
        yield from (part.name for part in ir.walk_value(value) if isinstance(part, ir.Cell))


def _distinct(some: Sequence[Ints]) -> Ints:
    return _different(np.concatenate(some)) if some else np.zeros(0, np.int64)


def _different(some: Ints) -> Ints:
    """Each once, in order: sorting is faster than the hash table of NumPy's `unique`."""
    ordered = np.sort(some)
    found: Ints = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


def _at_once(trips: int, size: float) -> int:
    """Iterations of so many instructions that wait together.

    >>> [_at_once(100, size) for size in (10, 27, 33, 60)]
    [4, 4, 2, 1]
    """
    return min(trips, next((n for n in (AT_ONCE, 2) if n * size <= UNROLLED), 1))


def _needed(
    stmt: ir.Load | ir.Store, around: tuple[_Loop, ...], named: frozenset[str]
) -> Iterator[_Loop]:
    """Loops that an access has to be in: a load leaves those that change nothing for it."""
    inner = True
    for each in reversed(around):
        leaves = isinstance(stmt, ir.Load) and each.var not in named
        inner = inner and leaves and not each.meets and stmt.array not in each.stored
        if not inner:
            yield each
