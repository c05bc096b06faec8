"""Fills for kernels that move a tile between lanes and registers: sizes in, arithmetic out.

A tile has one register of every lane per column: lane i, register j. `transposing` finds the index
expressions of three steps, which move within each thread (c) or across lanes (r), such that

    striped   lane i, register j holds word j*lanes + i      (how a warp loads coalesced)
    blocked   lane i, register j holds word i*registers + j  (each lane has its own structure)

go over into one another. They come from the synthesis engine when a kernel is built. For a large
tile the search fills a small one with the same common factors first: forms mean the same at every
size, so that most often only the verification is left to do. Whatever is found is verified at its
own size, and remembered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warploom.catalogue import texts
from warploom.errors import CheckError, ensure
from warploom.index.ir import Binary, Const, Expr, fold_up, rebuild
from warploom.index.ranges import Ranges
from warploom.index.show import show
from warploom.sketch.build import Sketch
from warploom.sketch.code.form import bounds_of
from warploom.sketch.code.move import LANE, REGISTER, Move, move_of
from warploom.sketch.code.proved import Proved, find
from warploom.sketch.front import load_text
from warploom.sketch.holes.linear import Linear
from warploom.sketch.term.gather import Moves
from warploom.sketch.term.ir import GatherSet, Program
from warploom.sketch.term.verify import Verification

ORDERS = ("crc", "rcr")
SEARCHED_CELLS = 300  # tiles up to this size are searched at once

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TileStep:
    """One move of a tile: cell (i, j) takes what stands at another register, or another lane.

    `kind` is `c` (the thread's own register number `source`) or `r` (register j of lane `source`);
    `source` is over LANE and REGISTER. `back`, for the last step across lanes, is the lane that
    cell (i, j) goes to.
    """

    kind: str
    source: Expr
    back: Expr | None = None

    @property
    def idle(self) -> bool:
        return self.source is (REGISTER if self.kind == "c" else LANE)

    def move(self, lanes: int, registers: int) -> Move:
        lane, register = (LANE, self.source) if self.kind == "c" else (self.source, REGISTER)
        return Move(lanes, registers, registers, lane, register)


@dataclass(frozen=True, slots=True)
class TileFill:
    """The steps of a tile, and what came of their verification."""

    lanes: int
    registers: int
    steps: tuple[TileStep, ...]
    verification: Verification

    @property
    def doc(self) -> str:
        """The steps and the verdict, for the header of a kernel."""
        words = {"c": "register", "r": "lane"}
        lines = [f"Solution for {self.lanes} lanes x0 and {self.registers} registers x1, in order:"]
        lines += [f"  {words[step.kind]} {show(step.source)}" for step in self.steps]
        verdict = f"{self.verification.verdict.value}, on symbols, at this size"
        notes = "; ".join([verdict, *self.verification.notes])
        return "\n".join([*lines, f"Verdict: {notes}."])

    def moves(self, steps: tuple[TileStep, ...]) -> list[Move]:
        """Some of the steps, as what lowering takes."""
        return [step.move(self.lanes, self.registers) for step in steps]

    @property
    def ways(self) -> tuple[Expr, Expr, tuple[TileStep, ...]]:
        """For which lane a thread loads register j, for which it stores it, and what is between.

        Steps across lanes at either end need no shuffle: the thread loads, or stores, for another.
        """
        steps = self.steps
        load: Expr = LANE
        store: Expr = LANE
        if steps[0].kind == "r":
            load, steps = steps[0].source, steps[1:]
        if steps[-1].kind == "r" and steps[-1].back is not None:
            store, steps = steps[-1].back, steps[:-1]
        return load, store, steps


def transposing(
    lanes: int, registers: int, order: str = "crc", *, back: bool = False, level: int = 0
) -> TileFill:
    """From striped to blocked, or `back`; an error if the search finds nothing."""
    return _transposing(lanes, registers, order, back, level)


@lru_cache(maxsize=256)
def _transposing(lanes: int, registers: int, order: str, back: bool, level: int) -> TileFill:
    def make(m: int, n: int) -> Program:
        return sketch(m, n, order, back, level)

    return _filled(lanes, registers, order, make, holes=2 if level else 1)


@lru_cache(maxsize=64)
def summing(lanes: int, registers: int) -> TileFill:
    """From striped to registers whose sum over j is that of the lane's own structure."""
    return _filled(lanes, registers, "cr", sum_sketch)


# -- sketches ------------------------------------------------------------------------------------


def sketch(lanes: int, registers: int, order: str, back: bool = False, level: int = 0) -> Program:
    """Three moves, `c` or `r` each, between the two layouts.

    At level 0 a move is one hole of the linear sets; at levels 1 to 3 it is two holes of the
    published grammars, a swizzle and a rotation, and nothing goes `back`.
    """
    if order not in ORDERS:
        raise CheckError(f"unknown order '{order[:20]}'", advice=f"orders: {', '.join(ORDERS)}")
    if level:
        ensure(not back, "the published grammars go one way")
        name = f"{lanes}x{registers} {order} level {level}"
        return load_text(texts.transposition(order, registers, level, lanes), name)
    kind = "to striped" if back else "to blocked"
    s = Sketch(f"{lanes}x{registers} {order} {kind}")
    words = np.arange(lanes * registers)
    striped, blocked = words.reshape(registers, lanes).T, words.reshape(lanes, registers)
    tile = s.literal("s0", blocked if back else striped)
    for number, kind in enumerate(order, 1):
        tile = s.hole("row_linear" if kind == "c" else "col_linear", tile, name=f"s{number}")
    s.goal(striped if back else blocked)
    return s.program()


def sum_sketch(lanes: int, registers: int) -> Program:
    """Two holes, then the sum of each lane's registers."""
    s = Sketch(f"{lanes}x{registers} cr sum")
    words = np.arange(lanes * registers)
    tile = s.literal("s0", words.reshape(registers, lanes).T)
    tile = s.hole("row_linear", tile, name="s1")
    tile = s.hole("col_linear", tile, name="s2")
    s.sum("identity", tile, name="out")
    s.goal("trove_sum", n=registers)
    return s.program()


# -- search --------------------------------------------------------------------------------------


def _filled(
    lanes: int, registers: int, order: str, make: Callable[[int, int], Program], holes: int = 1
) -> TileFill:
    """`holes` are those of each move of the order."""
    large = lanes * registers > SEARCHED_CELLS
    small = make(*alike(lanes, registers)) if large else None
    return _as_fill(find(make(lanes, registers), small), order, holes)


def alike(lanes: int, registers: int) -> tuple[int, int]:
    """The sizes of a small tile whose common factors are of the same kind.

    >>> alike(32, 56), alike(32, 16), alike(32, 31)
    ((12, 21), (6, 3), (5, 7))
    """
    common = math.gcd(lanes, registers)
    most = min(lanes // common, 5), min(registers // common, 7)
    pairs = [
        (b, a)
        for b in range(min(most[0], 2), most[0] + 1)
        for a in range(min(most[1], 2), most[1] + 1)
        if math.gcd(a, b) == 1
    ]
    b, a = max(pairs, key=lambda pair: pair[0] * pair[1])
    scale = min(common, 3)
    return b * scale, a * scale


# -- from choices to steps -----------------------------------------------------------------------


def _as_fill(proved: Proved, order: str, holes: int) -> TileFill:
    """Step s1 is the first of the tile s0; the steps of one move become one."""
    steps = []
    for number, kind in enumerate(order):
        name, source = f"s{holes * (number + 1)}", f"s{holes * number}"
        steps.append(_step(kind, proved.move(name, source)))
    last = proved.step(name).gathers
    if steps[-1].kind == "r" and isinstance(last.family, Linear):
        choice = proved.choices[proved.positions[name]]
        steps[-1] = _with_way_back(steps[-1], last, choice)
    lanes, registers = last.out_shape
    return TileFill(lanes, registers, tuple(steps), proved.verification)


def _step(kind: str, move: Move) -> TileStep:
    if kind == "r":
        bounds = bounds_of(move.lanes, move.registers)
        return TileStep("r", LANE if move.lanes == 1 else without_negatives(move.lane, bounds))
    return TileStep("c", REGISTER if move.registers == 1 else move.register)


def _with_way_back(step: TileStep, gathers: GatherSet, choice: int) -> TileStep:
    """The last step as a scatter: the member of the same set that undoes it."""
    lanes, registers = gathers.out_shape
    assert isinstance(gathers.reads, Moves)
    sources = gathers.reads.values
    goes_to = np.empty((lanes, registers), np.int64)
    source = sources[choice].reshape(lanes, registers).astype(np.int64)
    np.put_along_axis(goes_to, source, np.arange(lanes)[:, None], axis=0)
    undoing = np.flatnonzero((sources == goes_to.reshape(-1)).all(axis=1))
    if not len(undoing):
        return step
    undone = gathers.expression(int(undoing[0]))
    back = _step("r", move_of(undone, gathers.arg_shapes, gathers.out_shape))
    return TileStep(step.kind, step.source, back.source)


def without_negatives(expr: Expr, bounds: Mapping[str, tuple[int, int]]) -> Expr:
    """An equal expression in which no remainder is taken of a negative number: C has another one.

    >>> show(without_negatives((REGISTER - LANE) % 6, {"x0": (0, 7), "x1": (0, 5)}))
    '(x1 - x0 + 12) % 6'
    """
    ranges = Ranges(bounds)

    def visit(part: Expr, parts: tuple[Expr, ...]) -> Expr:
        match rebuild(part, parts):
            case Binary("%", left, Const(size)) as rest if size & (size - 1):
                low = ranges.of(left)[0]
                return rest if low >= 0 else (left + -(low // size) * size) % size
            case other:
                return other

    return fold_up(expr, visit)
