"""Fills for kernels that move a tile between lanes and registers: sizes come in, arithmetic goes out.

A tile has one register of every lane per column: lane i, register j. `transposing` finds the index
expressions of three steps, which move within each thread (c) or across lanes (r), such that

    striped   lane i, register j holds word j*lanes + i      (how a warp loads coalesced)
    blocked   lane i, register j holds word i*registers + j  (each lane has its own structure)

go over into one another. They come from the synthesis engine when a kernel is built: forms that
fill small tiles are tried first, since their names mean the same at every size, then the whole sets
are searched. Whatever is found is verified at its own size, and remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, SearchError
from warploom.index.ir import Expr, Var, operations
from warploom.index.laws import simplify
from warploom.index.show import show
from warploom.search.budget import Budget
from warploom.search.outcome import Verdict
from warploom.sketch.build import Sketch
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply, GatherSet, Program
from warploom.sketch.term.verify import Verifier

ORDERS = ("crc", "rcr")
LANE, REGISTER = Var("x0"), Var("x1")
SECONDS = 20.0
# Tiles that teach forms: lanes and registers with and without common factors.
SMALL = ((8, 2), (8, 3), (8, 5), (8, 4), (8, 6), (8, 12), (4, 8), (8, 8))

Ints = npt.NDArray[np.int64]
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
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


@dataclass(frozen=True, slots=True)
class Fill:
    """The steps of a tile, and the verdict of their verification."""

    lanes: int
    registers: int
    steps: tuple[Step, ...]
    verdict: Verdict

    @property
    def lines(self) -> list[str]:
        """One line for each step, for the header of a kernel."""
        words = {"c": "register", "r": "lane"}
        return [f"{words[step.kind]} {show(step.source)}" for step in self.steps]


def transposing(lanes: int, registers: int, order: str = "crc", *, back: bool = False) -> Fill:
    """From striped to blocked, or `back`; an error if the search finds nothing."""
    if order not in ORDERS:
        raise CheckError(f"unknown order '{order[:20]}'", advice=f"orders: {', '.join(ORDERS)}")
    return _transposing(lanes, registers, order, back)


@lru_cache(maxsize=256)
def _transposing(lanes: int, registers: int, order: str, back: bool) -> Fill:
    program = sketch(lanes, registers, order, back)
    return _as_fill(program, _solve(program, _recipes(order, back)))


@lru_cache(maxsize=64)
def summing(lanes: int, registers: int) -> Fill:
    """From striped to registers whose sum over j is that of the lane's own structure."""
    program = sum_sketch(lanes, registers)
    return _as_fill(program, _solve(program, _sum_recipes()))


# -- sketches ------------------------------------------------------------------------------------


def sketch(lanes: int, registers: int, order: str, back: bool = False) -> Program:
    """Three holes, `c` or `r` each, between the two layouts."""
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


def _solve(program: Program, recipes: tuple[Names, ...]) -> dict[int, int]:
    """A choice for each set; a known form if one fits, else what the search finds."""
    sets = _sets(program)
    verifier = Verifier(program, program.goals[0])
    fits = [
        fill
        for fill in _named(sets, recipes)
        if verifier.verify({hole: fill[hole] for hole in program.holes})
    ]
    if fits:
        return min(fits, key=lambda fill: _cost(sets, fill))
    result = synthesize(program, mode="best", budget=Budget(SECONDS))
    if not len(result.fills):
        raise SearchError(f"the holes of '{program.name}' were not filled: {result.outcome}")
    return {**dict.fromkeys(sets, 0), **result.fills.as_dict(0)}


@lru_cache(maxsize=8)
def _recipes(order: str, back: bool) -> tuple[Names, ...]:
    return tuple(dict.fromkeys(_learn(sketch(m, n, order, back)) for m, n in SMALL))


@lru_cache(maxsize=1)
def _sum_recipes() -> tuple[Names, ...]:
    return tuple(dict.fromkeys(_learn(sum_sketch(m, n)) for m, n in SMALL))


def _learn(program: Program) -> Names:
    sets = _sets(program)
    fill = _solve(program, ())
    return tuple(sets[hole].describe(fill[hole]) for hole in sets)


def _sets(program: Program) -> dict[int, GatherSet]:
    """The sets by position, also where a set has one member and is no hole."""
    steps = {i: s.gathers for i, s in enumerate(program.steps) if isinstance(s, Apply)}
    return {i: gathers for i, gathers in steps.items() if gathers.function.endswith("linear")}


def _named(sets: dict[int, GatherSet], recipes: tuple[Names, ...]) -> Iterator[dict[int, int]]:
    spelled = {
        hole: dict(each.spellings()) if each.spellings is not None else {}
        for hole, each in sets.items()
    }
    for names in recipes:
        named = zip(spelled.items(), names, strict=True)
        fill = {hole: numbers.get(name, -1) for (hole, numbers), name in named}
        if min(fill.values()) >= 0:
            yield fill


def _cost(sets: dict[int, GatherSet], fill: dict[int, int]) -> int:
    return sum(operations(sets[hole].expression(fill[hole]).offset) for hole in sets)


# -- from choices to steps -----------------------------------------------------------------------


def _as_fill(program: Program, fill: dict[int, int]) -> Fill:
    sets = _sets(program)
    verdict = Verifier(program, program.goals[0]).verify({h: fill[h] for h in program.holes})
    if not verdict:
        raise SearchError(f"the fill of '{program.name}' is {verdict}")
    lanes, registers = next(iter(sets.values())).out_shape
    steps = [_step(gathers, fill[hole]) for hole, gathers in sets.items()]
    if steps[-1].kind == "r":
        last = list(sets)[-1]
        steps[-1] = _with_way_back(steps[-1], sets[last], fill[last])
    return Fill(lanes, registers, tuple(steps), verdict.verdict)


def _step(gathers: GatherSet, choice: int) -> Step:
    lanes, registers = gathers.out_shape
    kind = "c" if gathers.function.startswith("row") else "r"
    offset = gathers.expression(choice).offset
    own = offset % registers if kind == "c" else offset // registers
    return Step(kind, simplify(own, {"x0": (0, lanes - 1), "x1": (0, registers - 1)}))


def _with_way_back(step: Step, gathers: GatherSet, choice: int) -> Step:
    """The last step as a scatter: the member of the same set that undoes it."""
    lanes, registers = gathers.out_shape
    source = gathers.tables[choice].reshape(lanes, registers) // registers
    goes_to = np.empty_like(source)
    np.put_along_axis(goes_to, source, np.arange(lanes, dtype=source.dtype)[:, None], axis=0)
    wanted = (goes_to * registers + np.arange(registers)).reshape(-1)
    undoing = np.flatnonzero((gathers.tables == wanted).all(axis=1))
    if not len(undoing):
        return step
    return Step(step.kind, step.source, _step(gathers, int(undoing[0])).source)
