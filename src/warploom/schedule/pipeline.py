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

from warploom.index.ir import Const, Expr, Var, variables
from warploom.index.laws import simplify
from warploom.kernel.ir import Barrier, For, Stmt
from warploom.schedule.context import Context
from warploom.schedule.copy import Copier, Copy
from warploom.schedule.ir import Loop, Node

Bodies = Callable[[tuple[Node, ...], Context], list[Stmt]]


class Pipeline:
    """`several` says how many there are of the arrays of which there is more than one."""

    def __init__(self, copier: Copier, bodies: Bodies, counter: Callable[[str], str]) -> None:
        self.copier, self.bodies, self.counter = copier, bodies, counter
        self.buffers = copier.writer.memory.buffers
        self.several: dict[str, int] = {}

    def ahead(self, loop: Loop) -> list[Loop]:
        """The copies in a loop that are done before the iteration that uses them: where iterations
        copy different elements, and who uses these is in the loop, too."""
        return [each for each in loop.body if isinstance(each, Loop) and self._is_ahead(loop, each)]

    def _is_ahead(self, loop: Loop, node: Loop) -> bool:
        if node.kind != "copy":
            return False
        copy = self.copier.copy_of(node)
        staged = all(self.buffers[name].stages > 1 for name in copy.arrays)
        if not staged or not (copy.waits or self.passes(copy)):
            return False
        reads = [r for w in copy.writes for r in self.copier.writer.memory.reads(w.value)]
        return any(
            each.cell.index is not None and loop.counter in variables(each.cell.index)
            for each in reads
        )

    def passes(self, copy: Copy) -> bool:
        """Whether a copy goes past the registers."""
        return all(self.buffers[name].way == "copy" for name in copy.arrays)

    def statements(self, loop: Loop, ahead: Sequence[Loop], at: Context) -> list[Stmt]:
        copies = [self.copier.copy_of(node) for node in ahead]
        names = [name for copy in copies for name in copy.arrays]
        stages = self.buffers[names[0]].stages
        self.several |= dict.fromkeys(names, stages)
        used = tuple(node for node in loop.body if not any(node is each for each in ahead))
        making = _Staged(self, loop, copies, used, self.counter(loop.counter), at, names, stages)
        return making.past_registers() if self.passes(copies[0]) else making.by_registers()


class _Staged:
    """One loop whose copies are ahead."""

    def __init__(
        self,
        pipeline: Pipeline,
        loop: Loop,
        copies: Sequence[Copy],
        used: tuple[Node, ...],
        counter: str,
        at: Context,
        names: Sequence[str],
        stages: int,
    ) -> None:
        self.bodies, self.new, self.copier = pipeline.bodies, pipeline.counter, pipeline.copier
        self.loop, self.copies, self.used, self.counter = loop, copies, used, counter
        self.names, self.stages = names, stages
        self.whole = loop.size // stages
        self.at = at.below(counter, max(1, self.whole))

    def _iteration(self, iteration: Expr, stage: int) -> Context:
        at = self.at.at({self.loop.counter: simplify(iteration)})
        return at.using(dict.fromkeys(self.names, stage))

    def by_registers(self) -> list[Stmt]:
        size, copier = self.loop.size, self.copier
        first = self._iteration(Const(0), 0)
        before = [s for copy in self.copies for s in copier.copied(copy, self.new("round"), first)]
        rows = [copier.rows(copy, copy.rounds) for copy in self.copies]
        body: list[Stmt] = []
        for iteration in range(2):
            here = Var(self.counter) * 2 + iteration
            last = iteration == 1 and size % 2 == 0
            more = Var(self.counter).le(size // 2 - 2) if last else None
            after = self._iteration(here + 1, 1 - iteration)
            for copy, own in zip(self.copies, rows, strict=True):
                body += copier.loads(copy, own, after, more)
            body += self.bodies(self.used, self._iteration(here, iteration))
            for copy, own in zip(self.copies, rows, strict=True):
                body += copier.puts(copy, own, after)
        rest: list[Stmt] = []
        if size % 2:
            rest = self.bodies(self.used, self._iteration(Const(size - 1), 0))
        return [*before, self._loop(body), *rest]

    def past_registers(self) -> list[Stmt]:
        """Where there is no tile to copy any more, zeros are stored that nobody reads: so all
        iterations have the same groups."""
        stages, whole, size = self.stages, self.whole, self.loop.size
        made: list[Stmt] = []
        for first in range(min(stages - 1, size)):
            made += self._copied(self._iteration(Const(first), first), None)
        made.append(Barrier(waits=0))
        body: list[Stmt] = []
        for iteration in range(stages):
            here = Var(self.counter) * stages + iteration
            enough = (whole - 1) * stages + iteration + stages <= size
            more = None if enough else Var(self.counter).le((size - stages - iteration) // stages)
            later = self._iteration(here + (stages - 1), (iteration + stages - 1) % stages)
            body += self._copied(later, more)
            body += self.bodies(self.used, self._iteration(here, iteration))
            body.append(Barrier(waits=stages - 2))
        made += [self._loop(body)] if whole else []
        made += [Barrier(waits=0)] if stages > 2 else []
        for rest in range(size % stages):
            made += self.bodies(self.used, self._iteration(Const(whole * stages + rest), rest))
        return made

    def _copied(self, at: Context, where: Expr | None) -> list[Stmt]:
        return [s for copy in self.copies
                for s in self.copier.past(copy, self.new("round"), where, at)]  # fmt: skip

    def _loop(self, body: list[Stmt]) -> For:
        return For(self.counter, Const(0), Const(self.whole), tuple(body), unroll=False)
