"""Moves as kernel statements: registers permuted per thread, lanes shuffled.

    within threads   b[j] = a[f(lane, j)]          renamed, rotated in ⌈log₂ n⌉ selects, or selected
    across lanes     b[j] = shuffle(a[h], g(lane, j))   h, the sender's choice, over its lane and j
    zeros            b[j] = kept(lane, j) ? … : the neutral element of the fold that consumes it

A thread may hold several tiles, and a column of a tile may be several words wide: then all words of
a column move alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import numpy as np

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
from warploom.index.table import Ints, Mask
from warploom.kernel.build import Builder, choose
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Assign, Cell, Registers, Stmt, loop
from warploom.kernel.lower import Row, permute, rotate, split_rotation, substitute_one
from warploom.sketch.code.form import ALWAYS, LANE, REGISTER, tabulated, written
from warploom.sketch.code.move import Move, at_place, by_cases

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
    """A loop, or no loop where there is only one iteration."""
    with ExitStack() as stack:
        yield stack.enter_context(k.loop(var, size)) if size > 1 else Const(0)


def exchange(
    k: Builder,
    tiles: Tiles,
    moves: Sequence[Move],
    *,
    lane: Expr | None = None,
    first_lane: Expr | int = 0,
    zero: float = 0,
) -> Tiles:
    """Adds the moves, one after another; the registers that hold the result.

    Idle moves leave no trace. `lane` is a thread's place among the lanes of its tile, of which
    `first_lane` is the first. `zero` is what a register holds that comes from nowhere.
    """
    own = Var("lane") if lane is None else lane
    for move in moves:
        if move.idle:
            continue
        target = replace(tiles, name=chr(ord(tiles.name) + 1), columns=move.registers).declare()
        add_move(k, tiles, target, move, own, first_lane, zero)
        tiles = target
    return tiles


def add_move(
    k: Builder,
    source: Tiles,
    target: Tiles,
    move: Move,
    lane: Expr,
    first: Expr | int = 0,
    zero: float = 0,
) -> None:
    """Adds one move between register arrays that are declared, all tiles and words of it."""
    one = _Adding(k, source, target, move, lane, lift(first))
    if move.within:
        one.within_threads()
    elif move.sent is not None:
        one.across_lanes(move.sent)
    else:
        one.lane_by_lane()
    if move.kept is not ALWAYS:
        one.zeros(zero)


@dataclass(frozen=True, slots=True)
class _Adding:
    """One move on its way into a kernel."""

    k: Builder
    source: Tiles
    target: Tiles
    move: Move
    lane: Expr
    first: Expr

    def within_threads(self) -> None:
        move, index = self.move, self.move.register
        inside = (move.register_table >= 0) & (move.register_table < move.sources)
        if not inside.all():
            self.lane_by_lane()
            return
        with self._tiles_and_words() as (tile, word):
            rows = self.source.row(tile, word), self.target.row(tile, word)
            self.k.extend(permuted(*rows, index, move.lanes, self.lane))

    def across_lanes(self, sent: Expr) -> None:
        k, source, target = self.k, self.source, self.target
        with (
            count(k, "tile", source.count) as tile,
            count(k, "j", target.columns) as j,
            count(k, "word", source.width) as word,
        ):
            offered = source.at(tile, at_place(sent, self.lane, j), word)
            k.set(target.at(tile, j, word), k.shuffle(offered, self._other(self.move.lane, j)))

    def lane_by_lane(self) -> None:
        """Register by register; where a lane is asked for several, one shuffle for each."""
        columns = [list(rounds(self.move, j)) for j in range(self.move.registers)]
        got = Cell(f"{self.target.name}_got", None, self.target.dtype)
        if any(len(column) > 1 for column in columns) and not self.move.within:
            self.k.register(got.name, got.dtype)
        for j, column in enumerate(columns):
            with self._tiles_and_words() as (tile, word):
                self._register(self.target.at(tile, j, word), (tile, j, word), column, got)

    def _register(
        self,
        target: Cell,
        place: tuple[Expr, int, Expr],
        column: list[tuple[Expr, Expr]],
        got: Cell,
    ) -> None:
        k, (tile, j, word) = self.k, place
        for number, (offered, receivers) in enumerate(column):
            cell = self.source.at(tile, at_place(offered, self.lane, j), word)
            into = got if number else target
            other = self._other(self.move.lane, Const(j))
            k.set(into, cell if self.move.within else k.shuffle(cell, other))
            if number:
                k.set(target, choose(at_place(receivers, self.lane, j), got, target))

    def zeros(self, zero: float) -> None:
        k, kept = self.k, self.move.kept
        with self._tiles_and_words() as (tile, word), count(k, "j", self.target.columns) as j:
            cell = self.target.at(tile, j, word)
            k.set(cell, choose(simplify(at_place(kept, self.lane, j)), cell, zero))

    def _other(self, other: Expr, j: Expr) -> Expr:
        # Not simplified: that would make remainders of negative numbers again.
        place = at_place(other, self.lane, j)
        return place if self.first is Const(0) else self.first + place

    @contextmanager
    def _tiles_and_words(self) -> Iterator[tuple[Expr, Expr]]:
        with (
            count(self.k, "tile", self.source.count) as tile,
            count(self.k, "word", self.source.width) as word,
        ):
            yield tile, word


def rounds(move: Move, j: int) -> Iterator[tuple[Expr, Expr]]:
    """Shuffles that together bring register j: what a lane offers, and which lanes take it.

    As many as the most registers that any lane is asked for.
    """
    lane, register = move.lane_table[:, j], move.register_table[:, j]
    alive = move.live[:, j]
    rotation = np.zeros(move.lanes, np.int64)
    asked: dict[int, list[int]] = {}
    for receiver in np.flatnonzero(alive).tolist():
        wanted = asked.setdefault(int(lane[receiver]), [])
        if register[receiver] not in wanted:
            wanted.append(int(register[receiver]))
        rotation[receiver] = wanted.index(int(register[receiver]))
    for number in range(max((len(wanted) for wanted in asked.values()), default=1)):
        offered = np.zeros((move.lanes, 1), np.int64)
        matters = np.zeros(offered.shape, np.bool_)
        for sender, wanted in asked.items():
            if number < len(wanted):
                offered[sender], matters[sender] = wanted[number], True
        takes = (rotation == number)[:, None].astype(np.int64)
        yield (
            _tabled(offered, matters, move.sources),
            _tabled(takes, alive[:, None], 2),
        )


def _tabled(table: Ints, matters: Mask, limit: int) -> Expr:
    """A table over lanes as an expression that stays below a limit everywhere."""
    for form in written(table, matters):
        found = tabulated(form, *table.shape)
        if ((found >= 0) & (found < limit)).all():
            return form
    return by_cases(table, matters)


def permuted(source: Row, target: Row, index: Expr, lanes: int, lane: Expr) -> tuple[Stmt, ...]:
    """`target[j] = source[index(lane, j)]` for every j; the index is over LANE and REGISTER."""
    j = Var("j")
    if LANE.name not in variables(index):
        return (_copied(source, target, at_place(index, lane, j)),)
    rotation = rotation_of(index, lanes, source.size) if source.size == target.size else None
    if rotation is None:
        return _selected(source, target, at_place(index, lane, j))
    stmts: list[Stmt] = []
    if rotation.outer is not _Z:
        middle = Row(f"{target.name}_in", source.dtype, source.size)
        stmts.append(Registers(middle.name, middle.dtype, middle.size))
        stmts.append(_copied(source, middle, substitute(rotation.outer, {_Z.name: j})))
        source = middle
    amount = substitute(rotation.amount, {LANE.name: lane})
    fixed, most = rotation.fixed, range_of(rotation.amount, {LANE.name: (0, lanes - 1)})
    stmts += rotate(
        source,
        target,
        amount,
        "j",
        lambda i: substitute_one(fixed, REGISTER.name, i),
        most[1] if most[0] >= 0 else None,
    )
    return tuple(stmts)


def permuted_by(
    source: Row, target: Row, index: Expr, counter: str, lanes: int
) -> tuple[Stmt, ...]:
    """`permuted` for an index over a counter and the lane by their own names; over others, too."""
    if not variables(index) <= {counter, "lane"}:
        return permute(source, target, index, counter)
    own = substitute(index, {counter: REGISTER, "lane": LANE})
    return permuted(source, target, own, lanes, Var("lane"))


@dataclass(frozen=True, slots=True)
class Rotation:
    """An index `outer((fixed(j) + amount(lane)) mod n)`."""

    outer: Expr
    fixed: Expr
    amount: Expr


def rotation_of(index: Expr, lanes: int, registers: int) -> Rotation | None:
    """The index as a rotation between two fixed permutations, if it is one.

    >>> rotation_of((REGISTER - LANE) % 6 // 2 + (REGISTER - LANE) % 2 * 3, 32, 6) is not None
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
            return Rotation(outer, terms[0], _positive(terms[1], registers))
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
        return Assign(target[0], source[simplify(substitute(index, {j.name: 0}))])
    return loop("j", target.size, Assign(target[j], source[simplify(index)]))


def _selected(source: Row, target: Row, index: Expr) -> tuple[Stmt, ...]:
    """Selects need rows that are arrays of their own."""
    before = Row(f"{target.name}_in", source.dtype, source.size)
    after = Row(f"{target.name}_out", source.dtype, target.size)
    j = Var("j")
    return (
        Registers(before.name, before.dtype, before.size),
        Registers(after.name, after.dtype, after.size),
        _copied(source, before, j),
        *permute(before, after, index, "j"),
        _copied(after, target, j),
    )
