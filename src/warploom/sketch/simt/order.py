"""In which order the lanes of a filled sketch touch memory: who writes what, and what is a race.

Lanes of a warp are ordered by barriers alone. So two lanes that touch one cell of shared memory or
of an output, one of them writing, need a barrier between them; loops are followed iteration by
iteration, the way back to their start included. In comes a filled sketch; out come its conflict, if
it has one, and which lane wrote each cell last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, Span
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr
from warploom.machine.race import Race, RaceDetector
from warploom.machine.semantics import Kind
from warploom.sketch.code.tiling import cell_name
from warploom.sketch.simt import ir
from warploom.sketch.term.gather import strides
from warploom.sketch.term.ir import Shape, size

Ints: TypeAlias = npt.NDArray[np.int64]
Iteration: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Conflict:
    """What the kernel of a filled sketch would leave to chance; `span` is the later access."""

    message: str
    span: Span | None
    advice: str

    def error(self) -> CheckError:
        return CheckError(self.message, self.span, self.advice)


@dataclass(frozen=True, slots=True)
class Writer:
    """The lane (by its coordinates) that wrote a cell last, the register it took, and where."""

    lane: tuple[int, ...]
    register: str
    span: Span | None


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """`writers[array]` has the last writer of each cell of an output, None if there is none."""

    conflict: Conflict | None
    writers: Mapping[str, list[Writer | None]]


def follow(traced: ir.Traced, fill: Mapping[str, Expr], live: frozenset[int]) -> Order:
    """Runs the memory accesses of the filled sketch, all lanes at once, up to a conflict."""
    machine = _LaneOrder(traced)
    try:
        machine.run(ir.closed(ir.prune(traced, live), fill), {})
    except _ConflictError as found:
        return Order(found.conflict, machine.writers)
    return Order(None, machine.writers)


class _ConflictError(Exception):
    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.message)
        self.conflict = conflict


@dataclass(slots=True, eq=False)
class _Cells:
    """Which statement wrote each cell of an array last (−1: none), in which run of an outermost
    loop (0: outside loops)."""

    statement: Ints
    loop: Ints


@dataclass(slots=True, eq=False)
class _LaneOrder:
    traced: ir.Traced
    arrays: dict[str, _Cells] = field(default_factory=dict)
    writers: dict[str, list[Writer | None]] = field(default_factory=dict)
    lanes: dict[str, Ints] = field(default_factory=dict)
    made: dict[str, ir.Stmt] = field(default_factory=dict)
    races: RaceDetector = field(init=False)
    count: int = 0  # lanes
    loops: int = 0  # outermost loops begun

    def __post_init__(self) -> None:
        shape = tuple(n for _, n in self.traced.lanes)
        self.count = size(shape)
        self.races = RaceDetector(1, self.count, self.count, labels=1)
        self.races.start(0, 1)
        grid = np.indices(shape).reshape(len(shape), -1)
        self.lanes = {name: each for (name, _), each in zip(self.traced.lanes, grid, strict=True)}
        for array in self.traced.arrays.values():
            if array.space in ("shared", "output"):
                cells = size(array.shape)
                self.arrays[array.name] = _Cells(np.full(cells, -1), np.zeros(cells, np.int64))
            if array.space == "output":
                self.writers[array.name] = [None] * size(array.shape)
        for stmt in ir.walk(self.traced.body):
            if isinstance(stmt, ir.Read | ir.Exchange | ir.Finish):
                self.made[stmt.target] = stmt

    def run(self, body: tuple[ir.Stmt, ...], counters: Iteration) -> None:
        for stmt in body:
            match stmt:
                case ir.Loop(var, count, inner):
                    self.loops += not counters
                    for i in range(count) if self._touches(inner) else ():
                        self.run(inner, {**counters, var: i})
                case ir.Read(_, array) if array in self.arrays:
                    self._read(stmt, counters)
                case ir.Write(array) if array in self.arrays:
                    self._write(stmt, counters)
                case ir.Sync():
                    self.races.warp_barrier(np.arange(self.count))
                case ir.Read() | ir.Write() | ir.Exchange() | ir.Accumulate() | ir.Finish():
                    pass
                case _:
                    assert_never(stmt)

    def _touches(self, body: tuple[ir.Stmt, ...]) -> bool:
        """Whether there is anything to follow in a body."""
        return any(
            isinstance(stmt, ir.Sync)
            or (isinstance(stmt, ir.Read | ir.Write) and stmt.array in self.arrays)
            for stmt in ir.walk(body)
        )

    def _read(self, stmt: ir.Read, counters: Iteration) -> None:
        cells, threads = self._cells(stmt.array, stmt.index, counters)
        state = self.arrays[stmt.array]
        self._note(stmt, cells, threads, counters)
        empty = state.statement[cells] < 0
        if empty.any():
            lane = lane_name(self._lane(int(threads[empty][0])))
            cell = self._cell(stmt.array, int(cells[empty][0]))
            _fail(
                stmt,
                f"lane {lane} reads {cell}, where nobody has written{_at(counters)}",
                "write it first, or read elsewhere: a mask afterwards comes too late",
            )

    def _write(self, stmt: ir.Write, counters: Iteration) -> None:
        cells, threads = self._cells(stmt.array, stmt.index, counters)
        state = self.arrays[stmt.array]
        self._note(stmt, cells, threads, counters)
        loop = self.loops if counters else 0
        others = (state.statement[cells] >= 0) & (state.statement[cells] != id(stmt))
        clash = others & (state.loop[cells] == loop) & (loop > 0)
        if clash.any():
            cell = self._cell(stmt.array, int(cells[clash][0]))
            _fail(
                stmt,
                f"{cell} is written by two statements of one loop",
                "write it once in the loop, or in two loops",
            )
        state.statement[cells], state.loop[cells] = id(stmt), loop
        if stmt.array in self.writers:
            register = self._register(stmt.value, counters)
            for cell_number, thread in zip(cells.tolist(), threads.tolist(), strict=True):
                writer = Writer(self._lane(thread), register, stmt.span)
                self.writers[stmt.array][cell_number] = writer

    def _cells(self, name: str, index: tuple[Expr, ...], counters: Iteration) -> tuple[Ints, Ints]:
        """The cells that lanes touch, and which lane each: those outside the array touch none."""
        shape = self.traced.arrays[name].shape
        places, inside = places_of(index, shape, {**self.lanes, **counters}, self.count)
        return places[inside], np.flatnonzero(inside)

    def _note(
        self, stmt: ir.Read | ir.Write, cells: Ints, threads: Ints, counters: Iteration
    ) -> None:
        """Every lane touches its cell: a conflict if that races with what others did."""
        cells_of = size(self.traced.arrays[stmt.array].shape)
        kind = Kind.WRITE if isinstance(stmt, ir.Write) else Kind.READ
        for race in self.races.access(stmt.array, cells_of, threads, cells, 1, kind):
            self._refuse(stmt, race, counters)

    def _refuse(self, stmt: ir.Read | ir.Write, race: Race, counters: Iteration) -> NoReturn:
        cell = self._cell(stmt.array, race.offset)
        lanes = [
            lane_name(self._lane(lane)) for lane in sorted((race.first.thread, race.second.thread))
        ]
        both = race.first.kind.writes and race.second.kind.writes
        did = "write" if both else "read and write"
        _fail(
            stmt,
            f"lanes {lanes[0]} and {lanes[1]} {did} {cell} without a barrier between them"
            + _at(counters),
            "k.barrier() orders the lanes of a warp",
        )

    def _lane(self, number: int) -> tuple[int, ...]:
        return tuple(int(each[number]) for each in self.lanes.values())

    def _cell(self, name: str, cell: int) -> str:
        return cell_name(name, self.traced.arrays[name].shape, cell)

    def _register(self, value: str, counters: Iteration) -> str:
        """A value by the name its user knows, if there is one."""
        match self.made[value]:
            case ir.Finish(_, accumulator):
                return accumulator
            case ir.Read(_, array, index) if self.traced.arrays[array].space == "register":
                try:
                    return f"{array}[{', '.join(str(evaluate(e, counters)) for e in index)}]"
                except CheckError:  # which register differs from lane to lane
                    return array
            case _:
                return value


def places_of(
    index: tuple[Expr, ...], shape: Shape, env: Mapping[str, int | Ints], lanes: int
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """For each lane the cell of an array that an index means, and whether it is inside."""
    place, inside = np.zeros(lanes, np.int64), np.ones(lanes, np.bool_)
    for expr, length, stride in zip(index, shape, strides(shape), strict=True):
        along = np.broadcast_to(np.asarray(evaluate(expr, env)), (lanes,))
        inside = inside & (along >= 0) & (along < length)
        place = place + along * stride
    return place, inside


def lane_name(lane: tuple[int, ...]) -> str:
    """A lane by its coordinates: `3`, or `(1, 2)` in a warp of two axes."""
    return str(lane[0]) if len(lane) == 1 else f"({', '.join(map(str, lane))})"


def _fail(stmt: ir.Read | ir.Write, message: str, advice: str) -> NoReturn:
    raise _ConflictError(Conflict(message, stmt.span, advice))


def _at(counters: Iteration) -> str:
    """In which iteration, if in any."""
    return "".join(f", {name} = {value}" for name, value in counters.items())
