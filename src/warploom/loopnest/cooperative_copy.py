"""A copy to shared memory, dealt out to all threads of a block.

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
    """The copy that a loop which is dealt out belongs to, from its outermost loop."""
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

    def copied(self, deal: CooperativeCopy, counter: str) -> Iterator[Stmt]:
        """All is loaded before anything is put, where registers have room for it."""
        if deal.waits:
            yield from self.loads(deal)
            yield from self.puts(deal)
            return
        self.held[deal.load] = deal.width
        number, row = Var(counter), Const(0)
        body = (*self._load(deal, number, row, None), *self._put(deal, number, row, deal.puts))
        yield For(counter, Const(0), Const(deal.rounds), body, unroll=False)

    def loads(self, deal: CooperativeCopy, where: Expr | None = None) -> Iterator[Stmt]:
        self.held[deal.load] = deal.rounds * deal.width
        for number in range(deal.rounds):
            yield from self._load(deal, Const(number), Const(number), where)

    def puts(self, deal: CooperativeCopy) -> Iterator[Stmt]:
        for number in range(deal.rounds):
            yield from self._put(deal, Const(number), Const(number), deal.puts)

    def past(self, deal: CooperativeCopy, counter: str, where: Expr | None) -> Iterator[Stmt]:
        """Past the registers: each element is put as soon as it is loaded, to be there later."""
        several = [replace(deal, width=width) for width in (4, 2) if width <= deal.width]
        fitting = (each for each in several if all(self._is_wide(each, p) for p in deal.puts))
        narrow = next(fitting, replace(deal, width=1))
        self.held[deal.load] = narrow.width
        if narrow.rounds <= MOST_WAITING // narrow.width:
            for number in range(narrow.rounds):
                yield from self._past(narrow, Const(number), where)
            return
        body = tuple(self._past(narrow, Var(counter), where))
        yield For(counter, Const(0), Const(narrow.rounds), body, unroll=False)

    def _past(self, deal: CooperativeCopy, number: Expr, where: Expr | None) -> Iterator[Stmt]:
        row = Const(0)
        for put in deal.puts:
            yield from self._load(deal, number, row, where)
            yield from self._put(deal, number, row, (put,), ahead=True)

    def _is_wide(self, deal: CooperativeCopy, put: ir.Instruction) -> bool:
        """Whether neighbours in global memory are neighbours in the array, too."""
        temporary = self.at.temporaries[put]
        first, _ = self.at.array_dims(temporary)[0]
        padding = self.at.made.padding[temporary]
        return first in deal.loops[-1].dims and padding % deal.width == 0

    def _register(self, deal: CooperativeCopy, row: Expr, lane: int = 0) -> Cell:
        """The register of an element that is loaded and not stored yet."""
        place = simplify(row * deal.width + lane)
        return Cell(self.at.name(deal.load.name), place, deal.load.dtype)

    def _load(
        self, deal: CooperativeCopy, number: Expr, row: Expr, where: Expr | None
    ) -> Iterator[Stmt]:
        load, piece, at = deal.load, deal.piece(number), self.at
        assert isinstance(load.action, ir.Load)
        at.index |= deal.index(piece)
        inside = at.inside(load, width=deal.width)
        guards = [each for each in (where, deal.condition(piece), *inside) if each is not None]
        yield Load(
            self._register(deal, row),
            load.action.access.array.name,
            at.element(load, load.action.access),
            both(guards),
            width=deal.width,
            streaming=at.made.cache[load] == "NO_CACHE",
        )

    def _put(
        self,
        deal: CooperativeCopy,
        number: Expr,
        row: Expr,
        puts: tuple[ir.Instruction, ...],
        ahead: bool = False,
    ) -> Iterator[Stmt]:
        piece, at = deal.piece(number), self.at
        guard = deal.condition(piece)
        where = None if guard is None else simplify(guard)
        for put in puts:
            step = deal.width if self._is_wide(deal, put) else 1
            for lane in range(0, deal.width, step):
                at.index |= deal.index(piece, lane)
                cell, value = at.cell(put), self._register(deal, row, lane)
                array = at.array(at.temporaries[put])
                yield Store(array, cell, value, where, step, ahead=ahead)
