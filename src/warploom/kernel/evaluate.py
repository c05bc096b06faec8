"""What a kernel means: whole blocks in lock-step on NumPy arrays, counted as hardware would count.

`run` takes a kernel and its arguments, writes the results into the arrays and returns a Report.
Every per-thread quantity is an array (blocks, threads). An access outside an array, a race, a read
of shared memory nobody wrote, or an exchange with a lane that is not there raises DeviceError
naming array, cell, block and thread. Threads that a condition keeps from a statement, or a select
from a value, compute nothing there: what is undefined for them does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, DeviceError
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.index.ir import Expr, operations, variables
from warploom.kernel import ir
from warploom.kernel.arguments import Binding, bind, check_overlap, describe_numpy
from warploom.kernel.arithmetic import Numbers, apply, compare, convert
from warploom.kernel.async_copy import Ahead, Groups
from warploom.kernel.bounds import thread_variables
from warploom.kernel.check_hopper import of_hopper
from warploom.kernel.dtype import DType, code_of
from warploom.kernel.evaluate_hopper import group_barrier, hopper
from warploom.kernel.shared_pool import Pool, SharedArray, pool_of
from warploom.kernel.tensor import MACHINE, product, widths
from warploom.machine.banks import bank_use
from warploom.machine.coalesce import traffic
from warploom.machine.race import Race, RaceDetector
from warploom.machine.report import Report
from warploom.machine.semantics import Kind

BATCH_THREADS = 1 << 16
_SHARED = "shared memory"  # a region for the race detector, beside those of arrays by address

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

cost_of = lru_cache(maxsize=4096)(operations)


@dataclass(frozen=True, slots=True)
class Accessed:
    """One access as it is counted: a row of byte addresses for each warp, in their array; the rows
    begin with the first warp of block `first`."""

    statement: ir.Load | ir.Store
    shared: bool
    first: int
    addresses: Ints
    width: int  # bytes
    active: Mask


Watch: TypeAlias = Callable[[Accessed], None]


def run(
    kernel: ir.Kernel,
    arguments: Sequence[Array | int | float],
    named: Mapping[str, int | float] | None = None,
    *,
    races: bool = True,
    watch: Watch | None = None,
    machine: int = MACHINE,
) -> Report:
    """Runs the kernel on NumPy arrays, in place. Arguments as in `arguments.bind`.

    `watch` is told of every access to memory that is counted. Tensor cores add as those of the
    `machine` with a number, as 80 for sm_80.
    """
    plain = [_plain(each) for each in arguments]
    described = [describe_numpy(each) if isinstance(each, np.ndarray) else each for each in plain]
    binding = bind(kernel, described, named)
    given = [each for each in plain if isinstance(each, np.ndarray)]
    arrays = {
        param.name: _held(array.reshape(-1), param.dtype)
        for param, array in zip(kernel.arrays, given, strict=True)
    }
    check_overlap(
        kernel,
        {n: (a.ctypes.data, a.ctypes.data + a.nbytes) for n, a in arrays.items()},
    )
    report = Report(
        grid=binding.grid, threads=kernel.threads, kernel=kernel.name, counted=True,
        races_checked=races,
    )  # fmt: skip
    detector = (
        RaceDetector(
            binding.blocks, kernel.threads, kernel.warp_size, len(list(ir.walk(kernel.body))) + 1,
            partial=of_hopper(kernel),
        )
        if races else None
    )  # fmt: skip
    stored = _stored(kernel, arrays)
    own = kernel.cluster
    if binding.grid[0] % own:
        raise DeviceError(
            f"'{kernel.name}': {binding.grid[0]} blocks are no whole clusters of {own}"
        )
    per_batch = own * max(1, BATCH_THREADS // (kernel.threads * own))
    for first in range(0, binding.blocks, per_batch):
        blocks = np.arange(first, min(first + per_batch, binding.blocks), dtype=np.int64)
        if detector is not None:
            detector.start(first, len(blocks))
        batch = Batch(
            kernel, binding, arrays, blocks, report, stored, detector, watch=watch, machine=machine
        )
        batch.run(kernel.body)
    return report


def _held(array: Array, dtype: DType) -> Array:
    """A view of the array's memory, with codes as their bits."""
    return array.view(dtype.storage) if dtype.is_code else array


def _stored(kernel: ir.Kernel, arrays: Mapping[str, Array]) -> dict[str, Hashable]:
    """The region of every array that is stored to; two names of one array share it."""
    stored = {each.array for each in ir.walk(kernel.body) if isinstance(each, ir.Store)}
    through = {e.map for e in ir.walk(kernel.body) if isinstance(e, ir.BulkStore)}
    stored |= {each.array for each in kernel.maps if each.name in through}
    places = {arrays[name].ctypes.data for name in stored & arrays.keys()}
    shared = (each.name for each in ir.walk(kernel.body) if isinstance(each, ir.Shared))
    regions: dict[str, Hashable] = dict.fromkeys(shared, _SHARED)
    at = {name: each.ctypes.data for name, each in arrays.items()}
    return regions | {name: place for name, place in at.items() if place in places}


def _plain(argument: Array | int | float) -> Array | int | float:
    if isinstance(argument, np.generic):
        return argument.item()  # type: ignore[no-any-return]
    if isinstance(argument, np.ndarray | int | float):
        return argument
    raise DeviceError(
        f"the simulator takes NumPy arrays and numbers, not {type(argument).__name__}"
    )


@dataclass(slots=True)
class Batch:
    """Some blocks of a launch, run together."""

    kernel: ir.Kernel
    binding: Binding
    arrays: dict[str, Array]
    blocks: Ints
    report: Report
    stored: Mapping[str, Hashable]
    races: RaceDetector | None
    env: dict[str, Any] = field(default_factory=dict)
    registers: dict[str, Array] = field(default_factory=dict)
    watch: Watch | None = None
    machine: int = MACHINE
    pool: Pool = field(init=False)
    turns: dict[str, Ints] = field(default_factory=dict)  # of rings, by stage; of warp groups
    ahead: Groups = field(default_factory=Groups)

    def __post_init__(self) -> None:
        threads = thread_variables(self.kernel)
        x, y, _ = self.binding.grid
        column = self.blocks[:, None]
        self.env = {name: each[None, :] for name, each in threads.items()}
        self.env |= {
            "block_x": column % x,
            "block_y": column // x % y,
            "block_z": column // (x * y),
        }
        self.env |= {n: v for n, v in self.binding.scalars.items() if isinstance(v, int)}
        self.pool = pool_of(self.kernel, len(self.blocks))
        if self.races is not None:
            self.races.forget(_SHARED)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.blocks), self.kernel.threads

    def run(self, body: tuple[ir.Stmt, ...]) -> None:
        self.enter(body, np.ones(self.shape, dtype=bool))
        if self.ahead.left:
            name = self.ahead.left[0].stmt.array
            raise DeviceError(
                f"'{self.kernel.name}': nothing waits for the asynchronous copy to '{name}'",
                advice="end with a barrier that waits for 0 groups",
            )

    def enter(self, body: tuple[ir.Stmt, ...], active: Mask) -> None:
        for stmt in body:
            self._step(stmt, active)

    def _step(self, stmt: ir.Stmt, active: Mask) -> None:
        match stmt:
            case ir.Let(name, expr):
                self.env[name] = self.index(expr, active)
            case ir.Registers() | ir.Named():
                self._declare(stmt, active)
            case ir.Assign(target, value):
                self.write_register(target, self.value(value, active), active)
            case ir.Load():
                self._load(stmt, active)
            case ir.Store():
                self._store(stmt, active)
            case ir.For():
                self._loop(stmt, active)
            case ir.If():
                self._branch(stmt, active)
            case ir.Barrier():
                self._barrier(stmt, active)
            case ir.Shuffle():
                self._shuffle(stmt, active)
            case ir.TensorProduct():
                self._tensor(stmt, active)
            case ir.Comment() | ir.Shared():
                pass
            case _:
                hopper(self, stmt, active)

    # -- expressions and values: `active` threads are counted, those in `use` must be defined

    def index(self, expr: Expr, active: Mask, use: Mask | None = None) -> Any:
        self.report.index_operations += cost_of(expr) * self._warps(active)
        try:
            return evaluate_index(expr, self.env)
        except CheckError as error:  # a division by zero: in a thread that takes part?
            return self._index_of_some(expr, active if use is None else use, error)

    def _index_of_some(self, expr: Expr, use: Mask, error: CheckError) -> Any:
        env = {name: self.spread(self.env[name])[use] for name in variables(expr)}
        try:
            values = evaluate_index(expr, env)
        except CheckError:
            raise DeviceError(f"'{self.kernel.name}': {error.message}") from None
        result = np.zeros(self.shape, dtype=np.int64)
        result[use] = values
        return result

    def condition(self, expr: Expr | None, active: Mask) -> Mask:
        if expr is None:
            return active
        return np.asarray(active & (np.asarray(self.index(expr, active)) != 0))

    def spread(self, value: Any) -> Ints:
        return np.broadcast_to(np.asarray(value, dtype=np.int64), self.shape)

    def value(self, value: ir.Value, active: Mask, use: Mask | None = None) -> Numbers:
        use = active if use is None else use
        match value:
            case ir.Number(number, dtype):
                held = code_of(number, dtype) if dtype.is_code else number
                return np.asarray(held).astype(dtype.storage)
            case ir.Cell():
                return self._read_cell(value, active, use)
            case ir.FromIndex(expr, dtype):
                return convert(np.asarray(self.index(expr, active, use)), dtype)
            case ir.Operation(op, operands):
                parts = [self.value(each, active, use) for each in operands]
                self.report.operations += self._warps(active)
                return apply(op, parts, DType(parts[0].dtype.name), use)
            case ir.Choose(condition, then, otherwise):
                self.report.selects += self._warps(active)
                first = self._chosen(condition, active, use)
                left = self.value(then, active, use & first)
                return np.where(first, left, self.value(otherwise, active, use & ~first))
            case ir.Cast(dtype, inner):
                self.report.operations += self._warps(active)
                return convert(self.value(inner, active, use), dtype, ir.dtype_of(inner))
            case _:
                assert_never(value)

    def _chosen(self, condition: ir.Condition, active: Mask, use: Mask) -> Mask:
        """Which threads a select takes its first side in."""
        if not isinstance(condition, ir.Compare):
            return np.asarray(np.asarray(self.index(condition, active, use)) != 0)
        left, right = (self.value(each, active, use) for each in (condition.left, condition.right))
        self.report.operations += self._warps(active)
        return compare(condition.op, left, right)

    def _read_cell(self, cell: ir.Cell, active: Mask, use: Mask) -> Numbers:
        if cell.name in self.registers:
            stored = self.registers[cell.name]
            if cell.index is None:
                return np.asarray(stored[0])
            at = self.register_index(cell, use)
            if isinstance(at, int):
                return np.asarray(stored[at])
            return np.asarray(np.take_along_axis(stored, self.spread(at)[None], axis=0)[0])
        if cell.name in self.binding.scalars:
            return np.asarray(self.binding.scalars[cell.name], dtype=cell.dtype.numpy)
        assert cell.index is not None
        index = self.index(cell.index, active, use)
        if isinstance(index, int) and 0 <= index < len(self.arrays[cell.name]):
            return np.asarray(self.arrays[cell.name][index])
        at = self.spread(index)
        self._check_inside(cell.name, at, len(self.arrays[cell.name]), use, 1)
        return np.asarray(self.arrays[cell.name][np.where(use, at, 0)])

    def register_index(self, cell: ir.Cell, active: Mask, width: int = 1) -> Any:
        at = evaluate_index(cell.index, self.env) if cell.index is not None else 0
        size = len(self.registers[cell.name])
        if not (isinstance(at, int) and 0 <= at <= size - width):  # mostly one place for all
            self._check_inside(cell.name, self.spread(at), size, active, width)
        return at

    def write_register(
        self, target: ir.Cell, value: Numbers, active: Mask, offset: int = 0
    ) -> None:
        stored = self.registers[target.name]
        at = self.register_index(target, active)
        if isinstance(at, int):
            np.copyto(stored[at + offset], value, where=active)
        else:
            old = np.take_along_axis(stored, self.spread(at)[None] + offset, axis=0)[0]
            new = np.where(active, value, old)
            np.put_along_axis(stored, self.spread(at)[None] + offset, new[None], axis=0)

    def _declare(self, stmt: ir.Registers | ir.Named, active: Mask) -> None:
        if isinstance(stmt, ir.Named):
            self.env[stmt.name] = self.value(stmt.chosen, active).astype(np.int64)
            return
        # What nobody set is not zero on a GPU either.
        poison = np.nan if stmt.dtype.is_float else 0x5A
        fill = poison if stmt.initial is None else stmt.initial
        self.registers[stmt.name] = np.full((stmt.size or 1, *self.shape), fill, stmt.dtype.storage)

    # -- memory

    def _load(self, stmt: ir.Load, active: Mask) -> None:
        use = self.condition(stmt.predicate, active)
        at = self.spread(self.index(stmt.index, active, use))
        flat, cells = self.touch(stmt, at, use, writes=False)
        if stmt.otherwise is None:
            other: Numbers = np.zeros((), dtype=stmt.target.dtype.storage)
        else:
            other = self.value(stmt.otherwise, active, active & ~use)
        self.register_index(stmt.target, active, stmt.width)
        for offset in range(stmt.width):
            value = np.where(use, flat[np.where(use, cells + offset, 0)], other)
            self.write_register(stmt.target, value, active, offset)

    def _store(self, stmt: ir.Store, active: Mask) -> None:
        use = self.condition(stmt.predicate, active)
        at = self.spread(self.index(stmt.index, active, use))
        if stmt.width == 1:
            values = [self.value(stmt.value, active, use)]
        else:
            assert isinstance(stmt.value, ir.Cell)
            first = int(self.register_index(stmt.value, active, stmt.width))
            values = list(self.registers[stmt.value.name][first : first + stmt.width])
        flat, cells = self.touch(stmt, at, use, writes=True)
        stored = [np.broadcast_to(value, self.shape)[use] for value in values]
        if stmt.ahead:
            self.ahead.add(Ahead(stmt, flat, cells, use, stored))
            self._own(stmt, cells, use, 0)  # nobody's until it takes effect
            return
        for offset, value in enumerate(stored):
            flat[cells[use] + offset] = value

    def _own(self, stmt: ir.Store, cells: Ints, use: Mask, owner: int) -> None:
        for granules in self.pool.granules(self.pool.arrays[stmt.array], cells, stmt.width):
            self.pool.owner[granules[use]] = owner

    def _wait(self, groups: int) -> None:
        """All but the last groups of stores ahead take effect, which is a write at this place as
        well as where they stand: in between nobody else may touch the cells."""
        for each in self.ahead.close(groups):
            self._note_race(each.stmt, each.cells, each.use, each.flat)
            self._own(each.stmt, each.cells, each.use, self.pool.arrays[each.stmt.array].number)
            each.take_effect()

    def touch(
        self, stmt: ir.Load | ir.Store, at: Ints, use: Mask, writes: bool
    ) -> tuple[Array, Ints]:
        """Checks and counts an access; the memory, flat, and the cell each thread starts at."""
        name, width = stmt.array, stmt.width
        memory = self.pool.arrays.get(name)
        flat = self.arrays[name] if memory is None else memory.data
        self._check_inside(name, at, len(flat) if memory is None else memory.size, use, width)
        if width > 1 and bool(np.any(use & (at % width != 0))):
            what = f"an access of {width} elements of '{name}' is not aligned"
            self._fail(what, at, use & (at % width != 0))
        addresses = self._rows(at) * flat.itemsize, width * flat.itemsize, self._rows(use)
        if self.watch is not None:
            self.watch(Accessed(stmt, memory is not None, int(self.blocks[0]), *addresses))
        cells = at
        if memory is None:
            (self.report.add_store if writes else self.report.add_load)(name, traffic(*addresses))
        else:
            self.report.add_shared(name, bank_use(*addresses, load=not writes))
            cells = at + memory.first + np.arange(len(self.blocks))[:, None] * memory.row
            self._note_shared_use(memory, name, cells, use, width, writes)
        self._note_race(stmt, cells, use, flat)
        return flat, cells

    def _note_shared_use(
        self, memory: SharedArray, name: str, cells: Ints, use: Mask, width: int, writes: bool
    ) -> None:
        owner = self.pool.owner
        for granules in self.pool.granules(memory, cells, width):
            if writes:
                owner[granules[use]] = memory.number
                continue
            unset = use & (owner[np.where(use, granules, 0)] != memory.number)
            if unset.any():
                at = cells % memory.row - memory.first
                self._fail(f"'{name}' is read where nothing was stored", at, unset)

    def _note_race(self, stmt: ir.Load | ir.Store, cells: Ints, use: Mask, flat: Array) -> None:
        """Notes an access; a race that it makes is an error. Arrays of the pool are one region, so
        that those which share bytes are told apart by barriers only, as on a device."""
        if self.races is None or stmt.array not in self.stored:
            return
        kind = Kind.WRITE if isinstance(stmt, ir.Store) else Kind.READ
        found = self.races.access(
            self.stored[stmt.array], flat.nbytes, np.flatnonzero(use), cells[use] * flat.itemsize,
            stmt.width * flat.itemsize, kind, id(stmt),
        )  # fmt: skip
        if found:
            self.fail_race(stmt.array, found[0], flat.itemsize)

    def _check_inside(self, name: str, at: Ints, size: int, use: Mask, width: int) -> None:
        wrong = use & ((at < 0) | (at + width > size))
        if wrong.any():
            self._fail(f"'{name}' has {size} elements, but is used", at, wrong)

    # -- control and exchange

    def _loop(self, stmt: ir.For, active: Mask) -> None:
        if stmt.counts is not None:
            for count in stmt.counts:
                self.env[stmt.var] = count
                self.enter(stmt.body, active)
            return
        start, stop = (self.index(each, active) for each in (stmt.start, stmt.stop))
        if isinstance(start, int) and isinstance(stop, int):
            for count in range(start, stop, stmt.step):
                self.env[stmt.var] = count
                self.enter(stmt.body, active)
        else:
            self._loop_apart(stmt, self.spread(start), self.spread(stop), active)

    def _loop_apart(self, stmt: ir.For, count: Ints, stop: Ints, active: Mask) -> None:
        """A loop whose bounds differ between blocks or warps: each stops at its own."""
        going = active & (count < stop)
        while going.any():
            self.env[stmt.var] = count
            self.enter(stmt.body, going)
            count = count + stmt.step
            going = going & (count < stop)

    def _branch(self, stmt: ir.If, active: Mask) -> None:
        then = self.condition(stmt.condition, active)
        otherwise = active & ~then
        some, rest = self._rows(then).any(axis=1), self._rows(otherwise).any(axis=1)
        self.report.branches += int((some | rest).sum())
        self.report.divergent_branches += int((some & rest).sum())
        for body, mask in ((stmt.then, then), (stmt.otherwise, otherwise)):
            if body and mask.any():
                self.enter(body, mask)

    def _barrier(self, stmt: ir.Barrier, active: Mask) -> None:
        if stmt.waits is not None:
            self._wait(stmt.waits)
        if stmt.scope == "group":
            group_barrier(self, active)
            return
        rows = active if stmt.scope == "block" else self._rows(active)
        partial = bool((rows.any(axis=1) & ~rows.all(axis=1)).any())
        # The last warp of a block may be shorter than a row.
        whole = stmt.scope == "block" or self.kernel.threads % self.kernel.warp_size == 0
        if partial and whole:
            self._fail(f"a {stmt.scope} barrier is met by some threads only", None, active)
        self.report.barriers += int(rows.any(axis=1).sum())
        if self.races is not None and stmt.scope == "block":
            self.races.block_barrier(np.flatnonzero(active.any(axis=1)))
        elif self.races is not None:
            self.races.warp_barrier(np.flatnonzero(active))

    def _shuffle(self, stmt: ir.Shuffle, active: Mask) -> None:
        value = np.broadcast_to(self.value(stmt.value, active), self.shape)
        source = self._source_lane(stmt, active)
        width = self.kernel.warp_size
        base = np.arange(self.kernel.threads) // width * width
        threads = base + source
        missing = active & ~np.take_along_axis(active, threads, axis=1)
        if missing.any():
            self._fail("a shuffle reads a lane that does not take part", source, missing)
        self.report.shuffles += self._warps(active)
        self.write_register(stmt.target, np.take_along_axis(value, threads, axis=1), active)

    def _tensor(self, stmt: ir.TensorProduct, active: Mask) -> None:
        parts = []
        for cell, width in zip((stmt.target, stmt.a, stmt.b), widths(stmt.kind), strict=True):
            first = int(self.register_index(cell, active, width))
            held = np.moveaxis(self.registers[cell.name][first : first + width], 0, -1)
            parts.append(held.reshape(-1, self.kernel.warp_size, width))
        made = product(parts[0], parts[1], parts[2], stmt.kind, self.machine).reshape(
            *self.shape, -1
        )
        self.report.operations += self._warps(active)
        for offset in range(made.shape[-1]):
            self.write_register(stmt.target, made[..., offset], active, offset)

    def _source_lane(self, stmt: ir.Shuffle, active: Mask) -> Ints:
        width = self.kernel.warp_size
        own, by = self.spread(self.env["lane"]), self.spread(self.index(stmt.lane, active))
        if stmt.mode != "idx":
            strange = active & ((by < 0) | (by >= width))
            if strange.any():
                self._fail(f"a shuffle '{stmt.mode}' is not within 0 to {width - 1}", by, strange)
        match stmt.mode:
            case "idx":
                return by % width
            case "up":
                source = own - by
            case "down":
                source = own + by
            case "xor":
                source = own ^ by
            case _:
                assert_never(stmt.mode)
        return np.where((source >= 0) & (source < width), source, own)

    # -- helpers

    def _rows(self, values: Any) -> Any:
        """(blocks, threads) as one row per warp; a short last warp is filled up with zeros."""
        width = self.kernel.warp_size
        short = -self.kernel.threads % width
        if short:
            filled = np.zeros((len(values), self.kernel.threads + short), values.dtype)
            filled[:, : self.kernel.threads] = values
            values = filled
        return values.reshape(-1, width)

    def _warps(self, active: Mask) -> int:
        return int(self._rows(active).any(axis=1).sum())

    def _fail(self, message: str, at: Ints | None, wrong: Mask) -> None:
        row, thread = (int(each[0]) for each in np.nonzero(wrong))
        index = "" if at is None else f" at [{np.broadcast_to(at, self.shape)[row, thread]}]"
        raise DeviceError(
            f"'{self.kernel.name}': {message}{index} (block {self._block_text(row)}, "
            f"thread {thread})"
        )

    def fail_race(self, name: str, race: Race, itemsize: int) -> None:
        cell, memory = race.offset // itemsize, self.pool.arrays.get(name)
        if memory is not None:
            cell = cell % memory.row - memory.first
        sides = (race.first, race.second)
        kind = " and ".join(sorted(side.kind.value for side in sides))
        who = " and ".join(f"thread {side.thread} of block {side.block}" for side in sides)
        raise DeviceError(
            f"'{self.kernel.name}': race on '{name}[{cell}]': {kind} by {who} "
            "without a barrier between them",
            advice="put a barrier between the two accesses, or let them use different cells",
        )

    def _block_text(self, row: int) -> str:
        x, y, z = self.binding.grid
        block = int(self.blocks[row])
        if y == z == 1:
            return str(block)
        return f"({block % x}, {block // x % y}, {block // (x * y)})"
