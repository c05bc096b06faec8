"""The steps of a fill as kernel statements: registers permuted per thread, lanes shuffled.

    c   b[j] = a[f(lane, j)]            renamed, rotated in ⌈log₂ n⌉ selects, or selected
    r   b[j] = shuffle(a[j], g(lane, j))

A thread may hold several tiles, and a column of a tile may be several words wide: then all words of
a column move alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from warploom.catalogue.fill import LANE, REGISTER, TileFill, TileStep
from warploom.index.evaluate import evaluate
from warploom.index.ir import (
    Binary,
    Const,
    Expr,
    Var,
    fold_up,
    lift,
    rebuild,
    substitute,
    variables,
    walk,
)
from warploom.index.laws import simplify
from warploom.index.ranges import range_of
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Assign, Cell, Registers, Stmt, loop
from warploom.kernel.lower import Row, permute, rotate, split_rotation, substitute_one

_Z = Var("z")


@dataclass(frozen=True, slots=True)
class Tiles:
    """A register array of `count` tiles, each of so many columns of `width` words."""

    builder: Builder
    name: str
    dtype: DType
    columns: int
    width: int = 1
    count: int = 1

    def declare(self) -> Tiles:
        self.builder.registers(self.name, self.dtype, self.count * self.columns * self.width)
        return self

    def renamed(self, name: str) -> Tiles:
        return Tiles(self.builder, name, self.dtype, self.columns, self.width, self.count)

    def at(self, tile: Expr | int, column: Expr | int, word: Expr | int = 0) -> Cell:
        place = (lift(tile) * self.columns + column) * self.width + word
        return Cell(self.name, simplify(place), self.dtype)

    def row(self, tile: Expr | int, word: Expr | int) -> Row:
        """One word of every column of a tile."""
        return _Row(self.name, self.dtype, self.columns, self, lift(tile), lift(word))


@dataclass(frozen=True, slots=True)
class _Row(Row):
    """Registers of a larger array that are a row by themselves."""

    tiles: Tiles
    tile: Expr
    word: Expr

    def __getitem__(self, index: Expr | int) -> Cell:
        return self.tiles.at(self.tile, index, self.word)


@contextmanager
def count(k: Builder, var: str, size: int) -> Iterator[Expr]:
    """A loop, or no loop where there is only one turn."""
    with ExitStack() as stack:
        yield stack.enter_context(k.loop(var, size)) if size > 1 else Const(0)


def exchange(
    k: Builder,
    tiles: Tiles,
    fill: TileFill,
    steps: tuple[TileStep, ...],
    *,
    lane: Expr | None = None,
    first_lane: Expr | int = 0,
) -> Tiles:
    """Adds the steps; the registers that hold the result. Idle steps leave no trace.

    `lane` is a thread's place among the lanes of its tile, of which `first_lane` is the first.
    """
    own = Var("lane") if lane is None else lane
    for step in steps:
        if step.idle:
            continue
        target = tiles.renamed(chr(ord(tiles.name) + 1)).declare()
        if step.kind == "c":
            _within_threads(k, tiles, target, fill, step, own)
        else:
            _across_lanes(k, tiles, target, step, own, lift(first_lane))
        tiles = target
    return tiles


def _within_threads(
    k: Builder, source: Tiles, target: Tiles, fill: TileFill, step: TileStep, lane: Expr
) -> None:
    with count(k, "tile", source.count) as tile, count(k, "word", source.width) as word:
        rows = source.row(tile, word), target.row(tile, word)
        k.extend(permuted(*rows, step.source, fill.lanes, lane))


def _across_lanes(
    k: Builder, source: Tiles, target: Tiles, step: TileStep, lane: Expr, first: Expr
) -> None:
    with (
        count(k, "tile", source.count) as tile,
        count(k, "j", source.columns) as j,
        count(k, "word", source.width) as word,
    ):
        # Not simplified: that would make remainders of negative numbers again.
        other = placed(step.source, lane, j)
        other = other if first is Const(0) else first + other
        k.set(target.at(tile, j, word), k.shuffle(source.at(tile, j, word), other))


def placed(expr: Expr, lane: Expr, register: Expr | int) -> Expr:
    """An expression of a fill at a thread's lane and register."""
    return substitute(expr, {"x0": lane, "x1": lift(register)})


def permuted(source: Row, target: Row, index: Expr, lanes: int, lane: Expr) -> tuple[Stmt, ...]:
    """`target[j] = source[index(lane, j)]` for every j; the index is over LANE and REGISTER."""
    j = Var("j")
    if LANE.name not in variables(index):
        return (_copied(source, target, placed(index, lane, j)),)
    turn = turn_of(index, lanes, source.size)
    if turn is None:
        return _selected(source, target, placed(index, lane, j))
    stmts: list[Stmt] = []
    if turn.outer is not _Z:
        middle = Row(f"{target.name}_in", source.dtype, source.size)
        stmts.append(Registers(middle.name, middle.dtype, middle.size))
        stmts.append(_copied(source, middle, substitute(turn.outer, {_Z.name: j})))
        source = middle
    amount = substitute(turn.amount, {LANE.name: lane})
    fixed, most = turn.fixed, range_of(turn.amount, {LANE.name: (0, lanes - 1)})
    stmts += rotate(
        source,
        target,
        amount,
        "j",
        lambda i: substitute_one(fixed, REGISTER.name, i),
        most[1] if most[0] >= 0 else None,
    )
    return tuple(stmts)


@dataclass(frozen=True, slots=True)
class Turn:
    """An index `outer((fixed(j) + amount(lane)) mod n)`."""

    outer: Expr
    fixed: Expr
    amount: Expr


def turn_of(index: Expr, lanes: int, registers: int) -> Turn | None:
    """The index as a rotation between two fixed permutations, if it is one.

    >>> turn_of((REGISTER - LANE) % 6 // 2 + (REGISTER - LANE) % 2 * 3, 32, 6) is not None
    True
    """
    grid = {
        LANE.name: np.arange(lanes)[:, None],
        REGISTER.name: np.arange(registers)[None, :],
    }
    wanted = evaluate(index, grid)
    for part in walk(index):
        if not isinstance(part, Binary) or part.op not in ("+", "-"):
            continue
        terms = split_rotation(part % registers, registers, REGISTER.name)
        outer = _replaced(index, part)
        if terms is None or variables(outer) != {_Z.name}:
            continue
        turned = np.asarray(evaluate(part % registers, grid))
        if np.array_equal(np.asarray(evaluate(outer, {_Z.name: turned})), np.asarray(wanted)):
            outer = simplify(outer, {_Z.name: (0, registers - 1)})
            return Turn(outer, terms[0], _positive(terms[1], registers))
    return None


def _positive(amount: Expr, registers: int) -> Expr:
    """An equal amount modulo `registers` that is not negative: −l is (n−1)·l."""
    negated = simplify(-amount)
    below = isinstance(negated, Var) or (
        isinstance(negated, Binary) and negated.op in ("//", "%", "*")
    )
    return negated * (registers - 1) if below else amount


def _replaced(index: Expr, part: Expr) -> Expr:
    """The index with one part taken for a variable."""
    return fold_up(index, lambda node, parts: _Z if node is part else rebuild(node, parts))


def _copied(source: Row, target: Row, index: Expr) -> Stmt:
    j = Var("j")
    if target.size == 1:
        return Assign(target[0], source[0])
    return loop("j", target.size, Assign(target[j], source[simplify(index)]))


def _selected(source: Row, target: Row, index: Expr) -> tuple[Stmt, ...]:
    """Selects need rows that are arrays of their own."""
    before = Row(f"{target.name}_in", source.dtype, source.size)
    after = Row(f"{target.name}_out", source.dtype, source.size)
    j = Var("j")
    return (
        Registers(before.name, before.dtype, before.size),
        Registers(after.name, after.dtype, after.size),
        _copied(source, before, j),
        *permute(before, after, index, "j"),
        _copied(after, target, j),
    )
