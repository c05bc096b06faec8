"""A cooperative copy to shared memory: by all threads of a block.

    for every tile of A: load, put   →   round r of thread t copies element (r·threads + t)·width

In come the loops of a copy, the neighbours of global memory in the last of them; out go the index
of every loop in a round, how wide an access is, how many rounds there are, and the statements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.ir import Cell, For, Load, Stmt, Store
from warploom.loopnest import ir
from warploom.loopnest.decided import Implementation, Loop
from warploom.loopnest.indices import Places, both
from warploom.loopnest.target import is_aligned

# Registers of a thread that hold what is on its way: with more, each round waits for itself.
MOST_WAITING = 64


@dataclass(frozen=True, slots=True, eq=False)
class CooperativeCopy:
    """`loops` from the outermost; `width` elements at a time go to each thread in each round."""

    load: ir.Instruction
    puts: tuple[ir.Instruction, ...]
    loops: tuple[Loop, ...]
    width: int
    threads: int

    @property
    def pieces(self) -> int:
        return math.prod(loop.size for loop in self.loops) // self.width

    @property
    def rounds(self) -> int:
        return -(-self.pieces // self.threads)

    @property
    def waits(self) -> bool:
        """Whether all rounds are loaded before any of them is stored."""
        return self.rounds * self.width <= MOST_WAITING

    def piece(self, number: Expr) -> Expr:
        """What a thread copies in a round of this number."""
        return simplify(number * self.threads + Var("thread"))

    def condition(self, piece: Expr) -> Expr | None:
        """Where the last round is not for all threads."""
        return None if self.rounds * self.threads == self.pieces else piece.le(self.pieces - 1)

    def index(self, piece: Expr, lane: int = 0) -> Mapping[ir.Dim, Expr]:
        """The index of every loop for an element of a piece."""
        found: dict[ir.Dim, Expr] = {}
        below = 1
        for at, loop in reversed(list(enumerate(self.loops))):
            innermost = at == len(self.loops) - 1
            size = loop.size // self.width if innermost else loop.size
            here = piece // below if below > 1 else piece
            if at > 0:
                here = here % size if size > 1 else Const(0)
            if innermost:
                here = here * self.width + lane
            found |= dict.fromkeys(loop.dims, simplify(here))
            below *= size
        return found


def cooperative_copy_of(made: Implementation, loop: Loop) -> CooperativeCopy:
    """The copy that a loop of it belongs to, from its outermost loop."""
    loops = [loop]
    while isinstance(inner := loops[-1].body[0], Loop):
        loops.append(inner)
    insts = [each for each in loops[-1].body if isinstance(each, ir.Instruction)]
    load = next(each for each in insts if isinstance(each.action, ir.Load))
    puts = tuple(each for each in insts if isinstance(each.action, ir.Put))
    width = _width(made, load, loops[-1])
    return CooperativeCopy(load, puts, tuple(loops), width, math.prod(made.levels))


def _width(made: Implementation, load: ir.Instruction, innermost: Loop) -> int:
    """The widest access that the addresses allow."""
    assert isinstance(load.action, ir.Load)
    dim = next(dim for dim in load.dims if dim in innermost.dims)
    fits = [
        width
        for width in (1, 2, 4)
        if width == 1
        or (
            width <= made.target.vector[1]
            and innermost.size % width == 0
            and is_aligned(load.action.access, dim, width)
        )
    ]
    return max(fits)


class CopyWriter:
    """Statements of copies. `held` says how many registers each load fills."""

    def __init__(self, at: Places) -> None:
        self.at = at
        self.held: dict[ir.Instruction, int] = {}

    def copied(self, copy: CooperativeCopy, counter: str) -> Iterator[Stmt]:
        """All is loaded before anything is put, where registers have room for it."""
        if copy.waits:
            yield from self.loads(copy)
            yield from self.puts(copy)
            return
        self.held[copy.load] = copy.width
        number, row = Var(counter), Const(0)
        body = (*self._load(copy, number, row, None), *self._put(copy, number, row, copy.puts))
        yield For(counter, Const(0), Const(copy.rounds), body, unroll=False)

    def loads(self, copy: CooperativeCopy, where: Expr | None = None) -> Iterator[Stmt]:
        self.held[copy.load] = copy.rounds * copy.width
        for number in range(copy.rounds):
            yield from self._load(copy, Const(number), Const(number), where)

    def puts(self, copy: CooperativeCopy) -> Iterator[Stmt]:
        for number in range(copy.rounds):
            yield from self._put(copy, Const(number), Const(number), copy.puts)

    def past(self, copy: CooperativeCopy, counter: str, where: Expr | None) -> Iterator[Stmt]:
        """An asynchronous copy: each element is put as soon as it is loaded, to be there later."""
        several = [replace(copy, width=width) for width in (4, 2) if width <= copy.width]
        fitting = (each for each in several if all(self._is_wide(each, p) for p in copy.puts))
        narrow = next(fitting, replace(copy, width=1))
        self.held[copy.load] = narrow.width
        if narrow.rounds <= MOST_WAITING // narrow.width:
            for number in range(narrow.rounds):
                yield from self._past(narrow, Const(number), where)
            return
        body = tuple(self._past(narrow, Var(counter), where))
        yield For(counter, Const(0), Const(narrow.rounds), body, unroll=False)

    def _past(self, copy: CooperativeCopy, number: Expr, where: Expr | None) -> Iterator[Stmt]:
        row = Const(0)
        for put in copy.puts:
            yield from self._load(copy, number, row, where)
            yield from self._put(copy, number, row, (put,), ahead=True)

    def _is_wide(self, copy: CooperativeCopy, put: ir.Instruction) -> bool:
        """Whether neighbours in global memory are neighbours in the array, too."""
        temporary = self.at.temporaries[put]
        first, _ = self.at.array_dims(temporary)[0]
        padding = self.at.made.padding[temporary]
        return first in copy.loops[-1].dims and padding % copy.width == 0

    def _register(self, copy: CooperativeCopy, row: Expr, lane: int = 0) -> Cell:
        """The register of an element that is loaded and not stored yet."""
        place = simplify(row * copy.width + lane)
        return Cell(self.at.name(copy.load.name), place, copy.load.dtype)

    def _load(
        self, copy: CooperativeCopy, number: Expr, row: Expr, where: Expr | None
    ) -> Iterator[Stmt]:
        load, piece, at = copy.load, copy.piece(number), self.at
        assert isinstance(load.action, ir.Load)
        at.index |= copy.index(piece)
        inside = at.inside(load, width=copy.width)
        guards = [each for each in (where, copy.condition(piece), *inside) if each is not None]
        yield Load(
            self._register(copy, row),
            load.action.access.array.name,
            at.element(load, load.action.access),
            both(guards),
            width=copy.width,
            streaming=at.made.cache[load] == "NO_CACHE",
        )

    def _put(
        self,
        copy: CooperativeCopy,
        number: Expr,
        row: Expr,
        puts: tuple[ir.Instruction, ...],
        ahead: bool = False,
    ) -> Iterator[Stmt]:
        piece, at = copy.piece(number), self.at
        guard = copy.condition(piece)
        where = None if guard is None else simplify(guard)
        for put in puts:
            step = copy.width if self._is_wide(copy, put) else 1
            for lane in range(0, copy.width, step):
                at.index |= copy.index(piece, lane)
                cell, value = at.cell(put), self._register(copy, row, lane)
                array = at.array(at.temporaries[put])
                yield Store(array, cell, value, where, step, ahead=ahead)
