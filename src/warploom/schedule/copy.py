"""A cooperative copy to shared memory: by all threads of a block.

    for every element of a tile: shared = x   →   round r of thread t copies (r·threads + t)·width

In come the loops of a copy, of neighbours in memory the last of them; out go how wide an access is,
how many rounds there are, and the statements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.schedule.context import Context, all_of
from warploom.schedule.ir import Loop, Write
from warploom.schedule.lanes import agree, strictest
from warploom.schedule.value import WIDTHS, Read, Writer

# Registers of a thread that hold what is on its way: with more, each round waits for itself.
MOST_WAITING = 64


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """`loops` are counters and sizes, the outermost first; `width` elements at a time go to each
    thread in each round."""

    loops: tuple[tuple[str, int], ...]
    writes: tuple[Write, ...]
    width: int
    threads: int

    @property
    def pieces(self) -> int:
        return math.prod(size for _, size in self.loops) // self.width

    @property
    def rounds(self) -> int:
        return -(-self.pieces // self.threads)

    @property
    def waits(self) -> bool:
        """Whether all rounds are loaded before any of them is stored."""
        return self.rounds * self.width * len(self.sources) <= MOST_WAITING

    @property
    def sources(self) -> list[ir.Value]:
        """What is copied, each once."""
        return list(dict.fromkeys(each.value for each in self.writes))

    @property
    def arrays(self) -> list[str]:
        return [each.target.name for each in self.writes]

    def piece(self, number: Expr) -> Expr:
        """What a thread copies in a round of this number."""
        return simplify(number * self.threads + Var("thread"))

    def condition(self, piece: Expr) -> Expr | None:
        """Where the last round is not for all threads."""
        whole = self.rounds * self.threads == self.pieces
        return None if whole else simplify(piece.le(self.pieces - 1))

    def index(self, piece: Expr, lane: int = 0) -> Mapping[str, Expr]:
        """What every counter is for an element of a piece."""
        found: dict[str, Expr] = {}
        below = 1
        for at, (counter, whole) in reversed(list(enumerate(self.loops))):
            innermost = at == len(self.loops) - 1
            size = whole // self.width if innermost else whole
            here = piece // below if below > 1 else piece
            if at > 0:
                here = here % size if size > 1 else Const(0)
            if innermost:
                here = here * self.width + lane
            found[counter] = simplify(here)
            below *= size
        return found


class Copier:
    """Statements of copies. What is on its way is in registers of their own, by its value."""

    def __init__(self, writer: Writer, threads: int) -> None:
        self.writer, self.threads = writer, threads
        self.held: dict[tuple[Loop, ir.Value], str] = {}

    def copy_of(self, loop: Loop) -> Copy:
        loops, body = [(loop.counter, loop.size)], loop.body
        while isinstance(inner := body[0], Loop):
            loops.append((inner.counter, inner.size))
            body = inner.body
        writes = tuple(each for each in body if isinstance(each, Write))
        return Copy(tuple(loops), writes, self._width(writes, *loops[-1]), self.threads)

    def _width(self, writes: tuple[Write, ...], counter: str, size: int) -> int:
        """The widest access that the addresses allow."""
        for width in WIDTHS:
            if size % width == 0 and all(self._is_wide(w.value, counter, width) for w in writes):
                return width
        return 1

    def _is_wide(self, value: ir.Value, counter: str, width: int) -> bool:
        read = self.writer.memory.read(value)
        return (
            read is not None
            and self.writer.is_wide(read.cell, counter, width)
            and all(agree(each, counter, width) for each, _ in read.guards)
        )

    def _stores_wide(self, copy: Copy, write: Write) -> bool:
        """Whether neighbours in global memory are neighbours in the array, too."""
        return self.writer.is_wide(write.target, copy.loops[-1][0], copy.width)

    # -- statements

    def copied(self, copy: Copy, counter: str, at: Context) -> list[ir.Stmt]:
        """All is loaded before anything is put, where registers have room for it."""
        if copy.waits:
            rows = self.rows(copy, copy.rounds)
            return [*self.loads(copy, rows, at), *self.puts(copy, rows, at)]
        return [self.rounds(copy, counter, at, unroll=False)]

    def rounds(self, copy: Copy, counter: str, at: Context, unroll: bool) -> ir.For:
        """A loop of all rounds, each of which waits for itself unless it is unrolled."""
        rows, number = self.rows(copy, copy.rounds if unroll and copy.waits else 1), Var(counter)
        body = (
            *self._load(copy, rows, number, Const(0), at),
            *self._put(copy, rows, number, Const(0), at),
        )
        return ir.For(counter, Const(0), Const(copy.rounds), body, unroll=unroll)

    def rows(self, copy: Copy, rounds: int) -> dict[ir.Value, ir.Cell]:
        """Registers for what is loaded and not stored yet."""
        return {
            value: self.writer.fresh(ir.dtype_of(value), rounds * copy.width)
            for value in copy.sources
        }

    def loads(
        self, copy: Copy, rows: Mapping[ir.Value, ir.Cell], at: Context, where: Expr | None = None
    ) -> Iterator[ir.Stmt]:
        for number in range(copy.rounds):
            yield from self._load(copy, rows, Const(number), Const(number), at, where)

    def puts(self, copy: Copy, rows: Mapping[ir.Value, ir.Cell], at: Context) -> Iterator[ir.Stmt]:
        for number in range(copy.rounds):
            yield from self._put(copy, rows, Const(number), Const(number), at)

    def past(self, copy: Copy, counter: str, where: Expr | None, at: Context) -> list[ir.Stmt]:
        """An asynchronous copy: each element is put as soon as it is loaded, to be there later."""
        narrow = self._narrow(copy)
        if narrow.rounds <= MOST_WAITING // narrow.width:
            rows = self.rows(narrow, 1)
            numbers = (Const(number) for number in range(narrow.rounds))
            return [s for each in numbers for s in self._past(narrow, rows, each, where, at)]
        return [self.rounds_past(copy, counter, where, at, unroll=False)]

    def rounds_past(
        self, copy: Copy, counter: str, where: Expr | None, at: Context, unroll: bool
    ) -> ir.For:
        """A loop of all rounds of an asynchronous copy."""
        narrow = self._narrow(copy)
        body = tuple(self._past(narrow, self.rows(narrow, 1), Var(counter), where, at))
        return ir.For(counter, Const(0), Const(narrow.rounds), body, unroll=unroll)

    def _narrow(self, copy: Copy) -> Copy:
        """As wide as the array can be stored to."""
        several = [replace(copy, width=width) for width in WIDTHS if width <= copy.width]
        fitting = (each for each in several if all(self._stores_wide(each, w) for w in each.writes))
        return next(fitting, replace(copy, width=1))

    def _past(
        self,
        copy: Copy,
        rows: Mapping[ir.Value, ir.Cell],
        number: Expr,
        where: Expr | None,
        at: Context,
    ) -> Iterator[ir.Stmt]:
        for each in copy.writes:
            one = replace(copy, writes=(each,))
            yield from self._load(one, rows, number, Const(0), at, where)
            yield from self._put(one, rows, number, Const(0), at, ahead=True)

    def _load(
        self,
        copy: Copy,
        rows: Mapping[ir.Value, ir.Cell],
        number: Expr,
        row: Expr,
        at: Context,
        where: Expr | None = None,
    ) -> Iterator[ir.Stmt]:
        piece, counter = copy.piece(number), copy.loops[-1][0]
        guards = [each for each in (where, copy.condition(piece)) if each is not None]
        here = at.at(copy.index(piece)).guarded(*guards)
        for value in copy.sources:
            target = replace(rows[value], index=simplify(row * copy.width))
            streaming = any(each.streaming for each in copy.writes if each.value == value)
            read = self.writer.memory.read(value)
            if read is None:
                made: list[ir.Stmt] = []
                computed = self.writer.value(value, here, made, streaming)
                yield from [*made, ir.Assign(target, computed)]
                continue
            strict = [(strictest(each, counter, copy.width), n) for each, n in read.guards]
            whole = Read(read.cell, tuple(strict))
            yield from self.writer.loaded(whole, target, here, streaming, copy.width)

    def _put(
        self,
        copy: Copy,
        rows: Mapping[ir.Value, ir.Cell],
        number: Expr,
        row: Expr,
        at: Context,
        ahead: bool = False,
    ) -> Iterator[ir.Stmt]:
        piece = copy.piece(number)
        guard = copy.condition(piece)
        where = all_of((*at.guards, *([] if guard is None else [guard])))
        for each in copy.writes:
            step = copy.width if self._stores_wide(copy, each) else 1
            for lane in range(0, copy.width, step):
                array, cell = self.writer.memory.place(each.target, at.at(copy.index(piece, lane)))
                value = replace(rows[each.value], index=simplify(row * copy.width + lane))
                yield ir.Store(array, cell, value, where, step, ahead=ahead)
