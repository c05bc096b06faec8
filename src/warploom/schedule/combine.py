"""What threads hold becomes, in all of them, one value: a fold over levels of threads.

    lanes of one warp      v = v op shuffle(v, xor 1); v = v op shuffle(v, xor 2); …
    other threads          part[t] = v; barrier; v = part[first] op part[next] op …

Every thread puts the parts together in the same order, so all have the same value, to the last bit.
The index of a thread is written with one digit for each level; those of a level that lie within a
warp, and are bits of it, are exchanged, the others go through shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify, total
from warploom.kernel import ir
from warploom.schedule.context import Context
from warploom.schedule.ir import Combine
from warploom.schedule.value import Writer

THREAD = Var("thread")


@dataclass(frozen=True, slots=True)
class Digit:
    """A part of a thread's index: so many values, each `below` threads apart. It is kept, or
    exchanged within a warp, or put together in shared memory."""

    size: int
    below: int
    way: str

    @property
    def index(self) -> Expr:
        return THREAD // self.below % self.size


def digits_of(levels: Sequence[int], folded: Sequence[int], lanes: int) -> list[Digit]:
    """The digits of a thread's index, the innermost first. A block without whole warps exchanges
    nothing."""
    below, found = 1, list[Digit]()
    whole = math.prod(levels) % lanes == 0
    for level, size in enumerate(levels):
        if level not in folded:
            found.append(Digit(size, below, "kept"))
        else:
            near = math.gcd(size, max(1, lanes // below))
            if not whole or not _is_power(below) or lanes % below:
                near = 1
            if near > 1:
                found.append(Digit(near, below, "exchanged"))
            if size > near:
                found.append(Digit(size // near, below * near, "shared"))
        below *= size
    return found


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


class AmongThreads:
    """Statements by which threads of a block exchange values. `shared` are the arrays for it."""

    def __init__(
        self, writer: Writer, levels: Sequence[int], lanes: int, counter: Callable[[str], str]
    ) -> None:
        self.writer, self.levels, self.lanes, self.counter = writer, levels, lanes, counter
        self.shared: list[ir.Shared] = []


class Combiner(AmongThreads):
    """Statements of folds over threads."""

    def combined(self, node: Combine, at: Context) -> Iterator[ir.Stmt]:
        digits = digits_of(self.levels, node.levels, self.lanes)
        masks = [
            Const(each.below << bit)
            for each in digits if each.way == "exchanged"
            for bit in range(each.size.bit_length() - 1)
        ]  # fmt: skip
        if masks:
            yield from self._over(node, at, lambda cell, _: self._exchanged(node, cell, masks))
        if any(each.way == "shared" for each in digits):
            yield from self._through_shared(node, at, digits)

    def _over(
        self, node: Combine, at: Context, made: Callable[[ir.Cell, Expr], Iterator[ir.Stmt]]
    ) -> Iterator[ir.Stmt]:
        """Statements for every register that is folded; each has a number."""
        names = [(counter, self.counter(counter), size) for counter, size in node.along]
        here, number = at, list[Expr]()
        below = 1
        for counter, name, size in reversed(names):
            here = here.below(name, size).at({counter: Var(name)})
            number.append(Var(name) * below)
            below *= size
        body = tuple(made(self.writer.memory.held(node.target, here), total(number)))
        for _, name, size in reversed(names):
            body = (ir.For(name, Const(0), Const(size), body, unroll=True),)
        yield from body

    def _exchanged(
        self, node: Combine, cell: ir.Cell, masks: Sequence[Const]
    ) -> Iterator[ir.Stmt]:  # fmt: skip
        got = self.writer.fresh(cell.dtype)
        for mask in masks:
            yield ir.Shuffle(got, cell, mask, "xor")
            yield ir.Assign(cell, ir.Operation(node.op, (cell, got)))

    def _through_shared(
        self, node: Combine, at: Context, digits: Sequence[Digit]
    ) -> Iterator[ir.Stmt]:  # fmt: skip
        """One of those that exchanged stores for all; every thread reads the parts."""
        places, base, own, width = list[tuple[int, int]](), list[Expr](), list[Expr](), 1
        firsts: Expr | None = None
        for each in digits:
            index = simplify(each.index)
            if each.way == "exchanged":
                first = index.eq(0)
                firsts = first if firsts is None else firsts.and_(first)
                continue
            own.append(index * width)
            if each.way == "kept":
                base.append(index * width)
            else:
                places.append((each.size, width))
            width *= each.size
        cells = math.prod(size for _, size in node.along)
        array = self.writer.fresh_name("part")
        self.shared.append(ir.Shared(array, node.target.dtype, cells * width))

        def put(cell: ir.Cell, number: Expr) -> Iterator[ir.Stmt]:
            yield ir.Store(array, simplify(number * width + total(own)), cell, firsts)

        def got(cell: ir.Cell, number: Expr) -> Iterator[ir.Stmt]:
            yield from self._gathered(node, cell, array, number * width + total(base), places)

        yield from self._over(node, at, put)
        yield from self._over(node, at, got)

    def _gathered(
        self, node: Combine, cell: ir.Cell, array: str, base: Expr, places: list[tuple[int, int]]
    ) -> Iterator[ir.Stmt]:
        part = self.writer.fresh(cell.dtype)
        offsets = [
            sum(at * width for at, (_, width) in zip(each, places, strict=True))
            for each in product(*(range(size) for size, _ in places))
        ]
        yield ir.Load(cell, array, simplify(base))
        if len(places) == 1 and len(offsets) > 2:
            (_, width), name = places[0], self.counter("other")
            step = simplify(base + (Var(name) + 1) * width)
            body = (ir.Load(part, array, step), self._taken(node, cell, part))
            yield ir.For(name, Const(0), Const(len(offsets) - 1), body, unroll=True)
            return
        for offset in offsets[1:]:
            yield ir.Load(part, array, simplify(base + offset))
            yield self._taken(node, cell, part)

    def _taken(self, node: Combine, cell: ir.Cell, part: ir.Cell) -> ir.Assign:
        return ir.Assign(cell, ir.Operation(node.op, (cell, replace(part))))
