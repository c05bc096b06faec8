"""A schedule in outline: a kernel that does as much as the one that it becomes, made in a tenth of
the time. It is counted (`kernel/work.py`), and never run.

Indices are not simplified, loops of copies stay loops, one iteration stands for those of all stages
of a pipeline, and barriers are put where a shared array is stored to before it is loaded from.
Arrays that could lie in the same bytes do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from warploom.index.ir import Const, Expr, Var, substitute
from warploom.kernel.ir import Barrier, For, If, Kernel, Load, Shared, Stmt, Store, bodies, walk
from warploom.schedule.context import Bounds, Context
from warploom.schedule.copy import Copy
from warploom.schedule.ir import Loop, Schedule
from warploom.schedule.lower import Lowering


def outlined(schedule: Schedule) -> Kernel:
    """What work is counted of."""
    outline = _Outline(schedule)
    kernel = outline.kernel()
    shared = {each.name for each in kernel.body if isinstance(each, Shared)}
    met = _met(kernel.body, shared - outline.staged, loops=False)
    return replace(kernel, body=tuple(met))


class _Plain(Context):
    """Indices as they come."""

    __slots__ = ()

    def expr(self, expr: Expr) -> Expr:
        return substitute(expr, self.index)


class _Outline(Lowering):
    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        self.staged: set[str] = set()

    def context(self, bounds: Bounds) -> Context:
        return _Plain(bounds=bounds)

    def _loop(self, loop: Loop, at: Context) -> list[Stmt]:
        if loop.kind == "copy":
            return [self._copied(self.copier.copy_of(loop), at)]
        ahead = self.pipeline.ahead(loop) if loop.kind == "loop" else []
        return self._pipelined(loop, ahead, at) if ahead else super()._loop(loop, at)

    def _copied(self, copy: Copy, at: Context) -> Stmt:
        counter = self._counter("round")
        if self.pipeline.passes(copy):
            return self.copier.rounds_past(copy, counter, None, at, unroll=True)
        return self.copier.rounds(copy, counter, at, unroll=True)

    def _pipelined(self, loop: Loop, ahead: Sequence[Loop], at: Context) -> list[Stmt]:
        """Copies are waited for at the end of each iteration, where threads meet once."""
        copies = [self.copier.copy_of(node) for node in ahead]
        names = [name for copy in copies for name in copy.arrays]
        stages = self.writer.memory.buffers[names[0]].stages
        self.pipeline.several |= dict.fromkeys(names, stages)
        memory = self.writer.memory
        self.staged |= {memory.name(name, stage) for name in names for stage in range(stages)}
        counter = self._counter(loop.counter)
        inner = at.below(counter, loop.size).at({loop.counter: Var(counter)})
        inner = inner.using(dict.fromkeys(names, 0))
        used = tuple(node for node in loop.body if not any(node is each for each in ahead))
        body = [*(_ahead(self._copied(each, inner)) for each in copies), *self._nodes(used, inner)]
        whole = Const(loop.size)
        return [For(counter, Const(0), whole, (*body, Barrier()), unroll=False)]


def _ahead(stmt: Stmt) -> Stmt:
    """A copy for a later iteration."""
    match stmt:
        case For():
            return replace(stmt, body=tuple(map(_ahead, stmt.body)))
        case Store():
            return replace(stmt, ahead=True)
    return stmt


def _met(body: Sequence[Stmt], shared: set[str], loops: bool) -> Iterator[Stmt]:
    """With a barrier between the last store to a shared array and the first load behind it; and one
    more in a loop, before its next iteration stores."""
    stored: set[str] = set()
    several = False
    for stmt in body:
        inside = list(walk((stmt,)))
        if stored & {each.array for each in inside if isinstance(each, Load)}:
            yield Barrier()
            stored, several = set(), True
        stored |= shared & {each.array for each in inside if isinstance(each, Store)}
        yield _inner(stmt, shared) if bodies(stmt) else stmt
    if several and loops:
        yield Barrier()


def _inner(stmt: Stmt, shared: set[str]) -> Stmt:
    match stmt:
        case For():
            return replace(stmt, body=tuple(_met(stmt.body, shared, loops=True)))
        case If(_, then, otherwise):
            holds, fails = (tuple(_met(each, shared, loops=False)) for each in (then, otherwise))
            return replace(stmt, then=holds, otherwise=fails)
        case _:
            return stmt
