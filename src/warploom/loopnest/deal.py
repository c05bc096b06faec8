"""A copy to shared memory, dealt out to all threads of a block.

    for every tile of A: load, put   →   round r of thread t copies element (r·threads + t)·width

In come the loops of a copy, the neighbours of global memory in the last of them; out go the index
of every loop in a round, how wide an access is, and how many rounds there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.loopnest import ir
from warploom.loopnest.decided import Implementation, Loop
from warploom.loopnest.target import is_aligned

# Registers of a thread that hold what is on its way: with more, each round waits for itself.
MOST_WAITING = 64


@dataclass(frozen=True, slots=True, eq=False)
class Deal:
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


def deal_of(made: Implementation, loop: Loop) -> Deal:
    """The copy that a loop which is dealt out belongs to, from its outermost loop."""
    loops = [loop]
    while isinstance(inner := loops[-1].body[0], Loop):
        loops.append(inner)
    insts = [each for each in loops[-1].body if isinstance(each, ir.Instruction)]
    load = next(each for each in insts if isinstance(each.action, ir.Load))
    puts = tuple(each for each in insts if isinstance(each.action, ir.Put))
    width = _width(made, load, loops[-1])
    return Deal(load, puts, tuple(loops), width, math.prod(made.levels))


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
