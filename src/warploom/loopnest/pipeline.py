"""Copies that are ahead of the loop that uses them.

    for k: copy(k); use(k)   →   copy(0); for k: load(k + 1); use(k); put(k + 1)
                             →   copy(0) … copy(n - 2); for k: copy(k + n - 1); use(k); wait

In come a loop and the copies in it; out go statements. The first is by way of registers, with two
arrays, one of which is filled while the other is used; the second, of any number of stages, past
the registers (stores ahead). So many iterations of the loop are written out that it is known which
array is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.ir import Barrier, For, Stmt
from warploom.loopnest import ir
from warploom.loopnest.cooperative_copy import CooperativeCopy, CopyWriter, cooperative_copy_of
from warploom.loopnest.decided import Loop, Node
from warploom.loopnest.indices import Places


class Pipeline:
    def __init__(
        self,
        at: Places,
        copier: CopyWriter,
        bodies: Callable[[tuple[Node, ...]], list[Stmt]],
        counter: Callable[[str], str],
    ) -> None:
        self.at, self.made, self.copier = at, at.made, copier
        self.bodies, self.counter = bodies, counter

    def ahead(self, loop: Loop) -> list[Loop]:
        """The copies in a loop that are done before the iteration that uses them: where iterations
        copy different tiles, and who uses these is in the loop, too."""
        return [each for each in loop.body if isinstance(each, Loop) and self._is_ahead(loop, each)]

    def _is_ahead(self, loop: Loop, node: Loop) -> bool:
        if node.kind != "DEAL" or loop.kind != "LOOP":
            return False
        copy = cooperative_copy_of(self.made, node)
        iterations = any(dim.tile is None and dim in copy.load.dims for dim in loop.dims)
        staged = all(self.made.stages[self.at.temporaries[put]] > 1 for put in copy.puts)
        return iterations and staged and (copy.waits or self._passes(copy))

    def _passes(self, copy: CooperativeCopy) -> bool:
        return all(self.made.fill[self.at.temporaries[put]] == "COPY" for put in copy.puts)

    def statements(self, loop: Loop, ahead: Sequence[Loop]) -> list[Stmt]:
        copies = [cooperative_copy_of(self.made, node) for node in ahead]
        arrays = [self.at.temporaries[put] for copy in copies for put in copy.puts]
        stages = self.made.stages[arrays[0]]
        self.at.several |= dict.fromkeys(arrays, stages)
        used = tuple(node for node in loop.body if node not in ahead)
        counter = self.counter(kept(loop.dims[0]))
        if self._passes(copies[0]):
            return self._past_registers(loop, copies, arrays, used, counter)
        return self._by_registers(loop, copies, arrays, used, counter)

    def _by_registers(
        self,
        loop: Loop,
        copies: Sequence[CooperativeCopy],
        arrays: Sequence[ir.Temporary],
        used: tuple[Node, ...],
        counter: str,
    ) -> list[Stmt]:
        self._iteration(loop, arrays, Const(0), 0)
        before = [s for copy in copies for s in self.copier.copied(copy, self.counter("round"))]
        body: list[Stmt] = []
        for iteration in range(2):
            here = Var(counter) * 2 + iteration
            last = iteration == 1 and loop.size % 2 == 0
            more = Var(counter).le(loop.size // 2 - 2) if last else None
            self._iteration(loop, arrays, here + 1, 1 - iteration)
            body += [stmt for copy in copies for stmt in self.copier.loads(copy, more)]
            self._iteration(loop, arrays, here, iteration)
            body += self.bodies(used)
            self._iteration(loop, arrays, here + 1, 1 - iteration)
            body += [stmt for copy in copies for stmt in self.copier.puts(copy)]
        after: list[Stmt] = []
        if loop.size % 2:
            self._iteration(loop, arrays, Const(loop.size - 1), 0)
            after = self.bodies(used)
        iterations = For(counter, Const(0), Const(loop.size // 2), tuple(body), unroll=False)
        return [*before, iterations, *after]

    def _past_registers(
        self,
        loop: Loop,
        copies: Sequence[CooperativeCopy],
        arrays: Sequence[ir.Temporary],
        used: tuple[Node, ...],
        counter: str,
    ) -> list[Stmt]:
        """Where there is no tile to copy any more, zeros are stored that nobody reads: so all
        iterations have the same groups."""
        stages, whole = self.made.stages[arrays[0]], loop.size // self.made.stages[arrays[0]]
        before: list[Stmt] = []
        for first in range(min(stages - 1, loop.size)):
            self._iteration(loop, arrays, Const(first), first)
            before += self._copies(copies, None)
        before.append(Barrier(waits=0))
        body: list[Stmt] = []
        for iteration in range(stages):
            here = Var(counter) * stages + iteration
            enough = (whole - 1) * stages + iteration + stages <= loop.size
            more = None if enough else Var(counter).le((loop.size - stages - iteration) // stages)
            self._iteration(loop, arrays, here + (stages - 1), (iteration + stages - 1) % stages)
            body += self._copies(copies, more)
            self._iteration(loop, arrays, here, iteration)
            body += self.bodies(used)
            body.append(Barrier(waits=stages - 2))
        after: list[Stmt] = [Barrier(waits=0)] if stages > 2 else []
        for rest in range(loop.size % stages):
            self._iteration(loop, arrays, Const(whole * stages + rest), rest)
            after += self.bodies(used)
        iterations = For(counter, Const(0), Const(whole), tuple(body), unroll=False)
        return [*before, *([iterations] if whole else []), *after]

    def _copies(self, copies: Sequence[CooperativeCopy], where: Expr | None) -> list[Stmt]:
        return [
            stmt for copy in copies for stmt in self.copier.past(copy, self.counter("round"), where)
        ]

    def _iteration(
        self, loop: Loop, arrays: Sequence[ir.Temporary], iteration: Expr, half: int
    ) -> None:
        self.at.index |= dict.fromkeys(loop.dims, simplify(iteration))
        self.at.half |= dict.fromkeys(arrays, half)


def kept(dim: ir.Dim) -> str:
    """The part of a dimension's name that a counter has."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in str(dim).split(".")[-1])
