"""What threads hold becomes what it is as far as each of them: a scan over registers and threads.

    registers of a thread    r[1] = r[0] op r[1]; r[2] = r[1] op r[2]; …
    lanes of one warp        v = shuffle(v, up 1) op v; v = shuffle(v, up 2) op v; … in those above
    other threads            part[t] = v; barrier; before = part[0] op … op part[t - 1]

Then every register has what comes before its thread put in front of it. The work is that of the
elements: each is read and written twice, and threads exchange one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify, total
from warploom.kernel import ir
from warploom.schedule.combine import AmongThreads, Digit, digits_of
from warploom.schedule.context import Context
from warploom.schedule.ir import Prefix


class Prefixer(AmongThreads):
    """Statements of scans."""

    def prefixed(self, node: Prefix, at: Context) -> Iterator[ir.Stmt]:
        """A row of neighbours in a thread after another."""
        before = node.carry
        rows = list(product(*(range(size) for _, size in node.outer)))
        if before is None and len(rows) > 1:
            before = self.writer.fresh(node.target.dtype)
            yield ir.Assign(before, node.nothing)
        for row in rows:
            counters = [counter for counter, _ in node.outer]
            here = at.at(dict(zip(counters, map(Const, row), strict=True)))
            yield from self._row(node, here, before)

    def _row(self, node: Prefix, at: Context, carry: ir.Cell | None) -> Iterator[ir.Stmt]:
        cells = self._cells(node, at)
        for earlier, later in pairwise(cells):
            yield ir.Assign(later, self._both(node, earlier, later))
        before: ir.Value | None = None
        whole: ir.Value = cells[-1]
        if node.level is not None and self.levels[node.level] > 1:
            before, whole = (
                self.writer.fresh(node.target.dtype),
                self.writer.fresh(node.target.dtype),
            )
            yield from self._among_threads(node, cells[-1], before, whole)
        yield from self._placed(node, cells, before, carry, whole)

    def _cells(self, node: Prefix, at: Context) -> list[ir.Cell]:
        """The registers of a row, in order."""
        counters = [counter for counter, _ in node.inner]
        sizes = [range(size) for _, size in node.inner]
        index: list[Mapping[str, Expr]] = [
            dict(zip(counters, map(Const, each), strict=True)) for each in product(*sizes)
        ]
        return [self.writer.memory.held(node.target, at.at(each)) for each in index]

    def _both(self, node: Prefix, earlier: ir.Value, later: ir.Value) -> ir.Value:
        return ir.Operation(node.op, (earlier, later))

    def _placed(
        self,
        node: Prefix,
        cells: Sequence[ir.Cell],
        before: ir.Value | None,
        carry: ir.Cell | None,
        whole: ir.Value,
    ) -> Iterator[ir.Stmt]:
        """What comes before the row put in front of all, and behind it in the carry."""
        first = before
        if carry is not None:
            first = self.writer.fresh(node.target.dtype)
            made = carry if before is None else self._both(node, carry, before)
            yield ir.Assign(first, made)
            yield ir.Assign(carry, self._both(node, carry, whole))
        if not node.exclusive:
            if first is not None:
                for cell in cells:
                    yield ir.Assign(cell, self._both(node, first, cell))
            return
        for earlier, cell in reversed(list(pairwise(cells))):
            yield ir.Assign(cell, earlier if first is None else self._both(node, first, earlier))
        yield ir.Assign(cells[0], node.nothing if first is None else first)

    # -- threads

    def _among_threads(
        self, node: Prefix, own: ir.Cell, before: ir.Cell, whole: ir.Cell
    ) -> Iterator[ir.Stmt]:
        """What the threads before this one have, and what all of its level have."""
        assert node.level is not None
        digits = digits_of(self.levels, (node.level,), self.lanes)
        near = next((each for each in digits if each.way == "exchanged"), None)
        far = next((each for each in digits if each.way == "shared"), None)
        if near is None:
            yield ir.Assign(before, node.nothing)
            yield ir.Assign(whole, own)
        else:
            yield from self._among_lanes(node, own, before, whole, near)
        if far is not None:
            yield from self._through_shared(node, before, whole, digits)

    def _among_lanes(
        self, node: Prefix, own: ir.Cell, before: ir.Cell, whole: ir.Cell, near: Digit
    ) -> Iterator[ir.Stmt]:
        got, index = self.writer.fresh(own.dtype), simplify(near.index)
        yield ir.Assign(whole, own)
        distance = 1
        while distance < near.size:
            yield ir.Shuffle(got, whole, Const(distance * near.below), "up")
            taken = ir.Choose(index.ge(distance), self._both(node, got, whole), whole)
            yield ir.Assign(whole, taken)
            distance *= 2
        yield ir.Shuffle(got, whole, Const(near.below), "up")
        yield ir.Assign(before, ir.Choose(index.ge(1), got, node.nothing))
        last = Var("lane") + (near.size - 1 - near.index) * near.below
        yield ir.Shuffle(whole, whole, simplify(last), "idx")

    def _through_shared(
        self, node: Prefix, before: ir.Cell, whole: ir.Cell, digits: Sequence[Digit]
    ) -> Iterator[ir.Stmt]:
        """One of those that exchanged stores for all; every thread reads the parts."""
        far = next(each for each in digits if each.way == "shared")
        own, width = list[Expr](), 1
        firsts: Expr | None = None
        base, step = list[Expr](), 1
        for each in digits:
            index = simplify(each.index)
            if each.way == "exchanged":
                firsts = index.eq(0)
                continue
            own.append(index * width)
            if each is far:
                step = width
            else:
                base.append(index * width)
            width *= each.size
        array = self.writer.fresh_name("before")
        self.shared.append(ir.Shared(array, node.target.dtype, width))
        part, all_before = self.writer.fresh(before.dtype), self.writer.fresh(before.dtype)
        yield ir.Store(array, simplify(total(own)), whole, firsts)
        yield ir.Assign(all_before, node.nothing)
        yield ir.Assign(whole, node.nothing)
        name, index = self.counter("other"), simplify(far.index)
        body = (
            ir.Load(part, array, simplify(total(base) + Var(name) * step)),
            ir.Assign(
                all_before,
                ir.Choose(index.gt(Var(name)), self._both(node, all_before, part), all_before),
            ),
            ir.Assign(whole, self._both(node, whole, part)),
        )
        yield ir.For(name, Const(0), Const(far.size), body, unroll=far.size <= self.lanes)
        yield ir.Assign(before, self._both(node, all_before, before))
