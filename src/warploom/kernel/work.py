"""What a kernel does, counted without running it: the work that a time model asks for.

One block in the middle of the grid stands for all. A statement counts as often as the loops around
it say, as its first iteration does it: addresses are computed for all threads there, and so are
sectors, lines and passes through banks. Sectors that several statements or iterations of a block
touch count once, as far as `ITERATIONS` of the innermost loops show it, but again for each request
of a streaming store, which asks for nothing to be kept; some neighbours in each direction of the
grid tell what blocks have in common. A load in a loop that changes neither its address nor its
memory counts once: compilers do it before the loop. So does what several statements load.

What data name is not known. It is taken to be inside its array and all over it: `SPREAD` places
further on for each element that the name was loaded from, as in a table whose rows are drawn at
random. So rows are seldom the same, and neighbours in the grid share none by this.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, substitute, variables
from warploom.kernel import ir
from warploom.kernel.bounds import thread_variables
from warploom.kernel.compiled import OWN, asked_ahead, at_once, needed_if, registers, undone
from warploom.kernel.direct_copy import passed
from warploom.kernel.pool import offsets, whole_bytes
from warploom.kernel.traverse import values_of
from warploom.kernel.warpgroup import GROUP
from warploom.machine.banks import bank_use
from warploom.machine.coalesce import SECTOR_BYTES, distinct_per_row
from warploom.machine.record import CUDA, Machine, timed
from warploom.machine.times import Prediction, predicted
from warploom.machine.work import Work

ITERATIONS = 32  # of inner loops that are looked at for sectors that are touched again
AT_ONCE = 4  # iterations that wait together, where it is not known how long they are
JOINED = 0.7  # of what they touch, where neighbours lie one behind the other
UNPACKED = {4: 1.4, 8: 2.75}  # instructions for each integer of so many bits in a word
BLOCKS = 4  # neighbours in each direction of the grid, which tell what blocks have in common
LINE_BYTES = CUDA.line_bytes
MOST_COMPARED = 256  # iterations of a load, of those that are undone
SPREAD = 40503  # a prime: places between what neighbouring elements name, around the array
SPECIAL = (ir.FLOAT_ONLY - {"tf32"}) | {"/"}

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
    """A loop around a statement; `stays`: a compiler leaves it one; `meets`: threads meet in it."""

    var: str
    start: int
    step: int
    trips: int
    stays: bool
    meets: bool
    stored: frozenset[str]


@dataclass(slots=True)
class _Round:
    """What is waited for in the body of a loop that stays one."""

    loaded: bool = False
    ahead: bool = False
    read: bool = False
    named: bool = False  # what is loaded is waited for, as it says what to load then


@dataclass(slots=True)
class _Touched:
    """Sectors of one array, by how often others like them come; and of neighbours in the grid.
    `sent` and `lines` are those of all requests, one by one."""

    sectors: dict[float, list[Ints]] = field(default_factory=lambda: defaultdict(list))
    beside: list[list[Ints]] = field(default_factory=lambda: [[], [], []])
    sent: float = 0.0
    lines: float = 0.0

    def count(self) -> float:
        return sum(times * len(_distinct(each)) for times, each in self.sectors.items())

    def growth(self, side: int, blocks: int) -> float:
        """What each further block in a direction touches that others do not, of a block's own."""
        own = len(_distinct([part for each in self.sectors.values() for part in each]))
        more = len(_distinct(self.beside[side])) - own
        return min(1.0, max(0, more) / max(1, own * (blocks - 1)))

    def run(self, blocks: int) -> float:
        """Sectors that lie one behind the other, which blocks that come together touch: of so many
        in the first direction of the grid."""
        own = _distinct([part for each in self.sectors.values() for part in each])
        beside = _distinct(self.beside[0])
        alone = len(own) / _pieces(own)
        if not len(beside):
            return alone
        together = len(beside) / _pieces(beside)
        joined = together > JOINED * min(blocks, BLOCKS) * alone
        return together * max(1.0, blocks / BLOCKS) if joined else together


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
        self.pool = whole_bytes(kernel)
        self.widths = {each.name: each.dtype.bytes for each in shared}
        self.widths |= {each.name: each.dtype.bytes for each in kernel.arrays}
        self.sizes = {each.name: int(evaluate(each.size, scalars)) for each in kernel.arrays}
        self.outside = {each.name for each in kernel.arrays if each.space == "global"}
        self.touched: dict[tuple[str, bool], _Touched] = defaultdict(_Touched)  # loaded or stored
        self.passed = passed(kernel)
        self.ahead = asked_ahead(kernel)
        self.rounds = [_Round()]
        self.several = _loaded_again(kernel)
        self.had: list[set[bytes]] = [set()]  # what threads have in registers, by the scope
        self.origins: dict[str, Expr] = {}  # of registers: from which elements of memory they are

    def work(self) -> Work:
        kernel = self.kernel
        everyone = np.ones(kernel.threads, bool)
        for stmt, needed in zip(kernel.body, needed_if(kernel.body), strict=True):
            self._body((stmt,), (), everyone if needed is None else self._truth(needed))
        self._waited(self.rounds.pop(), 1.0)
        blocks = math.prod(self.grid.values())
        sectors = {key: each.count() for key, each in self.touched.items()}
        # L1 keeps what is loaded; what is stored it passes on.
        passed = asked = common = 0.0
        for (name, load), each in self.touched.items():
            missed = min(1.0, sectors[name, load] / max(1.0, each.sent)) if load else 1.0
            if load and self._is_common(each):
                common += missed * each.sent
            else:
                passed, asked = passed + missed * each.sent, asked + missed * each.lines
        every = {key: self._of_all_blocks(key, own) for key, own in sectors.items()}
        return Work(
            blocks=blocks,
            threads=kernel.threads,
            registers=registers(kernel, self.passed),
            shared_bytes=self.pool,
            longest=float(self.instructions.max(initial=0.0)),
            sectors=passed,
            asked=blocks * asked,
            common=common,
            touched=SECTOR_BYTES * sum(every.values()),
            runs=sum(
                many / self.touched[key].run(self.grid["block_x"])
                for key, many in every.items()
                if many
            ),
            fetched=SECTOR_BYTES * blocks * passed,
            **{name: float(count) for name, count in self.of.items()},
        )

    def _of_all_blocks(self, key: tuple[str, bool], own: float) -> float:
        """Sectors that all blocks touch together, where neighbours share as those looked at do."""
        for side, many in enumerate(self.grid.values()):
            own *= 1 + (many - 1) * self.touched[key].growth(side, min(many, BLOCKS))
        return float(min(own, self.sizes[key[0]] * self.widths[key[0]] / SECTOR_BYTES))

    def _is_common(self, touched: _Touched) -> bool:
        """Whether all blocks touch the same."""
        sides = [(side, many) for side, many in enumerate(self.grid.values()) if many > 1]
        return bool(sides) and not any(touched.growth(at, min(n, BLOCKS)) for at, n in sides)

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
                case ir.Ring(var, count, stage, _, inner):
                    self.env[stage] = 0
                    self._loop(ir.For(var, Const(0), count, inner, unroll=False), around, active)
                case ir.PingPong():
                    raise CheckError(
                        f"the ping-pong of warp groups in '{self.kernel.name}' is not counted",
                        advice="count a kernel whose consumers share each tile",
                    )
                case ir.If(condition, then, otherwise):
                    holds = active & self._truth(condition)
                    for part, mask in ((then, holds), (otherwise, active & ~holds)):
                        if mask.any():
                            self.had.append(set(self.had[-1]))
                            self._body(part, around, mask)
                            self.had.pop()
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
            case ir.WarpgroupProduct(columns=columns):
                groups = active.reshape(-1, GROUP).any(axis=1).sum()
                self.of["group_products"] += times * int(groups) * columns / 8
                self._issue("", times, active)
            case ir.Unpack(bits=bits):
                self._issue("arithmetic", times * (UNPACKED[bits] * stmt.count), active)
            case ir.Interleave(count=count):
                self._issue("arithmetic", times * count / 2, active)
            case ir.SharedSum(count=count):
                self.of["barriers"] += 2 * times
                self._issue("shared_requests", times * count / self.kernel.threads, active)
            case ir.Assign(target, value):
                self._values(stmt, times, active)
                if not target.dtype.is_real:
                    self._note_origin(target, self._origin(value))
            case _:
                self._moved(stmt, times, active)

    def _moved(self, stmt: ir.Stmt, times: float, active: Mask) -> None:
        """Matrices, boxes and sums on their way through shared memory."""
        match stmt:
            case ir.Fill() | ir.BulkStore():
                self.of["bulk_bytes"] += times * self._box_bytes(stmt)
            case ir.LoadMatrix() | ir.StoreMatrix():
                self.of["wavefronts"] += times * stmt.count * self.warps
                self._issue("shared_requests", times, active)
            case ir.ClusterSum():
                self.of["wavefronts"] += 2 * times * (stmt.blocks - 1) * stmt.registers * self.warps
                self._issue("shared_requests", times, active)

    def _box_bytes(self, stmt: ir.Fill | ir.BulkStore) -> float:
        """Bytes of the part that a block brings itself, where blocks of a cluster share."""
        map = next(each for each in self.kernel.maps if each.name == stmt.map)
        groups = self.kernel.threads // GROUP
        many = groups if isinstance(stmt, ir.BulkStore) and stmt.scope == "group" else 1
        return many * map.elements * self.widths[map.array]

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
        stays = not undone(stmt, trips)
        own = _Loop(stmt.var, start, stmt.step, trips, stays, meets, stored)
        self.env[stmt.var] = start
        times = float(math.prod(each.trips for each in (*around, own)))
        if stays:
            self._issue("iterations", times, active)
            self.rounds.append(_Round())
            self.had.append(set(self.had[-1]))
        before = self.instructions.max() + self.addresses.max()
        self._body(stmt.body, (*around, own), active)
        if stays:
            self.had.pop()
            size = (self.instructions.max() + self.addresses.max() - before) / times + OWN
            self._waited(self.rounds.pop(), times / (1 if meets else at_once(trips, size)))

    def _waited(self, seen: _Round, times: float) -> None:
        self.of["global_rounds"] += times * (seen.loaded + seen.named)
        self.of["ahead_rounds"] += times * (seen.ahead and not seen.loaded)
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
        if isinstance(stmt, ir.Load) and stmt.array in self.several and guard is None:
            times *= self._new(stmt, index, loops)
            if not times:
                return
        width = self.widths[stmt.array]
        place = np.broadcast_to(np.asarray(evaluate(index, self.env)), (self.kernel.threads,))
        addresses, rows = self._rows(place * width), self._rows(active)
        waited = self.rounds[_waited(loops, around)]
        if stmt.array in self.outside:
            self._outside(stmt, times, addresses, rows, width)
            depends = [each for each in loops if each.var in named]
            self._touch(self._touched(stmt), index, guard, depends, active, width)
            if isinstance(stmt, ir.Load) and stmt.target.name in self.ahead:
                waited.ahead = True
            elif isinstance(stmt, ir.Load):
                waited.loaded = True
        elif stmt.array in self.places:
            self._inside(stmt, times, addresses + self.places[stmt.array], rows, width)
            waited.read |= isinstance(stmt, ir.Load)
        else:  # constants
            self._issue("moves", times, active)

    def _new(self, stmt: ir.Load, index: Expr, loops: Sequence[_Loop]) -> float:
        """The part of a load's iterations that a compiler keeps, as no other load of the array is
        of the same elements: only those of loops that are undone can be compared."""
        undone = [each for each in loops if not each.stays]
        total = math.prod(each.trips for each in undone)
        if stmt.streaming or total > MOST_COMPARED:
            return 1.0
        counts = np.meshgrid(*(each.start + each.step * np.arange(each.trips) for each in undone))
        env = {each.var: at.reshape(-1, 1) for each, at in zip(undone, counts, strict=True)}
        places = np.asarray(evaluate(index, {**self.env, **env}))
        each = np.broadcast_to(places, (total, self.kernel.threads))
        around = sorted(variables(index) & {one.var for one in loops if one.stays})
        kind = f"{stmt.array} {stmt.width} {around} ".encode()
        found = {kind + row.tobytes() for row in each} - self.had[-1]
        self.had[-1] |= found
        return len(found) / total

    def _touched(self, stmt: ir.Load | ir.Store) -> _Touched:
        return self.touched[stmt.array, isinstance(stmt, ir.Load)]

    def _outside(
        self, stmt: ir.Load | ir.Store, times: float, addresses: Ints, rows: Mask, width: int
    ) -> None:
        """The lines and sectors of all its requests."""
        self._issue("requests", times, rows.reshape(-1)[: self.kernel.threads])
        wide = addresses[:, :, None] + np.arange(0, stmt.width * width, SECTOR_BYTES)
        active = np.repeat(rows, wide.shape[2], axis=1)
        wide = wide.reshape(len(rows), -1)
        lines = times * int(distinct_per_row(wide // LINE_BYTES, active).sum())
        self.of["lines"] += lines
        seen = self._touched(stmt)
        if stmt.streaming and isinstance(stmt, ir.Store):
            self.of["streamed"] += times * int(rows.any(axis=1).sum())
        seen.lines += lines
        seen.sent += times * int(distinct_per_row(wide // SECTOR_BYTES, active).sum())

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
        self, seen: _Touched, index: Expr, guard: Expr | None, loops: Sequence[_Loop],
        active: Mask, width: int,
    ) -> None:  # fmt: skip
        """Which sectors the block and its neighbours touch, over some iterations."""
        rest, inner = 1.0, list[_Loop]()
        for each in reversed(loops):
            some = min(each.trips, ITERATIONS // math.prod(one.trips for one in inner))
            rest *= each.trips / some
            inner.append(replace(each, trips=some))
        counts = np.meshgrid(*(each.start + each.step * np.arange(each.trips) for each in inner))
        counted = {each.var: at.reshape(-1, 1) for each, at in zip(inner, counts, strict=True)}
        env = {**self.env, **counted}
        own = self._sectors(index, guard, env, active, width)
        seen.sectors[rest].append(own)
        for side, (block, many) in enumerate(self.grid.items()):
            if many > 1:
                first = max(0, min(env[block] // BLOCKS * BLOCKS, many - BLOCKS))
                numbers = np.arange(first, first + min(many, BLOCKS)).reshape(-1, 1, 1)
                beside: dict[str, Any] = {**env, block: numbers}
                seen.beside[side].append(self._sectors(index, guard, beside, active, width))

    def _sectors(
        self, index: Expr, guard: Expr | None, env: Mapping[str, Any], active: Mask, width: int
    ) -> Ints:
        used: Any = active
        if guard is not None:
            used = active & (np.asarray(evaluate(guard, env)) != 0)
        places, used = np.broadcast_arrays(np.asarray(evaluate(index, env)), used)
        return _different(places[used] * width // SECTOR_BYTES)


def _loaded_again(kernel: ir.Kernel) -> set[str]:
    """Arrays that nothing is stored to, and that several statements load from."""
    const = {each.name for each in kernel.arrays if each.const and each.space == "global"}
    loads = Counter(each.array for each in ir.walk(kernel.body) if isinstance(each, ir.Load))
    return {name for name in const if loads[name] > 1}


def _distinct(some: Sequence[Ints]) -> Ints:
    return _different(np.concatenate(some)) if some else np.zeros(0, np.int64)


def _pieces(ordered: Ints) -> int:
    """How many there are that do not follow the one before."""
    return 1 + int(np.count_nonzero(np.diff(ordered) != 1))


def _different(some: Ints) -> Ints:
    """Each once, in order: sorting is faster than the hash table of NumPy's `unique`."""
    ordered = np.sort(some)
    found: Ints = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


def _waited(needed: Sequence[_Loop], around: Sequence[_Loop]) -> int:
    """In which of the loops around it that stay an access is waited for; 0: in none."""
    stay = [each for each in around if each.stays]
    return next((n for n in range(len(stay), 0, -1) if stay[n - 1] in needed), 0)


def _needed(
    stmt: ir.Load | ir.Store, around: tuple[_Loop, ...], named: frozenset[str]
) -> Iterator[_Loop]:
    """Loops that an access has to be in: a load leaves those that change nothing for it, if no
    other that stays is inside of them."""
    inner = isinstance(stmt, ir.Load)
    for each in reversed(around):
        kept = each.meets or stmt.array in each.stored
        if not inner or kept or each.var in named:
            inner = inner and not kept and not each.stays
            yield each
